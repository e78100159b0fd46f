//! What all shares of a page did, for whoever wants to know.

use crate::query::{IndexUse, QueryMetrics, QueryPage};

/// Partitions whose plan is told; they rarely differ.
pub const EXPLAINED_MAX: usize = 8;

/// Partitions whose figures are told.
pub const SHARES_MAX: usize = 256;

/// What a page took of one partition.
#[derive(Debug, Default)]
pub struct ShareInsight {
    pub range: u32,
    pub charge_ru: f64,
    /// Pages of the partition's own.
    pub pages: u32,
    pub metrics: QueryMetrics,
}

/// What all shares of a page did, those that were only read ahead included.
#[derive(Debug, Default)]
pub struct QueryInsight {
    pub metrics: QueryMetrics,
    pub indexes: IndexUse,
    /// How the page was made, by range.
    pub explained: Vec<(u32, String)>,
    /// Whose work it was.
    pub shares: Vec<ShareInsight>,
}

impl QueryInsight {
    /// `explained`: more than counts and times is wanted.
    pub(super) fn of_page(page: &QueryPage, explained: bool) -> QueryInsight {
        let mut insight = QueryInsight { metrics: page.metrics.clone(), ..QueryInsight::default() };
        if explained {
            insight.indexes = page.report.indexes.clone();
            insight.explained = vec![(page.at.range_id, page.report.to_string())];
            insight.shares = vec![ShareInsight {
                range: page.at.range_id,
                charge_ru: page.charge_ru,
                pages: 1,
                metrics: page.metrics.clone(),
            }];
        }
        insight
    }

    pub fn add(&mut self, other: QueryInsight) {
        self.metrics.add(&other.metrics);
        let (into, from) = (&mut self.indexes, other.indexes);
        merge(&mut into.used, from.used);
        merge(&mut into.missing, from.missing);
        merge(&mut into.used_composites, from.used_composites);
        merge(&mut into.missing_composites, from.missing_composites);
        let room = EXPLAINED_MAX.saturating_sub(self.explained.len());
        self.explained.extend(other.explained.into_iter().take(room));
        for share in other.shares {
            if let Some(one) = self.shares.iter_mut().find(|one| one.range == share.range) {
                one.charge_ru += share.charge_ru;
                one.pages += share.pages;
                one.metrics.add(&share.metrics);
            } else if self.shares.len() < SHARES_MAX {
                self.shares.push(share);
            }
        }
    }
}

fn merge<T: PartialEq>(into: &mut Vec<T>, from: Vec<T>) {
    for value in from {
        if !into.contains(&value) {
            into.push(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_of_several_partitions_are_named_once() {
        let page = |used: &str, missing: &str| QueryInsight {
            indexes: IndexUse {
                used: vec![used.into()],
                missing: vec![missing.into()],
                ..IndexUse::default()
            },
            ..QueryInsight::default()
        };
        let mut insight = page("/a/?", "/b/?");
        insight.add(page("/a/?", "/b/?"));
        insight.add(page("/c/?", "/b/?"));
        assert_eq!(insight.indexes.used, ["/a/?", "/c/?"]);
        assert_eq!(insight.indexes.missing, ["/b/?"]);
    }

    #[test]
    fn pages_of_the_same_partition_are_summed_up() {
        let page = |range, charge_ru| QueryInsight {
            shares: vec![ShareInsight { range, charge_ru, pages: 1, metrics: QueryMetrics::default() }],
            ..QueryInsight::default()
        };
        let mut insight = page(7, 1.5);
        insight.add(page(8, 1.0));
        insight.add(page(7, 2.0));
        let shares: Vec<_> = insight.shares.iter().map(|one| (one.range, one.charge_ru, one.pages)).collect();
        assert_eq!(shares, [(7, 3.5, 2), (8, 1.0, 1)]);
    }
}
