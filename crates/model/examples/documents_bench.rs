//! Prints the cost of the operations that every request pays for, in nanoseconds: `cargo run --release -p
//! orrery-model --example documents_bench`.
//!
//! Each figure is the best of many rounds, so that other work on the machine disturbs it least.

use orrery_model::{NumberStyle, ParseOptions, PatchOp, Pointer, PropertyPath, Raw, apply_patch, parse_json};
use std::hint::black_box;
use std::time::Instant;

const ROUNDS: usize = 40;

fn main() {
    println!(
        "{:<14} {:>7} {:>7} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>9}",
        "item", "text", "stored", "encode", "json", "early", "late", "nested", "missing", "patch"
    );
    measure("small", &small(), "id", "tags", "/address/city");
    measure("order, 1 KiB", &order(), "id", "status", "/customer/address/city");
    measure("large", &large(), "id", "last", "/meta/name");
    measure("vector", &vector(), "id", "last", "/embedding");
}

fn measure(name: &str, text: &str, early: &str, late: &str, nested: &str) {
    let options = ParseOptions::default();
    let stored = parse_json(text.as_bytes(), &options).expect("the sample is JSON");
    let item = Raw::document(&stored).expect("the sample was just stored");
    let path = PropertyPath::parse(nested).expect("the sample path is a path");
    let ops = [PatchOp::Set { path: Pointer::parse("/id").expect("a pointer"), value: "changed".into() }];
    let mut out = Vec::with_capacity(stored.len() * 8);
    let encode = best(|| _ = black_box(parse_json(black_box(text.as_bytes()), &options)));
    let json = best(|| {
        out.clear();
        black_box(item).write_json(&mut out, NumberStyle::Item);
    });
    let read = |key: &str| {
        best(|| {
            _ = black_box(Raw::document(black_box(&stored)).ok().and_then(|item| item.get(black_box(key))))
        })
    };
    let (early, late, missing) = (read(early), read(late), read("notThere"));
    let nested = best(|| _ = black_box(black_box(item).path(black_box(&path))));
    let patch = best(|| _ = black_box(apply_patch(black_box(&stored), &ops)));
    println!(
        "{name:<14} {:>7} {:>7} {encode:>9.0} {json:>9.0} {early:>7.1} {late:>7.1} {nested:>7.1} {missing:>7.1} {patch:>9.0}",
        text.len(),
        stored.len()
    );
}

/// Nanoseconds of one call in the best round.
fn best(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut calls = 0u32;
    while start.elapsed().as_millis() < 5 {
        call();
        calls += 1;
    }
    let per_round = (calls / 5).max(1);
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            (0..per_round).for_each(|_| call());
            start.elapsed().as_nanos() as f64 / f64::from(per_round)
        })
        .fold(f64::INFINITY, f64::min)
}

fn small() -> String {
    r#"{"id":"c-000123","pk":"customer-17","name":"Ada Lovelace","age":36,"active":true,"score":98.25,"address":{"city":"London","zip":"W1"},"tags":["a","b","c"]}"#.to_owned()
}

fn order() -> String {
    r#"{"id":"order-00000123","pk":"customer-000017","type":"order","createdAt":"2026-10-10T12:00:00.0000000Z","currency":"EUR","total":1234.56,"paid":true,"note":"Please leave the parcel at the back door \"or\" with the neighbours.","customer":{"id":"customer-000017","name":"Ada Lovelace","email":"ada@example.org","address":{"street":"12 St James's Square","city":"London","zip":"SW1Y 4JH","country":"GB","geo":{"type":"Point","coordinates":[-0.1337,51.5074]}}},"lines":[{"sku":"SKU-1001","name":"Analytical engine, brass","quantity":1,"price":1000.5,"discount":null},{"sku":"SKU-1002","name":"Punched cards, box of 500","quantity":12,"price":19.505,"discount":0.1},{"sku":"SKU-1003","name":"Oil","quantity":2,"price":3.75,"discount":null}],"shipping":{"carrier":"Royal Mail","tracking":"RM123456789GB","weightGrams":12850},"tags":["fragile","heavy","gift"],"version":7,"status":"shipped"}"#.to_owned()
}

fn large() -> String {
    let rows: Vec<String> = (0..100)
        .map(|i| format!(r#"{{"sku":"SKU-{i:05}","name":"Product number {i} with a name","quantity":{},"price":{}.25,"active":true,"category":"category-{}","stock":{},"rating":4.{}}}"#, i % 7, 10 + i, i % 9, i * 37, i % 10))
        .collect();
    format!(
        r#"{{"id":"large","pk":"a","meta":{{"name":"x","n":1}},"rows":[{}],"last":true}}"#,
        rows.join(",")
    )
}

fn vector() -> String {
    let values: Vec<String> =
        (0..1536).map(|i| f64::from(((i as f32) * 0.618_034).sin() * 0.05).to_string()).collect();
    format!(r#"{{"id":"vector","pk":"a","embedding":[{}],"last":true}}"#, values.join(","))
}
