//! The recommendation, and why.

use crate::candidate::{Candidate, Shape, candidates};
use crate::measure::{Measures, measure};
use crate::request::Request;
use crate::sample::Sample;

/// A logical partition may not be larger.
const LOGICAL_PARTITION_BYTES_MAX: u64 = 20_000_000_000;
/// Fewer keys than this cannot spread anything.
const EFFECTIVE_MIN: f64 = 10.0;
/// With this many, more are no better.
const EFFECTIVE_PLENTY: f64 = 100.0;
/// More of the latest writes in one partition make it hot.
const RECENT_SHARE_MAX: f64 = 0.5;
/// The same for the first level of a hierarchical key: a tenant may be large, but a moment must not be a prefix.
const FIRST_RECENT_SHARE_MAX: f64 = 0.9;
/// What counts more: asking one partition, or being even.
const LOCALITY_WEIGHT: f64 = 0.65;
/// Without requests: a key that groups items is more likely to be asked for than one that every item has its own of.
const GROUPING_GUESS: f64 = 0.7;
const UNIQUE_GUESS: f64 = 0.4;
/// Closer than this, the simpler one wins.
const TIE: f64 = 0.04;

#[derive(Debug, Clone)]
pub struct Options {
    /// The key that the container has.
    pub current: Vec<String>,
    /// The container's size, and the size that is expected.
    pub size_bytes: u64,
    pub projected_bytes: u64,
    pub physical_partitions: u32,
}

/// A candidate with everything that is known about it.
#[derive(Debug, Clone)]
pub struct Judged {
    pub candidate: Candidate,
    pub measures: Measures,
    pub score: f64,
    /// Why it cannot be used; empty if it can.
    pub problems: Vec<String>,
}

#[derive(Debug)]
pub struct Advice {
    /// Best first; those that cannot be used come last.
    pub judged: Vec<Judged>,
    pub current: Option<Judged>,
    /// `None`: nothing in the sample can be used.
    pub recommended: Option<Judged>,
    pub reasons: Vec<String>,
}

pub fn advise(sample: &Sample, requests: &[Request], options: &Options) -> Advice {
    let current = Candidate {
        shape: if options.current.len() > 1 { Shape::Hierarchical } else { Shape::Single },
        paths: options.current.clone(),
    };
    let judge = |candidate: &Candidate| {
        let measures = measure(sample, requests, candidate, &current, options)?;
        Some(judged(candidate.clone(), measures, sample, requests))
    };
    let mut all: Vec<Judged> = candidates(sample, requests).iter().filter_map(judge).collect();
    let rank = |judged: &Judged| {
        (!judged.problems.is_empty(), std::cmp::Reverse((judged.score / TIE).round() as i64))
    };
    all.sort_by(|a, b| {
        rank(a)
            .cmp(&rank(b))
            .then(a.candidate.shape.cmp(&b.candidate.shape))
            .then(b.measures.exact_charge.total_cmp(&a.measures.exact_charge))
            .then(b.score.total_cmp(&a.score))
            .then_with(|| a.candidate.paths.cmp(&b.candidate.paths))
    });
    let current = judge(&current);
    let best = all.first().filter(|judged| judged.problems.is_empty()).cloned();
    // A container whose key is as good stays as it is.
    let recommended = match (&best, &current) {
        (Some(best), Some(current)) if current.problems.is_empty() && current.score + TIE >= best.score => {
            Some(current.clone())
        }
        _ => best,
    };
    let reasons = recommended.as_ref().map_or_else(
        || vec!["no property of the items can be a partition key: each is missing somewhere, has too few values, or is no scalar".to_owned()],
        |it| reasons(it, current.as_ref(), requests),
    );
    Advice { judged: all, current, recommended, reasons }
}

fn judged(candidate: Candidate, measures: Measures, sample: &Sample, requests: &[Request]) -> Judged {
    let mut problems = Vec::new();
    if measures.effective < EFFECTIVE_MIN && sample.len() as f64 > EFFECTIVE_MIN {
        problems
            .push(format!("its values spread items over no more than {:.1} partitions", measures.effective));
    }
    if measures.projected_bytes > LOGICAL_PARTITION_BYTES_MAX {
        problems.push(format!("the logical partition {} would grow beyond 20 GB", measures.largest_key));
    }
    if measures.recent_share > RECENT_SHARE_MAX {
        problems.push(format!(
            "{:.0} % of the latest writes go to one logical partition",
            measures.recent_share * 100.0
        ));
    }
    if candidate.shape == Shape::Hierarchical {
        // The first level decides where items are until it is too large for one physical partition.
        if (measures.first_distinct as f64) < EFFECTIVE_MIN {
            problems.push(format!("its first level has no more than {} values", measures.first_distinct));
        }
        if measures.first_recent_share > FIRST_RECENT_SHARE_MAX {
            problems.push(format!(
                "{:.0} % of the latest writes have one value of its first level",
                measures.first_recent_share * 100.0
            ));
        }
    }
    let transactions = requests.iter().filter(|request| request.transaction).count();
    if transactions > 0 && !measures.keeps_transactions {
        problems.push(format!(
            "{transactions} recorded transactions would reach over several logical partitions"
        ));
    }
    let evenness = (measures.effective.ln() / EFFECTIVE_PLENTY.ln()).clamp(0.0, 1.0);
    let locality = match requests.is_empty() {
        false => measures.local_charge,
        true if measures.distinct * 2 <= sample.len() => GROUPING_GUESS,
        true => UNIQUE_GUESS,
    };
    let score = LOCALITY_WEIGHT * locality + (1.0 - LOCALITY_WEIGHT) * evenness;
    Judged { candidate, measures, score, problems }
}

fn reasons(it: &Judged, current: Option<&Judged>, requests: &[Request]) -> Vec<String> {
    let measures = &it.measures;
    let mut reasons = vec![format!(
        "{} different values; the largest logical partition has {:.1} % of the bytes",
        measures.distinct,
        measures.largest_share * 100.0
    )];
    if requests.is_empty() {
        reasons.push(
            "no requests were given, so this is from the data alone; record some with `serve --record FILE`"
                .into(),
        );
    } else {
        reasons.push(format!(
            "{:.0} % of the requests ({:.0} % of their RU) ask one partition",
            measures.local_requests * 100.0,
            measures.local_charge * 100.0
        ));
        reasons.push(format!(
            "recorded {:.0} RU, about {:.0} RU with this key",
            measures.before_ru, measures.after_ru
        ));
    }
    match it.candidate.shape {
        Shape::Single => {}
        Shape::Hierarchical => reasons.push("alone, the first level would be too large, too few or too hot; queries by it still go where its items are".into()),
        Shape::Suffix => reasons.push(format!(
            "{} alone is hot or too large: the suffix spreads each value over {} logical partitions, which readers of one value have to ask",
            it.candidate.paths[0],
            crate::candidate::SUFFIXES
        )),
    }
    if let Some(current) = current
        && current.candidate != it.candidate
    {
        for problem in &current.problems {
            reasons.push(format!("the present key {}: {problem}", current.candidate.rule()));
        }
        if !measures.keeps_transactions {
            reasons.push("items that share a transaction scope now would not share one any more; no recorded request needs it".into());
        }
    }
    reasons
}
