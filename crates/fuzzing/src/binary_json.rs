//! Bytes as the binary form of an item.

use orrery_api_nosql::fuzzing;

use crate::json;

/// What a body may become as text, generously.
const GROWTH_MAX: usize = 32 * 1024 * 1024;

pub fn run(input: &[u8]) {
    // The first byte says that a body is binary; a fuzzer need not find that out again and again.
    let body = [&[0x80], input].concat();
    if let Some(text) = fuzzing::binary_json(&body) {
        assert!(text.len() <= GROWTH_MAX, "{} bytes became {}", body.len(), text.len());
        assert!(std::str::from_utf8(&text).is_ok(), "no text came of it");
        if text.len() < 100_000 {
            json::check(&text);
            if let Some(again) = fuzzing::to_binary_json(&text) {
                assert!(fuzzing::binary_json(&again).is_some(), "what was written is not read back");
            }
        }
    }
}
