//! The accumulators by name, and how their arguments are read.

use super::{Input, percentile};
use crate::context::Context;
use crate::error::{Error, Result, code};
use crate::expression::Expression;
use crate::expression::array::several;
use crate::expression::value::show;
use crate::sort::Sort;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// One accumulator, for documentation.
pub struct AccumulatorDoc {
    pub name: &'static str,
    pub usage: &'static str,
    pub about: &'static str,
}

const fn doc(name: &'static str, usage: &'static str, about: &'static str) -> AccumulatorDoc {
    AccumulatorDoc { name, usage, about }
}

/// All accumulators, in the order of their names.
pub static ACCUMULATORS: &[AccumulatorDoc] = &[
    doc("$addToSet", "{$addToSet: expression}", "The values, each once."),
    doc("$avg", "{$avg: expression}", "The mean of the numbers."),
    doc("$bottom", "{$bottom: {sortBy, output}}", "The output of the last document in an order."),
    doc("$bottomN", "{$bottomN: {n, sortBy, output}}", "The outputs of the last documents in an order."),
    doc("$concatArrays", "{$concatArrays: expression}", "All arrays one after the other."),
    doc("$count", "{$count: {}}", "How many documents there are."),
    doc("$first", "{$first: expression}", "The value of the first document."),
    doc("$firstN", "{$firstN: {n, input}}", "The values of the first documents."),
    doc("$last", "{$last: expression}", "The value of the last document."),
    doc("$lastN", "{$lastN: {n, input}}", "The values of the last documents."),
    doc("$max", "{$max: expression}", "The greatest value."),
    doc("$maxN", "{$maxN: {n, input}}", "The greatest values, the greatest first."),
    doc("$median", "{$median: {input, method}}", "The value in the middle."),
    doc("$mergeObjects", "{$mergeObjects: expression}", "One document of all members; later ones win."),
    doc("$min", "{$min: expression}", "The least value."),
    doc("$minN", "{$minN: {n, input}}", "The least values, the least first."),
    doc("$percentile", "{$percentile: {input, p, method}}", "Values below which parts of all lie."),
    doc("$push", "{$push: expression}", "All values."),
    doc("$setUnion", "{$setUnion: expression}", "The elements of all arrays, each once."),
    doc("$stdDevPop", "{$stdDevPop: expression}", "The standard deviation of all values."),
    doc("$stdDevSamp", "{$stdDevSamp: expression}", "The standard deviation of a sample."),
    doc("$sum", "{$sum: expression}", "The sum of the numbers."),
    doc("$top", "{$top: {sortBy, output}}", "The output of the first document in an order."),
    doc("$topN", "{$topN: {n, sortBy, output}}", "The outputs of the first documents in an order."),
];

#[derive(Debug)]
pub(super) struct Specification {
    pub name: &'static str,
    pub input: Expression,
    /// How many values are wanted.
    pub n: Option<Expression>,
    pub sort: Option<Sort>,
    /// `p` of `$percentile`.
    pub parts: Option<Expression>,
}

