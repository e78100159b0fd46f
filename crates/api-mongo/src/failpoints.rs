//! Failures on purpose, as drivers' tests ask for them: `configureFailPoint` with `failCommand`.

use std::time::Duration;

use orrery_mongo::{Bson, Document, Error, Result, error::code};
use parking_lot::Mutex;

/// Commands that one fail point names.
const COMMANDS_MAX: usize = 256;
/// How long a fail point may hold up a command.
const BLOCK_MAX: Duration = Duration::from_secs(60);

#[derive(Default)]
pub struct FailPoints {
    command: Mutex<Option<FailPoint>>,
    /// Commands with a time of their own run out of it at once: how often, `None` for always.
    time: Mutex<Option<Option<u64>>>,
    /// Of retryable writes: how often, and whether before they are written.
    write: Mutex<Option<(u64, bool)>>,
}

struct FailPoint {
    commands: Vec<String>,
    /// `None`: always.
    times: Option<u64>,
    skip: u64,
    app_name: Option<String>,
    effect: Effect,
}

/// What a fail point does to one command.
#[derive(Clone, Debug, Default)]
pub struct Effect {
    pub block: Option<Duration>,
    pub close: bool,
    pub error: Option<i32>,
    /// Instead of those that the error would have.
    pub labels: Option<Vec<String>>,
    /// The command is run, and this added to its reply.
    pub write_concern_error: Option<Document>,
    /// It stands for what goes wrong inside of the command: labels are those of such an error.
    pub inside: bool,
}

impl FailPoints {
    /// Sets or takes away the fail point.
    pub fn configure(&self, command: &Document) -> Result<()> {
        self.configure_command(command, None)
    }

    /// `failGetMoreAfterCursorCheckout`: `getMore` fails while it has its cursor.
    pub fn configure_get_more(&self, command: &Document) -> Result<()> {
        self.configure_command(command, Some("getMore"))
    }

    fn configure_command(&self, command: &Document, only: Option<&str>) -> Result<()> {
        let inside = only.is_some();
        let data = command.get("data").and_then(Bson::as_document).cloned().unwrap_or_default();
        let (times, skip) = match command.get("mode") {
            Some(Bson::String(mode)) if &**mode == "off" => {
                *self.command.lock() = None;
                return Ok(());
            }
            Some(Bson::String(mode)) if &**mode == "alwaysOn" => (None, 0),
            Some(Bson::Document(mode)) => {
                let count =
                    |name: &str| mode.get(name).and_then(Bson::as_i64).and_then(|n| u64::try_from(n).ok());
                (count("times"), count("skip").unwrap_or(0))
            }
            _ => {
                return Err(Error::bad_value(
                    "the mode of a fail point is off, alwaysOn, {times: n} or {skip: n}",
                ));
            }
        };
        let commands = data.get("failCommands").and_then(Bson::as_array).unwrap_or_default();
        if commands.len() > COMMANDS_MAX {
            return Err(Error::bad_value(format!("a fail point names at most {COMMANDS_MAX} commands")));
        }
        let truthy = |name: &str| data.get(name).is_some_and(Bson::is_truthy);
        let block = data.get("blockTimeMS").and_then(Bson::as_i64).and_then(|ms| u64::try_from(ms).ok());
        let labels = data.get("errorLabels").and_then(Bson::as_array);
        let effect = Effect {
            block: block
                .filter(|_| truthy("blockConnection"))
                .map(|ms| Duration::from_millis(ms).min(BLOCK_MAX)),
            close: truthy("closeConnection"),
            error: data.get("errorCode").and_then(Bson::as_i64).and_then(|number| i32::try_from(number).ok()),
            labels: labels.map(|labels| labels.iter().filter_map(Bson::as_str).map(str::to_owned).collect()),
            write_concern_error: data.get("writeConcernError").and_then(Bson::as_document).cloned(),
            inside,
        };
        *self.command.lock() = Some(FailPoint {
            commands: commands.iter().filter_map(Bson::as_str).chain(only).map(str::to_owned).collect(),
            times,
            skip,
            app_name: data.get("appName").and_then(Bson::as_str).map(str::to_owned),
            effect,
        });
        Ok(())
    }

    /// `maxTimeAlwaysTimeOut`: every command with a `maxTimeMS` runs out of time.
    pub fn configure_time(&self, command: &Document) -> Result<()> {
        let times = match command.get("mode") {
            Some(Bson::String(mode)) if &**mode == "off" => None,
            Some(Bson::String(mode)) if &**mode == "alwaysOn" => Some(None),
            Some(Bson::Document(mode)) => {
                let times = mode.get("times").and_then(Bson::as_i64).and_then(|n| u64::try_from(n).ok());
                Some(times)
            }
            _ => return Err(Error::bad_value("the mode of a fail point is off, alwaysOn or {times: n}")),
        };
        *self.time.lock() = times;
        Ok(())
    }

    /// Whether this command with a time of its own runs out of it.
    pub fn meet_time(&self) -> bool {
        match &mut *self.time.lock() {
            None | Some(Some(0)) => false,
            Some(None) => true,
            Some(Some(left)) => {
                *left -= 1;
                true
            }
        }
    }

