//! What a client can merge by itself, and what a plan asks of it.
//!
//! Clients name what they can do in a header: `Aggregate, Distinct, OrderBy`. A plan that needs more is
//! refused, naming what is missing, so that an old client fails instead of answering wrongly.

/// One thing a client may be able to do with the rows of several partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Feature {
    Aggregate,
    CompositeAggregate,
    Distinct,
    GroupBy,
    MultipleAggregates,
    MultipleOrderBy,
    OffsetAndLimit,
    OrderBy,
    Top,
    NonValueAggregate,
    DCount,
    NonStreamingOrderBy,
    ListAndSetAggregate,
    CountIf,
    HybridSearch,
    WeightedRankFusion,
    HybridSearchSkipOrderByRewrite,
}

/// Every feature with its name in the header, in the order refusals list them.
const NAMES: &[(Feature, &str)] = &[
    (Feature::Aggregate, "Aggregate"),
    (Feature::CompositeAggregate, "CompositeAggregate"),
    (Feature::Distinct, "Distinct"),
    (Feature::GroupBy, "GroupBy"),
    (Feature::MultipleAggregates, "MultipleAggregates"),
    (Feature::MultipleOrderBy, "MultipleOrderBy"),
    (Feature::OffsetAndLimit, "OffsetAndLimit"),
    (Feature::OrderBy, "OrderBy"),
    (Feature::Top, "Top"),
    (Feature::NonValueAggregate, "NonValueAggregate"),
    (Feature::DCount, "DCount"),
    (Feature::NonStreamingOrderBy, "NonStreamingOrderBy"),
    (Feature::ListAndSetAggregate, "ListAndSetAggregate"),
    (Feature::CountIf, "CountIf"),
    (Feature::HybridSearch, "HybridSearch"),
    (Feature::WeightedRankFusion, "WeightedRankFusion"),
    (Feature::HybridSearchSkipOrderByRewrite, "HybridSearchSkipOrderByRewrite"),
];

/// A set of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Features(u32);

impl Features {
    pub const NONE: Features = Features(0);

    /// Reads the header. Names that are not known are those of newer clients and are passed over.
    pub fn parse(header: &str) -> Features {
        let mut features = Features::NONE;
        for word in header.split(',').map(str::trim) {
            if let Some((feature, _)) = NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(word)) {
                features.add(*feature);
            }
        }
        features
    }

    pub fn all() -> Features {
        NAMES.iter().fold(Features::NONE, |all, (feature, _)| Features(all.0 | Features::of(*feature).0))
    }

    /// The set of this one.
    pub fn of(feature: Feature) -> Features {
        Features(1 << feature as u32)
    }

    pub fn add(&mut self, feature: Feature) {
        self.0 |= 1 << feature as u32;
    }

    pub fn has(self, feature: Feature) -> bool {
        self.0 & 1 << feature as u32 != 0
    }

    /// Those of this set that `other` lacks.
    pub fn without(self, other: Features) -> Features {
        Features(self.0 & !other.0)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The names, in the order refusals list them.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES.iter().filter(move |(feature, _)| self.has(*feature)).map(|(_, name)| *name)
    }

    /// The refusal of a client that lacks these features, in the words of the service.
    pub fn refusal(self) -> String {
        let mut message = String::from(
            "Query contains 1 or more unsupported features. Upgrade your SDK to a version that does support the \
             requested features:",
        );
        for name in self.names() {
            message.push_str("\r\nQuery contained ");
            message.push_str(name);
            message.push_str(", which the calling client does not support.");
        }
        message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_may_have_any_order_and_spacing() {
        let features = Features::parse("OrderBy,Aggregate ,  Top,SomethingNew");
        assert_eq!(features.names().collect::<Vec<_>>(), ["Aggregate", "OrderBy", "Top"]);
        assert!(Features::parse("").is_empty());
    }

    #[test]
    fn a_refusal_names_every_missing_feature() {
        let missing = Features::parse("GroupBy, Top").without(Features::parse("Top"));
        assert!(missing.refusal().ends_with(
            "requested features:\r\nQuery contained GroupBy, which the calling client does not support."
        ));
    }

    #[test]
    fn every_feature_has_its_own_bit() {
        for (at, (feature, name)) in NAMES.iter().enumerate() {
            assert_eq!(*feature as usize, at);
            assert!(Features::parse(name).has(*feature));
        }
    }
}
