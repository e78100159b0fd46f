//! Where a store is that is not the data directory. Shown without its password.

use std::fmt;
use std::path::PathBuf;

#[derive(Clone, PartialEq, Eq)]
pub enum StoreAddress {
    /// A log in a directory.
    Directory(PathBuf),
    /// A log in PostgreSQL; the whole address, password and all.
    Postgres(String),
}

impl StoreAddress {
    pub fn parse(text: &str) -> Result<StoreAddress, String> {
        if let Some(path) = text.strip_prefix("file:").filter(|path| !path.is_empty()) {
            return Ok(StoreAddress::Directory(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(StoreAddress::Postgres(text.to_owned()));
        }
        Err("allowed: postgres://USER:PASSWORD@HOST,HOST/DATABASE, or file:DIR".into())
    }

    /// What the log is opened with.
    pub fn whole(&self) -> &str {
        match self {
            StoreAddress::Directory(path) => path.to_str().unwrap_or_default(),
            StoreAddress::Postgres(address) => address,
        }
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreAddress::Directory(path) => write!(out, "log in {}", path.display()),
            StoreAddress::Postgres(address) => {
                let rest = address.split_once("://").map_or("", |(_, rest)| rest);
                let (rest, _) = rest.split_once('?').unwrap_or((rest, ""));
                // User and password come before the last @ that is before the database's name.
                let (hosts, database) = rest.rsplit_once('/').unwrap_or((rest, ""));
                let hosts = hosts.rsplit_once('@').map_or(hosts, |(_, hosts)| hosts);
                write!(out, "postgres://{hosts}/{database}")
            }
        }
    }
}

impl fmt::Debug for StoreAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_never_shown() {
        for address in ["postgres://u:s%2Fecret@h1:1,h2/d?sslmode=require", "postgresql://u:s@cret@h1:1,h2/d"]
        {
            let shown = format!("{:?}", StoreAddress::parse(address).expect("parses"));
            assert_eq!(shown, "postgres://h1:1,h2/d");
        }
        assert!(StoreAddress::parse("mysql://h").is_err() && StoreAddress::parse("file:").is_err());
    }
}
