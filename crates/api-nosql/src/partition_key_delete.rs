//! `POST …/operations/partitionkeydelete`: every item of one partition key value at once.

use http::StatusCode;

use crate::errors::{ApiError, KEY_TOO_SHORT, Result, substatus};
use crate::headers::{Answer, PARTITION_KEY};
use crate::items::{answer, at, failed, place};
use crate::scope;
use crate::service::Context;

pub async fn execute(context: &Context<'_>) -> Result<Answer> {
    let target = context.container_inside()?;
    let key = scope::key(context)?;
    // Without the header the key would be `[]`, and in a container without a key of its own that is everything.
    if context.text(PARTITION_KEY).is_none() {
        let error = ApiError::bad_request(KEY_TOO_SHORT).substatus(substatus::PARTITION_KEY_MISMATCH);
        return Err(error.at(place(&target, &key)));
    }
    match target.container.delete_partition_key(&key).await {
        Ok(ack) => Ok(answer(context, &target, StatusCode::OK, at(ack.at), ack.charge_ru)),
        Err(error) => Err(failed(&target, &key, error)),
    }
}
