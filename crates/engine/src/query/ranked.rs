//! The best first, from a search index: the scores of all items are known before any of them is loaded.
//!
//! Items are loaded from the best score on, all of one score together, until there are enough rows that passed the filter; the
//! evaluator computes their scores again and puts them in order, so that rows, ties and positions are those of any sorted query.
//! Texts without any of the terms have the score 0 and follow in order of creation. Only where that is still not enough, or the
//! filter lets so little through that one item after the other would cost more, everything is read.

use std::collections::{BinaryHeap, HashMap, HashSet};

use bytes::Bytes;
use orrery_model::Value;
use orrery_query::access::{Filter, Ranking, Statistic};
use orrery_query::fulltext::{Scorer, Term};
use orrery_query::{Execution, SortPosition};
use orrery_storage::keys;

use super::QueryPosition;
use super::page::{Ran, Run};
use super::search;
use super::terms::TermHits;
use crate::error::Error;
use crate::partition::Span;
use crate::partition::index::TextPath;

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

/// What ranked pages have in common.
struct Page<'p> {
    after: Option<&'p SortPosition>,
    /// Rows that complete the page, and one that tells whether there is another.
    need: usize,
    /// The items that the filter leads to, where it does.
    members: Option<HashSet<Bytes>>,
}

impl<'q> Run<'q> {
    /// A page of a query that sorts by a score which a search index knows; `None` where there is none.
    pub fn ranked(
        &mut self,
        after: Option<&SortPosition>,
        passed: u64,
    ) -> Ran<Option<Option<QueryPosition>>> {
        let (place, scorer) = match self.query.prepared.ranking() {
            Some(Ranking::Text { place, scorer }) => (place, scorer),
            Some(Ranking::Vector { place, wanted, undefined_first }) => {
                return self.nearest(&place, &wanted, undefined_first, after, passed);
            }
            None => return Ok(None),
        };
        let Some(path) = search::text(self.view, &place, scorer.terms.iter().map(Term::language)) else {
            return Ok(None);
        };
        let Some(need) = self.needed(passed) else { return Ok(None) };
        let candidates = match self.filter {
            Filter::Everything => None,
            _ => self.candidates()?,
        };
        if let Some(few) = candidates.as_ref().filter(|all| all.len() <= FEW_CANDIDATES * need) {
            return self.sorted_in_memory(after, passed, Some(few.clone())).map(Some);
        }
        let members = candidates.map(|all| all.into_iter().map(|candidate| candidate.reference).collect());
        let page = Page { after, need, members };
        self.report.ranked("score", &place);
        let mut execution = self.execution(after, passed);
        match self.push_texts(&mut execution, &page, &path, &scorer)? {
            Pushed::Enough => {
                self.finish(&mut execution)?;
                Ok(Some(self.after_page(&execution)))
            }
            Pushed::Unknown => Ok(None),
            Pushed::TooFew => self.sorted_in_memory(after, passed, None).map(Some),
        }
    }

