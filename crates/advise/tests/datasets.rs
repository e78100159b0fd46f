//! Ten data sets with a known answer, made by seed: what the advisor must say, and what it must never say.

use std::collections::BTreeSet;

use orrery_advise::{Advice, Known, Options, Request, Sample, advise};
use serde_json::{Value, json};

const ITEMS: u64 = 6_000;
const GB: u64 = 1_000_000_000;

/// A small generator with a seed: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    /// One of many, of which the first has this share.
    fn skewed(&mut self, limit: u64, first_percent: u64) -> u64 {
        if self.below(100) < first_percent { 0 } else { 1 + self.below(limit - 1) }
    }
}

fn query(paths: &[&str], charge_ru: f64) -> Request {
    let known = Known::Paths(paths.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>());
    Request { known, charge_ru, is_local: false, transaction: false, key: None }
}

fn write() -> Request {
    Request { known: Known::All, charge_ru: 7.0, is_local: true, transaction: false, key: None }
}

fn transaction() -> Request {
    Request { transaction: true, charge_ru: 30.0, ..write() }
}

fn check(
    name: &str,
    expected: &str,
    current: &str,
    projected_gb: u64,
    requests: &[Request],
    item: impl Fn(u64, &mut Random) -> Value,
) -> Advice {
    let mut random = Random(0x9E37_79B9_7F4A_7C15);
    let mut sample = Sample::default();
    for n in 0..ITEMS {
        let mut item = item(n, &mut random);
        item["id"] = format!("item-{n}").into();
        item["_ts"] = (1_700_000_000 + n).into();
        // What must never be recommended, in every set.
        item["tags"] = json!(["a", n]);
        item["price"] = (n as f64 / 7.0).into();
        item["address"] = json!({"lines": [1]});
        if n % 50 == 0 {
            item["sometimes"] = n.into();
        }
        let size = item.to_string().len() as u64;
        sample.add(&item, size);
    }
    let options = Options {
        current: vec![current.to_owned()],
        size_bytes: sample.size_bytes(),
        projected_bytes: projected_gb * GB,
        physical_partitions: 10,
    };
    let advice = advise(&sample, requests, &options);
    let found = advice.recommended.as_ref().unwrap_or_else(|| panic!("{name}: nothing is recommended"));
    let better: Vec<String> = advice
        .judged
        .iter()
        .take(6)
        .map(|it| format!("{} {:.3} {:?}", it.candidate.rule(), it.score, it.problems))
        .collect();
    assert_eq!(found.candidate.rule(), expected, "{name}: {better:#?}");
    assert!(!advice.reasons.is_empty());
    for judged in &advice.judged {
        for path in &judged.candidate.paths {
            assert!(
                !["/tags", "/price", "/address", "/address/lines", "/sometimes"].contains(&path.as_str()),
                "{name}: {path} is no key"
            );
        }
    }
    advice
}

#[test]
fn even_customers() {
    let requests = [query(&["/customer"], 5.0), query(&["/customer"], 5.0), write()];
    check(
        "even",
        "/customer",
        "/id",
        100,
        &requests,
        |_, random| json!({"customer": format!("c{}", random.below(500)), "status": random.below(3)}),
    );
}

#[test]
fn one_customer_is_too_large() {
    let requests = [query(&["/customer"], 5.0), query(&["/customer", "/order"], 3.0), write()];
    let advice = check(
        "skewed",
        "/customer,/order",
        "/customer",
        100,
        &requests,
        |n, random| json!({"customer": format!("c{}", random.skewed(300, 60)), "order": n / 3}),
    );
    assert!(advice.reasons.iter().any(|reason| reason.contains("beyond 20 GB")), "{:?}", advice.reasons);
}

