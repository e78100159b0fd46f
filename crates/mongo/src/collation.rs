//! How texts compare under a collation.
//!
//! A text becomes a key of up to three levels: base letters, then accents, then case. Comparing two keys is comparing
//! the texts. That is the root order of Unicode collation for the alphabets of Europe (blanks, punctuation, symbols,
//! digits, letters; small before capital letters); rules of single languages are not applied, whatever the locale.

use std::cmp::Ordering;

use crate::error::{Error, Result, code};
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// How texts compare.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collation {
    pub locale: String,
    /// 1 to 5; 3 tells case, 2 accents, 1 neither.
    pub strength: u8,
    pub case_level: bool,
    pub numeric_ordering: bool,
    /// Capital letters before small ones.
    pub upper_first: bool,
    /// `alternate: "shifted"`: blanks and punctuation count from level 4 on only.
    pub shifted: bool,
    /// Accents compare from the end of the text, as in French.
    pub backwards: bool,
}

/// Members that a collation may have.
const MEMBERS: [&str; 10] = [
    "locale",
    "strength",
    "caseLevel",
    "caseFirst",
    "numericOrdering",
    "alternate",
    "maxVariable",
    "normalization",
    "backwards",
    "version",
];
/// ASCII in the order of the collation, blanks and punctuation and symbols; digits and letters follow.
const PUNCTUATION: &str = "\t\n\u{b}\u{c}\r _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$";

impl Collation {
    /// Reads what commands give; the locale `simple` is none.
    pub fn parse(collation: &Document) -> Result<Option<Collation>> {
        for (name, _) in collation.iter() {
            if !MEMBERS.contains(&&**name) {
                return Err(Error::new(40415, format!("BSON field 'collation.{name}' is an unknown field.")));
            }
        }
        let locale = match collation.get("locale") {
            Some(Bson::String(locale)) => locale.to_string(),
            Some(_) => return Err(Error::type_mismatch("field 'locale' must be of type string")),
            None => {
                let text = "BSON field 'collation.locale' is missing but a required field";
                return Err(Error::new(40414, text));
            }
        };
        let language = locale.split(['_', '@', '-']).next().unwrap_or_default();
        if locale != "simple" && !LANGUAGES.contains(&language) {
            let text = format!("Field 'locale' is invalid in: {{ locale: \"{locale}\" }}");
            return Err(Error::new(code::BAD_VALUE, text));
        }
        let strength = match collation.get("strength") {
            None => 3,
            Some(value) => match value.as_i64() {
                Some(strength @ 1..=5) => strength as u8,
                Some(strength) => {
                    let text = format!(
                        "Enumeration value '{strength}' for field 'collation.strength' is not a valid value."
                    );
                    return Err(Error::bad_value(text));
                }
                None => return Err(Error::type_mismatch("field 'strength' must be a number")),
            },
        };
        let flag = |name: &str| match collation.get(name) {
            None => Ok(false),
            Some(Bson::Bool(value)) => Ok(*value),
            Some(value) if value.is_number() => Ok(value.is_truthy()),
            Some(_) => Err(Error::type_mismatch(format!("field '{name}' must be of type bool"))),
        };
        let word = |name: &str, words: &[&str]| match collation.get(name) {
            None => Ok(0),
            Some(Bson::String(text)) => words.iter().position(|word| *word == &**text).ok_or_else(|| {
                Error::bad_value(format!(
                    "Enumeration value '{text}' for field 'collation.{name}' is not a valid value."
                ))
            }),
            Some(_) => Err(Error::type_mismatch(format!("field '{name}' must be of type string"))),
        };
        let parsed = Collation {
            strength,
            case_level: flag("caseLevel")?,
            numeric_ordering: flag("numericOrdering")?,
            upper_first: word("caseFirst", &["off", "upper", "lower"])? == 1,
            shifted: word("alternate", &["non-ignorable", "shifted"])? == 1,
            backwards: flag("backwards")?,
            locale,
        };
        word("maxVariable", &["punct", "space"])?;
        flag("normalization")?;
        Ok((parsed.locale != "simple").then_some(parsed))
    }

    /// All of it, as `listCollections` and `listIndexes` show it.
    pub fn to_document(&self) -> Document {
        crate::doc! {
            "locale" => self.locale.as_str(),
            "caseLevel" => self.case_level,
            "caseFirst" => if self.upper_first { "upper" } else { "off" },
            "strength" => i32::from(self.strength),
            "numericOrdering" => self.numeric_ordering,
            "alternate" => if self.shifted { "shifted" } else { "non-ignorable" },
            "maxVariable" => "punct",
            "normalization" => false,
            "backwards" => self.backwards,
            "version" => "57.1",
        }
    }

