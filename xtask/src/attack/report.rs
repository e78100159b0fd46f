//! What counts as an effect of an attack, and the table at the end.
//!
//! | | short form | long form |
//! |---|---|---|
//! | the server lives, loses nothing, refuses no write | yes | yes |
//! | resident memory stays within `--memory-limit` | yes | yes |
//! | reads, writes and the attack's own check work within 5 s of its end | yes | yes |
//! | p99 of another client's point reads | at most 50 × idle or 2 s, the larger | at most 5 × idle |
//!
//! On a machine with twice as much to do as it has cores latencies are shown and not judged. Idle counts as 2 ms at
//! least: below that, what is measured is the scheduler of a machine with few cores.

use std::time::Duration;

use super::witness::Phase;

const RECOVERY_MAX: Duration = Duration::from_secs(5);
/// What idle is taken for at least.
const IDLE_FLOOR_US: u64 = 2_000;
const TIMES_STRICT: u64 = 5;
const TIMES_LENIENT: u64 = 50;
const LENIENT_FLOOR_US: u64 = 2_000_000;
/// Characters of the bar that shows how much worse the witness fared.
const BAR_WIDTH: usize = 10;

/// The attack itself keeps all cores busy; beyond that it is others.
const LOAD_PER_CORE_MAX: f64 = 2.0;
const REASON_CHARS_MAX: usize = 400;

/// What was measured.
pub struct Findings {
    pub idle: Phase,
    pub during: Phase,
    pub after: Phase,
    /// Time until all was well, or what was still wrong when nobody waited any longer.
    pub recovery: Result<Duration, String>,
    /// Peak and present resident bytes, where the system tells.
    pub memory: Option<(u64, u64)>,
    pub busy: Option<Duration>,
    pub death: Option<String>,
    /// What the attackers were answered.
    pub answers: String,
    pub figures: String,
}

/// How findings are judged.
pub struct Judge {
    pub strict: bool,
    /// So much else runs here that latencies say nothing about the server.
    pub loaded: bool,
    pub limit_bytes: u64,
}

/// A line of the table.
pub struct Line {
    pub name: String,
    pub failure: Option<String>,
    cells: Option<Cells>,
    notes: Vec<String>,
}

struct Cells {
    idle_us: u64,
    during_us: u64,
    memory: Option<(u64, u64)>,
    limit_bytes: u64,
    refused: u64,
    newcomers_refused: u64,
    recovery: Option<Duration>,
}

impl Judge {
    pub fn line(&self, name: &str, findings: Findings) -> Line {
        let Findings { idle, during, after, memory, .. } = &findings;
        let floor = idle.reader.p99_us.max(IDLE_FLOOR_US);
        let refused = during.writer.refused + during.uploader.refused + after.writer.refused;
        let mut wrong = Vec::new();
        if let Some(death) = &findings.death {
            wrong.push(format!("the server ended: {death}"));
        }
        if let Some((peak, _)) = memory.filter(|(peak, _)| *peak > self.limit_bytes) {
            wrong.push(format!("memory of {} MB, limit {} MB", peak >> 20, self.limit_bytes >> 20));
        }
        match &findings.recovery {
            Ok(time) if *time <= RECOVERY_MAX => {}
            Ok(time) => wrong.push(format!("healthy only after {:.1} s", time.as_secs_f64())),
            Err(reason) => wrong.push(format!("not healthy again: {reason}")),
        }
        if refused > 0 {
            let reasons =
                [&during.writer, &during.uploader, &after.writer].map(|series| series.reasons.join("; "));
            wrong.push(format!("{refused} writes refused: {}", reasons.join(" ").trim()));
        }
        if during.lost + after.lost > 0 {
            wrong.push("an acknowledged write was lost".to_owned());
        }
        let allowed_us = match self.strict {
            true => TIMES_STRICT * floor,
            false => (TIMES_LENIENT * floor).max(LENIENT_FLOOR_US),
        };
        if during.reader.p99_us > allowed_us && !self.loaded {
            wrong.push(format!(
                "reads of others took {} (idle {})",
                time(during.reader.p99_us),
                time(idle.reader.p99_us)
            ));
        }
        let mut notes = vec![format!("answers: {}", findings.answers)];
        if let Some(busy) = findings.busy {
            notes.push(format!("processor {:.1} s, {}", busy.as_secs_f64(), findings.figures));
        }
        notes.push(format!("slowest read of the witness {}", time(during.reader.max_us)));
        for (who, series) in [("reader", &during.reader), ("newcomer", &during.newcomer)] {
            if series.refused > 0 {
                notes.push(format!(
                    "{who}: {} of {} refused: {}",
                    series.refused,
                    series.count,
                    series.reasons.join("; ")
                ));
            }
        }
        Line {
            name: name.to_owned(),
            failure: (!wrong.is_empty()).then(|| short(&wrong.join("; "))),
            cells: Some(Cells {
                idle_us: idle.reader.p99_us,
                during_us: during.reader.p99_us,
                memory: *memory,
                limit_bytes: self.limit_bytes,
                refused,
                newcomers_refused: during.newcomer.refused,
                recovery: findings.recovery.as_ref().ok().copied(),
            }),
            notes,
        }
    }
}

