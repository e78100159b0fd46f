//! Plans: how a client runs a query over several partitions by itself.
//!
//! The service's clients ask for a plan, send the rewritten query to each range it names and merge the answers.
//! [`plan`] makes that plan; [`QueryPlan::to_json`] is what goes over the wire, and [`QueryPlan::gateway`] says what
//! becomes of a query that a client sends without a plan.
//!
//! ```
//! use orrery_model::{KeyKind, KeyVersion, PartitionKeyDefinition, PropertyPath};
//! use orrery_query::QueryEnv;
//! use orrery_query::plan::{Features, Gateway, PlanContext, plan};
//!
//! let partition_key = PartitionKeyDefinition {
//!     paths: vec![PropertyPath::parse("/pk").unwrap()],
//!     kind: KeyKind::Hash,
//!     version: KeyVersion::V2,
//!     system_key: false,
//! };
//! let env = QueryEnv::default();
//! let context = PlanContext { partition_key: &partition_key, features: Features::parse("Aggregate"), env: &env };
//! let query = orrery_sql::parse_query("select value count(1) from c").unwrap();
//! let plan = plan(&query, &[], &context).unwrap();
//! assert!(plan.to_json().contains(r#""rewrittenQuery":"SELECT VALUE [{\"item\": count(1)}]\nFROM c""#));
//! assert_eq!(plan.refusal(context.features), None);
//! assert_eq!(plan.gateway(), Gateway::NeedsPlan);
//! ```
//!
//! Deliberately missing: keys of kind `Range`, which no container can have any more.

mod features;
mod hybrid;
mod json;
mod ranges;
mod rewrite;
mod text;

use std::sync::Arc;

use orrery_model::{PartitionKeyDefinition, Value};
use orrery_sql::{Query, SqlError};

use crate::aggregate::AggregateKind;
use crate::env::{QueryEnv, Udfs};
use crate::prepared::Prepared;

pub use features::{Feature, Features};
pub use hybrid::HybridInfo;
pub use ranges::{QueryRange, RANGES_MAX};
pub use rewrite::{Distinct, QueryInfo};
pub(crate) use rewrite::{distinct_count, sorts_by_distance, sorts_what_it_selects};

/// What a plan depends on besides the query.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext<'a> {
    pub partition_key: &'a PartitionKeyDefinition,
    /// What the client said it can do. Only the form of hybrid plans depends on it; see [`QueryPlan::refusal`].
    pub features: Features,
    /// Of this only the policies count: a plan runs nothing.
    pub env: &'a QueryEnv,
}

/// How a query is run over several partitions.
#[derive(Clone, Debug, PartialEq)]
pub struct QueryPlan {
    pub merge: Merge,
    /// What the query reads, sorted.
    pub ranges: Vec<QueryRange>,
    needed: Features,
    gateway: Gateway,
}

/// How the answers of the partitions become the answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Merge {
    Rows(QueryInfo),
    /// ORDER BY RANK.
    Ranks(HybridInfo),
}

/// What becomes of a query over all partitions that comes without a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gateway {
    /// Its rows are those of the partitions, one partition after the other.
    Serve,
    /// Refused with the plan attached; clients then merge themselves.
    NeedsPlan,
    /// Refused for good, with this message.
    Refuse(&'static str),
}

/// What a client reads that must come back with a plan.
pub const NEEDS_PLAN_MESSAGE: &str = "The provided cross partition query can not be directly served by the gateway. \
    This is a first chance (internal) exception that all newer clients will know how to handle gracefully. This \
    exception is traced, but unless you see it bubble up as an exception (which only happens on older SDK clients), \
    then you can safely ignore this message.";

const LISTED_AGGREGATES: &str = "Cross partition query only supports 'VALUE <AggregateFunc>' for aggregates.";

/// What a query reads, sorted and without overlap; a query that can find nothing reads the point that no item has.
pub fn ranges(prepared: &Prepared, partition_key: &PartitionKeyDefinition) -> Vec<QueryRange> {
    ranges::of(&prepared.compiled, partition_key)
}

/// Whether a query counts the rows of a DISTINCT subquery. A partition evaluates subqueries item by item, so such a
/// query needs its plan even where it reads one partition only.
pub fn counts_distinct_rows(query: &Query) -> bool {
    rewrite::distinct_count(query).is_some()
}

/// Whether [`plan`] would let a query pass that comes without a plan, because the rows of the partitions are its
/// rows. Much cheaper than the plan, and true of most queries.
pub fn is_served_as_it_is(query: &Query, prepared: &Prepared) -> bool {
    prepared.needs().is_concatenable() && prepared.merge_refusal().is_none() && !counts_distinct_rows(query)
}

