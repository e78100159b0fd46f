//! The counts that a change is measured by: lines such as `read engine 12345`, per request.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Result, bail};

use super::profile::Profile;

/// The name of the sum.
const ALL: &str = "all";

pub struct Recorded(BTreeMap<(String, String), u64>);

impl Recorded {
    pub fn of(profiles: &[(&str, Profile)], requests: u64) -> Recorded {
        let mut counts = BTreeMap::new();
        for (operation, profile) in profiles {
            counts.insert(((*operation).to_owned(), ALL.to_owned()), profile.all() / requests);
            for (name, count) in profile.by_crate() {
                counts.insert(((*operation).to_owned(), name), count / requests);
            }
        }
        Recorded(counts)
    }

    pub fn parse(text: &str) -> Result<Recorded> {
        let mut counts = BTreeMap::new();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let [operation, name, count] = words[..] else {
                bail!("{line:?} is not `operation crate count`")
            };
            counts.insert((operation.to_owned(), name.to_owned()), count.parse()?);
        }
        Ok(Recorded(counts))
    }

    pub fn to_text(&self) -> String {
        let mut text = String::from(
            "# Instructions a request takes, by crate; `cargo xtask instructions --record` writes this file.\n",
        );
        for ((operation, name), count) in &self.0 {
            let _ = writeln!(text, "{operation} {name} {count}");
        }
        text
    }

    pub fn all(&self, operation: &str) -> Option<u64> {
        self.0.get(&(operation.to_owned(), ALL.to_owned())).copied()
    }

    pub fn part(&self, operation: &str, name: &str) -> u64 {
        self.0.get(&(operation.to_owned(), name.to_owned())).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let profile = Profile::parse("fn=(1) orrery_engine::read\n0 1000\nfn=(2) memcpy\n0 500\n").unwrap();
        let recorded = Recorded::of(&[("read", profile)], 10);
        let read = Recorded::parse(&recorded.to_text()).unwrap();
        assert_eq!((read.all("read"), read.part("read", "engine"), read.all("top")), (Some(150), 100, None));
        assert!(Recorded::parse("read engine").is_err() && Recorded::parse("read engine many").is_err());
    }
}
