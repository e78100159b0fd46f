//! Names that a script saw before they were final.
//!
//! Rids and etags of what a script writes follow from the LSN of its commit, which is a guess while the script runs.
//! When others committed in between, texts that carry the guess (the answer, the console) are corrected: rids are found
//! by the container's own at their start, etags by the constant in their middle.

use std::collections::HashMap;

use memchr::memmem;
use orrery_engine::{Etag, Item, Rewritten};

use crate::rid::{ContainerRid, ascii};

/// Characters of an item's rid that are those of its container.
const OWNER_CHARACTERS: usize = 10;
const RID_CHARACTERS: usize = 24;
/// `-0700-0000-` stands after the first thirteen of an etag's 36 characters.
const ETAG_MIDDLE: &str = "-0700-0000-";
const ETAG_BEFORE: usize = 13;
const ETAG_CHARACTERS: usize = 36;

/// Texts by what they have to become.
pub struct Renames {
    rid: ContainerRid,
    owner: String,
    texts: HashMap<Vec<u8>, Vec<u8>>,
    /// Versions whose texts are not in the map yet: most scripts write many and name none of them.
    watched: Vec<(u64, Etag)>,
    /// What every rid and every etag holds.
    anchors: [memmem::Finder<'static>; 2],
}

impl Renames {
    pub fn new(rid: &ContainerRid) -> Renames {
        let owner = rid.as_str()[..OWNER_CHARACTERS].to_owned();
        let anchors = [memmem::Finder::new(&owner).into_owned(), memmem::Finder::new(ETAG_MIDDLE)];
        Renames { rid: *rid, owner, texts: HashMap::new(), watched: Vec::new(), anchors }
    }

    /// The renames of a commit.
    pub fn of(rid: &ContainerRid, rewritten: &[Rewritten]) -> Renames {
        let mut renames = Renames::new(rid);
        for Rewritten { before, after } in rewritten {
            renames.texts.insert(rid.item(before.number).to_vec(), rid.item(after.number).to_vec());
            renames.texts.insert(guid(before.etag), guid(after.etag));
        }
        renames
    }

    /// Notes the names of a version that may still change.
    pub fn watch(&mut self, item: &Item) {
        self.watched.push((item.number, item.etag));
    }

    /// Whether any of the names occurs in a text.
    pub fn occur_in(&mut self, text: &[u8]) -> bool {
        if self.texts.is_empty() && self.watched.is_empty() {
            return false;
        }
        let [owner, middle] = &self.anchors;
        if owner.find(text).is_none() && middle.find(text).is_none() {
            return false;
        }
        for (number, etag) in self.watched.drain(..) {
            self.texts.insert(self.rid.item(number).to_vec(), Vec::new());
            self.texts.insert(guid(etag), Vec::new());
        }
        self.find(text, 0).is_some()
    }

    pub fn apply(&self, text: String) -> String {
        let bytes = text.as_bytes();
        let Some(mut found) = (if self.texts.is_empty() { None } else { self.find(bytes, 0) }) else {
            return text;
        };
        let mut out = Vec::with_capacity(bytes.len());
        let mut from = 0;
        loop {
            let (start, end, new) = found;
            out.extend_from_slice(&bytes[from..start]);
            out.extend_from_slice(new);
            from = end;
            match self.find(bytes, from) {
                Some(next) => found = next,
                None => break,
            }
        }
        out.extend_from_slice(&bytes[from..]);
        String::from_utf8(out).unwrap_or(text)
    }

    /// The first known name at or after `from`, with what it becomes.
    fn find(&self, text: &[u8], from: usize) -> Option<(usize, usize, &[u8])> {
        let rid = self.find_by(text, from, self.owner.as_bytes(), 0, RID_CHARACTERS);
        let etag = self.find_by(text, from, ETAG_MIDDLE.as_bytes(), ETAG_BEFORE, ETAG_CHARACTERS);
        [rid, etag].into_iter().flatten().min_by_key(|(start, _, _)| *start)
    }

    fn find_by(
        &self,
        text: &[u8],
        from: usize,
        anchor: &[u8],
        before: usize,
        length: usize,
    ) -> Option<(usize, usize, &[u8])> {
        let mut at = from;
        while let Some(found) = memmem::find(text.get(at..)?, anchor) {
            let place = at + found;
            if let Some(start) = place.checked_sub(before).filter(|start| *start >= from)
                && let Some(candidate) = text.get(start..start + length)
                && let Some(new) = self.texts.get(candidate)
            {
                return Some((start, start + length, new));
            }
            at = place + 1;
        }
        None
    }
}

/// An etag without its quotes.
fn guid(etag: Etag) -> Vec<u8> {
    let text = etag.text();
    ascii(&text[1..text.len() - 1]).as_bytes().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn item(number: u64, lsn: u64) -> Item {
        let etag = Etag::of_change(lsn, 0, 7);
        let document = Bytes::from(orrery_model::Value::Object(Vec::new()).to_document());
        Item {
            number,
            lsn,
            sub: 0,
            ts: 7,
            etag,
            ttl: None,
            late_members: 0,
            merged: false,
            attached: None,
            document,
        }
    }

    #[test]
    fn names_that_moved_are_corrected_and_others_are_left() {
        let rid = ContainerRid::new(1, 2);
        let (before, after, other) = (item(5, 9), item(6, 10), item(7, 11));
        let renames = Renames::of(&rid, &[Rewritten { before: before.clone(), after: after.clone() }]);
        let name = |item: &Item| ascii(&rid.item(item.number)).to_owned();
        let text = |a: &Item, b: &Item| {
            format!("{{\"_rid\":\"{}\",\"e\":{},\"o\":\"{}\",\"oe\":{}}}", name(a), a.etag, name(b), b.etag)
        };
        assert_eq!(renames.apply(text(&before, &other)), text(&after, &other));
        assert_eq!(renames.apply(text(&before, &before)), text(&after, &after));
        assert_eq!(renames.apply("nothing".to_owned()), "nothing");
        let mut watched = Renames::new(&rid);
        assert!(!watched.occur_in(text(&before, &other).as_bytes()));
        watched.watch(&before);
        assert!(
            watched.occur_in(text(&other, &before).as_bytes())
                && !watched.occur_in(text(&other, &other).as_bytes())
        );
    }
}
