//! Streams written by hand, byte for byte, and rows of every kind there and back.

use proptest::prelude::*;

use super::schemas::{
    self, Kind, OPERATION, RECORD, RESULT, SEGMENT, Schema, Storage, operation as op, result,
};
use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap() as u8;
    digits.chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// A create and a delete under a condition, as .NET sends them.
const BATCH: &str = "
    81 f0d8ff7f 01 0a000000
    81 f1d8ff7f 1f000000 12a975ae
    81 7054e17f 47 00000000 02000000 05 5b2261225d 0a 7b226964223a2231227d
    81 f1d8ff7f 1e000000 a217e4ed
    81 7054e17f 17 04000000 02000000 05 5b2261225d 01 31  14 09 03 226522  03 0c";

/// A created item, and an operation that was throttled.
const RESULTS: &str = "
    81 f0d8ff7f 01 0a000000
    81 f1d8ff7f 1f000000 7b68e009
    81 7154e17f 0f c9000000 00000000 03 226522 02 7b7d  10 06 000000000000f83f
    81 f1d8ff7f 1e000000 aa57d854
    81 7154e17f 03 ad010000 800c0000  0b 05 14000000  10 06 0000000000000000";

#[test]
fn a_batch_byte_for_byte() {
    let body = hex(BATCH);
    assert!(is_stream(&body));
    let rows = records(&body, 100).unwrap();
    assert_eq!(rows.len(), 2);
    let create = read(&OPERATION, rows[0]).unwrap();
    assert_eq!(create[op::OPERATION_TYPE], Some(Cell::Int32(0)));
    assert_eq!(create[op::RESOURCE_TYPE], Some(Cell::Int32(2)));
    assert_eq!(create[op::PARTITION_KEY], Some(Cell::Utf8("[\"a\"]")));
    assert_eq!(create[op::RESOURCE_BODY], Some(Cell::Binary(b"{\"id\":\"1\"}")));
    assert_eq!((create[op::ID], create[op::IF_MATCH]), (None, None));
    let delete = read(&OPERATION, rows[1]).unwrap();
    assert_eq!(delete[op::OPERATION_TYPE], Some(Cell::Int32(4)));
    assert_eq!(delete[op::ID], Some(Cell::Utf8("1")));
    assert_eq!(delete[op::IF_MATCH], Some(Cell::Utf8("\"e\"")));
    assert_eq!(delete[op::MINIMAL_RETURN], Some(Cell::Bool(true)));
    // What was read is written as the same bytes.
    let mut writer = Writer::with_capacity(0);
    writer.record(|out| write(&OPERATION, &create, out));
    writer.record(|out| write(&OPERATION, &delete, out));
    assert_eq!(writer.finish(), body);
}

#[test]
fn results_byte_for_byte() {
    let mut writer = Writer::with_capacity(0);
    let mut created = vec![None; RESULT.columns.len()];
    created[result::STATUS] = Some(Cell::Int32(201));
    created[result::SUBSTATUS] = Some(Cell::Int32(0));
    created[result::ETAG] = Some(Cell::Utf8("\"e\""));
    created[result::RESOURCE_BODY] = Some(Cell::Binary(b"{}"));
    created[result::REQUEST_CHARGE] = Some(Cell::Float64(1.5));
    writer.record(|out| write(&RESULT, &created, out));
    let mut throttled = vec![None; RESULT.columns.len()];
    throttled[result::STATUS] = Some(Cell::Int32(429));
    throttled[result::SUBSTATUS] = Some(Cell::Int32(3200));
    throttled[result::RETRY_AFTER_MS] = Some(Cell::UInt32(20));
    throttled[result::REQUEST_CHARGE] = Some(Cell::Float64(0.0));
    writer.record(|out| write(&RESULT, &throttled, out));
    assert_eq!(writer.finish(), hex(RESULTS));
}

#[test]
fn a_segment_may_say_more_and_another_may_follow() {
    // A comment "hi", and a second segment in the middle.
    let commented = hex("81 f0d8ff7f 01 0f000000  14 02 02 6869");
    let records_of = hex(BATCH)[10..].to_vec();
    let body = [commented.clone(), records_of.clone(), commented, records_of].concat();
    assert_eq!(records(&body, 100).unwrap().len(), 4);
    assert_eq!(records(&body, 2).unwrap().len(), 3, "one more than allowed says that there are more");
}

#[test]
fn columns_that_are_unknown_are_passed_over() {
    // A column "new" (13 names and 3 bytes: 10) of every type that can be passed over, and then one that is known.
    let row = hex("81 7054e17f 03 04000000 02000000");
    for (code, value) in [
        (1u8, ""),
        (2, ""),
        (5, "01"),
        (10, "0102"),
        (7, "01020304"),
        (13, "8101"),
        (8, "0102030405060708"),
        (19, "000102030405060708090a0b0c0d0e0f"),
        (20, "02 6869"),
        (24, "000102030405060708090a0b"),
    ] {
        let bytes = [row.clone(), vec![code, 16], b"new".to_vec(), hex(value), hex("03 0c")].concat();
        let cells = read(&OPERATION, &bytes).unwrap_or_else(|_| panic!("type {code}"));
        assert_eq!(cells[op::MINIMAL_RETURN], Some(Cell::Bool(true)), "type {code}");
    }
    let nested = [row, vec![30, 16], b"new".to_vec()].concat();
    assert!(read(&OPERATION, &nested).is_err(), "objects are not read");
}