    /// `onPrimaryTransactionalWrite`: the connection is closed after a retryable write, or before it.
    pub fn configure_write(&self, command: &Document) -> Result<()> {
        let data = command.get("data").and_then(Bson::as_document);
        let before = data.is_some_and(|data| data.contains("failBeforeCommitExceptionCode"));
        let times = match command.get("mode") {
            Some(Bson::String(mode)) if &**mode == "off" => None,
            Some(Bson::Document(mode)) => {
                mode.get("times").and_then(Bson::as_i64).and_then(|times| u64::try_from(times).ok())
            }
            _ => Some(u64::MAX),
        };
        *self.write.lock() = times.map(|times| (times, before));
        Ok(())
    }

    /// What happens to this retryable write: the connection closes, before it is made (`true`) or after.
    pub fn meet_write(&self) -> Option<bool> {
        let mut set = self.write.lock();
        let (times, before) = set.as_mut()?;
        let before = *before;
        match *times {
            0 => None,
            _ => {
                *times -= 1;
                Some(before)
            }
        }
    }

    /// What happens to this command.
    pub fn meet(&self, command: &str, app_name: Option<&str>) -> Option<Effect> {
        let mut set = self.command.lock();
        let point = set.as_mut()?;
        // Drivers greet with `ismaster` where fail points say `isMaster`: one command under two spellings.
        let fits = point.commands.iter().any(|name| name.eq_ignore_ascii_case(command))
            && point.app_name.as_deref().is_none_or(|name| Some(name) == app_name);
        if !fits {
            return None;
        }
        if point.skip > 0 {
            point.skip -= 1;
            return None;
        }
        match &mut point.times {
            Some(0) => return None,
            Some(left) => *left -= 1,
            None => {}
        }
        Some(point.effect.clone())
    }
}

impl Effect {
    pub fn failure(&self, command: &str) -> Option<Error> {
        let number = self.error?;
        Some(Error::new(number, format!("Failing command via 'failCommand' failpoint: {command}")))
    }
}

/// Codes after which drivers try a command once more.
pub fn is_retryable(number: i32) -> bool {
    matches!(
        number,
        code::HOST_UNREACHABLE
            | code::HOST_NOT_FOUND
            | code::NETWORK_TIMEOUT
            | code::SHUTDOWN_IN_PROGRESS
            | code::READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET
            | code::PRIMARY_STEPPED_DOWN
            | code::EXCEEDED_TIME_LIMIT
            | code::SOCKET_EXCEPTION
            | code::NOT_WRITABLE_PRIMARY
            | code::INTERRUPTED_AT_SHUTDOWN
            | code::INTERRUPTED_DUE_TO_REPL_STATE_CHANGE
            | code::NOT_PRIMARY_NO_SECONDARY_OK
            | code::NOT_PRIMARY_OR_SECONDARY
    )
}

/// Codes after which drivers open a change stream anew behind what they have seen: after the general ones those of a
/// server that can serve the stream again once it has found its place.
pub fn is_resumable(number: i32) -> bool {
    const STALE_SHARD_VERSION: i32 = 63;
    const FAILED_TO_SATISFY_READ_PREFERENCE: i32 = 133;
    const STALE_EPOCH: i32 = 150;
    const RETRY_CHANGE_STREAM: i32 = 234;
    const STALE_CONFIG: i32 = 13388;
    number != code::READ_CONCERN_MAJORITY_NOT_AVAILABLE_YET && is_retryable(number)
        || matches!(
            number,
            STALE_SHARD_VERSION
                | FAILED_TO_SATISFY_READ_PREFERENCE
                | STALE_EPOCH
                | RETRY_CHANGE_STREAM
                | STALE_CONFIG
        )
}

#[cfg(test)]
mod tests {
    use orrery_mongo::doc;

    use super::*;

    #[test]
    fn a_fail_point_finds_a_command_however_its_name_is_spelled() {
        let points = FailPoints::default();
        let data = doc! { "failCommands" => Bson::array(vec!["isMaster".into()]), "errorCode" => 91 };
        points.configure(&doc! { "mode" => doc! { "times" => 1 }, "data" => data }).unwrap();
        assert!(points.meet("ping", None).is_none());
        assert_eq!(points.meet("ismaster", None).unwrap().error, Some(91));
        assert!(points.meet("ismaster", None).is_none());
    }

    #[test]
    fn time_runs_out_as_often_as_asked() {
        let points = FailPoints::default();
        assert!(!points.meet_time());
        points.configure_time(&doc! { "mode" => doc! { "times" => 1 } }).unwrap();
        assert!(points.meet_time());
        assert!(!points.meet_time());
        points.configure_time(&doc! { "mode" => "alwaysOn" }).unwrap();
        assert!(points.meet_time() && points.meet_time());
        points.configure_time(&doc! { "mode" => "off" }).unwrap();
        assert!(!points.meet_time());
    }

    #[test]
    fn a_lost_history_is_not_resumable() {
        assert!(is_resumable(234) && is_resumable(code::NOT_WRITABLE_PRIMARY));
        assert!(!is_resumable(code::CHANGE_STREAM_HISTORY_LOST) && !is_resumable(code::CURSOR_NOT_FOUND));
    }
}
