//! One query, page after page.

use anyhow::{Context, Result};
use http::Method;
use orrery_model::PartitionKey;
use serde_json::{Value, json};

use super::key_header;
use crate::account::{Account, Place};
use crate::transfer::raw_json;

pub struct Query {
    pub sql: String,
    pub parameters: Vec<Value>,
    pub key: Option<PartitionKey>,
    /// Rows that are read, at most.
    pub limit: u64,
    pub explain: bool,
}

#[derive(Debug, Default)]
pub struct Rows {
    /// As the server wrote them.
    pub rows: Vec<String>,
    pub charge_ru: f64,
    pub pages: u64,
    /// Whether there are rows beyond the limit.
    pub more: bool,
    pub plan: Vec<String>,
}

/// Reads up to the limit; `each` sees every row as it comes.
pub async fn run(
    account: &mut Account,
    place: &Place,
    query: &Query,
    mut each: impl FnMut(&str),
) -> Result<Rows> {
    let mut found = Rows::default();
    let mut continuation: Option<String> = None;
    loop {
        let mut call = place.feed(Method::POST, "docs");
        call.headers = vec![
            ("content-type", "application/query+json".to_owned()),
            ("x-ms-documentdb-isquery", "True".to_owned()),
            // A server of ours merges what partitions found; others answer what a gateway can.
            ("x-orrery-merge", "true".to_owned()),
        ];
        match &query.key {
            Some(key) => call.headers.push(key_header(key)),
            None => call.headers.push(("x-ms-documentdb-query-enablecrosspartition", "True".into())),
        }
        let left = query.limit.saturating_sub(found.rows.len() as u64);
        call.headers.push(("x-ms-max-item-count", left.min(1000).to_string()));
        if query.explain && found.pages == 0 {
            call.headers.push(("x-orrery-explain", "true".into()));
        }
        call.headers.extend(continuation.take().map(|token| ("x-ms-continuation", token)));
        call.body = json!({"query": query.sql, "parameters": query.parameters}).to_string().into();
        let answer = account.send(&call).await?;
        found.pages += 1;
        found.charge_ru += answer.charge_ru();
        if let Some(plan) = answer.header("x-orrery-explain") {
            found
                .plan
                .extend(serde_json::from_str::<Vec<String>>(plan).unwrap_or_else(|_| vec![plan.to_owned()]));
        }
        let text = std::str::from_utf8(&answer.body).context("an answer that is not UTF-8")?;
        let rows = raw_json::member(text, "Documents")
            .and_then(raw_json::elements)
            .context("an answer without rows")?;
        for row in rows {
            if found.rows.len() as u64 == query.limit {
                found.more = true;
                return Ok(found);
            }
            each(row);
            found.rows.push(row.to_owned());
        }
        continuation = answer.header("x-ms-continuation").map(str::to_owned);
        if continuation.is_none() {
            return Ok(found);
        }
        if found.rows.len() as u64 >= query.limit {
            found.more = true;
            return Ok(found);
        }
    }
}
