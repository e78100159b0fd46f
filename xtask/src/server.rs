//! The server as a user starts it: the built binary, a data directory of its own, a free port.
//!
//! Dropping it stops the server and removes the directory. The port is one that the system had free a moment ago;
//! should somebody take it in between, the start is tried again with another.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::Context;
use crate::process::{Leashed, Task};

/// The key that every emulator of the service shares. It protects nothing, which is right on loopback in a test.
pub use orrery_testkit::EMULATOR_KEY as KEY;

const START_ATTEMPTS_MAX: usize = 5;
const START_TIME_MAX: Duration = Duration::from_secs(30);
const PROBE_TIME_MAX: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);

pub struct Server {
    // Before `directory`, because fields are dropped in order and the server uses the directory to its end.
    _process: Leashed,
    directory: Directory,
    address: SocketAddr,
}

/// A directory that goes when this does.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        // What is left of a test directory harms nobody; there is no one to tell either.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Server {
    pub fn start(context: &Context, name: &str) -> Result<Self> {
        Self::start_with(context, name, &[])
    }

    /// The same with further settings.
    pub fn start_with(context: &Context, name: &str, settings: &[&str]) -> Result<Self> {
        let mut last = String::new();
        for attempt in 0..START_ATTEMPTS_MAX {
            match Self::try_start(context, &format!("{name}-{}-{attempt}", std::process::id()), settings) {
                Ok(server) => return Ok(server),
                Err(error) => last = format!("{error:#}"),
            }
        }
        bail!("the server did not start in {START_ATTEMPTS_MAX} attempts; the last one: {last}");
    }

    fn try_start(context: &Context, name: &str, settings: &[&str]) -> Result<Self> {
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let directory = Directory(context.target.join("xtask/data").join(name));
        std::fs::create_dir_all(&directory.0)?;
        let log = context.target.join("xtask/logs").join(format!("server-{name}.log"));
        std::fs::create_dir_all(log.parent().expect("the log lies in a directory"))?;
        let task = Task::new(context, binary(context))
            .args(&["serve", "--listen", &address.to_string(), "--key", KEY, "--data-dir"])
            .arg(&directory.0)
            .args(settings);
        let mut process = task.start(Some(File::create(&log)?))?;
        let deadline = Instant::now() + START_TIME_MAX;
        while !answers(address) {
            if let Some(status) = process.try_wait()? {
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                bail!("the server ended by itself ({status}):\n{}", text.trim());
            }
            if Instant::now() >= deadline {
                bail!(
                    "no answer from {address} within {} s; see {}",
                    START_TIME_MAX.as_secs(),
                    log.display()
                );
            }
            std::thread::sleep(POLL);
        }
        Ok(Server { _process: process, directory, address })
    }

    pub fn endpoint(&self, scheme: &str) -> String {
        format!("{scheme}://{}", self.address)
    }

    /// The certificate as `orrery cert` exports it, in a file.
    pub fn certificate(&self, context: &Context) -> Result<PathBuf> {
        let name = format!("certificate-{}-{}.pem", std::process::id(), self.address.port());
        let file = context.target.join("xtask").join(name);
        Task::new(context, binary(context))
            .args(&["cert", "--data-dir"])
            .arg(&self.directory.0)
            .arg("--out")
            .arg(&file)
            .limit_seconds(60)
            .run_logged("cert")?;
        Ok(file)
    }
}

fn binary(context: &Context) -> PathBuf {
    context.target.join(context.profile().0).join("orrery")
}

/// Whether the server says that it is ready.
fn answers(address: SocketAddr) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect_timeout(&address, PROBE_TIME_MAX)?;
        stream.set_read_timeout(Some(PROBE_TIME_MAX))?;
        write!(stream, "GET /health/ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut answer = [0; 12];
        stream.read_exact(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    ask().is_ok_and(|answer| answer == "HTTP/1.1 200")
}
