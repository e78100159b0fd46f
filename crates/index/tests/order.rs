//! Byte order is value order, for all values, in both directions, and ranges hold exactly what they say.

use std::cmp::Ordering;

use orrery_index::{
    CompositeRange, ENTRY_BYTES_MAX, STRING_BYTES_MAX, ValueRange, decode, encode_component, encode_value,
    is_exact, kind_of, split, split_component,
};
use orrery_model::{Kind, Number, Raw, Value};
use proptest::prelude::*;

fn number() -> impl Strategy<Value = Number> {
    prop_oneof![
        any::<i64>().prop_map(Number::Int),
        (-50i64..50).prop_map(Number::Int),
        any::<u64>().prop_map(Number::from_u64),
        any::<f64>().prop_map(Number::Double),
        (-1000i32..1000).prop_map(|n| Number::Double(f64::from(n) / 8.0)),
        // Around the edges where integers and doubles part.
        (0u32..12, -3i64..4).prop_map(|(shift, n)| Number::Int(
            ((1i64 << (52 + shift.min(10))) + n) * if n % 2 == 0 { 1 } else { -1 }
        )),
        (0u32..12, -3i64..4)
            .prop_map(|(shift, n)| Number::Double(((1i64 << (52 + shift.min(10))) + n) as f64)),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[\u{0}\u{1}\u{2}a\u{ff}é𝄞]{0,6}",
        "[ab]{60,70}",
        (0usize..4, "[\u{0}\u{1}a]{0,3}").prop_map(|(more, tail)| format!("{}{tail}", "a".repeat(62 + more))),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Undefined),
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        number().prop_map(Value::Number),
        text().prop_map(Value::String),
        prop::collection::vec(Just(Value::Null), 0..2).prop_map(Value::Array),
        prop::collection::vec((Just("k".to_owned()), Just(Value::Null)), 0..2).prop_map(Value::Object),
    ]
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    encode_value(&mut out, value);
    out
}

fn compare(a: &Value, b: &Value) -> Ordering {
    match (stored(a), b.is_undefined()) {
        (None, true) => Ordering::Equal,
        (None, false) => Ordering::Less,
        (Some(document), _) => Raw::document(&document).expect("just written").compare_value(b),
    }
}

fn stored(value: &Value) -> Option<Vec<u8>> {
    (!value.is_undefined()).then(|| value.to_document())
}

