//! See the target of this name in `crates/fuzzing`.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| orrery_fuzzing::run("gremlin_script", input));
