//! Rules of apis hold for every item: keys that it claims, and when it is over; built while writers go on, through
//! restarts and splits.

mod items_support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use items_support::*;
use orrery_engine::{CompiledRule, Kind, Result, RuleHost};
use orrery_model::Raw;
use serde_json::{Value, json};

/// Rules of the tests: `{"unique": name}` claims every element of a member, `{"expires": name}` ends items at the
/// millisecond that a member says.
struct TestRules;

struct TestRule {
    unique: Option<String>,
    expires: Option<String>,
}

impl RuleHost for TestRules {
    fn compile(&self, specification: &Value) -> Option<Arc<dyn CompiledRule>> {
        let name = |of: &str| specification[of].as_str().map(str::to_owned);
        Some(Arc::new(TestRule { unique: name("unique"), expires: name("expires") }))
    }
}

impl CompiledRule for TestRule {
    fn claims(&self, item: Raw<'_>) -> Result<Vec<Vec<u8>>> {
        let Some(value) = self.unique.as_ref().and_then(|name| item.get(name)) else { return Ok(Vec::new()) };
        let text = |value: Raw<'_>| value.as_str().unwrap_or_default().as_bytes().to_vec();
        let mut keys: Vec<Vec<u8>> = match value.as_str() {
            Some(_) => vec![text(value)],
            None => value.elements().map(text).collect(),
        };
        keys.sort();
        keys.dedup();
        Ok(keys)
    }

    fn over_from_ms(&self, item: Raw<'_>) -> Option<i64> {
        item.get(self.expires.as_ref()?)?.as_number()?.as_i64()
    }
}

fn rules(rules: &[(u16, Value)]) -> Value {
    let next = rules.iter().map(|(number, _)| number + 1).max().unwrap_or(1);
    let rules: Vec<Value> = (rules.iter())
        .map(|(number, specification)| {
            json!({
                "number": number, "host": "test", "unique": specification.get("unique").is_some(),
                "expires": specification.get("expires").is_some(), "specification": specification,
            })
        })
        .collect();
    json!({ "itemRules": { "next": next, "rules": rules } })
}

fn hosted(fixture: &Fixture) {
    fixture.account.set_rule_host("test", Arc::new(TestRules));
}

/// Lets items claim until all have, or two want the same.
fn build(fixture: &Fixture) -> Option<(u16, String)> {
    fixture.container.build_claims(&mut || Ok(())).unwrap()
}

