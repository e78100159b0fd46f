//! Queries that a search index answers more than the filter of: the best texts for some terms, how common terms are,
//! and the nearest vectors.
//!
//! Clients rank over several partitions with two kinds of queries. One asks for statistics, `SELECT COUNT(1),
//! SUM(_FullTextWordCount(c.text)), COUNTIF(FullTextContains(c.text, "swim")) … FROM c`, the other for the best items
//! given those: `SELECT TOP 120 … FROM c ORDER BY _FullTextScore(c.text, ["swim"], 100, 5000, [3]) DESC`.

use orrery_model::Value;

use super::Place;
use super::place::Places;
use super::search::findable_term;
use crate::aggregate::AggregateKind;
use crate::compile::ITEM_SLOT;
use crate::compile::expression::BRUTE_FORCE;
use crate::env::DistanceFunction;
use crate::fulltext::{Scorer, Term};
use crate::language::Language;
use crate::node::{Node, SourceKind};
use crate::prepared::Prepared;
use crate::rank::Component;

/// The order of a query that wants the best first.
#[derive(Clone, Debug)]
pub enum Ranking {
    /// By the score of the text at a place, highest first.
    Text { place: Place, scorer: Scorer },
    /// By how alike the vector at a place is to another, the nearest first. What cannot be compared comes before all
    /// others, or after them.
    Vector { place: Place, wanted: Nearest, undefined_first: bool },
}

/// Which vectors are looked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    pub vector: Vec<f64>,
    pub function: DistanceFunction,
    /// Every vector is to be compared as it is.
    pub brute_force: bool,
    /// Of how many, for each wanted row, a search among codes looks at the vectors themselves.
    pub list_multiplier: Option<u32>,
    pub graph_multiplier: Option<u32>,
}

impl Nearest {
    fn new(vector: &Node, function: &Node, wishes: Option<&Node>) -> Option<Nearest> {
        let Node::Constant(Value::Array(parts)) = vector else { return None };
        let function = function.as_constant()?.as_str()?;
        let wish = |name: &str| wishes.and_then(Node::as_constant).and_then(|wishes| wishes.get(name));
        let multiplier =
            |name: &str| wish(name)?.as_number()?.as_i64().and_then(|many| u32::try_from(many).ok());
        Some(Nearest {
            vector: parts.iter().map(|part| Some(part.as_number()?.as_f64())).collect::<Option<_>>()?,
            function: [DistanceFunction::Cosine, DistanceFunction::DotProduct, DistanceFunction::Euclidean]
                .into_iter()
                .find(|known| format!("{known:?}") == function)?,
            brute_force: wish(BRUTE_FORCE) == Some(&Value::Bool(true)),
            list_multiplier: multiplier("quantizedVectorListMultiplier"),
            graph_multiplier: multiplier("searchListSizeMultiplier"),
        })
    }
}

/// One number about all items.
#[derive(Clone, Debug)]
pub enum Statistic {
    Items,
    /// Words of all texts at a place, in a language.
    Words(Place, Language),
    /// Texts at a place in which a term stands.
    Texts(Place, Term),
}

impl Prepared {
    /// What the query sorts by, if it is the score that a search index knows.
    pub fn ranking(&self) -> Option<Ranking> {
        let compiled = &self.compiled;
        let [key] = compiled.order.as_slice() else { return None };
        let Node::Call(function, arguments) = &key.node else { return None };
        if !self.reads_items() || compiled.block.grouping.is_some() || compiled.block.distinct {
            return None;
        }
        let places = Places::of(&compiled.block);
        match (function.name, arguments.as_slice()) {
            ("_FULLTEXTSCORE", [text, terms, documents, words, matching]) if key.descending => {
                let place = places.inner(text)?;
                let scorer = Scorer::new(
                    terms.as_constant()?,
                    documents.as_constant()?,
                    words.as_constant()?,
                    matching.as_constant()?,
                    function.language,
                )?;
                let findable = scorer.terms.iter().all(Term::is_findable);
                (findable && scorer.rewards_hits()).then_some(Ranking::Text { place, scorer })
            }
            ("VECTORDISTANCE" | "_VECTORSCORE", [first, second, function, wishes @ ..]) => {
                let (place, vector) = match (places.inner(first), places.inner(second)) {
                    (Some(place), None) => (place, second),
                    (None, Some(place)) => (place, first),
                    _ => return None,
                };
                let wanted = Nearest::new(vector, function, wishes.first())?;
                // Turned round, the farthest are wanted.
                let nearest_first = key.descending == (wanted.function != DistanceFunction::Euclidean);
                let undefined_first = !key.descending && key.missing.is_none();
                nearest_first.then_some(Ranking::Vector { place, wanted, undefined_first })
            }
            _ => None,
        }
    }

    /// The place and the terms of a query that ranks texts by nothing else, without any statistics in it.
    pub fn ranked_text(&self) -> Option<(Place, Vec<Term>)> {
        let rank = self.compiled.rank.as_ref().filter(|rank| !rank.fused && self.reads_items())?;
        let [Component::FullText { path, terms, language, .. }] = rank.components.as_slice() else {
            return None;
        };
        let place = Places::of(&self.compiled.block).inner(path)?;
        Some((place, terms.iter().map(|term| Term::new(term, 0, *language)).collect()))
    }

    /// The numbers that the query asks for, if it asks for nothing but statistics of all items; in the order of its
    /// aggregates.
    pub fn statistics(&self) -> Option<Vec<Statistic>> {
        let block = &self.compiled.block;
        let grouping = block.grouping.as_ref().filter(|grouping| grouping.keys.is_empty())?;
        if !self.reads_items() || !self.takes_every_item() {
            return None;
        }
        let places = Places::of(block);
        let statistic = |(kind, argument, _): &(AggregateKind, Node, usize)| match (kind, argument) {
            (AggregateKind::Count, Node::Constant(value)) if !value.is_undefined() => Some(Statistic::Items),
            (AggregateKind::Sum, Node::Call(function, arguments)) => match arguments.as_slice() {
                [text] if function.name == "_FULLTEXTWORDCOUNT" => {
                    Some(Statistic::Words(places.inner(text)?, function.language))
                }
                _ => None,
            },
            (AggregateKind::CountIf, Node::Call(function, arguments)) => match arguments.as_slice() {
                [text, term] if function.name == "FULLTEXTCONTAINS" => Some(Statistic::Texts(
                    places.inner(text)?,
                    findable_term(term.as_constant()?, function.language)?,
                )),
                _ => None,
            },
            _ => None,
        };
        let statistics: Vec<Statistic> = grouping.aggregates.iter().map(statistic).collect::<Option<_>>()?;
        statistics.iter().any(|one| !matches!(one, Statistic::Items)).then_some(statistics)
    }

    /// Whether rows are items, one to one.
    fn reads_items(&self) -> bool {
        matches!(self.compiled.block.sources.as_slice(), [source]
            if matches!(&source.kind, SourceKind::Value(Node::Slot(ITEM_SLOT))))
    }
}