    /// A page of `ORDER BY RANK FullTextScore(…)`, whose statistics the index tells as well; `delivered` rows of it were sent
    /// before. `None` where everything must be read.
    pub fn ranked_whole(&mut self, delivered: u64) -> Ran<Option<Execution<'q>>> {
        let (view, prepared) = (self.view, self.query.prepared);
        let Some((place, terms)) = prepared.ranked_text() else { return Ok(None) };
        let needs = prepared.needs();
        // Rows behind the page are kept for the next one, so all of the result is wanted at once.
        let all = needs.top.or(needs.limit).map(|rows| rows.saturating_add(needs.offset.unwrap_or(0)));
        let need = all.and_then(|all| usize::try_from(all).ok());
        let path = search::text(view, &place, terms.iter().map(Term::language));
        let (Some(path), Some(need)) = (path, need) else { return Ok(None) };
        if !view.hides_nothing()? {
            return Ok(None);
        }
        let mut wanted = vec![Statistic::Items, Statistic::Words(place.clone(), path.language())];
        wanted.extend(terms.iter().map(|term| Statistic::Texts(place.clone(), term.clone())));
        let Some(totals) = self.statistics(&wanted)? else { return Ok(None) };
        let (documents, words, matching) = (totals[0], totals[1], &totals[2..]);
        let scorer = Scorer::counted(terms, documents, words, matching);
        if !scorer.rewards_hits() {
            return Ok(None);
        }
        let mut execution =
            Execution::resume(prepared, 0, delivered).within(&self.meter).written_as(self.query.format);
        execution.set_rank_statistics(documents, words, matching);
        let page = Page { after: None, need, members: None };
        self.report.ranked("score", &place);
        let pushed = self.push_texts(&mut execution, &page, &path, &scorer)?;
        Ok(matches!(pushed, Pushed::Enough).then_some(execution))
    }

    /// How many rows a page needs from its position on; `None` where the query does not say when it has enough.
    pub(super) fn needed(&self, passed: u64) -> Option<usize> {
        let needs = self.query.prepared.needs();
        let offset = needs.offset.unwrap_or(0);
        let all = needs.top.or(needs.limit)?.saturating_add(offset);
        let left = all.saturating_sub(passed);
        let page = offset.saturating_sub(passed).saturating_add(self.query.limits.rows as u64 + 1);
        usize::try_from(left.min(page)).ok()
    }

    /// Pushes texts from the best score on.
    fn push_texts(
        &mut self,
        execution: &mut Execution<'q>,
        page: &Page<'_>,
        path: &TextPath,
        scorer: &Scorer,
    ) -> Ran<Pushed> {
        let Some(texts) = self.texts(page, path, scorer)? else { return Ok(Pushed::Unknown) };
        let mut scores: Vec<(f64, &Bytes)> = texts
            .iter()
            .map(|(reference, (hits, length))| (scorer.score(hits, *length), reference))
            .collect();
        if let Some(after) = page.after {
            // What has no text comes last, and is not found here.
            let Some(Value::Number(reached)) = after.keys.first() else { return Ok(Pushed::Unknown) };
            scores.retain(|(score, _)| *score <= reached.as_f64());
        }
        scores.sort_unstable_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(right.1)));
        let mut tried: u64 = 0;
        let mut rest = scores.as_slice();
        while let Some((best, _)) = rest.first()
            && execution.held() < page.need
        {
            let same = rest.iter().take_while(|(score, _)| score == best).count();
            let (run, behind) = rest.split_at(same);
            for (_, reference) in run {
                self.push_reference(execution, reference)?;
            }
            tried += same as u64;
            rest = behind;
            if self.is_tedious(tried, execution.held()) {
                return Ok(Pushed::TooFew);
            }
        }
        if execution.held() >= page.need {
            return Ok(Pushed::Enough);
        }
        let Some(members) = &page.members else {
            let enough = self.push_without_hits(execution, page, path, &texts)?;
            return Ok(if enough { Pushed::Enough } else { Pushed::TooFew });
        };
        for reference in members.iter().filter(|reference| !texts.contains_key(*reference)) {
            self.push_reference(execution, reference)?;
        }
        Ok(Pushed::Enough)
    }

    /// The texts with at least one of the terms: how often each stands in them, and how long they are.
    fn texts(&mut self, page: &Page<'_>, path: &TextPath, scorer: &Scorer) -> Ran<Option<Texts>> {
        let mut texts = Texts::new();
        for (at, term) in scorer.terms.iter().enumerate() {
            let Some(mut hits) = TermHits::new(self.view, path, term, self.query.span)? else {
                return Ok(None);
            };
            while let Some(hit) = hits.next_hit()? {
                self.check_cancelled()?;
                if page.members.as_ref().is_some_and(|members| !members.contains(&hit.reference)) {
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
            self.metrics.index_entries += hits.read();
        }
        Ok(Some(texts))
    }

    pub(super) fn push_reference(&mut self, execution: &mut Execution<'q>, reference: &[u8]) -> Ran<()> {
        self.check_cancelled()?;
        let key = self.view.item_key(reference)?;
        if let Some(item) = self.load(&key)? {
            self.push(execution, &item)?;
        }
        Ok(())
    }

    /// Whether so many items were loaded for so few rows that reading all of them in a row is better.
    pub(super) fn is_tedious(&self, tried: u64, held: usize) -> bool {
        let tuning = &self.query.tuning;
        let idle = tried.saturating_sub(held as u64);
        idle.saturating_mul(tuning.load_cost) > self.view.item_count().saturating_mul(tuning.scan_cost)
    }

    /// Pushes texts without any of the terms, in order of creation. False: there are not enough of them.
    fn push_without_hits(
        &mut self,
        execution: &mut Execution<'q>,
        page: &Page<'_>,
        path: &TextPath,
        texts: &Texts,
    ) -> Ran<bool> {
        let from = match page.after {
            Some(after) if after.keys.first() == Some(&Value::from(0.0)) => after.number,
            _ => 0,
        };
        let most = texts.len() + SPARE_FACTOR * page.need;
        let mut earliest: BinaryHeap<(u64, Bytes)> = BinaryHeap::new();
        let mut orders = self.view.orders(self.query.span);
        while let Some((number, key)) = orders.next_order()? {
            self.check_cancelled()?;
            if number >= from {
                earliest.push((number, key));
                if earliest.len() > most {
                    earliest.pop();
                }
            }
        }
        for (_, key) in earliest.into_sorted_vec() {
            self.check_cancelled()?;
            let epk = keys::ItemKey::decode(&key).ok_or_else(damaged)?.epk;
            let reference = keys::index::reference(&epk, &key);
            if texts.contains_key(&reference[..]) || !self.view.has_text(path, &reference)? {
                continue;
            }
            if let Some(item) = self.load(&key)? {
                self.push(execution, &item)?;
            }
            if execution.held() >= page.need {
                return Ok(true);
            }
        }
        Ok(false)
    }

    // ---- statistics

    /// The numbers that a query about all items asks for, where the index tells them.
    pub fn statistics(&mut self, statistics: &[Statistic]) -> Ran<Option<Vec<u64>>> {
        let (view, span) = (self.view, self.query.span);
        if !view.hides_nothing()? {
            return Ok(None);
        }
        let mut totals = Vec::with_capacity(statistics.len());
        for statistic in statistics {
            let path = match statistic {
                Statistic::Items => None,
                Statistic::Words(place, language) => Some((place, *language)),
                Statistic::Texts(place, term) => Some((place, term.language())),
            };
            let path = match path
                .map(|(place, language)| (place, search::text(view, place, [language].into_iter())))
            {
                Some((_, None)) => return Ok(None),
                Some((place, Some(path))) => Some((path, place)),
                None => None,
            };
            if let Some((_, place)) = path {
                self.report.used(place);
            }
            totals.push(match (statistic, path) {
                (Statistic::Words(..), Some((path, _))) => {
                    let (words, read) = view.total_words(&path, span)?;
                    self.metrics.index_entries += read;
                    words
                }
                (Statistic::Texts(_, term), Some((path, _))) => {
                    let Some(mut hits) = TermHits::new(view, &path, term, span)? else { return Ok(None) };
                    let mut count = 0;
                    while hits.next_hit()?.is_some() {
                        self.check_cancelled()?;
                        count += 1;
                    }
                    self.metrics.index_entries += hits.read();
                    count
                }
                _ => self.items_of_span()?,
            });
        }
        Ok(Some(totals))
    }

    /// How many items there are. Only while nothing is hidden.
    fn items_of_span(&mut self) -> Ran<u64> {
        if matches!(self.query.span, Span::All) {
            return Ok(self.view.item_count());
        }
        let mut orders = self.view.orders(self.query.span);
        let mut count = 0;
        while orders.next_order()?.is_some() {
            self.check_cancelled()?;
            count += 1;
        }
        Ok(count)
    }
}

fn damaged() -> Error {
    Error::internal("An order row is damaged.")
}
