//! Running other programs so that none of them outlives us.
//!
//! Every program runs under a *leash*: a shell in a process group of its own whose standard input is a pipe that we
//! hold. When the pipe closes, because the step is over, its time is up, or we were killed by whatever means, the
//! shell ends its whole group. No signal handler is needed, and it holds even when we get a SIGKILL.
//!
//! ```text
//! xtask ──pipe──▶ sh ─┬─ waits for the end of the pipe, then: kill the group
//!                     └─ the program (and everything it starts)
//! ```

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::Context;

/// The shell's part of the leash. The watcher lets go of the program's streams, so that nobody who reads them to
/// their end waits for the watcher.
const LEASH: &str = r#"exec 3<&0
(cat <&3; kill -TERM 0) >/dev/null 2>&1 &
"$@" </dev/null 3<&-"#;

/// How long a group may take to end after it was asked to, before it is killed.
const GRACE: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Lines of a log that are shown when its program failed.
const LOG_LINES_SHOWN_MAX: usize = 200;

/// A program that runs under a leash; dropping it ends the program's whole process group.
pub struct Leashed {
    child: Child,
}

impl Leashed {
    pub fn try_wait(&mut self) -> Result<Option<ExitStatus>> {
        Ok(self.child.try_wait()?)
    }

    fn wait_until(&mut self, deadline: Instant) -> Result<Option<ExitStatus>> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(POLL);
        }
    }
}

impl Drop for Leashed {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if let Ok(Some(_)) = self.wait_until(Instant::now() + GRACE) {
            return;
        }
        // It did not listen. Nothing more can be done about a failure here, so none is looked at.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}

/// A program with its arguments, the directory it runs in and how long it may take.
#[derive(Clone)]
pub struct Task {
    arguments: Vec<OsString>,
    variables: Vec<(OsString, Option<OsString>)>,
    directory: PathBuf,
    logs: PathBuf,
    limit: Duration,
}

impl Task {
    pub fn new(context: &Context, program: impl AsRef<OsStr>) -> Self {
        Task {
            arguments: vec![program.as_ref().to_owned()],
            variables: Vec::new(),
            directory: context.root.clone(),
            logs: context.target.join("xtask/logs"),
            limit: Duration::from_secs(600),
        }
    }

    pub fn cargo(context: &Context, arguments: &[&str]) -> Self {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        Task::new(context, cargo).args(arguments)
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(OsString::from));
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.variables.push((name.into(), Some(value.as_ref().to_owned())));
        self
    }

    /// The program must not see this variable, whoever set it.
    pub fn without_env(mut self, name: &str) -> Self {
        self.variables.push((name.into(), None));
        self
    }

    pub fn directory(mut self, directory: impl AsRef<Path>) -> Self {
        self.directory = directory.as_ref().to_owned();
        self
    }

