//! How far a partition is, without anything of what it holds: what clients of the direct protocol ask replicas when
//! two of them have not told the same, until enough of them have come as far as the furthest.
//!
//! All replicas of a partition are its one owner here, so the first answer is always far enough; no request waits.

use http::StatusCode;
use orrery_engine::{Error, Kind};

use crate::errors::{ApiError, Plane, Result, substatus};
use crate::headers::{Answer, At, RANGE_ID};
use crate::service::Context;
use crate::{items, scope};

/// Of the partition that the request names: by a key, by a range, or by the address that it uses.
pub fn container(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let key = scope::header_key(context)?;
    let named = context.text(RANGE_ID).map(scope::range_id).transpose()?;
    let container = &target.container;
    let position = match named.or(context.direct.and_then(|direct| direct.range)) {
        _ if !key.0.is_empty() => container.position_of(&key),
        Some(range) => container.position_for(range, &[]),
        None => {
            container.first_position().ok_or_else(|| Error::new(Kind::RangeGone, "There is no partition."))
        }
    };
    let position = position.map_err(|error| match error.kind {
        // Only who names the range himself is told that it has gone; an address is merely old.
        Kind::RangeGone if named.is_none() => {
            ApiError::from_engine(error, Plane::Items).substatus(substatus::COMPLETING_SPLIT)
        }
        _ => ApiError::from_engine(error, Plane::Items),
    })?;
    let answer = context.answer(StatusCode::OK).at(items::at(position)).charge(0.0);
    Ok(answer.owner(target.alt_path(), target.rid.as_str()))
}

/// Of the catalog.
pub fn catalog(context: &Context<'_>) -> Answer {
    let at = At::catalog(context.catalog_at().lsn);
    context.answer(StatusCode::OK).at(at).charge(0.0)
}
