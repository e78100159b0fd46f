//! Resource ids: the `_rid` of everything, and back.
//!
//! A rid is base64 (with `-` for `/`, padding kept) of a few bytes that nest: a database is 4 bytes, a container
//! the same 4 plus 4 with the top bit set, whatever lives in a container those 8 plus 8 more.
//!
//! ```text
//! database 1          00 00 00 01                                                        "AAAAAQ=="
//! its container 2     00 00 00 01  80 00 00 02                                           "AAAAAYAAAAI="
//! item 1000 of it     00 00 00 01  80 00 00 02  e8 03 00 00 00 00 00 00                   "AAAAAYAAAALoAwAAAAAAAA=="
//! ```
//!
//! The item part is little-endian: clients recover the order of creation from it and break ties of ORDER BY with it.
//! The high nibble of its last byte says what kind of thing it is: 0 an item, 5 a partition key range, 6 a function,
//! 7 a trigger, 8 a procedure. An attachment is its item and 4 bytes more. Offers are 3 bytes. A user is like a
//! container with the top bit clear, a permission is its user and 8 bytes more, a client encryption key is like a
//! user with one byte more.

use base64::Engine as _;
use base64::alphabet::Alphabet;
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use orrery_engine::ScriptKind;
use orrery_model::Epk;

const ALPHABET: Alphabet =
    match Alphabet::new("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-") {
        Ok(alphabet) => alphabet,
        Err(_) => panic!("the alphabet has 64 different characters"),
    };
const RID: GeneralPurpose = GeneralPurpose::new(&ALPHABET, GeneralPurposeConfig::new());

const CONTAINER_BIT: u32 = 0x8000_0000;
const KIND_SHIFT: u32 = 60;
const KIND_ITEM: u64 = 0;
const KIND_RANGE: u64 = 5;
const KIND_SCRIPTS: [(u64, ScriptKind); 3] =
    [(8, ScriptKind::Procedure), (7, ScriptKind::Trigger), (6, ScriptKind::Function)];
/// What follows the number of a client encryption key.
const KIND_ENCRYPTION_KEY: u8 = 2;
/// The longest rid in bytes (an attachment); longer text is no rid of ours.
const RID_BYTES_MAX: usize = 20;
/// What the link to stored media begins with.
pub const MEDIA_LINK: &str = "/media/";
/// After the rid of its attachment, the id of media names the store that they lie in. There is one.
const MEDIA_STORE: u8 = 1;
/// Longest effective partition key in the id of media.
const MEDIA_EPK_BYTES_MAX: usize = 2048;

/// What a rid names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rid {
    Offer(u32),
    Database(u32),
    Container { database: u32, container: u32 },
    Item { database: u32, container: u32, number: u64 },
    Range { database: u32, container: u32, range: u32 },
    User { database: u32, user: u32 },
    Permission { database: u32, user: u32, permission: u32 },
    EncryptionKey { database: u32, key: u32 },
    Script { database: u32, container: u32, kind: ScriptKind, number: u64 },
    Attachment { database: u32, container: u32, item: u64, attachment: u32 },
}

impl Rid {
    /// Reads a rid; `None` for anything that this server would not have written.
    pub fn parse(text: &str) -> Option<Rid> {
        if text.len() > RID_BYTES_MAX.div_ceil(3) * 4 {
            return None;
        }
        // The decoder wants room for its estimate, which rounds up to whole groups of three.
        let mut bytes = [0u8; RID_BYTES_MAX + 2];
        let length = RID.decode_slice(text.as_bytes(), &mut bytes).ok()?;
        let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        match length {
            3 => Some(Rid::Offer(u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]))),
            4 => Some(Rid::Database(word(0))),
            8 if word(4) & CONTAINER_BIT == 0 => Some(Rid::User { database: word(0), user: word(4) }),
            16 if word(4) & CONTAINER_BIT == 0 => {
                let number = u64::from(word(8)) << 32 | u64::from(word(12));
                let permission = u32::try_from(number.swap_bytes()).ok()?;
                Some(Rid::Permission { database: word(0), user: word(4), permission })
            }
            9 if word(4) & CONTAINER_BIT == 0 && bytes[8] == KIND_ENCRYPTION_KEY => {
                Some(Rid::EncryptionKey { database: word(0), key: word(4) })
            }
            8 => Some(Rid::Container { database: word(0), container: word(4) & !CONTAINER_BIT }),
            20 if word(4) & CONTAINER_BIT != 0 => {
                let (database, container) = (word(0), word(4) & !CONTAINER_BIT);
                let item = (u64::from(word(8)) << 32 | u64::from(word(12))).swap_bytes();
                let attachment = word(16).swap_bytes();
                Some(Rid::Attachment { database, container, item, attachment })
            }
            16 => {
                let (database, container) = (word(0), word(4) & !CONTAINER_BIT);
                let mut tail = [0u8; 8];
                tail.copy_from_slice(&bytes[8..16]);
                let tail = u64::from_le_bytes(tail);
                let number = tail & ((1 << KIND_SHIFT) - 1);
                match tail >> KIND_SHIFT {
                    KIND_ITEM => Some(Rid::Item { database, container, number }),
                    KIND_RANGE => {
                        Some(Rid::Range { database, container, range: u32::try_from(number).ok()? })
                    }
                    kind => {
                        let (_, kind) = KIND_SCRIPTS.into_iter().find(|(known, _)| *known == kind)?;
                        Some(Rid::Script { database, container, kind, number })
                    }
                }
            }
            _ => None,
        }
    }
}

