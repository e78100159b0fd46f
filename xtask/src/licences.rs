//! Every dependency may be used: its licence is permissive, or it is not used.
//!
//! Licences come from `cargo metadata` as SPDX expressions: `MIT OR Apache-2.0` needs one side to be allowed,
//! `Apache-2.0 AND ISC` both. An exception after WITH only gives more rights, so `Apache-2.0 WITH LLVM-exception` is
//! judged as `Apache-2.0`. Older crates write a slash for OR.

use anyhow::{Result, bail};

use crate::Context;
use crate::layering::metadata;
use crate::steps::Outcome;

/// Licences that ask for no more than naming the authors.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unicode-DFS-2016",
    "Unlicense",
    "Zlib",
];

/// Crates under the Mozilla Public License, which binds only the files of the crate itself; we use them unchanged.
const UNCHANGED: &[(&str, &str)] =
    &[("bitmaps", "MPL-2.0+"), ("imbl", "MPL-2.0+"), ("imbl-sized-chunks", "MPL-2.0+")];

/// Nesting of parentheses that is still read; real expressions have two.
const DEPTH_MAX: usize = 16;

pub fn run(context: &Context) -> Result<Outcome> {
    let metadata = metadata(context)?;
    let packages = metadata["packages"].as_array().cloned().unwrap_or_default();
    let mut problems = Vec::new();
    for package in &packages {
        let name = format!("{} {}", text(&package["name"]), text(&package["version"]));
        match package["license"].as_str() {
            None => problems.push(format!("{name} names no licence")),
            Some(expression) if UNCHANGED.contains(&(text(&package["name"]), expression)) => {}
            Some(expression) => match is_allowed(expression) {
                Ok(true) => {}
                Ok(false) => problems.push(format!("{name} is under {expression}")),
                Err(error) => problems.push(format!("{name}: cannot read {expression:?}: {error}")),
            },
        }
    }
    if !problems.is_empty() {
        bail!("{} dependencies may not be used:\n  {}", problems.len(), problems.join("\n  "));
    }
    Ok(Outcome::Passed(format!("{} packages", packages.len())))
}

fn text(value: &serde_json::Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn is_allowed(expression: &str) -> Result<bool> {
    let spaced = expression.replace('(', " ( ").replace(')', " ) ").replace('/', " OR ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let allowed = read_or(&mut rest, DEPTH_MAX)?;
    match rest.first() {
        None => Ok(allowed),
        Some(word) => bail!("unexpected {word:?}"),
    }
}

/// `OR` binds weaker than `AND`, as in logic.
fn read_or(words: &mut &[&str], depth: usize) -> Result<bool> {
    let mut allowed = read_and(words, depth)?;
    while take(words, "OR") {
        allowed |= read_and(words, depth)?;
    }
    Ok(allowed)
}

fn read_and(words: &mut &[&str], depth: usize) -> Result<bool> {
    let mut allowed = read_one(words, depth)?;
    while take(words, "AND") {
        allowed &= read_one(words, depth)?;
    }
    Ok(allowed)
}

fn read_one(words: &mut &[&str], depth: usize) -> Result<bool> {
    if take(words, "(") {
        if depth == 0 {
            bail!("too many parentheses");
        }
        let allowed = read_or(words, depth - 1)?;
        if !take(words, ")") {
            bail!("a parenthesis is not closed");
        }
        return Ok(allowed);
    }
    let Some((licence, rest)) = words.split_first() else { bail!("a licence is missing") };
    if ["(", ")", "AND", "OR", "WITH"].contains(licence) {
        bail!("a licence is missing before {licence:?}");
    }
    *words = rest;
    if take(words, "WITH") {
        let Some((_exception, rest)) = words.split_first() else { bail!("an exception is missing") };
        *words = rest;
    }
    Ok(ALLOWED.contains(licence))
}

fn take(words: &mut &[&str], word: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if *first == word => {
            *words = rest;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_as_the_standard_says() {
        for (expression, expect) in [
            ("MIT", true),
            ("GPL-3.0-only", false),
            ("MIT OR GPL-3.0-only", true),
            ("MIT AND GPL-3.0-only", false),
            ("GPL-2.0-only AND MIT OR ISC", true),
            ("GPL-2.0-only AND (MIT OR ISC)", false),
            ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
            ("Apache-2.0 WITH LLVM-exception", true),
            ("Unlicense/MIT", true),
        ] {
            assert_eq!(is_allowed(expression).unwrap(), expect, "{expression}");
        }
    }

    #[test]
    fn an_expression_that_makes_no_sense_is_an_error() {
        for expression in ["", "MIT OR", "(MIT", "MIT ISC", "MIT WITH", ")"] {
            assert!(is_allowed(expression).is_err(), "{expression:?}");
        }
        assert!(is_allowed(&"(".repeat(100)).is_err());
    }
}
