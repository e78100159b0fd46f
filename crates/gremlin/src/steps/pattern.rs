//! `match()`: patterns that share variables, solved one after another.
//!
//! A pattern begins at a variable (`as('a')`) and may end at one. The one whose variables are known goes first; what a
//! pattern finds is bound, and the rest is solved for every binding.

use std::sync::Arc;

use super::*;
use crate::bytecode::{Bytecode, Instruction};
use crate::compare::equal;
use crate::traverser::Traverser;
use crate::value::Map;

struct Pattern {
    start: Option<Arc<str>>,
    end: Option<Arc<str>>,
    child: Child,
    /// Variables that must be known because the pattern only checks.
    needs: Vec<Arc<str>>,
    checks: bool,
}

pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let mut patterns = Vec::new();
    for argument in call.args {
        let Value::Traversal(nested) = argument else { return Err(call.wrong()) };
        collect(builder, nested, &mut patterns)?;
    }
    let ends: Vec<&Arc<str>> = patterns.iter().filter_map(|pattern| pattern.end.as_ref()).collect();
    // What no pattern ends at is where the traverser stands.
    let start = patterns
        .iter()
        .filter_map(|pattern| pattern.start.as_ref())
        .find(|start| !ends.contains(start))
        .or_else(|| patterns.iter().find_map(|pattern| pattern.start.as_ref()))
        .cloned();
    let mut patterns = patterns;
    Ok(Each::op(Parts::default(), move |cx, _, traverser, out| {
        let mut bindings = Map::new();
        // Labels that were given before are bound already.
        for pattern in &patterns {
            let checked = pattern.needs.iter().filter(|_| pattern.checks);
            for label in pattern.start.iter().chain(&pattern.end).chain(checked) {
                if let Some(value) = traverser.labelled(label, crate::value::Pop::Last) {
                    bindings.insert(Value::String(label.clone()), value);
                }
            }
        }
        if let Some(start) = &start {
            bindings.entry(Value::String(start.clone())).or_insert_with(|| traverser.value.clone());
        }
        let mut open: Vec<usize> = (0..patterns.len()).collect();
        let mut solutions = Vec::new();
        solve(cx, &mut patterns, &mut open, &traverser, &bindings, &mut solutions)?;
        for (bindings, bulk) in solutions {
            let mut next = traverser.clone();
            if cx.mode >= crate::traverser::PathMode::Labelled {
                for (label, value) in &bindings {
                    if let Value::String(label) = label
                        && next.labelled(label, crate::value::Pop::Last).as_ref() != Some(value)
                    {
                        if equal(&next.value, value) && next.on_path {
                            next.label(std::slice::from_ref(label), cx.mode);
                        } else {
                            next.value = value.clone();
                            next.extend_path([label.clone()].into_iter().collect());
                        }
                    }
                }
            }
            next.value = Value::Map(Arc::new(bindings));
            next.on_path = false;
            next.bulk = next.bulk.saturating_mul(bulk);
            if cx.mode == crate::traverser::PathMode::Full {
                next.extend_path(Default::default());
            }
            out.push(next);
        }
        Ok(())
    }))
}

fn collect(builder: &mut Builder<'_>, nested: &Bytecode, patterns: &mut Vec<Pattern>) -> Result<()> {
    let steps = &nested.steps;
    // and(...) of patterns is the patterns; or(...), not(...) and where(...) check what is known.
    if let [only] = steps.as_slice()
        && &*only.name == "and"
    {
        for argument in &only.arguments {
            if let Value::Traversal(inner) = argument {
                collect(builder, inner, patterns)?;
            }
        }
        return Ok(());
    }
    let first_label = |steps: &[Instruction]| match steps.first() {
        Some(step) if &*step.name == "as" => match step.arguments.first() {
            Some(Value::String(label)) => Some(label.clone()),
            _ => None,
        },
        _ => None,
    };
    match first_label(steps) {
        Some(start) => {
            let end = match steps.last() {
                Some(step) if steps.len() > 1 && &*step.name == "as" => match step.arguments.first() {
                    Some(Value::String(label)) => Some(label.clone()),
                    _ => None,
                },
                _ => None,
            };
            let inner = &steps[1..steps.len() - usize::from(end.is_some())];
            let mut needs = Vec::new();
            for step in inner {
                labels_asked(step, &mut needs);
            }
            let child = builder.nested(inner)?;
            patterns.push(Pattern { start: Some(start), end, child, needs, checks: false });
        }
        None => {
            let mut needs = Vec::new();
            for step in steps {
                labels_asked(step, &mut needs);
            }
            let child = builder.nested(&super::filter::variables(steps))?;
            patterns.push(Pattern { start: None, end: None, child, needs, checks: true });
        }
    }
    Ok(())
}