/// The id of stored media, taken apart: an attachment, and where the key of its item lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaId {
    pub database: u32,
    pub container: u32,
    pub item: u64,
    pub attachment: u32,
    pub epk: Epk,
}

impl MediaId {
    /// `None` for anything that this server would not have written.
    pub fn parse(text: &str) -> Option<MediaId> {
        if text.len() > (RID_BYTES_MAX + 1 + MEDIA_EPK_BYTES_MAX).div_ceil(3) * 4 {
            return None;
        }
        let bytes = RID.decode(text).ok()?;
        let (rid, [MEDIA_STORE, epk @ ..]) = bytes.split_at_checked(RID_BYTES_MAX)? else { return None };
        match Rid::parse(&RID.encode(rid))? {
            Rid::Attachment { database, container, item, attachment } => {
                Some(MediaId { database, container, item, attachment, epk: Epk(epk.into()) })
            }
            _ => None,
        }
    }
}

/// The text of a rid that came as bytes. Long ones are no rid of ours, and need not be written.
pub fn text_of(bytes: &[u8]) -> String {
    RID.encode(&bytes[..bytes.len().min(RID_BYTES_MAX)])
}

pub fn offer_rid(number: u32) -> String {
    RID.encode(&number.to_be_bytes()[1..])
}

pub fn database_rid(number: u32) -> String {
    RID.encode(number.to_be_bytes())
}

pub fn user_rid(database: u32, user: u32) -> String {
    RID.encode(user_bytes(database, user))
}

pub fn encryption_key_rid(database: u32, key: u32) -> String {
    let mut bytes = [0u8; 9];
    bytes[..8].copy_from_slice(&user_bytes(database, key));
    bytes[8] = KIND_ENCRYPTION_KEY;
    RID.encode(bytes)
}

pub fn permission_rid(database: u32, user: u32, permission: u32) -> String {
    let mut bytes = [0u8; 16];
    bytes[..8].copy_from_slice(&user_bytes(database, user));
    bytes[8..].copy_from_slice(&u64::from(permission).to_le_bytes());
    RID.encode(bytes)
}

fn user_bytes(database: u32, user: u32) -> [u8; 8] {
    let mut bytes = [0u8; 8];
    bytes[..4].copy_from_slice(&database.to_be_bytes());
    bytes[4..].copy_from_slice(&(user & !CONTAINER_BIT).to_be_bytes());
    bytes
}

/// The rid of a container, kept in both forms because every item of an answer is written with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContainerRid {
    bytes: [u8; 8],
    database: [u8; 8],
    text: [u8; 12],
}

impl ContainerRid {
    pub fn new(database: u32, container: u32) -> ContainerRid {
        let mut bytes = [0u8; 8];
        bytes[..4].copy_from_slice(&database.to_be_bytes());
        bytes[4..].copy_from_slice(&(container | CONTAINER_BIT).to_be_bytes());
        ContainerRid { bytes, database: encoded(&bytes[..4]), text: encoded(&bytes) }
    }

    pub fn as_str(&self) -> &str {
        ascii(&self.text)
    }

    /// The rid of an item, as 24 characters.
    pub fn item(&self, number: u64) -> [u8; 24] {
        self.child(KIND_ITEM, number)
    }

    pub fn range(&self, range: u32) -> [u8; 24] {
        self.child(KIND_RANGE, u64::from(range))
    }

    pub fn script(&self, kind: ScriptKind, number: u64) -> [u8; 24] {
        let known = KIND_SCRIPTS.iter().find(|(_, known)| *known == kind);
        self.child(known.map_or(KIND_ITEM, |(nibble, _)| *nibble), number)
    }

    pub fn attachment(&self, item: u64, attachment: u32) -> String {
        RID.encode(self.attachment_bytes(item, attachment))
    }

    /// The id of the media of an attachment whose item's key lies here in the hash space.
    pub fn media(&self, item: u64, attachment: u32, epk: &Epk) -> String {
        let rid = self.attachment_bytes(item, attachment);
        RID.encode([&rid[..], &[MEDIA_STORE], epk.as_bytes()].concat())
    }

    fn attachment_bytes(&self, item: u64, attachment: u32) -> [u8; 20] {
        let mut bytes = [0u8; 20];
        bytes[..8].copy_from_slice(&self.bytes);
        bytes[8..16].copy_from_slice(&item.to_le_bytes());
        bytes[16..].copy_from_slice(&attachment.to_le_bytes());
        bytes
    }

