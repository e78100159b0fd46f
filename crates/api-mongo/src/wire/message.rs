//! OP_MSG: one document, and sequences of documents that stand for arrays of its members.

use orrery_mongo::{Bson, Document, Error, codec, error::code};

use super::{
    DOCUMENT_ALLOWANCE_BYTES, DOCUMENT_BYTES_MAX, HEADER_BYTES, Header, Request, Unreadable, WRITE_BATCH_MAX,
    document_bytes, int,
};

/// Four bytes behind the sections are their checksum.
pub const CHECKSUM_PRESENT: u32 = 1;
/// No answer is expected; of a reply: another follows.
pub const MORE_TO_COME: u32 = 1 << 1;
/// The client takes more than one reply.
pub const EXHAUST_ALLOWED: u32 = 1 << 16;
/// Bits that must be understood.
const REQUIRED_BITS: u32 = 0xFFFF;
/// Sequences of one message.
const SEQUENCES_MAX: usize = 16;

const BODY: u8 = 0;
const SEQUENCE: u8 = 1;

/// Reads what follows the header. A message that was unpacked has no header of its own to check.
pub fn read(request_id: i32, bytes: &[u8], header: Option<Header>) -> Result<Request, Unreadable> {
    let refused = |error: Error| Unreadable::Refused { request_id, legacy: false, error };
    let (flags, mut rest) = bytes.split_first_chunk::<4>().ok_or(Unreadable::Broken("no flags"))?;
    let flags = u32::from_le_bytes(*flags);
    if flags & REQUIRED_BITS & !(CHECKSUM_PRESENT | MORE_TO_COME) != 0 {
        return Err(refused(Error::new(
            code::ILLEGAL_OPERATION,
            format!("Message contains illegal flags value: Ob{:b}", flags & REQUIRED_BITS),
        )));
    }
    if flags & CHECKSUM_PRESENT != 0 {
        let (sections, checksum) = rest.split_last_chunk::<4>().ok_or(Unreadable::Broken("no checksum"))?;
        if let Some(header) = header
            && checksum_of(header, &bytes[..bytes.len() - 4]) != u32::from_le_bytes(*checksum)
        {
            return Err(refused(Error::new(CHECKSUM_MISMATCH, "OP_MSG checksum does not match contents")));
        }
        rest = sections;
    }
    let mut body: Option<Document> = None;
    let mut sequences: Vec<(&str, Bson)> = Vec::new();
    while let Some((&kind, section)) = rest.split_first() {
        match kind {
            BODY => {
                let document = document_bytes(section).ok_or(Unreadable::Broken("a body without its end"))?;
                if body.is_some() {
                    return Err(refused(Error::new(40430, "Multiple body sections in message")));
                }
                body = Some(codec::read_document(document).map_err(refused)?);
                rest = &section[document.len()..];
            }
            SEQUENCE => {
                let size = usize::try_from(int(section, 0)).unwrap_or(0);
                let sequence =
                    section.get(4..size).ok_or(Unreadable::Broken("a sequence without its end"))?;
                let (name, documents) =
                    named(sequence).ok_or(Unreadable::Broken("a sequence without a name"))?;
                if sequences.len() == SEQUENCES_MAX || sequences.iter().any(|(known, _)| *known == name) {
                    return Err(refused(Error::new(40431, format!("Duplicate document sequence: {name}"))));
                }
                sequences.push((name, documents_of(documents).map_err(refused)?));
                rest = &section[size..];
            }
            _ => return Err(refused(Error::new(40432, format!("Unknown section kind {kind}")))),
        }
    }
    let mut body = body.ok_or_else(|| refused(Error::new(40587, "OP_MSG messages must have a body")))?;
    for (name, documents) in sequences {
        if body.contains(name) {
            return Err(refused(Error::new(
                40433,
                format!("Duplicate field between body and document sequence {name}"),
            )));
        }
        body.push(name, documents);
    }
    Ok(Request { request_id, body, database: None, legacy: false, flags, compressor: None })
}

const CHECKSUM_MISMATCH: i32 = 50970;

fn checksum_of(header: Header, bytes: &[u8]) -> u32 {
    let mut head = [0; HEADER_BYTES];
    let fields = [header.length as i32, header.request_id, header.response_to, header.opcode];
    for (at, value) in fields.into_iter().enumerate() {
        head[at * 4..at * 4 + 4].copy_from_slice(&value.to_le_bytes());
    }
    crc32c::crc32c_append(crc32c::crc32c(&head), bytes)
}

/// A name that ends with a zero, and what follows it.
fn named(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    Some((std::str::from_utf8(&bytes[..end]).ok()?, &bytes[end + 1..]))
}

fn documents_of(mut bytes: &[u8]) -> Result<Bson, Error> {
    let mut documents = Vec::new();
    while !bytes.is_empty() {
        let document = document_bytes(bytes)
            .ok_or_else(|| Error::new(code::INVALID_BSON, "a document of a sequence is cut off"))?;
        if document.len() > DOCUMENT_BYTES_MAX + DOCUMENT_ALLOWANCE_BYTES {
            return Err(Error::new(
                code::BSON_OBJECT_TOO_LARGE,
                format!(
                    "BSONObj size: {} is invalid. Size must be between 0 and {DOCUMENT_BYTES_MAX}",
                    document.len()
                ),
            ));
        }
        if documents.len() == WRITE_BATCH_MAX {
            return Err(Error::new(
                code::INVALID_LENGTH,
                format!("Write batch sizes must be between 1 and {WRITE_BATCH_MAX}."),
            ));
        }
        documents.push(Bson::Document(codec::read_document(document)?));
        bytes = &bytes[document.len()..];
    }
    Ok(Bson::array(documents))
}

pub fn write(document: &[u8], more_to_come: bool, out: &mut Vec<u8>) {
    let flags = if more_to_come { MORE_TO_COME } else { 0 };
    out.extend_from_slice(&flags.to_le_bytes());
    out.push(BODY);
    out.extend_from_slice(document);
}
