//! Pages of queries as bytes; see `codec`.

use bytes::Bytes;
use orrery_budget::Remaining;
use orrery_query::{Form, RankedRows};
use orrery_sql::SqlError;

use super::query_page::{PageCall, PageReply};
use super::wire::{Wire, record, variants};
use crate::query::{Costs, IndexUse, QueryFailure, QueryMetrics, QueryPosition, Statement};

record! {
    Remaining { memory_bytes, steps, time }
    Statement { text, parameters, form }
    RankedRows { component, rows, items, texts }
    PageCall {
        statement, host, now_ticks, random_seed, span, from, rows, bytes, time, budget, session, keeps, format, timed,
        explained, costs,
    }
    Costs {
        created_items_max, created_found_max, few_items, candidates_min, candidates_part, run_entries_max,
        absent_items_max, window_rows, window_candidates_min, entry_cost, load_cost, scan_cost, remembered_items,
        column_items_min, column_asks, column_sort_asks,
        column_items_at_once, graph_nodes_min,
    }
    QueryMetrics {
        index_entries, loaded_items, loaded_bytes, sifted_items, matched_items, output_rows, output_bytes, total,
        planning, index_lookup, document_load,
    }
    IndexUse { used, missing, used_composites, missing_composites }
}

variants! {
    Form {
        1 => Whole,
        2 => FirstRows,
        3 => SortedRows { marked },
        4 => MarkedRows,
        5 => CountedRows,
        6 => GroupParts,
        7 => WordCounts,
        8 => RankedRows(rows),
    }
    QueryFailure {
        1 => Engine(error),
        2 => Lengthy,
        3 => Exceeded(exceeded),
        4 => Query { error, charge_ru, at },
    }
}

/// Without what the rows are charged with where they were made.
impl Wire for PageReply {
    fn put(&self, out: &mut Vec<u8>) {
        self.rows.put(out);
        self.count.put(out);
        self.next.put(out);
        self.charge_ru.put(out);
        self.metrics.put(out);
        self.explanation.put(out);
        self.at.put(out);
        self.steps.put(out);
    }

    fn take(from: &mut Bytes) -> Option<PageReply> {
        Some(PageReply {
            rows: Wire::take(from)?,
            count: Wire::take(from)?,
            next: Wire::take(from)?,
            charge_ru: Wire::take(from)?,
            metrics: Wire::take(from)?,
            explanation: Wire::take(from)?,
            at: Wire::take(from)?,
            steps: Wire::take(from)?,
            _held: None,
        })
    }
}

/// As continuations carry it.
impl Wire for QueryPosition {
    fn put(&self, out: &mut Vec<u8>) {
        Bytes::from(self.encode()).put(out);
    }

    fn take(from: &mut Bytes) -> Option<QueryPosition> {
        QueryPosition::decode(&Bytes::take(from)?)
    }
}

/// An error, and those that were found with it, which have none of their own.
impl Wire for SqlError {
    fn put(&self, out: &mut Vec<u8>) {
        put_error(self, out);
        (self.others.len() as u32).put(out);
        self.others.iter().for_each(|other| put_error(other, out));
    }

    fn take(from: &mut Bytes) -> Option<SqlError> {
        let mut error = take_error(from)?;
        let count = u32::take(from)?;
        for _ in 0..count {
            error.others.push(take_error(from)?);
        }
        Some(error)
    }
}

fn put_error(error: &SqlError, out: &mut Vec<u8>) {
    error.code.to_owned().put(out);
    error.message.put(out);
    error.start.put(out);
    error.end.put(out);
    error.exceeded.put(out);
}

fn take_error(from: &mut Bytes) -> Option<SqlError> {
    Some(SqlError {
        code: SqlError::known_code(&String::take(from)?),
        message: Wire::take(from)?,
        start: Wire::take(from)?,
        end: Wire::take(from)?,
        others: Vec::new(),
        exceeded: Wire::take(from)?,
    })
}
