//! Bytes as what clients carry from one answer to the next request.
//!
//! The first byte chooses the request. Continuations of our own are put together as the server would: the format and
//! what ties one to its query stay as they were given out, and the bytes are the position after them. So an input
//! reaches the code that goes on from a position, not only the code that refuses foreign ones.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use orrery_api_nosql::{CrossPartition, fuzzing};

use crate::client::{Client, check, map};

const DOCS: &str = "/dbs/d/colls/c/docs";
/// Bytes before the position itself: the format, and four of the query.
const MARK_BYTES: usize = 5;

/// A request whose answer has a continuation: headers, and the query's text if it is one.
struct Paged {
    headers: &'static [(&'static str, &'static str)],
    query: Option<&'static str>,
}

const PAGED: &[Paged] = &[
    Paged { headers: &[], query: None },
    Paged { headers: &[KEY], query: None },
    Paged { headers: &[KEY], query: Some("SELECT * FROM c") },
    Paged { headers: &[KEY], query: Some("SELECT * FROM c WHERE c.n > 0 ORDER BY c.n DESC") },
    Paged { headers: &[KEY], query: Some("SELECT c.n, x FROM c JOIN x IN c.a ORDER BY c.n") },
    Paged { headers: &[KEY], query: Some("SELECT DISTINCT VALUE x FROM c JOIN x IN c.a") },
    Paged { headers: &[KEY], query: Some("SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n") },
    Paged { headers: &[RANGE], query: Some("SELECT c.id FROM c OFFSET 1 LIMIT 5") },
    Paged { headers: &[ACROSS], query: Some("SELECT * FROM c WHERE c.n >= 0") },
    Paged { headers: &[ACROSS], query: Some("SELECT * FROM c ORDER BY c.n") },
    Paged { headers: &[ACROSS], query: Some("SELECT c.pk, SUM(c.n) AS s FROM c GROUP BY c.pk") },
];

const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"1\"]");
const RANGE: (&str, &str) = ("x-ms-documentdb-partitionkeyrangeid", "0");
const ACROSS: (&str, &str) = ("x-ms-documentdb-query-enablecrosspartition", "true");

/// Headers that are taken as they come, with the request that reads them.
const TEXTS: &[(&str, &[(&str, &str)])] = &[
    ("x-ms-continuation", &[]),
    ("x-ms-continuation", &[RANGE]),
    ("x-ms-session-token", &[KEY]),
    ("if-none-match", &[("a-im", "Incremental feed"), RANGE]),
    (
        "if-none-match",
        &[("a-im", "Full-Fidelity Feed"), ("x-ms-cosmos-changefeed-wire-format-version", "2021-09-15")],
    ),
    ("if-match", &[KEY]),
    ("x-ms-start-epk", &[("a-im", "Incremental feed"), ("x-ms-read-key-type", "EffectivePartitionKeyRange")]),
    ("x-ms-documentdb-partitionkey", &[]),
    ("x-ms-documentdb-partitionkeyrangeid", &[]),
];

struct Stand {
    client: Client,
    /// For each of `PAGED`: a continuation up to its position, where it has one.
    tokens: Vec<Option<Token>>,
}

struct Token {
    before: String,
    mark: Vec<u8>,
}

thread_local! {
    static STAND: Stand = Stand::new();
}

pub fn run(input: &[u8]) {
    let Some((choice, rest)) = input.split_first() else { return };
    if let Ok(text) = std::str::from_utf8(rest) {
        fuzzing::texts(text);
    }
    fuzzing::positions(rest);
    STAND.with(|stand| stand.send(usize::from(*choice), rest));
}

impl Stand {
    fn new() -> Stand {
        let client = Client::new(CrossPartition::Server);
        let tokens = PAGED.iter().map(|paged| Token::of(&client, paged)).collect();
        Stand { client, tokens }
    }

    fn send(&self, choice: usize, rest: &[u8]) {
        let choice = choice % (PAGED.len() + TEXTS.len());
        let reply = match PAGED.get(choice) {
            Some(paged) => {
                let Some(token) = &self.tokens[choice] else { return };
                let position = URL_SAFE_NO_PAD.encode([&token.mark, rest].concat());
                let mut headers = map(paged.headers);
                let text = format!("{}{position}\"}}", token.before);
                headers.extend(map(&[("x-ms-continuation", &text), ("x-ms-max-item-count", "2")]));
                ask(&self.client, paged, headers)
            }
            None => {
                let (name, more) = TEXTS[choice - PAGED.len()];
                let text = String::from_utf8_lossy(rest);
                let mut headers = map(more);
                headers.extend(map(&[(name, &text)]));
                let path = if name == "if-match" { "/dbs/d/colls/c/docs/1" } else { DOCS };
                self.client.send("GET", path, &headers, b"")
            }
        };
        if let Some(reply) = reply {
            check(&reply);
        }
    }
}

impl Token {
    fn of(client: &Client, paged: &Paged) -> Option<Token> {
        let mut headers = map(paged.headers);
        headers.extend(map(&[("x-ms-max-item-count", "1")]));
        let reply = ask(client, paged, headers)?;
        assert_eq!(reply.status().as_u16(), 200, "{:?}: {:?}", paged.query, reply.body());
        let text = reply.headers().get("x-ms-continuation")?.to_str().ok()?;
        let (before, after) = text.split_once("#P:")?;
        let position = URL_SAFE_NO_PAD.decode(after.split('"').next()?).ok()?;
        // Positions of feeds have no query to be tied to.
        let mark = if paged.query.is_some() { position.get(..MARK_BYTES)?.to_vec() } else { Vec::new() };
        Some(Token { before: format!("{before}#P:"), mark })
    }
}

fn ask(client: &Client, paged: &Paged, mut headers: HeaderMap) -> Option<http::Response<bytes::Bytes>> {
    let Some(query) = paged.query else { return client.send("GET", DOCS, &headers, b"") };
    headers.extend(map(&[("content-type", "application/query+json"), ("x-ms-documentdb-isquery", "true")]));
    let body = serde_json::json!({"query": query, "parameters": []}).to_string();
    client.send("POST", DOCS, &headers, body.as_bytes())
}
