//! What a page of a query tells about itself when asked: query metrics, index metrics, and the plan for people.
//!
//! - `x-ms-documentdb-populatequerymetrics` asks for counts and times, as `name=value;…`.
//! - `x-ms-cosmos-populateindexmetrics` asks which indexes served the query and which would have: JSON in base64. The
//!   newer spelling of the header, `…-V2`, asks for the same JSON percent-encoded.
//! - `x-orrery-explain` asks how each partition made its part, as a JSON array of lines; with the value `json` also
//!   what that took, for programs: `{"partitions": [{"range": "0", "ru": 2.83, "indexEntries": 100, …}], "plans":
//!   [{"range": "0", "text": "…"}]}`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use orrery_engine::{QueryInsight, Scope};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::headers::{self, Answer};
use crate::service::{Context, Target};

/// Longest plan that is sent back.
const EXPLAIN_BYTES_MAX: usize = 6 * 1024;
/// Partitions whose figures are sent back; a header has its limits.
const FIGURES_MAX: usize = 64;

/// Whether anybody wants to know more than counts and times.
pub fn is_wanted(context: &Context<'_>) -> bool {
    let wishes = [headers::POPULATE_INDEX_METRICS, headers::POPULATE_INDEX_METRICS_V2, headers::EXPLAIN];
    wishes.into_iter().any(|wish| context.flag(wish)) || wants_figures(context)
}

fn wants_figures(context: &Context<'_>) -> bool {
    context.text(headers::EXPLAIN).is_some_and(|how| how.eq_ignore_ascii_case("json"))
}

/// Adds the headers that the client asked for.
pub fn told(
    insight: &QueryInsight,
    context: &Context<'_>,
    target: &Target,
    scope: &Scope,
    (rows, row_bytes): (usize, usize),
    mut answer: Answer,
) -> Answer {
    if context.flag(headers::POPULATE_METRICS) {
        answer = answer.set(headers::QUERY_METRICS, metrics(insight, rows, row_bytes));
    }
    let encoded = context.flag(headers::POPULATE_INDEX_METRICS_V2);
    if encoded || context.flag(headers::POPULATE_INDEX_METRICS) {
        let json = utilization(insight, target, scope).to_string();
        let text = match encoded {
            true => utf8_percent_encode(&json, NON_ALPHANUMERIC).to_string(),
            false => STANDARD.encode(json),
        };
        answer = answer.set(headers::INDEX_UTILIZATION, headers::text_value(&text));
    }
    if wants_figures(context) {
        answer = answer.set(headers::EXPLAIN, figures(insight));
    } else if context.flag(headers::EXPLAIN) {
        answer = answer.set(headers::EXPLAIN, explained(insight));
    }
    answer
}

fn metrics(insight: &QueryInsight, rows: usize, row_bytes: usize) -> HeaderValue {
    let metrics = &insight.metrics;
    let ms = |time: std::time::Duration| time.as_secs_f64() * 1_000.0;
    headers::text_value(&format!(
        "totalExecutionTimeInMs={:.2};queryCompileTimeInMs={:.2};queryLogicalPlanBuildTimeInMs=0.00;queryPhysicalPlanBuildTimeInMs=0.00;queryOptimizationTimeInMs=0.00;VMExecutionTimeInMs={:.2};indexLookupTimeInMs={:.2};instructionCount=0;documentLoadTimeInMs={:.2};systemFunctionExecuteTimeInMs=0.00;userFunctionExecuteTimeInMs=0.00;retrievedDocumentCount={};retrievedDocumentSize={};outputDocumentCount={};outputDocumentSize={};writeOutputTimeInMs=0.00;indexUtilizationRatio={:.2}",
        ms(metrics.total),
        ms(metrics.planning),
        ms(metrics.evaluation()),
        ms(metrics.index_lookup),
        ms(metrics.document_load),
        metrics.loaded_items,
        metrics.loaded_bytes,
        rows,
        row_bytes,
        metrics.index_hit_ratio(),
    ))
}

