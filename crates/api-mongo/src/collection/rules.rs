//! Unique indexes and those with a time to live, as rules that the engine holds items to (`orrery_engine::item_rules`).
//!
//! The specification of a rule is that of the index as extended JSON. The keys that an item claims are its keys in the
//! index, so a unique index holds for every writer, whichever api it comes through; partial and sparse indexes and
//! those with a collation claim what they cover.

use std::sync::Arc;

use orrery_engine::{CompiledRule, Error as EngineError, Kind, RuleHost};
use orrery_model::Raw;
use orrery_mongo::ext_json::{self, Reading, Style};
use orrery_mongo::filter::Filter;
use orrery_mongo::order::Collation;
use orrery_mongo::{Bson, Context, ValueRef, index_keys};
use serde_json::Value;

use crate::catalog::Index;
use crate::commands::options;

/// Under which the rules of this api stand in definitions.
pub const HOST: &str = "mongo";
/// What an error says that two arrays stand side by side.
pub const PARALLEL_ARRAYS: &str = "cannot index parallel arrays";

/// Reads rules that are indexes.
pub struct IndexRules;

impl RuleHost for IndexRules {
    fn compile(&self, specification: &Value) -> Option<Arc<dyn CompiledRule>> {
        let document = ext_json::from_json(specification, Reading::Data).ok()?;
        let index = Index::of_spec(document.as_document()?)?;
        Some(Arc::new(Rule::of(&index).ok()?))
    }
}

/// What an index asks of items.
pub struct Rule {
    paths: Vec<String>,
    sparse: bool,
    partial: Option<Filter>,
    collation: Option<Arc<Collation>>,
    expire_after_ms: Option<i64>,
}

impl Rule {
    pub fn of(index: &Index) -> orrery_mongo::Result<Rule> {
        let collation = options::collation(index.spec.get("collation").and_then(Bson::as_document))?;
        let context = of_rules(collation.clone());
        Ok(Rule {
            paths: index.key.iter().map(|(path, _)| path.to_string()).collect(),
            sparse: index.sparse,
            partial: index.partial.as_ref().map(|partial| Filter::parse(partial, &context)).transpose()?,
            collation,
            expire_after_ms: index.expire_after_s().map(|seconds| seconds.saturating_mul(1000)),
        })
    }

    fn covers(&self, document: ValueRef<'_>) -> bool {
        let Some(partial) = &self.partial else { return true };
        partial.matches(document, &of_rules(self.collation.clone())).unwrap_or(false)
    }

    fn paths(&self) -> Vec<&str> {
        self.paths.iter().map(String::as_str).collect()
    }
}

impl CompiledRule for Rule {
    fn claims(&self, item: Raw<'_>) -> Result<Vec<Vec<u8>>, EngineError> {
        let document = ValueRef::Item(item);
        if !self.covers(document) {
            return Ok(Vec::new());
        }
        index_keys::keys(document, &self.paths(), self.sparse, self.collation.as_deref())
            .map_err(|error| EngineError::new(Kind::BadRequest, error.message.to_string()))
    }

    fn over_from_ms(&self, item: Raw<'_>) -> Option<i64> {
        let after_ms = self.expire_after_ms?;
        let document = ValueRef::Item(item);
        if !self.covers(document) {
            return None;
        }
        let found = index_keys::combinations(document, &self.paths()).ok()?;
        // Of several dates the first counts; what is no date never ends.
        let dates = found.iter().flatten().flatten().filter_map(|value| match value.to_bson() {
            Bson::Date(ms) => Some(ms),
            _ => None,
        });
        dates.min().map(|ms| ms.saturating_add(after_ms))
    }
}

/// What a rule is evaluated in: filters of partial indexes know no clock and no variables.
fn of_rules(collation: Option<Arc<Collation>>) -> Context {
    Context {
        now_ms: 0,
        cluster_time: (0, 0),
        variables: orrery_mongo::Document::new(),
        collation,
        budget: orrery_budget::Budget::unlimited(),
        random: || 0,
    }
}

/// The specification of the rule of an index.
pub fn specification(index: &Index) -> Value {
    let text = ext_json::to_text(ValueRef::OwnedDocument(&index.spec), Style::Canonical);
    serde_json::from_str(&text).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_model::{ParseOptions, parse_extended_json};
    use orrery_mongo::doc;

    fn rule(spec: orrery_mongo::Document) -> Arc<dyn CompiledRule> {
        IndexRules.compile(&specification(&Index::of_spec(&spec).unwrap())).unwrap()
    }

    fn claims(rule: &Arc<dyn CompiledRule>, item: &str) -> Vec<Vec<u8>> {
        let item = parse_extended_json(item.as_bytes(), &ParseOptions::default()).unwrap();
        rule.claims(Raw::document(&item).unwrap()).unwrap()
    }

    #[test]
    fn an_item_claims_its_keys_in_the_index() {
        let rule = rule(doc! { "key" => doc! { "a" => 1 }, "name" => "a_1", "unique" => true });
        assert_eq!(claims(&rule, r#"{"id":"x","a":1}"#), claims(&rule, r#"{"id":"y","a":1.0}"#));
        assert_ne!(claims(&rule, r#"{"id":"x","a":1}"#), claims(&rule, r#"{"id":"y","a":2}"#));
        assert_eq!(claims(&rule, r#"{"id":"x","a":[1,2,2]}"#).len(), 2);
        assert_eq!(claims(&rule, r#"{"id":"x"}"#), claims(&rule, r#"{"id":"x","a":null}"#));
    }

    #[test]
    fn sparse_and_partial_indexes_and_collations_claim_what_they_cover() {
        let sparse =
            rule(doc! { "key" => doc! { "a" => 1 }, "name" => "i", "unique" => true, "sparse" => true });
        assert!(claims(&sparse, r#"{"id":"x"}"#).is_empty());
        let partial = rule(
            doc! { "key" => doc! { "a" => 1 }, "name" => "i", "unique" => true, "partialFilterExpression" => doc! { "b" => doc! { "$gt" => 5 } } },
        );
        assert!(claims(&partial, r#"{"id":"x","a":1,"b":5}"#).is_empty());
        assert_eq!(claims(&partial, r#"{"id":"x","a":1,"b":6}"#).len(), 1);
        let folded = rule(
            doc! { "key" => doc! { "a" => 1 }, "name" => "i", "unique" => true, "collation" => doc! { "locale" => "en", "strength" => 2 } },
        );
        assert_eq!(claims(&folded, r#"{"id":"x","a":"Ann"}"#), claims(&folded, r#"{"id":"y","a":"ANN"}"#));
    }

    #[test]
    fn an_item_is_over_when_its_first_date_is() {
        let rule = rule(doc! { "key" => doc! { "at" => 1 }, "name" => "i", "expireAfterSeconds" => 10 });
        let over = |item: &str| {
            let item = parse_extended_json(item.as_bytes(), &ParseOptions::default()).unwrap();
            rule.over_from_ms(Raw::document(&item).unwrap())
        };
        assert_eq!(over(r#"{"id":"x","at":{"$date":"1970-01-01T00:00:05Z"}}"#), Some(15_000));
        assert_eq!(
            over(
                r#"{"id":"x","at":[{"$date":"1970-01-01T00:00:05Z"},{"$date":"1970-01-01T00:00:03Z"},"x"]}"#
            ),
            Some(13_000)
        );
        assert_eq!(over(r#"{"id":"x","at":5}"#), None);
        assert_eq!(over(r#"{"id":"x"}"#), None);
    }
}
