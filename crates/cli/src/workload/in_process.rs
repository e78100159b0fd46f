//! Phases without a network: what the database itself costs, for profilers and for counting instructions.
//!
//! The requests of a phase are made and signed before it begins, and sent once so that caches and columns are there;
//! answers are looked at after it has ended. What is executed between [`round_begins`] and [`round_ends`] is the
//! database's work and nothing else: one request at a time, chosen by the seed. A phase has several rounds, so that
//! one in which something else was done besides (a flush, upkeep) can be told from the others.
//! `cargo xtask instructions` finds the two by their names.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bytes::Bytes;
use http::Request;
use orrery_server::config::{Config, defaults};
use orrery_server::in_process::InProcess;

use super::client::{Answer, Target};
use super::items::Random;
use super::operations::{Kind, Maker};
use super::options::{Options, Until};
use super::report::Phase;

const ROUND_REQUESTS: usize = 20;
/// So many quiet looks in a row are the end of what went on.
const STILL_POLLS: u32 = 5;
const SETTLE_POLL: Duration = Duration::from_millis(100);
/// What is written now has another `_ts` than what was written before, always and not by chance.
const SETTLE_MIN: Duration = Duration::from_millis(1200);
const SETTLE_MAX: Duration = Duration::from_secs(60);
/// What an idle server takes meanwhile.
const IDLE_TICKS: u64 = 2;

/// Opens the data directory of the options, if they name one.
pub fn open(options: &Options) -> Result<Option<Arc<InProcess>>> {
    let Some(data_dir) = options.in_process.clone() else { return Ok(None) };
    let config = Config { data_dir, ..defaults() };
    Ok(Some(Arc::new(InProcess::open(&config)?)))
}

pub async fn phase(
    kind: Kind,
    options: &Options,
    target: &Target,
    maker: &Maker,
    server: &InProcess,
) -> Result<Phase> {
    let Until::Count(count) = options.until else { bail!("--in-process needs --count") };
    for request in requests(kind, count, options.seed, target, maker)? {
        server.answer(request).await;
    }
    settle().await;
    let mut requests = requests(kind, count, options.seed, target, maker)?.into_iter().peekable();
    let mut answers = Vec::with_capacity(requests.len());
    let began = Instant::now();
    while requests.peek().is_some() {
        round_begins();
        for request in requests.by_ref().take(ROUND_REQUESTS) {
            let sent = Instant::now();
            let response = server.answer(request).await;
            answers.push((sent.elapsed(), response));
        }
        round_ends();
    }
    let mut phase = Phase::new(&kind.name());
    phase.elapsed = began.elapsed();
    for (latency, response) in answers {
        let answer = Answer::of(response);
        match answer.is_success() {
            true => phase.answered(latency, answer.charge_ru()),
            false => phase.failed(&answer.message()),
        }
    }
    Ok(phase)
}

fn requests(
    kind: Kind,
    count: u64,
    seed: u64,
    target: &Target,
    maker: &Maker,
) -> Result<Vec<Request<Bytes>>> {
    let mut random = Random::new(seed);
    let requests = (0..count).map(|_| target.request(&maker.call(kind, &mut random)));
    requests.collect::<Result<_>>().context("cannot make the requests")
}

/// Waits until what the database does beside its answers is done: this process takes no processor time.
async fn settle() {
    let began = Instant::now();
    let mut before = processor_ticks();
    let mut still = 0;
    while (still < STILL_POLLS || began.elapsed() < SETTLE_MIN) && began.elapsed() < SETTLE_MAX {
        tokio::time::sleep(SETTLE_POLL).await;
        let now = processor_ticks();
        still = if now.saturating_sub(before) <= IDLE_TICKS { still + 1 } else { 0 };
        before = now;
    }
}

/// User and system time so far, in hundredths of a second; nothing where the system does not tell.
fn processor_ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program may hold spaces; the fields after it are numbers.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    fields.filter_map(|field| field.parse::<u64>().ok()).sum()
}

/// Two functions that do the same would become one.
#[inline(never)]
fn round_begins() {
    black_box("begins");
}

#[inline(never)]
fn round_ends() {
    black_box("ends");
}
