//! Attachments of an item: named media, or links to media that lie elsewhere.
//!
//! They are stored in the item's own row, before the document, where no query looks:
//!
//! ```text
//! section   format 1 | next number u32 | count u16 | attachments
//! one       number u32 | lsn u64 | sub u8 | ts u32 | id | content type | other members | kind u8 | link or media
//! ```
//!
//! So they come and go with their item, in its commits, through splits and copies, and count towards its partition.
//! Texts are a length (u32) and bytes; numbers are little-endian. The price is that a change of one rewrites the row,
//! which is why there may be only so many and so much of them ([`ATTACHMENTS_MAX`], [`ATTACHED_BYTES_MAX`]).

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::definition::names;
use crate::error::{Error, Kind, Result};
use crate::etag::Etag;
use crate::item::{self, Outcome, Write};

/// Most attachments of one item.
pub const ATTACHMENTS_MAX: usize = 100;
/// Largest media of one attachment.
pub const MEDIA_BYTES_MAX: usize = 2 * 1024 * 1024;
/// Most bytes of all attachments of one item, media and all.
pub const ATTACHED_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Longest content type, link and other members of an attachment together.
pub const ATTACHMENT_TEXT_BYTES_MAX: usize = 16 * 1024;

const FORMAT: u8 = 1;
const KIND_LINK: u8 = 0;
const KIND_STORED: u8 = 1;

/// The attachments in an item's row, and which change wrote the document beside them: the etag of an item is that of
/// its document, whatever happens to its attachments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    pub(crate) lsn: u64,
    pub(crate) sub: u8,
    pub(crate) section: Bytes,
}

/// Where the media of an attachment are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Media {
    Link(String),
    Stored(Bytes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attachment {
    /// Given at creation, unique within the item for all time.
    pub number: u32,
    pub lsn: u64,
    pub sub: u8,
    pub ts: u32,
    pub id: String,
    pub content_type: String,
    /// The client's other members, as the inside of a JSON object.
    pub members: String,
    pub media: Media,
}

impl Attachment {
    pub fn etag(&self) -> Etag {
        Etag::of_change(self.lsn, self.sub, self.ts)
    }
}

/// What a client says about an attachment. No media: those that are stored stay.
#[derive(Debug, Clone)]
pub struct AttachmentContent {
    pub id: String,
    pub content_type: String,
    pub members: String,
    pub media: Option<Media>,
}

/// An attachment as a link names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttachmentName {
    Id(String),
    Number(u32),
}

impl AttachmentName {
    pub fn names(&self, attachment: &Attachment) -> bool {
        match self {
            AttachmentName::Id(id) => *id == attachment.id,
            AttachmentName::Number(number) => *number == attachment.number,
        }
    }
}

/// A change of one attachment.
#[derive(Debug, Clone)]
pub enum AttachmentChange {
    Create(AttachmentContent),
    Upsert(AttachmentContent),
    Replace(AttachmentName, AttachmentContent),
    ReplaceMedia(AttachmentName, String, Bytes),
    Delete(AttachmentName),
}

/// Which change of the partition it is that is being made.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) lsn: u64,
    pub(crate) sub: u8,
    pub(crate) ts: u32,
}

/// What a section holds.
#[derive(Debug, Default, PartialEq, Eq)]
struct Section {
    next: u32,
    attachments: Vec<Attachment>,
}

impl Attached {
    pub(crate) fn attachments(&self) -> Result<Vec<Attachment>> {
        Ok(Section::decode(&self.section)?.attachments)
    }
}

/// The section after a change, and what the change was. The conditions of the write are about the attachment.
pub(crate) fn changed(
    before: Option<&Attached>,
    change: &AttachmentChange,
    write: &Write,
    at: Moment,
) -> Result<(Bytes, Outcome)> {
    let mut section = before.map_or_else(|| Ok(Section::default()), |held| Section::decode(&held.section))?;
    let outcome = section.apply(change, write, at)?;
    let encoded = section.encode();
    if encoded.len() > ATTACHED_BYTES_MAX {
        let message = format!(
            "The attachments of a document may hold {} MB in all.",
            ATTACHED_BYTES_MAX / (1024 * 1024)
        );
        return Err(Error::new(Kind::TooLarge, message));
    }
    Ok((encoded, outcome))
}

