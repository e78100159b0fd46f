//! `$jsonSchema`: draft 4 of JSON Schema as MongoDB knows it, with `bsonType` beside `type`.
//!
//! A keyword says something about values of one type and nothing about others: `{minimum: 5}` lets every text pass.
//! Members that are missing pass all but `required`.

use std::collections::HashSet;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::filter::Condition;
use crate::filter::elements::Kinds;
use crate::filter::parse::Place;
use crate::order;
use crate::pattern::Pattern;
use crate::value::{Bson, Document, Kind};
use crate::value_ref::{NumberRef, ValueRef};

/// Schemas within schemas.
const DEPTH_MAX: usize = 60;

/// A parsed schema.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Rule {
    Kinds(Kinds),
    /// Members by name, members by patterns, and whether others are allowed, or how they should be.
    Properties {
        named: Vec<(Arc<str>, Schema)>,
        patterns: Vec<(Pattern, Schema)>,
        others: Others,
    },
    Required(Vec<Arc<str>>),
    PropertiesMin(i64),
    PropertiesMax(i64),
    DependentNames(Arc<str>, Vec<Arc<str>>),
    DependentSchema(Arc<str>, Schema),
    Items(Schema),
    ItemsInTurn {
        items: Vec<Schema>,
        others: Others,
    },
    ItemsMin(i64),
    ItemsMax(i64),
    UniqueItems,
    Minimum {
        bound: Bson,
        exclusive: bool,
    },
    Maximum {
        bound: Bson,
        exclusive: bool,
    },
    MultipleOf(Bson),
    LengthMin(i64),
    LengthMax(i64),
    Pattern(Pattern),
    Enum(Vec<Bson>),
    AllOf(Vec<Schema>),
    AnyOf(Vec<Schema>),
    OneOf(Vec<Schema>),
    Not(Schema),
    /// A value that a client has encrypted.
    Encrypted,
}

#[derive(Clone, Debug)]
enum Others {
    Allowed,
    Refused,
    Like(Schema),
}

pub fn json_schema(_: Place<'_>, value: &Bson) -> Result<Condition> {
    let Bson::Document(schema) = value else {
        return Err(Error::type_mismatch("$jsonSchema must be an object"));
    };
    Ok(Condition::Schema(Arc::new(parse(schema, 0)?)))
}

fn wrong_type(keyword: &str, wanted: &str) -> Error {
    Error::type_mismatch(format!("$jsonSchema keyword '{keyword}' must be {wanted}"))
}

fn parse(document: &Document, depth: usize) -> Result<Schema> {
    if depth > DEPTH_MAX {
        return Err(Error::failed_to_parse("$jsonSchema is nested too deeply"));
    }
    if document.contains("type") && document.contains("bsonType") {
        let text = "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'";
        return Err(Error::failed_to_parse(text));
    }
    let mut rules = Vec::new();
    for (keyword, value) in document.iter() {
        rules.extend(keyword_rule(keyword, value, document, depth)?);
    }
    if ["properties", "patternProperties", "additionalProperties"].iter().any(|name| document.contains(name))
    {
        rules.push(properties(document, depth)?);
    }
    Ok(Schema { rules })
}

