//! What functions may look at while a query runs: the clock, random numbers, compiled regular
//! expressions, and the container's geometry and scripts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use regex::Regex;

use crate::env::{QueryEnv, Udfs};
use crate::limits::REGEX_CACHE_MAX;
use crate::meter::Meter;

pub struct Context {
    pub now_ticks: i64,
    pub geometry: bool,
    pub(crate) udfs: Option<Arc<dyn Udfs>>,
    shared: Mutex<CallState>,
}

/// What a function sees while it is called.
pub struct Caller<'c> {
    pub(crate) context: &'c Context,
    meter: &'c Meter,
}

impl std::ops::Deref for Caller<'_> {
    type Target = Context;

    fn deref(&self) -> &Context {
        self.context
    }
}

impl<'c> Caller<'c> {
    pub(crate) fn new(context: &'c Context, meter: &'c Meter) -> Caller<'c> {
        Caller { context, meter }
    }

    /// Counts steps of work; the query ends after the call when it must.
    pub fn work(&self, steps: u64) {
        self.meter.work(steps);
    }

    /// Whether there is memory for what the function is about to build. If not it answers undefined, and the query
    /// ends.
    pub fn has_room(&self, bytes: usize) -> bool {
        self.meter.has_room(bytes)
    }
}

struct CallState {
    random: u64,
    regexes: HashMap<(String, String), Option<Regex>>,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Context").field("now_ticks", &self.now_ticks).finish_non_exhaustive()
    }
}

impl Context {
    pub fn new(env: &QueryEnv) -> Context {
        Context {
            now_ticks: env.now_ticks,
            geometry: env.geometry,
            udfs: env.udfs.clone(),
            shared: Mutex::new(CallState { random: env.random_seed, regexes: HashMap::new() }),
        }
    }

    /// The same surroundings for another form of the same query.
    pub(crate) fn again(&self) -> Context {
        let random = self.shared().random;
        Context {
            now_ticks: self.now_ticks,
            geometry: self.geometry,
            udfs: self.udfs.clone(),
            shared: Mutex::new(CallState { random, regexes: HashMap::new() }),
        }
    }

    fn shared(&self) -> std::sync::MutexGuard<'_, CallState> {
        // Nothing panics while it holds the lock, and what it guards is valid at every step.
        self.shared.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The next number of the query's own sequence, at least 0 and below 1.
    pub fn random(&self) -> f64 {
        (self.next_random() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The next of the query's own numbers (SplitMix64).
    pub(crate) fn next_random(&self) -> u64 {
        let mut shared = self.shared();
        shared.random = shared.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = shared.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A compiled regular expression; `None` where pattern or flags are no good.
    pub fn regex(&self, pattern: &str, flags: &str) -> Option<Regex> {
        let key = (pattern.to_string(), flags.to_string());
        if let Some(found) = self.shared().regexes.get(&key) {
            return found.clone();
        }
        let compiled = compile_regex(pattern, flags);
        let mut shared = self.shared();
        if shared.regexes.len() >= REGEX_CACHE_MAX {
            shared.regexes.clear();
        }
        shared.regexes.insert(key, compiled.clone());
        compiled
    }
}

fn compile_regex(pattern: &str, flags: &str) -> Option<Regex> {
    let mut builder = regex::RegexBuilder::new(pattern);
    builder.size_limit(1 << 20);
    for flag in flags.chars() {
        match flag {
            'm' => builder.multi_line(true),
            's' => builder.dot_matches_new_line(true),
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            _ => return None,
        };
    }
    builder.build().ok()
}
