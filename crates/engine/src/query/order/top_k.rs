//! The first few of many, by sort keys and then by number, in bounded memory.

use std::cmp::Ordering;

use orrery_model::{Number, Value};
use orrery_query::SortPosition;

/// Times as many as wanted that are held before the others are dropped; putting a few in order at a time would cost
/// more.
const SLACK: usize = 2;
const HELD_MIN: usize = 64;
/// Sort keys of what is held; long ones make it hold fewer than wanted.
const KEYS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// What a key takes beside its text.
const KEY_BYTES: usize = size_of::<Value>();

pub(super) type Paths = [(Vec<String>, bool)];

pub(super) struct TopK<'s, T> {
    paths: &'s Paths,
    after: Option<&'s SortPosition>,
    wanted: usize,
    /// Held however long their keys are.
    least: usize,
    held: Vec<Kept<T>>,
    keys_bytes: usize,
    /// How many were held when something was dropped last: what comes behind the last of them is dropped at once.
    cut: Option<usize>,
}

pub(super) struct Kept<T> {
    pub keys: Vec<Value>,
    pub number: u64,
    pub thing: T,
}

impl<'s, T> TopK<'s, T> {
    /// Keeps the first `wanted` behind a position, of which `least` are kept in any case. Each has one row.
    pub fn new(
        paths: &'s Paths,
        after: Option<&'s SortPosition>,
        wanted: usize,
        least: usize,
    ) -> TopK<'s, T> {
        let wanted = wanted.max(1);
        let least = least.clamp(1, wanted);
        TopK { paths, after, wanted, least, held: Vec::new(), keys_bytes: 0, cut: None }
    }

    /// Whether something is to be kept, as far as is known yet.
    pub fn admits(&self, keys: &[Value], number: u64) -> bool {
        let order = |other: &[Value], other_number: u64| {
            compare(keys, other, self.paths).then(number.cmp(&other_number))
        };
        if self.after.is_some_and(|after| order(&after.keys, after.number).is_le()) {
            return false;
        }
        let worst = self.cut.and_then(|cut| self.held.get(cut.checked_sub(1)?));
        worst.is_none_or(|worst| order(&worst.keys, worst.number).is_lt())
    }

    pub fn keep(&mut self, keys: Vec<Value>, number: u64, thing: T) {
        self.keys_bytes += size_of_keys(&keys);
        self.held.push(Kept { keys, number, thing });
        let many = HELD_MIN.max(SLACK.saturating_mul(self.wanted));
        let long = self.keys_bytes > SLACK * KEYS_BYTES_MAX && self.held.len() >= SLACK * self.least;
        if self.held.len() >= many || long {
            self.drop_last();
        }
    }

    /// What was kept, in order, and whether something behind it was dropped.
    pub fn finish(mut self) -> (Vec<Kept<T>>, bool) {
        let refused = self.cut.is_some();
        self.drop_last();
        (self.held, refused || self.cut.is_some())
    }

    fn drop_last(&mut self) {
        let paths = self.paths;
        self.held.sort_by(|left, right| {
            compare(&left.keys, &right.keys, paths).then(left.number.cmp(&right.number))
        });
        let before = self.held.len();
        let (mut bytes, mut fit) = (0, 0);
        for kept in self.held.iter().take(self.wanted) {
            let with = bytes + size_of_keys(&kept.keys);
            if with > KEYS_BYTES_MAX && fit >= self.least {
                break;
            }
            (bytes, fit) = (with, fit + 1);
        }
        self.held.truncate(fit);
        self.keys_bytes = bytes;
        if fit < before {
            self.cut = Some(fit);
        }
    }
}

/// The order of sort keys.
pub(super) fn compare(left: &[Value], right: &[Value], paths: &Paths) -> Ordering {
    let by_key = left.iter().zip(right).zip(paths).map(|((left, right), (_, descending))| {
        let order = left.compare(right);
        if *descending { order.reverse() } else { order }
    });
    by_key.fold(Ordering::Equal, Ordering::then)
}

/// Sort keys as queries see them: integers beyond 64 bits with sign are doubles once a query touches them.
pub(super) fn as_queries_see_them(mut keys: Vec<Value>) -> Vec<Value> {
    for key in &mut keys {
        if let Value::Number(Number::UInt(number)) = key {
            *key = Value::Number(Number::Double(*number as f64));
        }
    }
    keys
}

fn size_of_keys(keys: &[Value]) -> usize {
    let size = |key: &Value| match key {
        Value::String(text) => text.len(),
        Value::Array(_) | Value::Object(_) => key.to_document().len(),
        Value::Extended(value) => value.size_bytes(),
        _ => 0,
    };
    keys.iter().map(|key| KEY_BYTES + size(key)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(values: &[(i64, u64)], after: Option<(i64, u64)>, wanted: usize) -> (Vec<u64>, bool) {
        let paths = [(vec!["n".to_owned()], true)];
        let after = after.map(|(key, number)| SortPosition { keys: vec![Value::from(key)], number, rows: 1 });
        let mut top = TopK::new(&paths, after.as_ref(), wanted, 1);
        for (key, number) in values {
            let keys = vec![Value::from(*key)];
            if top.admits(&keys, *number) {
                top.keep(keys, *number, ());
            }
        }
        let (kept, cut) = top.finish();
        (kept.into_iter().map(|kept| kept.number).collect(), cut)
    }

    #[test]
    fn the_first_are_kept_in_order_and_the_rest_is_known_of() {
        let values: Vec<(i64, u64)> = (0..1_000).map(|at| (at * 7919 % 100, at as u64)).collect();
        let mut expected = values.clone();
        expected.sort_by_key(|(key, number)| (-key, *number));
        let numbers: Vec<u64> = expected.iter().map(|(_, number)| *number).collect();
        assert_eq!(kept(&values, None, 15), (numbers[..15].to_vec(), true));
        assert_eq!(kept(&values, Some(expected[14]), 20), (numbers[15..35].to_vec(), true));
        assert_eq!(kept(&values, Some(expected[899]), 100), (numbers[900..].to_vec(), false));
        assert_eq!(kept(&values, Some(expected[999]), 100), (Vec::new(), false));
    }

    #[test]
    fn long_keys_are_held_in_bounded_memory() {
        let paths = [(vec!["s".to_owned()], false)];
        let mut top = TopK::new(&paths, None, 10_000, 5);
        for number in 0..300u64 {
            let keys = vec![Value::String(format!("{:03}{}", 299 - number, "x".repeat(200_000)))];
            if top.admits(&keys, number) {
                top.keep(keys, number, ());
            }
            assert!(top.keys_bytes <= SLACK * KEYS_BYTES_MAX + 201_000);
        }
        let (kept, cut) = top.finish();
        assert!(cut && kept.len() >= 5 && kept.len() < 50);
        assert!(kept.iter().map(|kept| kept.number).eq((300 - kept.len() as u64..300).rev()));
    }
}