fn keyword_rule(keyword: &str, value: &Bson, document: &Document, depth: usize) -> Result<Option<Rule>> {
    let inner = |value: &Bson| match value {
        Bson::Document(document) => parse(document, depth + 1),
        _ => Err(wrong_type(keyword, "an object")),
    };
    let several = || match value {
        Bson::Array(schemas) if !schemas.is_empty() => schemas.iter().map(inner).collect::<Result<Vec<_>>>(),
        Bson::Array(_) => {
            Err(Error::bad_value(format!("$jsonSchema keyword '{keyword}' must be a non-empty array")))
        }
        _ => Err(wrong_type(keyword, "an array")),
    };
    Ok(Some(match keyword {
        "type" | "bsonType" => Rule::Kinds(kinds(keyword, value)?),
        "required" => Rule::Required(names(keyword, value)?),
        "minProperties" => Rule::PropertiesMin(count(keyword, value)?),
        "maxProperties" => Rule::PropertiesMax(count(keyword, value)?),
        "minItems" => Rule::ItemsMin(count(keyword, value)?),
        "maxItems" => Rule::ItemsMax(count(keyword, value)?),
        "minLength" => Rule::LengthMin(count(keyword, value)?),
        "maxLength" => Rule::LengthMax(count(keyword, value)?),
        "uniqueItems" => match value {
            Bson::Bool(true) => Rule::UniqueItems,
            Bson::Bool(false) => return Ok(None),
            _ => return Err(wrong_type(keyword, "a boolean")),
        },
        "minimum" | "maximum" => {
            if !value.is_number() {
                return Err(wrong_type(keyword, "a number"));
            }
            let other = if keyword == "minimum" { "exclusiveMinimum" } else { "exclusiveMaximum" };
            let exclusive = match document.get(other) {
                None => false,
                Some(Bson::Bool(exclusive)) => *exclusive,
                Some(_) => return Err(wrong_type(other, "a boolean")),
            };
            let bound = value.clone();
            if keyword == "minimum" {
                Rule::Minimum { bound, exclusive }
            } else {
                Rule::Maximum { bound, exclusive }
            }
        }
        "exclusiveMinimum" | "exclusiveMaximum" => {
            let needed = if keyword == "exclusiveMinimum" { "minimum" } else { "maximum" };
            if !document.contains(needed) {
                return Err(Error::failed_to_parse(format!(
                    "$jsonSchema keyword '{needed}' must be a present if {keyword} is present"
                )));
            }
            return Ok(None);
        }
        "multipleOf" => {
            let number = ValueRef::Owned(value).as_number();
            let number = number.ok_or_else(|| wrong_type(keyword, "a number"))?;
            if order::is_not_a_number(number) || number.compare(NumberRef::Int32(0)).is_le() {
                let text = "$jsonSchema keyword 'multipleOf' must have a positive value";
                return Err(Error::failed_to_parse(text));
            }
            Rule::MultipleOf(value.clone())
        }
        "pattern" => match value {
            Bson::String(pattern) => Rule::Pattern(Pattern::new(pattern, "")?),
            _ => return Err(wrong_type(keyword, "a string")),
        },
        "enum" => match value {
            Bson::Array(values) if values.is_empty() => {
                return Err(Error::failed_to_parse("$jsonSchema keyword 'enum' cannot be an empty array"));
            }
            Bson::Array(values) => {
                let mut seen = HashSet::new();
                if !values.iter().all(|value| seen.insert(identity(value.into()))) {
                    let text = "$jsonSchema keyword 'enum' array cannot contain duplicate values.";
                    return Err(Error::failed_to_parse(text));
                }
                Rule::Enum(values.to_vec())
            }
            _ => return Err(wrong_type(keyword, "an array")),
        },
        "allOf" => Rule::AllOf(several()?),
        "anyOf" => Rule::AnyOf(several()?),
        "oneOf" => Rule::OneOf(several()?),
        "not" => Rule::Not(inner(value)?),
        "items" => match value {
            Bson::Array(items) => Rule::ItemsInTurn {
                items: items.iter().map(inner).collect::<Result<_>>()?,
                others: others("additionalItems", document, depth)?,
            },
            Bson::Document(_) => Rule::Items(inner(value)?),
            _ => return Err(wrong_type(keyword, "an array or an object")),
        },
        "additionalItems" => {
            others("additionalItems", document, depth)?;
            return Ok(None);
        }
        "dependencies" => return dependencies(value, depth),
        "properties" | "patternProperties" | "additionalProperties" => return Ok(None),
        "title" | "description" => match value {
            Bson::String(_) => return Ok(None),
            _ => return Err(wrong_type(keyword, "a string")),
        },
        "encrypt" => match value {
            Bson::Document(_) => Rule::Encrypted,
            _ => return Err(wrong_type(keyword, "an object")),
        },
        "encryptMetadata" => match value {
            Bson::Document(_) => return Ok(None),
            _ => return Err(wrong_type(keyword, "an object")),
        },
        "$ref" | "$schema" | "default" | "definitions" | "format" | "id" => {
            let text = format!("$jsonSchema keyword '{keyword}' is not currently supported");
            return Err(Error::failed_to_parse(text));
        }
        _ => return Err(Error::failed_to_parse(format!("Unknown $jsonSchema keyword: {keyword}"))),
    }))
}

fn kinds(keyword: &str, value: &Bson) -> Result<Kinds> {
    let mut kinds = Kinds::default();
    let mut add = |value: &Bson| -> Result<()> {
        let Bson::String(name) = value else {
            return Err(wrong_type(keyword, "a string or an array of strings"));
        };
        if keyword == "bsonType" {
            return kinds.add(value);
        }
        match &**name {
            "object" => kinds.insert(Kind::Document),
            "array" => kinds.insert(Kind::Array),
            "number" => kinds.insert_numbers(),
            "boolean" => kinds.insert(Kind::Bool),
            "string" => kinds.insert(Kind::String),
            "null" => kinds.insert(Kind::Null),
            "integer" => {
                let text = "$jsonSchema type 'integer' is not currently supported.";
                return Err(Error::failed_to_parse(text));
            }
            _ => return Err(Error::bad_value(format!("Unknown type name alias: {name}"))),
        }
        Ok(())
    };
    match value {
        Bson::Array(values) if values.is_empty() => {
            let text = format!("$jsonSchema keyword '{keyword}' must name at least one type");
            return Err(Error::failed_to_parse(text));
        }
        Bson::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                if values[..at].contains(value) {
                    let text = format!("$jsonSchema keyword '{keyword}' has duplicate value");
                    return Err(Error::failed_to_parse(text));
                }
                add(value)?;
            }
        }
        _ => add(value)?,
    }
    Ok(kinds)
}