/// Makes the plan of a query. Parameter names include their `@`.
pub fn plan(
    query: &Query,
    parameters: &[(String, Value)],
    context: &PlanContext<'_>,
) -> Result<QueryPlan, SqlError> {
    // Scripts and composite indexes are the partitions' business: they refuse what they cannot run.
    let env = QueryEnv { udfs: Some(Arc::new(AnyUdf)), composite_indexes: None, ..context.env.clone() };
    let prepared = Prepared::new(query, parameters, &env)?;
    if let Some(refusal) = prepared.merge_refusal() {
        return Err(refusal);
    }
    let ranges = ranges::of(&prepared.compiled, context.partition_key);
    let pinned = matches!(ranges.as_slice(), [range] if range.is_point());
    let merge = match &prepared.compiled.rank {
        Some(rank) => {
            let skip_rewrite = context.features.has(Feature::HybridSearchSkipOrderByRewrite);
            Merge::Ranks(hybrid::hybrid_info(query, parameters, &prepared, rank, skip_rewrite))
        }
        None => Merge::Rows(rewrite::query_info(query, &prepared, pinned)),
    };
    let trivial = matches!(&merge, Merge::Rows(info) if info.is_trivial());
    // Distinct rows are counted by whoever sees all of them: a partition computes subqueries item by item.
    let counted = matches!(&merge, Merge::Rows(QueryInfo { distinct_count: Some(_), .. }));
    let gateway = if trivial || context.partition_key.system_key && !counted {
        Gateway::Serve
    } else if prepared.lists_aggregates() {
        // Also where the filter leads to one partition: only a key or range in the headers passes the gateway by.
        Gateway::Refuse(LISTED_AGGREGATES)
    } else if pinned && !counted {
        Gateway::Serve
    } else {
        Gateway::NeedsPlan
    };
    Ok(QueryPlan { needed: needed(&merge), merge, ranges, gateway })
}

impl QueryPlan {
    /// The refusal of a client that cannot carry out this plan.
    pub fn refusal(&self, supported: Features) -> Option<String> {
        let missing = self.needed.without(supported);
        (!missing.is_empty()).then(|| missing.refusal())
    }

    /// What a client must be able to do to carry out this plan.
    pub fn needed(&self) -> Features {
        self.needed
    }

    pub fn gateway(&self) -> Gateway {
        self.gateway
    }
}

fn needed(merge: &Merge) -> Features {
    let mut needed = Features::NONE;
    let info = match merge {
        Merge::Rows(info) => info,
        Merge::Ranks(info) => {
            needed.add(Feature::HybridSearch);
            if !info.weights.is_empty() {
                needed.add(Feature::WeightedRankFusion);
            }
            return needed;
        }
    };
    let listed = || info.aliases.iter().filter_map(|(_, kind)| *kind);
    for kind in info.aggregates.iter().copied().chain(listed()) {
        match kind {
            AggregateKind::MakeList | AggregateKind::MakeSet => needed.add(Feature::ListAndSetAggregate),
            AggregateKind::CountIf => needed.add(Feature::CountIf),
            _ => {}
        }
    }
    let conditions = [
        (Feature::Aggregate, !info.aggregates.is_empty()),
        (Feature::NonValueAggregate, listed().next().is_some()),
        (Feature::MultipleAggregates, listed().count() > 1),
        (Feature::Distinct, info.distinct != Distinct::None),
        (Feature::DCount, info.distinct_count.is_some()),
        (Feature::GroupBy, !info.group_by_expressions.is_empty()),
        (Feature::OffsetAndLimit, info.offset.is_some() || info.limit.is_some()),
        (Feature::OrderBy, info.order_by.len() == 1),
        (Feature::MultipleOrderBy, info.order_by.len() > 1),
        (Feature::NonStreamingOrderBy, info.non_streaming_order_by),
        (Feature::Top, info.top.is_some()),
    ];
    for (feature, _) in conditions.into_iter().filter(|(_, needed)| *needed) {
        needed.add(feature);
    }
    needed
}

/// Stands for whatever functions the container has.
struct AnyUdf;

impl Udfs for AnyUdf {
    fn exists(&self, _: &str) -> bool {
        true
    }

    fn call(&self, name: &str, _: &[Value]) -> Result<Value, SqlError> {
        Err(SqlError::whole("", format!("The user-defined function '{name}' cannot run while planning.")))
    }
}
