//! Window functions of `$setWindowFields`: every accumulator over a window, and functions of windows alone.
//!
//! A function is given all documents of a partition in the order of the stage's `sortBy`, and makes one value for each.

mod bounds;
mod change;
mod fill;
mod moving;
mod rank;

use bounds::Bounds;

use super::state::Covariance;
use super::{AccumulatorDoc, AccumulatorSpec};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::expression::Expression;
use crate::expression::number;
use crate::expression::value::{show, type_name};
use crate::sort::Sort;
use crate::value::{Bson, Document, Kind};
use crate::value_ref::ValueRef;

const fn doc(name: &'static str, usage: &'static str, about: &'static str) -> AccumulatorDoc {
    AccumulatorDoc { name, usage, about }
}

/// Functions of windows that are no accumulators, in the order of their names.
pub static WINDOW_FUNCTIONS: &[AccumulatorDoc] = &[
    doc("$covariancePop", "{$covariancePop: [x, y], window}", "How two quantities vary together."),
    doc("$covarianceSamp", "{$covarianceSamp: [x, y], window}", "The same, of a sample."),
    doc("$denseRank", "{$denseRank: {}}", "The rank; ranks after equal ones are not left out."),
    doc(
        "$derivative",
        "{$derivative: {input, unit}, window}",
        "How fast a quantity changes over the window.",
    ),
    doc("$documentNumber", "{$documentNumber: {}}", "The number of the document, from 1 on."),
    doc(
        "$expMovingAvg",
        "{$expMovingAvg: {input, N | alpha}}",
        "A mean in which older values weigh less and less.",
    ),
    doc("$integral", "{$integral: {input, unit}, window}", "The area below a curve."),
    doc("$linearFill", "{$linearFill: expression}", "Null and missing values filled in along a line."),
    doc("$locf", "{$locf: expression}", "Null and missing values filled in by the last one before."),
    doc("$rank", "{$rank: {}}", "The rank by the order of the stage; equal documents have one rank."),
    doc("$shift", "{$shift: {output, by, default}}", "The value of a document some places away."),
];

/// One field of `output`: `{$sum: "$x", window: {documents: ["unbounded", "current"]}}`.
#[derive(Clone, Debug)]
pub struct WindowFunction {
    function: Function,
    /// The one field of `sortBy`, where it has exactly one.
    sort: Option<Sort>,
    bounds: Bounds,
}

#[derive(Clone, Debug)]
enum Function {
    Accumulator(AccumulatorSpec),
    Covariance { x: Expression, y: Expression, sample: bool },
    Rank { dense: bool },
    Number,
    Shift { output: Expression, by: i64, default: Bson },
    Derivative { input: Expression, unit_ms: Option<f64> },
    Integral { input: Expression, unit_ms: Option<f64> },
    MovingMean { input: Expression, alpha: f64, exact: Option<orrery_model::Decimal128> },
    LinearFill(Expression),
    LastSeen(Expression),
}

impl WindowFunction {
    /// `sort_by` is that of the stage.
    pub fn parse(
        specification: &Bson,
        sort_by: Option<&Document>,
        context: &Context,
    ) -> Result<WindowFunction> {
        let Some(members) = specification.as_document() else {
            let text = format!(
                "The field in the window function specification must be an object, found {}",
                type_name(Some(specification))
            );
            return Err(Error::failed_to_parse(text));
        };
        let mut named = None;
        let mut window = None;
        for (name, value) in members.iter() {
            match &**name {
                "window" => window = Some(value),
                name if name.starts_with('$') && named.is_none() => named = Some((name, value)),
                name if name.starts_with('$') => {
                    return Err(Error::failed_to_parse(
                        "Cannot specify two functions in one window function spec",
                    ));
                }
                name => {
                    let text = format!("Window function found an unknown argument: {name}");
                    return Err(Error::failed_to_parse(text));
                }
            }
        }
        let Some((name, argument)) = named else {
            return Err(Error::failed_to_parse("Expected a $-prefixed window function"));
        };
        let keys = sort_by.map_or(0, Document::len);
        let sort = sort_by.filter(|keys| !keys.is_empty()).map(Sort::parse).transpose()?;
        let function = parse_function(name, argument, keys, window.is_some(), context)?;
        let bounds = Bounds::parse(window, keys)?;
        Ok(WindowFunction { function, sort, bounds })
    }

