//! Properties of the language over random documents, filters and updates.

use std::collections::BTreeMap;
use std::sync::Arc;

use orrery_model::{DocWriter, Raw};
use orrery_mongo::filter::{Filter, Matched};
use orrery_mongo::projection::Projection;
use orrery_mongo::update::Update;
use orrery_mongo::{Bson, Context, Document, ValueRef, codec, doc};
use proptest::prelude::*;

fn leaf() -> impl Strategy<Value = Bson> {
    prop_oneof![
        (0..4i32).prop_map(Bson::Int32),
        (0..4i64).prop_map(Bson::Int64),
        (0..8i32).prop_map(|half| Bson::Double(f64::from(half) / 2.0)),
        "[ab]{0,2}".prop_map(Bson::from),
        Just(Bson::Null),
        any::<bool>().prop_map(Bson::Bool),
        Just(Bson::Double(f64::NAN)),
        Just(Bson::MinKey),
    ]
}

fn value() -> impl Strategy<Value = Bson> {
    leaf().prop_recursive(2, 12, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Bson::array),
            members(inner).prop_map(Bson::Document),
        ]
    })
}

fn members(value: impl Strategy<Value = Bson>) -> impl Strategy<Value = Document> {
    proptest::collection::btree_map("[abc]", value, 0..4)
        .prop_map(|members| members.into_iter().map(|(name, value)| (Arc::from(name), value)).collect())
}

fn path() -> impl Strategy<Value = String> {
    prop_oneof!["[abc]", "[abc]\\.[abc0]", "[abc]\\.[01]\\.[ab]"]
}

fn test() -> impl Strategy<Value = Bson> {
    prop_oneof![
        value(),
        (
            prop_oneof![Just("$eq"), Just("$ne"), Just("$gt"), Just("$gte"), Just("$lt"), Just("$lte")],
            value()
        )
            .prop_map(|(name, value)| Bson::Document(doc! {name => value})),
        (prop_oneof![Just("$in"), Just("$nin"), Just("$all")], proptest::collection::vec(value(), 0..3))
            .prop_map(|(name, values)| Bson::Document(doc! {name => values})),
        any::<bool>().prop_map(|exists| Bson::Document(doc! {"$exists" => exists})),
        (0..3i32).prop_map(|size| Bson::Document(doc! {"$size" => size})),
        prop_oneof![Just("array"), Just("number"), Just("string"), Just("object"), Just("null")]
            .prop_map(|kind| Bson::Document(doc! {"$type" => kind})),
        leaf().prop_map(|bound| Bson::Document(doc! {"$elemMatch" => doc! {"$gte" => bound}})),
        ("[abc]", leaf()).prop_map(|(name, value)| {
            let mut inner = Document::new();
            inner.push(name, value);
            Bson::Document(doc! {"$elemMatch" => inner})
        }),
    ]
}

fn filter() -> impl Strategy<Value = Document> {
    proptest::collection::vec((path(), test()), 1..3).prop_map(|conditions| {
        let mut filter = Document::new();
        for (path, test) in conditions {
            filter.set(&path, test);
        }
        filter
    })
}

