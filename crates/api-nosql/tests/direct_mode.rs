//! Connections of the direct protocol, over a pipe: what is answered, what is refused, and what ends one.

mod support;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

use orrery_api::{Attendant, Claim, Connection, LongTurn, StreamApi, Summary};
use serde_json::json;
use support::Client;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::sync::Notify;

const PIPE_BYTES: usize = 64 * 1024;
const DOCUMENT: u16 = 3;
const READ: u16 = 3;
const CREATE: u16 = 1;
const QUERY: u16 = 0x0F;
const BATCH: u16 = 0x25;

/// Counts, and says when to end.
#[derive(Default)]
struct Counting {
    in_flight: AtomicI64,
    ended: AtomicUsize,
    unsent: AtomicI64,
    finish: Notify,
}

impl Attendant for Counting {
    fn request_began(&self) {
        self.in_flight.fetch_add(1, Relaxed);
    }

    fn request_ended(&self, _: &Summary, _: u16, _: Duration) {
        self.in_flight.fetch_sub(1, Relaxed);
        self.ended.fetch_add(1, Relaxed);
    }

    fn long_turn(&self) -> Pin<Box<dyn Future<Output = Option<LongTurn>> + Send + '_>> {
        Box::pin(async { Some(LongTurn::new(())) })
    }

    fn answer_queued(&self, bytes: usize) {
        self.unsent.fetch_add(bytes as i64, Relaxed);
    }

    fn answer_taken(&self, bytes: usize) {
        self.unsent.fetch_sub(bytes as i64, Relaxed);
    }

    fn ended(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.finish.notified())
    }
}

fn string(id: u16, text: &str) -> Vec<u8> {
    let mut token = id.to_le_bytes().to_vec();
    token.push(8);
    token.extend_from_slice(&(text.len() as u16).to_le_bytes());
    token.extend_from_slice(text.as_bytes());
    token
}

fn number(id: u16, value: u32) -> Vec<u8> {
    let mut token = id.to_le_bytes().to_vec();
    token.push(2);
    token.extend_from_slice(&value.to_le_bytes());
    token
}

fn byte(id: u16, value: u8) -> Vec<u8> {
    [&id.to_le_bytes()[..], &[0, value]].concat()
}

fn frame(resource_type: u16, operation: u16, tokens: &[Vec<u8>], payload: Option<&[u8]>) -> Vec<u8> {
    let mut tokens = tokens.concat();
    tokens.extend_from_slice(&[2, 0, 0, u8::from(payload.is_some())]);
    let mut frame = (24 + tokens.len() as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&resource_type.to_le_bytes());
    frame.extend_from_slice(&operation.to_le_bytes());
    frame.extend_from_slice(&[7; 16]);
    frame.extend(tokens);
    if let Some(payload) = payload {
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(payload);
    }
    frame
}

