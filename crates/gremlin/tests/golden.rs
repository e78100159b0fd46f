//! `tests/golden/gremlin/*.txt`: traversals in, results out, on graphs that the files themselves build.
//!
//! `partition key NAME` on the first line makes the graph a partitioned one. After `> script` come the results, one
//! on each line as `asString()` would show them, in order; after `? script` sorted, because the order is nobody's
//! promise. An error is `! Kind: message`. Lines with `#` are comments.
//!
//! Set `UPDATE_GOLDEN=1` to write the results again, and read the difference.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use orrery_gremlin::text::text_of;
use orrery_gremlin::{Flow, MemoryGraph, Options, Result, Value, execute, parse};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/gremlin")
}

fn run(graph: &mut MemoryGraph, script: &str, naive: bool) -> Result<Vec<String>> {
    let mut results = Vec::new();
    let options = Options { naive, repeat_loops_max: 32, ..Options::default() };
    let mut sink = |batch: Vec<(Value, u64)>| {
        for (value, bulk) in batch {
            results.extend(std::iter::repeat_n(text_of(&value), bulk as usize));
        }
        Ok(Flow::Continue)
    };
    execute(&parse(script, &HashMap::new())?, graph, &options, &mut sink)?;
    Ok(results)
}

/// The whole file with the results as they are now.
fn replay(text: &str, naive: bool) -> String {
    let mut graph = MemoryGraph::new();
    let mut replayed = String::new();
    let mut skipping = false;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("partition key ") {
            graph = MemoryGraph::with_partition_key(name);
        }
        let script = line.strip_prefix("> ").or_else(|| line.strip_prefix("? "));
        if script.is_none() && skipping && !line.is_empty() {
            continue;
        }
        skipping = script.is_some();
        replayed.push_str(line);
        replayed.push('\n');
        if let Some(script) = script {
            match run(&mut graph, script, naive) {
                Ok(mut results) => {
                    if line.starts_with('?') {
                        results.sort();
                    }
                    for result in results {
                        replayed.push_str(&result);
                        replayed.push('\n');
                    }
                }
                Err(error) => replayed.push_str(&format!("! {:?}: {error}\n", error.kind)),
            }
        }
    }
    replayed
}

fn files() -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder()).expect("the folder of golden files is there");
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    files
}

#[test]
fn traversals_give_the_results_in_the_files() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let files = files();
    assert!(!files.is_empty(), "no golden files in {}", folder().display());
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a golden file is text");
        let replayed = replay(&text, false);
        if update {
            std::fs::write(&file, &replayed).expect("a golden file can be written");
        } else {
            same(&file, &text, &replayed);
        }
    }
}

/// Shows the first line that differs.
fn same(file: &Path, expected: &str, found: &str) {
    let lines = expected.lines().zip(found.lines()).enumerate();
    for (line, (expected, found)) in lines {
        assert_eq!(found, expected, "{}:{}", file.display(), line + 1);
    }
    assert_eq!(found.lines().count(), expected.lines().count(), "{}: number of lines", file.display());
}

#[test]
fn without_lowering_and_merging_the_results_are_the_same() {
    for file in files() {
        let text = std::fs::read_to_string(&file).expect("a golden file is text");
        same(&file, &replay(&text, false), &replay(&text, true));
    }
}