fn item(id: &str, pk: &str, email: &str) -> String {
    format!(r#"{{"id":"{id}","pk":"{pk}","email":{email}}}"#)
}

fn sound(fixture: &Fixture) {
    let check = fixture.account.check(&mut |_, _| {});
    assert!(check.findings.is_empty(), "{:?}", check.findings);
}

#[test]
fn a_key_has_one_holder_within_its_logical_partition() {
    let fixture = Fixture::embedded(rules(&[(1, json!({ "unique": "email" }))]));
    hosted(&fixture);
    let violated = |text: &str| assert_eq!(kind(fixture.upsert(text)), Kind::UniqueKeyViolated, "{text}");
    fixture.create(&item("1", "p", r#"["a","b"]"#)).unwrap();
    violated(&item("2", "p", r#""b""#));
    fixture.create(&item("2", "q", r#""b""#)).unwrap();
    fixture.create(r#"{"id":"3","pk":"p"}"#).unwrap();
    fixture.create(r#"{"id":"4","pk":"p"}"#).unwrap();
    // Keys that an item gives up are free, those that it keeps are not.
    fixture.replace(&item("1", "p", r#"["a","c"]"#)).unwrap();
    fixture.create(&item("5", "p", r#""b""#)).unwrap();
    violated(&item("6", "p", r#"["x","a"]"#));
    fixture.delete("p", "1").unwrap();
    fixture.create(&item("6", "p", r#"["x","a"]"#)).unwrap();
    sound(&fixture);
}

#[test]
fn items_that_were_there_before_a_rule_claim_their_keys() {
    let mut fixture = Fixture::embedded(json!({}));
    hosted(&fixture);
    for n in 0..300 {
        fixture.create(&item(&n.to_string(), "p", &format!("\"e{n}\""))).unwrap();
    }
    fixture.replace_definition(rules(&[(1, json!({ "unique": "email" }))]));
    assert_eq!(build(&fixture), None);
    assert_eq!(kind(fixture.create(&item("x", "p", "\"e7\""))), Kind::UniqueKeyViolated);
    assert_eq!(kind(fixture.create(&item("x", "p", "\"e299\""))), Kind::UniqueKeyViolated);
    sound(&fixture);
    fixture.reopen();
    hosted(&fixture);
    assert_eq!(kind(fixture.create(&item("x", "p", "\"e7\""))), Kind::UniqueKeyViolated);
    fixture.create(&item("x", "p", "\"new\"")).unwrap();
    sound(&fixture);
}

#[test]
fn a_rule_that_items_break_already_is_told_and_can_be_taken_back() {
    let fixture = Fixture::embedded(json!({}));
    hosted(&fixture);
    for n in 0..200 {
        fixture.create(&item(&n.to_string(), "p", &format!("\"e{}\"", n % 150))).unwrap();
    }
    fixture.replace_definition(rules(&[(1, json!({ "unique": "email" }))]));
    let (rule, _) = build(&fixture).unwrap();
    assert_eq!(rule, 1);
    fixture.replace_definition(json!({ "itemRules": { "next": 2, "rules": [] } }));
    assert_eq!(build(&fixture), None);
    fixture.create(&item("x", "p", "\"e7\"")).unwrap();
    sound(&fixture);
    // The next rule has a number of its own and meets nothing of the one before.
    fixture.replace_definition(rules(&[(2, json!({ "unique": "other" }))]));
    assert_eq!(build(&fixture), None);
    fixture.create(&item("y", "p", "\"e7\"")).unwrap();
    sound(&fixture);
}

#[test]
fn writers_go_on_while_items_claim() {
    let fixture = Fixture::embedded(json!({}));
    hosted(&fixture);
    for n in 0..2_000 {
        fixture.create(&item(&n.to_string(), "p", &format!("\"e{n}\""))).unwrap();
    }
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut n = 0;
            while !stop.load(Ordering::Relaxed) {
                // Values move from one item to another, and new items come; never are two the same.
                let _ = fixture.delete("p", &n.to_string());
                fixture.create(&item(&format!("m{n}"), "p", &format!("\"e{n}\""))).unwrap();
                fixture.create(&item(&format!("n{n}"), "p", &format!("\"f{n}\""))).unwrap();
                n += 1;
            }
            n
        });
        fixture.replace_definition(rules(&[(1, json!({ "unique": "email" }))]));
        assert_eq!(build(&fixture), None);
        stop.store(true, Ordering::Relaxed);
        let moved = writer.join().unwrap();
        for n in [0, moved / 2, 1_999, moved + 1] {
            let taken = format!("\"e{}\"", n.min(1_999));
            assert_eq!(kind(fixture.create(&item("x", "p", &taken))), Kind::UniqueKeyViolated, "{taken}");
        }
    });
    sound(&fixture);
}

#[test]
fn claims_go_along_when_partitions_are_split() {
    let fixture = Fixture::embedded(rules(&[(1, json!({ "unique": "email" }))]));
    hosted(&fixture);
    for n in 0..400 {
        fixture.create(&item(&n.to_string(), &format!("k{}", n % 40), &format!("\"e{n}\""))).unwrap();
    }
    wait(fixture.account.split_partition(&fixture.container, None).unwrap().done()).unwrap();
    assert_eq!(build(&fixture), None);
    assert_eq!(kind(fixture.create(&item("x", "k7", "\"e47\""))), Kind::UniqueKeyViolated);
    fixture.create(&item("x", "k7", "\"e48\"")).unwrap();
    sound(&fixture);
}

#[test]
fn items_are_removed_when_a_rule_says_that_they_are_over() {
    let mut fixture = Fixture::embedded(json!({}));
    hosted(&fixture);
    let at = |seconds: u64| NOW_MS + seconds * 1000;
    fixture.create(&format!(r#"{{"id":"1","pk":"p","at":{}}}"#, at(10))).unwrap();
    fixture.create(&format!(r#"{{"id":"2","pk":"p","at":{}}}"#, at(1000))).unwrap();
    fixture.create(r#"{"id":"3","pk":"p"}"#).unwrap();
    fixture.replace_definition(rules(&[(1, json!({ "expires": "at" }))]));
    fixture.create(&format!(r#"{{"id":"4","pk":"p","at":{}}}"#, at(20))).unwrap();
    fixture.create(&format!(r#"{{"id":"5","pk":"p","at":{}}}"#, at(20))).unwrap();
    fixture.replace(&format!(r#"{{"id":"5","pk":"p","at":{}}}"#, at(2000))).unwrap();
    fixture.sweep();
    assert_eq!(fixture.stored_items(), 5);
    fixture.reopen();
    hosted(&fixture);
    fixture.env.advance_ms(21_000);
    fixture.sweep();
    assert_eq!(fixture.list(&orrery_engine::Scope::All, 10), ["2", "3", "5"]);
    sound(&fixture);
    // Without the rule nothing is over.
    fixture.replace_definition(json!({ "itemRules": { "next": 2, "rules": [] } }));
    fixture.env.advance_ms(10_000_000);
    fixture.sweep();
    assert_eq!(fixture.stored_items(), 3);
}

#[test]
fn without_its_api_a_rule_refuses_writes_and_loses_nothing() {
    let mut fixture = Fixture::embedded(rules(&[(1, json!({ "unique": "email" }))]));
    hosted(&fixture);
    fixture.create(&item("1", "p", "\"a\"")).unwrap();
    fixture.reopen();
    assert_eq!(kind(fixture.create(&item("2", "p", "\"b\""))), Kind::Unavailable);
    sound(&fixture);
    fixture.reopen();
    hosted(&fixture);
    assert_eq!(kind(fixture.create(&item("2", "p", "\"a\""))), Kind::UniqueKeyViolated);
}

#[test]
fn who_has_never_heard_of_rules_leaves_them_as_they_are() {
    let fixture = Fixture::embedded(rules(&[(1, json!({ "unique": "email" }))]));
    hosted(&fixture);
    fixture.replace_definition(json!({ "defaultTtl": 100 }));
    let definition = fixture.container.definition();
    assert_eq!(definition.rules.as_ref().unwrap().rules.len(), 1);
    assert_eq!(definition.json["itemRules"]["rules"][0]["number"], 1);
}