    /// One value for each document of a partition, which is in the order of `sort_by`. `None`: the field stays away.
    pub fn compute(&self, partition: &[ValueRef<'_>], context: &Context) -> Result<Vec<Option<Bson>>> {
        context.budget.step(partition.len() as u64)?;
        let evaluate = |expression: &Expression| -> Result<Vec<Option<Bson>>> {
            partition.iter().map(|document| expression.evaluate(*document, context)).collect()
        };
        match &self.function {
            Function::Accumulator(specification) => self.accumulate(specification, partition, context),
            Function::Covariance { x, y, sample } => {
                let (x, y) = (evaluate(x)?, evaluate(y)?);
                self.over_windows(partition, context, |low, high| {
                    let mut covariance = Covariance::default();
                    for at in low..high {
                        let pair = (x[at].as_ref().and_then(number::of), y[at].as_ref().and_then(number::of));
                        if let (Some(x), Some(y)) = pair {
                            covariance.add(x.to_f64(), y.to_f64());
                        }
                    }
                    Ok(Some(covariance.finish(*sample)))
                })
            }
            Function::Rank { dense } => Ok(rank::ranks(partition, self.sort.as_ref(), *dense, context)),
            Function::Number => {
                Ok((1..=partition.len() as i64).map(|n| Some(number::int_or_long(n))).collect())
            }
            Function::Shift { output, by, default } => {
                let outputs = evaluate(output)?;
                let place = |at: usize| usize::try_from(i64::try_from(at).ok()?.checked_add(*by)?).ok();
                Ok((0..outputs.len())
                    .map(|at| match place(at).and_then(|place| outputs.get(place)) {
                        Some(value) => Some(value.clone().unwrap_or(Bson::Null)),
                        None => Some(default.clone()),
                    })
                    .collect())
            }
            Function::Derivative { input, unit_ms } => {
                self.windows(partition)?;
                let curve = change::Curve::read(
                    &evaluate(input)?,
                    &self.sort_values(partition),
                    *unit_ms,
                    "$derivative",
                )?;
                self.over_windows(partition, context, |low, high| Ok(Some(curve.slope(low, high))))
            }
            Function::Integral { input, unit_ms } => {
                let curve = change::Curve::read(
                    &evaluate(input)?,
                    &self.sort_values(partition),
                    *unit_ms,
                    "$integral",
                )?;
                self.over_windows(partition, context, |low, high| Ok(Some(curve.area(low, high))))
            }
            Function::MovingMean { input, alpha, exact } => {
                Ok(moving::means(&evaluate(input)?, *alpha, *exact))
            }
            Function::LinearFill(input) => fill::linear(&evaluate(input)?, &self.sort_values(partition)),
            Function::LastSeen(input) => Ok(fill::last_seen(evaluate(input)?)),
        }
    }

    /// The value of the one field that the stage sorts by, of each document.
    fn sort_values(&self, partition: &[ValueRef<'_>]) -> Vec<Option<Bson>> {
        let path = self.sort.as_ref().and_then(|sort| sort.keys.first());
        let path = path.and_then(|key| crate::expression::FieldPath::parse(&key.path).ok());
        partition
            .iter()
            .map(|document| path.as_ref().and_then(|path| path.read(*document).ok()?.into_bson()))
            .collect()
    }

    fn windows(&self, partition: &[ValueRef<'_>]) -> Result<Vec<(usize, usize)>> {
        let descending =
            self.sort.as_ref().is_some_and(|sort| sort.keys.first().is_some_and(|key| key.descending));
        match &self.bounds {
            Bounds::Documents { .. } => Ok(self.bounds.of_documents(partition.len())),
            Bounds::Range { .. } => self.bounds.of_range(&self.sort_values(partition), descending),
        }
    }

    fn over_windows(
        &self,
        partition: &[ValueRef<'_>],
        context: &Context,
        compute: impl Fn(usize, usize) -> Result<Option<Bson>>,
    ) -> Result<Vec<Option<Bson>>> {
        let windows = self.windows(partition)?;
        let mut last: Option<((usize, usize), Option<Bson>)> = None;
        windows
            .into_iter()
            .map(|(low, high)| {
                if let Some((bounds, value)) = &last
                    && *bounds == (low, high)
                {
                    return Ok(value.clone());
                }
                context.budget.step((high - low) as u64)?;
                let value = compute(low, high)?;
                last = Some(((low, high), value.clone()));
                Ok(value)
            })
            .collect()
    }

    /// Slides an accumulator along: what comes in is added, what goes out is taken away where that can be done.
    fn accumulate(
        &self,
        specification: &AccumulatorSpec,
        partition: &[ValueRef<'_>],
        context: &Context,
    ) -> Result<Vec<Option<Bson>>> {
        let nothing = Document::new();
        let start = || specification.start(ValueRef::OwnedDocument(&nothing), context);
        let inputs: Result<Vec<_>> =
            partition.iter().map(|document| specification.read(*document, context)).collect();
        let inputs = inputs?;
        let mut accumulator = start()?;
        // The inputs of all documents, the accumulator, and results that are no plain values.
        let inputs_bytes = inputs.iter().map(super::Input::size_bytes).sum::<usize>();
        let mut results_bytes = 0;
        let mut held = context.budget.hold(inputs_bytes)?;
        let (mut from, mut to) = (0, 0);
        let mut results: Vec<Option<Bson>> = Vec::with_capacity(partition.len());
        for (low, high) in self.windows(partition)? {
            let unchanged = !results.is_empty() && (low, high) == (from, to);
            if !unchanged {
                let mut anew = low < from || high < to || low >= to || low >= high;
                if !anew && from < low {
                    anew = !inputs[from..low].iter().all(|input| accumulator.remove_oldest(input));
                }
                if anew {
                    accumulator = start()?;
                    to = low;
                }
                context.budget.step((high - to.min(high)) as u64)?;
                for input in inputs.get(to..high).unwrap_or_default() {
                    accumulator.take(input.clone(), context)?;
                }
                held.resize(inputs_bytes + accumulator.size_bytes() + results_bytes)?;
                (from, to) = (low, high.max(low));
            }
            let result = match results.last() {
                Some(last) if unchanged => last.clone(),
                _ => {
                    let result = accumulator.finish(context)?;
                    results_bytes += crate::expression::size::held_bytes(&result);
                    Some(result)
                }
            };
            results.push(result);
        }
        Ok(results)
    }
}

fn parse_function(
    name: &str,
    argument: &Bson,
    keys: usize,
    has_window: bool,
    context: &Context,
) -> Result<Function> {
    let parse = |value: &Bson| Expression::parse(value, context);
    let no_window = || match has_window {
        true => Err(Error::failed_to_parse(format!("'window' field is not allowed in {name}"))),
        false => Ok(()),
    };
    let sorted = |code: i32| match keys {
        1 => Ok(()),
        _ => {
            let text = format!(
                "{name} must be specified with a top level sortBy expression with exactly one element"
            );
            Err(Error::new(code, text))
        }
    };
    Ok(match name {
        "$rank" | "$denseRank" | "$documentNumber" => {
            if has_window {
                return Err(Error::new(5_371_601, "Rank style window functions take no other arguments"));
            }
            if !argument.as_document().is_some_and(Document::is_empty) {
                return Err(Error::new(
                    5_371_603,
                    format!("{name} must be specified with '{{}}' as the value"),
                ));
            }
            match name {
                "$documentNumber" if keys > 0 => Function::Number,
                "$documentNumber" => {
                    return Err(sorted(5_371_602).err().unwrap_or_else(|| Error::bad_value(name.to_owned())));
                }
                _ => {
                    sorted(5_371_602)?;
                    Function::Rank { dense: name == "$denseRank" }
                }
            }
        }
        "$shift" => {
            no_window()?;
            parse_shift(argument, keys, context)?
        }
        "$expMovingAvg" => {
            no_window()?;
            parse_moving_mean(argument, keys, context)?
        }
        "$linearFill" => {
            no_window()?;
            sorted(605_001)?;
            Function::LinearFill(parse(argument)?)
        }
        "$locf" => {
            no_window()?;
            Function::LastSeen(parse(argument)?)
        }
        "$covariancePop" | "$covarianceSamp" => {
            let Some([x, y]) = argument.as_array() else {
                let text =
                    format!("{name} takes an array of two expressions, found {}", show(Some(argument)));
                return Err(Error::new(16_020, text));
            };
            Function::Covariance { x: parse(x)?, y: parse(y)?, sample: name == "$covarianceSamp" }
        }
        "$derivative" | "$integral" => {
            if keys != 1 {
                return Err(Error::failed_to_parse(format!("{name} requires a sortBy of one field")));
            }
            if name == "$derivative" && !has_window {
                return Err(Error::failed_to_parse("$derivative requires explicit window bounds"));
            }
            let (input, unit_ms) = change::parse(name, argument, context)?;
            if name == "$derivative" {
                Function::Derivative { input, unit_ms }
            } else {
                Function::Integral { input, unit_ms }
            }
        }
        name if AccumulatorSpec::is_known(name) => {
            Function::Accumulator(AccumulatorSpec::parse(name, argument, context)?)
        }
        name => return Err(Error::failed_to_parse(format!("Unrecognized window function, {name}"))),
    })
}

fn parse_shift(argument: &Bson, keys: usize, context: &Context) -> Result<Function> {
    if keys == 0 {
        return Err(Error::failed_to_parse("'$shift' requires a sortBy"));
    }
    let Some(members) = argument.as_document() else {
        let text = format!("Argument to $shift must be an object, but got {}", type_name(Some(argument)));
        return Err(Error::failed_to_parse(text));
    };
    if let Some((unknown, _)) =
        members.iter().find(|(has, _)| !["output", "by", "default"].contains(&&***has))
    {
        return Err(Error::failed_to_parse(format!("Unknown argument in $shift: {unknown}")));
    }
    let Some(output) = members.get("output") else {
        return Err(Error::failed_to_parse("$shift requires an 'output' expression."));
    };
    let Some(by) = members.get("by").and_then(number::of).and_then(number::NumberRef::to_i32) else {
        return Err(Error::failed_to_parse("$shift requires 'by' as an integer value."));
    };
    let default = match members.get("default") {
        None => Bson::Null,
        Some(default) => match Expression::parse(default, context)?.as_constant() {
            Some(value) => value.cloned().unwrap_or(Bson::Null),
            None => {
                return Err(Error::failed_to_parse(
                    "'$shift:default' expression must yield a constant value.",
                ));
            }
        },
    };
    Ok(Function::Shift { output: Expression::parse(output, context)?, by: by.into(), default })
}

fn parse_moving_mean(argument: &Bson, keys: usize, context: &Context) -> Result<Function> {
    let wrong = |text: &str| Err(Error::failed_to_parse(text.to_owned()));
    let Some(members) = argument.as_document() else {
        return wrong("$expMovingAvg must have exactly two arguments");
    };
    if keys == 0 {
        return wrong("$expMovingAvg requires an explicit 'sortBy'");
    }
    let Some(input) = members.get("input").filter(|_| members.len() == 2) else {
        return wrong(
            "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field",
        );
    };
    let input = Expression::parse(input, context)?;
    match (members.get("N"), members.get("alpha")) {
        (Some(n), None) => match number::of(n)
            .filter(|_| n.kind() != Kind::Double || n.as_i64().is_some())
            .and_then(number::NumberRef::to_i64)
        {
            Some(n) if n > 0 => {
                let exact = crate::decimal::divide(crate::decimal::of_i64(2), crate::decimal::of_i64(n + 1));
                Ok(Function::MovingMean { input, alpha: 2.0 / (n as f64 + 1.0), exact: Some(exact) })
            }
            Some(n) => {
                Err(Error::failed_to_parse(format!("'N' field must be greater than 0, but found {n}")))
            }
            None => {
                Err(Error::failed_to_parse("'N' field must be an integer, but found a fraction or no number"))
            }
        },
        (None, Some(alpha)) => match number::of(alpha).map(number::NumberRef::to_f64) {
            Some(value) if value > 0.0 && value < 1.0 => {
                let exact = number::of(alpha).map(number::NumberRef::to_decimal);
                Ok(Function::MovingMean { input, alpha: value, exact })
            }
            _ => wrong("'alpha' must be between 0 and 1 (exclusive)"),
        },
        _ => wrong("Got unrecognized field in $expMovingAvg, it must have either 'N' or 'alpha'"),
    }
}
