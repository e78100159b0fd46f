//! Bytes as a request: a line with method and path, lines of headers, an empty line, a body.

use std::cell::RefCell;

use orrery_api_nosql::CrossPartition;

use crate::client::{Client, check, map};

/// After so many requests the account is made anew: what they left behind adds up.
const REQUESTS_PER_ACCOUNT: u32 = 2_000;

thread_local! {
    static ACCOUNT: RefCell<Option<(Client, u32)>> = const { RefCell::new(None) };
}

pub fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let Some((method, path)) = lines.next().and_then(|line| line.split_once(' ')) else { return };
    let headers: Vec<(&str, &str)> = lines.filter_map(|line| line.split_once(": ")).collect();
    ACCOUNT.with_borrow_mut(|account| {
        let (client, count) = account.get_or_insert_with(|| (Client::new(CrossPartition::Sdk), 0));
        if let Some(reply) = client.send(method, path, &map(&headers), body.as_bytes()) {
            check(&reply);
        }
        *count += 1;
        if *count == REQUESTS_PER_ACCOUNT {
            *account = None;
        }
    });
}
