//! The stored form: its bytes, its reader on sound and on damaged bytes, its writer, and the order of values.

mod common;

use common::{json, print, same, stored, value};
use orrery_model::{
    DocWriter, Kind, Number, NumberStyle, PropertyPath, READ_DEPTH_MAX, Raw, Value, compare_raw, equal_raw,
};
use proptest::prelude::*;
use std::cmp::Ordering;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn the_bytes_of_format_1_are_frozen() {
    for line in include_str!("data/stored_documents.tsv").lines().filter(|line| !line.starts_with('#')) {
        let (text, bytes) = line.split_once('\t').unwrap();
        assert_eq!(hex(&stored(text)), bytes, "{text}");
    }
}

#[test]
fn readers_refuse_formats_and_flags_they_do_not_know() {
    let good = stored("{\"a\":1}");
    for (at, byte) in [(0, 0), (0, 2), (1, 1), (1, 0x80)] {
        let mut bytes = good.clone();
        bytes[at] = byte;
        assert!(Raw::document(&bytes).is_err());
    }
    assert!(Raw::document(&[]).is_err());
    assert!(Raw::document(&good[..1]).is_err());
    assert!(Raw::document(&good[..2]).is_err());
    assert!(Raw::document(&good[..5]).is_err());
}

#[test]
fn paths_reach_through_objects_only() {
    let document = stored(r#"{"a":{"b":{"c":[10,{"d":1}]},"":2},"0":"zero"}"#);
    let item = Raw::document(&document).unwrap();
    let read = |path: &str| item.path(&PropertyPath::parse(path).unwrap()).map(|raw| format!("{raw:?}"));
    assert_eq!(read("/a/b/c").as_deref(), Some(r#"[10,{"d":1}]"#));
    assert_eq!(read("/a/\"\"").as_deref(), Some("2"));
    assert_eq!(read("/0").as_deref(), Some("\"zero\""));
    assert_eq!(read("/a/b/c/0"), None);
    assert_eq!(read("/a/x/c"), None);
    let array = item.get("a").unwrap().get("b").unwrap().get("c").unwrap();
    assert_eq!(array.at(0).unwrap().as_number(), Some(Number::Int(10)));
    assert!(array.at(2).is_none() && array.get("d").is_none() && item.at(0).is_none());
    assert_eq!((array.len(), item.len(), array.at(0).unwrap().len()), (2, 2, 0));
}

#[test]
fn large_containers_use_wide_tables() {
    for members in [1, 63, 64, 65, 300, 5000] {
        let text =
            (0..members).map(|i| format!("\"key{i}\":\"{}\"", "v".repeat(i % 300))).collect::<Vec<_>>();
        let json = serde_json::from_str(&format!("{{{}}}", text.join(","))).unwrap();
        let document = stored(&format!("{{{}}}", text.join(",")));
        assert!(same(Raw::document(&document).unwrap(), &json), "{members} members");
    }
    let text = format!("[{}]", vec!["\"0123456789\""; 20_000].join(","));
    assert_eq!(print(&stored(&text)), text);
    let long = format!("\"{}\\n{}\"", "a".repeat(70_000), "b".repeat(10));
    assert_eq!(print(&stored(&long)), long);
    // A container that ends exactly at the limit of 16 bits, and one byte on either side.
    for extra in 0..4 {
        let text = format!("[\"{}\"]", "x".repeat(65_535 - 10 + extra));
        assert_eq!(print(&stored(&text)), text);
    }
}

#[test]
fn float_arrays_are_packed_and_read_as_numbers() {
    let vector: Vec<String> = (0..1536).map(|i| format!("{}", f64::from((i as f32).sin()))).collect();
    let document = stored(&format!("[{}]", vector.join(",")));
    assert!(document.len() < 1536 * 4 + 16, "a vector of floats takes four bytes an element");
    let raw = Raw::document(&document).unwrap();
    assert_eq!((raw.kind(), raw.len()), (Kind::Array, 1536));
    for (element, text) in raw.elements().zip(&vector) {
        assert_eq!(element.as_number().unwrap().as_f64(), text.parse::<f64>().unwrap());
    }
    for text in [
        "[1,2,3,4,5]",
        "[0.5,1,-2,3]",
        "[0.1,0.2,0.3,0.4]",
        "[0.5,null,0.25,1]",
        "[0.5,18446744073709551615,1,2]",
    ] {
        assert_eq!(print(&stored(text)), text);
    }
    // Integers that a double would print otherwise keep the array as it is.
    let text = "[0.5,1000000000000000,2,3]";
    assert_eq!(print(&stored(text)), text);
    let text = "[0.5,-9223372036854775808,2,3]";
    assert_eq!(print(&stored(text)), text);
}

#[test]
fn the_writer_copies_and_builds() {
    let source = stored(r#"{"a":[0.5,0.25,0.125,1.5],"b":{"c":"x"},"n":-1}"#);
    let item = Raw::document(&source).unwrap();
    let mut writer = DocWriter::new();
    writer.begin_object();
    writer.key("copy");
    writer.raw(item);
    writer.key("element");
    writer.raw(item.get("a").unwrap().at(1).unwrap());
    writer.key("list");
    writer.begin_array();
    writer.null();
    writer.bool(true);
    writer.number(5i64);
    writer.number(2.5);
    writer.string("q\"");
    writer.value(&value("{\"x\":[]}"));
    writer.end_array();
    writer.end_object();
    let document = writer.finish();
    assert!(Raw::document(&document).unwrap().verify().is_ok());
    assert_eq!(
        print(&document),
        r#"{"copy":{"a":[0.5,0.25,0.125,1.5],"b":{"c":"x"},"n":-1},"element":0.25,"list":[null,true,5,2.5,"q\"",{"x":[]}]}"#
    );
}

#[test]
fn wrapping_deeper_than_readers_follow_ends_in_null() {
    let mut writer = DocWriter::new();
    for _ in 0..READ_DEPTH_MAX + 50 {
        writer.begin_array();
    }
    for _ in 0..READ_DEPTH_MAX + 50 {
        writer.end_array();
    }
    let document = writer.finish();
    let raw = Raw::document(&document).unwrap();
    assert!(raw.verify().is_err());
    assert_eq!(print(&document).matches('[').count(), READ_DEPTH_MAX);
    assert_eq!(compare_raw(raw, raw), Ordering::Equal);
    raw.to_value();
}

#[test]
fn kinds_come_in_the_order_of_the_language() {
    let rising = [
        "null",
        "false",
        "true",
        "-1e300",
        "-5",
        "0",
        "0.5",
        "1",
        "9007199254740993",
        "18446744073709551615",
        "1e300",
        "\"\"",
        "\"A\"",
        "\"a\"",
        "\"aa\"",
        "\"b\"",
        "\"é\"",
        "\"\u{ffff}\"",
        "\"\u{10000}\"",
        "[]",
        "[null]",
        "[1]",
        "[1,1]",
        "[2]",
        "[[]]",
        "{}",
        "{\"a\":1}",
        "{\"a\":1,\"b\":0}",
        "{\"a\":2}",
        "{\"b\":0}",
    ];
    for (i, a) in rising.iter().enumerate() {
        assert_eq!(Value::Undefined.compare(&value(a)), Ordering::Less);
        for (j, b) in rising.iter().enumerate() {
            let (left, right) = (stored(a), stored(b));
            let (left, right) = (Raw::document(&left).unwrap(), Raw::document(&right).unwrap());
            assert_eq!(compare_raw(left, right), i.cmp(&j), "{a} against {b}");
            assert_eq!(equal_raw(left, right), i == j, "{a} equals {b}");
            assert_eq!(value(a).compare(&value(b)), i.cmp(&j), "{a} against {b} as values");
            assert_eq!(left.compare_value(&value(b)), i.cmp(&j), "{a} stored against {b}");
        }
    }
}

#[test]
fn equality_ignores_spelling_and_the_order_of_members() {
    let equal = |a: &str, b: &str| {
        let (left, right) = (stored(a), stored(b));
        equal_raw(Raw::document(&left).unwrap(), Raw::document(&right).unwrap())
    };
    assert!(equal("1", "1.0"));
    assert!(equal("[0.5,1,2,3]", "[0.5,1.0,2.00,3]"));
    assert!(equal(r#"{"a":1,"b":[{"x":1,"y":2}]}"#, r#"{"b":[{"y":2.0,"x":1}],"a":1e0}"#));
    assert!(!equal(r#"{"a":1}"#, r#"{"a":1,"b":null}"#));
    assert!(!equal("9007199254740993", "9007199254740992.0"));
    assert!(!equal("[1,2]", "[2,1]"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn order_is_total_and_agrees_between_stored_and_owned(a in json(), b in json(), c in json()) {
        let documents = [&a, &b, &c].map(|json| stored(&json.to_string()));
        let [a, b, c] = documents.each_ref().map(|document| Raw::document(document).unwrap());
        prop_assert_eq!(compare_raw(a, b), compare_raw(b, a).reverse());
        prop_assert_eq!(compare_raw(a, a), Ordering::Equal);
        prop_assert_eq!(compare_raw(a, b) == Ordering::Equal, equal_raw(a, b));
        if compare_raw(a, b).is_le() && compare_raw(b, c).is_le() {
            prop_assert!(compare_raw(a, c).is_le());
        }
        let (owned_a, owned_b) = (a.to_value(), b.to_value());
        prop_assert_eq!(owned_a.compare(&owned_b), compare_raw(a, b));
        prop_assert_eq!(a.compare_value(&owned_b), compare_raw(a, b));
        prop_assert!(a.equals_value(&owned_a) && owned_a.equals(&owned_a));
    }

    #[test]
    fn shuffled_members_are_equal(json in common::object(json()), turn in 0usize..10) {
        let serde_json::Value::Object(members) = &json else { unreachable!() };
        let mut turned: Vec<_> = members.clone().into_iter().collect();
        let turn = turn.min(turned.len());
        turned.rotate_left(turn);
        let (a, b) = (stored(&json.to_string()), stored(&serde_json::Value::Object(turned.into_iter().collect()).to_string()));
        prop_assert!(equal_raw(Raw::document(&a).unwrap(), Raw::document(&b).unwrap()));
    }

    #[test]
    fn damaged_documents_are_read_without_panic_and_in_bounds(
        json in json(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut document = stored(&json.to_string());
        for (at, byte) in damage {
            let at = at.index(document.len());
            document[at] = byte;
        }
        if let Some(cut) = cut {
            document.truncate(cut.index(document.len() + 1));
        }
        read_everything(&document);
    }

    #[test]
    fn random_bytes_are_read_without_panic(mut bytes in prop::collection::vec(any::<u8>(), 3..200), tag in 0x10u8..0x16) {
        (bytes[0], bytes[1], bytes[2]) = (1, 0, tag);
        read_everything(&bytes);
    }

    #[test]
    fn overlapping_slots_do_not_multiply_work(depth in 1usize..100) {
        // Each level claims eight children at the same place.
        let mut value = vec![0x01u8];
        for _ in 0..depth {
            let mut array = vec![0x12];
            array.extend_from_slice(&((20 + value.len()) as u16).to_le_bytes());
            array.extend_from_slice(&8u16.to_le_bytes());
            (0..8).for_each(|_| array.extend_from_slice(&20u16.to_le_bytes()));
            array.extend_from_slice(&value);
            value = array;
        }
        let mut document = vec![1, 0];
        document.extend_from_slice(&value);
        read_everything(&document);
    }
}

/// Calls every reader and checks that what comes out is not much larger than what went in.
fn read_everything(document: &[u8]) {
    let Ok(raw) = Raw::document(document) else { return };
    let mut out = Vec::new();
    raw.write_json(&mut out, NumberStyle::Item);
    raw.write_json_members(0..usize::MAX, &mut out, NumberStyle::Item);
    // A float of four bytes prints as up to 25 characters, an escaped byte as six; twice, for the two calls.
    assert!(out.len() <= 60 * document.len() + 100, "{} bytes printed from {}", out.len(), document.len());
    let owned = raw.to_value();
    let _ = raw.verify();
    let _ = (raw.get("a"), raw.at(3), raw.len(), raw.as_str(), raw.as_number());
    let _ = (compare_raw(raw, raw), equal_raw(raw, raw), raw.compare_value(&owned));
    let mut writer = DocWriter::new();
    writer.raw(raw);
    let copy = writer.finish();
    let _ = Raw::document(&copy).map(|raw| raw.to_value());
    let pointer = |text| orrery_model::Pointer::parse(text).unwrap();
    let ops = [
        orrery_model::PatchOp::Add { path: pointer("/a"), value: 1.into() },
        orrery_model::PatchOp::Remove { path: pointer("/a") },
    ];
    let _ = orrery_model::apply_patch(document, &ops);
}
