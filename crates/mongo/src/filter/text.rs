//! `$text`: words, phrases in quotes, and words that must not occur, over the texts of a document.
//!
//! Which paths are looked at is said by whoever knows the text index; without, every text of the document is. Words
//! compare without case and accents unless asked otherwise, and by their stems (`running`, `runs`); a few words that
//! say nothing are passed over.

use rust_stemmers::{Algorithm, Stemmer};

use crate::collation::base_letters;
use crate::error::{Error, Result};
use crate::filter::Condition;
use crate::filter::parse::Place;
use crate::filter::path::{Leaf, walk};
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

/// Documents that are looked into for texts, inside of each other.
const DEPTH_MAX: usize = 100;
const STOP_WORDS: &[&str] = &[
    "a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no",
    "not", "of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to",
    "was", "will", "with",
];

/// What a `$text` asks for.
#[derive(Clone, Debug)]
pub struct TextQuery {
    pub search: String,
    pub language: String,
    pub case_sensitive: bool,
    pub diacritic_sensitive: bool,
    /// Where to look; empty is everywhere.
    pub paths: Vec<String>,
    words: Vec<String>,
    phrases: Vec<String>,
    excluded: Vec<String>,
    excluded_phrases: Vec<String>,
}

pub fn text(place: Place<'_>, value: &Bson) -> Result<Condition> {
    let Bson::Document(query) = value else { return Err(Error::bad_value("$text expects an object")) };
    if place.in_element {
        return Err(Error::bad_value("$text can only be applied to the top-level document"));
    }
    let (mut search, mut language) = (None, "english".to_owned());
    let (mut case_sensitive, mut diacritic_sensitive) = (false, false);
    for (name, value) in query.iter() {
        match (&**name, value) {
            ("$search", Bson::String(text)) => search = Some(text.to_string()),
            ("$search", _) => {
                return Err(Error::type_mismatch("\"$search\" had the wrong type. Expected string"));
            }
            ("$language", Bson::String(text)) => language = text.to_string(),
            ("$caseSensitive", Bson::Bool(value)) => case_sensitive = *value,
            ("$diacriticSensitive", Bson::Bool(value)) => diacritic_sensitive = *value,
            ("$language" | "$caseSensitive" | "$diacriticSensitive", _) => {
                return Err(Error::type_mismatch(format!("\"{name}\" had the wrong type")));
            }
            _ => return Err(Error::bad_value(format!("extra fields in $text: {name}"))),
        }
    }
    let search = search.ok_or_else(|| Error::new(4, "Missing expected field \"$search\""))?;
    let query = TextQuery::new(search, language, case_sensitive, diacritic_sensitive);
    Ok(Condition::Text(std::sync::Arc::new(query)))
}

impl TextQuery {
    fn new(search: String, language: String, case_sensitive: bool, diacritic_sensitive: bool) -> TextQuery {
        let mut query = TextQuery {
            search,
            language,
            case_sensitive,
            diacritic_sensitive,
            paths: Vec::new(),
            words: Vec::new(),
            phrases: Vec::new(),
            excluded: Vec::new(),
            excluded_phrases: Vec::new(),
        };
        let search = query.search.clone();
        for (at, part) in search.split('"').enumerate() {
            if at % 2 == 1 {
                let negated = search.split('"').nth(at - 1).is_some_and(|before| before.ends_with('-'));
                let phrase = query.folded(part);
                if negated {
                    query.excluded_phrases.push(phrase);
                } else if !phrase.trim().is_empty() {
                    query.phrases.push(phrase);
                    let words = query.words_of(part);
                    query.words.extend(words);
                }
                continue;
            }
            for word in part.split_whitespace().filter(|word| *word != "-") {
                match word.strip_prefix('-') {
                    Some(word) => {
                        let words = query.words_of(word);
                        query.excluded.extend(words);
                    }
                    None => {
                        let words = query.words_of(word);
                        query.words.extend(words);
                    }
                }
            }
        }
        query
    }

