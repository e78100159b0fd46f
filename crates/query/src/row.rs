//! One row of input: the stored document of an item plus the members the engine keeps beside it.
//!
//! `_rid`, `_self`, `_etag`, `_attachments` and `_ts` are not part of the stored bytes. A query reads
//! and prints them as if they were: after the body, and before what a patch has appended to it, which
//! the service prints between `_attachments` and `_ts`.

use std::borrow::Cow;

use orrery_model::{NumberStyle, Raw, Value, write_json_string};

use crate::value::{Eval, ObjectParts};

/// A borrowed item as queries see it.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    pub document: Raw<'a>,
    /// Virtual members in the order they are printed, `_ts` last.
    pub system: &'a [(&'static str, Value)],
    /// How many of the document's last members were appended by a patch; they are printed before `_ts`.
    pub appended: usize,
}

impl std::fmt::Debug for RowView<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?} with {:?}", self.document.to_value(), self.system)
    }
}

impl<'a> RowView<'a> {
    /// A row without virtual members, such as a resource of a feed.
    pub fn plain(document: Raw<'a>) -> RowView<'a> {
        RowView { document, system: &[], appended: 0 }
    }

    pub(crate) fn member(&self, name: &str) -> Eval<'a> {
        // System names begin with an underscore, so most lookups skip the list.
        if name.starts_with('_')
            && let Some((_, value)) = self.system.iter().find(|(member, _)| *member == name)
        {
            return Eval::from_constant(value);
        }
        self.document.get(name).map_or(Eval::Undefined, Eval::from_raw)
    }

    pub(crate) fn len(&self) -> usize {
        self.document.len() + self.system.len()
    }

    /// How many members of the document come before the system members, and how many of those come
    /// before the appended ones.
    fn parts(&self) -> (usize, usize) {
        let body = self.document.len().saturating_sub(self.appended);
        (body, self.system.len().saturating_sub(usize::from(self.appended > 0)))
    }

    pub(crate) fn members(&self) -> ObjectParts<'a> {
        let (body, before) = self.parts();
        let stored =
            || self.document.members().map(|(name, value)| (Cow::Borrowed(name), Eval::from_raw(value)));
        let system = |part: &'a [(&'static str, Value)]| {
            part.iter().map(|(name, value)| (Cow::Borrowed(*name), Eval::from_constant(value)))
        };
        stored()
            .take(body)
            .chain(system(&self.system[..before]))
            .chain(stored().skip(body))
            .chain(system(&self.system[before..]))
            .collect()
    }

    /// The item as a query result prints it; numbers keep all their digits.
    pub(crate) fn write_json(&self, out: &mut Vec<u8>) {
        let (body, before) = self.parts();
        out.push(b'{');
        let start = out.len();
        let separate = |out: &mut Vec<u8>| {
            if out.len() > start {
                out.push(b',');
            }
        };
        if body > 0 {
            self.document.write_json_members(0..body, out, NumberStyle::Query);
        }
        for (name, value) in &self.system[..before] {
            separate(out);
            write_member(out, name, value);
        }
        if self.appended > 0 && self.document.len() > body {
            separate(out);
            self.document.write_json_members(body..self.document.len(), out, NumberStyle::Query);
        }
        for (name, value) in &self.system[before..] {
            separate(out);
            write_member(out, name, value);
        }
        out.push(b'}');
    }
}

fn write_member(out: &mut Vec<u8>, name: &str, value: &Value) {
    write_json_string(out, name);
    out.push(b':');
    value.write_json(out, NumberStyle::Query);
}
