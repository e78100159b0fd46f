//! Validators of collections.

use orrery_mongo::filter::Filter;
use orrery_mongo::{Bson, Context, Document, Error, Result, ValueRef, doc, error::code};

use crate::collection::Collection;

pub struct Validator {
    filter: Filter,
    rule: Document,
    warns: bool,
    /// Documents that were not valid before may stay so.
    moderate: bool,
}

impl Validator {
    pub fn of(collection: &Collection, context: &Context) -> Result<Option<Validator>> {
        let options = &collection.meta.options;
        let Some(rule) = options.get("validator").and_then(Bson::as_document).filter(|rule| !rule.is_empty())
        else {
            return Ok(None);
        };
        let level = options.get("validationLevel").and_then(Bson::as_str).unwrap_or("strict");
        if level == "off" {
            return Ok(None);
        }
        let warns = options.get("validationAction").and_then(Bson::as_str) == Some("warn");
        Ok(Some(Validator {
            filter: Filter::parse(rule, context)?,
            rule: rule.clone(),
            warns,
            moderate: level == "moderate",
        }))
    }

    pub fn check(&self, document: &Document, context: &Context) -> Result<()> {
        if self.warns || self.filter.matches(ValueRef::OwnedDocument(document), context)? {
            return Ok(());
        }
        let id = document.get("_id").cloned().unwrap_or(Bson::Null);
        let name = if self.rule.contains("$jsonSchema") { "$jsonSchema" } else { "validator" };
        Err(Error::new(code::DOCUMENT_VALIDATION_FAILURE, "Document failed validation").with_details(doc! {
            "errInfo" => doc! {
                "failingDocumentId" => id,
                "details" => doc! { "operatorName" => name, "specifiedAs" => self.rule.clone() },
            },
        }))
    }

    /// Of a change: what was not valid before need not be, where the level is moderate.
    pub fn check_change(&self, old: &Document, new: &Document, context: &Context) -> Result<()> {
        if self.moderate && !self.filter.matches(ValueRef::OwnedDocument(old), context)? {
            return Ok(());
        }
        self.check(new, context)
    }
}