/// Labels that a where() and the like inside of a pattern look at.
fn labels_asked(step: &Instruction, needs: &mut Vec<Arc<str>>) {
    for argument in &step.arguments {
        match argument {
            Value::Traversal(nested) => {
                let connected = crate::build::connected_variables(&nested.steps);
                let steps = connected.as_deref().unwrap_or(&nested.steps);
                if matches!(&*step.name, "where" | "not" | "or" | "and" | "filter") {
                    for end in [steps.first(), steps.last()].into_iter().flatten() {
                        if let ("as", Some(Value::String(label))) = (&*end.name, end.arguments.first()) {
                            needs.push(label.clone());
                        }
                    }
                }
                for inner in steps {
                    labels_asked(inner, needs);
                }
            }
            Value::P(p) if &*step.name == "where" => {
                let _ = p.resolve(&mut |value| {
                    if let Value::String(label) = value {
                        needs.push(label.clone());
                    }
                    Ok(Some(value.clone()))
                });
            }
            Value::String(label) if matches!(&*step.name, "where" | "select") => needs.push(label.clone()),
            _ => {}
        }
    }
}

fn solve(
    cx: &mut Cx<'_>,
    patterns: &mut [Pattern],
    open: &mut Vec<usize>,
    traverser: &Traverser,
    bindings: &Map,
    solutions: &mut Vec<(Map, u64)>,
) -> Result<()> {
    if open.is_empty() {
        solutions.push((bindings.clone(), 1));
        return Ok(());
    }
    cx.options.budget.step(1)?;
    let known = |label: &Arc<str>| bindings.contains_key(&Value::String(label.clone()));
    let ready = |pattern: &Pattern| {
        pattern.start.as_ref().is_none_or(&known)
            && pattern
                .needs
                .iter()
                .all(|label| known(label) || pattern.start.is_some() && !is_variable(patterns, label))
    };
    let score = |index: &usize| {
        let pattern = &patterns[*index];
        (!ready(pattern), !pattern.checks && !pattern.end.as_ref().is_none_or(known))
    };
    let Some(at) = (0..open.len()).min_by_key(|at| score(&open[*at])) else { return Ok(()) };
    let chosen = open.remove(at);
    let pattern = &patterns[chosen];
    if !ready(pattern) && pattern.start.as_ref().is_some_and(|start| !known(start)) {
        open.insert(at, chosen);
        return Err(Error::runtime(
            "The provided match pattern is unsolvable: no pattern leads to its variables.",
        ));
    }
    let mut from = traverser.clone();
    from.bulk = 1;
    // Patterns see what is bound by its labels.
    for (label, value) in bindings {
        if let Value::String(label) = label
            && from.labelled(label, crate::value::Pop::Last).as_ref() != Some(value)
        {
            from.value = value.clone();
            from.extend_path([label.clone()].into_iter().collect());
        }
    }
    if let Some(start) = &pattern.start {
        from.value = bindings[&Value::String(start.clone())].clone();
        from.on_path = false;
    }
    let (end, checks) = (pattern.end.clone(), pattern.end.is_none());
    if checks {
        if patterns[chosen].child.test(cx, &from)? {
            solve(cx, patterns, open, traverser, bindings, solutions)?;
        }
    } else if let Some(end) = end {
        let end = Value::String(end);
        let found = patterns[chosen].child.all(cx, &from)?;
        for result in found {
            let mut bound = bindings.clone();
            match bindings.get(&end) {
                Some(value) if !equal(value, &result.value) => continue,
                Some(_) => {}
                None => {
                    bound.insert(end.clone(), result.value);
                }
            }
            let before = solutions.len();
            solve(cx, patterns, open, traverser, &bound, solutions)?;
            for (_, bulk) in &mut solutions[before..] {
                *bulk = bulk.saturating_mul(result.bulk);
            }
        }
    }
    open.insert(at, chosen);
    Ok(())
}

fn is_variable(patterns: &[Pattern], label: &Arc<str>) -> bool {
    patterns
        .iter()
        .any(|pattern| pattern.start.as_ref() == Some(label) || pattern.end.as_ref() == Some(label))
}
