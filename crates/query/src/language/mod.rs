//! The languages of texts: which forms of a word are one word, and which words say nothing about what a text is about.
//!
//! English has the stems it always had here; the others are Snowball's, from a crate whose algorithms do not change.
//! That matters: stems are in index rows. Whoever changes what comes out of this file raises [`ANALYSER`], and
//! indexes are made anew.

mod english;
mod function_words;

use std::collections::HashSet;
use std::sync::LazyLock;

use rust_stemmers::{Algorithm, Stemmer};

/// Which stems and function words index rows were made with. 1 took every text for an English one.
pub const ANALYSER: u64 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Language {
    #[default]
    English,
    French,
    German,
    Italian,
    Portuguese,
    Spanish,
}

/// The tags that policies use.
const TAGS: [(&str, Language); 7] = [
    ("en-US", Language::English),
    ("fr-FR", Language::French),
    ("de-DE", Language::German),
    ("it-IT", Language::Italian),
    ("pt-BR", Language::Portuguese),
    ("pt-PT", Language::Portuguese),
    ("es-ES", Language::Spanish),
];

/// What is looked up for each word of a text, in the order of [`Language::ALL`].
static FUNCTION_WORDS: LazyLock<[HashSet<&str>; Language::ALL.len()]> =
    LazyLock::new(|| Language::ALL.map(|language| function_words::of(language).split(' ').collect()));

impl Language {
    pub const ALL: [Language; 6] = [
        Language::English,
        Language::French,
        Language::German,
        Language::Italian,
        Language::Portuguese,
        Language::Spanish,
    ];

    /// The language of a tag as policies write it.
    pub fn of_tag(tag: &str) -> Option<Language> {
        TAGS.iter().find(|(known, _)| *known == tag).map(|(_, language)| *language)
    }

    /// The stem of a word in lower case.
    pub(crate) fn stem(self, word: &str) -> String {
        let algorithm = match self {
            Language::English => return english::stem(word),
            Language::French => Algorithm::French,
            Language::German => Algorithm::German,
            Language::Italian => Algorithm::Italian,
            Language::Portuguese => Algorithm::Portuguese,
            Language::Spanish => Algorithm::Spanish,
        };
        Stemmer::create(algorithm).stem(word).into_owned()
    }

    /// Whether the absence of a word in lower case would not change what a text is about.
    pub(crate) fn is_function_word(self, word: &str) -> bool {
        FUNCTION_WORDS[self as usize].contains(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `tests/golden/text/languages.txt`.
    #[test]
    fn words_are_as_the_golden_file_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/text/languages.txt");
        let file = std::fs::read_to_string(path).unwrap();
        let mut lines = 0;
        for line in file.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (tag, rest) = line.split_once(' ').unwrap();
            let language = Language::of_tag(tag).unwrap_or_else(|| panic!("{line}"));
            let (kind, words) = rest.trim().split_once(": ").unwrap();
            let words: Vec<&str> = words.split_whitespace().collect();
            let stems: HashSet<String> = words.iter().map(|word| language.stem(word)).collect();
            let silent = words.iter().filter(|word| language.is_function_word(word)).count();
            match kind {
                "same" => assert_eq!(stems.len(), 1, "{line}: {stems:?}"),
                "different" => assert_eq!(stems.len(), words.len(), "{line}: {stems:?}"),
                "silent" => assert_eq!(silent, words.len(), "{line}"),
                "telling" => assert_eq!(silent, 0, "{line}"),
                _ => panic!("{line}"),
            }
            lines += 1;
        }
        assert!(lines >= 20);
    }

    #[test]
    fn every_word_has_a_stem() {
        for language in Language::ALL {
            for word in
                ["a", "straße", "été", "ção", "ñ", "x1", "日本語", "ﬁ", "ı", "e\u{301}t", "ssss", "iiii"]
            {
                assert!(!language.stem(word).is_empty(), "{language:?} {word}");
            }
        }
    }
}
