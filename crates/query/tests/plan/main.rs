//! Plans from the outside: golden files, plans carried out as a client would, and ranges against items.

mod golden;
mod merge;
mod ranges;

use orrery_model::{KeyKind, KeyVersion, PartitionKeyDefinition, PropertyPath, Value};
use orrery_query::QueryEnv;
use orrery_query::plan::{Features, PlanContext, QueryPlan, plan};
use orrery_sql::SqlError;

/// Everything clients can do, but for the form of hybrid plans that skips the rewrite.
const FEATURES: &str = "Aggregate, CompositeAggregate, Distinct, GroupBy, MultipleAggregates, MultipleOrderBy, \
    NonValueAggregate, OffsetAndLimit, OrderBy, Top, NonStreamingOrderBy, HybridSearch, WeightedRankFusion, CountIf, \
    DCount, ListAndSetAggregate";

fn definition(paths: &[&str]) -> PartitionKeyDefinition {
    PartitionKeyDefinition {
        paths: paths.iter().map(|path| PropertyPath::parse(path).expect("a path")).collect(),
        kind: if paths.len() > 1 { KeyKind::MultiHash } else { KeyKind::Hash },
        version: KeyVersion::V2,
        system_key: false,
    }
}

fn plan_of(
    text: &str,
    parameters: &[(String, Value)],
    definition: &PartitionKeyDefinition,
    features: &str,
    env: &QueryEnv,
) -> Result<QueryPlan, SqlError> {
    let context = PlanContext { partition_key: definition, features: Features::parse(features), env };
    plan(&orrery_sql::parse_query(text)?, parameters, &context)
}

#[test]
fn a_plan_has_every_member_in_the_order_of_the_service() {
    let plan = plan_of(
        "SELECT c.id FROM c ORDER BY c.n DESC OFFSET @o LIMIT 5",
        &[("@o".into(), 10.into())],
        &definition(&["/pk"]),
        FEATURES,
        &QueryEnv::default(),
    )
    .unwrap();
    let expected = concat!(
        r#"{"partitionedQueryExecutionInfoVersion":2,"queryInfo":{"distinctType":"None","top":null,"offset":10,"#,
        r#""limit":5,"orderBy":["Descending"],"orderByExpressions":["c.n"],"groupByExpressions":[],"#,
        r#""groupByAliases":[],"aggregates":[],"groupByAliasToAggregateType":{},"#,
        r#""rewrittenQuery":"SELECT c._rid, [{\"item\": c.n}] AS orderByItems, {\"id\": c.id} AS payload\nFROM c\n"#,
        r#"WHERE ({documentdb-formattableorderbyquery-filter})\nORDER BY c.n DESC\nOFFSET 0 LIMIT 15","#,
        r#""hasSelectValue":false,"dCountInfo":null,"hasNonStreamingOrderBy":false},"#,
        r#""queryRanges":[{"min":"","max":"FF","isMinInclusive":true,"isMaxInclusive":false}],"#,
        r#""hybridSearchQueryInfo":null}"#,
    );
    assert_eq!(plan.to_json(), expected);
}

#[test]
fn a_client_without_group_by_is_told_so() {
    let python = "Aggregate, CompositeAggregate, Distinct, MultipleOrderBy, OffsetAndLimit, OrderBy, Top";
    let plan = plan_of(
        "SELECT c.a, COUNT(1) AS n FROM c GROUP BY c.a",
        &[],
        &definition(&["/pk"]),
        python,
        &QueryEnv::default(),
    )
    .unwrap();
    let refusal = plan.refusal(Features::parse(python)).unwrap();
    let lines: Vec<&str> = refusal.lines().skip(1).collect();
    assert_eq!(
        lines,
        [
            "Query contained GroupBy, which the calling client does not support.",
            "Query contained NonValueAggregate, which the calling client does not support."
        ]
    );
    assert_eq!(plan.refusal(Features::parse(FEATURES)), None);
}

#[test]
fn functions_and_composite_indexes_are_left_to_the_partitions() {
    let env = QueryEnv { composite_indexes: Some(Vec::new()), ..QueryEnv::default() };
    let text = "SELECT udf.price(c) AS p FROM c ORDER BY c.a, c.b";
    assert!(plan_of(text, &[], &definition(&["/pk"]), FEATURES, &env).is_ok());
}

#[test]
fn a_container_without_a_partition_key_is_served_whole() {
    let definition = PartitionKeyDefinition { system_key: true, ..definition(&["/_partitionKey"]) };
    let text = "SELECT VALUE COUNT(1) FROM c WHERE c._partitionKey = 'a'";
    let plan = plan_of(text, &[], &definition, FEATURES, &QueryEnv::default()).unwrap();
    assert_eq!(plan.gateway(), orrery_query::plan::Gateway::Serve);
    assert_eq!(plan.ranges, [orrery_query::plan::QueryRange::full()]);
}

#[test]
fn distinct_rows_are_never_counted_item_by_item() {
    let text = "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c WHERE c.pk = 1)";
    let plan = plan_of(text, &[], &definition(&["/pk"]), FEATURES, &QueryEnv::default()).unwrap();
    assert_eq!(plan.gateway(), orrery_query::plan::Gateway::NeedsPlan);
}
