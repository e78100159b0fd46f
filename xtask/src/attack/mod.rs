//! The standing attack: `cargo xtask attack [NAME…] [--long] [--seed N] [--binary PATH]`.
//!
//! Each attack is one entry of a table: what it needs, what its attackers do over and over, and for how long. While
//! they do it a *witness*, which is another process, reads and writes at a fixed pace; the server's memory is watched
//! from outside; and when they stop it is measured how long the server needs to be itself again. What is wrong is
//! decided in `report`. A name may be the beginning of several: `cargo xtask attack query-`.
//!
//! ```text
//! mod.rs        the families, the course of one attack
//! attacker.rs   what an attack is and what its attackers have at hand
//! victim.rs     the server under attack        witness.rs   the other client
//! report.rs     verdicts and the table         http2.rs     frames by hand
//! queries, items, scripts, protocol, …         one file per family of attacks: add an entry there
//! ```
//!
//! Everything is bounded in count and time, seeded, and on loopback. The short form is a step of `ci`: there memory,
//! recovery and refused writes are judged, latency only where no loaded machine can explain it. The long form is for
//! a quiet machine and judges all of it.

mod attacker;
mod files;
mod http2;
mod items;
mod limits;
mod protocol;
mod queries;
mod report;
mod scripts;
mod streams;
mod victim;
mod witness;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use orrery_testkit::{Client, Random};

use crate::Context;
use crate::steps::{self, Outcome};
use attacker::{Attack, Attacker, Beside, Course, Tally, Trial};
use report::{Findings, Judge, Line};
use victim::Victim;
use witness::{Phase, Witness};

pub use witness::main as witness;

/// The families of attacks, in the order in which they are run.
const FAMILIES: &[&[Attack]] = &[
    queries::ATTACKS,
    items::ATTACKS,
    scripts::ATTACKS,
    protocol::ATTACKS,
    streams::ATTACKS,
    limits::ATTACKS,
    files::ATTACKS,
];

/// How long the witness looks at a server that nobody attacks.
const IDLE_SHORT: Duration = Duration::from_millis(1500);
const IDLE_LONG: Duration = Duration::from_secs(4);
/// After this much the server is not healthy again.
const RECOVERY_LOOKED_FOR: Duration = Duration::from_secs(15);
/// Probes in a row that must be quick.
const CALM_PROBES: usize = 3;
const PROBE_TIME_MAX: Duration = Duration::from_secs(1);
const PROBE_PAUSE: Duration = Duration::from_millis(50);

pub fn run(context: &Context) -> Result<Outcome> {
    let long = context.flag("long");
    let seed = match context.option("seed") {
        Some(seed) => seed.parse().context("--seed is a number")?,
        None => Random::seed_from("ORRERY_ATTACK_SEED"),
    };
    let binary = binary(context)?;
    let named = |attack: &&Attack| context.words.iter().any(|word| attack.name.starts_with(word.as_str()));
    let all = FAMILIES.iter().flat_map(|family| family.iter());
    let chosen: Vec<&Attack> = if context.words.is_empty() {
        all.filter(|attack| long || attack.short_seconds > 0).collect()
    } else {
        all.filter(named).collect()
    };
    if chosen.is_empty() {
        let names: Vec<_> =
            FAMILIES.iter().flat_map(|family| family.iter()).map(|attack| attack.name).collect();
        bail!("no attack begins like that; there are {}", names.join(", "));
    }
    println!("{} attacks on {}, seed {seed}", chosen.len(), binary.display());
    let trial = Trial { context, binary: &binary, seed, long };
    let mut field = Field { trial, stand: None };
    // Asked once: the attack makes a load of its own.
    let loaded = !long && report::is_loaded();
    if loaded {
        println!("much else runs on this machine: latencies are shown, not judged");
    }
    let mut lines = Vec::new();
    for attack in chosen {
        println!("· {}: {}", attack.name, attack.purpose);
        let seconds = if long { attack.long_seconds } else { attack.short_seconds.max(1) };
        let line = match &attack.course {
            Course::Beside(beside) => {
                let limit_bytes = beside.setup.memory_limit_mb << 20;
                let judge = Judge { strict: long, loaded, limit_bytes };
                match field.beside(attack.name, beside, Duration::from_secs(seconds)) {
                    Ok(findings) => judge.line(attack.name, findings),
                    Err(error) => Line::failed(attack.name, &format!("{error:#}")),
                }
            }
            Course::Alone(run) => match run(&field.trial) {
                Ok(note) => Line::passed(attack.name, &note),
                Err(error) => Line::failed(attack.name, &format!("{error:#}")),
            },
        };
        line.print_notes();
        if line.failure.is_some() || long {
            // Whatever it did to the server is not to be blamed on the next.
            field.stand = None;
        }
        lines.push(line);
    }
    drop(field);
    report::print(&lines, long);
    let failed: Vec<_> =
        lines.iter().filter(|line| line.failure.is_some()).map(|line| line.name.as_str()).collect();
    if !failed.is_empty() {
        bail!(
            "{} of {} attacks had an effect (seed {seed}): {}",
            failed.len(),
            lines.len(),
            failed.join(", ")
        );
    }
    Ok(Outcome::Passed(format!("{} attacks, seed {seed}", lines.len())))
}

