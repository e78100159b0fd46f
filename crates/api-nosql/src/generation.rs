//! What the `x-ms-version` of a request says about its client: the one place that compares protocol versions.
//!
//! Versions are dates. Clients of 2015 to 2018 know containers without a partition key, where the system has chosen
//! one since, and session tokens that are one number for each range. They are answered in the form of their time; the
//! data is the same for everyone. A request without a version, or with one that is no date, comes from a client of
//! today.

use http::HeaderMap;

use crate::headers::VERSION;

/// From oldest to newest, so that a generation knows all that the ones before it knew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClientGeneration {
    /// Session tokens are `{range}:{lsn}`.
    SimpleSessions,
    /// A container may have no partition key at all.
    FixedContainers,
    /// Every container has a key of one path, if only one that the system chose.
    SystemKeys,
    /// Keys may have several paths.
    Present,
}

/// The first versions that are newer than a generation.
const NEWER: [(&str, ClientGeneration); 3] = [
    ("2018-06-18", ClientGeneration::SimpleSessions),
    ("2018-12-31", ClientGeneration::FixedContainers),
    ("2019-01-01", ClientGeneration::SystemKeys),
];

impl ClientGeneration {
    pub fn of(headers: &HeaderMap) -> ClientGeneration {
        headers.get(VERSION).map_or(ClientGeneration::Present, |version| Self::of_version(version.as_bytes()))
    }

    pub fn of_version(version: &[u8]) -> ClientGeneration {
        let [.., (newest, _)] = NEWER;
        // Nearly every request ends here.
        if version >= newest.as_bytes() || !is_date(version) {
            return ClientGeneration::Present;
        }
        let known = NEWER.iter().find(|(newer, _)| version < newer.as_bytes());
        known.map_or(ClientGeneration::Present, |(_, generation)| *generation)
    }

    /// Session tokens name the version and the regions of a range beside its LSN.
    pub fn has_vector_sessions(self) -> bool {
        self > ClientGeneration::SimpleSessions
    }

    /// A container without a key of its own is shown with the one that the system chose.
    pub fn shows_system_keys(self) -> bool {
        self > ClientGeneration::FixedContainers
    }

    pub fn has_hierarchical_keys(self) -> bool {
        self > ClientGeneration::SystemKeys
    }
}

/// `2018-06-18`, as such text compares.
fn is_date(text: &[u8]) -> bool {
    text.len() == 10
        && text.iter().enumerate().all(|(at, letter)| match at {
            4 | 7 => *letter == b'-',
            _ => letter.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_tell_generations_apart() {
        for (version, want) in [
            ("2014-08-21", ClientGeneration::SimpleSessions),
            ("2018-06-17", ClientGeneration::SimpleSessions),
            ("2018-06-18", ClientGeneration::FixedContainers),
            ("2018-09-17", ClientGeneration::FixedContainers),
            ("2018-12-31", ClientGeneration::SystemKeys),
            ("2020-07-15", ClientGeneration::Present),
            ("9999-12-31", ClientGeneration::Present),
        ] {
            assert_eq!(ClientGeneration::of_version(version.as_bytes()), want, "{version}");
        }
    }

    #[test]
    fn what_is_no_version_is_of_today() {
        assert_eq!(ClientGeneration::of(&HeaderMap::new()), ClientGeneration::Present);
        for text in ["", "1", "2015", "2015-1-1", "2015/01/01", "2015-01-01T"] {
            assert_eq!(ClientGeneration::of_version(text.as_bytes()), ClientGeneration::Present, "{text}");
        }
    }
}
