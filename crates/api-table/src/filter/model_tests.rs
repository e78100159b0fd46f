//! Any filter over any entities, against what the protocol says about one comparison at a time.

use std::cmp::Ordering;

use orrery_model::{Raw, Value};
use orrery_query::{Prepared, RowView, run_all};
use proptest::prelude::*;

use super::{Comparison, Compiled, Filter, Literal, Operator, compile, query_env};
use crate::edm::{EdmValue, stored_ticks};
use crate::entity::Entity;
use crate::stored;

const PROPERTIES: [&str; 3] = ["A", "B", "id"];
/// The timestamp of all entities: half a second past the start of 2020.
const TICKS: u64 = 637_134_336_005_000_000;
const SECOND: i64 = 1_577_836_800;

type Properties = Vec<(String, EdmValue<'static>)>;

fn value() -> impl Strategy<Value = EdmValue<'static>> {
    prop_oneof![
        prop_oneof!["[a-c]{0,2}", Just("ü".to_owned()), Just("💡".to_owned()), Just("\u{ffee}".to_owned())]
            .prop_map(|text| EdmValue::String(text.into())),
        any::<bool>().prop_map(EdmValue::Boolean),
        (-3..4i32).prop_map(EdmValue::Int32),
        prop_oneof![-3..4i64, Just(i64::MIN), Just(i64::MAX), Just(-100), Just(100)]
            .prop_map(EdmValue::Int64),
        prop_oneof![
            Just(-2.5),
            Just(0.0),
            Just(1.0),
            Just(2.5),
            Just(f64::NAN),
            Just(1e30),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY)
        ]
        .prop_map(EdmValue::Double),
        (0..3u64).prop_map(|n| EdmValue::DateTime(TICKS + n)),
        (0..2u8).prop_map(|n| EdmValue::Guid(format!("00000000-0000-0000-0000-00000000000{n}").into())),
        prop_oneof![Just("AAE="), Just("AQ==")].prop_map(|text| EdmValue::Binary(text.into())),
    ]
}

fn literal() -> impl Strategy<Value = Literal> {
    value().prop_filter_map("a literal", |value| {
        Some(match value {
            EdmValue::String(text) => Literal::String(text.into_owned()),
            EdmValue::Boolean(value) => Literal::Boolean(value),
            EdmValue::Int32(value) => Literal::Integer(i64::from(value)),
            EdmValue::Int64(value) => Literal::Integer(value),
            EdmValue::Double(value) if !value.is_finite() => return None,
            EdmValue::Double(value) => Literal::Double(value),
            EdmValue::DateTime(ticks) => Literal::DateTime(ticks),
            EdmValue::Guid(text) => Literal::Guid(text.into_owned()),
            EdmValue::Binary(text) => Literal::Binary(text.into_owned()),
        })
    })
}

fn operator() -> impl Strategy<Value = Operator> {
    prop_oneof![
        Just(Operator::Equal),
        Just(Operator::NotEqual),
        Just(Operator::Greater),
        Just(Operator::GreaterOrEqual),
        Just(Operator::Less),
        Just(Operator::LessOrEqual),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    let names = prop_oneof![
        4 => prop::sample::select(&PROPERTIES[..]),
        1 => prop::sample::select(&["PartitionKey", "RowKey", "Timestamp", "None"][..]),
    ];
    let comparison = (names, operator(), literal())
        .prop_filter("bytes have no order", |(_, operator, literal)| {
            !matches!(literal, Literal::Binary(_)) || matches!(operator, Operator::Equal | Operator::NotEqual)
        })
        .prop_map(|(property, operator, value)| {
            Filter::Compare(Comparison { property: property.to_owned(), operator, value })
        });
    let leaf = prop_oneof![9 => comparison, 1 => any::<bool>().prop_map(Filter::Constant)];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 2..4).prop_map(Filter::Or),
            inner.prop_map(|inner| Filter::Not(Box::new(inner))),
        ]
    })
}

fn entity() -> impl Strategy<Value = (String, Properties)> {
    let property = |name: &'static str| prop::option::of(value()).prop_map(move |value| (name, value));
    let properties = (property("A"), property("B"), property("id")).prop_map(|(a, b, id)| {
        [a, b, id].into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    });
    ("[a-c]{0,2}", properties)
}

