//! Byte order is value order, for all values, in both directions, and ranges hold exactly what they say.

use std::cmp::Ordering;

use orrery_index::{
    CompositeRange, ENTRY_BYTES_MAX, STRING_BYTES_MAX, ValueRange, decode, encode_component, encode_value,
    is_exact, kind_of, split, split_component,
};
use orrery_model::{Decimal128, Extended, Kind, Number, ParseOptions, Raw, Value, parse_extended_json};
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

fn decimal() -> impl Strategy<Value = Value> {
    let of = |text: String| Value::from(Extended::Decimal(Decimal128::parse(&text).expect("a decimal")));
    prop_oneof![
        any::<[u8; 16]>().prop_map(|bits| Extended::Decimal(Decimal128::from_le_bytes(bits)).into()),
        (any::<i64>(), -25i32..25).prop_map(move |(digits, exponent)| of(format!("{digits}E{exponent}"))),
        (-50i64..50, -2i32..2).prop_map(move |(digits, exponent)| of(format!("{digits}E{exponent}"))),
        // The same value as some number, or next to one.
        (number(), -1i64..2).prop_map(move |(number, step)| of(match number {
            Number::Int(value) => format!("{value}.{}", if step == 0 { 0 } else { 5 }),
            Number::UInt(value) => format!("{value}{}", if step == 0 { ".000" } else { ".001" }),
            Number::Double(value) => format!("{value:.*e}", if step == 0 { 20 } else { 33 }),
        })),
        Just(of("-0".to_owned())),
        Just(of("Infinity".to_owned())),
        Just(of("-Infinity".to_owned())),
    ]
}

fn extended() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => decimal(),
        1 => any::<[u8; 12]>().prop_map(|id| Extended::ObjectId(id).into()),
        1 => any::<i64>().prop_map(|date| Extended::Date(date).into()),
        1 => (-3i64..3).prop_map(|date| Extended::Date(date).into()),
        1 => (0u32..3, any::<u32>())
            .prop_map(|(seconds, increment)| Extended::Timestamp { seconds, increment }.into()),
        2 => (0u8..3, prop::collection::vec(0u8..3, 0..4))
            .prop_map(|(subtype, bytes)| Extended::Binary { subtype, bytes: &bytes }.into()),
        1 => (0u8..2, prop::collection::vec(0u8..2, 62..68))
            .prop_map(|(subtype, bytes)| Extended::Binary { subtype, bytes: &bytes }.into()),
        2 => ("[\u{1}a]{0,3}", "[ix]{0,2}")
            .prop_map(|(pattern, options)| Extended::Regex { pattern: &pattern, options: &options }.into()),
        1 => "[ab]{60,70}".prop_map(|pattern| Extended::Regex { pattern: &pattern, options: "i" }.into()),
        1 => text().prop_map(|text| Extended::Code(&text).into()),
        1 => Just(Extended::MinKey.into()),
        1 => Just(Extended::MaxKey.into()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![4 => plain(), 3 => extended()]
}

fn plain() -> impl Strategy<Value = Value> {
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

/// Decimals lie among the numbers, so a range that is made of one holds numbers, too.
fn is_number_beside_decimal(a: &Value, b: &Value) -> bool {
    (a.kind(), b.kind()) == (Some(Kind::Number), Some(Kind::Decimal))
}

/// Whether an entry takes part in the order of entries.
fn is_ordered(encoded: &[u8]) -> bool {
    is_exact(encoded) || kind_of(encoded) == Some(Kind::Decimal)
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
        if is_ordered(&x) || is_ordered(&y) {
            prop_assert_eq!(order, compare(&a, &b), "{:?} {:?} {:02x?} {:02x?}", a, b, x, y);
        } else if x[0] != y[0] {
            prop_assert_eq!(order, compare(&a, &b));
        }
        if compare(&a, &b) == Ordering::Equal {
            prop_assert_eq!(&x, &y);
        }
        let (x, y) = (component(&a, true), component(&b, true));
        if is_ordered(&encoded(&a)) || is_ordered(&encoded(&b)) {
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
        prop_assume!(!is_number_beside_decimal(&a, &b));
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
        prop_assume!(!bound.is_undefined() && !is_number_beside_decimal(&item.1, &bound));
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
fn encodings_of_other_apis_are_frozen() {
    let vectors = include_str!("../../model/tests/data/extended_values.tsv");
    for line in vectors.lines().filter(|line| !line.starts_with('#')) {
        let [json, _, key, _] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let document = parse_extended_json(json.as_bytes(), &ParseOptions::default()).expect(json);
        let raw = Raw::document(&document).expect("just written");
        let bytes = encoded(&raw.to_value());
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, key, "{json}");
        assert_eq!(kind_of(&bytes), Some(raw.kind()), "{json}");
        assert_eq!(split(&bytes), Some((&bytes[..], &[][..])), "{json}");
    }
}

#[test]
fn all_widths_of_a_number_are_one_key_and_decimals_stand_beside_it() {
    let key = |json: &str| {
        let document = parse_extended_json(json.as_bytes(), &ParseOptions::default()).expect(json);
        encoded(&Raw::document(&document).expect("just written").to_value())
    };
    let one = key("1");
    assert_eq!(one, key(r#"{"$numberLong":"1"}"#));
    assert_eq!(one, key(r#"{"$numberDouble":"1"}"#));
    assert_eq!(key(r#"{"$numberDecimal":"1"}"#), key(r#"{"$numberDecimal":"1.000"}"#));
    let rising = [
        key("0.99999999999999989"),
        one,
        key(r#"{"$numberDecimal":"1"}"#),
        key(r#"{"$numberDecimal":"1.000000000000000000000000000000001"}"#),
        key("1.0000000000000002"),
    ];
    assert!(rising.is_sorted_by(|a, b| a < b), "{rising:02x?}");
    let bytes = key(r#"{"$numberDecimal":"1"}"#);
    assert!(decode(&bytes).is_none() && !is_exact(&bytes));
    assert!(ValueRange::of_kind(Kind::Number).contains(&bytes));
    assert!(!ValueRange::equal(&Value::from(1)).contains(&bytes));
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