impl Specification {
    pub fn parse(name: &str, argument: &Bson, context: &Context) -> Result<Specification> {
        if name == "$accumulator" {
            let text = "$accumulator is not supported: server-side JavaScript is disabled";
            return Err(Error::new(code::COMMAND_NOT_SUPPORTED, text));
        }
        let Some(known) = ACCUMULATORS.iter().find(|known| known.name == name) else {
            return Err(Error::new(15952, format!("unknown group operator '{name}'")));
        };
        let name = known.name;
        let of = |input: Expression| Specification { name, input, n: None, sort: None, parts: None };
        let parse = |value: &Bson| Expression::parse(value, context);
        match name {
            "$count" => match argument {
                Bson::Document(members) if members.is_empty() => {
                    Ok(of(Expression::constant(Some(Bson::Int32(1)))))
                }
                _ => Err(Error::type_mismatch("$count takes no arguments, i.e. $count:{}")),
            },
            "$firstN" | "$lastN" | "$minN" | "$maxN" => {
                let (_, input, n) = several::members(name, argument)?;
                let n = parse(n)?;
                check_count(name, &n)?;
                Ok(Specification { n: Some(n), ..of(parse(input)?) })
            }
            "$top" | "$bottom" | "$topN" | "$bottomN" => top(name, argument, context),
            "$median" | "$percentile" => {
                let members = percentile::check(name, argument)?;
                let parts = members.get("p").map(parse).transpose()?;
                if let Some(Some(constant)) = parts.as_ref().map(Expression::as_constant) {
                    percentile::wanted(constant)?;
                }
                let input = members.get("input").map_or_else(|| Ok(Expression::constant(None)), parse)?;
                Ok(Specification { parts, ..of(input) })
            }
            _ => {
                if argument.as_array().is_some() {
                    return Err(Error::new(40237, format!("The {name} accumulator is a unary operator")));
                }
                Ok(of(parse(argument)?))
            }
        }
    }

    /// How many values are wanted, which may depend on the group.
    pub fn count(&self, group: ValueRef<'_>, context: &Context) -> Result<usize> {
        let Some(n) = &self.n else { return Ok(1) };
        several::count(self.name, evaluate_for(n, group, context)?.as_ref())
    }

    pub fn parts(&self, group: ValueRef<'_>, context: &Context) -> Result<Vec<f64>> {
        let Some(parts) = &self.parts else { return Ok(vec![0.5]) };
        percentile::wanted(evaluate_for(parts, group, context)?.as_ref())
    }

    pub fn read(&self, document: ValueRef<'_>, context: &Context) -> Result<Input> {
        let key = self.sort.as_ref().map_or_else(Vec::new, |sort| sort.key_of(document, context));
        Ok(Input { value: self.input.evaluate(document, context)?, key })
    }
}

fn evaluate_for(expression: &Expression, group: ValueRef<'_>, context: &Context) -> Result<Option<Bson>> {
    let nothing = Document::new();
    match group.kind() {
        crate::value::Kind::Document => expression.evaluate(group, context),
        _ => expression.evaluate(ValueRef::OwnedDocument(&nothing), context),
    }
}

/// Refuses a constant that cannot be a count at once.
fn check_count(name: &str, n: &Expression) -> Result<()> {
    match n.as_constant() {
        Some(constant) => several::count(name, constant).map(|_| ()),
        None => Ok(()),
    }
}

fn top(name: &'static str, argument: &Bson, context: &Context) -> Result<Specification> {
    let Some(members) = argument.as_document() else {
        let text = format!("specification must be an object; found {name}: {}", show(Some(argument)));
        return Err(Error::new(5_788_001, text));
    };
    let several_wanted = matches!(name, "$topN" | "$bottomN");
    let known: &[&str] = if several_wanted { &["n", "output", "sortBy"] } else { &["output", "sortBy"] };
    if let Some((unknown, _)) = members.iter().find(|(has, _)| !known.contains(&&***has)) {
        return Err(Error::new(5_788_002, format!("Unknown argument to {name} '{unknown}'")));
    }
    let missing = |member: &str, code: i32| {
        let text = format!("Missing value for '{member}' in {name}");
        Error::new(code, text)
    };
    let n = match members.get("n") {
        Some(n) => Some(Expression::parse(n, context)?),
        None if several_wanted => return Err(missing("n", 5_788_003)),
        None => None,
    };
    if let Some(n) = &n {
        check_count(name, n)?;
    }
    let output = members.get("output").ok_or_else(|| missing("output", 5_788_004))?;
    let by = members.get("sortBy").ok_or_else(|| missing("sortBy", 5_788_005))?;
    let Some(by) = by.as_document() else {
        let text = format!("expected 'sortBy' to already be an object in the arguments to {name}");
        return Err(Error::new(5_788_604, text));
    };
    let input = Expression::parse(output, context)?;
    Ok(Specification { name, input, n, sort: Some(Sort::parse(by)?), parts: None })
}
