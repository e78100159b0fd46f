//! OP_QUERY, with which old drivers and the first message of new ones send commands, and OP_REPLY, its answer.

use orrery_mongo::{Error, codec, error::code};

use super::{Request, Unreadable, document_bytes};

const QUERY_FAILURE: i32 = 2;
const AWAIT_CAPABLE: i32 = 8;
const COMMANDS: &str = "$cmd";

/// flags, namespace with a zero, skip, count, document, perhaps a selection of fields.
pub fn read(request_id: i32, bytes: &[u8]) -> Result<Request, Unreadable> {
    let refused = |error: Error| Unreadable::Refused { request_id, legacy: true, error };
    let rest = bytes.get(4..).ok_or(Unreadable::Broken("no flags"))?;
    let end =
        rest.iter().position(|byte| *byte == 0).ok_or(Unreadable::Broken("a namespace without its end"))?;
    let namespace =
        std::str::from_utf8(&rest[..end]).map_err(|_| Unreadable::Broken("a namespace that is no text"))?;
    let rest = rest.get(end + 9..).ok_or(Unreadable::Broken("no document"))?;
    let document = document_bytes(rest).ok_or(Unreadable::Broken("a document without its end"))?;
    let Some((database, COMMANDS)) = namespace.split_once('.') else {
        return Err(refused(Error::new(
            code::UNSUPPORTED_OP_QUERY_COMMAND,
            "Unsupported OP_QUERY command: find. The client driver may require an upgrade. For more details see \
             https://dochub.mongodb.org/core/legacy-opcode-removal",
        )));
    };
    let mut body = codec::read_document(document).map_err(refused)?;
    // Some wrap the command to put a read preference beside it.
    if let Some((first, orrery_mongo::Bson::Document(wrapped))) = body.first()
        && (&**first == "$query" || &**first == "query")
    {
        let mut command = wrapped.clone();
        if let Some(preference) = body.get("$readPreference") {
            command.set("$readPreference", preference.clone());
        }
        body = command;
    }
    Ok(Request {
        request_id,
        body,
        database: Some(database.to_owned()),
        legacy: true,
        flags: 0,
        compressor: None,
    })
}

pub fn write(document: &[u8], failed: bool, out: &mut Vec<u8>) {
    let flags = AWAIT_CAPABLE | if failed { QUERY_FAILURE } else { 0 };
    out.extend_from_slice(&flags.to_le_bytes());
    // No cursor, from the first of one document.
    out.extend_from_slice(&0i64.to_le_bytes());
    out.extend_from_slice(&0i32.to_le_bytes());
    out.extend_from_slice(&1i32.to_le_bytes());
    out.extend_from_slice(document);
}
