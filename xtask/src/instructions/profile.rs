//! What callgrind writes, as far as it is needed: how many instructions each function took by itself.

use std::collections::{BTreeMap, HashMap};

use anyhow::{Context as _, Result};

/// What belongs to no crate of ours: the C library, the allocator, dependencies.
const LIBRARIES: &str = "libraries";

pub struct Profile {
    functions: HashMap<String, u64>,
}

impl Profile {
    /// The format is described in Valgrind's manual. Lines of costs follow the function that they belong to; the one
    /// after `calls=` is that of the called function, with everything that it called.
    pub fn parse(text: &str) -> Result<Profile> {
        let mut names: HashMap<&str, &str> = HashMap::new();
        let mut functions: HashMap<String, u64> = HashMap::new();
        let mut current = "";
        let mut called = false;
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
                // `(7) name` at first, `(7)` from then on; called functions share the numbers.
                let (number, name) = rest.split_once(' ').unwrap_or((rest, ""));
                if !name.is_empty() {
                    names.insert(number, name);
                }
                if line.starts_with("fn=") {
                    current = names.get(number).copied().unwrap_or(number);
                }
            } else if line.starts_with("calls=") {
                called = true;
            } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
                let costs = !std::mem::take(&mut called);
                if costs && let Some(count) = line.split_whitespace().nth(1) {
                    let count: u64 = count.parse().with_context(|| format!("{line:?} of a profile"))?;
                    *functions.entry(current.to_owned()).or_default() += count;
                }
            }
        }
        Ok(Profile { functions })
    }

    pub fn all(&self) -> u64 {
        self.functions.values().sum()
    }

    /// The dearest crate first.
    pub fn by_crate(&self) -> Vec<(String, u64)> {
        let mut crates: BTreeMap<String, u64> = BTreeMap::new();
        for (function, count) in &self.functions {
            *crates.entry(crate_of(function).to_owned()).or_default() += count;
        }
        let mut crates: Vec<_> = crates.into_iter().collect();
        crates.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        crates
    }

    pub fn top(&self, count: usize) -> Vec<(&str, u64)> {
        let mut functions: Vec<_> =
            self.functions.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        functions.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
        functions.truncate(count);
        functions
    }
}

/// `engine` of `<orrery_engine::Item as core::clone::Clone>::clone`.
fn crate_of(function: &str) -> &str {
    let Some((_, rest)) = function.split_once("orrery_") else {
        return if function.starts_with("orrery::") { "cli" } else { LIBRARIES };
    };
    rest.split(|sign: char| !sign.is_ascii_lowercase() && sign != '_').next().unwrap_or(LIBRARIES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_counts_what_functions_do_by_themselves() {
        let text = "version: 1\nevents: Ir\n\nfn=(1) orrery_engine::read\n0 100\ncfn=(2) memcpy\ncalls=3 0\n0 900\n0 5\n\n\
                    fn=(2)\n0 900\nfn=(3) <orrery_api_nosql::Answer as core::fmt::Debug>::fmt\n0 7\n\ntotals: 1012\n";
        let profile = Profile::parse(text).unwrap();
        assert_eq!(profile.all(), 1012);
        let crates: Vec<_> = profile.by_crate();
        let crates: Vec<(&str, u64)> = crates.iter().map(|(name, count)| (name.as_str(), *count)).collect();
        assert_eq!(crates, [("libraries", 900), ("engine", 105), ("api_nosql", 7)]);
        assert_eq!(profile.top(1), [("memcpy", 900)]);
    }
}
