//! ORDER BY RANK over several shares: statistics first, then the best rows of each component, then the fusion.
//!
//! How much a word says depends on how rare it is in the whole container, so the counts of all shares are added up
//! and become constants of the component queries. Each component contributes its best rows; a row's score is the sum of
//! weight / (60 + rank) over the components, equal scores sharing a rank.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use orrery_model::Value;
use orrery_sql::SqlError;

use super::materialized::{Output, absorb};
use super::{DRAIN_ROWS, Shares, drain};
use crate::aggregate::AggregateKind;
use crate::compile::{CompiledQuery, OrderKey, Origin};
use crate::exec::Execution;
use crate::functions::{self, Function, in_language};
use crate::language::Language;
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::node::{Grouping, Node};
use crate::output::Row;
use crate::partial::{Form, RankedRows};
use crate::prepared::Prepared;
use crate::rank::{Component, FUSION_OFFSET, Rank};

/// Rows that each component hands to the fusion, at least; twice what the client wants, if that is more.
const COMPONENT_ROWS_MIN: u64 = 120;
/// Worse than any distance; turned round, than any score of a vector.
const WORST_DISTANCE: f64 = 1.79769e308;
/// Worse than any full-text score.
const WORST_TEXT_SCORE: f64 = -1.0;

/// A query that ranks, over several shares.
#[derive(Debug)]
pub(super) struct Ranks {
    query: Prepared,
    /// Counts what the scores of texts depend on, over all items whatever the filter; `None` where no text is ranked.
    statistics: Option<Arc<Prepared>>,
}

/// A row that some component brought in.
struct Candidate {
    written: Vec<u8>,
    scores: Vec<f64>,
}

impl Ranks {
    /// `None` for a query that does not rank.
    pub fn of(query: &Prepared) -> Option<Ranks> {
        let rank = query.compiled.rank.as_ref()?;
        let texts = rank.components.iter().any(|component| matches!(component, Component::FullText { .. }));
        let statistics = word_counts(query).filter(|_| texts).map(Arc::new);
        Some(Ranks { query: query.with(query.compiled.clone()), statistics })
    }

