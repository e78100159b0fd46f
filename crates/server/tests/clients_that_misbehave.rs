//! Clients that take places, memory and time: silent ones, ones that do not read, uploads that stall, names that are
//! foreign. Others must be served beside them.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use hyper_util::rt::{TokioExecutor, TokioIo};
use orrery_server::limits::{
    ANSWER_STALL_TIMEOUT, FIRST_REQUEST_TIMEOUT, LONG_REQUESTS_PER_CONNECTION_MAX, UPLOAD_STALL_TIMEOUT,
};
use support::{BODY_BYTES_MAX, LARGE_BYTES, LARGE_MADE, Running, read_available, request, text};

const MIB: usize = 1024 * 1024;

fn eventually(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !is_so() {
        assert!(Instant::now() < deadline, "not in {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The smallest HTTP/2 client: asks for so many streams and opens no window for their answers.
fn http2_without_window(running: &Running, streams: u32, path: &str) -> TcpStream {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS: INITIAL_WINDOW_SIZE 0.
    bytes.extend_from_slice(&[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0]);
    for stream in 0..streams {
        // :method GET, :scheme http, :authority localhost, :path.
        let mut block = vec![0x82, 0x86, 0x01, 9];
        block.extend_from_slice(b"localhost");
        block.extend_from_slice(&[0x04, path.len() as u8]);
        block.extend_from_slice(path.as_bytes());
        bytes.extend_from_slice(&[0, 0, block.len() as u8, 1, 0x05]);
        bytes.extend_from_slice(&(2 * stream + 1).to_be_bytes());
        bytes.extend_from_slice(&block);
    }
    let mut stream = running.connect();
    stream.write_all(&bytes).unwrap();
    stream
}

#[test]
fn unread_answers_are_bounded_and_others_are_served_beside_them() {
    let running = Running::with_memory(128 * MIB, |_| {});
    let made_before = LARGE_MADE.load(Relaxed);
    let attackers: Vec<TcpStream> = (0..4).map(|_| http2_without_window(&running, 200, "/large")).collect();
    let mut worst = Duration::ZERO;
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(2) {
        let asked = Instant::now();
        assert!(running.get("/").starts_with("HTTP/1.1 200"));
        worst = worst.max(asked.elapsed());
    }
    assert!(worst < Duration::from_secs(1), "another client waited {worst:?}");
    assert!(running.pool.peak_bytes() <= 64 * MIB, "unread answers hold {} bytes", running.pool.peak_bytes());
    let made = LARGE_MADE.load(Relaxed) - made_before;
    assert!(made <= 4 * (LONG_REQUESTS_PER_CONNECTION_MAX + 3), "{made} answers were made that nobody reads");
    drop(attackers);
    eventually(Duration::from_secs(10), "memory comes back", || running.pool.taken_bytes() == 0);
}

#[test]
fn an_answer_that_nobody_takes_ends_its_connection_in_every_protocol() {
    let running = Running::start(|_| {});
    let mut plain = running.connect();
    // More than the buffers of the system take, in requests that do not wait for their answers.
    plain.write_all("GET /large HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(8).as_bytes()).unwrap();
    let mut http2 = http2_without_window(&running, 3, "/large");
    eventually(Duration::from_secs(5), "answers wait", || running.pool.taken_bytes() >= 3 * LARGE_BYTES);
    // Talking without reading does not help.
    let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
    let limit = ANSWER_STALL_TIMEOUT + Duration::from_secs(10);
    eventually(limit, "both are ended", || {
        let _ = http2.write_all(&ping);
        std::thread::sleep(Duration::from_millis(200));
        running.pool.taken_bytes() == 0
    });
    let mut rest = Vec::new();
    let _ = plain.read_to_end(&mut rest);
    assert!(rest.len() < 8 * LARGE_BYTES, "it was cut off");
}

#[test]
fn a_slow_reader_gets_all_of_its_answer() {
    let running = Running::start(|_| {});
    let mut slow = running.connect();
    slow.write_all(b"GET /large HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let (mut buffer, mut total) = (vec![0; 256 * 1024], 0);
    loop {
        match slow.read(&mut buffer).unwrap() {
            0 => break,
            count => total += count,
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(total > LARGE_BYTES);
    eventually(Duration::from_secs(5), "nothing stays", || running.pool.taken_bytes() == 0);
}

#[test]
fn many_streams_of_a_client_that_reads_are_all_answered() {
    let running = Running::with_memory(128 * MIB, |_| {});
    running.runtime.block_on(async {
        let tcp = tokio::net::TcpStream::connect(running.address).await.unwrap();
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp)).await.unwrap();
        tokio::spawn(connection);
        let asked: Vec<_> = (0..60)
            .map(|_| {
                let mut sender = sender.clone();
                tokio::spawn(async move {
                    text(sender.send_request(request("/large")).await.unwrap()).await.len()
                })
            })
            .collect();
        for answer in asked {
            assert_eq!(answer.await.unwrap(), LARGE_BYTES);
        }
    });
    assert!(running.pool.peak_bytes() <= 64 * MIB);
}

#[test]
fn uploads_of_strangers_are_refused_before_they_are_waited_for() {
    let running = Running::start(|_| {});
    let head = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nauthorization: wrong\r\nconnection: close\r\ncontent-length: {BODY_BYTES_MAX}\r\n"
    );
    let began = Instant::now();
    let asking = running.exchange(format!("{head}expect: 100-continue\r\n\r\n").as_bytes());
    assert!(asking.starts_with("HTTP/1.1 401") && asking.ends_with("who are you?"), "{asking}");
    assert!(began.elapsed() < Duration::from_secs(2), "at once");
    let stalled: Vec<TcpStream> = (0..66)
        .map(|_| {
            let mut stream = running.connect();
            stream.write_all(format!("{head}\r\nx").as_bytes()).unwrap();
            stream
        })
        .collect();
    let body = "y".repeat(BODY_BYTES_MAX);
    for _ in 0..12 {
        let upload = format!(
            "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {BODY_BYTES_MAX}\r\n\r\n{body}"
        );
        assert!(running.exchange(upload.as_bytes()).ends_with(&body));
    }
    assert_eq!(running.pool.taken_bytes(), 0, "nothing is kept for them");
    for mut stream in stalled {
        assert!(read_available(&mut stream).starts_with("HTTP/1.1 401"));
    }
    // One that sends all of it sees the refusal, not a broken connection.
    let whole = running.exchange(format!("{head}\r\n{body}").as_bytes());
    assert!(whole.starts_with("HTTP/1.1 401") || whole.ends_with(&body), "{whole}");
}

#[test]
fn memory_for_an_upload_follows_what_has_arrived_and_a_pause_ends_it() {
    let running = Running::with_memory(64 * MIB, |_| {});
    let head = format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {BODY_BYTES_MAX}\r\n\r\n");
    let mut uploads: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = running.connect();
            stream.write_all(head.as_bytes()).unwrap();
            stream.write_all(b"x").unwrap();
            stream
        })
        .collect();
    eventually(Duration::from_secs(5), "they are waited for", || {
        running.pool.taken_bytes() >= 100 * 64 * 1024
    });
    assert!(running.pool.taken_bytes() <= 200 * 64 * 1024, "{}", running.pool.taken_bytes());
    let began = Instant::now();
    let reply = read_available(&mut uploads[0]);
    assert!(reply.starts_with("HTTP/1.1 408"), "{reply}");
    assert!(began.elapsed() < UPLOAD_STALL_TIMEOUT + Duration::from_secs(5));
    drop(uploads);
    eventually(Duration::from_secs(5), "memory comes back", || running.pool.taken_bytes() == 0);
}

#[test]
fn silent_connections_end_soon_and_do_not_keep_others_out() {
    let running = Running::start(|config| config.connections_max = 20);
    let silent: Vec<TcpStream> = (0..20).map(|_| running.connect()).collect();
    eventually(Duration::from_secs(6), "a newcomer finds a place", || {
        running.get("/").starts_with("HTTP/1.1 200")
    });
    let began = Instant::now();
    for mut stream in silent {
        assert_eq!(read_available(&mut stream), "", "closed without a word");
    }
    assert!(began.elapsed() < FIRST_REQUEST_TIMEOUT + Duration::from_secs(10));
}

#[test]
fn streams_that_are_reset_at_once_end_their_connection_and_nothing_else() {
    let running = Running::start(|_| {});
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    let block = [&[0x82, 0x86, 0x01, 9][..], b"localhost", &[0x84]].concat();
    for stream in 0..20_000u32 {
        let number = (2 * stream + 1).to_be_bytes();
        bytes.extend_from_slice(&[0, 0, block.len() as u8, 1, 0x05]);
        bytes.extend_from_slice(&number);
        bytes.extend_from_slice(&block);
        bytes.extend_from_slice(&[0, 0, 4, 3, 0]);
        bytes.extend_from_slice(&number);
        bytes.extend_from_slice(&[0, 0, 0, 8]);
    }
    let mut stream = running.connect();
    let _ = stream.write_all(&bytes);
    assert!(running.get("/").starts_with("HTTP/1.1 200"));
    let mut rest = Vec::new();
    let _ = stream.read_to_end(&mut rest);
    assert!(rest.len() < MIB);
}

#[test]
fn foreign_names_are_refused_while_the_well_known_key_is_in_force() {
    let get = |running: &Running, host: &str, path: &str| {
        running
            .exchange(format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").as_bytes())
    };
    let running = Running::start(|_| {});
    for host in ["localhost", "127.0.0.1:8081", "[::1]", "shop.localhost:1"] {
        assert!(get(&running, host, "/").starts_with("HTTP/1.1 200"), "{host}");
    }
    for path in ["/", "/metrics"] {
        let refusal = get(&running, "evil.example", path);
        assert!(refusal.starts_with("HTTP/1.1 403") && refusal.contains("--allowed-hosts NAME"), "{refusal}");
    }
    assert!(
        get(&running, "10.1.2.3:8081", "/health/live").starts_with("HTTP/1.1 200"),
        "probes come by address"
    );
    for garbage in ["<script>", "a b", ""] {
        assert!(get(&running, garbage, "/").starts_with("HTTP/1.1 400"), "{garbage}");
    }
    let allowing = Running::start(|config| config.allowed_hosts = vec!["db.compose".into()]);
    assert!(get(&allowing, "db.compose:8081", "/").starts_with("HTTP/1.1 200"));
    let own = Running::start(|config| config.keys.primary = "b3duIGtleSBvd24ga2V5IG93bg==".into());
    assert!(get(&own, "evil.example", "/").starts_with("HTTP/1.1 200"));
    assert!(get(&own, "<script>", "/").starts_with("HTTP/1.1 400"));
}

#[test]
fn metrics_can_be_kept_for_those_who_have_a_key() {
    let key = "b3duIGtleSBvd24ga2V5IG93bg==";
    let running = Running::start(|config| {
        config.metrics_auth = true;
        config.keys.readonly = Some(key.into());
    });
    let get = |authorization: &str| {
        let head = "GET /metrics HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
        running.exchange(format!("{head}{authorization}\r\n").as_bytes())
    };
    let refusal = get("");
    assert!(refusal.starts_with("HTTP/1.1 401") && refusal.contains("Bearer KEY"), "{refusal}");
    assert!(get("authorization: Bearer wrong\r\n").starts_with("HTTP/1.1 401"));
    assert!(get("authorization: Bearer \r\n").starts_with("HTTP/1.1 401"));
    let shown = get(&format!("authorization: Bearer {key}\r\n"));
    assert!(shown.starts_with("HTTP/1.1 200") && shown.contains("orrery_memory_limit_bytes"), "{shown}");
    assert!(running.get("/health/live").starts_with("HTTP/1.1 200"));
}