fn utilization(insight: &QueryInsight, target: &Target, scope: &Scope) -> Value {
    let mut used = insight.indexes.used.clone();
    // A query inside a partition key found its items by it, whether or not its filter says so.
    if let Scope::Key(_) = scope {
        let paths = &target.container.definition().partition_key.paths;
        merge(&mut used, paths.iter().map(|path| format!("{path}/?")).collect());
    }
    let single = |spec: &String| {
        json!({
            "FilterExpression": "",
            "IndexSpec": spec,
            "FilterPreciseSet": true,
            "IndexPreciseSet": true,
            "IndexImpactScore": "High",
        })
    };
    let composite = |specs: &Vec<String>| json!({ "IndexSpecs": specs, "IndexPreciseSet": true, "IndexImpactScore": "High" });
    json!({
        "UtilizedSingleIndexes": used.iter().map(single).collect::<Vec<_>>(),
        "PotentialSingleIndexes": insight.indexes.missing.iter().map(single).collect::<Vec<_>>(),
        "UtilizedCompositeIndexes": insight.indexes.used_composites.iter().map(composite).collect::<Vec<_>>(),
        "PotentialCompositeIndexes": insight.indexes.missing_composites.iter().map(composite).collect::<Vec<_>>(),
    })
}

fn explained(insight: &QueryInsight) -> HeaderValue {
    let mut lines: Vec<String> = Vec::new();
    let mut size_bytes = 0;
    for (range, plan) in &insight.explained {
        for line in std::iter::once(format!("partition {range}")).chain(plan.lines().map(str::to_owned)) {
            size_bytes += line.len();
            if size_bytes > EXPLAIN_BYTES_MAX {
                lines.push("…".to_owned());
                return headers::text_value(&ascii(&Value::from(lines)));
            }
            lines.push(line);
        }
    }
    headers::text_value(&ascii(&Value::from(lines)))
}

/// What each partition did, in numbers, and the plans of the first ones.
fn figures(insight: &QueryInsight) -> HeaderValue {
    let round = |value: f64| (value * 100.0).round() / 100.0;
    let shares = insight.shares.iter().take(FIGURES_MAX).map(|share| {
        let metrics = &share.metrics;
        json!({
            "range": share.range.to_string(),
            "ru": round(share.charge_ru),
            "pages": share.pages,
            "indexEntries": metrics.index_entries,
            "loaded": metrics.loaded_items,
            "matched": metrics.matched_items,
            "rows": metrics.output_rows,
            "ms": round(metrics.total.as_secs_f64() * 1_000.0),
        })
    });
    let mut size_bytes = 0;
    let plans = insight.explained.iter().take_while(|(_, plan)| {
        size_bytes += plan.len();
        size_bytes <= EXPLAIN_BYTES_MAX
    });
    let plans = plans.map(|(range, plan)| json!({ "range": range.to_string(), "text": plan }));
    let all = json!({
        "partitions": shares.collect::<Vec<_>>(),
        "others": insight.shares.len().saturating_sub(FIGURES_MAX),
        "plans": plans.collect::<Vec<_>>(),
    });
    headers::text_value(&ascii(&all))
}

fn merge<T: PartialEq>(into: &mut Vec<T>, from: Vec<T>) {
    for value in from {
        if !into.contains(&value) {
            into.push(value);
        }
    }
}

/// JSON that a header can carry as it is: everything beyond ASCII as an escape.
fn ascii(json: &Value) -> String {
    let mut out = String::new();
    for unit in json.to_string().encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => out.push(char::from(byte)),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use orrery_engine::query::distributed::EXPLAINED_MAX;

    use super::*;

    #[test]
    fn a_plan_fits_a_header_whatever_its_paths_are_called() {
        let mut insight = QueryInsight::default();
        for range in 0..20 {
            insight.add(QueryInsight {
                explained: vec![(range, "a\n  /größe 😀".repeat(300))],
                ..QueryInsight::default()
            });
        }
        assert_eq!(insight.explained.len(), EXPLAINED_MAX);
        let value = explained(&insight);
        assert!(value.len() < 4 * EXPLAIN_BYTES_MAX);
        let lines: Vec<String> = serde_json::from_slice(value.as_bytes()).unwrap();
        assert_eq!(lines[0], "partition 0");
        assert_eq!(ascii(&json!("ß😀")), r#""\u00df\ud83d\ude00""#);
    }
}
