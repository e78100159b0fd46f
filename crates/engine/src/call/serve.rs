//! Answering a request with the partition that it names, as the node does that has it.
//!
//! Up to the first thing that it must wait for, an answer is made when its future is first polled: a write is
//! submitted then, so requests that are polled in the order of their arrival are submitted in that order.

use std::sync::Arc;

use orrery_budget::Budget;
use orrery_model::{Epk, PartitionKey};

use super::partition_ref::{DeletePartitionKey, WriteCall, Written, durable};
use super::query_page::{Gone, PageCall, is_gone};
use super::{Answer, PartitionRef, Reply, Request};
use crate::error::Result;
use crate::partition::Partition;
use crate::query::QueryFailure;
use crate::query_host::SQL_HOST;

/// `gone` says that nobody waits for the answer any more; a script or a page of a query ends then.
pub(super) async fn answer(partition: Arc<Partition>, request: Request, gone: Gone) -> Answer {
    let here = PartitionRef::Local(partition.clone());
    let reply = match request {
        Request::ReadItem { key, epk, id, options } => {
            here.read_item(&key, &epk, &id, &options).await.map(Reply::Item)
        }
        Request::FindItem { epk, number } => {
            here.find_item(&epk, number).await.map(|(key, id)| Reply::ItemFound(key, id))
        }
        Request::StoredBytes { key, epk, id } => {
            here.stored_bytes(&key, &epk, &id).await.map(Reply::StoredBytes)
        }
        Request::WriteItem { key, epk, write } => {
            return written(here, write, &key, &epk, Reply::Written).await;
        }
        Request::WriteBatch { key, epk, operations } => {
            return written(here, operations, &key, &epk, Reply::BatchWritten).await;
        }
        Request::DeletePartitionKey { key, epk } => {
            return written(here, DeletePartitionKey, &key, &epk, Reply::PartitionKeyDeleted).await;
        }
        Request::WriteBulk { operations, continue_on_error } => {
            here.write_bulk(operations, continue_on_error).await.map(Reply::BatchWritten)
        }
        Request::ScanItems { span, from, limits, session } => {
            here.scan_items(&span, &from, limits, &session).await.map(Reply::Items)
        }
        Request::ReadChanges { span, from, limits, session } => {
            here.read_changes(&span, from, limits, &session).await.map(Reply::Changes)
        }
        Request::ReadVersions { span, after, limits, session } => {
            here.read_versions(&span, after, limits, &session).await.map(Reply::Versions)
        }
        Request::ReadStatus { session } => here.status(session.as_deref()).await.map(Reply::Status),
        Request::Admit { class } => here.admit(class).await.map(|()| Reply::Done),
        Request::Charge { class, charge_ru, key } => {
            here.charge(class, charge_ru, key.as_ref()).await.map(|()| Reply::Done)
        }
        Request::RunScript { key, epk, mut call } => {
            call.budget = call.budget.and_then(|budget| of_this_node(&partition, &budget, &gone));
            match here.run_script(&key, &epk, *call).await {
                Ok(Some(reply)) => Ok(Reply::ScriptRun(Box::new(reply))),
                Ok(None) => return Answer::Moved,
                Err(error) => Err(error),
            }
        }
        Request::ReadInsight { keys } => {
            here.insight(keys).await.map(|insight| Reply::Insight(Box::new(insight)))
        }
        Request::BuildClaims => here.build_claims().await.map(Reply::Claims),
        Request::QueryPage(call) => return queried(&partition, *call, &gone),
    };
    ended(reply)
}

/// What a request has left, out of the memory of this node; `None` where nothing here says how much there is.
fn of_this_node(partition: &Partition, budget: &Budget, gone: &Gone) -> Option<Budget> {
    let host = partition.owner().hosts().query(SQL_HOST)?;
    Some(host.budget(*budget.limits(), Some(is_gone(gone))))
}

fn queried(partition: &Partition, call: PageCall, gone: &Gone) -> Answer {
    match call.answer(partition, gone) {
        Ok(reply) => Answer::Done(Reply::QueryPage(Box::new(reply))),
        Err(QueryFailure::Engine(error)) => Answer::Failed(error),
        Err(failure) => Answer::Done(Reply::QueryFailed(Box::new(failure))),
    }
}

fn ended(reply: Result<Reply>) -> Answer {
    match reply {
        Ok(reply) => Answer::Done(reply),
        Err(error) => Answer::Failed(error),
    }
}

/// Writes, or waits for the end of a handover and says that the request is to be routed again.
async fn written<C: WriteCall>(
    here: PartitionRef,
    call: C,
    key: &PartitionKey,
    epk: &Epk,
    reply: fn(C::Reply) -> Reply,
) -> Answer {
    match here.write(&call, key, epk) {
        Written::Submitted(partition, submitted) => ended(durable(&partition, submitted).await.map(reply)),
        Written::Moved(partition) => {
            if let Some(pause_end) = partition.pause_end() {
                // The sender is dropped, not used; either way the pause is over.
                let _ = pause_end.await;
            }
            Answer::Moved
        }
        // What is here was not sent on.
        Written::Sent(answer) => answer.await.unwrap_or_else(Answer::Failed),
    }
}
