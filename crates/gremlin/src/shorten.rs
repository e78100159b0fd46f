//! Hops over edges that nobody looks at become hops: `outE().inV()` is `out()`, `bothE().otherV()` is `both()`.
//!
//! Only where no path is asked for, because the edge would be on it.

use std::sync::Arc;

use crate::bytecode::{Bytecode, Instruction};
use crate::strategies::Settings;
use crate::traverser::PathMode;
use crate::value::Value;

pub(crate) fn shorten(settings: &Settings, bytecode: Bytecode) -> Bytecode {
    let shortened = Bytecode { source: bytecode.source.clone(), steps: steps(&bytecode.steps) };
    // otherV() asks for paths itself; if it is gone and nobody else does, the short form serves.
    if settings.path_mode(&shortened) == PathMode::Full { bytecode } else { shortened }
}

fn steps(all: &[Instruction]) -> Vec<Instruction> {
    let mut short: Vec<Instruction> = Vec::with_capacity(all.len());
    // The edge step that the steps since then only filtered.
    let mut edges: Option<usize> = None;
    for step in all {
        let mut step = step.clone();
        for argument in &mut step.arguments {
            if let Value::Traversal(nested) = argument {
                *argument =
                    Value::Traversal(Arc::new(Bytecode { source: vec![], steps: steps(&nested.steps) }));
            }
        }
        if let Some(at) = edges {
            let from = short[at].name.clone();
            let arrives = match (&*from, &*step.name) {
                ("outE", "inV" | "otherV") => Some(("out", "inV")),
                ("inE", "outV" | "otherV") => Some(("in", "outV")),
                ("bothE", "otherV") => Some(("both", "otherV")),
                _ => None,
            };
            if let Some((hop, end)) = arrives {
                if at + 1 == short.len() {
                    short[at].name = Arc::from(hop);
                } else {
                    step.name = Arc::from(end);
                    short.push(step);
                }
                edges = None;
                continue;
            }
        }
        match &*step.name {
            "outE" | "inE" | "bothE" => edges = Some(short.len()),
            "has" | "hasLabel" | "hasId" | "hasNot" | "filter" | "where" | "not" | "and" | "or" | "dedup"
            | "is" => {}
            _ => edges = None,
        }
        short.push(step);
    }
    short
}
