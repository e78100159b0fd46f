//! Stems of English words: the common steps of Porter's algorithm.

/// The stem of an English word in lower case; other words come back as they are.
pub(super) fn stem(word: &str) -> String {
    if word.len() < 4 || !word.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return word.to_string();
    }
    let mut word = without_plural(word).to_string();
    for ending in ["eed", "ing", "ed"] {
        let Some(base) = word.strip_suffix(ending) else { continue };
        if ending == "eed" {
            if base.len() > 1 {
                word.pop();
            }
        } else if base.len() > 1 && has_vowel(base) {
            word = repaired(base);
        }
        break;
    }
    if let Some(base) = word.strip_suffix('y')
        && base.len() > 1
        && !ends_with_vowel(base)
    {
        word = format!("{base}i");
    }
    for (ending, replacement) in [
        ("ization", "ize"),
        ("ational", "ate"),
        ("fulness", "ful"),
        ("ousness", "ous"),
        ("iveness", "ive"),
        ("ement", ""),
        ("ment", ""),
        ("ness", ""),
        ("ation", "ate"),
        ("li", ""),
    ] {
        if let Some(base) = word.strip_suffix(ending)
            && base.len() > 3
        {
            word = format!("{base}{replacement}");
            break;
        }
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
    word
}

fn without_plural(word: &str) -> &str {
    if let Some(base) = word.strip_suffix("sses") {
        return &word[..base.len() + 2];
    }
    if let Some(base) = word.strip_suffix("ies") {
        return &word[..base.len() + 1];
    }
    match word.strip_suffix('s') {
        Some(base) if !base.ends_with(['s', 'u', 'i']) => base,
        _ => word,
    }
}

/// After `ing` or `ed` is gone: `hopp` is `hop`, `creat` is `create`.
fn repaired(base: &str) -> String {
    if base.ends_with("at") || base.ends_with("bl") || base.ends_with("iz") {
        return format!("{base}e");
    }
    let last = &base.as_bytes()[base.len() - 2..];
    if last[0] == last[1] && !matches!(last[1], b'l' | b's' | b'z' | b'e' | b'o') {
        return base[..base.len() - 1].to_string();
    }
    base.to_string()
}

fn has_vowel(text: &str) -> bool {
    text.bytes().any(|byte| b"aeiouy".contains(&byte))
}

fn ends_with_vowel(text: &str) -> bool {
    text.bytes().last().is_some_and(|byte| b"aeiou".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_share_a_stem() {
        for (a, b) in [
            ("swim", "swimming"),
            ("run", "runs"),
            ("play", "played"),
            ("hope", "hoping"),
            ("city", "cities"),
        ] {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
        assert_ne!(stem("united"), stem("states"));
    }
}
