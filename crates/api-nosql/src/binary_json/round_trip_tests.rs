//! Whatever is written is read back as the same value.

use orrery_model::{ParseOptions, Raw, equal_raw, parse_json};
use proptest::prelude::*;
use serde_json::Value;

use super::{Features, from_text, to_text};

fn stored(text: &[u8]) -> Vec<u8> {
    parse_json(text, &ParseOptions::default()).expect("it is JSON")
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-300i64..300).prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no word for it", |n| n.is_finite()).prop_map(Value::from),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![".{0,8}", ".{60,70}", "[a-z]{250,260}", Just("_rid".to_owned()), Just("Polygon".to_owned())]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        number(),
        text().prop_map(Value::from)
    ];
    leaf.prop_recursive(6, 400, 40, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..20)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_written_is_read_as_the_same_value(value in value()) {
        let text = value.to_string();
        let binary = from_text(text.as_bytes(), Features { uint64: true }).expect("it is JSON");
        let back = to_text(&binary).expect("we have written it");
        // A whole number may come back without its point: the number is the same.
        let (back, given) = (stored(&back), stored(text.as_bytes()));
        prop_assert!(equal_raw(Raw::document(&back).unwrap(), Raw::document(&given).unwrap()), "{text}");
    }
}

#[test]
fn a_text_that_is_none_is_not_written() {
    for text in ["", "{", "[1,]", "nul"] {
        assert!(from_text(text.as_bytes(), Features::default()).is_none(), "{text}");
    }
}