/// What the protocol says of one comparison: false for what is missing or of another type.
fn compares(value: &EdmValue<'_>, literal: &Literal) -> Option<Ordering> {
    let by_code_unit = |left: &str, right: &str| left.encode_utf16().cmp(right.encode_utf16());
    // Integers are compared exactly, and with doubles as doubles are: what a double can tell apart.
    match (value, literal) {
        (EdmValue::String(left), Literal::String(right))
        | (EdmValue::Guid(left), Literal::Guid(right))
        | (EdmValue::Binary(left), Literal::Binary(right)) => Some(by_code_unit(left, right)),
        (EdmValue::Boolean(left), Literal::Boolean(right)) => Some(left.cmp(right)),
        (EdmValue::DateTime(left), Literal::DateTime(right)) => Some(left.cmp(right)),
        (EdmValue::Int32(left), Literal::Integer(right)) => Some(i64::from(*left).cmp(right)),
        (EdmValue::Int64(left), Literal::Integer(right)) => Some(left.cmp(right)),
        (EdmValue::Int32(left), Literal::Double(right)) => f64::from(*left).partial_cmp(right),
        (EdmValue::Int64(left), Literal::Double(right)) => (*left as f64).partial_cmp(right),
        (EdmValue::Double(left), Literal::Double(right)) => left.partial_cmp(right),
        (EdmValue::Double(left), Literal::Integer(right)) => left.partial_cmp(&(*right as f64)),
        _ => None,
    }
}

fn holds(filter: &Filter, row_key: &str, properties: &Properties) -> bool {
    match filter {
        Filter::Constant(value) => *value,
        Filter::And(parts) => parts.iter().all(|part| holds(part, row_key, properties)),
        Filter::Or(parts) => parts.iter().any(|part| holds(part, row_key, properties)),
        Filter::Not(inner) => !holds(inner, row_key, properties),
        Filter::Compare(Comparison { property, operator, value }) => {
            let text = |text: &str| Some(EdmValue::String(text.to_owned().into()));
            let found = match property.as_str() {
                "PartitionKey" => text("p"),
                "RowKey" => text(row_key),
                "Timestamp" => Some(EdmValue::DateTime(TICKS)),
                name => properties.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone()),
            };
            // A double that is no number is unequal to every number.
            let numeric = matches!(value, Literal::Integer(_) | Literal::Double(_));
            if numeric && matches!(found, Some(EdmValue::Double(found)) if found.is_nan()) {
                return *operator == Operator::NotEqual;
            }
            let Some(order) = found.and_then(|found| compares(&found, value)) else { return false };
            match operator {
                Operator::Equal => order.is_eq(),
                Operator::NotEqual => order.is_ne(),
                Operator::Greater => order.is_gt(),
                Operator::GreaterOrEqual => order.is_ge(),
                Operator::Less => order.is_lt(),
                Operator::LessOrEqual => order.is_le(),
            }
        }
    }
}

proptest! {
    #[test]
    fn a_filter_lets_through_what_it_says(filter in filter(), entities in prop::collection::vec(entity(), 1..8)) {
        let Compiled { query, prepared, .. } = compile(Some(&filter)).unwrap();
        // Other nodes get the query as text.
        let read = orrery_sql::parse_query(&query.to_string()).unwrap_or_else(|error| panic!("{query}: {error}"));
        let again = Prepared::new(&read, &[], &query_env()).unwrap();
        let system = vec![("_etag", Value::from(stored_ticks(TICKS).as_str())), ("_ts", Value::from(SECOND))];
        for (row_key, properties) in &entities {
            let named = properties.iter().map(|(name, value)| (name.clone().into(), value.clone())).collect();
            let item = stored::write("p", row_key, &Entity { properties: named, ..Entity::default() });
            let row = RowView { document: Raw::document(&item).unwrap(), system: &system, appended: 0 };
            let passed = !run_all(&prepared, [row]).unwrap().is_empty();
            prop_assert_eq!(passed, holds(&filter, row_key, properties), "{:?} {:?}", row_key, properties);
            prop_assert_eq!(passed, !run_all(&again, [row]).unwrap().is_empty(), "{}", query);
        }
    }
}
