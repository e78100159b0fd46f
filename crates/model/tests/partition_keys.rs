//! Partition keys as text and as stored bytes.

use orrery_model::{KEY_COMPONENTS_MAX, KeyComponent, PartitionKey};
use proptest::prelude::*;
use std::cmp::Ordering;

fn read(text: &str) -> Option<PartitionKey> {
    PartitionKey::parse_header(text).ok()
}

#[test]
fn headers_hold_strings_numbers_booleans_null_and_undefined() {
    use KeyComponent::*;
    let cases: &[(&str, &[KeyComponent])] = &[
        ("[]", &[]),
        (" [ ] ", &[]),
        ("[{}]", &[Undefined]),
        ("[ { } ]", &[Undefined]),
        ("[null]", &[Null]),
        ("[true,false]", &[Bool(true), Bool(false)]),
        ("[42]", &[Number(42.0)]),
        ("[-1.5e3]", &[Number(-1500.0)]),
        ("[18446744073709551615]", &[Number(18446744073709551615.0)]),
        (r#"["a","\u00e9\n\"","é😀"]"#, &[String("a".into()), String("é\n\"".into()), String("é😀".into())]),
        (r#"["\ud83d\ude00"]"#, &[String("😀".into())]),
    ];
    for (text, components) in cases {
        assert_eq!(read(text).unwrap().0.as_slice(), *components, "{text}");
    }
    let Number(zero) = read("[-0.0]").unwrap().0[0] else { panic!("a number") };
    assert!(zero.is_sign_negative(), "-0.0 stays as the client wrote it");
}

#[test]
fn anything_else_is_refused() {
    for text in [
        "",
        "a",
        "null",
        "\"a\"",
        "[",
        "[1",
        "[1,]",
        "[,1]",
        "[1]x",
        "[[1]]",
        "[{\"a\":1}]",
        "[NaN]",
        "[Infinity]",
        "[1e400]",
        "[01]",
        "['a']",
        "[nul]",
        "[\"a]",
        "[undefined]",
        "{}",
        "[\"\u{1}\"]",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
    let many = |n: usize| format!("[{}]", vec!["1"; n].join(","));
    assert!(read(&many(KEY_COMPONENTS_MAX)).is_some());
    assert!(read(&many(KEY_COMPONENTS_MAX + 1)).is_none());
}

fn component() -> impl Strategy<Value = KeyComponent> {
    prop_oneof![
        Just(KeyComponent::Undefined),
        Just(KeyComponent::Null),
        any::<bool>().prop_map(KeyComponent::Bool),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(KeyComponent::Number),
        (-5i32..5).prop_map(|n| KeyComponent::Number(n.into())),
        "[\u{0}\u{1}ab\u{ff}\u{10ffff}]{0,4}".prop_map(KeyComponent::String),
        ".*".prop_map(KeyComponent::String),
    ]
}

fn key() -> impl Strategy<Value = PartitionKey> {
    prop::collection::vec(component(), 0..4)
        .prop_map(|components| PartitionKey(components.into_iter().collect()))
}

fn encoded(key: &PartitionKey) -> Vec<u8> {
    let mut out = Vec::new();
    key.encode(&mut out);
    out
}

fn order(a: &KeyComponent, b: &KeyComponent) -> Ordering {
    use KeyComponent::*;
    let rank = |c: &KeyComponent| match c {
        Undefined => 0,
        Null => 1,
        Bool(false) => 2,
        Bool(true) => 3,
        Number(_) => 4,
        String(_) => 5,
    };
    match (a, b) {
        (Number(a), Number(b)) => a.total_cmp(b),
        (String(a), String(b)) => a.as_bytes().cmp(b.as_bytes()),
        _ => rank(a).cmp(&rank(b)),
    }
}

proptest! {
    #[test]
    fn stored_keys_come_back_and_keep_their_order(a in key(), b in key()) {
        let bytes = encoded(&a);
        let back = PartitionKey::decode(&bytes).unwrap();
        prop_assert_eq!(encoded(&back), bytes.clone());
        prop_assert_eq!(&back, &a);
        let expected = a.0.iter().zip(&b.0).map(|(a, b)| order(a, b)).find(|o| o.is_ne())
            .unwrap_or(a.0.len().cmp(&b.0.len()));
        prop_assert_eq!(bytes.cmp(&encoded(&b)), expected);
    }

    #[test]
    fn a_component_says_where_it_ends(a in component(), rest in prop::collection::vec(any::<u8>(), 0..8)) {
        let mut bytes = encoded(&PartitionKey::from([a.clone()]));
        bytes.extend_from_slice(&rest);
        let (component, tail) = KeyComponent::decode(&bytes).unwrap();
        prop_assert_eq!(component, a);
        prop_assert_eq!(tail, &rest[..]);
    }

    #[test]
    fn any_bytes_decode_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..40)) {
        if let Some(key) = PartitionKey::decode(&bytes) {
            prop_assert_eq!(encoded(&key), bytes);
        }
    }

    #[test]
    fn header_text_comes_back(a in key()) {
        let mut text = Vec::new();
        a.write_json(&mut text);
        let text = String::from_utf8(text).unwrap();
        let back = PartitionKey::parse_header(&text).unwrap();
        prop_assert_eq!(encoded(&back), encoded(&a), "{}", text);
    }

    #[test]
    fn any_header_is_read_or_refused(text in ".*") {
        let _ = PartitionKey::parse_header(&text);
    }
}
