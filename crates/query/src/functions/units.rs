//! Positions in strings count UTF-16 code units, as everywhere in the language.

/// The length in code units.
pub(super) fn length(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.encode_utf16().count() }
}

/// The part from `start` with at most `count` units. Half a surrogate pair becomes U+FFFD.
pub(super) fn slice(text: &str, start: usize, count: usize) -> String {
    if text.is_ascii() {
        let start = start.min(text.len());
        let end = start.saturating_add(count).min(text.len());
        return text[start..end].to_string();
    }
    let units: Vec<u16> = text.encode_utf16().skip(start).take(count).collect();
    String::from_utf16_lossy(&units)
}

/// Where `wanted` first stands at or after unit `start`.
pub(super) fn find(text: &str, wanted: &str, start: usize) -> Option<usize> {
    let from = byte_offset(text, start)?;
    text[from..].find(wanted).map(|at| length(&text[..from + at]))
}

/// Where `wanted` last stands without reaching beyond unit `last`.
pub(super) fn find_last(text: &str, wanted: &str, last: usize) -> Option<usize> {
    let units: Vec<u16> = text.encode_utf16().collect();
    let wanted: Vec<u16> = wanted.encode_utf16().collect();
    let end = units.len().min(last.saturating_add(1));
    let highest = end.checked_sub(wanted.len())?;
    (0..=highest).rev().find(|at| units[*at..].starts_with(&wanted))
}

/// The byte offset of a unit; `None` beyond the end.
fn byte_offset(text: &str, unit: usize) -> Option<usize> {
    let mut units = 0;
    for (offset, character) in text.char_indices() {
        if units >= unit {
            return Some(offset);
        }
        units += character.len_utf16();
    }
    (units >= unit).then_some(text.len())
}
