//! The condition of a patch: `from c where c.n = 1`, tested on the stored version before anything changes.

use std::rc::Rc;
use std::sync::Arc;

use orrery_engine::{Condition, Error, Item};
use orrery_query::{Meter, Prepared};

use super::{query_env, request};
use crate::errors::Result;
use crate::service::{Context, Target};

pub fn compile(context: &Context<'_>, target: &Target, text: &str) -> Result<Condition> {
    let parsed = orrery_sql::parse_condition(text).map_err(|error| request::failed(&error, false))?;
    let prepared = Prepared::condition(&parsed, &query_env::of_container(context, target))
        .map_err(|error| request::failed(&error, false))?;
    let rid = target.rid;
    let budget = (*context.budget).clone();
    Ok(Arc::new(move |item: &Item| {
        let meter = Rc::new(Meter::new(&budget));
        query_env::with_row(&rid, item, |row| prepared.matches(row, &meter))
            .map_err(|error| Error::bad_request(error.message))
    }))
}
