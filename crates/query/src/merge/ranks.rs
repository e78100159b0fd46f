//! ORDER BY RANK over several shares: statistics first, then the best rows of each component, then the fusion.
//!
//! How much a word says depends on how rare it is in the whole container, so the counts of all shares are added up
//! and written into the component queries. Each component contributes its best rows; a row's score is the sum of
//! weight / (60 + rank) over the components, equal scores sharing a rank.

use std::collections::HashMap;

use orrery_model::Value;
use orrery_sql::{Direction, SqlError};

use super::row::{Members, parse, unreadable};
use super::whole::{Output, numbers};
use super::{Shares, Source, drain};
use crate::limits::ROW_OVERHEAD_BYTES;
use crate::meter::Meter;
use crate::plan::HybridInfo;
use crate::rank::FUSION_OFFSET;

/// Counts over all items: how many there are, and for each full-text component its words and matching items.
#[derive(Default)]
struct Statistics {
    items: f64,
    texts: Vec<(f64, Vec<f64>)>,
}

/// A row that some component brought in.
struct Candidate {
    payload: Vec<u8>,
    scores: Vec<f64>,
}

pub(super) fn rows<S: Shares>(
    source: &Source<'_>,
    info: &HybridInfo,
    shares: &mut S,
    output: &mut Output,
) -> Result<(), S::Error> {
    let statistics = match info.requires_statistics {
        true => statistics(source, info, shares)?,
        false => Statistics::default(),
    };
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let meter = Meter::new(shares.budget());
    for component in &info.components {
        let text = statistics.fill(&component.rewritten);
        let query = source.rewritten(&text, "true")?;
        drain(&query, shares, &mut |row| {
            let members = Members::of(row)?;
            let rid = members.value("_rid")?.as_str().ok_or_else(unreadable)?.to_string();
            if places.contains_key(&rid) {
                return Ok(true);
            }
            let inside = Members::of(members.text("payload").ok_or_else(unreadable)?)?;
            let scores = numbers(Some(&inside.value("componentScores")?))?;
            let Some(payload) = inside.text("payload") else { return Ok(true) };
            if scores.len() != info.components.len() {
                return Err(unreadable());
            }
            meter.take(payload.len() + rid.len() + 8 * scores.len() + ROW_OVERHEAD_BYTES)?;
            places.insert(rid, candidates.len());
            candidates.push(Candidate { payload: payload.to_vec(), scores });
            Ok(true)
        })?;
    }
    output.collect();
    let (skip, take) = (info.skip.unwrap_or(0), info.take.unwrap_or(u64::MAX));
    let take = usize::try_from(take).unwrap_or(usize::MAX);
    let skip = usize::try_from(skip).unwrap_or(usize::MAX);
    for place in best_first(info, &candidates).into_iter().skip(skip).take(take) {
        if !output.push(&candidates[place].payload) {
            break;
        }
    }
    Ok(())
}

fn statistics<S: Shares>(
    source: &Source<'_>,
    info: &HybridInfo,
    shares: &mut S,
) -> Result<Statistics, S::Error> {
    let query = source.rewritten(&info.statistics_query, "true")?;
    let mut sum = Statistics::default();
    drain(&query, shares, &mut |row| sum.add(&parse(row)?).map(|()| true))?;
    Ok(sum)
}

impl Statistics {
    fn add(&mut self, row: &Value) -> Result<(), SqlError> {
        let number =
            |value: Option<&Value>| value.and_then(Value::as_number).map_or(0.0, |number| number.as_f64());
        self.items += number(row.get("documentCount"));
        let texts = row.get("fullTextStatistics").and_then(Value::as_array).ok_or_else(unreadable)?;
        for (at, text) in texts.iter().enumerate() {
            let hits = numbers(text.get("hitCounts"))?;
            if self.texts.len() <= at {
                self.texts.push((0.0, vec![0.0; hits.len()]));
            }
            let (words, matching) = &mut self.texts[at];
            *words += number(text.get("totalWordCount"));
            for (sum, hits) in matching.iter_mut().zip(hits) {
                *sum += hits;
            }
        }
        Ok(())
    }

    /// A component query with its placeholders filled in.
    fn fill(&self, text: &str) -> String {
        let mut text =
            text.replace("{documentdb-formattablehybridsearchquery-totaldocumentcount}", &whole(self.items));
        for (at, (words, hits)) in self.texts.iter().enumerate() {
            let hits = hits.iter().map(|hits| whole(*hits)).collect::<Vec<_>>().join(",");
            text = text
                .replace(
                    &format!("{{documentdb-formattablehybridsearchquery-totalwordcount-{at}}}"),
                    &whole(*words),
                )
                .replace(
                    &format!("{{documentdb-formattablehybridsearchquery-hitcountsarray-{at}}}"),
                    &format!("[{hits}]"),
                );
        }
        text
    }
}

fn whole(count: f64) -> String {
    format!("{count:.0}")
}

/// The places of the candidates, best first; equal ones as they came.
fn best_first(info: &HybridInfo, candidates: &[Candidate]) -> Vec<usize> {
    let mut places: Vec<usize> = (0..candidates.len()).collect();
    if let [component] = info.components.as_slice() {
        let rising = component.order_by.first() == Some(&Direction::Ascending);
        places.sort_by(|left, right| by_score(candidates, 0, rising, *left, *right));
        return places;
    }
    let mut fused = vec![0.0; candidates.len()];
    for (at, component) in info.components.iter().enumerate() {
        let rising = component.order_by.first() == Some(&Direction::Ascending);
        let weight = info.weights.get(at).copied().unwrap_or(1.0);
        let mut order = places.clone();
        order.sort_by(|left, right| by_score(candidates, at, rising, *left, *right));
        let (mut rank, mut last) = (0.0, f64::NAN);
        for place in order {
            let score = candidates[place].scores[at];
            if score != last {
                rank += 1.0;
                last = score;
            }
            fused[place] += weight / (FUSION_OFFSET + rank);
        }
    }
    places.sort_by(|left, right| fused[*right].total_cmp(&fused[*left]));
    places
}

fn by_score(
    candidates: &[Candidate],
    at: usize,
    rising: bool,
    left: usize,
    right: usize,
) -> std::cmp::Ordering {
    let order = candidates[left].scores[at].total_cmp(&candidates[right].scores[at]);
    if rising { order } else { order.reverse() }
}
