//! The query string of a request, decoded.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Most parameters of a request; the protocol has about thirty.
const PARAMS_MAX: usize = 64;

#[derive(Debug, Default)]
pub struct Params<'q>(Vec<(Cow<'q, str>, Cow<'q, str>)>);

impl<'q> Params<'q> {
    /// What is not UTF-8 is replaced, which no signature and no name survives.
    pub fn parse(query: &'q str) -> Params<'q> {
        let parts = query.split('&').filter(|part| !part.is_empty()).take(PARAMS_MAX);
        let decode = |text: &'q str| match text.contains('+') {
            true => Cow::Owned(percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned()),
            false => percent_decode_str(text).decode_utf8_lossy(),
        };
        let pair = |part: &'q str| {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            (decode(name), decode(value))
        };
        Params(parts.map(pair).collect())
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_ref())
    }

    /// A parameter that says something.
    pub fn filled(&self, name: &str) -> Option<&str> {
        self.get(name).filter(|value| !value.trim().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_once() {
        let params = Params::parse("%24filter=a%20eq%20'%25'&$top=5&x=a+b%2B&&empty=");
        assert_eq!(params.get("$filter"), Some("a eq '%'"));
        assert_eq!((params.get("$top"), params.get("x")), (Some("5"), Some("a b+")));
        assert_eq!((params.get("empty"), params.filled("empty"), params.get("none")), (Some(""), None, None));
    }
}
