//! Values survive their way through BSON, the stored form and Extended JSON; the order of values is one.

use std::cmp::Ordering;
use std::sync::Arc;

use orrery_model::{Decimal128, DocWriter, Raw};
use orrery_mongo::ext_json::{Reading, Style, parse, to_text};
use orrery_mongo::order::{compare, identity};
use orrery_mongo::{Bson, Document, ValueRef, codec, value};
use proptest::prelude::*;

fn scalar() -> impl Strategy<Value = Bson> {
    prop_oneof![
        any::<i32>().prop_map(Bson::Int32),
        (-3..4i32).prop_map(Bson::Int32),
        any::<i64>().prop_map(Bson::Int64),
        (-3..4i64).prop_map(Bson::Int64),
        any::<f64>().prop_map(Bson::Double),
        (-4..5i32).prop_map(|half| Bson::Double(f64::from(half) / 2.0)),
        Just(Bson::Double(f64::NAN)),
        any::<[u8; 16]>().prop_map(|bytes| Bson::Decimal(Decimal128::from_le_bytes(bytes))),
        (-4..5i32).prop_map(|half| {
            let text = format!("{}.{}0", half / 2, if half % 2 == 0 { 0 } else { 5 });
            Bson::Decimal(Decimal128::parse(&text).unwrap())
        }),
        "[a-c\u{e9}\"\\\\\n]{0,4}".prop_map(Bson::from),
        any::<bool>().prop_map(Bson::Bool),
        Just(Bson::Null),
        any::<i64>().prop_map(Bson::Date),
        any::<[u8; 12]>().prop_map(Bson::ObjectId),
        (any::<u32>(), any::<u32>()).prop_map(|(seconds, increment)| Bson::Timestamp { seconds, increment }),
        (0..3u8, proptest::collection::vec(0..3u8, 0..4))
            .prop_map(|(subtype, bytes)| Bson::Binary { subtype, bytes: bytes.into() }),
        ("[a-c]{0,3}", prop_oneof![Just(""), Just("i"), Just("im")]).prop_map(|(pattern, options)| {
            Bson::Regex(Arc::new(value::Regex { pattern: pattern.into(), options: options.into() }))
        }),
        "[a-c]{0,3}".prop_map(|text| Bson::Code(text.into())),
        Just(Bson::MinKey),
        Just(Bson::MaxKey),
    ]
}

fn any_value() -> impl Strategy<Value = Bson> {
    scalar().prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Bson::array),
            members(inner).prop_map(Bson::Document),
        ]
    })
}

fn members(value: impl Strategy<Value = Bson>) -> impl Strategy<Value = Document> {
    proptest::collection::btree_map("[a-d]{1,2}", value, 0..4)
        .prop_map(|members| members.into_iter().map(|(name, value)| (Arc::from(name), value)).collect())
}

/// The same to the byte, widths and signs of zero included.
fn bytes_of(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    codec::write_element("v", value, &mut out);
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn bson_comes_back(document in members(any_value())) {
        let mut bytes = Vec::new();
        codec::write_document((&document).into(), &mut bytes);
        let back = codec::read_document(&bytes).unwrap();
        prop_assert_eq!(bytes_of((&back).into()), bytes_of((&document).into()));
    }

    #[test]
    fn the_stored_form_comes_back(document in members(any_value())) {
        let mut writer = DocWriter::keeping_widths(64);
        codec::write_stored((&document).into(), &mut writer);
        let stored = writer.finish();
        let raw = ValueRef::Stored(Raw::document(&stored).unwrap());
        prop_assert_eq!(bytes_of(raw), bytes_of((&document).into()));
        prop_assert_eq!(bytes_of((&raw.to_bson()).into()), bytes_of((&document).into()));
        // Straight from BSON is the same.
        let mut bytes = Vec::new();
        codec::write_document((&document).into(), &mut bytes);
        let mut direct = DocWriter::keeping_widths(64);
        direct.begin_object();
        for element in codec::elements(&bytes).unwrap() {
            let (name, element) = element.unwrap();
            direct.key(name);
            element.write_stored(&mut direct).unwrap();
        }
        direct.end_object();
        prop_assert_eq!(direct.finish(), stored);
    }

    #[test]
    fn canonical_text_comes_back(document in members(any_value())) {
        let text = to_text((&document).into(), Style::Canonical);
        let back = parse(&text, Reading::Data).unwrap();
        // NaN has many bits and one text; decimals print all that they say.
        prop_assert_eq!(to_text((&back).into(), Style::Canonical), text);
        prop_assert_eq!(compare((&back).into(), (&document).into(), None), Ordering::Equal);
    }

    #[test]
    fn the_order_is_total(a in any_value(), b in any_value(), c in any_value()) {
        let order = |a: &Bson, b: &Bson| compare(a.into(), b.into(), None);
        prop_assert_eq!(order(&a, &a), Ordering::Equal);
        prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
        if order(&a, &b).is_le() && order(&b, &c).is_le() {
            prop_assert!(order(&a, &c).is_le());
        }
        let identity = |value: &Bson| {
            let mut out = Vec::new();
            identity(value.into(), None, &mut out);
            out
        };
        prop_assert_eq!(order(&a, &b).is_eq(), identity(&a) == identity(&b));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut framed = (bytes.len() as u32 + 5).to_le_bytes().to_vec();
        framed.extend_from_slice(&bytes);
        framed.push(0);
        if let Ok(document) = codec::read_document(&framed) {
            let mut out = Vec::new();
            codec::write_document((&document).into(), &mut out);
            codec::read_document(&out).unwrap();
        }
    }
}