impl Line {
    pub fn failed(name: &str, reason: &str) -> Line {
        Line { name: name.to_owned(), failure: Some(short(reason)), cells: None, notes: Vec::new() }
    }

    pub fn passed(name: &str, note: &str) -> Line {
        Line { name: name.to_owned(), failure: None, cells: None, notes: vec![note.to_owned()] }
    }

    pub fn print_notes(&self) {
        for note in &self.notes {
            println!("    {note}");
        }
        if let Some(failure) = &self.failure {
            println!("    FAILED: {failure}");
        }
    }
}

pub fn print(lines: &[Line], strict: bool) {
    println!(
        "\n{:<28} {:>8} {:>8} {:>6} {:<width$} {:>11} {:>7} {:>4} {:>7}  verdict",
        "attack",
        "idle p99",
        "during",
        "times",
        "",
        "peak/limit",
        "refused",
        "new",
        "back in",
        width = BAR_WIDTH
    );
    for line in lines {
        let verdict = if line.failure.is_some() { "FAILED" } else { "ok" };
        let Some(cells) = &line.cells else {
            let note = line.notes.first().map_or("", String::as_str);
            println!("{:<28} {note}  {verdict}", line.name);
            continue;
        };
        let times = cells.during_us as f64 / cells.idle_us.max(IDLE_FLOOR_US) as f64;
        let peak = cells.memory.map_or("?".to_owned(), |(peak, _)| (peak >> 20).to_string());
        println!(
            "{:<28} {:>8} {:>8} {:>6} {:<width$} {:>6}/{:<4} {:>7} {:>4} {:>7}  {verdict}",
            line.name,
            time(cells.idle_us),
            time(cells.during_us),
            format!("{times:.1}"),
            bar(times),
            peak,
            cells.limit_bytes >> 20,
            cells.refused,
            cells.newcomers_refused,
            cells.recovery.map_or("never".to_owned(), |back| time(back.as_micros() as u64)),
            width = BAR_WIDTH
        );
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!(
        "\np99 of another process's point reads, judged {} with idle as at least {}, on {cores} cores{}; memory in MB.",
        if strict { "strictly" } else { "leniently" },
        time(IDLE_FLOOR_US),
        load().map_or(String::new(), |load| format!(" under a load of {load:.1}")),
    );
    println!("refused: writes of the witness; new: connections of newcomers that found no answer.");
}

/// Bodies of answers can be long, and their first words tell.
fn short(text: &str) -> String {
    match text.char_indices().nth(REASON_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// One mark for each doubling.
fn bar(times: f64) -> String {
    let marks = times.max(1.0).log2().ceil() as usize;
    "#".repeat(marks.min(BAR_WIDTH))
}

fn time(us: u64) -> String {
    match us {
        0..10_000 => format!("{:.1} ms", us as f64 / 1e3),
        10_000..1_000_000 => format!("{} ms", us / 1000),
        _ => format!("{:.1} s", us as f64 / 1e6),
    }
}

/// What else the machine is doing, for who reads the figures later: the programs that want to run.
fn load() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// Whether so much else runs on this machine that latencies are those of its scheduler.
pub fn is_loaded() -> bool {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    load().is_some_and(|load| load > cores as f64 * LOAD_PER_CORE_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(p99_us: u64, peak: u64, recovery_s: u64, refused: u64) -> Findings {
        let mut during = Phase::default();
        during.reader.p99_us = p99_us;
        during.writer.refused = refused;
        Findings {
            idle: Phase::default(),
            during,
            after: Phase::default(),
            recovery: Ok(Duration::from_secs(recovery_s)),
            memory: Some((peak, peak)),
            busy: None,
            death: None,
            answers: String::new(),
            figures: String::new(),
        }
    }

    fn check(strict: bool, findings: Findings, fails: bool) {
        let line = Judge { strict, loaded: false, limit_bytes: 100 << 20 }.line("a", findings);
        assert_eq!(line.failure.is_some(), fails, "{:?}", line.failure);
    }

    #[test]
    fn memory_recovery_and_writes_are_judged_in_both_forms() {
        for strict in [false, true] {
            check(strict, findings(1_000, 100 << 20, 5, 0), false);
            check(strict, findings(1_000, 101 << 20, 5, 0), true);
            check(strict, findings(1_000, 0, 6, 0), true);
            check(strict, findings(1_000, 0, 0, 1), true);
        }
    }

    #[test]
    fn latency_is_judged_strictly_in_the_long_form_only() {
        check(true, findings(10_000, 0, 0, 0), false);
        check(true, findings(10_001, 0, 0, 0), true);
        check(false, findings(2_000_000, 0, 0, 0), false);
        check(false, findings(2_000_001, 0, 0, 0), true);
    }

    #[test]
    fn a_server_that_ended_failed() {
        check(false, Findings { death: Some("signal 6".to_owned()), ..findings(0, 0, 0, 0) }, true);
        check(false, Findings { recovery: Err("refused".to_owned()), ..findings(0, 0, 0, 0) }, true);
    }
}