/// The binary named by `--binary`; otherwise the release build in `ci`, and by hand whichever build there is.
fn binary(context: &Context) -> Result<PathBuf> {
    if let Some(path) = context.option("binary") {
        return std::path::absolute(path).with_context(|| format!("no such path: {path}"));
    }
    let built =
        |profile: &str| Some(context.target.join(profile).join("orrery")).filter(|path| path.exists());
    match built("release").filter(|_| !context.quick) {
        Some(path) if !context.check => Ok(path),
        _ => {
            steps::build(context)?;
            built(context.profile().0).context("the build left no binary")
        }
    }
}

/// A running server with its witness, kept from one attack to the next where both want the same.
struct Stand {
    victim: Victim,
    witness: Witness,
    idle: Phase,
}

struct Field<'a> {
    trial: Trial<'a>,
    stand: Option<Stand>,
}

impl Field<'_> {
    fn stand(&mut self, name: &str, beside: &Beside) -> Result<&mut Stand> {
        if self.stand.as_ref().is_some_and(|stand| stand.victim.setup != beside.setup) {
            self.stand = None;
        }
        if self.stand.is_none() {
            let victim = Victim::start(self.trial.context, self.trial.binary, name, beside.setup)?;
            let mut witness = Witness::start(victim.address)?;
            witness.begin("idle")?;
            std::thread::sleep(if self.trial.long { IDLE_LONG } else { IDLE_SHORT });
            let idle = witness.finish()?;
            self.stand = Some(Stand { victim, witness, idle });
        }
        Ok(self.stand.as_mut().expect("made above"))
    }

    /// The course of one attack beside a witness.
    fn beside(&mut self, name: &str, beside: &Beside, time: Duration) -> Result<Findings> {
        let seed = self.trial.seed;
        let stand = self.stand(name, beside)?;
        let address = stand.victim.address;
        (beside.prepare)(&mut Client::new(address)).context("preparing it")?;
        stand.victim.forget_peak();
        let before = stand.victim.processor_time();
        let tally = Tally::default();
        stand.witness.begin("attack")?;
        let until = Instant::now() + time;
        std::thread::scope(|scope| {
            for number in 0..beside.attackers {
                let tally = &tally;
                scope.spawn(move || {
                    attacker::make_room();
                    let mut attacker = Attacker::new(address, number, seed, until, tally);
                    while !attacker.over() {
                        if (beside.strike)(&mut attacker).is_err() && !attacker.over() {
                            tally.count("cut off");
                            attacker.pause(Duration::from_millis(2));
                        }
                    }
                });
            }
        });
        let ended = Instant::now();
        let during = stand.witness.finish()?;
        let busy = before.zip(stand.victim.processor_time()).map(|(before, after)| after - before);
        let recovery = recovery(&mut stand.victim, beside, ended)?;
        let memory = stand.victim.memory();
        stand.witness.begin("after")?;
        std::thread::sleep(Duration::from_millis(500));
        let after = stand.witness.finish()?;
        let death = stand.victim.death()?;
        Ok(Findings {
            idle: stand.idle.clone(),
            during,
            after,
            recovery,
            memory,
            busy,
            death,
            answers: tally.text(),
            figures: stand.victim.figures(),
        })
    }
}

/// Time until reads, writes and what the attack checks work again, or why they do not.
fn recovery(victim: &mut Victim, beside: &Beside, ended: Instant) -> Result<Result<Duration, String>> {
    let mut quick = 0;
    loop {
        let outcome = witness::probe(victim.address, PROBE_TIME_MAX)
            .and_then(|()| (beside.check)(&mut Client::new(victim.address).with_timeout(PROBE_TIME_MAX)));
        match outcome {
            Ok(()) => quick += 1,
            Err(error) => {
                quick = 0;
                if victim.death()?.is_some() || ended.elapsed() > RECOVERY_LOOKED_FOR {
                    return Ok(Err(format!("{error:#}")));
                }
            }
        }
        if quick == CALM_PROBES {
            return Ok(Ok(ended.elapsed().saturating_sub(PROBE_PAUSE * (CALM_PROBES as u32 - 1))));
        }
        std::thread::sleep(PROBE_PAUSE);
    }
}

/// Creates a database and a container of it, if they are not there.
fn container(client: &mut Client, definition: &str) -> Result<()> {
    for (path, link, kind, body) in
        [("dbs", "", "dbs", r#"{"id":"attack"}"#), ("dbs/attack/colls", "dbs/attack", "colls", definition)]
    {
        let reply = client.post(path, link, kind, &[], body)?;
        if ![201, 409].contains(&reply.status) {
            bail!("{path}: {} {}", reply.status, reply.text());
        }
    }
    Ok(())
}

/// Upserts an item under the partition key `p`.
fn item(client: &mut Client, container: &str, body: &str) -> Result<()> {
    let headers = [("x-ms-documentdb-partitionkey", "[\"p\"]"), ("x-ms-documentdb-is-upsert", "true")];
    let path = format!("dbs/attack/colls/{container}");
    let reply = client.post(&format!("{path}/docs"), &path, "docs", &headers, body)?;
    if ![200, 201].contains(&reply.status) {
        bail!("an item of {} bytes: {} {}", body.len(), reply.status, reply.text());
    }
    Ok(())
}
