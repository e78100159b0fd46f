//! Changes of attachments, which are versions of their item's row with the document as it was.

use std::sync::Arc;

use bytes::Bytes;

use super::content::Content;
use super::item_key::ItemKey;
use super::transaction::{Applied, Transaction};
use crate::attachment::{self, Attached, AttachmentChange, Moment};
use crate::error::Result;
use crate::item::{Item, Write};

impl Transaction<'_> {
    /// Stages a change of an attachment of `old`.
    pub(super) fn attach(
        &mut self,
        sub: u8,
        target: &ItemKey,
        stored: Option<Item>,
        old: Item,
        write: &Write,
        change: &AttachmentChange,
    ) -> Result<Applied> {
        let at = Moment { lsn: self.staged.lsn(), sub, ts: self.context.now_s };
        let (section, outcome) = attachment::changed(old.attached.as_deref(), change, write, at)?;
        let content = Content {
            document: old.document.clone(),
            ttl: old.ttl,
            late_members: old.late_members,
            attached: Some(section),
        };
        let applied = self.write(sub, target, stored, Some(old), Some(&content))?;
        Ok(Applied { outcome, ..applied })
    }

    /// The attachments of a new version: those of the version before it, unless they are what changes. They remember
    /// which change wrote the document.
    pub(super) fn attached(
        &self,
        sub: u8,
        before: Option<&Item>,
        section: Option<&Bytes>,
    ) -> Option<Arc<Attached>> {
        let held = before.and_then(|before| before.attached.as_ref());
        let (lsn, sub, section) = match (section, before) {
            (None, _) => (self.staged.lsn(), sub, held?.section.clone()),
            (Some(section), Some(before)) => {
                let (lsn, sub) = held.map_or((before.lsn, before.sub), |held| (held.lsn, held.sub));
                (lsn, sub, section.clone())
            }
            (Some(section), None) => (self.staged.lsn(), sub, section.clone()),
        };
        Some(Arc::new(Attached { lsn, sub, section }))
    }
}
