//! What a query needs to know from outside: the clock, scripts, and the container's policies.

use std::sync::Arc;

use orrery_budget::Budget;
use orrery_model::{PropertyPath, Value};
use orrery_sql::{Direction, Query, SqlError};

use crate::language::Language;

/// User-defined functions, run by whoever can run scripts.
pub trait Udfs: Send + Sync {
    /// Whether a function of this name exists; a query that calls another is refused.
    fn exists(&self, name: &str) -> bool;

    /// Calls a function. Arguments may be undefined, and so may the result.
    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, SqlError>;
}

/// A computed property of the container: `c.name` stands for its expression.
#[derive(Clone, Debug)]
pub struct ComputedProperty {
    pub name: String,
    pub query: Query,
}

/// How vectors of a path are compared when the query does not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum DistanceFunction {
    #[default]
    Cosine,
    DotProduct,
    Euclidean,
}

impl DistanceFunction {
    /// The name policies and queries use.
    pub fn parse(name: &str) -> Option<DistanceFunction> {
        [
            ("cosine", DistanceFunction::Cosine),
            ("dotproduct", DistanceFunction::DotProduct),
            ("euclidean", DistanceFunction::Euclidean),
        ]
        .into_iter()
        .find(|(text, _)| text.eq_ignore_ascii_case(name))
        .map(|(_, function)| function)
    }
}

/// Everything outside the query's text and parameters that its meaning depends on.
#[derive(Clone, Default)]
pub struct QueryEnv {
    /// Now, in 100-nanosecond steps since 1970. One value for the whole query.
    pub now_ticks: i64,
    /// Seed of RAND; the same seed gives the same numbers.
    pub random_seed: u64,
    pub udfs: Option<Arc<dyn Udfs>>,
    pub computed_properties: Vec<ComputedProperty>,
    /// Distance function per vector path.
    pub vectors: Vec<(PropertyPath, DistanceFunction)>,
    /// The language of texts, and that of paths with another one.
    pub language: Language,
    pub languages: Vec<(PropertyPath, Language)>,
    /// Coordinates are planar (`Geometry`), not on the earth (`Geography`).
    pub geometry: bool,
    /// Composite indexes for ORDER BY over several paths; `None` leaves that unchecked.
    pub composite_indexes: Option<Vec<Vec<(PropertyPath, Direction)>>>,
    /// What making the query ready may use: its constants can be much larger than its text.
    pub budget: Option<Budget>,
}

impl std::fmt::Debug for QueryEnv {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("QueryEnv").field("now_ticks", &self.now_ticks).finish_non_exhaustive()
    }
}
