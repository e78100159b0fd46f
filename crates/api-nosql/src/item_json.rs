//! Items as JSON: the stored document and the system properties around it, written straight into the answer.
//!
//! ```text
//! {"id":"a","n":1,"_rid":"…","_self":"…","_etag":"\"…\"","_attachments":"attachments/","new":"v","_ts":1700000000}
//!  └ the document ┘                                                                    └ added by patches
//! ```
//!
//! The order is the service's. Members that a patch added come after the system properties, all but the time of the
//! change; the item knows how many of its last members those are.

use orrery_engine::{Etag, Item};
use orrery_model::{NumberStyle, ParseOptions, Raw};

use crate::rid::ContainerRid;
use crate::write::push_u64;

/// Members that belong to the server. Clients send back what they have read, so these are skipped on the way in.
pub use orrery_engine::SYSTEM_PROPERTIES;

/// About what the system properties of an item take.
const SYSTEM_BYTES: usize = 240;

pub fn parse_options() -> ParseOptions<'static> {
    ParseOptions { skip_top_level: &SYSTEM_PROPERTIES, ..ParseOptions::default() }
}

/// How long an item will be, roughly: a guess that saves growing the buffer.
pub fn size_hint(item: &Item) -> usize {
    item.document.len() + item.document.len() / 4 + SYSTEM_BYTES
}

pub fn write_item(out: &mut Vec<u8>, rid: &ContainerRid, item: &Item) {
    write(out, rid, item, NumberStyle::Item);
    out.push(b'}');
}

/// An item of the change feed says which change it was.
pub fn write_change(out: &mut Vec<u8>, rid: &ContainerRid, item: &Item) {
    write(out, rid, item, NumberStyle::Item);
    out.extend_from_slice(b",\"_lsn\":");
    push_u64(out, item.lsn);
    out.push(b'}');
}

/// Everything but the closing brace.
fn write(out: &mut Vec<u8>, rid: &ContainerRid, item: &Item, style: NumberStyle) {
    let body: Raw<'_> = item.body();
    let members = body.len();
    let own = members.saturating_sub(usize::from(item.late_members));
    out.push(b'{');
    if own > 0 {
        body.write_json_members(0..own, out, style);
        out.push(b',');
    }
    let item_rid = rid.item(item.number);
    out.extend_from_slice(b"\"_rid\":\"");
    out.extend_from_slice(&item_rid);
    out.extend_from_slice(b"\",\"_self\":\"");
    write_self(out, rid, item.number);
    out.extend_from_slice(b"\",\"_etag\":");
    write_etag(out, item.etag);
    out.extend_from_slice(b",\"_attachments\":\"attachments/\",");
    if own < members {
        body.write_json_members(own..members, out, style);
        out.push(b',');
    }
    out.extend_from_slice(b"\"_ts\":");
    push_u64(out, u64::from(item.ts));
}

pub fn write_self(out: &mut Vec<u8>, rid: &ContainerRid, number: u64) {
    rid.write_self(out);
    out.extend_from_slice(b"docs/");
    out.extend_from_slice(&rid.item(number));
    out.push(b'/');
}

/// An etag as a JSON string: its own quotes are part of it and escaped.
pub fn write_etag(out: &mut Vec<u8>, etag: Etag) {
    let text = etag.text();
    out.extend_from_slice(b"\"\\\"");
    out.extend_from_slice(&text[1..text.len() - 1]);
    out.extend_from_slice(b"\\\"\"");
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use orrery_model::parse_json;

    fn item(text: &str, late_members: u16) -> Item {
        let document = parse_json(text.as_bytes(), &parse_options()).unwrap();
        Item {
            number: 5,
            lsn: 9,
            sub: 0,
            ts: 1_700_000_000,
            etag: Etag::of_change(9, 0, 1_700_000_000),
            ttl: None,
            late_members,
            merged: false,
            attached: None,
            document: Bytes::from(document),
        }
    }

    fn text(item: &Item) -> String {
        let mut out = Vec::new();
        write_item(&mut out, &ContainerRid::new(1, 2), item);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn system_properties_follow_the_document() {
        assert_eq!(
            text(&item(r#"{"id":"a","n":[1,2.5],"_etag":"forged","_ts":3}"#, 0)),
            r#"{"id":"a","n":[1,2.5],"_rid":"AAAAAYAAAAIFAAAAAAAAAA==","_self":"dbs/AAAAAQ==/colls/AAAAAYAAAAI=/docs/AAAAAYAAAAIFAAAAAAAAAA==/","_etag":"\"00000480-0000-0700-0000-6553f1000000\"","_attachments":"attachments/","_ts":1700000000}"#
        );
    }

    #[test]
    fn members_added_by_a_patch_come_before_the_time() {
        let text = text(&item(r#"{"id":"a","n":1,"new":"v"}"#, 1));
        assert!(text.starts_with(r#"{"id":"a","n":1,"_rid":"#), "{text}");
        assert!(text.contains(r#""_attachments":"attachments/","new":"v","_ts":1700000000}"#), "{text}");
    }

    #[test]
    fn a_change_carries_its_lsn() {
        let mut out = Vec::new();
        write_change(&mut out, &ContainerRid::new(1, 2), &item(r#"{"id":"a"}"#, 0));
        assert!(String::from_utf8(out).unwrap().ends_with(r#","_ts":1700000000,"_lsn":9}"#));
    }
}
