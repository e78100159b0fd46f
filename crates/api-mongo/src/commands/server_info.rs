//! What the server says about itself, and settings that tools look at.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use orrery_mongo::{Bson, Document, Error, Result, doc, error::code};

use super::{Call, TABLE, options};
use crate::auth::Access;
use crate::config::AuthMode;
use crate::reply::Reply;

pub fn server_status(call: &mut Call<'_>) -> Result<Reply> {
    let core = call.core;
    let count = |counter: &AtomicU64| i64::try_from(counter.load(Relaxed)).unwrap_or(i64::MAX);
    let up = core.started.elapsed();
    let counts = &core.counts;
    Ok(doc! {
        "host" => call.client.local.to_string(),
        "version" => core.config.version.text(),
        "process" => "mongod",
        "pid" => i64::from(std::process::id()),
        "uptime" => up.as_secs_f64(),
        "uptimeMillis" => i64::try_from(up.as_millis()).unwrap_or(i64::MAX),
        "localTime" => Bson::Date(core.now_ms()),
        "connections" => doc! {
            "current" => count(&counts.connections),
            "available" => 10_000i64,
            "totalCreated" => i64::from(counts.connections_ever.load(Relaxed)),
        },
        "opcounters" => doc! {
            "insert" => count(&counts.inserts),
            "query" => count(&counts.queries),
            "update" => count(&counts.updates),
            "delete" => count(&counts.deletes),
            "getmore" => count(&counts.get_mores),
            "command" => count(&counts.commands),
        },
        "network" => doc! { "numRequests" => count(&counts.requests) },
        "metrics" => doc! { "cursor" => doc! { "open" => doc! { "total" => core.cursors.len() as i64 } } },
        "logicalSessionRecordCache" => doc! { "activeSessionsCount" => core.sessions.len() as i32 },
        "repl" => doc! {
            "setName" => super::handshake::SET_NAME,
            "ismaster" => true,
            "secondary" => false,
            "me" => call.client.local.to_string(),
            "primary" => call.client.local.to_string(),
        },
        "storageEngine" => doc! { "name" => "orrery", "supportsCommittedReads" => true, "persistent" => true },
        "mem" => doc! { "bits" => 64, "supported" => true },
    }
    .into())
}

pub fn host_info(call: &mut Call<'_>) -> Result<Reply> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Ok(doc! {
        "system" => doc! {
            "currentTime" => Bson::Date(call.core.now_ms()),
            "hostname" => call.client.local.ip().to_string(),
            "cpuAddrSize" => 64,
            "memSizeMB" => (call.core.config.memory.limit_bytes() >> 20) as i64,
            "memLimitMB" => (call.core.config.memory.limit_bytes() >> 20) as i64,
            "numCores" => cores as i32,
            "cpuArch" => std::env::consts::ARCH,
            "numaEnabled" => false,
        },
        "os" => doc! { "type" => "Linux", "name" => std::env::consts::OS, "version" => "" },
        "extra" => Document::new(),
    }
    .into())
}

/// The settings that are shown.
fn parameters(call: &Call<'_>) -> Document {
    let version = call.core.config.version;
    doc! {
        "enableTestCommands" => true,
        "requireApiVersion" => false,
        "authenticationMechanisms" => Bson::array(vec!["SCRAM-SHA-1".into(), "SCRAM-SHA-256".into()]),
        "featureCompatibilityVersion" => doc! { "version" => version.feature() },
        "logLevel" => 0,
        "quiet" => false,
        "transactionLifetimeLimitSeconds" => crate::sessions::TRANSACTION_TIME_MAX.as_secs() as i32,
        "cursorTimeoutMillis" => 600_000i64,
        "localLogicalSessionTimeoutMinutes" => crate::sessions::TIMEOUT_MINUTES,
        "internalQueryMaxBlockingSortMemoryUsageBytes" => 104_857_600,
    }
}

