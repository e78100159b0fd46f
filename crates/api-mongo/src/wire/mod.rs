//! Messages of MongoDB's wire protocol: bytes to commands, replies to bytes.
//!
//! ```text
//! header 16 bytes: length, request id, in reply to, opcode
//!   2013 OP_MSG         flags, sections: one document, and sequences of documents that belong to it; a checksum
//!   2004 OP_QUERY       how old drivers say hello; answered by OP_REPLY (1)
//!   2012 OP_COMPRESSED  one of the two, packed
//! ```
//!
//! Nothing here trusts a length: every one is checked against what has arrived, and what is unpacked against what was
//! announced.

mod compression;
mod legacy;
mod message;

use orrery_mongo::{Document, Error};

pub use compression::Compressor;
pub use message::{EXHAUST_ALLOWED, MORE_TO_COME};

/// Largest message, header included.
pub const MESSAGE_BYTES_MAX: usize = 48_000_000;
/// Largest document of a client.
pub const DOCUMENT_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What commands may be larger than a document, for what stands around one.
pub const DOCUMENT_ALLOWANCE_BYTES: usize = 16 * 1024;
/// Writes of one command.
pub const WRITE_BATCH_MAX: usize = 100_000;
pub const HEADER_BYTES: usize = 16;

pub const OP_REPLY: i32 = 1;
pub const OP_QUERY: i32 = 2004;
pub const OP_COMPRESSED: i32 = 2012;
pub const OP_MSG: i32 = 2013;

/// What every message begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub length: usize,
    pub request_id: i32,
    pub response_to: i32,
    pub opcode: i32,
}

/// Bytes after which nothing can be told any more: the connection ends.
#[derive(Debug)]
pub struct Broken(pub &'static str);

impl Header {
    /// The header, if it is all there.
    pub fn read(bytes: &[u8]) -> Result<Option<Header>, Broken> {
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let length = usize::try_from(int(bytes, 0)).map_err(|_| Broken("a message of a negative length"))?;
        let header =
            Header { length, request_id: int(bytes, 4), response_to: int(bytes, 8), opcode: int(bytes, 12) };
        if !(HEADER_BYTES..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Broken("a message that is too short or too long"));
        }
        match header.opcode {
            OP_MSG | OP_QUERY | OP_COMPRESSED => Ok(Some(header)),
            _ => Err(Broken("an opcode that nobody sends any more")),
        }
    }
}

/// A command as it came.
#[derive(Debug)]
pub struct Request {
    pub request_id: i32,
    /// With the sequences of documents as arrays.
    pub body: Document,
    /// Of OP_QUERY: the namespace says it, and the body does not.
    pub database: Option<String>,
    /// The answer is an OP_REPLY.
    pub legacy: bool,
    pub flags: u32,
    /// How it was packed, and so is the answer.
    pub compressor: Option<Compressor>,
}

/// Why a message is no command.
#[derive(Debug)]
pub enum Unreadable {
    Broken(&'static str),
    /// It can be answered.
    Refused {
        request_id: i32,
        legacy: bool,
        error: Error,
    },
}

impl From<Broken> for Unreadable {
    fn from(Broken(why): Broken) -> Unreadable {
        Unreadable::Broken(why)
    }
}

/// Reads a whole message, of which `bytes` is what follows the header.
pub fn read(header: Header, bytes: &[u8]) -> Result<Request, Unreadable> {
    match header.opcode {
        OP_MSG => message::read(header.request_id, bytes, Some(header)),
        OP_QUERY => legacy::read(header.request_id, bytes),
        OP_COMPRESSED => {
            let (opcode, compressor, unpacked) = compression::unpack(bytes)?;
            let mut request = match opcode {
                OP_MSG => message::read(header.request_id, &unpacked, None),
                OP_QUERY => legacy::read(header.request_id, &unpacked),
                _ => return Err(Unreadable::Broken("a packed message with an opcode that nobody sends")),
            }?;
            request.compressor = compressor;
            Ok(request)
        }
        _ => Err(Unreadable::Broken("an unknown opcode")),
    }
}

/// How a reply goes out.
#[derive(Clone, Copy, Debug)]
pub struct Envelope {
    pub response_to: i32,
    pub legacy: bool,
    pub compressor: Option<Compressor>,
    pub more_to_come: bool,
}

/// Writes a whole reply around a document that is BSON already.
pub fn write(envelope: Envelope, request_id: i32, document: &[u8], failed: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + 32 + document.len());
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let opcode = match envelope.legacy {
        true => {
            legacy::write(document, failed, &mut out);
            OP_REPLY
        }
        false => {
            message::write(document, envelope.more_to_come, &mut out);
            OP_MSG
        }
    };
    let opcode = match envelope.compressor.filter(|_| !envelope.legacy) {
        Some(compressor) => {
            out = compression::pack(compressor, opcode, &out[HEADER_BYTES..]);
            OP_COMPRESSED
        }
        None => opcode,
    };
    let length = out.len() as i32;
    for (at, value) in [(0, length), (4, request_id), (8, envelope.response_to), (12, opcode)] {
        out[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    out
}

/// Whether a connection begins like one of this protocol.
pub fn claim(first: &[u8]) -> orrery_api::Claim {
    use orrery_api::Claim;
    // A length that is a message's has a small fourth byte; text of HTTP never has.
    if let Some(byte) = first.get(3)
        && usize::from(*byte) > MESSAGE_BYTES_MAX >> 24
    {
        return Claim::NotMine;
    }
    if first.first().is_some_and(u8::is_ascii_uppercase) && first.get(1).is_some_and(u8::is_ascii_uppercase) {
        return Claim::NotMine;
    }
    match Header::read(first) {
        Err(_) => Claim::NotMine,
        Ok(None) => Claim::Undecided,
        // The first message of a client answers nothing.
        Ok(Some(header)) if header.response_to == 0 || header.response_to == -1 => Claim::Mine,
        Ok(Some(_)) => Claim::NotMine,
    }
}

fn int(bytes: &[u8], at: usize) -> i32 {
    let mut four = [0; 4];
    if let Some(from) = bytes.get(at..at + 4) {
        four.copy_from_slice(from);
    }
    i32::from_le_bytes(four)
}

/// The bytes of a document at the beginning of these, by its own length.
fn document_bytes(bytes: &[u8]) -> Option<&[u8]> {
    if bytes.len() < 5 {
        return None;
    }
    let length = usize::try_from(int(bytes, 0)).ok()?;
    (length >= 5).then(|| bytes.get(..length)).flatten()
}

#[cfg(test)]
mod tests;
