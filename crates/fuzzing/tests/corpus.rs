//! The kept inputs, and changes to them by a seed: a bounded part of what `cargo fuzz` does, on every machine.
//!
//! A failure prints the seed and writes the input to a file; `ORRERY_SEED=n` repeats it, `ORRERY_CASES=n` tries
//! more, `ORRERY_TARGET=name` one target only.

use std::path::Path;
use std::time::{Duration, Instant};

use orrery_fuzzing::{Mutations, TARGETS};

/// Changed inputs for each target in an ordinary run.
const CASES: usize = 3_000;
/// No target takes longer than this in an ordinary run; the slow ones try fewer.
const TIME_MAX: Duration = Duration::from_secs(8);

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn kept(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn kept_and_changed_inputs_do_no_harm() {
    let seed = environment("ORRERY_SEED").unwrap_or(20_261_117);
    let cases = environment("ORRERY_CASES").map_or(CASES, |cases| cases as usize);
    let patient = environment("ORRERY_CASES").is_some();
    println!("ORRERY_SEED={seed}");
    let only = std::env::var("ORRERY_TARGET").ok();
    for target in TARGETS.iter().filter(|target| only.as_deref().is_none_or(|only| only == target.name)) {
        let inputs = kept(target.name);
        let began = Instant::now();
        let mut count = 0;
        for input in inputs.iter().cloned().chain(Mutations::new(&inputs, seed).take(cases)) {
            if std::panic::catch_unwind(|| (target.run)(&input)).is_err() {
                let file = std::env::temp_dir().join(format!("orrery-fuzz-{}", target.name));
                std::fs::write(&file, &input).unwrap();
                panic!("{} with seed {seed}, case {count}; the input is in {}", target.name, file.display());
            }
            count += 1;
            if began.elapsed() > TIME_MAX && !patient {
                break;
            }
        }
        println!("{}: {count} inputs, {} of them kept, {:?}", target.name, inputs.len(), began.elapsed());
    }
}