#[test]
fn few_values_are_no_key_however_often_they_are_asked_for() {
    let requests =
        [query(&["/status"], 9.0), query(&["/status", "/device"], 4.0), query(&["/device"], 4.0), write()];
    check(
        "low cardinality",
        "/device",
        "/status",
        50,
        &requests,
        |_, random| json!({"status": random.below(3), "device": random.below(800)}),
    );
}

#[test]
fn time_is_hot_where_it_is_written() {
    let requests = [query(&["/day"], 10.0), write()];
    let advice = check(
        "time-ordered",
        "/partitionKey=calculated(/day,/event,20)",
        "/day",
        50,
        &requests,
        |n, random| json!({"day": format!("2026-11-{:02}", 1 + n / 250), "event": random.below(100_000)}),
    );
    assert!(advice.current.unwrap().problems.iter().any(|problem| problem.contains("latest writes")));
}

#[test]
fn tenants_of_about_the_same_size() {
    let requests = [query(&["/tenant"], 5.0), query(&["/tenant", "/user"], 3.0), write()];
    check(
        "multi-tenant",
        "/tenant",
        "/id",
        100,
        &requests,
        |_, random| json!({"tenant": random.below(200), "user": random.below(5_000)}),
    );
}

#[test]
fn one_tenant_is_most_of_it() {
    let requests = [
        query(&["/tenant"], 5.0),
        query(&["/tenant", "/user"], 3.0),
        query(&["/tenant", "/user"], 3.0),
        write(),
    ];
    check(
        "hierarchical",
        "/tenant,/user",
        "/tenant",
        200,
        &requests,
        |_, random| json!({"tenant": random.skewed(100, 70), "user": random.below(3_000)}),
    );
}

#[test]
fn items_that_are_only_read_by_their_id() {
    let requests = [query(&["/id"], 1.0), query(&["/id"], 1.0), write()];
    check(
        "by id",
        "/id",
        "/kind",
        50,
        &requests,
        |_, random| json!({"kind": random.below(4), "shard": random.below(50)}),
    );
}

#[test]
fn a_key_inside_of_an_object() {
    let requests = [query(&["/place/zip"], 5.0), write()];
    check(
        "nested",
        "/place/zip",
        "/id",
        50,
        &requests,
        |_, random| json!({"place": {"zip": format!("{:05}", random.below(2_000)), "country": "x"}}),
    );
}

#[test]
fn what_is_missing_somewhere_is_no_key() {
    let requests = [query(&["/region"], 9.0), query(&["/store"], 4.0), write()];
    check("missing", "/store", "/id", 50, &requests, |n, random| {
        let mut item = json!({"store": random.below(400)});
        if n % 5 > 0 {
            item["region"] = random.below(100).into();
        }
        item
    });
}

#[test]
fn transactions_stay_in_one_scope() {
    // Asked for by customer, written together by cart. Every cart is one customer's; a warehouse has parts of many.
    let requests = [query(&["/customer"], 6.0), query(&["/warehouse"], 7.0), transaction(), write()];
    let advice = check("transactions", "/customer", "/cart", 50, &requests, |n, random| {
        let cart = n / 4;
        json!({"cart": format!("k{cart}"), "customer": format!("c{}", cart % 700), "warehouse": random.below(90)})
    });
    let warehouse = advice.judged.iter().find(|it| it.candidate.rule() == "/warehouse").unwrap();
    assert!(
        warehouse.problems.iter().any(|problem| problem.contains("transactions")),
        "{:?}",
        warehouse.problems
    );
}

#[test]
fn without_requests_the_data_alone_decides() {
    check(
        "data alone",
        "/customer",
        "/id",
        50,
        &[],
        |_, random| json!({"customer": format!("c{}", random.below(300)), "status": random.below(3)}),
    );
}

#[test]
fn a_good_key_is_left_alone() {
    let requests = [query(&["/customer"], 5.0), write()];
    check(
        "good already",
        "/customer",
        "/customer",
        50,
        &requests,
        |_, random| json!({"customer": random.below(500), "account": random.below(500)}),
    );
}
