//! The best first, from a search index: the scores of all items are known before any of them is loaded.
//!
//! Items are loaded from the best score on, all of one score together, until there are enough rows that passed the
//! filter; the evaluator computes their scores again and puts them in order, so that rows, ties and positions are
//! those of any sorted query. Texts without any of the terms have the score 0 and follow in order of creation. Only
//! where that is still not enough, or the filter lets so little through that one item after the other would cost
//! more, everything is read.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use orrery_model::Value;
use orrery_query::fulltext::{Scorer, Term};
use orrery_query::pushdown::{Filter, Ranking, Statistic};
use orrery_query::{Execution, SortPosition};
use orrery_storage::keys;

use super::materialized::Materialized;
use super::push_reference;
use super::sorted::Sorted;
use crate::error::Error;
use crate::partition::Earliest;
use crate::partition::index::TextPath;
use crate::query::QueryPosition;
use crate::query::access_path::{self, ItemReader, TermHits};
use crate::query::output::Output;
use crate::query::page::Ran;

/// Texts whose scores are kept; a query with more reads all items.
const SCORED_TEXTS_MAX: usize = 1_000_000;
/// How many more items than are wanted are listed in order of creation, because some will not count.
const SPARE_FACTOR: usize = 4;
/// Candidates of a filter, for each wanted row, that are all loaded instead.
const FEW_CANDIDATES: usize = 2;

/// Texts by item: how often each term stands in them, and how long they are.
type Texts = HashMap<Bytes, (Vec<u32>, u32)>;

/// What came of pushing texts.
enum Pushed {
    /// The page is complete.
    Enough,
    /// Everything must be read.
    TooFew,
    /// The index cannot tell.
    Unknown,
}

/// Texts by score: what sorted and whole pages have in common.
struct Scored<'p, 'q> {
    reader: &'p mut ItemReader<'q>,
    output: &'p mut Output<'q>,
    path: &'p TextPath,
    scorer: &'p Scorer,
    after: Option<&'p SortPosition>,
    /// Rows that complete the page, and one that tells whether there is another.
    need: usize,
    /// The items that the filter leads to, where it does.
    members: Option<HashSet<Bytes>>,
}

impl Sorted<'_, '_> {
    /// A page of a query that sorts by a score which a search index knows; `None` where there is none.
    pub(super) fn ranked(&mut self) -> Ran<Option<Option<QueryPosition>>> {
        let (place, scorer) = match self.reader.query.prepared.ranking() {
            Some(Ranking::Text { place, scorer }) => (place, scorer),
            Some(Ranking::Vector { place, wanted, undefined_first }) => {
                return self.nearest(&place, &wanted, undefined_first);
            }
            None => return Ok(None),
        };
        let Some(path) = access_path::text(self.reader.view, &place, scorer.terms.iter().map(Term::language))
        else {
            return Ok(None);
        };
        let Some(need) = self.needed() else { return Ok(None) };
        let candidates = match self.reader.filter {
            Filter::Everything => None,
            _ => self.reader.candidates()?,
        };
        if let Some(few) = candidates.as_ref().filter(|all| all.len() <= FEW_CANDIDATES * need) {
            return self.in_memory(Some(few.clone())).map(Some);
        }
        let members = candidates.map(|all| all.into_iter().map(|candidate| candidate.reference).collect());
        self.reader.report.ranked("score", &place);
        let mut execution = self.execution();
        let mut scored = Scored {
            reader: &mut *self.reader,
            output: &mut *self.output,
            path: &path,
            scorer: &scorer,
            after: self.after,
            need,
            members,
        };
        match scored.push_texts(&mut execution)? {
            Pushed::Enough => {
                self.output.finish(&mut execution)?;
                Ok(Some(self.after_page(&execution)))
            }
            Pushed::Unknown => Ok(None),
            Pushed::TooFew => self.in_memory(None).map(Some),
        }
    }

    /// How many rows a page needs from its position on; `None` where the query does not say when it has enough.
    pub(super) fn needed(&self) -> Option<usize> {
        let (passed, needs) = (self.passed, self.reader.query.prepared.needs());
        let offset = needs.offset.unwrap_or(0);
        let all = needs.top.or(needs.limit)?.saturating_add(offset);
        let left = all.saturating_sub(passed);
        let page = offset.saturating_sub(passed).saturating_add(self.reader.query.limits.rows as u64 + 1);
        usize::try_from(left.min(page)).ok()
    }
}

