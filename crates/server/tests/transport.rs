//! The transport with an api that only echoes: protocols on one port, limits, health, metrics, an orderly end.

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use orrery_server::certificate;
use orrery_server::config::TlsMode;
use orrery_server::limits::HEADER_BYTES_MAX;
use rustls::pki_types::ServerName;
use support::{ABANDONED, BODY_BYTES_MAX, Running, client_config, read_available, request, text};

#[test]
fn plain_and_tls_and_both_versions_share_a_port_and_the_exported_certificate_is_trusted() {
    // A server that keeps nothing presents the certificate that is exported, too.
    [false, true].into_iter().for_each(check_protocols);
}

fn check_protocols(ephemeral: bool) {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let running = Running::start(|config| {
        config.ephemeral = ephemeral;
        config.data_dir.clone_from(&data_dir);
    });
    let exported = certificate::load_or_make(&data_dir, &[]).unwrap().certificate_pem;
    let address = running.address;
    assert!(running.get("/where").ends_with("false HTTP/1.1"));
    running.runtime.block_on(async {
        // HTTP/2 without TLS, by prior knowledge.
        let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp)).await.unwrap();
        tokio::spawn(connection);
        assert_eq!(text(sender.send_request(request("/where")).await.unwrap()).await, "false HTTP/2.0");
        // TLS, each name of the certificate, each version.
        for name in ["localhost", "127.0.0.1"] {
            for (alpn, version) in [(&b"h2"[..], "HTTP/2.0"), (b"http/1.1", "HTTP/1.1")] {
                let connector = tokio_rustls::TlsConnector::from(client_config(&exported, &[alpn]));
                let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
                let tls = connector.connect(ServerName::try_from(name).unwrap(), tcp).await.unwrap();
                let stream = TokioIo::new(tls);
                let response = if alpn == b"h2" {
                    let (mut sender, connection) =
                        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.unwrap();
                    tokio::spawn(connection);
                    sender.send_request(request("/where")).await.unwrap()
                } else {
                    let (mut sender, connection) =
                        hyper::client::conn::http1::handshake(stream).await.unwrap();
                    tokio::spawn(connection);
                    sender.send_request(request("/where")).await.unwrap()
                };
                assert_eq!(text(response).await, format!("true {version}"), "{name}");
            }
        }
        // Another certificate is not this one.
        let other = certificate::make_ephemeral(&[]).unwrap().certificate_pem;
        let connector = tokio_rustls::TlsConnector::from(client_config(&other, &[]));
        let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
        assert!(connector.connect(ServerName::try_from("localhost").unwrap(), tcp).await.is_err());
    });
    // The client knows of the failure before the server does.
    let counted = || running.get("/metrics").contains("orrery_tls_failures_total 1\n");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
    while !counted() {
        assert!(std::time::Instant::now() < deadline, "{}", running.get("/metrics"));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn an_http2_preface_that_comes_in_pieces_is_recognised() {
    let running = Running::start(|_| {});
    let mut stream = running.connect();
    for piece in [&b"P"[..], b"RI * HT", b"TP/2.0\r\n\r\nSM\r\n\r\n"] {
        stream.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    stream.write_all(&[0, 0, 0, 4, 0, 0, 0, 0, 0]).unwrap();
    let mut frame = [0; 9];
    stream.read_exact(&mut frame).unwrap();
    assert_eq!(frame[3], 4, "the server's settings frame");
    let mut slow = running.connect();
    for piece in [
        &b"P"[..],
        b"O",
        b"ST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\nconnection: close\r\n\r\n",
        b"o",
        b"k",
    ] {
        slow.write_all(piece).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(read_available(&mut slow).ends_with("\r\n\r\nok"));
}

#[test]
fn a_body_above_the_limit_is_refused_whether_announced_or_not() {
    let running = Running::start(|_| {});
    let huge = 20 * BODY_BYTES_MAX;
    let announced =
        format!("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: {huge}\r\n\r\n{}", "z".repeat(huge));
    let reply = running.exchange(announced.as_bytes());
    assert!(
        reply.starts_with("HTTP/1.1 413") && reply.contains(r#""message":"Request size is too large""#),
        "{reply}"
    );
    let asking = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: {huge}\r\n\r\n"
    );
    assert!(
        running.exchange(asking.as_bytes()).starts_with("HTTP/1.1 413"),
        "told at once, without sending it"
    );
    let chunk = "x".repeat(BODY_BYTES_MAX / 2);
    let chunked = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n{0}{0}{0}0\r\n\r\n",
        format!("{:x}\r\n{chunk}\r\n", chunk.len())
    );
    assert!(running.exchange(chunked.as_bytes()).starts_with("HTTP/1.1 413"));
    let largest = "y".repeat(BODY_BYTES_MAX);
    let fits = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {BODY_BYTES_MAX}\r\n\r\n{largest}"
    );
    assert!(running.exchange(fits.as_bytes()).ends_with(&largest));
}

#[test]
fn a_body_that_ends_early_is_no_request() {
    let running = Running::start(|_| {});
    let mut stream = running.connect();
    stream.write_all(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(!read_available(&mut stream).contains("200 OK"));
}

#[test]
fn headers_above_the_limit_are_refused() {
    let running = Running::start(|_| {});
    let header = "x".repeat(HEADER_BYTES_MAX);
    let reply =
        running.exchange(format!("GET / HTTP/1.1\r\nhost: localhost\r\nlong: {header}\r\n\r\n").as_bytes());
    assert!(reply.starts_with("HTTP/1.1 431"), "{reply}");
    let header = "x".repeat(HEADER_BYTES_MAX / 2);
    let reply = running.exchange(
        format!("GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\nlong: {header}\r\n\r\n")
            .as_bytes(),
    );
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
}

#[test]
fn bytes_that_are_no_http_end_the_connection_and_nothing_else() {
    let running = Running::start(|_| {});
    for garbage in [
        &b"\0\0\0\0\0\0"[..],
        b"\x16\x03\x01\x00\x05hello",
        b"GET\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
    ] {
        let mut stream = running.connect();
        stream.write_all(garbage).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let reply = read_available(&mut stream);
        assert!(!reply.contains("200 OK"), "{garbage:?}: {reply}");
    }
    assert!(running.get("/").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_connection_above_the_limit_is_told_so() {
    let running = Running::start(|config| config.connections_max = 1);
    let mut first = running.connect();
    first.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    first.read_exact(&mut [0; 12]).unwrap();
    let reply = read_available(&mut running.connect());
    assert!(reply.starts_with("HTTP/1.1 503") && reply.contains("\"message\""), "{reply}");
    drop(first);
    let deadline = Instant::now() + Duration::from_secs(10);
    while !running.get("/").starts_with("HTTP/1.1 200") {
        assert!(Instant::now() < deadline, "the place of a closed connection is free again");
    }
}

#[test]
fn slow_bodies_and_slow_answers_end_at_the_deadline() {
    let running = Running::start(|config| config.request_timeout = Duration::from_millis(200));
    assert!(running.get("/never").starts_with("HTTP/1.1 408"));
    let reply = running.exchange(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 10\r\n\r\nhalf");
    assert!(reply.starts_with("HTTP/1.1 408"), "{reply}");
    assert!(running.get("/").starts_with("HTTP/1.1 200"));
}

#[test]
fn an_idle_connection_is_closed() {
    let running = Running::start(|config| config.idle_timeout = Duration::from_secs(1));
    let mut stream = running.connect();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let began = Instant::now();
    let reply = read_available(&mut stream);
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert!(began.elapsed() < Duration::from_secs(15));
    assert!(running.get("/metrics").contains("orrery_connections_timed_out_total 1\n"));
}

#[test]
fn a_defect_is_a_500_and_the_server_goes_on() {
    let running = Running::start(|_| {});
    let mut stream = running.connect();
    stream
        .write_all(
            b"GET /panic HTTP/1.1\r\nhost: localhost\r\n\r\nGET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n",
        )
        .unwrap();
    let reply = read_available(&mut stream);
    assert!(reply.starts_with("HTTP/1.1 500") && reply.contains("HTTP/1.1 200"), "{reply}");
    assert!(running.get("/metrics").contains("orrery_panics_total 1\n"));
}

#[test]
fn a_stop_finishes_what_is_in_flight_and_nothing_hangs_on() {
    let mut running = Running::start(|_| {});
    let mut idle = running.connect();
    idle.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    idle.read_exact(&mut [0; 12]).unwrap();
    let mut busy = running.connect();
    busy.write_all(b"GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let began = Instant::now();
    assert_eq!(running.stop(), 0);
    assert!(began.elapsed() < Duration::from_secs(5));
    let reply = read_available(&mut busy);
    assert!(reply.starts_with("HTTP/1.1 200"), "{reply}");
    assert!(TcpStream::connect(running.address).is_err(), "nobody listens any more");
}

#[test]
fn a_stop_does_not_wait_for_ever() {
    let mut running = Running::start(|config| config.shutdown_timeout = Duration::from_millis(200));
    let mut stuck = running.connect();
    stuck.write_all(b"GET /never HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(running.stop(), 1);
}

#[test]
fn health_and_metrics_answer_on_their_own_paths() {
    let running = Running::start(|_| {});
    assert!(running.get("/health/live").starts_with("HTTP/1.1 200"));
    assert!(running.get("/health/ready").starts_with("HTTP/1.1 200"));
    running.store.writes_stopped.store(true, Relaxed);
    assert!(running.get("/health/ready").starts_with("HTTP/1.1 503"));
    assert!(running.get("/health/live").starts_with("HTTP/1.1 200"));
    assert!(running.get("/health/other").starts_with("HTTP/1.1 404"));
    assert!(
        running
            .exchange(b"POST /metrics HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .starts_with("HTTP/1.1 405")
    );
    running.get("/dbs/secret-name");
    let metrics = running.get("/metrics");
    assert!(
        metrics.contains("orrery_requests_total{api=\"echo\",operation=\"echo\",status=\"2xx\"} 1\n"),
        "{metrics}"
    );
    assert!(metrics.contains("orrery_store_writes_stopped 1\n"));
    assert!(!metrics.contains("secret-name"), "nothing of a request becomes a label");
}

#[test]
fn tls_can_be_required_or_switched_off() {
    let required = Running::start(|config| config.tls = TlsMode::Required);
    let reply = required.get("/");
    assert!(reply.starts_with("HTTP/1.1 403") && reply.contains("use https"), "{reply}");
    let off = Running::start(|config| config.tls = TlsMode::Off);
    let mut stream = off.connect();
    stream.write_all(b"\x16\x03\x01\x00\x05hello").unwrap();
    assert_eq!(read_available(&mut stream), "");
    assert!(off.get("/").starts_with("HTTP/1.1 200"));
}

#[test]
fn whoever_works_for_a_client_learns_that_it_has_gone() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let running = Running::start(|config| {
        config.ephemeral = false;
        config.data_dir.clone_from(&data_dir);
    });
    let exported = certificate::load_or_make(&data_dir, &[]).unwrap().certificate_pem;
    let address = running.address;
    let abandoned = |expected: usize, which: &str| {
        let deadline = Instant::now() + Duration::from_secs(10);
        while ABANDONED.load(Relaxed) != expected {
            assert!(Instant::now() < deadline, "{which}: {}", ABANDONED.load(Relaxed));
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let busy = || {
        let mut busy = request("/busy");
        *busy.method_mut() = http::Method::POST;
        *busy.body_mut() = Full::from("work");
        busy.headers_mut().insert("content-length", 4.into());
        busy
    };
    let soon = Duration::from_millis(100);
    // A client that waits is not gone.
    let text_of_post =
        "POST /busy HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\nconnection: close\r\n\r\nwork";
    assert!(running.exchange(text_of_post.as_bytes()).ends_with("work"));
    abandoned(0, "nobody went");
    // A plain connection is closed.
    let mut plain = running.connect();
    plain.write_all(text_of_post.as_bytes()).unwrap();
    std::thread::sleep(soon);
    drop(plain);
    abandoned(1, "HTTP/1.1");
    running.runtime.block_on(async {
        // A TLS connection ends with a farewell that nobody has read.
        let connector = tokio_rustls::TlsConnector::from(client_config(&exported, &[b"http/1.1"]));
        let tcp = tokio::net::TcpStream::connect(address).await.unwrap();
        let mut tls = connector.connect(ServerName::try_from("localhost").unwrap(), tcp).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut tls, text_of_post.as_bytes()).await.unwrap();
        tokio::time::sleep(soon).await;
        tokio::io::AsyncWriteExt::shutdown(&mut tls).await.unwrap();
        drop(tls);
        tokio::task::block_in_place(|| abandoned(2, "HTTP/1.1 with TLS"));
        // One stream of a connection is taken back; the others go on.
        let tcp = tokio::net::TcpStream::connect(address).await.unwrap().into_std().unwrap();
        let line = tcp.try_clone().unwrap();
        let tcp = tokio::net::TcpStream::from_std(tcp).unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(tcp)).await.unwrap();
        tokio::spawn(connection);
        assert!(tokio::time::timeout(soon, sender.send_request(busy())).await.is_err());
        tokio::task::block_in_place(|| abandoned(3, "an HTTP/2 stream"));
        assert_eq!(text(sender.send_request(busy()).await.unwrap()).await, "work");
        // The whole connection breaks.
        let sent = tokio::spawn(sender.send_request(busy()));
        tokio::time::sleep(soon).await;
        line.shutdown(std::net::Shutdown::Both).unwrap();
        drop(sent.await);
        tokio::task::block_in_place(|| abandoned(4, "an HTTP/2 connection"));
    });
}
