//! Collections that a transaction makes: nobody else sees them before it is committed, and they are gone if it is not.

use std::sync::Arc;

use orrery_mongo::Result;
use parking_lot::Mutex;

use super::Call;
use crate::collection::transaction::Transaction;
use crate::service::Core;

/// The transaction of the call has made a collection.
pub fn made(call: &Call<'_>, name: &str) {
    let Some(transaction) = &call.transaction else { return };
    let place = (call.database.to_owned(), name.to_owned());
    call.core.hidden.lock().insert(place.clone(), Arc::downgrade(transaction));
    transaction.lock().created.push(place);
}

/// Whether the transaction of the call has made a collection.
pub fn is_own(call: &Call<'_>, name: &str) -> bool {
    call.transaction.as_ref().is_some_and(|transaction| {
        transaction.lock().created.iter().any(|(database, known)| database == call.database && known == name)
    })
}

/// Whether a collection is one that another transaction has made and not committed. One whose transaction was given up
/// goes now.
pub fn is_hidden(call: &Call<'_>, name: &str) -> Result<bool> {
    let place = (call.database.to_owned(), name.to_owned());
    let owner = {
        let hidden = call.core.hidden.lock();
        if hidden.is_empty() {
            return Ok(false);
        }
        match hidden.get(&place) {
            None => return Ok(false),
            Some(owner) => owner.upgrade(),
        }
    };
    match owner {
        Some(owner) => Ok(!call.transaction.as_ref().is_some_and(|own| Arc::ptr_eq(own, &owner))),
        None => {
            if call.core.hidden.lock().remove(&place).is_some() {
                call.core.catalog.drop(call.core, call.database, name)?;
            }
            Ok(true)
        }
    }
}

/// A transaction has ended: what it has made stays, or goes.
pub fn settle(core: &Core, transaction: &Mutex<Transaction>, committed: bool) {
    let created = std::mem::take(&mut transaction.lock().created);
    for place in created {
        let ours = core.hidden.lock().remove(&place).is_some();
        if ours
            && !committed
            && let Err(error) = core.catalog.drop(core, &place.0, &place.1)
        {
            tracing::warn!(database = place.0, collection = place.1, %error, "a collection of a transaction that was given up is left");
        }
    }
}
