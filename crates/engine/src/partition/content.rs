//! A document on its way into a row: everything about it that can be checked without a look at what is stored.

use bytes::Bytes;
use orrery_model::Raw;

use super::item_key::ItemKey;
use super::{Partition, Settings, expiry};
use crate::error::{Error, Result};
use crate::item;

/// A document that has passed every check that needs no look at what is stored.
pub(super) struct Content {
    pub(super) document: Bytes,
    pub(super) ttl: Option<i32>,
    pub(super) late_members: u16,
    /// Of a change of attachments, all of them as they then are; the document stays what it was.
    pub(super) attached: Option<Bytes>,
}

impl Partition {
    /// Checks a whole document that is to be stored under `item_key`.
    pub(super) fn content(&self, settings: &Settings, target: &ItemKey, document: Bytes) -> Result<Content> {
        let body = Raw::document(&document)
            .map_err(|corrupt| Error::bad_request(item::INVALID_INPUT).caused_by(corrupt.to_string()))?;
        item::check_size(&document, body, settings.item_bytes_max())?;
        let ttl = expiry::ttl_of(body)?;
        target.check()?;
        Ok(Content { ttl, late_members: 0, attached: None, document })
    }
}
