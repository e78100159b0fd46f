//! Servers with little: few descriptors, little memory. What is scarce must be refused, not what others do.

use anyhow::Result;

use super::attacker::{Attack, Attacker, Beside, Request};
use super::queries::{list, prepare};
use super::victim::{Setup, USUAL};
use super::{items, protocol, streams};

const FEW_FILES: Setup = Setup { open_files: Some((256, 1024)), ..USUAL };
/// About the least that the server takes as a limit.
const LITTLE_MEMORY: Setup = Setup { memory_limit_mb: 400, ..USUAL };

pub const ATTACKS: &[Attack] = &[
    Attack::beside(
        "limit-descriptors",
        "1,074 silent connections where 1,024 files may be open, and large writes",
        Beside::new(1, silent_and_writing).prepared(items::prepare).on(FEW_FILES),
    )
    .lasting(4, 30),
    Attack::beside(
        "limit-memory-queries",
        "large queries of many kinds within 400 MB",
        Beside::new(6, large_queries).prepared(prepare).on(LITTLE_MEMORY),
    )
    .lasting(4, 30),
    Attack::beside(
        "limit-memory-answers",
        "unread pages within 400 MB",
        Beside::new(6, streams::unread).prepared(protocol::large_items).on(LITTLE_MEMORY),
    )
    .lasting(4, 30),
];

fn silent_and_writing(attacker: &mut Attacker) -> Result<()> {
    // The first write makes the connection of the later ones, while there are some left.
    let write = Request::upsert("dbs/attack/colls/bodies");
    let body = format!(r#"{{"id":"x","pk":"p","a":"{}"}}"#, "a".repeat(1_900_000));
    attacker.ask(&write, body.as_bytes())?;
    let wires: Vec<_> = (0..1_074).map_while(|_| attacker.connect().ok()).collect();
    attacker.tally.count(format!("{} silent connections", wires.len()));
    // So much that the store wants new files.
    while !attacker.over() {
        attacker.ask(&write, body.as_bytes())?;
    }
    Ok(())
}

fn large_queries(attacker: &mut Attacker) -> Result<()> {
    let joins = "JOIN x IN c.arr JOIN y IN c.arr JOIN z IN c.arr";
    let columns = list(500, |number| format!("c AS c{number}"));
    for sql in [
        format!("SELECT c.id, x, y, z FROM c {joins} ORDER BY c.n DESC"),
        format!("SELECT {columns} FROM c"),
        format!("SELECT DISTINCT c.id, x, y, z FROM c {joins}"),
        "SELECT VALUE ARRAY(SELECT VALUE c FROM a IN c.arr JOIN b IN c.arr) FROM c".to_owned(),
    ] {
        attacker.query(&sql, serde_json::json!([]))?;
    }
    Ok(())
}
