//! The server under attack: the real binary with few resources, watched from outside through `/proc`.
//!
//! Memory is the highest resident size since it was last asked to forget (`clear_refs`), so that nothing between two
//! looks is missed. Where there is no `/proc` (macOS) memory and processor time are unknown and not judged.

use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::process::{Leashed, Task};

/// How the server is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// Further arguments of `serve`.
    pub arguments: &'static [&'static str],
    /// What `--memory-limit` is told and its memory is judged by.
    pub memory_limit_mb: u64,
    /// Soft and hard limit of open files.
    pub open_files: Option<(u32, u32)>,
}

/// What most attacks are tried on: a small machine, nothing else unusual.
pub const USUAL: Setup = Setup { arguments: &[], memory_limit_mb: 1024, open_files: None };

const START_TIME_MAX: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(10);
/// The soft limit first: a hard one below it would be refused.
const LIMITED: &str = r#"[ "$1" = - ] || { ulimit -Sn "$1"; ulimit -Hn "$2"; }; shift 2; exec "$@""#;

pub struct Victim {
    // Before `directory`: the server uses it to its end.
    process: Leashed,
    _directory: Directory,
    log: PathBuf,
    pub address: SocketAddr,
    pub setup: Setup,
    process_id: u32,
}

/// A directory that goes when this does.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left of a test directory harms nobody; there is no one to tell either.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Victim {
    /// Starts `binary serve` on a free port with a directory of its own.
    pub fn start(context: &Context, binary: &Path, name: &str, setup: Setup) -> Result<Victim> {
        let name = format!("{name}-{}", std::process::id());
        let directory = Directory(context.target.join("xtask/attack").join(&name));
        std::fs::create_dir_all(&directory.0)?;
        let log = context.target.join("xtask/logs").join(format!("victim-{name}.log"));
        std::fs::create_dir_all(log.parent().expect("the log lies in a directory"))?;
        let (soft, hard) = match setup.open_files {
            Some((soft, hard)) => (soft.to_string(), hard.to_string()),
            None => ("-".to_owned(), "-".to_owned()),
        };
        let mut task = Task::new(context, "sh")
            .args(&["-c", LIMITED, "sh", &soft, &hard])
            .arg(binary)
            .args(&["serve", "--listen", "127.0.0.1:0", "--log-format", "json", "--log-requests", "off"])
            .args(&["--shutdown-timeout", "1s", "--data-dir"])
            .arg(&directory.0)
            .args(setup.arguments);
        if knows(binary, "--memory-limit")? {
            task = task.args(&["--memory-limit", &format!("{}MiB", setup.memory_limit_mb)]);
        }
        // The surroundings of a developer must not change what is attacked.
        for (variable, _) in std::env::vars().filter(|(variable, _)| variable.starts_with("ORRERY_")) {
            task = task.without_env(&variable);
        }
        let mut process = task.start(Some(File::create(&log)?))?;
        let deadline = Instant::now() + START_TIME_MAX;
        loop {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            // A line that is still being written is no JSON yet.
            let lines = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
            if let Some(block) = lines.into_iter().find(|line| line["listen"].is_array()) {
                let address = block["listen"][0].as_str().and_then(|text| text.parse().ok());
                let process_id = block["pid"].as_u64().context("the start-up block has no pid")? as u32;
                let address = address.context("the start-up block has no address")?;
                return Ok(Victim { process, _directory: directory, log, address, setup, process_id });
            }
            if let Some(status) = process.try_wait()? {
                bail!("the server ended by itself ({status}):\n{}", text.trim());
            }
            if Instant::now() >= deadline {
                bail!("no server within {} s; see {}", START_TIME_MAX.as_secs(), log.display());
            }
            std::thread::sleep(POLL);
        }
    }

    /// How it ended, if it did.
    pub fn death(&mut self) -> Result<Option<String>> {
        let Some(status) = self.process.try_wait()? else { return Ok(None) };
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let last = log.lines().last().unwrap_or_default().to_owned();
        Ok(Some(format!("{status}; last words: {last}")))
    }

    /// From here on the peak is counted anew.
    pub fn forget_peak(&self) {
        // Not permitted everywhere; then the peak is that of the whole life, which judges no milder.
        let _ = std::fs::write(format!("/proc/{}/clear_refs", self.process_id), "5");
    }

    /// Resident bytes: the peak since it was forgotten, and now.
    pub fn memory(&self) -> Option<(u64, u64)> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.process_id)).ok()?;
        let field = |name: &str| {
            let line = status.lines().find(|line| line.starts_with(name))?;
            line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
        };
        Some((field("VmHWM:")?, field("VmRSS:")?))
    }

    /// Processor time spent so far, all threads.
    pub fn processor_time(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process_id)).ok()?;
        // The name, in parentheses, may hold anything; what follows it is numbers.
        let (_, fields) = stat.rsplit_once(')')?;
        let ticks = |place: usize| fields.split_whitespace().nth(place)?.parse::<u64>().ok();
        // The kernel's unit for user space is a hundredth of a second on every system there is.
        Some(Duration::from_millis((ticks(11)? + ticks(12)?) * 10))
    }

    /// Threads and open descriptors, for the report of a failure.
    pub fn figures(&self) -> String {
        let count = |what: &str| {
            std::fs::read_dir(format!("/proc/{}/{what}", self.process_id)).map_or(0, Iterator::count)
        };
        format!("{} threads, {} descriptors", count("task"), count("fd"))
    }
}

/// Whether this binary has the option, so that older ones can be attacked too.
fn knows(binary: &Path, option: &str) -> Result<bool> {
    let help = Command::new(binary).args(["serve", "--help"]).output();
    let help = help.with_context(|| format!("cannot run {}", binary.display()))?;
    Ok(String::from_utf8_lossy(&help.stdout).contains(option))
}