    pub fn rows<S: Shares>(&self, shares: &mut S, output: &mut Output) -> Result<(), S::Error> {
        let Some(rank) = &self.query.compiled.rank else { return Ok(()) };
        let statistics = self.statistics(rank, shares)?;
        let scores = scores_of(rank, &statistics)?;
        let shape = self.query.needs();
        let (skip, take) = (shape.offset.unwrap_or(0), shape.top.or(shape.limit));
        let wanted = take.map(|take| {
            skip.saturating_add(take).saturating_mul(2).clamp(COMPONENT_ROWS_MIN, u64::from(u32::MAX))
        });
        let mut candidates: Vec<Candidate> = Vec::new();
        let mut known: HashMap<(usize, u64), usize> = HashMap::new();
        let meter = Meter::new(shares.budget());
        for component in 0..scores.len() {
            let Statistics { items, texts } = statistics.clone();
            let form = RankedRows { component, rows: wanted, items, texts };
            let query = Arc::new(ranked_rows(&self.query, form, &scores));
            drain(&query, DRAIN_ROWS, shares, &mut |share, page| {
                for (at, row) in page.rows.iter().enumerate() {
                    let number = page.number(at);
                    if known.contains_key(&(share, number)) {
                        continue;
                    }
                    let scores: Vec<f64> = page
                        .carried(at)
                        .iter()
                        .map(|score| score.as_number().map_or(f64::NAN, |number| number.as_f64()))
                        .collect();
                    meter.take(row.len() + 8 * scores.len() + ROW_OVERHEAD_BYTES)?;
                    known.insert((share, number), candidates.len());
                    candidates.push(Candidate { written: row.to_vec(), scores });
                }
                Ok(true)
            })?;
        }
        output.collect();
        let skip = usize::try_from(skip).unwrap_or(usize::MAX);
        let take = usize::try_from(take.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let best = best_first(&scores, &rank.weights, rank.fused, &candidates);
        for place in best.into_iter().skip(skip).take(take) {
            if !output.push(&Row::written(&candidates[place].written))? {
                break;
            }
        }
        Ok(())
    }

    /// Items, and for each component that ranks texts its words and how many texts each term stands in.
    fn statistics<S: Shares>(&self, rank: &Rank, shares: &mut S) -> Result<Statistics, S::Error> {
        let Some(counting) = &self.statistics else { return Ok(Statistics::default()) };
        let meter = Rc::new(Meter::new(shares.budget()));
        let mut execution = Execution::new(counting).within(&meter);
        absorb(counting, shares, &mut execution)?;
        let mut totals = execution.into_totals().into_iter();
        let mut next = || totals.next().filter(|total| total.as_number().is_some()).unwrap_or(Value::from(0));
        let items = next();
        let texts = rank.components.iter().map(|component| match component {
            Component::FullText { given, .. } => {
                let words = next();
                (words, Value::Array(given.iter().map(|_| next()).collect()))
            }
            Component::Vector { .. } => (Value::Null, Value::Null),
        });
        Ok(Statistics { texts: texts.collect(), items })
    }
}

/// The form of a ranking query that counts what the scores of its texts depend on; `None` for one that does not rank.
pub(crate) fn word_counts(query: &Prepared) -> Option<Prepared> {
    let rank = query.compiled.rank.as_ref()?;
    Some(query.partial(Form::WordCounts, |compiled| count_words(compiled, rank)))
}

/// The form of a ranking query that has the best rows by one component.
pub(crate) fn component_rows(query: &Prepared, form: &RankedRows) -> Result<Prepared, SqlError> {
    let rank = query.compiled.rank.as_ref().filter(|rank| form.component < rank.components.len());
    let rank = rank.ok_or_else(|| SqlError::whole("", "The query has no such component."))?;
    let statistics = Statistics { items: form.items.clone(), texts: form.texts.clone() };
    Ok(ranked_rows(query, form.clone(), &scores_of(rank, &statistics)?))
}

fn ranked_rows(query: &Prepared, form: RankedRows, scores: &[Score]) -> Prepared {
    let (component, rows) = (form.component, form.rows);
    query.partial(Form::RankedRows(Box::new(form)), |compiled| {
        compiled.rank = None;
        compiled.order = scores.get(component).map(|score| score.order.clone()).into_iter().collect();
        compiled.carried = scores.iter().map(Score::padded).collect();
        (compiled.top, compiled.offset, compiled.limit) = (rows, None, None);
    })
}

fn scores_of(rank: &Rank, statistics: &Statistics) -> Result<Vec<Score>, SqlError> {
    let components = rank.components.iter().zip(&rank.weights).enumerate();
    components.map(|(at, (component, weight))| Score::of(component, *weight < 0.0, statistics, at)).collect()
}

/// Counts over all items, as constants of a query.
#[derive(Clone, Default)]
struct Statistics {
    items: Value,
    /// For each component its words, and the items in which each term stands.
    texts: Vec<(Value, Value)>,
}

/// Makes of a query one that counts items, words and items with each of the terms.
fn count_words(compiled: &mut CompiledQuery, rank: &Rank) {
    let mut aggregates = vec![(AggregateKind::Count, Node::Constant(Value::from(1)))];
    for component in &rank.components {
        let Component::FullText { path, given, language, .. } = component else { continue };
        let call = |name: &str, mut others: Vec<Node>| {
            let function = text_function(name, *language)?;
            others.insert(0, path.clone());
            Some(Node::Call(function, others))
        };
        let words = call("_FULLTEXTWORDCOUNT", Vec::new());
        aggregates.extend(words.map(|words| (AggregateKind::Sum, words)));
        for term in given {
            let found = call("FULLTEXTCONTAINS", vec![Node::Constant(term.clone())]);
            aggregates.extend(found.map(|found| (AggregateKind::CountIf, found)));
        }
    }
    compiled.aggregates = aggregates.iter().map(|(kind, _)| *kind).collect();
    let with_slots = aggregates.into_iter().map(|(kind, argument)| {
        compiled.origins.push(Origin::Computed);
        (kind, argument, compiled.origins.len() - 1)
    });
    compiled.block.grouping = Some(Grouping { keys: Vec::new(), aggregates: with_slots.collect() });
    compiled.slot_count = compiled.origins.len();
    compiled.block.guards.clear();
    compiled.block.sources.iter_mut().for_each(|source| source.filters.clear());
    compiled.block.projection = Node::Constant(Value::Null);
    compiled.block.distinct = false;
    compiled.rank = None;
    compiled.groups_apart = true;
    (compiled.top, compiled.offset, compiled.limit) = (None, None, None);
}

fn text_function(name: &str, language: Language) -> Option<&'static Function> {
    functions::find(name).map(|function| in_language(function, language))
}

