//! Queries that grow: each of these makes one part of the language take as much memory or time as it lets itself be
//! made to. Any reader can send them, with a token for a single partition key too.

use anyhow::Result;
use orrery_testkit::Client;
use serde_json::{Value, json};

use super::attacker::{Attack, Attacker, Beside, Request};
use super::victim::{Setup, USUAL};
use super::{container, item};

/// The server merges what it would otherwise leave to the SDK.
const MERGING: Setup = Setup {
    arguments: &["--cross-partition-queries", "server", "--partition-throughput-limit", "400"],
    ..USUAL
};

/// How far the three joins of the larger bombs go: 50 × 50 × 50 rows of every item.
const JOINS: &str = "JOIN x IN c.arr JOIN y IN c.arr JOIN z IN c.arr";

pub const ATTACKS: &[Attack] = &[
    bomb("query-subquery-array", "one row out of a million long strings", |attacker| {
        let zeros = list(100, |_| "0");
        let rows = format!("FROM a IN [{zeros}] JOIN b IN [{zeros}] JOIN d IN [{zeros}]");
        let text = "CONCAT(REPLICATE('x',9999),ToString(a+b+d))";
        ask(attacker, &format!("SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT VALUE {text} {rows})) FROM c"))
    })
    .lasting(3, 20),
    bomb("query-subquery-items", "one row of 10,000 copies of an item", |attacker| {
        ask(attacker, "SELECT VALUE ARRAY(SELECT VALUE c FROM a IN c.arr JOIN b IN c.arr) FROM c")
    })
    .lasting(3, 20),
    bomb("query-wide-select", "2,000 copies of an item of 1 MB in a row", |attacker| {
        let columns = list(2000, |number| format!("c AS c{number}"));
        ask(attacker, &format!("SELECT {columns} FROM c"))
    })
    .lasting(3, 20),
    bomb("query-or-chain", "a filter of 30,000 terms over one path", |attacker| {
        ask(attacker, &format!("SELECT * FROM c WHERE {}", terms(30_000, " OR ", |n| format!("c.n={n}"))))
    })
    .lasting(3, 20),
    bomb("query-and-chain", "a filter of 25,000 exclusions over one path", |attacker| {
        ask(attacker, &format!("SELECT * FROM c WHERE {}", terms(25_000, " AND ", |n| format!("c.n!={n}"))))
    })
    .lasting(3, 20),
    bomb("query-range-chain", "15,000 ranges, in pairs, over one path", |attacker| {
        let filter = terms(12_000, " OR ", |n| format!("(c.n>{n} AND c.n<{n}.5)"));
        ask(attacker, &format!("SELECT * FROM c WHERE {filter}"))
    }),
    bomb("query-many-paths", "a filter over 15,000 paths", |attacker| {
        ask(attacker, &format!("SELECT * FROM c WHERE {}", terms(15_000, " OR ", |n| format!("c.p{n}=1"))))
    }),
    bomb("query-in-list", "a list of 60,000 values", |attacker| {
        ask(attacker, &format!("SELECT * FROM c WHERE c.n IN ({})", list(60_000, |number| number)))
    }),
    bomb("query-counted-joins", "a count over the joins of 3,000 items", |attacker| {
        ask(attacker, &format!("SELECT VALUE COUNT(1) FROM c {JOINS}"))
    })
    .lasting(3, 20),
    bomb("query-filtered-joins", "joins of which no row is left", |attacker| {
        ask(attacker, &format!("SELECT VALUE 1 FROM c {JOINS} WHERE x + y + z < 0"))
    }),
    bomb("query-sorted-joins", "a sort of all rows of the joins", |attacker| {
        ask(attacker, &format!("SELECT c.id, x, y, z FROM c {JOINS} ORDER BY c.n DESC"))
    })
    .lasting(3, 20),
    bomb("query-many-groups", "a group for every row", |attacker| {
        ask(attacker, &format!("SELECT c.id, x, y, z, COUNT(1) AS n FROM c {JOINS} GROUP BY c.id, x, y, z"))
    }),
    bomb("query-distinct-joins", "all rows of the joins, each different", |attacker| {
        ask(attacker, &format!("SELECT DISTINCT c.id, x, y, z FROM c {JOINS}"))
    }),
    bomb("query-huge-offset", "an offset beyond every row", |attacker| {
        ask(attacker, &format!("SELECT c.id FROM c {JOINS} OFFSET 2147483000 LIMIT 1"))
    }),
    bomb("query-nested-text", "texts made of texts made of texts", |attacker| {
        let text = (0..12)
            .fold("REPLICATE('abcdefghij',1000)".to_owned(), |text, _| format!("CONCAT({text},{text})"));
        ask(attacker, &format!("SELECT VALUE LENGTH({}) FROM c", &text[..text.len().min(400_000)]))?;
        let text = (0..12).fold("c.filler".to_owned(), |text, _| format!("REPLACE({text},'f','fffffffff')"));
        ask(attacker, &format!("SELECT VALUE LENGTH({text}) FROM c"))
    }),
    bomb("query-nested-functions", "functions a hundred deep, and deeper", |attacker| {
        for depth in [90, 5_000] {
            let text = format!("{}c.n{}", "ABS(".repeat(depth), ")".repeat(depth));
            ask(attacker, &format!("SELECT VALUE {text} FROM c"))?;
            let text = format!("{}1{}", "(".repeat(depth), ")".repeat(depth));
            ask(attacker, &format!("SELECT VALUE {text} FROM c"))?;
        }
        Ok(())
    }),
    bomb("query-patterns", "patterns that go back and forth over a long text", |attacker| {
        ask(attacker, &format!("SELECT c.id FROM c WHERE c.filler LIKE '{}g'", "%f".repeat(5000)))?;
        ask(attacker, "SELECT c.id FROM c WHERE RegexMatch(c.filler, '(f+f+)+g')")?;
        ask(attacker, "SELECT c.id FROM c WHERE RegexMatch(c.filler, '((f{1,200}){1,200}){1,200}g')")
    }),
    bomb("query-array-functions", "set functions over arrays of thousands", |attacker| {
        let many = list(20_000, |number| number);
        ask(attacker, &format!("SELECT VALUE SetIntersect([{many}], [{many}]) FROM c"))?;
        ask(attacker, &format!("SELECT VALUE ARRAY_CONTAINS_ALL([{many}], {many}) FROM c"))?;
        ask(attacker, &format!("SELECT VALUE ARRAY_CONCAT([{many}], [{many}], c.arr) FROM c"))
    }),
    bomb("query-large-parameter", "a parameter of 1.5 MB, compared with every item", |attacker| {
        let parameter = json!([{"name": "@p", "value": vec![json!({"a": "x".repeat(50)}); 20_000]}]);
        attacker.query("SELECT VALUE @p FROM c WHERE c.arr != @p", parameter).map(drop)
    }),
    bomb("query-vectors", "distances of vectors of 4,096 numbers", |attacker| {
        let vector = list(4096, |number| format!("0.{number}1"));
        let distance = format!("VectorDistance(c.v, [{vector}], true)");
        ask(attacker, &format!("SELECT TOP 1000 c.id, {distance} AS d FROM c {JOINS} ORDER BY {distance}"))
    }),
    bomb("query-full-text", "a search for 3,000 words", |attacker| {
        let words = list(3_000, |number| format!("'w{number}'"));
        ask(attacker, &format!("SELECT c.id FROM c {JOINS} WHERE FullTextContainsAny(c.filler, {words})"))
    }),
    bomb("query-shapes", "a polygon of 5,000 points", |attacker| {
        let points = list(5_000, |number| {
            let angle = number as f64 / 5_000.0 * std::f64::consts::TAU;
            format!("[{:.6},{:.6}]", 40.0 * angle.cos(), 40.0 * angle.sin())
        });
        let polygon = format!("{{'type':'Polygon','coordinates':[[{points},[40.000000,0.000000]]]}}");
        ask(attacker, &format!("SELECT c.id FROM c {JOINS} WHERE ST_WITHIN(c.at, {polygon})"))?;
        ask(attacker, &format!("SELECT VALUE ST_INTERSECTS({polygon}, {polygon}) FROM c"))
    }),
    bomb("query-user-functions", "a function of the user's on every row", |attacker| {
        ask(attacker, &format!("SELECT VALUE udf.spin(x) FROM c {JOINS}"))
    }),
    bomb("query-texts", "half a megabyte of text, every time another one", |attacker| {
        let word = attacker.random.next_u64();
        ask(attacker, &format!("SELECT VALUE '{}{word}' FROM c", "x".repeat(500_000)))
    }),
    Attack::beside(
        "query-merged-by-server",
        "sorts, groups and counts over partitions that the server merges",
        Beside::new(4, |attacker| {
            for sql in [
                format!("SELECT c.id, x, y, z FROM c {JOINS} ORDER BY c.n DESC"),
                format!("SELECT c.id, x, y, z, COUNT(1) AS n FROM c {JOINS} GROUP BY c.id, x, y, z"),
                format!(
                    "SELECT DISTINCT VALUE CONCAT(c.id, REPLICATE('x', 1000), ToString(x*y*z)) FROM c {JOINS}"
                ),
                "SELECT VALUE c FROM c ORDER BY c.n OFFSET 1000000 LIMIT 10".to_owned(),
            ] {
                let mut request = Request::query("dbs/attack/colls/items");
                request.headers.retain(|(name, _)| *name != "x-ms-documentdb-partitionkey");
                request.headers.push(("x-ms-documentdb-query-enablecrosspartition", "true"));
                let body = json!({"query": sql, "parameters": []}).to_string();
                attacker.ask(&request, body.as_bytes())?;
            }
            Ok(())
        })
        .prepared(prepare)
        .on(MERGING),
    )
    .lasting(0, 20),
];

