//! Arrows between crates point one way: `model <- {sql <- query, index, storage} <- engine <- api-* <- server <- cli`.
//!
//! The table below is the map of ARCHITECTURE.md as data. A crate that is not in it is an error, so that a new crate
//! is given its place by whoever adds it. Everything at and below `engine` is plain synchronous code: no path of
//! ordinary dependencies may lead from there to a runtime or to HTTP.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use anyhow::{Result, bail};
use serde_json::Value;

use crate::Context;
use crate::process::Task;
use crate::steps::Outcome;

/// A crate, whether it must stay synchronous, and the crates of ours that it may use.
struct CrateRule {
    name: &'static str,
    synchronous: bool,
    may_use: &'static [&'static str],
}

const MAP: &[CrateRule] = &[
    CrateRule { name: "orrery-budget", synchronous: true, may_use: &[] },
    CrateRule { name: "orrery-model", synchronous: true, may_use: &[] },
    CrateRule { name: "orrery-sql", synchronous: true, may_use: &["orrery-budget", "orrery-model"] },
    CrateRule {
        name: "orrery-query",
        synchronous: true,
        may_use: &["orrery-budget", "orrery-sql", "orrery-index", "orrery-model"],
    },
    CrateRule { name: "orrery-storage", synchronous: true, may_use: &["orrery-model"] },
    // A store below the engine that waits for networks, with a thread of its own that drives them. The engine knows
    // the seam alone.
    CrateRule { name: "orrery-cluster", synchronous: false, may_use: &["orrery-storage"] },
    CrateRule { name: "orrery-index", synchronous: true, may_use: &["orrery-model"] },
    CrateRule {
        name: "orrery-engine",
        synchronous: true,
        may_use: &[
            "orrery-budget",
            "orrery-query",
            "orrery-sql",
            "orrery-index",
            "orrery-storage",
            "orrery-model",
        ],
    },
    CrateRule { name: "orrery-gremlin", synchronous: true, may_use: &["orrery-budget"] },
    CrateRule { name: "orrery-mongo", synchronous: true, may_use: &["orrery-budget", "orrery-model"] },
    CrateRule { name: "orrery-script", synchronous: true, may_use: &["orrery-budget", "orrery-model"] },
    // Partition keys weighed against items and requests. Pure, so that commands and pages can use it alike.
    CrateRule { name: "orrery-advise", synchronous: true, may_use: &["orrery-sql", "orrery-budget"] },
    // What an api and the server are to each other. Knows neither the engine nor any protocol.
    CrateRule { name: "orrery-api", synchronous: false, may_use: &["orrery-budget"] },
    // A protocol translates for the engine. It never reaches around it to the store, nor over to another protocol.
    // Scripts are part of this one: what they see of items (links, rids, error texts) is its own.
    CrateRule {
        name: "orrery-api-nosql",
        synchronous: false,
        may_use: &[
            "orrery-advise",
            "orrery-api",
            "orrery-budget",
            "orrery-engine",
            "orrery-script",
            "orrery-query",
            "orrery-sql",
            "orrery-model",
        ],
    },
    CrateRule {
        name: "orrery-api-table",
        synchronous: false,
        may_use: &[
            "orrery-api",
            "orrery-budget",
            "orrery-engine",
            "orrery-query",
            "orrery-sql",
            "orrery-model",
        ],
    },
    CrateRule {
        name: "orrery-api-gremlin",
        synchronous: false,
        may_use: &[
            "orrery-api",
            "orrery-budget",
            "orrery-engine",
            "orrery-gremlin",
            "orrery-query",
            "orrery-sql",
            "orrery-model",
        ],
    },
    CrateRule {
        name: "orrery-api-mongo",
        synchronous: false,
        may_use: &[
            "orrery-api",
            "orrery-budget",
            "orrery-engine",
            "orrery-mongo",
            "orrery-query",
            "orrery-sql",
            "orrery-model",
        ],
    },
    CrateRule {
        name: "orrery-server",
        synchronous: false,
        may_use: &[
            "orrery-api",
            "orrery-api-gremlin",
            "orrery-api-mongo",
            "orrery-api-nosql",
            "orrery-api-table",
            "orrery-budget",
            "orrery-cluster",
            "orrery-engine",
            "orrery-portal",
            "orrery-storage",
            "orrery-model",
        ],
    },
    CrateRule {
        name: "orrery",
        synchronous: false,
        may_use: &[
            "orrery-advise",
            "orrery-server",
            "orrery-api-nosql",
            "orrery-engine",
            "orrery-storage",
            "orrery-model",
            "orrery-mongo",
        ],
    },
    // Files for browsers, and how they are served. They use the apis from outside, as every client does.
    CrateRule { name: "orrery-portal", synchronous: true, may_use: &[] },
    CrateRule { name: "orrery-testkit", synchronous: false, may_use: &["orrery-api"] },
    // Feeds what others decode with bytes of any kind. Nobody uses it.
    CrateRule {
        name: "orrery-fuzzing",
        synchronous: false,
        may_use: &[
            "orrery-api",
            "orrery-api-gremlin",
            "orrery-api-mongo",
            "orrery-api-nosql",
            "orrery-api-table",
            "orrery-budget",
            "orrery-engine",
            "orrery-model",
            "orrery-mongo",
            "orrery-query",
            "orrery-script",
            "orrery-sql",
            "orrery-storage",
        ],
    },
    // Its attacks talk to the server as tests do.
    CrateRule { name: "xtask", synchronous: false, may_use: &["orrery-testkit"] },
];

/// Used by tests alone, whichever crate they belong to, and by who says so in the map.
const TESTS_ONLY: &str = "orrery-testkit";

