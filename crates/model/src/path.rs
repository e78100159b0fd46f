//! Paths of property names, as partition keys, indexing policies and unique keys spell them.
//!
//! `/a/b` names property `b` of property `a`. A segment may stand in double or single quotes, then it may hold
//! slashes and spaces, and a backslash before the quote character makes it part of the name: `/"a b"/'c/d'/"say
//! \"x\""`. A segment of digits is a property name like any other.

use std::fmt;

/// Longest path accepted, and most segments: far above any real path, so that a path can be kept and compared cheaply.
const PATH_BYTES_MAX: usize = 4096;
const PATH_SEGMENTS_MAX: usize = 128;

/// A path of one or more property names.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PropertyPath {
    segments: Vec<String>,
}

/// Why a text is no path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path '{path}' is invalid at byte {offset}: {message}")]
pub struct PathError {
    pub path: String,
    pub offset: usize,
    pub message: &'static str,
}

impl PropertyPath {
    pub fn parse(path: &str) -> Result<PropertyPath, PathError> {
        let fail = |offset: usize, message| {
            Err(PathError { path: path.chars().take(256).collect(), offset, message })
        };
        if path.len() > PATH_BYTES_MAX {
            return fail(PATH_BYTES_MAX, "it is too long");
        }
        let mut segments = Vec::new();
        let mut rest = path;
        while !rest.is_empty() {
            let offset = path.len() - rest.len();
            let Some(segment) = rest.strip_prefix('/') else {
                return fail(offset, "a slash was expected");
            };
            if segments.len() == PATH_SEGMENTS_MAX {
                return fail(offset, "it has too many segments");
            }
            let (name, tail) = match segment.chars().next() {
                Some(quote @ ('"' | '\'')) => match quoted(&segment[1..], quote) {
                    Some(read) => read,
                    None => return fail(offset + 1, "the quote has no end"),
                },
                _ => {
                    let end = segment.find('/').unwrap_or(segment.len());
                    (segment[..end].to_owned(), &segment[end..])
                }
            };
            if name.is_empty() && segment.len() == tail.len() {
                return fail(offset, "a property name was expected");
            }
            segments.push(name);
            rest = tail;
        }
        if segments.is_empty() {
            fail(0, "it must begin with a slash")
        } else {
            Ok(PropertyPath { segments })
        }
    }

    /// A path from names as they are.
    pub fn from_segments<S: Into<String>>(segments: impl IntoIterator<Item = S>) -> PropertyPath {
        PropertyPath { segments: segments.into_iter().map(Into::into).collect() }
    }

    pub fn segments(&self) -> &[String] {
        &self.segments
    }
}

/// Reads up to the closing quote; returns the name and what follows the quote.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let mut name = String::new();
    let mut characters = text.char_indices().peekable();
    while let Some((at, character)) = characters.next() {
        if character == quote {
            return Some((name, &text[at + 1..]));
        }
        match characters.peek() {
            Some(&(_, next)) if character == '\\' && next == quote => {
                name.push(quote);
                characters.next();
            }
            _ => name.push(character),
        }
    }
    None
}

/// The canonical spelling: names that are not plain words stand in double quotes.
impl fmt::Display for PropertyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.segments {
            let plain =
                !segment.is_empty() && segment.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '-');
            if plain {
                write!(f, "/{segment}")?;
            } else if segment.contains('"') && !segment.contains('\'') && !segment.ends_with('\\') {
                // The other quote needs no backslashes, which not every reader takes away.
                write!(f, "/'{segment}'")?;
            } else {
                write!(f, "/\"{}\"", segment.replace('"', "\\\""))?;
            }
        }
        Ok(())
    }
}

impl std::str::FromStr for PropertyPath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<PropertyPath, PathError> {
        PropertyPath::parse(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, segments: &[&str], canonical: &str) {
        let parsed = PropertyPath::parse(path).unwrap();
        assert_eq!(parsed.segments(), segments, "{path}");
        assert_eq!(parsed.to_string(), canonical, "{path}");
        assert_eq!(PropertyPath::parse(canonical).unwrap(), parsed, "{canonical} reads back");
    }

    #[test]
    fn names_stand_bare_or_in_quotes() {
        check("/department", &["department"], "/department");
        check("/properties/name", &["properties", "name"], "/properties/name");
        check("/\"department name\"", &["department name"], "/\"department name\"");
        check("/'level\" 1*()'/'le/vel2'", &["level\" 1*()", "le/vel2"], "/'level\" 1*()'/\"le/vel2\"");
        check("/\"a\\\"b\"", &["a\"b"], "/'a\"b'");
        check("/\"a\\\"'b\"", &["a\"'b"], "/\"a\\\"'b\"");
        check("/0/1", &["0", "1"], "/0/1");
        check("/a b", &["a b"], "/\"a b\"");
        check("/\"\"", &[""], "/\"\"");
        check("/日本", &["日本"], "/日本");
        check("/a\\b", &["a\\b"], "/\"a\\b\"");
    }

    #[test]
    fn what_is_no_path_says_where() {
        for (path, offset) in
            [("", 0), ("a", 0), ("/", 0), ("//a", 0), ("/a/", 2), ("/\"a", 1), ("/\"a\"b", 4)]
        {
            assert_eq!(PropertyPath::parse(path).unwrap_err().offset, offset, "{path}");
        }
        assert!(PropertyPath::parse(&"/a".repeat(PATH_SEGMENTS_MAX)).is_ok());
        assert!(PropertyPath::parse(&"/a".repeat(PATH_SEGMENTS_MAX + 1)).is_err());
        assert!(PropertyPath::parse(&format!("/{}", "a".repeat(PATH_BYTES_MAX))).is_err());
    }
}
