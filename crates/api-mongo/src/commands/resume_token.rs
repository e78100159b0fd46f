//! Resume tokens: where a change stream is.
//!
//! A token names a position in every partition of every collection that is watched, so that it holds after splits, and
//! how many changes of the next commit were told already.

use std::collections::BTreeMap;

use orrery_mongo::{Document, doc};
use serde_json::{Value, json};

/// Longest token.
const TOKEN_BYTES_MAX: usize = 64 * 1024;
/// Stands in the token of the event with which a stream has ended.
const INVALIDATED: &str = "invalidated";

/// Where a stream is: for each container, by its numbers, the commits that it has seen of each range, and how many
/// changes it has seen of the next; and whether it has ended there.
#[derive(Clone, Debug, Default)]
pub struct Positions(pub BTreeMap<(u32, u32), BTreeMap<u32, (u64, u32)>>, pub bool);

impl Positions {
    pub fn token(&self) -> Document {
        let all: Vec<Value> = (self.0.iter())
            .map(|((database, container), ranges)| {
                let ranges: Vec<Value> =
                    ranges.iter().map(|(range, (lsn, told))| json!([range, lsn, told])).collect();
                json!([database, container, ranges])
            })
            .collect();
        let mut all = all;
        if self.1 {
            all.push(INVALIDATED.into());
        }
        let text: String = json!(all).to_string().bytes().map(|byte| format!("{byte:02X}")).collect();
        doc! { "_data" => text }
    }

    pub fn of_token(token: &Document) -> Option<Positions> {
        let text = token.get("_data")?.as_str()?;
        if text.len() > TOKEN_BYTES_MAX || !text.len().is_multiple_of(2) || !text.is_ascii() {
            return None;
        }
        let bytes: Vec<u8> = (0..text.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
            .collect::<Option<_>>()?;
        let all: Value = serde_json::from_slice(&bytes).ok()?;
        let number = |value: &Value| u32::try_from(value.as_u64()?).ok();
        let mut positions = Positions::default();
        for one in all.as_array()? {
            if *one == INVALIDATED {
                positions.1 = true;
                continue;
            }
            let key = (number(one.get(0)?)?, number(one.get(1)?)?);
            let ranges = positions.0.entry(key).or_default();
            for range in one.get(2)?.as_array()? {
                ranges.insert(number(range.get(0)?)?, (range.get(1)?.as_u64()?, number(range.get(2)?)?));
            }
        }
        Some(positions)
    }
}
