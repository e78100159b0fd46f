//! Golden files: `tests/golden/plans/*.txt`, queries in, plans out.
//!
//! A file is a list of blocks with blank lines between them. `key /a /b` gives the partition key for the queries
//! after it, `features …` what the client can do beyond the usual, `vector /path function` a vector policy. A block
//! whose lines begin with `>` is a query; `@name = json` lines give its parameters; the lines after are its plan:
//! what the gateway does, the members that are not empty, the ranges that are not everything, and the rewritten
//! query behind `|`. A block of `#` lines is a comment.
//!
//! Set `UPDATE_GOLDEN=1` to write the answers again, and read the difference.

use std::path::Path;

use orrery_model::{PartitionKeyDefinition, PropertyPath, Value, parse_json_value};
use orrery_query::plan::Gateway;
use orrery_query::{DistanceFunction, QueryEnv};
use serde_json::Value as Json;

use crate::{FEATURES, definition, plan_of};

#[test]
fn golden_plans_hold() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/plans");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut files = 0;
    for entry in std::fs::read_dir(directory).expect("the directory of golden files") {
        let path = entry.expect("an entry").path();
        files += 1;
        let text = std::fs::read_to_string(&path).expect("a golden file");
        let answered = answer(&text);
        if update {
            std::fs::write(&path, &answered).expect("the file can be written");
            continue;
        }
        for (line, (expected, actual)) in text.lines().zip(answered.lines()).enumerate() {
            assert_eq!(expected, actual, "{}:{}", path.display(), line + 1);
        }
        assert_eq!(text.lines().count(), answered.lines().count(), "{}", path.display());
    }
    assert!(files > 0, "no golden files");
}

struct Setting {
    key: PartitionKeyDefinition,
    features: String,
    env: QueryEnv,
}

fn answer(text: &str) -> String {
    let mut setting =
        Setting { key: definition(&["/pk"]), features: FEATURES.into(), env: QueryEnv::default() };
    let mut blocks = Vec::new();
    for block in text.trim_end().split("\n\n") {
        let mut lines: Vec<String> = block.lines().map(String::from).collect();
        if lines[0].starts_with('>') {
            lines.retain(|line| line.starts_with('>') || line.starts_with('@'));
            let answered = planned(&lines, &setting);
            lines.extend(answered);
        } else {
            lines.iter().for_each(|line| set(&mut setting, line));
        }
        blocks.push(lines.join("\n"));
    }
    blocks.join("\n\n") + "\n"
}

fn set(setting: &mut Setting, line: &str) {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    match word {
        "key" => setting.key = definition(&rest.split(' ').collect::<Vec<_>>()),
        "features" => setting.features = format!("{FEATURES}, {rest}"),
        "vector" => {
            let (path, function) = rest.split_once(' ').expect("a path and a function");
            let function = DistanceFunction::parse(function).expect("a distance function");
            setting.env.vectors.push((PropertyPath::parse(path).expect("a path"), function));
        }
        "#" => {}
        _ => panic!("what is '{line}'?"),
    }
}

fn planned(lines: &[String], setting: &Setting) -> Vec<String> {
    let query: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("> ")).collect();
    let parameters: Vec<(String, Value)> = lines
        .iter()
        .filter(|line| line.starts_with('@'))
        .map(|line| {
            let (name, value) = line.split_once(" = ").expect("name = value");
            (name.to_string(), parse_json_value(value.as_bytes()).expect("JSON"))
        })
        .collect();
    let plan = match plan_of(&query.join("\n"), &parameters, &setting.key, &setting.features, &setting.env) {
        Ok(plan) => plan,
        Err(error) => return vec![format!("error {} {}", error.code, error.message).replace("  ", " ")],
    };
    let mut out = vec![match plan.gateway() {
        Gateway::Serve => "served".to_string(),
        Gateway::NeedsPlan => "needs the plan".to_string(),
        Gateway::Refuse(message) => format!("refused: {message}"),
    }];
    if !plan.needed().is_empty() {
        out.push(format!("needs {}", plan.needed().names().collect::<Vec<_>>().join(", ")));
    }
    let json: Json = serde_json::from_str(&plan.to_json()).expect("a plan is JSON");
    members(&json["queryInfo"], "", &mut out);
    let hybrid = &json["hybridSearchQueryInfo"];
    members(hybrid, "", &mut out);
    for component in hybrid["componentQueryInfos"].as_array().into_iter().flatten() {
        out.push("component".to_string());
        members(component, "  ", &mut out);
    }
    for range in json["queryRanges"].as_array().expect("ranges") {
        let (min, max) = (range["min"].as_str().unwrap_or("?"), range["max"].as_str().unwrap_or("?"));
        if (min, max) != ("", "FF") {
            let open = if range["isMinInclusive"] == true { '[' } else { '(' };
            let close = if range["isMaxInclusive"] == true { ']' } else { ')' };
            out.push(format!("range {open}{min}, {max}{close}"));
        }
    }
    out
}

fn members(info: &Json, indent: &str, out: &mut Vec<String>) {
    for (name, value) in info.as_object().into_iter().flatten() {
        let empty = match value {
            Json::Null | Json::Bool(false) => true,
            Json::String(text) => text.is_empty() || text == "None",
            Json::Array(elements) => elements.is_empty(),
            Json::Object(members) => members.is_empty(),
            _ => false,
        };
        match (name.as_str(), value.as_str()) {
            _ if empty || name == "componentQueryInfos" => {}
            ("rewrittenQuery" | "globalStatisticsQuery", Some(text)) => {
                if name == "globalStatisticsQuery" {
                    out.push(name.clone());
                }
                out.extend(text.lines().map(|line| format!("{indent}| {line}")));
            }
            _ => out.push(format!("{indent}{name} {value}")),
        }
    }
}