    pub fn compare(&self, a: &str, b: &str) -> Ordering {
        if a == b { Ordering::Equal } else { self.key(a).cmp(&self.key(b)) }
    }

    /// Bytes that compare as the texts do.
    pub fn key(&self, text: &str) -> Vec<u8> {
        let mut levels = Levels::default();
        let mut rest = text.chars().peekable();
        while let Some(letter) = rest.next() {
            if self.numeric_ordering && letter.is_ascii_digit() {
                let mut digits = String::from(letter);
                while let Some(digit) = rest.next_if(char::is_ascii_digit) {
                    digits.push(digit);
                }
                levels.push_number(digits.trim_start_matches('0'));
            } else {
                levels.push(letter, self.shifted, self.upper_first);
            }
        }
        let mut key = levels.primary;
        if self.strength >= 2 {
            key.push(0);
            if self.backwards {
                levels.secondary.reverse();
            }
            key.extend_from_slice(&levels.secondary);
        }
        if self.strength >= 3 || self.case_level {
            key.push(0);
            key.extend_from_slice(&levels.case);
        }
        if self.strength >= 4 && self.shifted {
            key.push(0);
            key.extend_from_slice(&levels.ignored);
        }
        if self.strength == 5 {
            key.push(0);
            key.extend_from_slice(text.as_bytes());
        }
        key
    }

    /// Whether a value holds a text, so that it may compare otherwise than by its bytes.
    pub fn concerns(value: ValueRef<'_>) -> bool {
        use crate::value::Kind;
        matches!(value.kind(), Kind::String | Kind::Symbol | Kind::Document | Kind::Array)
    }
}

#[derive(Default)]
struct Levels {
    primary: Vec<u8>,
    secondary: Vec<u8>,
    case: Vec<u8>,
    ignored: Vec<u8>,
}

impl Levels {
    fn push(&mut self, letter: char, shifted: bool, upper_first: bool) {
        if let Some(at) = PUNCTUATION.find(letter) {
            if shifted {
                self.ignored.push(at as u8 + 2);
                return;
            }
            self.weight(2, at as u32);
        } else if letter.is_control() {
            return;
        } else if letter.is_ascii_digit() {
            self.weight(4, letter as u32);
        } else {
            for small in letter.to_lowercase() {
                let (base, accent) = decompose(small);
                if base.is_empty() {
                    // A combining mark changes the letter before it.
                    if let Some(last) = self.secondary.last_mut() {
                        *last = accent;
                    }
                    continue;
                }
                for (at, letter) in base.chars().enumerate() {
                    let class = if letter.is_alphabetic() { 5 } else { 3 };
                    self.weight(class, letter as u32);
                    if at == 0 {
                        *self.secondary.last_mut().expect("a weight was just pushed") = accent;
                    }
                }
            }
            let upper = letter.is_uppercase();
            if let Some(last) = self.case.last_mut() {
                *last = 1 + u8::from(upper != upper_first);
            }
            return;
        }
        *self.case.last_mut().expect("a weight was just pushed") = 1;
    }

    fn weight(&mut self, class: u8, weight: u32) {
        self.primary.push(class);
        self.primary.extend_from_slice(&weight.to_be_bytes()[1..]);
        self.secondary.push(1);
        self.case.push(1);
    }

    fn push_number(&mut self, digits: &str) {
        self.primary.push(4);
        self.primary.extend_from_slice(&(digits.len() as u32).to_be_bytes()[1..]);
        self.primary.extend_from_slice(digits.as_bytes());
        self.secondary.push(1);
        self.case.push(1);
    }
}

