//! What a request says beside its path and its body, whichever protocol brought it.
//!
//! Over HTTP these are headers. Over the direct protocol they are typed tokens, of which those that handlers ask for
//! are given under the names of the headers that they stand for (`rntbd::request`), as slices of the frame. Handlers
//! see one of both and cannot tell which.

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

use crate::headers::Sent;

/// A value under the name of a header.
pub type Field<'a> = (HeaderName, Cow<'a, [u8]>);

#[derive(Clone, Copy)]
pub struct Fields<'a> {
    sent: Sent,
    source: Source<'a>,
}

#[derive(Clone, Copy)]
enum Source<'a> {
    Headers(&'a HeaderMap),
    Tokens(&'a [Field<'a>]),
}

impl<'a> Fields<'a> {
    pub fn of_headers(headers: &'a HeaderMap) -> Fields<'a> {
        Fields { sent: Sent::of(headers.keys()), source: Source::Headers(headers) }
    }

    pub fn of_tokens(tokens: &'a [Field<'a>]) -> Fields<'a> {
        Fields { sent: Sent::of(tokens.iter().map(|(name, _)| name)), source: Source::Tokens(tokens) }
    }

    pub fn get(&self, name: &HeaderName) -> Option<&'a [u8]> {
        if !self.sent.may_have(name) {
            return None;
        }
        match self.source {
            Source::Headers(headers) => headers.get(name).map(|value| value.as_bytes()),
            Source::Tokens(tokens) => {
                tokens.iter().find(|(token, _)| token == name).map(|(_, value)| &**value)
            }
        }
    }

    /// A value as text; one that is not UTF-8 counts as absent.
    pub fn text(&self, name: &HeaderName) -> Option<&'a str> {
        std::str::from_utf8(self.get(name)?).ok()
    }

    pub fn has(&self, name: &HeaderName) -> bool {
        self.get(name).is_some()
    }

    /// Clients write `True`, `true` and `TRUE`.
    pub fn flag(&self, name: &HeaderName) -> bool {
        self.get(name).is_some_and(|value| value.eq_ignore_ascii_case(b"true"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{IS_UPSERT, PARTITION_KEY};
    use http::HeaderValue;
    use http::header::IF_NONE_MATCH;

    #[test]
    fn a_handler_cannot_tell_headers_from_tokens() {
        let headers = HeaderMap::from_iter([
            (PARTITION_KEY, HeaderValue::from_static("[\"a\"]")),
            (IS_UPSERT, HeaderValue::from_static("True")),
        ]);
        let tokens: [Field<'_>; 2] =
            [(PARTITION_KEY, Cow::Borrowed(b"[\"a\"]")), (IS_UPSERT, Cow::Borrowed(b"True"))];
        for fields in [Fields::of_headers(&headers), Fields::of_tokens(&tokens)] {
            assert_eq!(fields.text(&PARTITION_KEY), Some("[\"a\"]"));
            assert!(fields.flag(&IS_UPSERT) && !fields.flag(&PARTITION_KEY) && !fields.has(&IF_NONE_MATCH));
        }
    }
}
