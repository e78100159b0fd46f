//! A server of the real binary, on a free port, in a directory of its own; killed when dropped.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a start may take; recovery after a crash included.
const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

pub struct TestServer {
    program: PathBuf,
    arguments: Vec<String>,
    directory: tempfile::TempDir,
    child: Option<Child>,
    address: SocketAddr,
    table_address: Option<SocketAddr>,
    gremlin_address: Option<SocketAddr>,
    /// Milliseconds from spawning to the start-up block.
    pub start_ms: u128,
}

impl TestServer {
    /// Starts `program serve` with a fresh data directory and further arguments (`--ephemeral` leaves the directory
    /// unused).
    pub fn start(program: &Path, arguments: &[&str]) -> Result<TestServer> {
        let mut server = TestServer::unstarted(program, arguments)?;
        server.restart()?;
        Ok(server)
    }

    /// One that has not been started yet: its data directory may be filled before.
    pub fn unstarted(program: &Path, arguments: &[&str]) -> Result<TestServer> {
        let directory =
            tempfile::Builder::new().prefix("orrery-test-").tempdir().context("no temporary directory")?;
        Ok(TestServer {
            program: program.to_owned(),
            arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
            directory,
            child: None,
            address: ([127, 0, 0, 1], 0).into(),
            table_address: None,
            gremlin_address: None,
            start_ms: 0,
        })
    }

    /// Starts again on the same directory; the port is a new one.
    pub fn restart(&mut self) -> Result<()> {
        if self.child.is_some() {
            bail!("the server is still running");
        }
        let began = Instant::now();
        let mut command = Command::new(&self.program);
        command.arg("serve").args([
            "--listen",
            "127.0.0.1:0",
            "--log-format",
            "json",
            "--log-requests",
            "errors",
        ]);
        if !self.arguments.iter().any(|argument| argument == "--ephemeral") {
            command.arg("--data-dir").arg(self.data_dir());
        }
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.log_file()?);
        // The surroundings of a developer must not change what a test does.
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ORRERY_"))
        {
            command.env_remove(name);
        }
        let mut child = command.spawn().with_context(|| format!("cannot run {}", self.program.display()))?;
        let stdout = child.stdout.take().context("no stdout")?;
        let (sender, receiver) = mpsc::channel();
        // Reads on after the first line, so that the server never meets a full pipe.
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut line = String::new();
            if stdout.read_line(&mut line).is_ok_and(|length| length > 0) {
                let _ = sender.send(line);
            }
            let _ = stdout.read_to_end(&mut Vec::new());
        });
        self.child = Some(child);
        let Ok(line) = receiver.recv_timeout(START_TIMEOUT) else {
            let _ = self.kill();
            bail!("the server did not start:\n{}", self.log());
        };
        self.start_ms = began.elapsed().as_millis();
        let value: serde_json::Value =
            serde_json::from_str(&line).with_context(|| format!("not JSON: {line}"))?;
        self.address = value["listen"][0]
            .as_str()
            .and_then(|text| text.parse().ok())
            .with_context(|| format!("no address: {line}"))?;
        self.table_address = value["table_listen"][0].as_str().and_then(|text| text.parse().ok());
        self.gremlin_address = value["gremlin_listen"][0].as_str().and_then(|text| text.parse().ok());
        Ok(())
    }

    /// Where the Gremlin API has a port of its own.
    pub fn gremlin_address(&self) -> Option<SocketAddr> {
        self.gremlin_address
    }

    /// Where the Table API has a port of its own.
    pub fn table_address(&self) -> Option<SocketAddr> {
        self.table_address
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn data_dir(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    pub fn process_id(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// What all runs so far wrote to stderr.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default()
    }

    /// SIGKILL: no goodbye, as a power cut of the process.
    pub fn kill(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        child.kill()?;
        child.wait()?;
        Ok(())
    }

    /// SIGTERM, and wait for the end.
    pub fn stop(&mut self) -> Result<ExitStatus> {
        let mut child = self.child.take().context("the server is not running")?;
        // The standard library has no SIGTERM; the shell's builtin does not need a process of its own.
        Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status()?;
        let deadline = Instant::now() + STOP_TIMEOUT;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if Instant::now() > deadline {
                child.kill()?;
                bail!("the server did not stop:\n{}", self.log());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn log_file(&self) -> Result<std::fs::File> {
        Ok(std::fs::OpenOptions::new().create(true).append(true).open(self.directory.path().join("log"))?)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
