//! What `executionProfile()` and `profile()` tell, in the service's shape.

use crate::evaluate::Stage;
use crate::value::Value;

/// The operator of a hop to vertices.
const NEIGHBOURS: &str = "GetNeighborVertices";

pub(crate) fn profile(script: &str, stages: &[Stage], total_ms: f64) -> Value {
    let text = |text: &str| Value::string(text);
    let mut metrics = Vec::new();
    // A stage's time includes that of the stages it pulled from.
    let mut before_ms = 0.0;
    for stage in stages.iter().filter(|stage| !matches!(stage.name, "executionProfile" | "profile")) {
        let inclusive_ms = stage.metrics.time.as_secs_f64() * 1e3;
        let own_ms = (inclusive_ms - before_ms).max(0.0);
        before_ms = inclusive_ms;
        if stage.operator == NEIGHBOURS {
            // A hop reads edges, which name the vertices at their ends; the service shows the two apart.
            metrics.push(metric(stage, "GetEdges", own_ms, total_ms, true));
            metrics.push(metric(stage, NEIGHBOURS, 0.0, total_ms, false));
        } else {
            metrics.push(metric(stage, stage.operator, own_ms, total_ms, true));
        }
    }
    let last_ms = (total_ms - before_ms).max(0.0);
    metrics.push(Value::map([
        (text("name"), text("ProjectOperator")),
        (text("time"), Value::Double(last_ms)),
        (text("annotations"), percent(last_ms, total_ms)),
        (text("counts"), Value::map([(text("resultCount"), results(stages))])),
    ]));
    Value::map([
        (text("gremlin"), text(script)),
        (text("totalTime"), Value::Double(total_ms)),
        (text("metrics"), Value::list(metrics)),
    ])
}

fn results(stages: &[Stage]) -> Value {
    let last = stages.iter().rev().find(|stage| !matches!(stage.name, "executionProfile" | "profile"));
    Value::Long(last.map_or(0, |stage| i64::try_from(stage.metrics.results).unwrap_or(i64::MAX)))
}

fn percent(own_ms: f64, total_ms: f64) -> Value {
    let share = if total_ms > 0.0 { own_ms * 100.0 / total_ms } else { 0.0 };
    Value::map([(Value::string("percentTime"), Value::Double(share))])
}

fn metric(stage: &Stage, operator: &str, own_ms: f64, total_ms: f64, reads: bool) -> Value {
    let text = |text: &str| Value::string(text);
    let whole = |n: u64| Value::Long(i64::try_from(n).unwrap_or(i64::MAX));
    let mut entries = vec![
        (text("name"), text(operator)),
        (text("time"), Value::Double(own_ms)),
        (text("annotations"), percent(own_ms, total_ms)),
        (text("counts"), Value::map([(text("resultCount"), whole(stage.metrics.results))])),
    ];
    if reads && !stage.metrics.store_ops.is_empty() {
        let ops = stage.metrics.store_ops.iter().map(|op| {
            Value::map([
                (text("fanoutFactor"), whole(op.fanout)),
                (text("count"), whole(op.count)),
                (text("size"), whole(op.size_bytes)),
                (text("time"), Value::Double(op.time_ms)),
            ])
        });
        entries.push((text("storeOps"), Value::list(ops.collect())));
    }
    Value::map(entries)
}