/// One component as an order.
struct Score {
    order: OrderKey,
    /// What items without a score have.
    missing: f64,
}

impl Score {
    /// `turned`: the worst come first.
    fn of(
        component: &Component,
        turned: bool,
        statistics: &Statistics,
        at: usize,
    ) -> Result<Score, SqlError> {
        let unknown = || SqlError::whole("", "A query ranks by a score that is not known.");
        match component {
            Component::FullText { path, given, language, .. } => {
                let function = text_function("_FULLTEXTSCORE", *language).ok_or_else(unknown)?;
                let (words, hits) = statistics.texts.get(at).cloned().ok_or_else(unknown)?;
                let constants = [Value::Array(given.clone()), statistics.items.clone(), words, hits];
                let mut arguments = vec![path.clone()];
                arguments.extend(constants.map(Node::Constant));
                let node = Node::Call(function, arguments);
                let order = OrderKey { node, descending: !turned, path: None, missing: None };
                Ok(Score { order, missing: if turned { WORST_DISTANCE } else { WORST_TEXT_SCORE } })
            }
            Component::Vector { node, ascending } => {
                let Node::Call(_, arguments) = node else { return Err(unknown()) };
                let function = functions::find("_VECTORSCORE").ok_or_else(unknown)?;
                let node = Node::Call(function, arguments.clone());
                let rising = *ascending != turned;
                // Items without a vector are the worst, whichever way round.
                let missing = rising.then_some(f64::MAX);
                let order = OrderKey { node, descending: !rising, path: None, missing };
                Ok(Score { order, missing: if rising { WORST_DISTANCE } else { -WORST_DISTANCE } })
            }
        }
    }

    fn padded(&self) -> Node {
        let missing = Node::Constant(Value::from(self.missing));
        Node::Coalesce(Box::new(self.order.node.clone()), Box::new(missing))
    }
}

/// The places of the candidates, best first; equal ones as they came.
fn best_first(scores: &[Score], weights: &[f64], fused: bool, candidates: &[Candidate]) -> Vec<usize> {
    let by_score = |at: usize, left: usize, right: usize| {
        let score = |place: usize| candidates[place].scores.get(at).copied().unwrap_or(f64::NAN);
        let order = score(left).total_cmp(&score(right));
        if scores[at].order.descending { order.reverse() } else { order }
    };
    let mut places: Vec<usize> = (0..candidates.len()).collect();
    if !fused || scores.len() == 1 {
        places.sort_by(|left, right| by_score(0, *left, *right));
        return places;
    }
    let mut sums = vec![0.0; candidates.len()];
    for at in 0..scores.len() {
        let weight = weights.get(at).map_or(1.0, |weight| weight.abs());
        let mut order = places.clone();
        order.sort_by(|left, right| by_score(at, *left, *right));
        let (mut rank, mut last) = (0.0, f64::NAN);
        for place in order {
            let score = candidates[place].scores.get(at).copied().unwrap_or(f64::NAN);
            if score != last {
                rank += 1.0;
                last = score;
            }
            sums[place] += weight / (FUSION_OFFSET + rank);
        }
    }
    places.sort_by(|left, right| sums[*right].total_cmp(&sums[*left]));
    places
}