pub fn get_parameter(call: &mut Call<'_>) -> Result<Reply> {
    let all = parameters(call);
    let everything = match call.argument() {
        Bson::String(star) => &**star == "*",
        Bson::Document(how) => how.get("allParameters").is_some_and(Bson::is_truthy),
        _ => false,
    };
    if everything {
        return Ok(all.into());
    }
    let mut reply = Document::new();
    for (name, _) in call.body.iter().skip(1) {
        if let Some(value) = all.get(name) {
            reply.push(name.clone(), value.clone());
        }
    }
    match reply.is_empty() {
        true => Err(Error::new(code::INVALID_OPTIONS, "no option found to get")),
        false => Ok(reply.into()),
    }
}

pub fn set_parameter(call: &mut Call<'_>) -> Result<Reply> {
    let all = parameters(call);
    let (name, value) =
        call.body.iter().nth(1).ok_or_else(|| Error::new(code::INVALID_OPTIONS, "no option found to set"))?;
    match all.get(name) {
        // Settings of tests, which have no effect here.
        _ if matches!(
            &**name,
            "logLevel" | "quiet" | "requireApiVersion" | "transactionLifetimeLimitSeconds"
        ) =>
        {
            Ok(doc! { "was" => all.get(name).cloned().unwrap_or(Bson::Null) }.into())
        }
        Some(known) if known.kind() == value.kind() => Ok(doc! { "was" => known.clone() }.into()),
        _ => Err(Error::new(
            code::INVALID_OPTIONS,
            format!("attempted to set unrecognized parameter [{name}], use help:true to see options"),
        )),
    }
}

pub fn get_cmd_line_opts(call: &mut Call<'_>) -> Result<Reply> {
    let required = call.core.config.auth == AuthMode::Required;
    let mut parsed = doc! {
        "net" => doc! { "port" => i32::from(call.client.local.port()) },
        "replication" => doc! { "replSet" => super::handshake::SET_NAME },
        "setParameter" => doc! { "enableTestCommands" => "1" },
    };
    if required {
        parsed.push("security", doc! { "authorization" => "enabled" });
    }
    let argv = ["orrery", "serve"].map(Bson::from).to_vec();
    Ok(doc! { "argv" => Bson::array(argv), "parsed" => parsed }.into())
}

pub fn get_log(call: &mut Call<'_>) -> Result<Reply> {
    match call.argument().as_str() {
        Some("*") => {
            let names = ["global", "startupWarnings"].map(Bson::from).to_vec();
            Ok(doc! { "names" => Bson::array(names) }.into())
        }
        Some("global" | "startupWarnings" | "rs") => {
            Ok(doc! { "totalLinesWritten" => 0, "log" => Bson::array(Vec::new()) }.into())
        }
        Some(other) => Err(Error::new(code::OPERATION_FAILED, format!("no RamLog named: {other}"))),
        None => Err(Error::type_mismatch("Argument to getLog must be of type String")),
    }
}

pub fn list_commands(_: &mut Call<'_>) -> Result<Reply> {
    let mut commands = Document::new();
    for command in TABLE {
        let entry = doc! {
            "help" => command.about,
            "requiresAuth" => command.access != Access::Nobody,
            "secondaryOk" => command.access == Access::Read,
            "adminOnly" => command.access == Access::Administer,
            "apiVersions" => Bson::array(if command.stable { vec!["1".into()] } else { Vec::new() }),
        };
        commands.push(command.name, entry);
    }
    Ok(doc! { "commands" => commands }.into())
}

pub fn top(call: &mut Call<'_>) -> Result<Reply> {
    Ok(doc! { "totals" => call.core.operations.top() }.into())
}

