//! The frame of tests that end the server again and again while it is written to, and check what is there afterwards.
//!
//! `ORRERY_CRASH_ROUNDS` sets the rounds, `ORRERY_CRASH_SEED` repeats a run's choices, `ORRERY_CRASH_BINARY` names
//! another build to kill (a release build writes far more in a round).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use anyhow::Result;

use crate::random::Random;
use crate::server::TestServer;

/// One run: a server that was just started, and the choices to make.
pub struct CrashTest {
    pub rounds: u64,
    pub random: Random,
    pub server: TestServer,
}

impl CrashTest {
    /// Runs a test, which answers with what it has seen. A failure names the seed that repeats it.
    pub fn run(
        name: &str,
        rounds_default: u64,
        built: &str,
        test: impl FnOnce(&mut CrashTest) -> Result<String>,
    ) {
        CrashTest::run_with(name, rounds_default, built, &[], test);
    }

    /// The same for a server with further arguments.
    pub fn run_with(
        name: &str,
        rounds_default: u64,
        built: &str,
        arguments: &[&str],
        test: impl FnOnce(&mut CrashTest) -> Result<String>,
    ) {
        let rounds = std::env::var("ORRERY_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok());
        let rounds = rounds.unwrap_or(rounds_default);
        let binary = std::env::var_os("ORRERY_CRASH_BINARY").map_or_else(|| built.into(), PathBuf::from);
        let seed = Random::seed_from("ORRERY_CRASH_SEED");
        println!("{name}: seed {seed}, {rounds} rounds");
        let outcome = TestServer::start(&binary, arguments)
            .and_then(|server| test(&mut CrashTest { rounds, random: Random::new(seed), server }));
        match outcome {
            Ok(seen) => println!("{name}: seed {seed}, {rounds} rounds: {seen}; 0 writes lost"),
            Err(error) => panic!("seed {seed}: {error:#}"),
        }
    }

    /// Lets every writer write until `end` has ended the server, and starts it again. What a writer says went wrong
    /// outweighs what `end` says.
    pub fn round<W: Send>(
        &mut self,
        writers: &mut [W],
        write: impl Fn(&mut W, SocketAddr, &AtomicBool) -> Result<()> + Sync,
        end: impl FnOnce(&mut TestServer) -> Result<()>,
    ) -> Result<()> {
        let (over, address) = (AtomicBool::new(false), self.server.address());
        std::thread::scope(|scope| -> Result<()> {
            let threads: Vec<_> = writers
                .iter_mut()
                .map(|writer| {
                    let (write, over) = (&write, &over);
                    scope.spawn(move || write(writer, address, over))
                })
                .collect();
            let ended = end(&mut self.server);
            over.store(true, Relaxed);
            for thread in threads {
                thread.join().expect("a writer does not panic")?;
            }
            ended
        })?;
        self.server.restart()
    }
}
