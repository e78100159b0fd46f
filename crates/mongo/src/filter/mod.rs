//! Filters: what `find`, `$match`, updates and deletes ask of a document.
//!
//! A filter is parsed into [`Condition`]s on documents and [`Test`]s of what paths lead to ([`path`]); the operators
//! and their parsers are listed in [`table`]. Comparisons bracket by type: `{$lt: 5}` asks for numbers only.

mod bits;
mod comparison;
mod elements;
pub mod geo;
mod json_schema;
mod logical;
mod matching;
mod parse;
pub mod path;
pub mod table;
pub mod text;

use std::sync::Arc;

pub use bits::Bits;
pub use elements::Kinds;
pub use json_schema::Schema;

use crate::context::Context;
use crate::error::Result;
use crate::expression::Expression;
use crate::order::Collation;
use crate::pattern::Pattern;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// A parsed filter. Its tree can be looked at, so that an index may answer a part of it.
#[derive(Clone, Debug)]
pub struct Filter {
    pub root: Condition,
    pub collation: Option<Arc<Collation>>,
}

#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Condition {
    Always(bool),
    And(Vec<Condition>),
    Or(Vec<Condition>),
    Nor(Vec<Condition>),
    /// A test of what a path leads to, elements of arrays included.
    Field {
        path: Arc<str>,
        test: Test,
    },
    Expr(Box<Expression>),
    Schema(Arc<Schema>),
    Text(Arc<text::TextQuery>),
    /// A share of all documents, by chance.
    Sample(f64),
}

/// A test of one value. Comparisons bracket by type, as MongoDB's do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Test {
    Equal(Bson),
    NotEqual(Bson),
    Less(Bson),
    LessOrEqual(Bson),
    Greater(Bson),
    GreaterOrEqual(Bson),
    /// In the order of values, each once; no regular expressions, which are tests of their own.
    In(Vec<Bson>),
    NotIn(Vec<Bson>),
    Exists(bool),
    Not(Box<Test>),
    /// Each of them holds, of whatever value that the path leads to.
    All(Vec<Test>),
    /// One of them holds.
    Any(Vec<Test>),
    Kinds(Kinds),
    Mod {
        divisor: i64,
        remainder: i64,
    },
    Regex(Arc<Pattern>),
    Size(i64),
    /// An element of an array is a document that meets the condition.
    ElementDocument(Box<Condition>),
    /// An element of an array passes each of the tests.
    ElementValue(Vec<Test>),
    Bits(Arc<Bits>),
    Within(Arc<geo::Region>),
    Intersects(Arc<geo::Shape>),
    Near(Arc<geo::Near>),
}

/// What a filter found out beside yes.
#[derive(Clone, Debug, Default)]
pub struct Matched {
    /// The element of an array that matched: what the positional operator `$` stands for.
    pub element: Option<usize>,
}

impl Filter {
    pub fn parse(filter: &Document, context: &Context) -> Result<Filter> {
        Ok(Filter { root: parse::filter(filter, context)?, collation: context.collation.clone() })
    }

    pub fn matches(&self, document: ValueRef<'_>, context: &Context) -> Result<bool> {
        self.find(document, context).map(|matched| matched.is_some())
    }

    /// Whether a document matches, and where.
    pub fn find(&self, document: ValueRef<'_>, context: &Context) -> Result<Option<Matched>> {
        let mut element = None;
        let matching = matching::Matching { context, collation: self.collation.as_deref() };
        Ok(matching.condition(&self.root, document, &mut element)?.then_some(Matched { element }))
    }

    /// Paths that the filter fixes to one value, also inside of `$and`: for upserts, `_id` look-ups and shard keys.
    pub fn equalities(&self) -> Vec<(&str, &Bson)> {
        fn collect<'a>(condition: &'a Condition, found: &mut Vec<(&'a str, &'a Bson)>) {
            match condition {
                Condition::And(conditions) => conditions.iter().for_each(|inner| collect(inner, found)),
                Condition::Or(conditions) if conditions.len() == 1 => collect(&conditions[0], found),
                Condition::Field { path, test } => of_test(path, test, found),
                _ => {}
            }
        }
        fn of_test<'a>(path: &'a str, test: &'a Test, found: &mut Vec<(&'a str, &'a Bson)>) {
            match test {
                Test::Equal(value) => found.push((path, value)),
                Test::All(tests) => tests.iter().for_each(|test| of_test(path, test, found)),
                _ => {}
            }
        }
        let mut found = Vec::new();
        collect(&self.root, &mut found);
        found
    }

    /// The `$near` or `$nearSphere` of the filter, by whose distance its documents are sorted.
    pub fn near(&self) -> Option<(&str, &geo::Near)> {
        fn search(condition: &Condition) -> Option<(&str, &geo::Near)> {
            match condition {
                Condition::And(conditions) => conditions.iter().find_map(search),
                Condition::Field { path, test: Test::Near(near) } => Some((path, near)),
                _ => None,
            }
        }
        search(&self.root)
    }

    /// How far a document is from what `$near` asks for: the nearest of its places.
    pub fn distance(&self, document: ValueRef<'_>) -> Option<f64> {
        let (path, near) = self.near()?;
        let mut nearest: Option<f64> = None;
        // The visitor does not fail, so the walk does not.
        let _ = path::walk(document, path, path::Leaf::Elements, &mut |found, _| {
            if let Some(distance) = found.and_then(|value| near.distance(value)) {
                nearest = Some(nearest.map_or(distance, |nearest| nearest.min(distance)));
            }
            Ok(false)
        });
        nearest
    }

    /// What `{$meta: name}` says of a document that matched.
    pub fn meta(&self, name: &str, document: ValueRef<'_>) -> Option<Bson> {
        match name {
            "textScore" => self.text()?.score(document).map(Bson::Double),
            "geoNearDistance" => self.distance(document).map(Bson::Double),
            _ => None,
        }
    }

    /// The `$text` of the filter.
    pub fn text(&self) -> Option<&text::TextQuery> {
        fn search(condition: &Condition) -> Option<&text::TextQuery> {
            match condition {
                Condition::And(conditions) | Condition::Or(conditions) => conditions.iter().find_map(search),
                Condition::Text(query) => Some(query),
                _ => None,
            }
        }
        search(&self.root)
    }

    /// Which paths `$text` looks at; without any it looks at every text of a document.
    pub fn set_text_paths(&mut self, paths: &[String]) {
        fn set(condition: &mut Condition, paths: &[String]) {
            match condition {
                Condition::And(conditions) | Condition::Or(conditions) => {
                    conditions.iter_mut().for_each(|inner| set(inner, paths));
                }
                Condition::Text(query) => Arc::make_mut(query).paths = paths.to_vec(),
                _ => {}
            }
        }
        set(&mut self.root, paths);
    }
}