impl<'q> Materialized<'_, 'q> {
    /// A page of `ORDER BY RANK FullTextScore(…)`, whose statistics the index tells as well. `None` where everything
    /// must be read.
    pub(super) fn ranked(&mut self) -> Ran<Option<Execution<'q>>> {
        let (view, prepared) = (self.reader.view, self.reader.query.prepared);
        let Some((place, terms)) = prepared.ranked_text() else { return Ok(None) };
        let needs = prepared.needs();
        // Rows behind the page are kept for the next one, so all of the result is wanted at once.
        let all = needs.top.or(needs.limit).map(|rows| rows.saturating_add(needs.offset.unwrap_or(0)));
        let need = all.and_then(|all| usize::try_from(all).ok());
        let path = access_path::text(view, &place, terms.iter().map(Term::language));
        let (Some(path), Some(need)) = (path, need) else { return Ok(None) };
        if !view.hides_nothing()? {
            return Ok(None);
        }
        let mut wanted = vec![Statistic::Items, Statistic::Words(place.clone(), path.language())];
        wanted.extend(terms.iter().map(|term| Statistic::Texts(place.clone(), term.clone())));
        let Some(totals) = self.reader.statistics(&wanted)? else { return Ok(None) };
        let (documents, words, matching) = (totals[0], totals[1], &totals[2..]);
        let scorer = Scorer::counted(terms, documents, words, matching);
        if !scorer.rewards_hits() {
            return Ok(None);
        }
        let mut execution = self.reader.bounded(Execution::resume(prepared, 0, self.delivered));
        execution.set_rank_statistics(documents, words, matching);
        self.reader.report.ranked("score", &place);
        let mut scored = Scored {
            reader: &mut *self.reader,
            output: &mut *self.output,
            path: &path,
            scorer: &scorer,
            after: None,
            need,
            members: None,
        };
        let pushed = scored.push_texts(&mut execution)?;
        Ok(matches!(pushed, Pushed::Enough).then_some(execution))
    }
}

impl<'q> Scored<'_, 'q> {
    /// Pushes texts from the best score on.
    fn push_texts(&mut self, execution: &mut Execution<'q>) -> Ran<Pushed> {
        let Some(texts) = self.texts()? else { return Ok(Pushed::Unknown) };
        let mut scores: Vec<(f64, &Bytes)> = texts
            .iter()
            .map(|(reference, (hits, length))| (self.scorer.score(hits, *length), reference))
            .collect();
        if let Some(after) = self.after {
            // What has no text comes last, and is not found here.
            let Some(Value::Number(reached)) = after.keys.first() else { return Ok(Pushed::Unknown) };
            scores.retain(|(score, _)| *score <= reached.as_f64());
        }
        scores.sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
        let mut tried: u64 = 0;
        let mut rest = scores.as_slice();
        while let Some((best, _)) = rest.first()
            && execution.held() < self.need
        {
            let same = rest.iter().take_while(|(score, _)| score == best).count();
            let (run, behind) = rest.split_at(same);
            for (_, reference) in run {
                push_reference(self.reader, self.output, execution, reference)?;
            }
            tried += same as u64;
            rest = behind;
            if self.reader.is_tedious(tried, execution.held()) {
                return Ok(Pushed::TooFew);
            }
        }
        if execution.held() >= self.need {
            return Ok(Pushed::Enough);
        }
        let Some(members) = &self.members else {
            let enough = self.push_without_hits(execution, &texts)?;
            return Ok(if enough { Pushed::Enough } else { Pushed::TooFew });
        };
        for reference in members.iter().filter(|reference| !texts.contains_key(*reference)) {
            push_reference(self.reader, self.output, execution, reference)?;
        }
        Ok(Pushed::Enough)
    }

    /// The texts with at least one of the terms: how often each stands in them, and how long they are.
    fn texts(&mut self) -> Ran<Option<Texts>> {
        let (path, scorer) = (self.path, self.scorer);
        let mut texts = Texts::new();
        for (at, term) in scorer.terms.iter().enumerate() {
            let Some(mut hits) = TermHits::new(self.reader.view, path, term, self.reader.query.span)? else {
                return Ok(None);
            };
            while let Some(hit) = hits.next_hit()? {
                self.reader.allowance.check()?;
                if self.members.as_ref().is_some_and(|members| !members.contains(&hit.reference)) {
                    continue;
                }
                let (counts, length) =
                    texts.entry(hit.reference).or_insert_with(|| (vec![0; scorer.terms.len()], 0));
                counts[at] = hit.count;
                *length = hit.length;
                if texts.len() > SCORED_TEXTS_MAX {
                    return Ok(None);
                }
            }
            self.reader.count_entries(hits.read());
        }
        Ok(Some(texts))
    }

    /// Pushes texts without any of the terms, in order of creation. False: there are not enough of them.
    fn push_without_hits(&mut self, execution: &mut Execution<'q>, texts: &Texts) -> Ran<bool> {
        let from = match self.after {
            Some(after) if after.keys.first() == Some(&Value::from(0.0)) => after.number,
            _ => 0,
        };
        let most = texts.len() + SPARE_FACTOR * self.need;
        let mut earliest = Earliest::new(most);
        let mut orders = self.reader.view.orders(self.reader.query.span);
        while let Some((number, key)) = orders.next_order()? {
            self.reader.allowance.check()?;
            if number >= from {
                earliest.push(number, key);
            }
        }
        for (_, key) in earliest.into_sorted_vec() {
            self.reader.allowance.check()?;
            let epk = keys::ItemKey::decode(&key).ok_or_else(damaged)?.epk;
            let reference = keys::index::reference(&epk, &key);
            if texts.contains_key(&reference[..]) || !self.reader.view.has_text(self.path, &reference)? {
                continue;
            }
            if let Some(item) = self.reader.load(&key)? {
                self.output.push(execution, &item, &mut self.reader.allowance)?;
            }
            if execution.held() >= self.need {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn damaged() -> Error {
    Error::internal("An order row is damaged.")
}
