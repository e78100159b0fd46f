//! The Table API at its own port and at the one that all share: the same tables, and nobody else's requests.

use std::path::Path;

use orrery_testkit::{Client, TestServer};

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_orrery"))
}

fn get(address: std::net::SocketAddr, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nx-ms-version: 2019-02-02\r\n\r\n");
    let reply = Client::new(address).exchange(request.as_bytes()).unwrap();
    format!("{} {}", reply.status, reply.text())
}

#[test]
fn tables_answer_at_both_ports_and_the_nosql_api_at_one() {
    let server = TestServer::start(binary(), &["--ephemeral"]).unwrap();
    let own = server.table_address().expect("a port of its own");
    assert_ne!(own.port(), server.address().port());
    for (address, path) in [(own, "/Tables"), (own, "/orrery/Tables"), (server.address(), "/orrery/Tables")] {
        let answer = get(address, path);
        assert!(answer.starts_with("401 ") && answer.contains("odata.error"), "{path}: {answer}");
    }
    let nosql = get(server.address(), "/dbs");
    assert!(nosql.starts_with("401 ") && nosql.contains("\"code\""), "{nosql}");
    let not_here = get(own, "/dbs");
    assert!(not_here.contains("odata.error"), "{not_here}");
}

#[test]
fn the_port_can_be_named_and_left_out() {
    let server = TestServer::start(binary(), &["--ephemeral", "--table-listen", "off"]).unwrap();
    assert_eq!(server.table_address(), None);
    assert!(get(server.address(), "/orrery/Tables").contains("odata.error"));
    let server = TestServer::start(binary(), &["--ephemeral", "--table-listen", "127.0.0.1:0"]).unwrap();
    assert!(server.table_address().is_some());
}