#[test]
fn what_is_no_stream_is_refused() {
    let body = hex(BATCH);
    for (what, bytes) in [
        ("nothing", Vec::new()),
        ("a record before any segment", body[10..].to_vec()),
        ("a segment that is shorter than itself", hex("81 f0d8ff7f 01 09000000")),
        ("a segment of negative length", hex("81 f0d8ff7f 01 ffffffff")),
        ("a segment without a length", hex("81 f0d8ff7f 00 0a000000")),
        ("a version that is none", hex("82 f0d8ff7f 01 0a000000")),
        ("a schema that is none", hex("81 00000000 01 0a000000")),
    ] {
        assert!(records(&bytes, 100).is_err(), "{what}");
    }
    for end in 11..body.len() {
        let whole = end == 10 + 13 + 31;
        assert_eq!(records(&body[..end], 100).is_ok(), whole, "cut off after {end} bytes");
    }
    for place in 10..body.len() {
        let mut damaged = body.clone();
        damaged[place] ^= 0x10;
        assert!(records(&damaged, 100).is_err(), "byte {place} was changed");
    }
}

#[test]
fn rows_are_refused_that_do_not_fit_their_schema() {
    let row = hex("81 7054e17f 03 04000000 02000000");
    for (what, rest) in [
        ("a number where text belongs", "07 09 01000000"),
        ("a column that is not sparse", "14 05 01 31"),
        ("text that is none", "14 09 01 ff"),
        ("a length beyond the end", "14 09 05 3131"),
        ("a number that never ends", "14 ffffffffffffffffffffff"),
        ("a type that is none", "63 09"),
    ] {
        assert!(read(&OPERATION, &[row.clone(), hex(rest)].concat()).is_err(), "{what}");
    }
    assert!(read(&RESULT, &row).is_err(), "another schema");
}

fn cell(kind: Kind) -> BoxedStrategy<OwnedCell> {
    match kind {
        Kind::Bool => any::<bool>().prop_map(OwnedCell::Bool).boxed(),
        Kind::Int32 => any::<i32>().prop_map(OwnedCell::Int32).boxed(),
        Kind::UInt32 => any::<u32>().prop_map(OwnedCell::UInt32).boxed(),
        Kind::Float64 => (-1e9..1e9).prop_map(OwnedCell::Float64).boxed(),
        Kind::Utf8 => ".{0,200}".prop_map(OwnedCell::Utf8).boxed(),
        Kind::Binary => prop::collection::vec(any::<u8>(), 0..300).prop_map(OwnedCell::Binary).boxed(),
    }
}

#[derive(Clone, Debug)]
enum OwnedCell {
    Bool(bool),
    Int32(i32),
    UInt32(u32),
    Float64(f64),
    Utf8(String),
    Binary(Vec<u8>),
}

impl OwnedCell {
    fn borrowed(&self) -> Cell<'_> {
        match self {
            OwnedCell::Bool(value) => Cell::Bool(*value),
            OwnedCell::Int32(value) => Cell::Int32(*value),
            OwnedCell::UInt32(value) => Cell::UInt32(*value),
            OwnedCell::Float64(value) => Cell::Float64(*value),
            OwnedCell::Utf8(value) => Cell::Utf8(value),
            OwnedCell::Binary(value) => Cell::Binary(value),
        }
    }
}

fn row_of(schema: &'static Schema) -> impl Strategy<Value = Vec<Option<OwnedCell>>> {
    let column = |column: &schemas::Column| match column.storage {
        Storage::Required => cell(column.kind).prop_map(Some).boxed(),
        _ => prop::option::of(cell(column.kind)).boxed(),
    };
    schema.columns.iter().map(column).collect::<Vec<_>>()
}

proptest! {
    #[test]
    fn rows_of_every_schema_there_and_back(
        rows in (row_of(&SEGMENT), row_of(&RECORD), row_of(&OPERATION), row_of(&RESULT)),
    ) {
        let (segment, record, operation, result) = rows;
        for (schema, row) in [(&SEGMENT, segment), (&RECORD, record), (&OPERATION, operation), (&RESULT, result)] {
            let cells: Vec<_> = row.iter().map(|cell| cell.as_ref().map(OwnedCell::borrowed)).collect();
            let mut bytes = Vec::new();
            write(schema, &cells, &mut bytes);
            prop_assert_eq!(read(schema, &bytes).unwrap(), cells);
        }
    }

    #[test]
    fn noise_is_refused_or_read_but_never_a_panic(noise in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = records(&noise, 100);
        for schema in [&SEGMENT, &RECORD, &OPERATION, &RESULT] {
            let row = [&[VERSION][..], &schema.id.to_le_bytes(), &noise].concat();
            let _ = read(schema, &row);
        }
    }
}

#[test]
fn the_numbers_of_types_and_columns_are_those_of_the_format() {
    assert_eq!((SEGMENT.id, RECORD.id), (2_147_473_648, 2_147_473_649));
    assert_eq!((OPERATION.id, RESULT.id), (2_145_473_648, 2_145_473_649));
    assert_eq!((op::MINIMAL_RETURN, result::REQUEST_CHARGE), (11, 5));
    let codes = [Kind::Bool, Kind::Int32, Kind::UInt32, Kind::Float64, Kind::Utf8, Kind::Binary];
    assert_eq!(codes.map(schemas::code), [3, 7, 11, 16, 20, 21]);
}