    pub fn limit_seconds(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// The command as a person would type it: paths by their last part.
    fn title(&self) -> String {
        let short = |word: &OsString| {
            let name = Path::new(word).file_name().filter(|_| Path::new(word).is_absolute());
            name.unwrap_or(word).to_string_lossy().into_owned()
        };
        self.arguments.iter().map(short).collect::<Vec<_>>().join(" ")
    }

    /// Starts it; both of its streams go to the file, or where ours go.
    pub fn start(&self, log: Option<File>) -> Result<Leashed> {
        let mut leash = Command::new("sh");
        leash.args(["-c", LEASH, "sh"]).args(&self.arguments).current_dir(&self.directory);
        for (name, value) in &self.variables {
            match value {
                Some(value) => leash.env(name, value),
                None => leash.env_remove(name),
            };
        }
        if let Some(log) = log {
            leash.stderr(log.try_clone()?).stdout(log);
        }
        let child = leash.stdin(Stdio::piped()).process_group(0).spawn();
        Ok(Leashed { child: child.with_context(|| format!("cannot start {}", self.title()))? })
    }

    fn finish(&self, mut leashed: Leashed) -> Result<()> {
        match leashed.wait_until(Instant::now() + self.limit)? {
            Some(status) if status.success() => Ok(()),
            Some(status) => bail!("`{}` failed ({status})", self.title()),
            None => bail!("`{}` did not end within {} s", self.title(), self.limit.as_secs()),
        }
    }

    /// Runs it to its end, with its output shown as it comes.
    pub fn run(&self) -> Result<()> {
        println!("$ {}", self.title());
        self.finish(self.start(None)?)
    }

    /// Runs it to its end with its output shown as it comes, and kept: a failure comes with all of it.
    pub fn run_noted(&self, name: &str) -> std::result::Result<(), (anyhow::Error, String)> {
        println!("$ {}", self.title());
        let path = self.logs.join(format!("{name}.log"));
        let mut shown = self.clone();
        let script = r#"set -o pipefail; "$@" 2>&1 | tee "$0""#;
        shown.arguments = vec!["bash".into(), "-c".into(), script.into(), path.clone().into()];
        shown.arguments.extend_from_slice(&self.arguments);
        let run = || {
            std::fs::create_dir_all(&self.logs)?;
            self.finish(shown.start(None)?)
        };
        run().map_err(|error| {
            let log = std::fs::read(&path).unwrap_or_default();
            (error, String::from_utf8_lossy(&log).into_owned())
        })
    }

    /// Runs it to its end with its output in a file, which is shown if it fails and given back if not.
    pub fn run_logged(&self, name: &str) -> Result<String> {
        println!("$ {}", self.title());
        std::fs::create_dir_all(&self.logs)?;
        let path = self.logs.join(format!("{name}.log"));
        let result = self.finish(self.start(Some(File::create(&path)?))?);
        let text = String::from_utf8_lossy(&std::fs::read(&path)?).into_owned();
        if let Err(error) = result {
            let lines: Vec<&str> = text.lines().collect();
            let hidden = lines.len().saturating_sub(LOG_LINES_SHOWN_MAX);
            if hidden > 0 {
                println!("… {hidden} lines before these are in {}", path.display());
            }
            println!("{}", lines[hidden..].join("\n"));
            return Err(error);
        }
        Ok(text)
    }
}

/// Whether a program can be started at all; its output is of no interest.
pub fn exists(program: &str, argument: &str) -> bool {
    let mut command = Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> Context {
        let directory = std::env::temp_dir().join(format!("xtask-process-{}", std::process::id()));
        Context {
            root: std::env::temp_dir(),
            target: directory,
            quick: true,
            check: false,
            words: Vec::new(),
            options: Vec::new(),
        }
    }

    #[test]
    fn a_program_that_succeeds_gives_its_output() {
        let text = Task::new(&context(), "sh")
            .args(&["-c", "echo out; echo err >&2"])
            .run_logged("succeeds")
            .unwrap();
        assert_eq!(text, "out\nerr\n");
    }

    #[test]
    fn a_program_that_fails_is_an_error() {
        assert!(Task::new(&context(), "sh").args(&["-c", "exit 3"]).run_logged("fails").is_err());
    }

    #[test]
    fn a_program_that_takes_too_long_is_ended_with_everything_it_started() {
        let marker = format!("{}", 9_000_000 + std::process::id());
        let script = format!("sleep {marker} & sleep {marker}; true");
        let task = Task::new(&context(), "sh").args(&["-c", &script]).limit_seconds(1);
        assert!(task.run_logged("too-long").unwrap_err().to_string().contains("did not end"));
        let listed = Command::new("ps").args(["-eo", "args"]).output().unwrap();
        let running = String::from_utf8_lossy(&listed.stdout).into_owned();
        assert!(!running.lines().any(|line| line == format!("sleep {marker}")), "still running:\n{running}");
    }

    #[test]
    fn a_program_that_does_not_exist_is_noticed() {
        assert!(!exists("no-program-has-this-name", "--version"));
        assert!(exists("sh", "-n"));
    }
}
