//! Which partitions a query runs on, and which part of each.
//!
//! A scope may name a range, a span or a key; otherwise the filter says which part of the hash space can hold rows, and
//! partitions outside of it are left alone. Each partition is asked for its part only.

use orrery_model::Epk;
use orrery_query::plan::QueryRange;

use crate::container::Container;
use crate::error::Result;
use crate::feed::Scope;

/// One partition's part of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    pub scope: Scope,
    /// The partition and its part of the hash space, by which positions know it.
    pub range: u32,
    pub min: Epk,
    pub max: Epk,
}

impl Share {
    /// The two shares that this one becomes when it is cut at a key; `None` where the key does not lie inside of it.
    pub(super) fn cut(&self, at: &Epk) -> Option<[Share; 2]> {
        if !(self.min < *at && *at < self.max) {
            return None;
        }
        let (low, high) = match &self.scope {
            Scope::Epk { min, max, .. } => (min.clone(), max.clone()),
            Scope::Range(_) => (self.min.clone(), self.max.clone()),
            // A share of one logical partition lies on one side, whichever.
            Scope::All | Scope::Key(_) => return None,
        };
        let side = |min: Epk, max: Epk| Scope::Epk { min, max, range: Some(self.range) };
        let left = side(low.clone(), high.clone().min(at.clone()));
        let right = side(low.max(at.clone()), high);
        Some([
            Share { scope: left, max: at.clone(), ..self.clone() },
            Share { scope: right, min: at.clone(), ..self.clone() },
        ])
    }
}

impl Container {
    /// The shares of a query whose scope is given, in the order of the hash space.
    pub fn shares_of(&self, scope: &Scope) -> Result<Vec<Share>> {
        let span = match scope {
            Scope::Key(key) if key.0.len() < self.definition().partition_key.paths.len() => {
                Some(self.span(key)?)
            }
            Scope::Epk { min, max, .. } => Some((min.clone(), max.clone())),
            _ => None,
        };
        let share = |(range, min, max)| {
            let scope = match (&span, scope) {
                (Some((min, max)), _) => {
                    Scope::Epk { min: min.clone(), max: max.clone(), range: Some(range) }
                }
                (None, Scope::All) => Scope::Range(range),
                (None, scope) => scope.clone(),
            };
            Share { scope, range, min, max }
        };
        Ok(self.parts_of(scope)?.into_iter().map(share).collect())
    }

    /// The shares of a query whose filter leaves it these ranges. There is always one: also a query that reads nothing
    /// answers, and it does so anywhere.
    pub fn shares_of_ranges(&self, ranges: &[QueryRange]) -> Vec<Share> {
        let all = self.ranges();
        let mut shares: Vec<Share> = Vec::new();
        for partition in &all {
            let mut hull: Option<(Epk, Epk)> = None;
            for range in ranges {
                let (min, max) = half_open(range);
                let (min, max) = (min.max(partition.min.clone()), max.min(partition.max.clone()));
                if min >= max {
                    continue;
                }
                hull = Some(match hull {
                    None => (min, max),
                    Some((low, high)) => (low.min(min), high.max(max)),
                });
            }
            let Some((min, max)) = hull else { continue };
            let scope = if min == partition.min && max == partition.max {
                Scope::Range(partition.id)
            } else {
                Scope::Epk { min, max, range: Some(partition.id) }
            };
            let (min, max) = (partition.min.clone(), partition.max.clone());
            shares.push(Share { scope, range: partition.id, min, max });
        }
        if let (true, Some(first)) = (shares.is_empty(), all.first()) {
            let (min, max) = (first.min.clone(), first.max.clone());
            shares.push(Share { scope: Scope::Range(first.id), range: first.id, min, max });
        }
        shares
    }
}

/// A range as `[min, max)`. Keys that hold more bytes after these are longer, so the next key is this and a zero.
fn half_open(range: &QueryRange) -> (Epk, Epk) {
    let after = |key: &Epk| {
        let mut key = key.clone();
        key.0.push(0);
        key
    };
    let min = if range.min_inclusive { range.min.clone() } else { after(&range.min) };
    let max = if range.max_inclusive { after(&range.max) } else { range.max.clone() };
    (min, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_a_span_of_one_key() {
        let key = Epk::from_hex("05C1").unwrap();
        assert_eq!(half_open(&QueryRange::point(key.clone())), (key, Epk::from_hex("05C100").unwrap()));
        assert_eq!(half_open(&QueryRange::full()), (Epk::MIN, Epk::max()));
    }

    #[test]
    fn a_share_is_cut_inside_only() {
        let epk = |text: &str| Epk::from_hex(text).unwrap();
        let share = Share { scope: Scope::Range(3), range: 3, min: epk(""), max: epk("80") };
        assert_eq!((share.cut(&epk("")), share.cut(&epk("80"))), (None, None));
        let [left, right] = share.cut(&epk("40")).unwrap();
        assert_eq!(
            (left.min, left.max.clone(), right.min, right.max),
            (epk(""), epk("40"), epk("40"), epk("80"))
        );
        assert_eq!(right.scope, Scope::Epk { min: epk("40"), max: epk("80"), range: Some(3) });
    }
}
