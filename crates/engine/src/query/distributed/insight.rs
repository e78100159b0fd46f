//! What all shares of a page did, for whoever wants to know.

use crate::query::{IndexUse, QueryMetrics, QueryPage};

/// Partitions whose plan is told; they rarely differ.
pub const EXPLAINED_MAX: usize = 8;

/// What all shares of a page did, those that were only read ahead included.
#[derive(Debug, Default)]
pub struct QueryInsight {
    pub metrics: QueryMetrics,
    pub indexes: IndexUse,
    /// How the page was made, by range.
    pub explained: Vec<(u32, String)>,
}

impl QueryInsight {
    /// `explained`: more than counts and times is wanted.
    pub(super) fn of_page(page: &QueryPage, explained: bool) -> QueryInsight {
        let mut insight = QueryInsight { metrics: page.metrics.clone(), ..QueryInsight::default() };
        if explained {
            insight.indexes = page.report.indexes.clone();
            insight.explained = vec![(page.at.range_id, page.report.to_string())];
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
}
