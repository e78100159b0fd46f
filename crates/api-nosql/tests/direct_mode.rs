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
        CREATE => ("POST", "/dbs/d/colls/c/docs".to_owned()),
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