/// A request about items of `dbs/d/colls/c`, signed as over HTTP.
fn about(
    client: &Client,
    operation: u16,
    request: u32,
    id: &str,
    more: &[Vec<u8>],
    body: Option<&[u8]>,
) -> Vec<u8> {
    let (method, path) = match operation {
        CREATE | QUERY | BATCH => ("POST", "/dbs/d/colls/c/docs".to_owned()),
        _ => ("GET", format!("/dbs/d/colls/c/docs/{id}")),
    };
    let signed = client.request(method, &path, &[], Vec::new(), "primary");
    let header = |name: &str| signed.headers()[name].to_str().unwrap().to_owned();
    let mut tokens = vec![
        string(0x01, &header("authorization")),
        string(0x03, &header("x-ms-date")),
        string(0x13, "/apps/orrery/services/s/partitions/0/replicas/1p"),
        string(0x15, "d"),
        string(0x16, "c"),
        string(0x17, id),
        string(0x2B, r#"["p"]"#),
        number(0x4D, request),
    ];
    tokens.extend_from_slice(more);
    frame(DOCUMENT, operation, &tokens, body)
}

struct Answer {
    status: u32,
    tokens: Vec<u8>,
    body: Vec<u8>,
}

impl Answer {
    /// The value of a fixed-width token; they come in no order, but their bytes do not occur by chance here.
    fn number(&self, id: u16, kind: u8, width: usize) -> Option<u64> {
        let head = [id.to_le_bytes()[0], id.to_le_bytes()[1], kind];
        let at = self.tokens.windows(3).position(|part| part == head)? + 3;
        Some(self.tokens[at..at + width].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    fn request(&self) -> u64 {
        self.number(0x35, 2, 4).unwrap()
    }
}

async fn answer(pipe: &mut DuplexStream) -> Option<Answer> {
    let length = pipe.read_u32_le().await.ok()? as usize;
    let status = pipe.read_u32_le().await.ok()?;
    let mut rest = vec![0; length - 8];
    pipe.read_exact(&mut rest).await.ok()?;
    let tokens = rest.split_off(16);
    let mut answer = Answer { status, tokens, body: Vec::new() };
    if answer.number(0, 0, 1) == Some(1) {
        answer.body = vec![0; pipe.read_u32_le().await.ok()? as usize];
        pipe.read_exact(&mut answer.body).await.ok()?;
    }
    Some(answer)
}

struct Open {
    pipe: DuplexStream,
    attendant: Arc<Counting>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

/// A connection whose handshake is done.
async fn open(client: &Client) -> Open {
    let (mut pipe, other) = tokio::io::duplex(PIPE_BYTES);
    let attendant = Arc::new(Counting::default());
    let api = client.direct();
    let hello = {
        let mut version = vec![1, 0, 7, 10];
        version.extend_from_slice(b"2020-07-15");
        let mut hello = frame(0, 0, &[number(0, 1), version], None);
        // A context request has no token for a payload.
        hello.truncate(hello.len() - 4);
        hello[0] -= 4;
        hello
    };
    assert_eq!(api.claims(&hello), Claim::Mine);
    let attending = attendant.clone();
    let served = tokio::spawn(async move {
        let address = "127.0.0.1:8081".parse().unwrap();
        let connection =
            Connection { tls: true, local: address, peer: address, client: orrery_api::Client::Unknown };
        api.serve(Box::new(other), connection, attending).await
    });
    pipe.write_all(&hello).await.unwrap();
    let length = pipe.read_u32_le().await.unwrap() as usize;
    let mut rest = vec![0; length - 4];
    pipe.read_exact(&mut rest).await.unwrap();
    assert_eq!(rest[..4], [200, 0, 0, 0]);
    Open { pipe, attendant, served }
}

fn client() -> Client {
    let client = Client::new(&json!({}));
    let send = |path: &str, body: serde_json::Value| {
        assert_eq!(client.send("POST", path, &[], body.to_string().into_bytes(), "primary").status, 201);
    };
    send("/dbs", json!({ "id": "d" }));
    send(
        "/dbs/d/colls",
        json!({ "id": "c", "partitionKey": { "paths": ["/pk"], "kind": "Hash", "version": 2 } }),
    );
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_answered_by_their_numbers_with_everything_that_clients_check() {
    let client = client();
    let mut open = open(&client).await;
    let mut sent = Vec::new();
    for n in 0..20u32 {
        let body = json!({ "id": n.to_string(), "pk": "p" }).to_string();
        sent.extend(about(&client, CREATE, n, "", &[], Some(body.as_bytes())));
    }
    // In pieces that have nothing to do with frames.
    for piece in sent.chunks(97) {
        open.pipe.write_all(piece).await.unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..20 {
        let answer = answer(&mut open.pipe).await.unwrap();
        assert_eq!(answer.status, 201);
        seen.push(answer.request());
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..20).collect::<Vec<u64>>());
    for (id, status) in [("3", 200), ("none", 404)] {
        open.pipe.write_all(&about(&client, READ, 77, id, &[], None)).await.unwrap();
        let answer = answer(&mut open.pipe).await.unwrap();
        assert_eq!((answer.status, answer.request()), (status, 77));
        for lsn in [0x13, 0x1A, 0x29, 0x3A, 0x3B] {
            assert_eq!(answer.number(lsn, 5, 8), Some(20), "{lsn:#x} of {id}");
        }
        assert!(serde_json::from_slice::<serde_json::Value>(&answer.body).unwrap().is_object());
    }
    drop(open.pipe);
    assert!(open.served.await.unwrap().is_ok());
    assert_eq!(open.attendant.in_flight.load(Relaxed), 0);
    assert_eq!(open.attendant.unsent.load(Relaxed), 0);
    assert_eq!(open.attendant.ended.load(Relaxed), 23, "the handshake, and every request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_container_that_is_not_the_one_meant_is_stale_and_the_session_is_repeated() {
    let client = client();
    let mut open = open(&client).await;
    let more = [string(0x35, "AAAAAYAAAAI="), string(0x05, "0:-1#9")];
    open.pipe.write_all(&about(&client, READ, 1, "a", &more, None)).await.unwrap();
    let answer = answer(&mut open.pipe).await.unwrap();
    assert_eq!((answer.status, answer.number(0x1C, 2, 4)), (410, Some(1000)));
    assert!(answer.tokens.windows(9).any(|part| part == [0x3E, 0, 8, 4, 0, b'-', b'1', b'#', b'9']));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_request_is_refused_and_the_connection_goes_on() {
    let client = client();
    let mut open = open(&client).await;
    let large = vec![b'x'; 5 * 1024 * 1024];
    let mut unsigned = frame(
        DOCUMENT,
        READ,
        &[string(0x15, "d"), string(0x16, "c"), string(0x17, "a"), number(0x4D, 3)],
        None,
    );
    unsigned.extend(frame(DOCUMENT, 0x77, &[number(0x4D, 4)], None));
    unsigned.extend(frame(DOCUMENT, READ, &[number(0x4D, 5), vec![0x15, 0, 8, 0xFF, 0xFF, b'd']], None));
    open.pipe.write_all(&unsigned).await.unwrap();
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let answer = answer(&mut open.pipe).await.unwrap();
        statuses.push((answer.request(), answer.status));
    }
    assert_eq!(statuses, [(3, 401), (4, 405), (5, 400)]);
    // A payload that is too large, and one of a stranger: refused before they are there, and passed over.
    for (bytes, status) in [
        (about(&client, CREATE, 6, "", &[], Some(&large)), 413),
        (
            frame(
                DOCUMENT,
                CREATE,
                &[string(0x15, "d"), string(0x16, "c"), number(0x4D, 6)],
                Some(&large[..100_000]),
            ),
            401,
        ),
    ] {
        let (mut reader, mut writer) = tokio::io::split(open.pipe);
        let writing = tokio::spawn(async move {
            writer.write_all(&bytes).await.unwrap();
            writer
        });
        let mut length = [0; 8];
        reader.read_exact(&mut length).await.unwrap();
        assert_eq!(u32::from_le_bytes([length[4], length[5], length[6], length[7]]), status);
        let frame_bytes = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let mut rest = vec![0; frame_bytes - 8];
        reader.read_exact(&mut rest).await.unwrap();
        let payload = reader.read_u32_le().await.unwrap() as usize;
        let mut body = vec![0; payload];
        reader.read_exact(&mut body).await.unwrap();
        open.pipe = reader.unsplit(writing.await.unwrap());
    }
    let body = json!({ "id": "after", "pk": "p" }).to_string();
    open.pipe.write_all(&about(&client, CREATE, 8, "", &[], Some(body.as_bytes()))).await.unwrap();
    assert_eq!(answer(&mut open.pipe).await.unwrap().status, 201, "the stream is still in step");
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_ends_a_connection_after_what_was_asked_before() {
    let client = client();
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 8], &[0xFF; 32], &[23, 0, 0, 0]] {
        let mut open = open(&client).await;
        let body = json!({ "id": "g", "pk": "p" }).to_string();
        let mut bytes = about(&client, CREATE, 1, "", &[], Some(body.as_bytes()));
        bytes.extend_from_slice(garbage);
        open.pipe.write_all(&bytes).await.unwrap();
        assert!([201, 409].contains(&answer(&mut open.pipe).await.unwrap().status));
        assert!(answer(&mut open.pipe).await.is_none(), "{garbage:?}");
        assert!(open.served.await.unwrap().is_ok());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_told_to_end_takes_nothing_more() {
    let client = client();
    let mut open = open(&client).await;
    open.pipe.write_all(&about(&client, READ, 1, "a", &[], None)).await.unwrap();
    assert_eq!(answer(&mut open.pipe).await.unwrap().status, 404);
    open.attendant.finish.notify_one();
    assert!(answer(&mut open.pipe).await.is_none());
    assert!(open.served.await.unwrap().is_ok());
}

/// What addresses say is covered by the matrix of access; here is what leads to them.
#[test]
fn addresses_are_on_the_clients_own_host_and_gone_ranges_are_told() {
    let client = client();
    let get = |path: &str| client.send("GET", path, &[], Vec::new(), "primary");
    let rid = get("/dbs/d/colls/c").json()["_rid"].as_str().unwrap().to_owned();
    let database = get("/dbs/d").json()["_rid"].as_str().unwrap().to_owned();
    let of = format!("/addresses/?$resolveFor=dbs/{database}/colls/{rid}/docs");
    let found = get(&format!("{of}&$partitionKeyRangeIds=0"));
    assert_eq!((found.status, found.json()["_count"].as_u64()), (200, Some(4)));
    let first = &found.json()["Addresss"][0];
    assert!(first["physcialUri"].as_str().unwrap().starts_with("rntbd://127.0.0.1:8081/apps/"), "{first}");
    let gone = get(&format!("{of}&$partitionKeyRangeIds=7"));
    assert_eq!((gone.status, gone.header("x-ms-substatus")), (410, Some("1002")));
    let catalog = get("/addresses/?$resolveFor=dbs");
    assert_eq!(catalog.json()["Addresss"][3]["partitionKeyRangeId"], "M");
    let none = get(&format!("/addresses/?$resolveFor=dbs/{database}/colls/AAAAAYAAAAI=/docs"));
    assert_eq!(none.status, 404);
}

/// An operation of a batch in rows: its number, id, body, and the bytes of its sparse columns.
type Operation<'a> = (i32, Option<&'a str>, Option<&'a [u8]>, &'a [u8]);

/// A stream of rows, as .NET sends a batch.
fn rows(operations: &[Operation<'_>]) -> Vec<u8> {
    let short = |bytes: &[u8]| [&[u8::try_from(bytes.len()).unwrap()], bytes].concat();
    let mut stream = vec![0x81, 0xF0, 0xD8, 0xFF, 0x7F, 1, 10, 0, 0, 0];
    for (operation, id, body, sparse) in operations {
        let bits = 0b111 | u8::from(id.is_some()) << 4 | u8::from(body.is_some()) << 6;
        let mut row = vec![0x81, 0x70, 0x54, 0xE1, 0x7F, bits];
        row.extend_from_slice(&operation.to_le_bytes());
        row.extend_from_slice(&2i32.to_le_bytes());
        row.extend(short(br#"["p"]"#));
        row.extend(id.map(|id| short(id.as_bytes())).unwrap_or_default());
        row.extend(body.map(short).unwrap_or_default());
        row.extend_from_slice(sparse);
        stream.extend_from_slice(&[0x81, 0xF1, 0xD8, 0xFF, 0x7F]);
        stream.extend_from_slice(&(row.len() as i32).to_le_bytes());
        stream.extend_from_slice(&crc32fast::hash(&row).to_le_bytes());
        stream.extend(row);
    }
    stream
}

/// Status and, if there is one, body of each result in a stream of rows.
fn results(stream: &[u8]) -> Vec<(i32, String)> {
    assert_eq!(stream[..10], [0x81, 0xF0, 0xD8, 0xFF, 0x7F, 1, 10, 0, 0, 0]);
    let number = |at: usize| i32::from_le_bytes(stream[at..at + 4].try_into().unwrap());
    let (mut found, mut at) = (Vec::new(), 10);
    while at < stream.len() {
        assert_eq!(stream[at..at + 5], [0x81, 0xF1, 0xD8, 0xFF, 0x7F]);
        let row = at + 13;
        let end = row + number(at + 5) as usize;
        assert_eq!(crc32fast::hash(&stream[row..end]), number(at + 9) as u32);
        assert_eq!(stream[row..row + 5], [0x81, 0x71, 0x54, 0xE1, 0x7F]);
        let bits = stream[row + 5];
        // The etag and the body begin with their lengths, of one or two bytes here.
        let mut place = row + 14;
        let mut texts = Vec::new();
        for column in [2, 3] {
            if bits >> column & 1 == 1 {
                let mut length = usize::from(stream[place] & 0x7F);
                if stream[place] >= 0x80 {
                    place += 1;
                    length += usize::from(stream[place]) << 7;
                }
                texts.push((column, String::from_utf8(stream[place + 1..][..length].to_vec()).unwrap()));
                place += 1 + length;
            }
        }
        let body = texts.into_iter().find(|(column, _)| *column == 3).map(|(_, text)| text);
        found.push((number(row + 6), body.unwrap_or_default()));
        at = end;
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_in_rows_runs_as_one_in_json_over_both_protocols() {
    let client = client();
    let mut open = open(&client).await;
    let flags =
        |atomic: bool| vec![byte(0x73, u8::from(atomic)), byte(0x74, u8::from(!atomic)), byte(0x75, 1)];
    let headers = |atomic: bool| -> Vec<(String, String)> {
        let mut headers = vec![
            ("x-ms-cosmos-is-batch-request", "True"),
            ("x-ms-cosmos-batch-atomic", if atomic { "True" } else { "False" }),
            ("x-ms-documentdb-partitionkey", r#"["p"]"#),
        ];
        if !atomic {
            headers.push(("x-ms-cosmos-batch-continue-on-error", "True"));
        }
        headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    };
    for direct in [true, false] {
        let a = if direct { "direct" } else { "http" };
        let item = format!(r#"{{"id":"{a}","pk":"p","n":1}}"#);
        // The second document is in the binary form: {"id":"<a>-2","pk":"p"}.
        let other = format!("{a}-2");
        let binary = [
            &[0x80, 0xEA, (2 + other.len() + 5) as u8, 0x2C, 0x80 + other.len() as u8][..],
            other.as_bytes(),
            &[0x82],
            b"pk",
            &[0x81, b'p'],
        ]
        .concat();
        let patch = br#"{"operations":[{"op":"incr","path":"/n","value":4}]}"#;
        // minimalReturnPreference; ifMatch "no".
        let (quiet, unless) = ([3, 12], *b"\x14\x09\x04\"no\"");
        let batch = rows(&[
            (0, None, Some(item.as_bytes()), &[]),
            (20, None, Some(&binary), &quiet),
            (1, Some(a), Some(patch), &[]),
            (2, Some(a), None, &[]),
            (4, Some(&other), None, &[]),
        ]);
        let failing = rows(&[(4, Some(a), None, &unless), (4, Some(a), None, &[])]);
        let none = rows(&[(2, Some("none"), None, &[]), (99, Some(a), None, &[])]);
        let mut told = Vec::new();
        for (body, atomic) in [(&batch, true), (&failing, true), (&failing, false), (&none, true)] {
            let (status, body) = if direct {
                let frame = about(&client, BATCH, 5, "", &flags(atomic), Some(body));
                open.pipe.write_all(&frame).await.unwrap();
                let answer = answer(&mut open.pipe).await.unwrap();
                (answer.status as u16, answer.body)
            } else {
                let reply =
                    client.send("POST", "/dbs/d/colls/c/docs", &headers(atomic), body.clone(), "primary");
                (reply.status, reply.body.to_vec())
            };
            told.push((status, body));
        }
        let statuses = |body: &[u8]| results(body).into_iter().map(|(status, _)| status).collect::<Vec<_>>();
        assert_eq!((told[0].0, statuses(&told[0].1)), (200, vec![201, 201, 200, 200, 204]), "{a}");
        let shown = results(&told[0].1);
        assert!(shown[1].1.is_empty() && shown[4].1.is_empty(), "nobody wanted to see it: {shown:?}");
        let read: serde_json::Value = serde_json::from_str(&shown[3].1).unwrap();
        assert_eq!((read["id"].as_str(), read["n"].as_i64()), (Some(a), Some(5)), "{a}");
        assert_eq!((told[1].0, statuses(&told[1].1)), (207, vec![412, 424]), "{a}");
        assert_eq!((told[2].0, statuses(&told[2].1)), (207, vec![412, 204]), "{a}: a bulk goes on");
        assert_eq!(told[3].0, 400, "{a}: there is no operation 99");
        assert!(serde_json::from_slice::<serde_json::Value>(&told[3].1).unwrap()["message"].is_string());
    }
    // What is broken is refused as a whole.
    let mut damaged = rows(&[(4, Some("x"), None, &[])]);
    *damaged.last_mut().unwrap() ^= 1;
    let reply = client.send("POST", "/dbs/d/colls/c/docs", &headers(true), damaged, "primary");
    assert_eq!(reply.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn items_and_pages_of_queries_come_in_binary_json_to_clients_that_take_it() {
    let client = client();
    let mut open = open(&client).await;
    let item = br#"{"id":"1","pk":"p","n":[1,-2,18446744073709551615,0.5],"text":"\u00fc"}"#;
    open.pipe.write_all(&about(&client, CREATE, 1, "", &[], Some(item))).await.unwrap();
    let created = answer(&mut open.pipe).await.unwrap();
    let query = br#"{"query":"SELECT * FROM c WHERE c.id = @id","parameters":[{"name":"@id","value":"1"}]}"#;
    let text_of = |body: &[u8]| orrery_api_nosql::fuzzing::binary_json(body).expect("binary JSON");
    for (formats, features, binary) in [(1, 0, false), (2, 4, true), (3, 4, true), (4, 4, false)] {
        let features = [&0x101u16.to_le_bytes()[..], &[1, features, 0]].concat();
        let asks = [byte(0xC4, formats), features];
        open.pipe.write_all(&about(&client, READ, 2, "1", &asks, None)).await.unwrap();
        let read = answer(&mut open.pipe).await.unwrap().body;
        open.pipe.write_all(&about(&client, QUERY, 3, "", &asks, Some(query))).await.unwrap();
        let page = answer(&mut open.pipe).await.unwrap().body;
        assert_eq!((read[0] == 0x80, page[0] == 0x80), (binary, binary), "formats {formats}");
        let (read, page) = if binary { (text_of(&read), text_of(&page)) } else { (read, page) };
        assert_eq!(read, created.body, "formats {formats}");
        let page: serde_json::Value = serde_json::from_slice(&page).unwrap();
        assert_eq!(page["Documents"][0], serde_json::from_slice::<serde_json::Value>(&read).unwrap());
        open.pipe.write_all(&about(&client, READ, 4, "none", &asks, None)).await.unwrap();
        let error = answer(&mut open.pipe).await.unwrap();
        assert!(serde_json::from_slice::<serde_json::Value>(&error.body).unwrap().is_object());
    }
    // The same over HTTP, where the client says it in words; one that knows no large whole numbers gets doubles.
    let mut headers = vec![("x-ms-documentdb-partitionkey".to_owned(), r#"["p"]"#.to_owned())];
    headers.push((
        "x-ms-cosmos-supported-serialization-formats".to_owned(),
        "JsonText, CosmosBinary".to_owned(),
    ));
    let reply = client.send("GET", "/dbs/d/colls/c/docs/1", &headers, Vec::new(), "primary");
    assert_eq!(reply.body[0], 0x80);
    let read: serde_json::Value = serde_json::from_slice(&text_of(&reply.body)).unwrap();
    assert_eq!(read["n"], json!([1, -2, 18446744073709551615.0, 0.5]));
}

#[tokio::test(flavor = "multi_thread")]
async fn fault_rules_reach_frames() {
    let client = client();
    let rules = |rule: serde_json::Value| {
        let body = json!({ "seed": 1, "rules": [rule] }).to_string().into_bytes();
        assert_eq!(client.send("PUT", "/_orrery/faults", &[], body, "primary").status, 200);
    };
    let mut connection = open(&client).await;
    let item = br#"{"id":"1","pk":"p"}"#;
    connection.pipe.write_all(&about(&client, CREATE, 1, "", &[], Some(item))).await.unwrap();
    assert_eq!(answer(&mut connection.pipe).await.unwrap().status, 201);
    for (rule, status, substatus) in [
        (
            json!({ "operations": ["read_item"], "answer": 429, "retryAfterMs": 17, "count": 1 }),
            429,
            Some(3200),
        ),
        (json!({ "operations": ["read_item"], "answer": 410, "count": 1 }), 410, Some(1002)),
        (
            json!({ "operations": ["read_item"], "answer": 410, "substatus": 1007, "count": 1 }),
            410,
            Some(1007),
        ),
        (json!({ "operations": ["read_item"], "answer": 503, "count": 1 }), 503, None),
        (json!({ "operations": ["read_item"], "delayMs": 120, "count": 1 }), 200, None),
    ] {
        let waits = rule["delayMs"].as_u64().unwrap_or(0);
        rules(rule);
        let began = std::time::Instant::now();
        connection.pipe.write_all(&about(&client, READ, 2, "1", &[], None)).await.unwrap();
        let faulty = answer(&mut connection.pipe).await.unwrap();
        assert_eq!((faulty.status, faulty.number(0x1C, 2, 4)), (status, substatus));
        assert_eq!(faulty.number(0x0C, 2, 4), (status == 429).then_some(17));
        assert!(began.elapsed() >= Duration::from_millis(waits));
        // The rule is used up, and the connection goes on.
        connection.pipe.write_all(&about(&client, READ, 3, "1", &[], None)).await.unwrap();
        assert_eq!(answer(&mut connection.pipe).await.unwrap().status, 200);
    }
    for (half, written) in [("request", 404), ("answer", 200)] {
        rules(json!({ "operations": ["create_item"], "drop": half, "count": 1 }));
        let item = json!({ "id": half, "pk": "p" }).to_string();
        connection.pipe.write_all(&about(&client, CREATE, 4, "", &[], Some(item.as_bytes()))).await.unwrap();
        assert!(answer(&mut connection.pipe).await.is_none(), "the connection ends instead of the answer");
        assert!(connection.served.await.unwrap().is_ok());
        connection = open(&client).await;
        connection.pipe.write_all(&about(&client, READ, 5, half, &[], None)).await.unwrap();
        assert_eq!(answer(&mut connection.pipe).await.unwrap().status, written, "{half}");
    }
}