fn component(value: &Value, descending: bool) -> Vec<u8> {
    let document = stored(value);
    let mut out = Vec::new();
    let raw = document.as_ref().map(|document| Raw::document(document).expect("just written"));
    encode_component(&mut out, raw, descending);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn byte_order_is_value_order(a in value(), b in value()) {
        let (x, y) = (encoded(&a), encoded(&b));
        let order = x.cmp(&y);
        if is_exact(&x) || is_exact(&y) {
            prop_assert_eq!(order, compare(&a, &b), "{:?} {:?} {:02x?} {:02x?}", a, b, x, y);
        } else if x[0] != y[0] {
            prop_assert_eq!(order, compare(&a, &b));
        }
        if compare(&a, &b) == Ordering::Equal {
            prop_assert_eq!(&x, &y);
        }
        let (x, y) = (component(&a, true), component(&b, true));
        if is_exact(&encoded(&a)) || is_exact(&encoded(&b)) {
            prop_assert_eq!(x.cmp(&y), compare(&b, &a));
        }
    }

    #[test]
    fn no_encoding_is_a_prefix_of_another(a in value(), b in value(), tail: Vec<u8>) {
        let (x, y) = (encoded(&a), encoded(&b));
        prop_assert!(x == y || !y.starts_with(&x));
        prop_assert!(x.len() <= ENTRY_BYTES_MAX);
        let key = [&x[..], &tail[..]].concat();
        prop_assert_eq!(split(&key), Some((&x[..], &tail[..])));
        for descending in [false, true] {
            let key = [component(&a, descending), tail.clone()].concat();
            let (found, rest) = split_component(&key, descending).expect("just written");
            prop_assert_eq!(found.encoded(), x.clone());
            prop_assert_eq!(rest, &tail[..]);
        }
    }

    #[test]
    fn what_is_decoded_is_what_was_encoded(a in value()) {
        let bytes = encoded(&a);
        prop_assert_eq!(kind_of(&bytes), a.kind());
        if let Some(back) = decode(&bytes) {
            prop_assert!(is_exact(&bytes));
            prop_assert_eq!(compare(&a, &back), Ordering::Equal);
            let (mut was, mut is) = (Vec::new(), Vec::new());
            a.write_json(&mut was, orrery_model::NumberStyle::Item);
            back.write_json(&mut is, orrery_model::NumberStyle::Item);
            prop_assert_eq!(was, is);
        }
    }

    #[test]
    fn the_stored_and_the_owned_value_have_one_encoding(a in value()) {
        prop_assert_eq!(component(&a, false), encoded(&a));
    }

    #[test]
    fn ranges_hold_what_they_say(a in value(), b in value(), inclusive: bool) {
        let entry = encoded(&a);
        let same_kind = a.kind() == b.kind() && a.kind().is_some();
        let order = compare(&a, &b);
        for (range, wanted) in [
            (ValueRange::equal(&b), order == Ordering::Equal),
            (ValueRange::above(&b, inclusive), same_kind && (order == Ordering::Greater || inclusive && order == Ordering::Equal)),
            (ValueRange::below(&b, inclusive), same_kind && (order == Ordering::Less || inclusive && order == Ordering::Equal)),
            (ValueRange::defined(), !a.is_undefined()),
            (ValueRange::all(), true),
        ] {
            if wanted || is_exact(&entry) {
                prop_assert_eq!(range.contains(&entry), wanted, "{:?} in {:02x?} around {:?}", a, range, b);
            }
        }
    }

    #[test]
    fn prefixes_hold_their_strings(a in text(), b in text(), cut in 0usize..70) {
        let prefix: String = b.chars().take(cut).collect();
        let entry = encoded(&Value::from(a.as_str()));
        let inside = ValueRange::starts_with(&prefix).contains(&entry);
        if a.starts_with(&prefix) || is_exact(&entry) {
            prop_assert_eq!(inside, a.starts_with(&prefix));
        }
    }

    #[test]
    fn composite_ranges_hold_what_they_say(
        fixed in value(), bound in value(), item in (value(), value(), value()), descending in prop::array::uniform3(any::<bool>()),
        inclusive: bool,
    ) {
        prop_assume!(!bound.is_undefined());
        let key = [component(&item.0, descending[0]), component(&item.1, descending[1]), component(&item.2, descending[2])].concat();
        let order = compare(&item.1, &bound);
        let first = compare(&item.0, &fixed) == Ordering::Equal;
        let above = item.1.kind() == bound.kind() && (order == Ordering::Greater || inclusive && order == Ordering::Equal);
        let range = CompositeRange::new(&[ValueRange::equal(&fixed), ValueRange::above(&bound, inclusive)], &descending).expect("a point first");
        let exact = is_exact(&encoded(&item.0)) && is_exact(&encoded(&item.1));
        if exact || first && above {
            prop_assert_eq!(key >= range.start && key < range.end, first && above);
        }
        prop_assert!(CompositeRange::new(&[ValueRange::defined(), ValueRange::all()], &descending).is_none());
    }

    #[test]
    fn damaged_bytes_are_none_not_panics(bytes: Vec<u8>) {
        let _ = split(&bytes);
        let _ = decode(&bytes);
        let _ = is_exact(&bytes);
        let _ = split_component(&bytes, true);
        let _ = split_component(&bytes, false);
    }
}

#[test]
fn encodings_are_frozen() {
    let cases: [(Value, &[u8]); 9] = [
        (Value::Null, &[0x18]),
        (Value::Bool(true), &[0x21]),
        (Value::from(0i64), &[0x2A, 0]),
        (Value::from(1i64), &[0x2A, 0x7F, 0xF0]),
        (Value::from(42i64), &[0x2A, 0x81, 0x45, 0x80]),
        (Value::from(-1i64), &[0x29, 0x80, 0x0F]),
        (Value::from("a\0\u{1}"), &[0x30, b'a', 1, 1, 1, 2, 0]),
        (Value::Array(vec![Value::Null]), &[0x38, 1]),
        (Value::Object(Vec::new()), &[0x40, 0]),
    ];
    for (value, bytes) in cases {
        assert_eq!(encoded(&value), bytes, "{value:?}");
    }
    let long = encoded(&Value::from("x".repeat(STRING_BYTES_MAX + 1).as_str()));
    assert_eq!(long.len(), 1 + STRING_BYTES_MAX + 2 + 4);
    assert_eq!(long[1 + STRING_BYTES_MAX..], [1, 3, 0x47, 0x2e, 0xa2, 0xea], "{:02x?}", &long[65..]);
}

#[test]
fn whole_numbers_that_could_have_two_spellings_are_left_to_the_item() {
    assert_eq!(
        decode(&encoded(&Value::from(999_999_999_999_999i64))),
        Some(Value::from(999_999_999_999_999i64))
    );
    let large = encoded(&Value::from(1i64 << 60));
    assert!(is_exact(&large) && decode(&large).is_none());
    assert_eq!(decode(&encoded(&Value::from((1i64 << 60) + 1))), Some(Value::from((1i64 << 60) + 1)));
    assert_eq!(ValueRange::of_kind(Kind::Null), ValueRange::equal(&Value::Null));
}
