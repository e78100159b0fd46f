//! The consistency that a request asks for, and the session that it continues.
//!
//! One owner serves each partition and answers from what is durable, so every read is as good as the strongest level;
//! what is left to check is that a request does not ask for more than the account promises, and that a session token
//! is not ahead of the data (it can be, after a restore or when it belongs to something else).

use orrery_engine::ConsistencyLevel;

use crate::errors::{ApiError, Result};
use crate::headers::{CONSISTENCY_LEVEL, SESSION_TOKEN};
use crate::service::Context;
use crate::session;

/// The changes that the answer must include, per range. Empty without a session.
pub fn session(context: &Context<'_>) -> Result<Vec<(u32, u64)>> {
    let level = level(context)?;
    let Some(token) = context.text(SESSION_TOKEN).filter(|token| !token.is_empty()) else {
        return Ok(Vec::new());
    };
    let wanted = session::parse(token)
        .map_err(|_| ApiError::refused(format!("The session token provided '{token}' is invalid.")))?;
    // Levels below a session promise nothing about it.
    Ok(if level.keeps_sessions() { wanted } else { Vec::new() })
}

/// The level in force for this request.
pub fn level(context: &Context<'_>) -> Result<ConsistencyLevel> {
    let account = context.service.config.consistency;
    let Some(text) = context.text(CONSISTENCY_LEVEL).filter(|text| !text.is_empty()) else {
        return Ok(account);
    };
    let asked = ConsistencyLevel::parse(text).ok_or_else(|| {
        ApiError::refused(format!(
            "The value '{text}' specified for the header 'x-ms-consistency-level' is invalid."
        ))
    })?;
    account.asked(Some(asked)).map_err(|_| {
        ApiError::refused(format!(
            "ConsistencyLevel {} specified in the request is invalid when service is configured with consistency level {}. Ensure the request consistency level is not stronger than the service consistency level.",
            asked.name(),
            account.name()
        ))
    })
}