fn count(keyword: &str, value: &Bson) -> Result<i64> {
    if !value.is_number() {
        return Err(wrong_type(keyword, "a number"));
    }
    match value.as_i64() {
        Some(count @ 0..) => Ok(count),
        _ => Err(Error::failed_to_parse(format!(
            "$jsonSchema keyword '{keyword}' must be a non-negative integer"
        ))),
    }
}

fn names(keyword: &str, value: &Bson) -> Result<Vec<Arc<str>>> {
    let Bson::Array(values) = value else { return Err(wrong_type(keyword, "an array")) };
    if values.is_empty() {
        let text = format!("$jsonSchema keyword '{keyword}' cannot be an empty array");
        return Err(Error::failed_to_parse(text));
    }
    let mut names: Vec<Arc<str>> = Vec::with_capacity(values.len());
    for value in values.iter() {
        let Bson::String(name) = value else { return Err(wrong_type(keyword, "an array of strings")) };
        if names.contains(name) {
            let text = format!("$jsonSchema keyword '{keyword}' array cannot contain duplicate values");
            return Err(Error::failed_to_parse(text));
        }
        names.push(name.clone());
    }
    Ok(names)
}

fn others(keyword: &str, document: &Document, depth: usize) -> Result<Others> {
    match document.get(keyword) {
        None | Some(Bson::Bool(true)) => Ok(Others::Allowed),
        Some(Bson::Bool(false)) => Ok(Others::Refused),
        Some(Bson::Document(schema)) => Ok(Others::Like(parse(schema, depth + 1)?)),
        Some(_) => Err(wrong_type(keyword, "an object or a boolean")),
    }
}

fn properties(document: &Document, depth: usize) -> Result<Rule> {
    let schemas = |keyword: &str| match document.get(keyword) {
        None => Ok(Vec::new()),
        Some(Bson::Document(members)) => members
            .iter()
            .map(|(name, schema)| match schema {
                Bson::Document(schema) => Ok((name.clone(), parse(schema, depth + 1)?)),
                _ => Err(Error::type_mismatch(format!(
                    "Nested schema for $jsonSchema property '{name}' must be an object"
                ))),
            })
            .collect::<Result<Vec<_>>>(),
        Some(_) => Err(wrong_type(keyword, "an object")),
    };
    let patterns = schemas("patternProperties")?
        .into_iter()
        .map(|(pattern, schema)| Ok((Pattern::new(&pattern, "")?, schema)))
        .collect::<Result<_>>()?;
    Ok(Rule::Properties {
        named: schemas("properties")?,
        patterns,
        others: others("additionalProperties", document, depth)?,
    })
}

fn dependencies(value: &Bson, depth: usize) -> Result<Option<Rule>> {
    let Bson::Document(members) = value else { return Err(wrong_type("dependencies", "an object")) };
    let rules = members.iter().map(|(name, needed)| match needed {
        Bson::Document(schema) => {
            Ok(Schema { rules: vec![Rule::DependentSchema(name.clone(), parse(schema, depth + 1)?)] })
        }
        Bson::Array(_) => {
            Ok(Schema { rules: vec![Rule::DependentNames(name.clone(), names("dependencies", needed)?)] })
        }
        _ => Err(wrong_type("dependencies", "an object of objects or arrays")),
    });
    Ok(Some(Rule::AllOf(rules.collect::<Result<_>>()?)))
}

fn identity(value: ValueRef<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    order::identity(value, None, &mut out);
    out
}

