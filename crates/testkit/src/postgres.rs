//! A real PostgreSQL server in a directory of its own, from the distribution's package, for tests that need one.
//!
//! It is started on a free port of the loopback address, may be killed and started again, and is gone with its value.
//! Its programs refuse to be run by root, so root runs them as the user `postgres`, whom the package makes. Where there
//! is no package, `start` says so in a line that stays visible and answers `None`; `ORRERY_POSTGRES=required` makes
//! that an error instead.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result, bail, ensure};
use tempfile::TempDir;

pub struct Postgres {
    directory: TempDir,
    programs: PathBuf,
    port: u16,
    options: String,
}

/// The user that owns everything in the server.
const USER: &str = "orrery";

impl Postgres {
    /// A running server, or `None` with a line on stderr where none is installed.
    pub fn start(test: &str) -> Option<Postgres> {
        let Some(programs) = find_programs() else {
            assert!(
                std::env::var("ORRERY_POSTGRES").as_deref() != Ok("required"),
                "{test}: ORRERY_POSTGRES=required, and no PostgreSQL is installed"
            );
            eprintln!("SKIPPED {test}: no PostgreSQL server is installed (Debian: apt install postgresql)");
            return None;
        };
        Some(Postgres::start_with(programs, "").unwrap_or_else(|error| panic!("{test}: {error:#}")))
    }

    fn start_with(programs: PathBuf, options: &str) -> Result<Postgres> {
        let directory = tempfile::Builder::new().prefix("orrery-postgres-").tempdir()?;
        if is_root() {
            give_to_postgres(directory.path())?;
        }
        let mut server = Postgres { directory, programs, port: 0, options: options.to_owned() };
        let data = server.data();
        // What initdb syncs is nothing that a test could miss.
        let arguments = ["-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "-D"];
        server.run("initdb", &[&arguments[..], &[&data]].concat())?;
        // Another process may take the port first; then the next is tried.
        for attempt in 0..5 {
            server.port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            match server.resume() {
                Ok(()) => break,
                Err(error) if attempt == 4 => return Err(error),
                Err(_) => {}
            }
        }
        Ok(server)
    }

    /// Starts the server again after `stop` or `kill`, on the same port.
    pub fn resume(&self) -> Result<()> {
        let directory = self.directory.path().display();
        let log = self.directory.path().join("server.log").display().to_string();
        let options = format!(
            "-p {} -c listen_addresses=127.0.0.1 -c unix_socket_directories={directory} -c max_connections=50 \
             -c shared_buffers=16MB {}",
            self.port, self.options
        );
        let started = self.run(
            "pg_ctl",
            &["start", "-s", "-w", "-t", "60", "-D", &self.data(), "-l", &log, "-o", &options],
        );
        started.with_context(|| {
            let text = std::fs::read_to_string(&log).unwrap_or_default();
            text.lines().rev().take(5).collect::<Vec<_>>().join("\n")
        })
    }

    /// Ends the server in order: sessions are told.
    pub fn stop(&self) -> Result<()> {
        self.run("pg_ctl", &["stop", "-s", "-w", "-m", "fast", "-D", &self.data()])
    }

    /// Ends the server as a crash does: nothing is written, sessions are told nothing.
    pub fn kill(&self) -> Result<()> {
        self.run("pg_ctl", &["stop", "-s", "-w", "-m", "immediate", "-D", &self.data()])
    }

    /// Puts a file among the server's data, as its user's own, and answers with its path.
    pub fn install(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = Path::new(&self.data()).join(name);
        std::fs::write(&path, text)?;
        #[cfg(unix)]
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
        if is_root() {
            give_to_postgres(&path)?;
        }
        Ok(path)
    }

    /// Changes settings without a restart.
    pub fn configure(&self, settings: &[(&str, &str)]) -> Result<()> {
        for (name, value) in settings {
            self.sql("postgres", &format!("ALTER SYSTEM SET {name} = '{value}'"))?;
        }
        self.sql("postgres", "SELECT pg_reload_conf()")?;
        // The server's first process hears of it a little later.
        std::thread::sleep(std::time::Duration::from_millis(300));
        Ok(())
    }

    /// The number of the server's first process.
    pub fn process(&self) -> Result<u32> {
        let text = std::fs::read_to_string(self.directory.path().join("data/postmaster.pid"))?;
        Ok(text.lines().next().context("postmaster.pid is empty")?.parse()?)
    }

    /// Runs SQL as the owner of everything, and returns what comes back, a row a line.
    pub fn sql(&self, database: &str, sql: &str) -> Result<String> {
        let port = self.port.to_string();
        let arguments = ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", &port];
        let output =
            self.output("psql", &[&arguments[..], &["-U", USER, "-d", database, "-c", sql]].concat())?;
        Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
    }

    /// The address of a new, empty database.
    pub fn database(&self, name: &str) -> String {
        self.sql("postgres", &format!("CREATE DATABASE {name}")).expect("a database can be made");
        self.address(name)
    }

    pub fn address(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    fn data(&self) -> String {
        self.directory.path().join("data").display().to_string()
    }

    fn run(&self, program: &str, arguments: &[&str]) -> Result<()> {
        self.output(program, arguments).map(drop)
    }

    fn output(&self, program: &str, arguments: &[&str]) -> Result<Output> {
        let path = self.programs.join(program);
        let mut command = match is_root() {
            true => {
                let mut command = Command::new("runuser");
                command.args(["-u", "postgres", "--"]).arg(path);
                command
            }
            false => Command::new(path),
        };
        // Not where the tests run: the user postgres may not be let in there. And no handles of ours: the server would
        // keep them open.
        command.args(arguments).current_dir("/").stdin(std::process::Stdio::null());
        let captured = match program {
            "pg_ctl" => {
                let status = command
                    .stdout(std::process::Stdio::null())
                    .stderr(std::process::Stdio::null())
                    .status()?;
                Output { status, stdout: Vec::new(), stderr: Vec::new() }
            }
            _ => command.output()?,
        };
        let said = String::from_utf8_lossy(&captured.stderr);
        ensure!(captured.status.success(), "{program}: {} {said}", captured.status);
        Ok(captured)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

/// The programs of the newest version that is installed.
fn find_programs() -> Option<PathBuf> {
    let has_all = |path: &Path| path.join("initdb").exists() && path.join("pg_ctl").exists();
    let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, path)| has_all(path))
        .collect();
    versions.sort();
    let in_path = || std::env::split_paths(&std::env::var_os("PATH")?).find(|path| has_all(path));
    versions.pop().map(|(_, path)| path).or_else(in_path)
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|metadata| owner(&metadata) == 0)
}

#[cfg(unix)]
fn owner(metadata: &std::fs::Metadata) -> u32 {
    std::os::unix::fs::MetadataExt::uid(metadata)
}

#[cfg(not(unix))]
fn owner(_: &std::fs::Metadata) -> u32 {
    u32::MAX
}

fn give_to_postgres(path: &Path) -> Result<()> {
    let output = Command::new("chown").arg("postgres:").arg(path).output()?;
    if !output.status.success() {
        bail!("chown: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}
