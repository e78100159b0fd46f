//! Whether a connection begins with the opening handshake of a WebSocket, told by its first bytes.
//!
//! Such a connection is an HTTP request until its headers have been read. Nobody names a path or a sub-protocol that
//! could be relied on: drivers connect to `/`, `/gremlin` or whatever they were given. So a `GET` whose headers say
//! `Upgrade: websocket` is one, and everything else is not.

use orrery_api::Claim;

const METHOD: &[u8] = b"GET ";
const HEADER: &[u8] = b"upgrade";
const PROTOCOL: &[u8] = b"websocket";

pub fn claim(first: &[u8]) -> Claim {
    if first.len() < METHOD.len() {
        return if METHOD.starts_with(first) { Claim::Undecided } else { Claim::NotMine };
    }
    if !first.starts_with(METHOD) {
        return Claim::NotMine;
    }
    let mut rest = first;
    while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
        let line = rest[..end].trim_ascii_end();
        rest = &rest[end + 1..];
        if line.is_empty() {
            return Claim::NotMine;
        }
        if is_upgrade(line) {
            return Claim::Mine;
        }
    }
    Claim::Undecided
}

fn is_upgrade(line: &[u8]) -> bool {
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return false };
    let (name, value) = (&line[..colon], &line[colon + 1..]);
    name.eq_ignore_ascii_case(HEADER)
        && value.split(|byte| *byte == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(PROTOCOL))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_get_that_upgrades_is_one_whatever_its_path() {
        for (first, expected) in [
            (&b"G"[..], Claim::Undecided),
            (b"GET /dbs HTTP/1.1\r\nHost: a\r\n", Claim::Undecided),
            (b"GET /dbs HTTP/1.1\r\nHost: a\r\n\r\n", Claim::NotMine),
            (b"GET / HTTP/1.1\r\nUpgrade: websocket\r\n", Claim::Mine),
            (b"GET /gremlin HTTP/1.1\r\nHost: a\r\nupgrade:  WebSocket \r\n", Claim::Mine),
            (b"GET / HTTP/1.1\r\nUpgrade: h2c\r\n\r\n", Claim::NotMine),
            (b"GET / HTTP/1.1\r\nUpgrade: h2c, websocket\r\n\r\n", Claim::Mine),
            (b"GET / HTTP/1.1\r\nUpgrade: webs", Claim::Undecided),
            (b"GET / HTTP/1.1\r\nX: Upgrade: websocket\r\n\r\n", Claim::NotMine),
            (b"POST / HTTP/1.1\r\nUpgrade: websocket\r\n", Claim::NotMine),
            (b"P", Claim::NotMine),
            (b"\x16\x03", Claim::NotMine),
        ] {
            assert_eq!(claim(first), expected, "{}", String::from_utf8_lossy(first));
        }
    }
}
