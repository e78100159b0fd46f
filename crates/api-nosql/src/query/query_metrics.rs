//! What a page of a query tells about itself when asked: query metrics, index metrics, and the plan for people.
//!
//! - `x-ms-documentdb-populatequerymetrics` asks for counts and times, as `name=value;…`.
//! - `x-ms-cosmos-populateindexmetrics` asks which indexes served the query and which would have: JSON in base64. The
//!   newer spelling of the header, `…-V2`, asks for the same JSON percent-encoded.
//! - `x-orrery-explain` asks how each partition made its part, as a JSON array of lines.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use orrery_engine::{IndexUse, QueryMetrics, QueryPage, Scope};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::headers::{self, Answer};
use crate::service::{Context, Target};

/// Partitions whose plan is printed; they rarely differ.
const EXPLAINED_MAX: usize = 8;
/// Longest plan that is sent back.
const EXPLAIN_BYTES_MAX: usize = 6 * 1024;

/// What all shares of a page did, those that were only read ahead included.
#[derive(Debug, Default)]
pub struct Insight {
    metrics: QueryMetrics,
    indexes: IndexUse,
    plans: Vec<(u32, String)>,
}

impl Insight {
    pub fn of_page(page: &QueryPage, explained: bool) -> Insight {
        let mut insight = Insight { metrics: page.metrics.clone(), ..Insight::default() };
        if explained {
            insight.indexes = page.report.indexes.clone();
            insight.plans = vec![(page.at.range_id, page.report.to_string())];
        }
        insight
    }

    /// Whether anybody wants to know more than counts and times.
    pub fn is_wanted(context: &Context<'_>) -> bool {
        let wishes = [headers::POPULATE_INDEX_METRICS, headers::POPULATE_INDEX_METRICS_V2, headers::EXPLAIN];
        wishes.into_iter().any(|wish| context.flag(wish))
    }

    pub fn add(&mut self, other: Insight) {
        self.metrics.add(&other.metrics);
        let (into, from) = (&mut self.indexes, other.indexes);
        merge(&mut into.used, from.used);
        merge(&mut into.missing, from.missing);
        merge(&mut into.used_composites, from.used_composites);
        merge(&mut into.missing_composites, from.missing_composites);
        let room = EXPLAINED_MAX.saturating_sub(self.plans.len());
        self.plans.extend(other.plans.into_iter().take(room));
    }

    /// Adds the headers that the client asked for.
    pub fn told(
        &self,
        context: &Context<'_>,
        target: &Target,
        scope: &Scope,
        (rows, row_bytes): (usize, usize),
        mut answer: Answer,
    ) -> Answer {
        if context.flag(headers::POPULATE_METRICS) {
            answer = answer.set(headers::QUERY_METRICS, self.metrics(rows, row_bytes));
        }
        let encoded = context.flag(headers::POPULATE_INDEX_METRICS_V2);
        if encoded || context.flag(headers::POPULATE_INDEX_METRICS) {
            let json = self.utilization(target, scope).to_string();
            let text = match encoded {
                true => utf8_percent_encode(&json, NON_ALPHANUMERIC).to_string(),
                false => STANDARD.encode(json),
            };
            answer = answer.set(headers::INDEX_UTILIZATION, headers::text_value(&text));
        }
        if context.flag(headers::EXPLAIN) {
            answer = answer.set(headers::EXPLAIN, self.explained());
        }
        answer
    }

    fn metrics(&self, rows: usize, row_bytes: usize) -> HeaderValue {
        let metrics = &self.metrics;
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

    fn utilization(&self, target: &Target, scope: &Scope) -> Value {
        let mut used = self.indexes.used.clone();
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
            "PotentialSingleIndexes": self.indexes.missing.iter().map(single).collect::<Vec<_>>(),
            "UtilizedCompositeIndexes": self.indexes.used_composites.iter().map(composite).collect::<Vec<_>>(),
            "PotentialCompositeIndexes": self.indexes.missing_composites.iter().map(composite).collect::<Vec<_>>(),
        })
    }

    fn explained(&self) -> HeaderValue {
        let mut lines: Vec<String> = Vec::new();
        let mut size_bytes = 0;
        for (range, plan) in &self.plans {
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
    use super::*;

    #[test]
    fn a_plan_fits_a_header_whatever_its_paths_are_called() {
        let mut insight = Insight::default();
        for range in 0..20 {
            insight.add(Insight {
                plans: vec![(range, "a\n  /größe 😀".repeat(300))], ..Insight::default()
            });
        }
        assert_eq!(insight.plans.len(), EXPLAINED_MAX);
        let value = insight.explained();
        assert!(value.len() < 4 * EXPLAIN_BYTES_MAX);
        let lines: Vec<String> = serde_json::from_slice(value.as_bytes()).unwrap();
        assert_eq!(lines[0], "partition 0");
        assert_eq!(ascii(&json!("ß😀")), r#""\u00df\ud83d\ude00""#);
    }

    #[test]
    fn indexes_of_several_partitions_are_named_once() {
        let page = |used: &str, missing: &str| Insight {
            indexes: IndexUse {
                used: vec![used.into()],
                missing: vec![missing.into()],
                ..IndexUse::default()
            },
            ..Insight::default()
        };
        let mut insight = page("/a/?", "/b/?");
        insight.add(page("/a/?", "/b/?"));
        insight.add(page("/c/?", "/b/?"));
        assert_eq!(insight.indexes.used, ["/a/?", "/c/?"]);
        assert_eq!(insight.indexes.missing, ["/b/?"]);
    }
}
