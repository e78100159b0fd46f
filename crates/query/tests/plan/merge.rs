//! Plans carried out the way clients do it must answer what the query answers over all items at once.
//!
//! Items are dealt to three partitions; each gets the rewritten query with its placeholder filled in, and a small
//! client merges the answers. Results are compared as bags where the query gives no order.

use orrery_model::{ParseOptions, Raw, parse_json};
use orrery_query::plan::{Distinct, Merge, QueryInfo};
use orrery_query::{AggregateKind, Prepared, QueryEnv, RowView, run_all};
use orrery_sql::{Direction, parse_query};
use serde_json::{Map, Value as Json, json};

use crate::{FEATURES, definition, plan_of};

const PARTITIONS: usize = 3;

#[test]
fn a_plan_carried_out_answers_what_the_query_answers() {
    let queries = [
        "SELECT * FROM c",
        "SELECT VALUE COUNT(1) FROM c",
        "SELECT VALUE SUM(c.n) FROM c WHERE c.n > 3",
        "SELECT VALUE AVG(c.n) FROM c",
        "SELECT VALUE MIN(c.n) FROM c WHERE c.n > 100",
        "SELECT VALUE MAX(c.name) FROM c",
        "SELECT VALUE COUNTIF(c.n > 5) FROM c",
        "SELECT COUNT(1) AS n, AVG(c.n) AS a, MIN(c.n), MAX(c.name) FROM c",
        "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind",
        "SELECT c.kind, c.even, MIN(c.n) AS low, AVG(c.n) AS middle FROM c GROUP BY c.kind, c.even",
        "SELECT VALUE COUNT(1) FROM c GROUP BY c.kind",
        "SELECT VALUE {k: UPPER(c.kind)} FROM c GROUP BY c.kind",
        "SELECT DISTINCT c.kind FROM c",
        "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind",
        "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind OFFSET 1 LIMIT 1",
        "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.kind FROM c)",
        "SELECT c.n, c.name FROM c ORDER BY c.n DESC",
        "SELECT TOP 4 VALUE c.name FROM c WHERE c.even ORDER BY c.n",
        "SELECT VALUE c.missing FROM c ORDER BY c.n",
        "SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 3 LIMIT 4",
        "SELECT VALUE r.v FROM (SELECT VALUE {v: c.n} FROM c) AS r ORDER BY r.v",
        "SELECT VALUE x.deep FROM c.nested AS x ORDER BY x.deep DESC",
        "SELECT c.n, t FROM c JOIN t IN c.tags ORDER BY c.n",
        "SELECT * FROM c ORDER BY c.kind, c.n DESC",
    ];
    let items: Vec<Vec<u8>> = (0..17)
        .map(|n: i64| {
            let kind = ["a", "b", "c"].get(n as usize % 4).map_or(String::new(), |kind| format!(r#""kind":"{kind}","#));
            let text = format!(
                r#"{{"id":"{n}","pk":{n},{kind}"n":{n},"name":"n{}","even":{},"nested":{{"deep":{}}},"tags":[{n},"x"],"_rid":"rid{n}"}}"#,
                n % 5,
                n % 2 == 0,
                n * 7 % 17,
            );
            parse_json(text.as_bytes(), &ParseOptions::default()).expect("an item")
        })
        .collect();
    let all: Vec<&[u8]> = items.iter().map(Vec::as_slice).collect();
    for text in queries {
        let plan = plan_of(text, &[], &definition(&["/pk"]), FEATURES, &QueryEnv::default()).expect(text);
        let Merge::Rows(info) = &plan.merge else { panic!("{text} has no rank clause") };
        let sent = match info.rewritten.as_str() {
            "" => text.to_string(),
            rewritten => rewritten.replace("{documentdb-formattableorderbyquery-filter}", "true"),
        };
        let answers: Vec<Vec<Json>> = (0..PARTITIONS)
            .map(|partition| {
                run(&sent, &all.iter().copied().skip(partition).step_by(PARTITIONS).collect::<Vec<_>>())
            })
            .collect();
        let mut merged = merge(info, answers);
        let mut expected = match info.distinct_count.is_some() {
            // The evaluator sees one item at a time; the count of distinct rows is what the plan is for.
            true => vec![json!(run("SELECT DISTINCT VALUE c.kind FROM c", &all).len())],
            false => run(text, &all),
        };
        if info.order_by.is_empty() {
            for rows in [&mut merged, &mut expected] {
                rows.sort_by_key(Json::to_string);
            }
        }
        assert_eq!(merged, expected, "{text}");
    }
}

fn run(text: &str, items: &[&[u8]]) -> Vec<Json> {
    let query = parse_query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let prepared =
        Prepared::new(&query, &[], &QueryEnv::default()).unwrap_or_else(|error| panic!("{text}: {error}"));
    let rows = items.iter().map(|item| RowView::plain(Raw::document(item).expect("an item")));
    let rows = run_all(&prepared, rows).unwrap_or_else(|error| panic!("{text}: {error}"));
    rows.iter().map(|row| serde_json::from_slice(row).expect("a row is JSON")).collect()
}

fn merge(info: &QueryInfo, answers: Vec<Vec<Json>>) -> Vec<Json> {
    let mut rows: Vec<Json> = answers.into_iter().flatten().collect();
    if !info.order_by.is_empty() {
        sort(&mut rows, &info.order_by);
        rows = rows.into_iter().map(|row| row["payload"].clone()).collect();
    } else if !info.group_by_expressions.is_empty() {
        rows = groups(info, rows);
    } else if let [kind] = info.aggregates.as_slice() {
        let parts: Vec<&Json> = rows.iter().map(|row| &row[0]).collect();
        rows = total(*kind, &parts).into_iter().collect();
    } else if !info.aliases.is_empty() {
        rows = vec![record(info, &rows.iter().collect::<Vec<_>>())];
    }
    if info.distinct != Distinct::None {
        let mut seen = std::collections::HashSet::new();
        rows.retain(|row| seen.insert(row.to_string()));
    }
    let offset = info.offset.unwrap_or(0) as usize;
    let limit = info.top.or(info.limit).map_or(usize::MAX, |limit| limit as usize);
    rows = rows.into_iter().skip(offset).take(limit).collect();
    match &info.distinct_count {
        Some(_) => vec![json!(rows.len())],
        None => rows,
    }
}

fn sort(rows: &mut [Json], directions: &[Direction]) {
    rows.sort_by(|left, right| {
        let keys = directions.iter().enumerate().map(|(at, direction)| {
            let order =
                key(&left["orderByItems"][at]["item"]).total_cmp(&key(&right["orderByItems"][at]["item"]));
            if *direction == Direction::Descending { order.reverse() } else { order }
        });
        keys.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
    });
}

/// Nothing, numbers and short words in one order, which is all the items have.
fn key(value: &Json) -> f64 {
    match value {
        Json::Number(number) => number.as_f64().expect("a number"),
        Json::String(text) => text.bytes().fold(1e9, |sum, byte| sum * 256.0 + f64::from(byte)),
        _ => -1e9,
    }
}

fn groups(info: &QueryInfo, rows: Vec<Json>) -> Vec<Json> {
    let mut groups: Vec<(String, Vec<Json>)> = Vec::new();
    for row in rows {
        let group = row["groupByItems"].to_string();
        match groups.iter_mut().find(|(key, _)| *key == group) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((group, vec![row])),
        }
    }
    let merged = groups.iter().filter_map(|(_, rows)| match info.aggregates.as_slice() {
        [kind] => total(*kind, &rows.iter().map(|row| &row["payload"][0]).collect::<Vec<_>>()),
        _ if info.select_value => Some(rows[0]["payload"].clone()),
        _ => Some(record(info, &rows.iter().collect::<Vec<_>>())),
    });
    merged.collect()
}

fn record(info: &QueryInfo, rows: &[&Json]) -> Json {
    let mut record = Map::new();
    for (alias, kind) in &info.aliases {
        let parts: Vec<&Json> = rows.iter().filter_map(|row| row["payload"].get(alias)).collect();
        let value = match kind {
            Some(kind) => total(*kind, &parts),
            None => parts.first().map(|part| (*part).clone()),
        };
        record.extend(value.map(|value| (alias.clone(), value)));
    }
    Json::Object(record)
}

fn total(kind: AggregateKind, parts: &[&Json]) -> Option<Json> {
    let sum = |name: &dyn Fn(&Json) -> f64| parts.iter().map(|part| name(part)).sum::<f64>();
    let number = |value: &Json| value.as_f64().unwrap_or(0.0);
    let exact = |value: f64| if value.fract() == 0.0 { json!(value as i64) } else { json!(value) };
    match kind {
        AggregateKind::Average => {
            let count = sum(&|part| number(&part["item"]["count"]));
            (count > 0.0).then(|| exact(sum(&|part| number(&part["item"]["sum"])) / count))
        }
        AggregateKind::Min | AggregateKind::Max => {
            let mut values: Vec<&Json> =
                parts.iter().filter(|part| part["item2"]["count"] != 0).map(|part| &part["item"]).collect();
            values.sort_by(|left, right| key(left).total_cmp(&key(right)));
            let best = if kind == AggregateKind::Min { values.first() } else { values.last() };
            best.map(|best| (*best).clone())
        }
        _ => Some(exact(sum(&|part| number(&part["item"])))),
    }
}
