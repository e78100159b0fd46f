//! Random JSON for the property tests, kept as `serde_json` values so that another implementation is the judge.
#![allow(dead_code, reason = "each test program uses its own part")]

use orrery_model::{Kind, Number, NumberStyle, ParseOptions, Raw, Value, parse_json};
use proptest::prelude::*;
use serde_json::Value as Json;

pub fn stored(text: &str) -> Vec<u8> {
    parse_json(text.as_bytes(), &ParseOptions::default()).unwrap_or_else(|error| panic!("{error} in {text}"))
}

pub fn print(document: &[u8]) -> String {
    let mut out = Vec::new();
    Raw::document(document).unwrap().write_json(&mut out, NumberStyle::Query);
    String::from_utf8(out).unwrap()
}

pub fn value(text: &str) -> Value {
    orrery_model::parse_json_value(text.as_bytes()).unwrap()
}

/// Any JSON value, with the numbers, names and strings that are likely to break something.
pub fn json() -> impl Strategy<Value = Json> {
    let leaf = prop_oneof![
        Just(Json::Null),
        any::<bool>().prop_map(Json::from),
        (-70i64..70).prop_map(Json::from),
        any::<i64>().prop_map(Json::from),
        any::<u64>().prop_map(Json::from),
        any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Json::from),
        any::<f32>().prop_filter("finite", |n| n.is_finite()).prop_map(|n| Json::from(f64::from(n))),
        (-1000i32..1000).prop_map(|n| Json::from(f64::from(n) / 8.0)),
        string().prop_map(Json::from),
        prop::collection::vec(any::<f32>().prop_filter("finite", |n| n.is_finite()), 4..12)
            .prop_map(|floats| floats.into_iter().map(f64::from).collect()),
        prop::collection::vec(-1e6..1e6f64, 4..12).prop_map(|floats| floats.into_iter().collect()),
    ];
    leaf.prop_recursive(4, 64, 10, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..10).prop_map(Json::from), object(inner),]
    })
}

pub fn object(inner: impl Strategy<Value = Json>) -> impl Strategy<Value = Json> {
    prop::collection::vec((name(), inner), 0..12)
        .prop_map(|members| Json::Object(members.into_iter().collect()))
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-e]", "[a-z]{1,12}", "[\u{0}\"\\\\é日]{0,3}", ".{0,20}"]
}

fn string() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z ]{0,10}", ".{0,40}", "[\u{0}-\u{1f}\"\\\\/]{0,10}", "[a-z]{120,140}"]
}

/// Whether a stored value is the JSON value, numbers exactly and members in order.
pub fn same(raw: Raw<'_>, json: &Json) -> bool {
    match (raw.kind(), json) {
        (Kind::Null, Json::Null) => true,
        (Kind::Bool, Json::Bool(b)) => raw.as_bool() == Some(*b),
        (Kind::String, Json::String(s)) => raw.as_str() == Some(s),
        (Kind::Number, Json::Number(n)) => {
            let expected = if let Some(n) = n.as_i64() {
                Number::Int(n)
            } else if let Some(n) = n.as_u64() {
                Number::UInt(n)
            } else {
                Number::Double(n.as_f64().unwrap())
            };
            raw.as_number() == Some(expected)
        }
        (Kind::Array, Json::Array(elements)) => {
            raw.len() == elements.len()
                && raw.elements().count() == elements.len()
                && raw.elements().zip(elements).all(|(raw, json)| same(raw, json))
                && elements.iter().enumerate().all(|(i, json)| raw.at(i).is_some_and(|raw| same(raw, json)))
                && raw.at(elements.len()).is_none()
        }
        (Kind::Object, Json::Object(members)) => {
            raw.len() == members.len()
                && raw.members().count() == members.len()
                && raw.members().zip(members).all(|((key, raw), (name, json))| key == name && same(raw, json))
                && members.iter().all(|(name, json)| raw.get(name).is_some_and(|raw| same(raw, json)))
        }
        _ => false,
    }
}

/// Any value that JSON has no word for, as bytes to make one of.
pub fn extended() -> impl Strategy<Value = Value> {
    use orrery_model::{Decimal128, Extended};
    prop_oneof![
        any::<[u8; 12]>().prop_map(|id| Extended::ObjectId(id).into()),
        any::<i64>().prop_map(|date| Extended::Date(date).into()),
        (0i64..300_000_000_000_000).prop_map(|date| Extended::Date(date).into()),
        any::<(u32, u32)>()
            .prop_map(|(seconds, increment)| Extended::Timestamp { seconds, increment }.into()),
        any::<[u8; 16]>().prop_map(|bits| {
            // The same value in its ordinary spelling, which is the one that its text reads as.
            let text = Decimal128::from_le_bytes(bits).to_string();
            Extended::Decimal(Decimal128::parse(&text).unwrap()).into()
        }),
        (any::<u64>(), -30i32..30).prop_map(|(digits, exponent)| {
            Extended::Decimal(Decimal128::parse(&format!("{digits}E{exponent}")).unwrap()).into()
        }),
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..200))
            .prop_map(|(subtype, bytes)| Extended::Binary { subtype, bytes: &bytes }.into()),
        ("[^\u{0}]{0,20}", "[imsx]{0,4}").prop_map(|(pattern, options)| Extended::Regex {
            pattern: &pattern,
            options: &options
        }
        .into()),
        string().prop_map(|text| Extended::Code(&text).into()),
        Just(Extended::MinKey.into()),
        Just(Extended::MaxKey.into()),
    ]
}

/// Arrays and objects of all values that can be stored.
pub fn typed() -> impl Strategy<Value = Value> {
    let plain = json().prop_map(|json| value(&json.to_string()));
    prop_oneof![2 => extended(), 1 => plain].prop_recursive(3, 32, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::btree_map(name(), inner, 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
