//! Several protocols on one port: HTTP apis by path, stream apis by the first bytes of a connection, plain and inside
//! TLS.

mod support;

use std::io::{BufRead, BufReader, Write};

use orrery_server::certificate;
use rustls::pki_types::ServerName;
use support::{Running, client_config};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

#[test]
fn http_apis_share_a_port_by_path_and_refuse_in_their_own_words() {
    let running = Running::start(|_| ());
    let post = |path: &str, body: &str, more: &str| {
        running.exchange(
            format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n{body}",
                body.len()
            )
            .as_bytes(),
        )
    };
    assert!(post("/quiet", "word", "").ends_with("\r\n\r\nword"));
    assert!(post("/shout/x", "word", "").ends_with("\r\n\r\nWORD"));
    let large = "x".repeat(support::BODY_BYTES_MAX + 1);
    assert!(post("/shout", &large, "").ends_with("BODY_TOO_LARGE"));
    assert!(post("/quiet", &large, "").ends_with('}'));
    let metrics = running.get("/metrics");
    for line in [
        r#"orrery_requests_total{api="echo",operation="echo",status="2xx"} 1"#,
        r#"orrery_requests_total{api="shout",operation="shout",status="2xx"} 1"#,
        r#"orrery_requests_total{api="shout",operation="body_too_large",status="4xx"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[test]
fn an_api_with_a_port_of_its_own_gets_everything_there_and_is_counted_with_the_others() {
    let running = Running::start(|config| config.connections_max = 8);
    let request =
        b"POST /quiet HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: 4\r\n\r\nword";
    let ask = |request: &[u8]| running.exchange_at(running.own_address, request);
    assert!(ask(request).ends_with("\r\n\r\nWORD"));
    assert!(ask(b"LINES\nabc\n\r\n").starts_with("HTTP/1.1 400"), "streams of the shared port are not here");
    let metrics = running.get("/metrics");
    assert!(
        metrics.contains(r#"orrery_requests_total{api="shout",operation="shout",status="2xx"} 1"#),
        "{metrics}"
    );
    // One limit for both ports.
    let mut kept = Vec::new();
    // Whoever is turned away may not live to read the refusal.
    while ask(request).starts_with("HTTP/1.1 200") {
        kept.push(running.connect());
    }
    assert!(kept.len() >= 4, "connections that are just ending count too: {}", kept.len());
}

#[test]
fn a_connection_is_handed_to_whoever_claims_its_first_bytes() {
    let running = Running::start(|_| ());
    let mut stream = running.connect();
    // In pieces: after the first it could still be HTTP.
    for piece in [&b"LI"[..], b"NES\nabc\n"] {
        stream.write_all(piece).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    assert_eq!((lines.next().as_deref(), lines.next().as_deref()), (Some("tls false"), Some("cba")));
    stream.write_all(b"loss\n").unwrap();
    assert_eq!(lines.next().as_deref(), Some("ssol"));
    // What nobody claims is HTTP.
    assert!(running.exchange(b"LINEAR\r\n\r\n").starts_with("HTTP/1.1 400"));
    assert!(running.get("/x").starts_with("HTTP/1.1 200"));
    let metrics = running.get("/metrics");
    for line in [
        r#"orrery_requests_total{api="lines",operation="line",status="2xx"} 2"#,
        r#"orrery_requests_total{api="lines",operation="line",status="5xx"} 1"#,
        "orrery_connections_plain 2",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[test]
fn a_stream_inside_tls_is_recognised_after_the_handshake() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let running = Running::start(|config| config.data_dir.clone_from(&data_dir));
    let exported = certificate::load_or_make(&data_dir, &[]).unwrap().certificate_pem;
    running.runtime.block_on(async {
        let connector = tokio_rustls::TlsConnector::from(client_config(&exported, &[]));
        let tcp = tokio::net::TcpStream::connect(running.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let mut tls = connector.connect(name, tcp).await.unwrap();
        tls.write_all(b"LINES\nxyz\n").await.unwrap();
        let mut answer = [0; 13];
        tls.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"tls true\nzyx\n");
    });
}

#[test]
fn a_stop_lets_a_stream_say_goodbye() {
    let mut running = Running::start(|_| ());
    let mut stream = running.connect();
    stream.write_all(b"LINES\n").unwrap();
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    assert_eq!(lines.next().as_deref(), Some("tls false"));
    assert_eq!(running.stop(), 0, "nothing was cut off");
    assert_eq!(lines.collect::<Vec<_>>(), ["goodbye"]);
}
