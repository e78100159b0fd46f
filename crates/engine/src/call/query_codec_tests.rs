//! Pages of queries among the requests and answers of `codec_tests`.

use std::time::Duration;

use bytes::Bytes;
use orrery_budget::{Budget, Exceeded, Limits, MemoryPool, Remaining};
use orrery_model::{Number, Value};
use orrery_query::merge::ShareRows;
use orrery_query::{Form, RankedRows, SortPosition};
use orrery_sql::SqlError;
use proptest::prelude::*;

use super::codec_tests::{Seed, round_trip, seeds};
use super::query_page::{PageCall, PageReply};
use super::wire::Wire;
use super::{Reply, Request};
use crate::query::{
    Costs, IndexUse, Order, Progress, QueryFailure, QueryMetrics, QueryPosition, Statement, WindowPosition,
};
use crate::script_call::{ScriptCall, ScriptWork};
use crate::throughput::RequestClass;

impl Seed {
    fn forms(&self) -> Vec<Form> {
        let number = Value::Number(Number::Int(self.number as i64));
        let ranked = RankedRows {
            component: self.count,
            rows: self.maybe(|| self.number),
            items: number.clone(),
            texts: self.times(|| (Value::Null, Value::Array(vec![number.clone()]))),
        };
        vec![
            Form::Whole,
            Form::FirstRows,
            Form::SortedRows { marked: self.count == 1 },
            Form::MarkedRows,
            Form::CountedRows,
            Form::GroupParts,
            Form::WordCounts,
            Form::RankedRows(Box::new(ranked)),
        ]
    }

    fn statements(&self) -> Vec<Statement> {
        let parameters = || vec![(self.text.clone(), self.value()), ("@none".to_owned(), Value::Undefined)];
        let statement = |form| Statement { text: self.text.clone(), parameters: parameters(), form };
        self.forms().into_iter().map(statement).collect()
    }

    fn query_positions(&self) -> Vec<QueryPosition> {
        let (number, progress) = (self.number, Progress { passed: self.number, swallow: 1 });
        let after = || SortPosition { keys: vec![self.value(), Value::Undefined], number, rows: 2 };
        let window = Some(WindowPosition { cached: 3, next: number });
        let from = Bytes::from([&[1], &self.bytes[..]].concat());
        vec![
            QueryPosition::Created { from: number, progress },
            QueryPosition::Stored { from, progress },
            QueryPosition::Sorted { after: after(), passed: number, window: None },
            QueryPosition::Sorted { after: after(), passed: 0, window },
            QueryPosition::Delivered { rows: number, order: Order::Value, cached: 0 },
            QueryPosition::Delivered { rows: 1, order: Order::Created, cached: number },
        ]
    }

    pub(super) fn page_requests(&self) -> Vec<Request> {
        let time = self.maybe(|| Duration::from_nanos(self.number));
        let call = |from: Option<QueryPosition>, statement: &Statement| {
            let mut bytes = Vec::new();
            statement.put(&mut bytes);
            let [.., span] = self.spans();
            Request::QueryPage(Box::new(PageCall {
                statement: bytes.into(),
                host: self.text.clone(),
                now_ticks: self.number as i64,
                random_seed: self.number,
                span,
                from,
                rows: self.count,
                bytes: usize::MAX,
                time,
                budget: Remaining { memory_bytes: usize::MAX, steps: self.number, time },
                session: self.session(),
                keeps: self.count == 1,
                format: self.text.clone(),
                timed: self.count == 2,
                explained: self.small > 9,
                costs: self.maybe(Costs::default),
            }))
        };
        let positions = self.query_positions().into_iter().map(Some).chain([None]);
        let statements = self.statements();
        positions.zip(statements.iter().cycle()).map(|(from, statement)| call(from, statement)).collect()
    }

    pub(super) fn page_replies(&self) -> Vec<Reply> {
        let (at, charge_ru) = (self.position(), self.float);
        let duration = Duration::from_nanos(self.number);
        let texts = || self.times(|| self.text.clone());
        let metrics = QueryMetrics {
            index_entries: 1,
            loaded_items: 2,
            loaded_bytes: self.number,
            sifted_items: 3,
            matched_items: 4,
            output_rows: 5,
            output_bytes: 6,
            total: duration,
            planning: duration / 2,
            index_lookup: duration / 3,
            document_load: duration / 4,
        };
        let indexes = || IndexUse {
            used: texts(),
            missing: texts(),
            used_composites: self.times(texts),
            missing_composites: vec![texts()],
        };
        let mut rows = Vec::new();
        ShareRows::default().encode(&mut rows);
        let reply = |next| PageReply {
            rows: rows.clone().into(),
            count: self.count,
            next,
            charge_ru,
            metrics: metrics.clone(),
            explanation: self.maybe(|| (self.text.clone(), indexes())),
            at,
            steps: self.number,
            _held: None,
        };
        let positions = self.query_positions().into_iter().map(Some).chain([None]);
        let pages = positions.map(|next| Reply::QueryPage(Box::new(reply(next))));
        let located = SqlError { start: self.count, end: 9, ..SqlError::whole("SC2001", self.text.clone()) };
        let others = vec![located.clone(), Exceeded::Steps { limit: self.number }.into()];
        let error = |error| QueryFailure::Query { error: Box::new(error), charge_ru, at };
        let failures = [
            QueryFailure::Engine(self.error()),
            QueryFailure::Lengthy,
            QueryFailure::Exceeded(Exceeded::Time),
            error(SqlError::whole("4001", self.text.clone())),
            error(SqlError { others, ..located }),
        ];
        pages.chain(failures.map(|failure| Reply::QueryFailed(Box::new(failure)))).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn statements_read_back_as_they_were_written(seed in seeds()) {
        seed.statements().into_iter().for_each(round_trip);
    }

    #[test]
    fn a_statement_that_was_damaged_on_its_way_is_nothing_or_another(
        seed in seeds(), at: prop::sample::Index, bit in 0..8u8,
    ) {
        for statement in seed.statements() {
            let mut bytes = Vec::new();
            statement.put(&mut bytes);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            let _ = Statement::take(&mut bytes.into());
        }
    }
}

#[test]
fn a_script_takes_along_what_its_request_has_left() {
    let limits = Limits { memory_bytes: 4_000, steps: 50, deadline: None };
    let budget = Budget::with(MemoryPool::unlimited(), limits, None);
    budget.step(20).unwrap();
    let _held = budget.hold(1_000).unwrap();
    let call = ScriptCall {
        work: ScriptWork::Procedure { id: "p".to_owned(), arguments: "[]".to_owned() },
        session: Vec::new(),
        class: RequestClass::default(),
        logging: false,
        now_ticks: 1,
        random_seed: 2,
        budget: Some(budget),
    };
    let mut bytes = Vec::new();
    call.put(&mut bytes);
    let read = ScriptCall::take(&mut bytes.into()).unwrap();
    let left = read.budget.unwrap();
    assert_eq!(*left.limits(), Limits { memory_bytes: 3_000, steps: 30, deadline: None });
}
