//! Session tokens: which change of which partition a client has already seen.
//!
//! Every answer of the item plane carries `{range}:-1#{lsn}`; the shape never changes for a client, because clients
//! refuse to compare tokens of different shapes. Those that are older than this shape get `{range}:{lsn}`. A request
//! carries one of them, or several joined by commas; the vector form `{range}:{version}#{lsn}#{region}={lsn}` that
//! clients may have kept from elsewhere is understood as well, and every form is read from every client.

use http::HeaderValue;

use crate::write::push_u64;

/// What stands before the LSN of a token that this server writes.
const VECTOR: &[u8] = b"-1#";

/// A container has fewer ranges than this; a longer list is refused before it is parsed.
const TOKENS_MAX: usize = 10_000;

/// The token is not one. Holds the text for the message.
#[derive(Debug, PartialEq, Eq)]
pub struct InvalidToken;

/// The requirements of a request: (range, lsn) pairs, in the order given.
pub fn parse(text: &str) -> Result<Vec<(u32, u64)>, InvalidToken> {
    let mut wanted = Vec::new();
    for token in text.split(',').map(str::trim).filter(|token| !token.is_empty()) {
        if wanted.len() == TOKENS_MAX {
            return Err(InvalidToken);
        }
        let (range, state) = token.split_once(':').ok_or(InvalidToken)?;
        let range = range.parse::<u32>().map_err(|_| InvalidToken)?;
        wanted.push((range, parse_state(state)?));
    }
    Ok(wanted)
}

fn parse_state(state: &str) -> Result<u64, InvalidToken> {
    let mut parts = state.split('#');
    let first = parts.next().ok_or(InvalidToken)?;
    let Some(lsn) = parts.next() else {
        // The oldest form: the lsn alone.
        return parse_lsn(first);
    };
    first.parse::<i64>().map_err(|_| InvalidToken)?;
    for region in parts {
        let (id, lsn) = region.split_once('=').ok_or(InvalidToken)?;
        id.parse::<u32>().map_err(|_| InvalidToken)?;
        parse_lsn(lsn)?;
    }
    parse_lsn(lsn)
}

/// Clients start from -1, "nothing seen".
fn parse_lsn(text: &str) -> Result<u64, InvalidToken> {
    if text == "-1" { Ok(0) } else { text.parse::<u64>().map_err(|_| InvalidToken) }
}

/// The token of an answer; `vector`: in the form of today, which clients of earlier times do not know.
pub fn header(range: u32, lsn: u64, vector: bool) -> HeaderValue {
    crate::headers::short(|text| {
        push_u64(text, u64::from(range));
        text.push(b':');
        push_state(text, lsn, vector);
    })
}

/// What a token says about its range.
pub fn push_state(text: &mut Vec<u8>, lsn: u64, vector: bool) {
    if vector {
        text.extend_from_slice(VECTOR);
    }
    push_u64(text, lsn);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_of_every_shape_are_read() {
        assert_eq!(parse("0:-1#12"), Ok(vec![(0, 12)]));
        assert_eq!(parse("0:-1#12,1:-1#5"), Ok(vec![(0, 12), (1, 5)]));
        assert_eq!(parse("3:1#12#1=3#2=7"), Ok(vec![(3, 12)]));
        assert_eq!(parse("0:7"), Ok(vec![(0, 7)]));
        assert_eq!(parse("0:-1"), Ok(vec![(0, 0)]));
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn other_text_is_refused() {
        for text in
            ["x", "0", "0:", "0:-1#", "0:a#1", "0:1#1#2", "0:1#1#a=2", "-1:1#1", "0:-1#99999999999999999999"]
        {
            assert_eq!(parse(text), Err(InvalidToken), "{text}");
        }
    }

    #[test]
    fn a_list_without_end_is_refused() {
        assert_eq!(parse(&"0:1,".repeat(TOKENS_MAX + 1)), Err(InvalidToken));
    }

    #[test]
    fn what_is_written_is_read_back() {
        assert_eq!(header(4, 99, true), "4:-1#99");
        assert_eq!(parse("4:-1#99"), Ok(vec![(4, 99)]));
    }

    #[test]
    fn the_simple_form_says_the_same() {
        assert_eq!(header(4, 99, false), "4:99");
        assert_eq!(parse("4:99"), parse("4:-1#99"));
    }
}