    fn folded(&self, text: &str) -> String {
        let text = if self.diacritic_sensitive { text.to_owned() } else { base_letters(text) };
        if self.case_sensitive { text } else { text.to_lowercase() }
    }

    fn words_of(&self, text: &str) -> Vec<String> {
        let folded = self.folded(text);
        let words = folded.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '\'');
        let english = matches!(self.language.as_str(), "english" | "en");
        let stemmer = stemmer(&self.language);
        words
            .map(|word| word.trim_matches('\''))
            .filter(|word| !word.is_empty())
            .filter(|word| !english || !STOP_WORDS.contains(&word.to_lowercase().as_str()))
            .map(|word| {
                stemmer.as_ref().map_or_else(|| word.to_owned(), |stemmer| stemmer.stem(word).into_owned())
            })
            .collect()
    }

    pub fn matches(&self, document: ValueRef<'_>) -> bool {
        self.score(document).is_some()
    }

    /// How well a document matches, `None` where it does not: what `{$meta: "textScore"}` shows.
    pub fn score(&self, document: ValueRef<'_>) -> Option<f64> {
        let mut texts = Vec::new();
        if self.paths.is_empty() {
            collect(document, 0, &mut texts);
        }
        for path in &self.paths {
            // Only a visitor that fails could make the walk fail.
            let _ = walk(document, path, Leaf::Elements, &mut |found, _| {
                texts.extend(found.and_then(ValueRef::as_str));
                Ok(false)
            });
        }
        let folded: Vec<String> = texts.iter().map(|text| self.folded(text)).collect();
        let occurs = |phrase: &String| folded.iter().any(|text| text.contains(phrase.as_str()));
        if !self.phrases.iter().all(occurs) || self.excluded_phrases.iter().any(occurs) {
            return None;
        }
        let mut score = 0.0;
        for text in &texts {
            let words = self.words_of(text);
            if words.iter().any(|word| self.excluded.contains(word)) {
                return None;
            }
            let mut asked: Vec<&String> = self.words.iter().collect();
            asked.sort_unstable();
            asked.dedup();
            for wanted in asked {
                let count = words.iter().filter(|word| *word == wanted).count();
                if count > 0 {
                    // Each further occurrence counts half of the one before; words of short texts count more.
                    let frequency: f64 = (0..count.min(32)).map(|at| 0.5f64.powi(at as i32)).sum();
                    score += frequency * (0.5 * count as f64 / words.len() as f64 + 0.5);
                }
            }
        }
        (score > 0.0).then_some(score)
    }
}

fn collect<'a>(value: ValueRef<'a>, depth: usize, texts: &mut Vec<&'a str>) {
    if depth > DEPTH_MAX {
        return;
    }
    match value.kind() {
        Kind::String => texts.extend(value.as_str()),
        Kind::Document => value.members().for_each(|(_, member)| collect(member, depth + 1, texts)),
        Kind::Array => value.elements().for_each(|element| collect(element, depth + 1, texts)),
        _ => {}
    }
}

/// Who cuts off the endings of words of a language.
fn stemmer(language: &str) -> Option<Stemmer> {
    Some(Stemmer::create(match language {
        "english" | "en" => Algorithm::English,
        "danish" | "da" => Algorithm::Danish,
        "dutch" | "nl" => Algorithm::Dutch,
        "finnish" | "fi" => Algorithm::Finnish,
        "french" | "fr" => Algorithm::French,
        "german" | "de" => Algorithm::German,
        "hungarian" | "hu" => Algorithm::Hungarian,
        "italian" | "it" => Algorithm::Italian,
        "norwegian" | "nb" => Algorithm::Norwegian,
        "portuguese" | "pt" => Algorithm::Portuguese,
        "romanian" | "ro" => Algorithm::Romanian,
        "russian" | "ru" => Algorithm::Russian,
        "spanish" | "es" => Algorithm::Spanish,
        "swedish" | "sv" => Algorithm::Swedish,
        "turkish" | "tr" => Algorithm::Turkish,
        _ => return None,
    }))
}