/// Letters with accents of the Latin alphabet, small: the letter, then all that it is with an accent.
const ACCENTED: &[(&str, &str)] = &[
    ("a", "àáâãäåāăąǎǟǡǻȁȃȧḁạảấầẩẫậắằẳẵặ"),
    ("ae", "æǣǽ"),
    ("b", "ḃḅḇ"),
    ("c", "çćĉċčḉ"),
    ("d", "ďḋḍḏḑḓ"),
    ("e", "èéêëēĕėęěȅȇȩḕḗḙḛḝẹẻẽếềểễệ"),
    ("f", "ḟ"),
    ("g", "ĝğġģǧǵḡ"),
    ("h", "ĥȟḣḥḧḩḫẖ"),
    ("i", "ìíîïĩīĭįǐȉȋḭḯỉị"),
    ("j", "ĵǰ"),
    ("k", "ķǩḱḳḵ"),
    ("l", "ĺļľḷḹḻḽ"),
    ("m", "ḿṁṃ"),
    ("n", "ñńņňǹṅṇṉṋ"),
    ("o", "òóôõöøōŏőơǒǫǭȍȏȫȭȯȱṍṏṑṓọỏốồổỗộớờởỡợ"),
    ("oe", "œ"),
    ("p", "ṕṗ"),
    ("r", "ŕŗřȑȓṙṛṝṟ"),
    ("s", "śŝşšșṡṣṥṧṩ"),
    ("ss", "ß"),
    ("t", "ţťțṫṭṯṱẗ"),
    ("u", "ùúûüũūŭůűųưǔǖǘǚǜȕȗṳṵṷṹṻụủứừửữự"),
    ("v", "ṽṿ"),
    ("w", "ŵẁẃẅẇẉẘ"),
    ("x", "ẋẍ"),
    ("y", "ýÿŷȳẏẙỳỵỷỹ"),
    ("z", "źżžẑẓẕ"),
];

/// The base letters of a small letter, and which accent it has; 1 is none. A combining mark has no base.
fn decompose(letter: char) -> (String, u8) {
    if letter.is_ascii() {
        return (letter.into(), 1);
    }
    if ('\u{300}'..='\u{36f}').contains(&letter) {
        return (String::new(), 2 + (letter as u32 - 0x300) as u8);
    }
    for (base, accented) in ACCENTED {
        if let Some(at) = accented.chars().position(|has| has == letter) {
            return ((*base).to_owned(), 2 + at as u8);
        }
    }
    (letter.into(), 1)
}

/// A text with accents taken away from its letters.
pub(crate) fn base_letters(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii() {
            out.push(letter);
            continue;
        }
        for small in letter.to_lowercase() {
            let (base, _) = decompose(small);
            if letter.is_uppercase() { out.push_str(&base.to_uppercase()) } else { out.push_str(&base) }
        }
    }
    out
}

/// Languages that collations are known for.
const LANGUAGES: &[&str] = &[
    "simple", "af", "am", "ar", "as", "az", "be", "bg", "bn", "bo", "bs", "ca", "chr", "cs", "cy", "da",
    "de", "dsb", "dz", "ee", "el", "en", "eo", "es", "et", "fa", "fi", "fil", "fo", "fr", "ga", "gl", "gu",
    "ha", "haw", "he", "hi", "hr", "hsb", "hu", "hy", "id", "ig", "is", "it", "ja", "ka", "kk", "kl", "km",
    "kn", "ko", "kok", "ky", "lb", "lkt", "ln", "lo", "lt", "lv", "mk", "ml", "mn", "mr", "ms", "mt", "my",
    "nb", "ne", "nl", "nn", "om", "or", "pa", "pl", "ps", "pt", "ro", "ru", "se", "si", "sk", "sl", "smn",
    "sq", "sr", "sv", "sw", "ta", "te", "th", "to", "tr", "ug", "uk", "ur", "uz", "vi", "wae", "yi", "yo",
    "zh", "zu",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn collation(strength: u8) -> Collation {
        let document = crate::doc! {"locale" => "en", "strength" => i32::from(strength)};
        Collation::parse(&document).unwrap().unwrap()
    }

    #[test]
    fn strength_tells_letters_accents_and_case() {
        for (a, b, level) in
            [("a", "b", 1), ("a", "á", 2), ("a", "A", 3), ("resume", "résumé", 2), ("Ab", "aB", 3)]
        {
            for strength in 1..=3 {
                let order = collation(strength).compare(a, b);
                assert_eq!(order == Ordering::Equal, strength < level, "{a} {b} at {strength}");
            }
        }
        assert_eq!(collation(3).compare("a", "A"), Ordering::Less);
        assert_eq!(collation(3).compare("b", "A"), Ordering::Greater);
        assert_eq!(collation(3).compare("a b", "ab"), Ordering::Less);
    }

    #[test]
    fn numbers_in_texts_compare_by_value() {
        let numeric = Collation { numeric_ordering: true, ..collation(3) };
        assert_eq!(numeric.compare("file10", "file9"), Ordering::Greater);
        assert_eq!(collation(3).compare("file10", "file9"), Ordering::Less);
        assert_eq!(numeric.compare("file010", "file10"), Ordering::Equal);
    }
}