impl Schema {
    pub fn matches(&self, value: ValueRef<'_>) -> Result<bool> {
        for rule in &self.rules {
            if !rule.holds(value)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn matching(schemas: &[Schema], value: ValueRef<'_>) -> Result<usize> {
    let mut count = 0;
    for schema in schemas {
        count += usize::from(schema.matches(value)?);
    }
    Ok(count)
}

impl Rule {
    fn holds(&self, value: ValueRef<'_>) -> Result<bool> {
        let kind = value.kind();
        let (is_document, is_array) = (kind == Kind::Document, kind == Kind::Array);
        let is_text = matches!(kind, Kind::String | Kind::Symbol);
        let length = || value.as_str().map_or(0, |text| text.chars().count() as i64);
        Ok(match self {
            Rule::Kinds(kinds) => kinds.contains(kind),
            Rule::Properties { named, patterns, others } => {
                !is_document || properties_hold(value, named, patterns, others)?
            }
            Rule::Required(names) => !is_document || names.iter().all(|name| value.get(name).is_some()),
            Rule::PropertiesMin(least) => !is_document || value.len() as i64 >= *least,
            Rule::PropertiesMax(most) => !is_document || value.len() as i64 <= *most,
            Rule::DependentNames(name, names) => {
                !is_document
                    || value.get(name).is_none()
                    || names.iter().all(|name| value.get(name).is_some())
            }
            Rule::DependentSchema(name, schema) => {
                !is_document || value.get(name).is_none() || schema.matches(value)?
            }
            Rule::Items(schema) => {
                for element in value.elements() {
                    if !schema.matches(element)? {
                        return Ok(false);
                    }
                }
                true
            }
            Rule::ItemsInTurn { items, others } => {
                for (at, element) in value.elements().enumerate() {
                    let passes = match (items.get(at), others) {
                        (Some(schema), _) | (None, Others::Like(schema)) => schema.matches(element)?,
                        (None, Others::Allowed) => true,
                        (None, Others::Refused) => false,
                    };
                    if !passes {
                        return Ok(false);
                    }
                }
                true
            }
            Rule::ItemsMin(least) => !is_array || value.len() as i64 >= *least,
            Rule::ItemsMax(most) => !is_array || value.len() as i64 <= *most,
            Rule::UniqueItems => {
                let mut seen = HashSet::new();
                value.elements().all(|element| seen.insert(identity(element)))
            }
            Rule::Minimum { bound, exclusive } => {
                within(value, bound, *exclusive, std::cmp::Ordering::Greater)
            }
            Rule::Maximum { bound, exclusive } => within(value, bound, *exclusive, std::cmp::Ordering::Less),
            Rule::MultipleOf(of) => value.as_number().is_none_or(|number| is_multiple(number, of)),
            Rule::LengthMin(least) => !is_text || length() >= *least,
            Rule::LengthMax(most) => !is_text || length() <= *most,
            Rule::Pattern(pattern) => match value.as_str() {
                Some(text) => pattern.is_match(text)?,
                None => true,
            },
            Rule::Enum(values) => values.iter().any(|has| order::equal(has.into(), value, None)),
            Rule::AllOf(schemas) => matching(schemas, value)? == schemas.len(),
            Rule::AnyOf(schemas) => matching(schemas, value)? > 0,
            Rule::OneOf(schemas) => matching(schemas, value)? == 1,
            Rule::Not(schema) => !schema.matches(value)?,
            Rule::Encrypted => {
                matches!(value.as_extended(), Some(orrery_model::Extended::Binary { subtype: 6, .. }))
            }
        })
    }
}

fn within(value: ValueRef<'_>, bound: &Bson, exclusive: bool, beyond: std::cmp::Ordering) -> bool {
    let (Some(number), Some(bound)) = (value.as_number(), ValueRef::Owned(bound).as_number()) else {
        return true;
    };
    let order = number.compare(bound);
    order == beyond || (!exclusive && order.is_eq())
}

fn is_multiple(number: NumberRef, of: &Bson) -> bool {
    let double = |number: NumberRef| match number {
        NumberRef::Int32(value) => f64::from(value),
        NumberRef::Int64(value) => value as f64,
        NumberRef::Double(value) => value,
        NumberRef::Decimal(value) => value.toward_zero(),
    };
    let Some(divisor) = ValueRef::Owned(of).as_number() else { return true };
    let whole = |number| match number {
        NumberRef::Int32(value) => Some(i64::from(value)),
        NumberRef::Int64(value) => Some(value),
        _ => None,
    };
    match (whole(number), whole(divisor)) {
        (Some(number), Some(divisor)) if divisor != 0 => number.wrapping_rem(divisor) == 0,
        _ => {
            let (number, divisor) = (double(number), double(divisor));
            let rest = (number % divisor).abs();
            // Decimals such as 0.1 have no exact double.
            number.is_finite() && (rest < 1e-9 * divisor || (divisor - rest).abs() < 1e-9 * divisor)
        }
    }
}

fn properties_hold(
    value: ValueRef<'_>,
    named: &[(Arc<str>, Schema)],
    patterns: &[(Pattern, Schema)],
    others: &Others,
) -> Result<bool> {
    for (name, member) in value.members() {
        let mut known = false;
        if let Some((_, schema)) = named.iter().find(|(has, _)| &**has == name) {
            known = true;
            if !schema.matches(member)? {
                return Ok(false);
            }
        }
        for (pattern, schema) in patterns {
            if pattern.is_match(name)? {
                known = true;
                if !schema.matches(member)? {
                    return Ok(false);
                }
            }
        }
        let passes = match others {
            _ if known => true,
            Others::Allowed => true,
            Others::Refused => false,
            Others::Like(schema) => schema.matches(member)?,
        };
        if !passes {
            return Ok(false);
        }
    }
    Ok(true)
}
