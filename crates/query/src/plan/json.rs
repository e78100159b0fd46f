//! Plans as the JSON that clients read. The order of members is the service's.

use orrery_model::{Number, NumberStyle, Value};
use orrery_sql::Direction;

use super::{Distinct, HybridInfo, Merge, QueryInfo, QueryPlan, QueryRange};
use crate::aggregate::AggregateKind;

/// The version of the form below.
const VERSION: i64 = 2;

impl QueryPlan {
    /// The plan as clients read it.
    pub fn to_json(&self) -> String {
        let (info, hybrid) = match &self.merge {
            Merge::Rows(info) => (query_info(info), Value::Null),
            Merge::Ranks(info) => (Value::Null, hybrid_info(info)),
        };
        let plan = object([
            ("partitionedQueryExecutionInfoVersion", VERSION.into()),
            ("queryInfo", info),
            ("queryRanges", list(&self.ranges, range)),
            ("hybridSearchQueryInfo", hybrid),
        ]);
        let mut out = Vec::new();
        plan.write_json(&mut out, NumberStyle::Query);
        let text = String::from_utf8_lossy(&out).into_owned();
        match &self.merge {
            Merge::Ranks(info) => with_decimal_weights(text, &info.weights),
            Merge::Rows(_) => text,
        }
    }
}

/// Weights with a decimal point, also whole ones: the Java SDK takes nothing else for a weight. Quotes inside strings
/// are escaped, so the member's name stands in the text once.
fn with_decimal_weights(text: String, weights: &[f64]) -> String {
    let mut plain = Vec::new();
    list(weights, |weight| Value::Number(Number::Double(*weight))).write_json(&mut plain, NumberStyle::Query);
    let plain = format!("\"componentWeights\":{}", String::from_utf8_lossy(&plain));
    let decimal = weights.iter().map(|weight| format!("{weight:?}")).collect::<Vec<_>>().join(",");
    text.replacen(&plain, &format!("\"componentWeights\":[{decimal}]"), 1)
}

fn query_info(info: &QueryInfo) -> Value {
    let distinct = match info.distinct {
        Distinct::None => "None",
        Distinct::Ordered => "Ordered",
        Distinct::Unordered => "Unordered",
    };
    let kind = |kind: &AggregateKind| Value::from(kind.plan_name());
    let aliases = info.aliases.iter();
    let kinds = aliases.map(|(alias, of)| (alias.clone(), of.as_ref().map_or(Value::Null, kind)));
    let count = info.distinct_count.as_ref();
    object([
        ("distinctType", distinct.into()),
        ("top", number(info.top)),
        ("offset", number(info.offset)),
        ("limit", number(info.limit)),
        ("orderBy", list(&info.order_by, |direction| direction_name(*direction).into())),
        ("orderByExpressions", texts(&info.order_by_expressions)),
        ("groupByExpressions", texts(&info.group_by_expressions)),
        ("groupByAliases", list(&info.aliases, |(alias, _)| alias.as_str().into())),
        ("aggregates", list(&info.aggregates, kind)),
        ("groupByAliasToAggregateType", Value::Object(kinds.collect())),
        ("rewrittenQuery", info.rewritten.as_str().into()),
        ("hasSelectValue", info.select_value.into()),
        ("dCountInfo", count.map_or(Value::Null, |alias| object([("dCountAlias", alias.as_str().into())]))),
        ("hasNonStreamingOrderBy", info.non_streaming_order_by.into()),
    ])
}

fn hybrid_info(info: &HybridInfo) -> Value {
    object([
        ("globalStatisticsQuery", info.statistics_query.as_str().into()),
        ("componentQueryInfos", list(&info.components, query_info)),
        ("componentWithoutPayloadQueryInfos", Value::Array(Vec::new())),
        ("projectionQueryInfo", Value::Null),
        ("componentWeights", list(&info.weights, |weight| Value::Number(Number::Double(*weight)))),
        ("skip", number(info.skip)),
        ("take", number(info.take)),
        ("requiresGlobalStatistics", info.requires_statistics.into()),
    ])
}

fn range(range: &QueryRange) -> Value {
    object([
        ("min", range.min.to_hex().into()),
        ("max", range.max.to_hex().into()),
        ("isMinInclusive", range.min_inclusive.into()),
        ("isMaxInclusive", range.max_inclusive.into()),
    ])
}

fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Ascending => "Ascending",
        Direction::Descending => "Descending",
    }
}

fn number(value: Option<u64>) -> Value {
    value.map_or(Value::Null, Value::from)
}

fn texts(texts: &[String]) -> Value {
    list(texts, |text| text.as_str().into())
}

fn list<T>(items: &[T], value: impl Fn(&T) -> Value) -> Value {
    Value::Array(items.iter().map(value).collect())
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_string(), value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_weights_have_a_decimal_point() {
        let text =
            r#"{"x":"\"componentWeights\":[2,0.5]","componentWeights":[2,0.5],"skip":null}"#.to_string();
        let wanted = r#"{"x":"\"componentWeights\":[2,0.5]","componentWeights":[2.0,0.5],"skip":null}"#;
        assert_eq!(with_decimal_weights(text, &[2.0, 0.5]), wanted);
    }
}
