//! Full text: words of a text, their stems, and the BM25 score.
//!
//! A text is cut into runs of letters and digits, lower-cased and stemmed (English suffixes, the common
//! steps of Porter's algorithm), so that `swimming` finds `swims`. A term of several words is a phrase: its words must
//! follow each other. A term may allow a few letters of difference. Words that carry no meaning of their
//! own are found like others but do not count towards the length of a text.

/// Longest term that is compared letter by letter when a difference is allowed.
const FUZZY_CHARS_MAX: usize = 64;

/// A text cut into words.
pub(crate) struct Words {
    /// The stems, in order.
    stems: Vec<String>,
    /// How many words carry meaning.
    pub length: usize,
}

impl Words {
    pub fn new(text: &str) -> Words {
        let mut words = Words { stems: Vec::new(), length: 0 };
        for word in text.split(|character: char| !character.is_alphanumeric()) {
            if word.is_empty() {
                continue;
            }
            let word = word.to_lowercase();
            words.length += usize::from(!is_function_word(&word));
            words.stems.push(stem(&word));
        }
        words
    }
}

/// English words whose absence would not change what a text is about.
const FUNCTION_WORDS: &str = " a about above after again against all also am an and any are as at be because \
    been before being below between both but by can could did do does doing down during each few for from \
    further had has have having he her here hers him his how i if in into is it its itself just known me more \
    most my no nor not now of off on once only or other our out over own part same she should so some such than \
    that the their them then there these they this those through throughout to too under until up very was we \
    well were what when where which while who whom why will with would you your ";

fn is_function_word(word: &str) -> bool {
    FUNCTION_WORDS.match_indices(word).any(|(at, _)| {
        FUNCTION_WORDS[..at].ends_with(' ') && FUNCTION_WORDS[at + word.len()..].starts_with(' ')
    })
}

/// A term to look for: one word or a phrase.
#[derive(Clone, Debug)]
pub(crate) struct Term {
    words: Vec<String>,
    /// How many letters may differ, 0 to 2.
    distance: usize,
}

impl Term {
    pub fn new(text: &str, distance: usize) -> Term {
        Term { words: Words::new(text).stems, distance }
    }

    /// How often the term stands among the words of a text.
    pub fn count(&self, text: &Words) -> usize {
        if self.words.is_empty() {
            return 0;
        }
        text.stems
            .windows(self.words.len())
            .filter(|window| window.iter().zip(&self.words).all(|(word, wanted)| self.same(word, wanted)))
            .count()
    }

    fn same(&self, word: &str, wanted: &str) -> bool {
        word == wanted || (self.distance > 0 && within(word, wanted, self.distance))
    }
}

/// Whether two words differ by at most `limit` insertions, deletions or replacements.
fn within(a: &str, b: &str, limit: usize) -> bool {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit || a.len().max(b.len()) > FUZZY_CHARS_MAX {
        return false;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()] <= limit
}

/// BM25 of one term in one text.
pub(crate) fn bm25(hits: f64, words: f64, documents: f64, average_words: f64, matching: f64) -> f64 {
    const K1: f64 = 1.2;
    const B: f64 = 0.75;
    let rarity = (1.0 + (documents - matching + 0.5) / (matching + 0.5)).ln();
    let length = if average_words > 0.0 { words / average_words } else { 1.0 };
    rarity * hits * (K1 + 1.0) / (hits + K1 * (1.0 - B + B * length))
}

/// The stem of an English word in lower case; other words come back as they are.
fn stem(word: &str) -> String {
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

    #[test]
    fn function_words_do_not_lengthen_a_text() {
        assert_eq!(Words::new("The cat and the hat").length, 2);
    }

    #[test]
    fn phrases_need_their_words_in_order() {
        let text = Words::new("The United States of America");
        assert_eq!(Term::new("united states", 0).count(&text), 1);
        assert_eq!(Term::new("states united", 0).count(&text), 0);
        assert_eq!(Term::new("amerika", 1).count(&text), 1);
    }
}