fn stored(document: &Document) -> Vec<u8> {
    let mut writer = DocWriter::keeping_widths(64);
    codec::write_stored(document.into(), &mut writer);
    writer.finish()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// A filter says the same of stored bytes and of values, and its negation the opposite.
    #[test]
    fn filters_agree(document in members(value()), filter in filter()) {
        let context = Context::for_tests();
        // Documents that are made of operators by chance are refused.
        let Ok(parsed) = Filter::parse(&filter, &context) else { return Ok(()) };
        let matches = parsed.matches((&document).into(), &context).unwrap();
        let bytes = stored(&document);
        let raw = ValueRef::Stored(Raw::document(&bytes).unwrap());
        prop_assert_eq!(parsed.matches(raw, &context).unwrap(), matches);
        let nor = Filter::parse(&doc! {"$nor" => vec![Bson::Document(filter.clone())]}, &context).unwrap();
        prop_assert_eq!(nor.matches(raw, &context).unwrap(), !matches);
        let or = Filter::parse(&doc! {"$or" => vec![Bson::Document(filter.clone()), Bson::Document(filter)]}, &context);
        prop_assert_eq!(or.unwrap().matches(raw, &context).unwrap(), matches);
    }

    /// Updates of members are what they would be of a map.
    #[test]
    fn updates_agree_with_a_map(
        numbers in proptest::collection::btree_map("[a-e]", 0..100i32, 0..5),
        changes in proptest::collection::btree_map("[a-e]", (0..5usize, -9..10i32), 1..5),
    ) {
        let context = Context::for_tests();
        let before: Document = numbers.iter().map(|(name, n)| (Arc::from(name.as_str()), Bson::Int32(*n))).collect();
        let mut model: BTreeMap<String, i32> = numbers;
        let mut operators: BTreeMap<&str, Document> = BTreeMap::new();
        for (name, (operator, n)) in &changes {
            let operator = ["$set", "$unset", "$inc", "$min", "$max"][*operator];
            operators.entry(operator).or_default().push(name.as_str(), *n);
            let old = model.get(name).copied();
            match operator {
                "$unset" => {
                    model.remove(name);
                }
                _ => {
                    let new = match (operator, old) {
                        ("$inc", Some(old)) => old + n,
                        ("$min", Some(old)) => old.min(*n),
                        ("$max", Some(old)) => old.max(*n),
                        _ => *n,
                    };
                    model.insert(name.clone(), new);
                }
            }
        }
        let update: Document =
            operators.into_iter().map(|(name, paths)| (Arc::from(name), Bson::Document(paths))).collect();
        let update = Update::parse(&Bson::Document(update), None, &context).unwrap();
        let updated = update.apply((&before).into(), &Matched::default(), &context).unwrap();
        let got: BTreeMap<String, i32> = updated
            .document
            .iter()
            .map(|(name, value)| (name.to_string(), value.as_i64().unwrap() as i32))
            .collect();
        prop_assert_eq!(&got, &model);
        // What it says it changed leads from one to the other.
        let mut replayed = before.clone();
        updated.unset.iter().for_each(|name| {
            replayed.remove(name);
        });
        updated.set.iter().for_each(|(name, value)| replayed.set(name, value.clone()));
        prop_assert_eq!(&replayed, &updated.document);
        prop_assert_eq!(updated.modified, !before.is_identical(&updated.document));
    }

    /// A projection written from stored bytes is what it makes of values.
    #[test]
    fn projections_agree(
        document in members(value()),
        paths in proptest::collection::btree_set("[abc](\\.[ab])?", 1..3),
        keeps in any::<bool>(),
        slice in proptest::option::of(-3..4i32),
    ) {
        let context = Context::for_tests();
        let mut projection = Document::new();
        for (at, path) in paths.iter().enumerate() {
            match slice {
                Some(slice) if at == 0 => projection.push(path.as_str(), doc! {"$slice" => slice}),
                _ => projection.push(path.as_str(), keeps),
            }
        }
        let Ok(projection) = Projection::parse(&projection, None, &context) else { return Ok(()) };
        let bytes = stored(&document);
        let raw = ValueRef::Stored(Raw::document(&bytes).unwrap());
        let (mut written, mut built) = (Vec::new(), Vec::new());
        projection.write(raw, &context, &mut written).unwrap();
        codec::write_document((&projection.apply((&document).into(), &context).unwrap()).into(), &mut built);
        prop_assert_eq!(written, built);
    }

    /// What a filter fixes is what an upsert inserts, and the filter matches it.
    #[test]
    fn upserts_match_their_filter(fixed in members(leaf())) {
        let context = Context::for_tests();
        let Ok(filter) = Filter::parse(&fixed, &context) else { return Ok(()) };
        let update = Update::parse(&Bson::Document(doc! {"$set" => doc! {"z" => 1}}), None, &context).unwrap();
        let inserted = update.upsert(&filter, &context).unwrap();
        prop_assert!(filter.matches((&inserted).into(), &context).unwrap());
    }
}
