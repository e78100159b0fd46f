//! Values that JSON has no word for: their bytes, their JSON form and the way back, their order, and damage.

mod common;

use common::{extended, print, stored, typed};
use orrery_model::{
    Decimal128, DocWriter, Extended, KeyComponent, Kind, Number, NumberStyle, NumberWidth, ParseOptions, Raw,
    Value, bson_order, compare_raw, equal_raw, parse_extended_json,
};
use proptest::prelude::*;
use std::cmp::Ordering;

fn read(text: &str) -> Vec<u8> {
    parse_extended_json(text.as_bytes(), &ParseOptions::default())
        .unwrap_or_else(|error| panic!("{error} in {text}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn stored_bytes_and_json_are_frozen() {
    for line in include_str!("data/extended_values.tsv").lines().filter(|line| !line.starts_with('#')) {
        let [text, bytes, _, json] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let document = read(text);
        assert_eq!((hex(&document).as_str(), print(&document).as_str()), (bytes, json), "{text}");
        assert!(Raw::document(&document).unwrap().verify().is_ok());
    }
}

#[test]
fn identities_are_frozen_and_see_no_zeros_at_the_end() {
    let identity = |text: &str| {
        let mut out = Vec::new();
        Raw::document(&read(text)).unwrap().as_extended().unwrap().write_identity(&mut out);
        hex(&out)
    };
    let one = "260000000000000000000a5bc138938d44c64d310000";
    assert_eq!(identity(r#"{"$numberDecimal":"1.0"}"#), one);
    assert_eq!(identity(r#"{"$numberDecimal":"1.000"}"#), one);
    assert_eq!(identity(r#"{"$oid":"507f1f77bcf86cd799439011"}"#), "23507f1f77bcf86cd799439011");
    assert_eq!(identity(r#"{"$timestamp":{"t":1,"i":2}}"#), "250100000002000000");
    assert_eq!(identity(r#"{"$regularExpression":{"pattern":"a","options":"i"}}"#), "28610069");
    assert_eq!(identity(r#"{"$maxKey":1}"#), "2b");
}

#[test]
fn they_are_no_partition_keys() {
    for line in include_str!("data/extended_values.tsv").lines().filter(|line| !line.starts_with('#')) {
        let document = read(line.split('\t').next().unwrap());
        let raw = Raw::document(&document).unwrap();
        assert_eq!(KeyComponent::from_raw(raw).is_none(), raw.kind().is_extended(), "{line}");
    }
}

#[test]
fn widths_are_kept_and_seen_as_one_number() {
    let mut writer = DocWriter::keeping_widths(0);
    let longs = [0, -1, 63, 127, 128, -129, 32_768, i64::from(i32::MAX), i64::from(i32::MAX) + 1, i64::MIN];
    writer.begin_array();
    for value in longs {
        writer.int64(value);
    }
    for value in [0, 63, 64, i32::MIN, i32::MAX] {
        writer.int32(value);
    }
    for value in [0.0, -0.0, 1.0, 0.5, 0.1, 1e300, f64::NAN] {
        writer.double(value);
    }
    writer.end_array();
    let document = writer.finish();
    let array = Raw::document(&document).unwrap();
    assert!(array.verify().is_ok());
    let widths: Vec<_> = array.elements().map(|element| element.number_width().unwrap()).collect();
    let wanted =
        [vec![NumberWidth::Int64; 10], vec![NumberWidth::Int32; 5], vec![NumberWidth::Double; 7]].concat();
    assert_eq!(widths, wanted);
    for (element, value) in array.elements().zip(longs) {
        assert_eq!((element.kind(), element.as_number()), (Kind::Number, Some(Number::Int(value))));
        let plain = stored(&value.to_string());
        let plain = Raw::document(&plain).unwrap();
        assert_eq!(compare_raw(element, plain), Ordering::Equal);
        assert!(equal_raw(element, plain));
    }
    assert_eq!(
        print(&document),
        "[0,-1,63,127,128,-129,32768,2147483647,2147483648,-9223372036854775808,0,63,64,-2147483648,2147483647,\
         0,0,1,0.5,0.1,1e+300,\"NaN\"]"
    );
}

#[test]
fn arrays_are_packed_only_where_no_width_is_lost() {
    let width_of_second = |document: &[u8]| Raw::document(document).unwrap().at(1).unwrap().number_width();
    // What SQL stores is packed as ever.
    assert_eq!(width_of_second(&stored("[0.5,1,2,3]")), Some(NumberWidth::Double));
    assert_eq!(width_of_second(&read("[0.5,1,2,3]")), Some(NumberWidth::Int32));
    let doubles = read("[0.5,1.5,2.5,3.5]");
    assert_eq!(doubles, stored("[0.5,1.5,2.5,3.5]"), "doubles alone are packed");
    // An integer of 64 bits that is copied by a writer that does not care keeps its width.
    let longs = read(r#"[0.5,{"$numberLong":"1"},2.5,3.5]"#);
    let mut writer = DocWriter::new();
    writer.begin_array();
    Raw::document(&longs).unwrap().elements().for_each(|element| writer.raw(element));
    writer.end_array();
    assert_eq!(width_of_second(&writer.finish()), Some(NumberWidth::Int64));
}

#[test]
fn objects_that_sql_clients_send_stay_objects() {
    let text = r#"{"$oid":"507f1f77bcf86cd799439011"}"#;
    let (sql, other) = (stored(text), read(text));
    let (sql, other) = (Raw::document(&sql).unwrap(), Raw::document(&other).unwrap());
    assert_eq!((sql.kind(), other.kind()), (Kind::Object, Kind::ObjectId));
    assert_eq!(format!("{sql:?}"), format!("{other:?}"));
    assert!(!equal_raw(sql, other) && compare_raw(sql, other) == Ordering::Less);
}

#[test]
fn forms_are_checked_and_other_objects_are_objects() {
    let refused = [
        r#"{"$oid":"507f1f77bcf86cd79943901"}"#,
        r#"{"$oid":"507f1f77bcf86cd79943901g"}"#,
        r#"{"$oid":5}"#,
        r#"{"a":[{"$date":"yesterday"}]}"#,
        r#"{"$date":{"$numberLong":"1.5"}}"#,
        r#"{"$date":true}"#,
        r#"{"$timestamp":{"t":1}}"#,
        r#"{"$timestamp":{"t":1,"i":4294967296}}"#,
        r#"{"$timestamp":{"t":1,"i":2,"x":3}}"#,
        r#"{"$numberDecimal":"1.2.3"}"#,
        r#"{"$numberDecimal":1}"#,
        r#"{"$binary":"AAH/"}"#,
        r#"{"$binary":{"base64":"*","subType":"00"}}"#,
        r#"{"$binary":{"base64":"AAH/","subType":"+1"}}"#,
        r#"{"$regularExpression":{"pattern":"a\u0000b","options":""}}"#,
        r#"{"$regularExpression":{"pattern":"a"}}"#,
        r#"{"$code":null}"#,
        r#"{"$minKey":2}"#,
        r#"{"$numberInt":"2147483648"}"#,
        r#"{"$numberLong":"9223372036854775808"}"#,
        r#"{"$numberDouble":"one"}"#,
    ];
    for text in refused {
        assert!(parse_extended_json(text.as_bytes(), &ParseOptions::default()).is_err(), "{text}");
    }
    for text in
        [r#"{"$oid":"507f","x":1}"#, r#"{"$ref":"c"}"#, r#"{"$code":"f","$scope":{}}"#, "{}", r#"{"a":{}}"#]
    {
        assert_eq!(Raw::document(&read(text)).unwrap().kind(), Kind::Object, "{text}");
        assert_eq!(print(&read(text)), text);
    }
}

/// MongoDB's order of types and of values within them; lines that stand together are equal.
#[test]
fn bson_order_is_that_of_mongodb() {
    let rising: &[&[&str]] = &[
        &[r#"{"$minKey":1}"#],
        &["null"],
        &[r#"{"$numberDouble":"NaN"}"#, r#"{"$numberDecimal":"NaN"}"#],
        &[r#"{"$numberDecimal":"-1E+400"}"#],
        &["-1", r#"{"$numberLong":"-1"}"#, r#"{"$numberDecimal":"-1.0"}"#],
        &["0", r#"{"$numberDouble":"-0.0"}"#, r#"{"$numberDecimal":"-0"}"#],
        &[r#"{"$numberDecimal":"0.1"}"#],
        &["0.1"],
        &["1", "1.0", r#"{"$numberLong":"1"}"#, r#"{"$numberDecimal":"1"}"#],
        &["\"\""],
        &["\"a\""],
        &["{}"],
        &[r#"{"b":1}"#],
        &[r#"{"b":1,"a":1}"#],
        &[r#"{"c":0}"#],
        &[r#"{"a":"x"}"#],
        &["[]"],
        &["[1]"],
        &["[1,1]"],
        &["[2]"],
        &["[\"a\"]"],
        &[r#"{"$binary":{"base64":"","subType":"05"}}"#],
        &[r#"{"$binary":{"base64":"/w==","subType":"00"}}"#],
        &[r#"{"$binary":{"base64":"AA==","subType":"01"}}"#],
        &[r#"{"$binary":{"base64":"AAA=","subType":"00"}}"#],
        &[r#"{"$oid":"507f1f77bcf86cd799439011"}"#],
        &[r#"{"$oid":"507f1f77bcf86cd799439012"}"#],
        &["false"],
        &["true"],
        &[r#"{"$date":{"$numberLong":"-1"}}"#],
        &[r#"{"$date":"1970-01-01T00:00:00Z"}"#],
        &[r#"{"$timestamp":{"t":0,"i":4294967295}}"#],
        &[r#"{"$timestamp":{"t":1,"i":0}}"#],
        &[r#"{"$regularExpression":{"pattern":"a","options":"x"}}"#],
        &[r#"{"$regularExpression":{"pattern":"b","options":""}}"#],
        &[r#"{"$code":"f"}"#],
        &[r#"{"$maxKey":1}"#],
    ];
    for (i, left) in rising.iter().enumerate() {
        for (j, right) in rising.iter().enumerate() {
            for (a, b) in left.iter().flat_map(|a| right.iter().map(move |b| (a, b))) {
                let (x, y) = (read(a), read(b));
                let order = bson_order(Raw::document(&x).unwrap(), Raw::document(&y).unwrap());
                assert_eq!(order, i.cmp(&j), "{a} against {b}");
            }
        }
    }
}

#[test]
fn kinds_of_other_apis_have_their_places_in_the_order() {
    let rising = [
        r#"{"$minKey":1}"#,
        "null",
        "false",
        r#"{"$numberDouble":"NaN"}"#,
        r#"{"$numberDecimal":"NaN"}"#,
        r#"{"$numberDecimal":"-Infinity"}"#,
        r#"{"$numberDouble":"-inf"}"#,
        r#"{"$numberDecimal":"-1"}"#,
        "-1",
        r#"{"$numberDecimal":"-1E-6000"}"#,
        "0",
        r#"{"$numberDecimal":"0"}"#,
        r#"{"$numberDecimal":"1E-6000"}"#,
        r#"{"$numberDecimal":"0.1"}"#,
        "0.1",
        "1",
        r#"{"$numberDecimal":"1"}"#,
        r#"{"$numberDouble":"inf"}"#,
        r#"{"$numberDecimal":"Infinity"}"#,
        "\"\"",
        "[]",
        r#"{"$oid":5,"x":1}"#,
        r#"{"$binary":{"base64":"","subType":"00"}}"#,
        r#"{"$oid":"507f1f77bcf86cd799439011"}"#,
        r#"{"$date":"1970-01-01T00:00:00Z"}"#,
        r#"{"$timestamp":{"t":0,"i":0}}"#,
        r#"{"$regularExpression":{"pattern":"a","options":""}}"#,
        r#"{"$code":""}"#,
        r#"{"$maxKey":1}"#,
    ];
    for (i, a) in rising.iter().enumerate() {
        for (j, b) in rising.iter().enumerate() {
            let (x, y) = (read(a), read(b));
            let (x, y) = (Raw::document(&x).unwrap(), Raw::document(&y).unwrap());
            assert_eq!(compare_raw(x, y), i.cmp(&j), "{a} against {b}");
            assert_eq!(x.compare_value(&y.to_value()), i.cmp(&j), "{a} against {b} owned");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn values_come_back_from_the_stored_form_and_from_json(value in extended()) {
        let document = value.to_document();
        let raw = Raw::document(&document).unwrap();
        prop_assert!(raw.verify().is_ok() && raw.kind().is_extended());
        prop_assert_eq!(raw.as_extended(), value.as_extended());
        let owned = raw.to_value();
        prop_assert_eq!(owned.as_extended(), value.as_extended());
        prop_assert_eq!(raw.to_value().kind(), Some(raw.kind()));
        prop_assert_eq!(read(&print(&document)), document.clone());
        let mut out = Vec::new();
        value.write_json(&mut out, NumberStyle::Query);
        prop_assert_eq!(String::from_utf8(out).unwrap(), print(&document));
        serde_json::from_str::<serde_json::Value>(&print(&document)).unwrap();
    }

    #[test]
    fn whole_documents_come_back_from_json(value in typed()) {
        let document = value.to_document();
        let back = read(&print(&document));
        prop_assert!(equal_raw(Raw::document(&document).unwrap(), Raw::document(&back).unwrap()));
        prop_assert_eq!(print(&back), print(&document));
    }

    #[test]
    fn both_orders_are_total(a in typed(), b in typed(), c in typed()) {
        let documents = [&a, &b, &c].map(Value::to_document);
        let [x, y, z] = documents.each_ref().map(|document| Raw::document(document).unwrap());
        for order in [compare_raw, bson_order] {
            prop_assert_eq!(order(x, y), order(y, x).reverse());
            prop_assert_eq!(order(x, x), Ordering::Equal);
            if order(x, y).is_le() && order(y, z).is_le() {
                prop_assert!(order(x, z).is_le());
            }
        }
        prop_assert_eq!(a.compare(&b), compare_raw(x, y));
        prop_assert_eq!(x.compare_value(&b), compare_raw(x, y));
        prop_assert_eq!(compare_raw(x, y) == Ordering::Equal, equal_raw(x, y));
    }

    #[test]
    fn values_are_equal_where_their_identities_are(a in extended(), b in extended()) {
        let identity = |value: &Value| {
            let mut out = Vec::new();
            value.as_extended().unwrap().write_identity(&mut out);
            out
        };
        prop_assert_eq!(identity(&a) == identity(&b), a.equals(&b));
        prop_assert_eq!(identity(&a), identity(&a.clone()));
    }

    #[test]
    fn damaged_values_are_errors_not_panics(
        value in typed(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut document = value.to_document();
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
    fn random_bodies_are_read_without_panic(tag in 0x20u8..0x40, body in prop::collection::vec(any::<u8>(), 0..40)) {
        read_everything(&[&[1, 0, tag], &body[..]].concat());
    }
}

/// Calls every reader. What verifies as sound is read whole, and its copy is sound too.
fn read_everything(document: &[u8]) {
    let Ok(raw) = Raw::document(document) else { return };
    let owned = raw.to_value();
    let mut out = Vec::new();
    raw.write_json(&mut out, NumberStyle::Item);
    let _ = (raw.as_extended(), raw.as_number(), raw.number_width(), raw.kind());
    let _ = (compare_raw(raw, raw), bson_order(raw, raw), raw.compare_value(&owned));
    let mut writer = DocWriter::new();
    writer.raw(raw);
    let copy = writer.finish();
    let copied = Raw::document(&copy).map(|copied| copied.verify().is_ok());
    if raw.verify().is_ok() {
        assert_eq!(copied, Ok(true));
        assert_eq!(raw.kind().is_extended(), raw.as_extended().is_some());
    }
}

#[test]
fn cut_values_do_not_verify_and_read_as_null() {
    let values: [Extended<'_>; 7] = [
        Extended::ObjectId([7; 12]),
        Extended::Date(7),
        Extended::Timestamp { seconds: 7, increment: 7 },
        Extended::Decimal(Decimal128::INFINITY),
        Extended::Binary { subtype: 0, bytes: b"seven" },
        Extended::Regex { pattern: "a", options: "i" },
        Extended::Code("f"),
    ];
    for value in values {
        let document = Value::from(value).to_document();
        for cut in 3..document.len() {
            let raw = Raw::document(&document[..cut]).unwrap();
            assert!(raw.verify().is_err() && raw.as_extended().is_none(), "{value:?} cut at {cut}");
            assert!(raw.to_value().is_null() && print(&document[..cut]) == "null");
        }
    }
    // A text that is no UTF-8, a pattern with NUL, a tag that nobody has given a meaning.
    for body in [&[0x29, 1, 0xFF][..], &[0x28, 1, 0, 0], &[0x2C], &[0x3F, 0, 0]] {
        let document = [&[1, 0], body].concat();
        assert!(Raw::document(&document).unwrap().verify().is_err(), "{body:02x?}");
    }
}