impl Section {
    fn apply(&mut self, change: &AttachmentChange, write: &Write, at: Moment) -> Result<Outcome> {
        let place = |name: &AttachmentName| self.attachments.iter().position(|one| name.names(one));
        let known = |name: &AttachmentName| place(name).ok_or_else(item::not_found);
        match change {
            AttachmentChange::Create(content) | AttachmentChange::Upsert(content) => {
                match place(&AttachmentName::Id(content.id.clone())) {
                    Some(_) if matches!(change, AttachmentChange::Create(_)) => Err(item::already_exists()),
                    Some(place) => self.replace(place, content, write, at),
                    None => self.create(content, at),
                }
            }
            AttachmentChange::Replace(name, content) => {
                let place = known(name)?;
                let taken = |(n, one): (usize, &Attachment)| n != place && one.id == content.id;
                if self.attachments.iter().enumerate().any(taken) {
                    return Err(item::already_exists());
                }
                self.replace(place, content, write, at)
            }
            AttachmentChange::ReplaceMedia(name, content_type, media) => {
                let place = known(name)?;
                let one = &self.attachments[place];
                let content = AttachmentContent {
                    id: one.id.clone(),
                    content_type: content_type.clone(),
                    members: one.members.clone(),
                    media: Some(Media::Stored(media.clone())),
                };
                self.replace(place, &content, write, at)
            }
            AttachmentChange::Delete(name) => {
                let place = known(name)?;
                check_conditions(write, &self.attachments[place])?;
                self.attachments.remove(place);
                Ok(Outcome::Deleted)
            }
        }
    }

    fn create(&mut self, content: &AttachmentContent, at: Moment) -> Result<Outcome> {
        if self.attachments.len() >= ATTACHMENTS_MAX {
            return Err(Error::bad_request(format!("A document may have {ATTACHMENTS_MAX} attachments.")));
        }
        let media = content.media.clone().ok_or_else(|| {
            Error::bad_request("The media of a new attachment must be a link or be uploaded with it.")
        })?;
        let number = self.next.max(1);
        self.next = number
            .checked_add(1)
            .ok_or_else(|| Error::bad_request("The document has had too many attachments."))?;
        self.attachments.push(of(content, media, number, at)?);
        Ok(Outcome::Created)
    }

    fn replace(
        &mut self,
        place: usize,
        content: &AttachmentContent,
        write: &Write,
        at: Moment,
    ) -> Result<Outcome> {
        let one = &self.attachments[place];
        check_conditions(write, one)?;
        let media = content.media.clone().unwrap_or_else(|| one.media.clone());
        self.attachments[place] = of(content, media, one.number, at)?;
        Ok(Outcome::Replaced)
    }

    fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        out.put_u8(FORMAT);
        out.put_u32_le(self.next);
        out.put_u16_le(self.attachments.len() as u16);
        for one in &self.attachments {
            out.put_u32_le(one.number);
            out.put_u64_le(one.lsn);
            out.put_u8(one.sub);
            out.put_u32_le(one.ts);
            for text in [&one.id, &one.content_type, &one.members] {
                put(&mut out, text.as_bytes());
            }
            let (kind, media) = match &one.media {
                Media::Link(link) => (KIND_LINK, link.as_bytes()),
                Media::Stored(media) => (KIND_STORED, &media[..]),
            };
            out.put_u8(kind);
            put(&mut out, media);
        }
        out.freeze()
    }

    fn decode(section: &Bytes) -> Result<Section> {
        let mut from = section.clone();
        let read = || {
            let FORMAT = from.try_get_u8().ok()? else { return None };
            let next = from.try_get_u32_le().ok()?;
            let count = from.try_get_u16_le().ok()?;
            let mut attachments = Vec::new();
            for _ in 0..count {
                attachments.push(take_one(&mut from)?);
            }
            from.is_empty().then_some(Section { next, attachments })
        };
        let mut read = read;
        read().ok_or_else(|| Error::internal("The attachments of an item are damaged."))
    }
}

fn take_one(from: &mut Bytes) -> Option<Attachment> {
    let number = from.try_get_u32_le().ok()?;
    let lsn = from.try_get_u64_le().ok()?;
    let sub = from.try_get_u8().ok()?;
    let ts = from.try_get_u32_le().ok()?;
    let (id, content_type, members) = (take_text(from)?, take_text(from)?, take_text(from)?);
    let media = match from.try_get_u8().ok()? {
        KIND_LINK => Media::Link(take_text(from)?),
        KIND_STORED => Media::Stored(take(from)?),
        _ => return None,
    };
    Some(Attachment { number, lsn, sub, ts, id, content_type, members, media })
}

fn put(out: &mut BytesMut, bytes: &[u8]) {
    out.put_u32_le(bytes.len() as u32);
    out.put_slice(bytes);
}

/// A piece of the section, which it shares.
fn take(from: &mut Bytes) -> Option<Bytes> {
    let length = from.try_get_u32_le().ok()? as usize;
    (length <= from.len()).then(|| from.split_to(length))
}

fn take_text(from: &mut Bytes) -> Option<String> {
    String::from_utf8(take(from)?.to_vec()).ok()
}

