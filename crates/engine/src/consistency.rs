//! Consistency levels: what an account promises, and what a request may ask for.

/// Consistency levels, weakest first: a request may only go down from the account's level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConsistencyLevel {
    Eventual,
    ConsistentPrefix,
    Session,
    BoundedStaleness,
    Strong,
}

/// A request asked for more than the account promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooStrong;

impl ConsistencyLevel {
    pub const ALL: [ConsistencyLevel; 5] = [
        ConsistencyLevel::Eventual,
        ConsistencyLevel::ConsistentPrefix,
        ConsistencyLevel::Session,
        ConsistencyLevel::BoundedStaleness,
        ConsistencyLevel::Strong,
    ];

    /// The name that the service gives it.
    pub fn name(self) -> &'static str {
        match self {
            ConsistencyLevel::Eventual => "Eventual",
            ConsistencyLevel::ConsistentPrefix => "ConsistentPrefix",
            ConsistencyLevel::Session => "Session",
            ConsistencyLevel::BoundedStaleness => "BoundedStaleness",
            ConsistencyLevel::Strong => "Strong",
        }
    }

    /// The level of a request to an account of this level: its own, if that is not stronger.
    pub fn asked(self, level: Option<ConsistencyLevel>) -> Result<ConsistencyLevel, TooStrong> {
        match level {
            Some(level) if level > self => Err(TooStrong),
            level => Ok(level.unwrap_or(self)),
        }
    }

    /// Whether reads of this level cost twice: on the service they ask two replicas.
    pub fn reads_twice(self) -> bool {
        self >= ConsistencyLevel::BoundedStaleness
    }

    /// Whether a read of this level waits for the changes that its session has seen.
    pub fn keeps_sessions(self) -> bool {
        self >= ConsistencyLevel::Session
    }

    /// Names are compared without regard to case; clients differ.
    pub fn parse(name: &str) -> Option<ConsistencyLevel> {
        ConsistencyLevel::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_by_strength_and_found_by_name() {
        assert!(ConsistencyLevel::Strong > ConsistencyLevel::Session);
        assert!(ConsistencyLevel::Session > ConsistencyLevel::Eventual);
        assert_eq!(ConsistencyLevel::parse("boundedstaleness"), Some(ConsistencyLevel::BoundedStaleness));
        assert_eq!(ConsistencyLevel::parse("strongish"), None);
    }

    #[test]
    fn a_request_may_go_down_from_what_the_account_promises_and_not_up() {
        let account = ConsistencyLevel::Session;
        assert_eq!(account.asked(None), Ok(ConsistencyLevel::Session));
        assert_eq!(account.asked(Some(ConsistencyLevel::Eventual)), Ok(ConsistencyLevel::Eventual));
        assert_eq!(account.asked(Some(ConsistencyLevel::Strong)), Err(TooStrong));
    }
}
