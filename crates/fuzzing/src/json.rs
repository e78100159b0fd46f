//! Bytes as the body of an item.

use orrery_model::{NumberStyle, ParseOptions, Raw, Value, parse_json};
use serde_json::Value as Json;

pub fn run(input: &[u8]) {
    check(input);
}

/// Stores and writes a text, and compares with what another implementation makes of it.
pub fn check(input: &[u8]) {
    let other = serde_json::from_slice::<Json>(input);
    let Ok(stored) = parse_json(input, &ParseOptions::default()) else {
        // A value that the other reads is refused for its depth or its numbers only.
        if let Ok(value) = other {
            assert!(
                depth(&value) > 100 || has_odd_number(input),
                "refused: {}",
                String::from_utf8_lossy(input)
            );
        }
        return;
    };
    let raw = Raw::document(&stored).expect("what was stored can be read");
    let first = print(raw);
    let again = parse_json(&first, &ParseOptions::default()).expect("what was written can be read");
    assert_eq!(print(Raw::document(&again).expect("a document")), first, "writing is no fixed point");
    let value: Value = raw.to_value();
    let mut text = Vec::new();
    value.write_json(&mut text, NumberStyle::Query);
    assert_eq!(text, first, "owned and stored values differ");
    if let Ok(other) = other {
        let ours: Json = serde_json::from_slice(&first).expect("ours is JSON to others");
        assert!(alike(&ours, &other), "{ours} is not {other}");
    }
}

fn print(raw: Raw<'_>) -> Vec<u8> {
    let mut text = Vec::new();
    raw.write_json(&mut text, NumberStyle::Query);
    text
}

fn depth(value: &Json) -> usize {
    match value {
        Json::Array(list) => 1 + list.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

/// Numbers beyond the doubles; serde_json refuses most of them and rounds others.
fn has_odd_number(input: &[u8]) -> bool {
    input.windows(2).any(|pair| pair[0].is_ascii_digit() && matches!(pair[1], b'e' | b'E'))
        || input.split(|byte| !byte.is_ascii_digit()).any(|digits| digits.len() > 300)
}

/// Equal but for the last digits of numbers, which the other does not round correctly.
fn alike(ours: &Json, other: &Json) -> bool {
    match (ours, other) {
        (Json::Number(ours), Json::Number(other)) => {
            let (ours, other) = (ours.as_f64().unwrap_or(0.0), other.as_f64().unwrap_or(0.0));
            ours == other || (ours - other).abs() <= other.abs() * 1e-14 + f64::MIN_POSITIVE
        }
        (Json::Array(ours), Json::Array(other)) => {
            ours.len() == other.len() && ours.iter().zip(other).all(|(ours, other)| alike(ours, other))
        }
        (Json::Object(ours), Json::Object(other)) => {
            ours.len() == other.len()
                && ours.iter().all(|(name, value)| other.get(name).is_some_and(|other| alike(value, other)))
        }
        _ => ours == other,
    }
}