/// Four attackers that send the same again and again.
const fn bomb(name: &'static str, purpose: &'static str, strike: fn(&mut Attacker) -> Result<()>) -> Attack {
    Attack::beside(name, purpose, Beside::new(4, strike).prepared(prepare)).lasting(0, 15)
}

/// What `of` makes, between commas.
pub fn list<T: ToString>(count: usize, of: impl Fn(usize) -> T) -> String {
    (0..count).map(|number| of(number).to_string()).collect::<Vec<_>>().join(",")
}

fn terms(count: usize, between: &str, of: impl Fn(usize) -> String) -> String {
    (0..count).map(of).collect::<Vec<_>>().join(between)
}

fn ask(attacker: &mut Attacker, sql: &str) -> Result<()> {
    attacker.query(sql, json!([])).map(drop)
}

/// Items that the bombs are filled with: many small ones with arrays, one of 1 MB.
const SMALL_ITEMS: usize = 300;

/// A container with small items, one of 1 MB, and a function; made once for each server.
pub fn prepare(client: &mut Client) -> Result<()> {
    let link = "dbs/attack/colls/items";
    container(client, r#"{"id":"items","partitionKey":{"paths":["/pk"],"kind":"Hash"}}"#)?;
    let key = [("x-ms-documentdb-partitionkey", "[\"p\"]")];
    if client.get(&format!("{link}/docs/large"), &format!("{link}/docs/large"), "docs", &key)?.status == 200 {
        return Ok(());
    }
    let udf =
        json!({"id": "spin", "body": "function spin(x){var t=0;for(var i=0;i<1e5;i++)t+=i%7;return t+x}"});
    client.post(&format!("{link}/udfs"), link, "udfs", &[], &udf.to_string())?;
    let arr: Vec<Value> = (0..50).map(Value::from).collect();
    let vector: Vec<Value> = (0..64).map(Value::from).collect();
    for number in 0..SMALL_ITEMS {
        let at = json!({"type": "Point", "coordinates": [number % 170, number % 80]});
        let body =
            json!({"id": format!("i{number}"), "pk": "p", "n": number, "arr": arr, "v": vector, "at": at});
        item(client, "items", &body.to_string())?;
    }
    let arr: Vec<Value> = (0..100).map(Value::from).collect();
    let body = json!({"id": "large", "pk": "p", "n": -1, "arr": arr, "filler": "f".repeat(1_000_000)});
    item(client, "items", &body.to_string())
}