/// Commands under way; of those members of the request that are no options all must be met.
pub fn current_op(call: &mut Call<'_>) -> Result<Reply> {
    const OPTIONS: [&str; 5] = ["currentOp", "$all", "$ownOps", "$truncateOps", "comment"];
    let wanted: Document = (call.body.iter().skip(1))
        .filter(|(name, _)| !OPTIONS.contains(&&***name) && !options::is_generic(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let context = call.context(None)?;
    let filter = orrery_mongo::filter::Filter::parse(&wanted, &context)?;
    let mut shown = Vec::new();
    for operation in call.core.operations.shown(&call.client.local.to_string()) {
        if filter.matches(orrery_mongo::ValueRef::OwnedDocument(&operation), &context)? {
            shown.push(Bson::from(operation));
        }
    }
    Ok(doc! { "inprog" => Bson::array(shown) }.into())
}

pub fn kill_op(call: &mut Call<'_>) -> Result<Reply> {
    let number = options::required(call.body, "op")?;
    let number = number.as_i64().and_then(|number| i32::try_from(number).ok());
    // As MongoDB does: whoever names one that has ended already is told the same.
    let _ = number.is_some_and(|number| call.core.operations.kill(number));
    Ok(doc! { "info" => "attempting to kill op" }.into())
}

pub fn repl_set_get_status(call: &mut Call<'_>) -> Result<Reply> {
    let (seconds, increment) = call.core.cluster_time();
    let op_time = doc! { "ts" => Bson::Timestamp { seconds, increment }, "t" => 1i64 };
    let member = doc! {
        "_id" => 0,
        "name" => call.client.local.to_string(),
        "health" => 1.0,
        "state" => 1,
        "stateStr" => "PRIMARY",
        "uptime" => call.core.started.elapsed().as_secs() as i32,
        "optime" => op_time.clone(),
        "self" => true,
    };
    Ok(doc! {
        "set" => super::handshake::SET_NAME,
        "date" => Bson::Date(call.core.now_ms()),
        "myState" => 1,
        "term" => 1i64,
        "optimes" => doc! { "lastCommittedOpTime" => op_time.clone(), "appliedOpTime" => op_time },
        "members" => Bson::array(vec![member.into()]),
    }
    .into())
}

pub fn repl_set_get_config(call: &mut Call<'_>) -> Result<Reply> {
    let member =
        doc! { "_id" => 0, "host" => call.client.local.to_string(), "priority" => 1.0, "votes" => 1 };
    let config = doc! {
        "_id" => super::handshake::SET_NAME,
        "version" => 1,
        "term" => 1i64,
        "members" => Bson::array(vec![member.into()]),
        "settings" => Document::new(),
    };
    Ok(doc! { "config" => config }.into())
}

pub fn get_default_rw_concern(_: &mut Call<'_>) -> Result<Reply> {
    Ok(doc! {
        "defaultReadConcern" => doc! { "level" => "local" },
        "defaultWriteConcern" => doc! { "w" => "majority", "wtimeout" => 0 },
        "defaultWriteConcernSource" => "implicit",
        "defaultReadConcernSource" => "implicit",
    }
    .into())
}

pub fn profile(call: &mut Call<'_>) -> Result<Reply> {
    let level = match call.argument().as_i64() {
        Some(level @ 0..=2) => i32::try_from(level).ok(),
        Some(_) => None,
        None => return Err(Error::type_mismatch("the level of the profiler is a number")),
    };
    let slow_ms = options::number(call.body, "slowms")?;
    let (was, slow_ms) = call.core.operations.profile(call.database, level, slow_ms);
    Ok(doc! { "was" => was, "slowms" => slow_ms as i32, "sampleRate" => 1.0 }.into())
}

pub fn get_last_error(call: &mut Call<'_>) -> Result<Reply> {
    Ok(doc! { "connectionId" => call.client.number, "n" => 0, "err" => Bson::Null }.into())
}

pub fn configure_fail_point(call: &mut Call<'_>) -> Result<Reply> {
    if !call.client.local.ip().is_loopback() {
        return Err(Error::new(
            code::UNAUTHORIZED,
            "fail points are for tests, and set over a loopback address only",
        ));
    }
    match call.argument().as_str() {
        Some("failCommand") => call.core.fail_points.configure(call.body)?,
        Some("failGetMoreAfterCursorCheckout") => call.core.fail_points.configure_get_more(call.body)?,
        Some("maxTimeAlwaysTimeOut") => call.core.fail_points.configure_time(call.body)?,
        Some("onPrimaryTransactionalWrite") => call.core.fail_points.configure_write(call.body)?,
        Some(other) => return Err(Error::new(code::NO_SUCH_KEY, format!("{other} not found"))),
        None => return Err(Error::type_mismatch("a fail point has a name")),
    }
    Ok(Document::new().into())
}

/// Commands that change nothing here and are sent by tools and tests.
pub fn nothing(_: &mut Call<'_>) -> Result<Reply> {
    Ok(Document::new().into())
}
