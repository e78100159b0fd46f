//! Advice as JSON, the same for scripts and for pages.

use serde_json::{Value, json};

use crate::choose::{Advice, Judged};
use crate::sample::Sample;

impl Advice {
    /// What `orrery advise --json` prints and `POST /_orrery/advise` answers.
    pub fn to_json(&self, sample: &Sample, requests: usize) -> Value {
        json!({
            "items": sample.len(),
            "requests": requests,
            "recommended": self.recommended.as_ref().map(judged),
            "current": self.current.as_ref().map(judged),
            "candidates": self.judged.iter().map(judged).collect::<Vec<_>>(),
            "reasons": self.reasons,
        })
    }
}

fn judged(it: &Judged) -> Value {
    let measures = &it.measures;
    json!({
        "partitionKey": it.candidate.rule(),
        "shape": format!("{:?}", it.candidate.shape).to_lowercase(),
        "paths": it.candidate.paths,
        "score": it.score,
        "problems": it.problems,
        "distinct": measures.distinct,
        "effective": measures.effective,
        "largestShare": measures.largest_share,
        "largestKey": measures.largest_key,
        "largestBytes": measures.largest_bytes,
        "projectedBytes": measures.projected_bytes,
        "recentShare": measures.recent_share,
        "localRequests": measures.local_requests,
        "hottestShare": measures.hottest_share,
        "keepsTransactions": measures.keeps_transactions,
        "beforeRu": measures.before_ru,
        "afterRu": measures.after_ru,
        "slots": measures.slots,
    })
}
