//! What fits nowhere else: fail(), profile(), call(), io() and the steps of graph computers.

use super::*;

pub(crate) fn build_fail(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let message = match call.args {
        [] => "fail() step triggered".to_owned(),
        [message] => crate::text::text_of(message),
        _ => return Err(call.wrong()),
    };
    Ok(Each::op(Parts::default(), move |_, _, _, _| Err(Error::runtime(message.clone()))))
}

/// Steps that are known and not offered, each with what to write instead where there is something.
pub(crate) fn build_refused(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let reason = match call.name {
        "io" | "read" | "write" => "a server's files are not reached by traversals",
        "call" => "there are no services to call",
        "shortestPath" => "write repeat(both().simplePath()).until(...).path().limit(1)",
        _ => "there is no graph computer",
    };
    Err(Error::not_supported(format!("Gremlin op {}() is not supported: {reason}.", call.name)))
}
