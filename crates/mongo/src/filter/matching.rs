//! Whether a document meets a condition, and a value a test.

use std::cmp::Ordering;

use crate::context::Context;
use crate::error::Result;
use crate::filter::path::{Leaf, walk};
use crate::filter::{Condition, Test};
use crate::order::{self, Collation};
use crate::value::{Bson, Kind};
use crate::value_ref::ValueRef;

pub struct Matching<'c> {
    pub context: &'c Context,
    pub collation: Option<&'c Collation>,
}

impl Matching<'_> {
    /// `element` is set where an array was gone through on the way to a match.
    pub fn condition(
        &self,
        condition: &Condition,
        document: ValueRef<'_>,
        element: &mut Option<usize>,
    ) -> Result<bool> {
        match condition {
            Condition::Always(value) => Ok(*value),
            Condition::And(conditions) => {
                for condition in conditions {
                    if !self.condition(condition, document, element)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Condition::Or(conditions) => self.any(conditions, document),
            Condition::Nor(conditions) => Ok(!self.any(conditions, document)?),
            Condition::Field { path, test } => self.field(document, path, test, element),
            Condition::Expr(expression) => {
                let value = expression.evaluate(document, self.context)?;
                Ok(value.is_some_and(|value| value.is_truthy()))
            }
            Condition::Schema(schema) => schema.matches(document),
            Condition::Text(query) => Ok(query.matches(document)),
            Condition::Sample(share) => {
                let random = ((self.context.random)() >> 11) as f64 / (1u64 << 53) as f64;
                Ok(random < *share)
            }
        }
    }

    fn any(&self, conditions: &[Condition], document: ValueRef<'_>) -> Result<bool> {
        for condition in conditions {
            if self.condition(condition, document, &mut None)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn field(
        &self,
        document: ValueRef<'_>,
        path: &str,
        test: &Test,
        element: &mut Option<usize>,
    ) -> Result<bool> {
        let leaf = match test {
            Test::NotEqual(value) => {
                return Ok(!self.reached(document, path, Leaf::Elements, &mut None, |found| {
                    Ok(self.compares(found, value, Ordering::is_eq))
                })?);
            }
            Test::NotIn(values) => {
                return Ok(!self.reached(document, path, Leaf::Elements, &mut None, |found| {
                    Ok(self.is_one_of(found, values))
                })?);
            }
            Test::Not(test) => return Ok(!self.field(document, path, test, &mut None)?),
            Test::Exists(wanted) => {
                let exists =
                    self.reached(document, path, Leaf::Whole, element, |found| Ok(found.is_some()))?;
                return Ok(exists == *wanted);
            }
            Test::All(tests) => {
                for test in tests {
                    if !self.field(document, path, test, element)? {
                        return Ok(false);
                    }
                }
                return Ok(true);
            }
            Test::Any(tests) => {
                for test in tests {
                    if self.field(document, path, test, element)? {
                        return Ok(true);
                    }
                }
                return Ok(false);
            }
            Test::ElementDocument(_) | Test::ElementValue(_) => {
                let mut inner = None;
                let matches = walk(document, path, Leaf::Whole, &mut |found, outer| {
                    let Some(at) = found.map_or(Ok(None), |found| self.element(test, found))? else {
                        return Ok(false);
                    };
                    inner = outer.or(Some(at));
                    Ok(true)
                })?;
                if matches {
                    *element = inner;
                }
                return Ok(matches);
            }
            Test::Size(_) => Leaf::Whole,
            _ => Leaf::Elements,
        };
        self.reached(document, path, leaf, element, |found| self.value(test, found))
    }

    /// Whether a path leads to a value that passes.
    fn reached<'a>(
        &self,
        document: ValueRef<'a>,
        path: &str,
        leaf: Leaf,
        element: &mut Option<usize>,
        mut passes: impl FnMut(Option<ValueRef<'a>>) -> Result<bool>,
    ) -> Result<bool> {
        walk(document, path, leaf, &mut |found, outer| {
            let passed = passes(found)?;
            if passed && outer.is_some() {
                *element = outer;
            }
            Ok(passed)
        })
    }

    /// Which element of an array a test of elements holds of.
    fn element(&self, test: &Test, array: ValueRef<'_>) -> Result<Option<usize>> {
        if array.kind() != Kind::Array {
            return Ok(None);
        }
        for (at, element) in array.elements().enumerate() {
            let passed = match test {
                Test::ElementDocument(condition) => match element.kind() {
                    Kind::Document => self.condition(condition, element, &mut None)?,
                    // An array counts as a document whose names are numbers.
                    Kind::Array => {
                        let numbered = numbered(element);
                        self.condition(condition, (&numbered).into(), &mut None)?
                    }
                    _ => false,
                },
                Test::ElementValue(tests) => {
                    let mut passed = true;
                    for test in tests {
                        passed = passed && self.value(test, Some(element))?;
                    }
                    passed
                }
                _ => false,
            };
            if passed {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// Whether one value passes, not looking into it where it is an array.
    pub fn value(&self, test: &Test, found: Option<ValueRef<'_>>) -> Result<bool> {
        Ok(match test {
            Test::Equal(value) => self.compares(found, value, Ordering::is_eq),
            Test::NotEqual(value) => !self.compares(found, value, Ordering::is_eq),
            Test::Less(value) => self.compares(found, value, Ordering::is_lt),
            Test::LessOrEqual(value) => self.compares(found, value, Ordering::is_le),
            Test::Greater(value) => self.compares(found, value, Ordering::is_gt),
            Test::GreaterOrEqual(value) => self.compares(found, value, Ordering::is_ge),
            Test::In(values) => self.is_one_of(found, values),
            Test::NotIn(values) => !self.is_one_of(found, values),
            Test::Exists(wanted) => found.is_some() == *wanted,
            Test::Not(test) => !self.value(test, found)?,
            Test::All(tests) => {
                for test in tests {
                    if !self.value(test, found)? {
                        return Ok(false);
                    }
                }
                true
            }
            Test::Any(tests) => {
                for test in tests {
                    if self.value(test, found)? {
                        return Ok(true);
                    }
                }
                false
            }
            Test::Kinds(kinds) => found.is_some_and(|value| kinds.contains(value.kind())),
            Test::Mod { divisor, remainder } => {
                let whole = found.and_then(ValueRef::as_number).and_then(super::comparison::truncated);
                whole.is_some_and(|value| value.wrapping_rem(*divisor) == *remainder)
            }
            Test::Regex(pattern) => match found {
                Some(ValueRef::Owned(Bson::Regex(regex))) => {
                    regex.pattern == pattern.text && regex.options == pattern.options
                }
                Some(value) => match value.as_str() {
                    Some(text) => pattern.is_match(text)?,
                    None => matches!(
                        value.as_extended(),
                        Some(orrery_model::Extended::Regex { pattern: has, options })
                            if *has == *pattern.text && *options == *pattern.options
                    ),
                },
                None => false,
            },
            Test::Size(size) => found
                .is_some_and(|value| value.kind() == Kind::Array && i64::try_from(value.len()) == Ok(*size)),
            Test::ElementDocument(_) | Test::ElementValue(_) => match found {
                Some(value) => self.element(test, value)?.is_some(),
                None => false,
            },
            Test::Bits(bits) => found.is_some_and(|value| bits.matches(value)),
            Test::Within(region) => found.is_some_and(|value| region.holds(value)),
            Test::Intersects(shape) => found.is_some_and(|value| shape.touches(value)),
            Test::Near(near) => found.is_some_and(|value| near.reaches(value)),
        })
    }

    fn is_one_of(&self, found: Option<ValueRef<'_>>, values: &[Bson]) -> bool {
        match found {
            None => values.iter().any(|value| matches!(value, Bson::Null)),
            Some(found) => {
                values.binary_search_by(|value| order::compare(value.into(), found, self.collation)).is_ok()
            }
        }
    }

    /// A comparison within one type; nothing counts as null, and the keys below and above all compare with everything.
    fn compares(&self, found: Option<ValueRef<'_>>, value: &Bson, wanted: fn(Ordering) -> bool) -> bool {
        let kind = found.map_or(Kind::Undefined, ValueRef::kind);
        let is_null = |kind| matches!(kind, Kind::Null | Kind::Undefined);
        if is_null(kind) && is_null(value.kind()) {
            return wanted(Ordering::Equal);
        }
        let (rank, value_rank) = (order::rank(kind), order::rank(value.kind()));
        if rank != value_rank {
            return match value {
                Bson::MinKey => wanted(Ordering::Greater),
                Bson::MaxKey => wanted(Ordering::Less),
                _ => false,
            };
        }
        let Some(found) = found else { return false };
        if value.is_number()
            && let (Some(a), Some(b)) = (found.as_number(), ValueRef::Owned(value).as_number())
        {
            // NaN is equal to itself and neither below nor above any number.
            let (a_nan, b_nan) = (order::is_not_a_number(a), order::is_not_a_number(b));
            if a_nan || b_nan {
                return a_nan && b_nan && wanted(Ordering::Equal);
            }
            return wanted(a.compare(b));
        }
        wanted(order::compare(found, value.into(), self.collation))
    }
}

/// An array as a document whose names are numbers.
pub fn numbered(array: ValueRef<'_>) -> crate::value::Document {
    array.elements().enumerate().map(|(at, element)| (at.to_string().into(), element.to_bson())).collect()
}
