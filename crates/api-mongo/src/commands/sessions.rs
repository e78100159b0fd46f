//! Sessions and transactions.

use std::sync::Arc;

use orrery_mongo::{Bson, Document, Error, Result, doc, error::code};

use super::{Call, hidden};
use crate::reply::Reply;
use crate::sessions::{TIMEOUT_MINUTES, id_of, no_such_transaction};

pub fn start_session(call: &mut Call<'_>) -> Result<Reply> {
    let mut id = [0u8; 16];
    id[..8].copy_from_slice(&call.core.random_u64().to_le_bytes());
    id[8..].copy_from_slice(&call.core.random_u64().to_le_bytes());
    let id = uuid::Builder::from_random_bytes(id).into_uuid();
    call.core.sessions.touch(*id.as_bytes())?;
    let bytes: Arc<[u8]> = id.as_bytes()[..].into();
    Ok(doc! { "id" => doc! { "id" => Bson::Binary { subtype: 4, bytes } }, "timeoutMinutes" => TIMEOUT_MINUTES }.into())
}

pub fn refresh(call: &mut Call<'_>) -> Result<Reply> {
    for session in call.argument().as_array().unwrap_or_default() {
        if let Some(id) = id_of(session) {
            call.core.sessions.touch(id)?;
        }
    }
    Ok(Document::new().into())
}

/// Ends sessions, with their cursors and transactions.
pub fn end(call: &mut Call<'_>) -> Result<Reply> {
    for session in call.argument().as_array().unwrap_or_default() {
        if let Some(id) = id_of(session) {
            call.core.sessions.remove(id);
            call.core.cursors.kill_where(|cursor| cursor.session == Some(id));
        }
    }
    Ok(Document::new().into())
}

pub fn kill_all(call: &mut Call<'_>) -> Result<Reply> {
    call.core.sessions.clear();
    call.core.cursors.kill_where(|cursor| cursor.session.is_some());
    Ok(Document::new().into())
}

pub fn commit(call: &mut Call<'_>) -> Result<Reply> {
    let (Some(session), Some(number)) = (call.session, call.txn_number) else {
        return Err(Error::new(code::INVALID_OPTIONS, "commitTransaction must be run within a transaction"));
    };
    let Some(open) = call.core.sessions.to_commit(session, number)? else {
        return Ok(Document::new().into());
    };
    let committed = open.lock().commit(&call.scope());
    hidden::settle(call.core, &open, committed.is_ok());
    call.core.sessions.end(session, number, committed.is_ok());
    committed?;
    call.core.clock.tick(call.core.account.env().now_s());
    Ok(Document::new().into())
}

pub fn abort(call: &mut Call<'_>) -> Result<Reply> {
    let (Some(session), Some(number)) = (call.session, call.txn_number) else {
        return Err(Error::new(code::INVALID_OPTIONS, "abortTransaction must be run within a transaction"));
    };
    match call.core.sessions.to_commit(session, number)? {
        None => {
            Err(Error::new(code::TRANSACTION_COMMITTED, format!("Transaction {number} has been committed.")))
        }
        Some(open) => match call.core.sessions.end(session, number, false) {
            true => {
                hidden::settle(call.core, &open, false);
                call.core.cursors.kill_where(|cursor| {
                    cursor.session == Some(session) && cursor.transaction == Some(number)
                });
                Ok(Document::new().into())
            }
            false => Err(no_such_transaction(number)),
        },
    }
}
