//! One row of input: the stored document of an item plus the members the engine keeps beside it.
//!
//! `_rid`, `_self`, `_etag`, `_attachments` and `_ts` are not part of the stored bytes. A query reads
//! and prints them as if they were: after the body, and before what a patch has appended to it, which
//! the service prints between `_attachments` and `_ts`.

use std::borrow::Cow;

use orrery_model::{DocWriter, NumberStyle, Raw, Value, write_json_string};

use crate::value::{Eval, ObjectParts};

/// The virtual members of an item, in the order they are printed, `_ts` last. They are asked for by name, and most
/// queries ask for none of them, so whoever keeps items makes their values only then.
pub trait SystemMembers {
    fn count(&self) -> usize;

    fn name(&self, at: usize) -> &'static str;

    fn value(&self, at: usize) -> Value;

    /// Appends the value as JSON.
    fn write_json(&self, at: usize, out: &mut Vec<u8>) {
        self.value(at).write_json(out, NumberStyle::Query);
    }
}

impl SystemMembers for Vec<(&'static str, Value)> {
    fn count(&self) -> usize {
        self.len()
    }

    fn name(&self, at: usize) -> &'static str {
        self[at].0
    }

    fn value(&self, at: usize) -> Value {
        self[at].1.clone()
    }
}

impl<const N: usize> SystemMembers for [(&'static str, Value); N] {
    fn count(&self) -> usize {
        N
    }

    fn name(&self, at: usize) -> &'static str {
        self[at].0
    }

    fn value(&self, at: usize) -> Value {
        self[at].1.clone()
    }
}

/// A borrowed item as queries see it.
#[derive(Clone, Copy)]
pub struct RowView<'a> {
    pub document: Raw<'a>,
    pub system: &'a dyn SystemMembers,
    /// How many of the document's last members were appended by a patch; they are printed before `_ts`.
    pub appended: usize,
}

impl std::fmt::Debug for RowView<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?} with {} system members", self.document.to_value(), self.system.count())
    }
}

impl<'a> RowView<'a> {
    /// A row without virtual members, such as a resource of a feed.
    pub fn plain(document: Raw<'a>) -> RowView<'a> {
        const NONE: &[(&str, Value); 0] = &[];
        RowView { document, system: NONE, appended: 0 }
    }

    pub(crate) fn member(&self, name: &str) -> Eval<'a> {
        // System names begin with an underscore, so most lookups skip the list.
        if name.starts_with('_')
            && let Some(at) = (0..self.system.count()).find(|at| self.system.name(*at) == name)
        {
            return Eval::from_owned(self.system.value(at));
        }
        self.document.get(name).map_or(Eval::Undefined, Eval::from_raw)
    }

    pub(crate) fn len(&self) -> usize {
        self.document.len() + self.system.count()
    }

    /// How many members of the document come before the system members, and how many of those come
    /// before the appended ones.
    fn parts(&self) -> (usize, usize) {
        let body = self.document.len().saturating_sub(self.appended);
        (body, self.system.count().saturating_sub(usize::from(self.appended > 0)))
    }

    /// Writes the item with its virtual members as one document.
    pub(crate) fn store(&self, out: &mut DocWriter) {
        let (body, before) = self.parts();
        let mut stored = self.document.members();
        out.begin_object();
        for (name, value) in stored.by_ref().take(body) {
            out.key(name);
            out.raw(value);
        }
        self.store_system(0..before, out);
        for (name, value) in stored {
            out.key(name);
            out.raw(value);
        }
        self.store_system(before..self.system.count(), out);
        out.end_object();
    }

    fn store_system(&self, part: std::ops::Range<usize>, out: &mut DocWriter) {
        for at in part {
            let value = self.system.value(at);
            if !value.is_undefined() {
                out.key(self.system.name(at));
                out.value(&value);
            }
        }
    }

    pub(crate) fn members(&self) -> ObjectParts<'a> {
        let (body, before) = self.parts();
        let stored =
            || self.document.members().map(|(name, value)| (Cow::Borrowed(name), Eval::from_raw(value)));
        let system = |part: std::ops::Range<usize>| {
            part.map(|at| (Cow::Borrowed(self.system.name(at)), Eval::from_owned(self.system.value(at))))
        };
        stored()
            .take(body)
            .chain(system(0..before))
            .chain(stored().skip(body))
            .chain(system(before..self.system.count()))
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
        for at in 0..before {
            separate(out);
            self.write_member(at, out);
        }
        if self.appended > 0 && self.document.len() > body {
            separate(out);
            self.document.write_json_members(body..self.document.len(), out, NumberStyle::Query);
        }
        for at in before..self.system.count() {
            separate(out);
            self.write_member(at, out);
        }
        out.push(b'}');
    }

    fn write_member(&self, at: usize, out: &mut Vec<u8>) {
        write_json_string(out, self.system.name(at));
        out.push(b':');
        self.system.write_json(at, out);
    }
}