/// What synchronous code must not reach, however indirectly.
const RUNTIMES: &[&str] = &["tokio", "hyper", "hyper-util", "async-std", "smol", "axum", "tower"];

/// One package of `cargo metadata`, with what it depends on.
#[derive(Default)]
struct Package {
    name: String,
    ours: bool,
    /// (name of the package, whether only its tests use it)
    uses: Vec<(String, bool)>,
}

pub fn run(context: &Context) -> Result<Outcome> {
    let packages = read_packages(&metadata(context)?)?;
    let problems = find_problems(&packages, MAP);
    if !problems.is_empty() {
        bail!("{} arrows point the wrong way:\n  {}", problems.len(), problems.join("\n  "));
    }
    let ours = packages.values().filter(|package| package.ours).count();
    Ok(Outcome::Passed(format!("{ours} crates of ours among {}", packages.len())))
}

/// The output of `cargo metadata` for the whole workspace.
pub fn metadata(context: &Context) -> Result<Value> {
    // Lines about locks and downloads may stand around the JSON, which is one object on one line.
    let text = Task::cargo(context, &["metadata", "--quiet", "--format-version", "1"])
        .limit_seconds(300)
        .run_logged("metadata")?;
    let Some(object) = text.lines().find(|line| line.starts_with('{')) else {
        bail!("cargo metadata printed no JSON")
    };
    Ok(serde_json::from_str(object)?)
}

fn read_packages(metadata: &Value) -> Result<BTreeMap<String, Package>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let ours: BTreeSet<String> = list(&metadata["workspace_members"]).iter().map(text).collect();
    let names: BTreeMap<String, String> = list(&metadata["packages"])
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let mut packages = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let id = text(&node["id"]);
        let Some(name) = names.get(&id) else {
            bail!("cargo metadata resolves {id}, which it does not describe")
        };
        let mut package = Package { name: name.clone(), ours: ours.contains(&id), uses: Vec::new() };
        for dependency in list(&node["deps"]) {
            let kinds = list(&dependency["dep_kinds"]);
            let tests_only = !kinds.is_empty() && kinds.iter().all(|kind| kind["kind"] == "dev");
            package.uses.push((text(&dependency["pkg"]), tests_only));
        }
        packages.insert(id, package);
    }
    Ok(packages)
}

fn find_problems(packages: &BTreeMap<String, Package>, map: &[CrateRule]) -> Vec<String> {
    let mut problems = Vec::new();
    for package in packages.values().filter(|package| package.ours) {
        let name = &package.name;
        let Some(place) = map.iter().find(|place| place.name == name.as_str()) else {
            problems.push(format!("{name} has no place in the map; give it one in xtask/src/layering.rs"));
            continue;
        };
        for (id, tests_only) in &package.uses {
            let Some(used) = packages.get(id).filter(|used| used.ours) else { continue };
            if *tests_only || place.may_use.contains(&used.name.as_str()) {
                continue;
            }
            if used.name == TESTS_ONLY {
                problems.push(format!("{name} uses {TESTS_ONLY} outside its tests"));
            } else {
                problems.push(format!("{name} must not use {}", used.name));
            }
        }
        if place.synchronous {
            problems.extend(paths_to_runtimes(packages, package));
        }
    }
    problems
}

/// The shortest path from a crate to each runtime it must not reach.
fn paths_to_runtimes(packages: &BTreeMap<String, Package>, start: &Package) -> Vec<String> {
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([(start, start.name.clone())]);
    while let Some((package, path)) = queue.pop_front() {
        for (id, tests_only) in &package.uses {
            let Some(used) = packages.get(id).filter(|_| !tests_only) else { continue };
            if !seen.insert(id.clone()) {
                continue;
            }
            let path = format!("{path} -> {}", used.name);
            if RUNTIMES.contains(&used.name.as_str()) {
                problems.push(format!("synchronous code reaches a runtime: {path}"));
            } else {
                queue.push_back((used, path));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &[CrateRule] = &[
        CrateRule { name: "low", synchronous: true, may_use: &[] },
        CrateRule { name: "high", synchronous: false, may_use: &["low"] },
        CrateRule { name: TESTS_ONLY, synchronous: false, may_use: &[] },
    ];

    fn check(arrows: &[(&str, &str, bool)], expect: &[&str]) {
        let mut packages: BTreeMap<String, Package> = BTreeMap::new();
        for (from, to, tests_only) in arrows {
            for name in [from, to] {
                let ours = !RUNTIMES.contains(name) && !name.starts_with("foreign");
                let package = packages.entry(name.to_string()).or_default();
                (package.name, package.ours) = (name.to_string(), ours);
            }
            packages.get_mut(*from).unwrap().uses.push((to.to_string(), *tests_only));
        }
        assert_eq!(find_problems(&packages, SMALL), expect);
    }

    #[test]
    fn an_arrow_down_is_fine_and_one_up_is_not() {
        check(&[("high", "low", false), ("high", "tokio", false)], &[]);
        check(&[("low", "high", false)], &["low must not use high"]);
    }

    #[test]
    fn the_testkit_is_for_tests() {
        check(&[("low", TESTS_ONLY, true)], &[]);
        check(&[("high", TESTS_ONLY, false)], &["high uses orrery-testkit outside its tests"]);
    }

    #[test]
    fn a_runtime_is_found_behind_another_crate() {
        let path = "synchronous code reaches a runtime: low -> foreign -> tokio";
        check(&[("low", "foreign", false), ("foreign", "tokio", false)], &[path]);
        check(&[("low", "foreign", true), ("foreign", "tokio", false)], &[]);
    }

    #[test]
    fn a_crate_without_a_place_is_an_error() {
        check(
            &[("stranger", "foreign", false)],
            &["stranger has no place in the map; give it one in xtask/src/layering.rs"],
        );
    }
}
