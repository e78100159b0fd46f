//! ORDER BY RANK: scores of full-text and vector components, fused by rank.
//!
//! BM25 needs to know all texts before it can score one, so rows wait until the end. Every row pushed
//! counts for the statistics, whether the filter keeps it or not. With several components each gives a
//! ranking of the kept rows, equal scores sharing a rank, and a row's score is the sum of
//! weight / (60 + rank).

use orrery_model::Value;
use orrery_sql::SqlError;

use crate::eval::Frame;
use crate::fulltext::{Term, Words, bm25};
use crate::language::Language;
use crate::node::Node;

#[derive(Clone, Debug)]
pub(crate) struct Rank {
    pub components: Vec<Component>,
    pub weights: Vec<f64>,
    pub fused: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Component {
    FullText {
        path: Node,
        terms: Vec<String>,
        /// The terms as they were given, those among them that say how far a word may differ.
        given: Vec<Value>,
        language: Language,
    },
    Vector {
        node: Node,
        ascending: bool,
    },
}

/// The constant of reciprocal rank fusion.
pub(crate) const FUSION_OFFSET: f64 = 60.0;

/// What the scores of a query's rows are computed from.
#[derive(Debug, Default)]
pub(crate) struct RankState {
    terms: Vec<Vec<Term>>,
    statistics: Vec<Statistics>,
    documents: f64,
    /// The statistics are those of all rows already; rows that are pushed do not count for them.
    complete: bool,
}

#[derive(Clone, Debug, Default)]
struct Statistics {
    words: f64,
    matching: Vec<f64>,
}

/// What one row brings to one component.
#[derive(Clone, Debug)]
pub(crate) enum Signal {
    Text { words: f64, hits: Vec<f64> },
    Vector(f64),
    None,
}

impl RankState {
    pub fn new(rank: &Rank) -> RankState {
        let terms: Vec<Vec<Term>> = rank
            .components
            .iter()
            .map(|component| match component {
                Component::FullText { terms, language, .. } => {
                    terms.iter().map(|term| Term::new(term, 0, *language)).collect()
                }
                Component::Vector { .. } => Vec::new(),
            })
            .collect();
        let statistics =
            terms.iter().map(|terms| Statistics { words: 0.0, matching: vec![0.0; terms.len()] }).collect();
        RankState { terms, statistics, documents: 0.0, complete: false }
    }

    /// Says what all rows would come to, for the one component of a query that ranks texts.
    pub fn set_statistics(&mut self, documents: u64, words: u64, matching: &[u64]) {
        self.documents = documents as f64;
        let matching = matching.iter().map(|count| *count as f64).collect();
        self.statistics = vec![Statistics { words: words as f64, matching }];
        self.complete = true;
    }

    /// Reads one row; its slots are bound.
    pub fn read<'a>(&mut self, rank: &'a Rank, frame: &mut Frame<'a>) -> Result<Vec<Signal>, SqlError> {
        if !self.complete {
            self.documents += 1.0;
        }
        let mut signals = Vec::with_capacity(rank.components.len());
        for (at, component) in rank.components.iter().enumerate() {
            signals.push(match component {
                Component::FullText { path, language, .. } => match frame.eval(path)?.as_str() {
                    Some(text) => self.read_text(at, text, *language),
                    None => Signal::None,
                },
                Component::Vector { node, .. } => {
                    frame.eval(node)?.as_f64().map_or(Signal::None, Signal::Vector)
                }
            });
        }
        Ok(signals)
    }

    fn read_text(&mut self, at: usize, text: &str, language: Language) -> Signal {
        let text = Words::new(text, language);
        let statistics = &mut self.statistics[at];
        let new = f64::from(u8::from(!self.complete));
        statistics.words += new * text.length as f64;
        let mut hits = Vec::with_capacity(self.terms[at].len());
        for (term, matching) in self.terms[at].iter().zip(&mut statistics.matching) {
            let count = term.count(&text);
            *matching += new * f64::from(u8::from(count > 0));
            hits.push(count as f64);
        }
        Signal::Text { words: text.length as f64, hits }
    }

    /// The final scores of the kept rows; higher is better.
    pub fn scores(&self, rank: &Rank, rows: &[Vec<Signal>]) -> Vec<f64> {
        let mut fused = vec![0.0; rows.len()];
        for (at, component) in rank.components.iter().enumerate() {
            let scores: Vec<f64> = rows.iter().map(|row| self.score(at, component, &row[at])).collect();
            if !rank.fused {
                return scores;
            }
            let weight = rank.weights[at];
            let mut ordered: Vec<usize> = (0..rows.len()).collect();
            // A negative weight ranks the worst first.
            ordered.sort_by(|a, b| {
                let order = scores[*b].total_cmp(&scores[*a]);
                if weight < 0.0 { order.reverse() } else { order }
            });
            let mut place = 0.0;
            let mut last = f64::NAN;
            for row in ordered {
                if scores[row] != last {
                    place += 1.0;
                    last = scores[row];
                }
                fused[row] += weight.abs() / (FUSION_OFFSET + place);
            }
        }
        fused
    }

    fn score(&self, at: usize, component: &Component, signal: &Signal) -> f64 {
        match signal {
            Signal::Text { words, hits } => {
                let statistics = &self.statistics[at];
                let average = statistics.words / self.documents.max(1.0);
                hits.iter()
                    .zip(&statistics.matching)
                    .filter(|(hits, _)| **hits > 0.0)
                    .map(|(hits, matching)| bm25(*hits, *words, self.documents, average, *matching))
                    .sum()
            }
            Signal::Vector(distance) => match component {
                Component::Vector { ascending: true, .. } => -distance,
                _ => *distance,
            },
            // Without a text or vector a row comes after all that have one.
            Signal::None => match component {
                Component::FullText { .. } => -1.0,
                Component::Vector { .. } => -f64::MAX,
            },
        }
    }
}
