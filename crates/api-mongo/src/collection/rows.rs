//! Rows behind rows, for what `find` does and pipelines do not.

use orrery_mongo::pipeline::{BoxedRows, Row, Rows};
use orrery_mongo::projection::Projection;
use orrery_mongo::{Context, Result};

/// Rows with a projection.
pub struct Projected {
    pub rows: BoxedRows,
    pub projection: Projection,
    pub context: Context,
}

impl Rows for Projected {
    fn next(&mut self) -> Result<Option<Row>> {
        let Some(row) = self.rows.next()? else { return Ok(None) };
        self.projection.apply(row.value()?, &self.context).map(|document| Some(Row::Built(document)))
    }
}