fn of(content: &AttachmentContent, media: Media, number: u32, at: Moment) -> Result<Attachment> {
    let AttachmentContent { id, content_type, members, .. } = content;
    names::check(id)?;
    let link_bytes = match &media {
        Media::Link(link) => link.len(),
        Media::Stored(media) if media.len() > MEDIA_BYTES_MAX => return Err(item::too_large()),
        Media::Stored(_) => 0,
    };
    if content_type.len() + members.len() + link_bytes > ATTACHMENT_TEXT_BYTES_MAX {
        return Err(item::too_large());
    }
    Ok(Attachment {
        number,
        lsn: at.lsn,
        sub: at.sub,
        ts: at.ts,
        id: id.clone(),
        content_type: content_type.clone(),
        members: members.clone(),
        media,
    })
}

fn check_conditions(write: &Write, attachment: &Attachment) -> Result<()> {
    let is = |condition: &str| attachment.etag().matches(condition);
    let holds = write.if_match.as_deref().is_none_or(is) && !write.if_none_match.as_deref().is_some_and(is);
    if holds { Ok(()) } else { Err(item::precondition_failed()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::Operation;

    const AT: Moment = Moment { lsn: 5, sub: 0, ts: 7 };

    fn content(id: &str, media: Option<Media>) -> AttachmentContent {
        AttachmentContent { id: id.into(), content_type: "text/plain".into(), members: String::new(), media }
    }

    fn stored(bytes: usize) -> Option<Media> {
        Some(Media::Stored(vec![7; bytes].into()))
    }

    fn write() -> Write {
        Write::new(Operation::Read { id: "a".into() })
    }

    fn apply(held: &mut Option<Attached>, change: AttachmentChange) -> Result<Outcome> {
        let (section, outcome) = changed(held.as_ref(), &change, &write(), AT)?;
        *held = Some(Attached { lsn: 1, sub: 0, section });
        Ok(outcome)
    }

    #[test]
    fn attachments_are_created_replaced_and_deleted_by_id_or_number() {
        let mut held = None;
        let link = Some(Media::Link("http://example.com".into()));
        assert_eq!(apply(&mut held, AttachmentChange::Create(content("a", link))).unwrap(), Outcome::Created);
        assert_eq!(
            apply(&mut held, AttachmentChange::Upsert(content("b", stored(3)))).unwrap(),
            Outcome::Created
        );
        let twice = apply(&mut held, AttachmentChange::Create(content("a", stored(1)))).unwrap_err();
        assert_eq!(twice.kind, Kind::AlreadyExists);
        // Without media those that are there stay.
        let renamed = AttachmentChange::Replace(AttachmentName::Number(2), content("c", None));
        assert_eq!(apply(&mut held, renamed).unwrap(), Outcome::Replaced);
        let taken = AttachmentChange::Replace(AttachmentName::Number(2), content("a", None));
        assert_eq!(apply(&mut held, taken).unwrap_err().kind, Kind::AlreadyExists);
        let list = held.as_ref().unwrap().attachments().unwrap();
        assert_eq!((list[1].id.as_str(), &list[1].media), ("c", &Media::Stored(vec![7; 3].into())));
        assert_eq!(
            apply(&mut held, AttachmentChange::Delete(AttachmentName::Id("c".into()))).unwrap(),
            Outcome::Deleted
        );
        // Numbers are not given out again.
        apply(&mut held, AttachmentChange::Create(content("d", stored(0)))).unwrap();
        let numbers: Vec<u32> = held.unwrap().attachments().unwrap().iter().map(|one| one.number).collect();
        assert_eq!(numbers, [1, 3]);
    }

    #[test]
    fn there_are_only_so_many_and_so_much_of_them() {
        let mut held = None;
        for n in 0..ATTACHMENTS_MAX {
            apply(&mut held, AttachmentChange::Create(content(&n.to_string(), stored(1)))).unwrap();
        }
        assert!(apply(&mut held, AttachmentChange::Create(content("more", stored(1)))).is_err());
        let large = |id: &str, bytes| AttachmentChange::Create(content(id, stored(bytes)));
        let mut held = None;
        assert_eq!(apply(&mut held, large("a", MEDIA_BYTES_MAX + 1)).unwrap_err().kind, Kind::TooLarge);
        apply(&mut held, large("a", MEDIA_BYTES_MAX)).unwrap();
        assert_eq!(apply(&mut held, large("b", MEDIA_BYTES_MAX)).unwrap_err().kind, Kind::TooLarge);
        apply(&mut held, large("b", MEDIA_BYTES_MAX / 2)).unwrap();
        let long = "x".repeat(names::NAME_CHARACTERS_MAX + 1);
        assert!(apply(&mut held, large(&long, 1)).is_err());
    }

    #[test]
    fn a_section_cut_short_is_damaged_and_not_read() {
        let mut held = None;
        apply(&mut held, AttachmentChange::Create(content("a", stored(9)))).unwrap();
        let whole = held.unwrap().section;
        for length in 0..whole.len() {
            assert!(Section::decode(&whole.slice(..length)).is_err(), "{length}");
        }
        assert_eq!(Section::decode(&whole).unwrap().encode(), whole);
    }
}
