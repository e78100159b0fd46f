//! LIKE patterns: `%` any run, `_` one character, `[a-f]` and `[^ab]` sets, anchored at both ends.
//!
//! Matching walks text and pattern together and, on a mismatch, goes back only to the last `%`: time is
//! at most the product of the two lengths, whatever the pattern.

/// Characters that are compared between two questions whether to go on.
pub const LOOK_EVERY: u64 = 4_096;

#[derive(Clone, Debug, PartialEq)]
pub struct LikePattern {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq)]
enum Part {
    Run,
    One,
    Exactly(char),
    Set { ranges: Vec<(char, char)>, negated: bool },
}

impl LikePattern {
    /// Reads a pattern; after `escape` the next character stands for itself.
    pub fn new(pattern: &str, escape: Option<char>) -> LikePattern {
        let characters: Vec<char> = pattern.chars().collect();
        let mut parts = Vec::with_capacity(characters.len());
        let mut at = 0;
        while let Some(&character) = characters.get(at) {
            at += 1;
            if Some(character) == escape {
                if let Some(&next) = characters.get(at) {
                    parts.push(Part::Exactly(next));
                    at += 1;
                }
                continue;
            }
            match character {
                '%' if parts.last() == Some(&Part::Run) => {}
                '%' => parts.push(Part::Run),
                '_' => parts.push(Part::One),
                '[' => match read_set(&characters[at..]) {
                    Some((set, length)) => {
                        parts.push(set);
                        at += length;
                    }
                    // A bracket that is never closed is a plain character.
                    None => parts.push(Part::Exactly('[')),
                },
                plain => parts.push(Part::Exactly(plain)),
            }
        }
        LikePattern { parts }
    }

    /// The literal text every match begins with; an index can look for it.
    pub fn prefix(&self) -> String {
        self.parts
            .iter()
            .map_while(|part| if let Part::Exactly(character) = part { Some(*character) } else { None })
            .collect()
    }

    /// Whether the pattern is plain text, without anything that stands for something else.
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Exactly(_)))
    }

    /// Whether the pattern is plain text and then anything.
    pub fn is_prefix(&self) -> bool {
        self.parts.split_last().is_some_and(|(last, before)| {
            *last == Part::Run && before.iter().all(|part| matches!(part, Part::Exactly(_)))
        })
    }

    pub fn matches(&self, text: &str) -> bool {
        self.matches_while(text, &mut || true).unwrap_or(false)
    }

    /// The same; `goes_on` is asked every `LOOK_EVERY` characters, and `None` is the answer when it does not.
    pub fn matches_while(&self, text: &str, goes_on: &mut dyn FnMut() -> bool) -> Option<bool> {
        let mut compared = 0_u64;
        let text: Vec<char> = text.chars().collect();
        let (mut at, mut part) = (0, 0);
        // Where to resume when the characters after the last run do not fit: one further on.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            compared += 1;
            if compared.is_multiple_of(LOOK_EVERY) && !goes_on() {
                return None;
            }
            match self.parts.get(part) {
                Some(Part::Run) => {
                    part += 1;
                    retry = Some((part, at));
                    continue;
                }
                Some(single) if at < text.len() && single.accepts(text[at]) => {
                    at += 1;
                    part += 1;
                    continue;
                }
                None if at == text.len() => return Some(true),
                _ => {}
            }
            match retry {
                Some((after, from)) if from < text.len() => {
                    retry = Some((after, from + 1));
                    part = after;
                    at = from + 1;
                }
                _ => return Some(false),
            }
        }
    }
}

impl Part {
    fn accepts(&self, character: char) -> bool {
        match self {
            Part::Run => false,
            Part::One => true,
            Part::Exactly(expected) => *expected == character,
            Part::Set { ranges, negated } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&character)) != *negated
            }
        }
    }
}

/// Reads a set after its opening bracket; returns it and how many characters it took.
fn read_set(characters: &[char]) -> Option<(Part, usize)> {
    let negated = characters.first() == Some(&'^');
    let mut at = usize::from(negated);
    let mut ranges = Vec::new();
    loop {
        let low = *characters.get(at)?;
        // A closing bracket that comes first is a member, as in `[]]`.
        if low == ']' && !ranges.is_empty() {
            return Some((Part::Set { ranges, negated }, at + 1));
        }
        if characters.get(at + 1) == Some(&'-') && characters.get(at + 2).is_some_and(|high| *high != ']') {
            ranges.push((low, characters[at + 2]));
            at += 3;
        } else {
            ranges.push((low, low));
            at += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(LikePattern::new(pattern, Some('!')).matches(text), expected, "{pattern} against {text}");
    }

    #[test]
    fn wildcards_sets_and_escapes() {
        check("a%", "abc", true);
        check("%b%", "abc", true);
        check("%c", "abcd", false);
        check("a_c", "abc", true);
        check("a_c", "ac", false);
        check("[a-c]x", "bx", true);
        check("[^a-c]x", "bx", false);
        check("100!%", "100%", true);
        check("100!%", "1000", false);
        check("[%]", "%", true);
        check("[[]", "[", true);
        check("", "", true);
        check("%%", "", true);
        check("%aab", "aaaab", true);
        check("[ab", "[ab", true);
    }
}
