//! The order in which the rows of a page come, one type for each.
//!
//! Each has its own state, where the page goes on, and works with the page's two other rooms: the way to the items
//! (`ItemReader`) and what leaves the page (`Output`).
//!
//! - [`Streamed`]: as the items come. [`Sorted`]: by sort keys. [`Materialized`]: when everything was seen.
//! - Of sorted pages: `choice` says which way is the cheapest, `index_order` is an index that has the order, `walk`
//!   goes through it in `steps`, `column_walk` through columns, `by_key`, `top_k`, `top_k_candidates` and `window`
//!   put the first few in order, `ranked` asks a search index for scores, `vector_scan` and `graph` one for vectors,
//!   `incomparable` are the items without one.
//! - Of whole ones: `by_value` are those that the index answers alone.

mod by_key;
mod by_value;
mod choice;
mod column_walk;
mod graph;
mod incomparable;
mod index_order;
mod materialized;
mod ranked;
mod sorted;
mod steps;
mod streamed;
mod top_k;
mod top_k_candidates;
mod vector_scan;
mod walk;
mod window;

use orrery_query::{Execution, Flow};

pub(super) use materialized::Materialized;
pub(super) use sorted::Sorted;
pub(super) use streamed::Streamed;

use super::access_path::{Candidate, ItemReader};
use super::output::Output;
use super::page::Ran;
use crate::item::readable;

/// Runs a query over all candidates, or over everything if there are none to be had.
fn push_all<'q>(
    reader: &mut ItemReader<'q>,
    output: &mut Output<'q>,
    execution: &mut Execution<'q>,
    candidates: Option<Vec<Candidate>>,
    created: bool,
) -> Ran<Flow> {
    let mut list = match candidates {
        Some(candidates) if created => reader.by_creation(candidates, 0)?,
        Some(candidates) => reader.by_key(&candidates, None)?,
        None if created => reader.list_created(0)?,
        None => return push_stored(reader, output, execution),
    };
    for at in &mut list.items {
        reader.allowance.check()?;
        let item = match at.item.take() {
            Some(item) => Some(item),
            None => reader.load(&at.key)?,
        };
        let Some(item) = item else { continue };
        if output.push(execution, &item, &mut reader.allowance)? == Flow::Stop {
            return Ok(Flow::Stop);
        }
    }
    Ok(Flow::More)
}

/// Runs a query over all items of the span, in storage order.
fn push_stored<'q>(
    reader: &mut ItemReader<'q>,
    output: &mut Output<'q>,
    execution: &mut Execution<'q>,
) -> Ran<Flow> {
    reader.report.scan();
    if let Some(flow) = reader.push_columns(output, execution)? {
        return Ok(flow);
    }
    reader.foresee_all()?;
    let mut making = reader.make_columns(reader.query.prepared.column_query())?;
    let mut flow = Flow::More;
    reader.visit(&mut |reader, key, item, document| {
        reader.count_loaded(document.len());
        making.push(reader, key, item.number, document);
        flow = output.push_document(execution, item, readable(document), &mut reader.allowance)?;
        Ok(flow)
    })?;
    if flow == Flow::More {
        reader.keep_columns(making);
    }
    Ok(flow)
}

/// Runs a query over the item that an index entry leads to.
fn push_reference<'q>(
    reader: &mut ItemReader<'q>,
    output: &mut Output<'q>,
    execution: &mut Execution<'q>,
    reference: &[u8],
) -> Ran<()> {
    reader.allowance.check()?;
    let key = reader.view.item_key(reference)?;
    if let Some(item) = reader.load(&key)? {
        output.push(execution, &item, &mut reader.allowance)?;
    }
    Ok(())
}