    fn child(&self, kind: u64, number: u64) -> [u8; 24] {
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&self.bytes);
        let tail = (number & ((1 << KIND_SHIFT) - 1)) | (kind << KIND_SHIFT);
        bytes[8..].copy_from_slice(&tail.to_le_bytes());
        encoded(&bytes)
    }

    /// Writes `dbs/{rid}/colls/{rid}/`, the `_self` of the container and the start of everything inside.
    pub fn write_self(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"dbs/");
        out.extend_from_slice(&self.database);
        out.extend_from_slice(b"/colls/");
        out.extend_from_slice(&self.text);
        out.push(b'/');
    }
}

fn encoded<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut text = [0u8; N];
    let length = RID.encode_slice(bytes, &mut text).expect("N is the encoded length of these bytes");
    debug_assert_eq!(length, N);
    text
}

pub fn ascii(text: &[u8]) -> &str {
    std::str::from_utf8(text).expect("base64 is ASCII")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_rid_reads_back() {
        let container = ContainerRid::new(1, 2);
        let check = |text: &str, want: Rid| assert_eq!(Rid::parse(text), Some(want), "{text}");
        check(&offer_rid(0x123456), Rid::Offer(0x123456));
        check(&database_rid(7), Rid::Database(7));
        check(container.as_str(), Rid::Container { database: 1, container: 2 });
        check(ascii(&container.item(1000)), Rid::Item { database: 1, container: 2, number: 1000 });
        let largest = (1 << 60) - 1;
        check(ascii(&container.item(largest)), Rid::Item { database: 1, container: 2, number: largest });
        for (_, kind) in KIND_SCRIPTS {
            let text = container.script(kind, 3);
            check(ascii(&text), Rid::Script { database: 1, container: 2, kind, number: 3 });
        }
        check(ascii(&container.range(9)), Rid::Range { database: 1, container: 2, range: 9 });
    }

    #[test]
    fn media_are_named_by_their_attachment_and_the_place_of_their_key() {
        let container = ContainerRid::new(1, 2);
        let rid = container.attachment(1000, 7);
        assert_eq!(rid.len(), 28);
        assert_eq!(
            Rid::parse(&rid),
            Some(Rid::Attachment { database: 1, container: 2, item: 1000, attachment: 7 })
        );
        for epk in [Epk::MIN, Epk::from_hex("0A0BFF").unwrap()] {
            let media = MediaId { database: 1, container: 2, item: 1000, attachment: 7, epk };
            let text = container.media(1000, 7, &media.epk);
            // Clients sign the first 20 bytes, which are the rid of the attachment.
            assert_eq!(RID.encode(&RID.decode(&text).unwrap()[..20]), rid);
            assert_eq!(MediaId::parse(&text), Some(media));
        }
        for text in ["", &rid, "AAAA", &"A".repeat(100_000)] {
            assert_eq!(MediaId::parse(text), None, "{text:.40}");
        }
    }

    #[test]
    fn the_item_part_is_little_endian_after_the_container() {
        assert_eq!(ascii(&ContainerRid::new(1, 2).item(1000)), "AAAAAYAAAALoAwAAAAAAAA==");
        assert_eq!(ContainerRid::new(1, 2).as_str(), "AAAAAYAAAAI=");
        assert_eq!(database_rid(1), "AAAAAQ==");
    }

    #[test]
    fn slashes_become_hyphens() {
        let rid = database_rid(0xFFFF_FFFF);
        assert!(!rid.contains('/') && rid.contains('-'), "{rid}");
        assert_eq!(Rid::parse(&rid), Some(Rid::Database(0xFFFF_FFFF)));
    }

    #[test]
    fn names_and_damaged_rids_are_no_rids() {
        for text in
            ["", "mydatabase", "database", "AAAAAQ=", "AAAAAQ===", "AAAAAQ/=", "AAAAAYAAAALoAwAAAAAA8A=="]
        {
            assert_eq!(Rid::parse(text), None, "{text}");
        }
        assert_eq!(Rid::parse(&"A".repeat(10_000)), None);
    }

    #[test]
    fn users_and_permissions_read_back() {
        assert_eq!(user_rid(1, 2), "AAAAAQAAAAI=");
        assert_eq!(Rid::parse("AAAAAQAAAAI="), Some(Rid::User { database: 1, user: 2 }));
        let rid = encryption_key_rid(1, 2);
        assert_eq!(Rid::parse(&rid), Some(Rid::EncryptionKey { database: 1, key: 2 }), "{rid}");
        let rid = permission_rid(1, 2, 1000);
        assert_eq!(Rid::parse(&rid), Some(Rid::Permission { database: 1, user: 2, permission: 1000 }));
        assert_eq!(Rid::parse("AAAAAQAAAAL---------_w=="), None);
    }

    #[test]
    fn the_self_link_is_made_of_rids() {
        let mut out = Vec::new();
        ContainerRid::new(1, 2).write_self(&mut out);
        assert_eq!(out, b"dbs/AAAAAQ==/colls/AAAAAYAAAAI=/");
    }
}
