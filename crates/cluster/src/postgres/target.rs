//! Where a PostgreSQL cluster is and how to sign in, from an address such as
//! `postgres://orrery:secret@db1:5432,db2:5432/orrery?sslmode=verify-full`.

use std::path::PathBuf;
use std::str::FromStr;

use orrery_storage::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host as ConfigHost, SslMode};

/// What is asked of TLS. `sslmode` has the meaning it has for PostgreSQL's own clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TlsWish {
    Disable,
    /// If the server can, without looking at its certificate.
    Prefer,
    /// Always, without looking at the server's certificate.
    Require,
    /// Always, with a certificate for the host's name, from an authority that is trusted.
    VerifyFull,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Tcp(String, u16),
    #[cfg(unix)]
    Socket(PathBuf),
}

impl std::fmt::Display for Place {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Tcp(host, port) => write!(out, "{host}:{port}"),
            #[cfg(unix)]
            Place::Socket(path) => write!(out, "{}", path.display()),
        }
    }
}

#[derive(Clone)]
pub(super) struct Target {
    pub(super) config: Config,
    pub(super) places: Vec<Place>,
    pub(super) tls: TlsWish,
    /// Authorities that are trusted instead of the system's.
    pub(super) root_certificates: Option<PathBuf>,
}

pub(super) const PORT_DEFAULT: u16 = 5432;

impl Target {
    pub(super) fn parse(address: &str) -> Result<Target, StoreError> {
        let refuse = |why: String| StoreError::Refused(format!("the address of PostgreSQL: {why}").into());
        // What the parser below does not know is taken out before.
        let (base, query) = address.split_once('?').unwrap_or((address, ""));
        let mut tls = TlsWish::Prefer;
        let mut root_certificates = None;
        let mut rest = Vec::new();
        for option in query.split('&').filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            let value = percent_encoding::percent_decode_str(value).decode_utf8_lossy();
            match name {
                "sslmode" => {
                    tls = match &*value {
                        "disable" => TlsWish::Disable,
                        "prefer" => TlsWish::Prefer,
                        "require" => TlsWish::Require,
                        "verify-full" => TlsWish::VerifyFull,
                        other => {
                            let known = "disable, prefer, require and verify-full are known";
                            return Err(refuse(format!("sslmode={other}: {known}")));
                        }
                    }
                }
                "sslrootcert" if value == "system" => root_certificates = None,
                "sslrootcert" => root_certificates = Some(PathBuf::from(&*value)),
                "application_name" | "options" => rest.push(option),
                other => {
                    let known = "sslmode, sslrootcert, application_name and options are known";
                    return Err(refuse(format!("{other}: {known}")));
                }
            }
        }
        let base = match rest.is_empty() {
            true => base.to_owned(),
            false => format!("{base}?{}", rest.join("&")),
        };
        // The error may not repeat the address, which may hold a password.
        let mut config = Config::from_str(&base).map_err(|error| refuse(error.to_string()))?;
        if config.get_user().is_none() {
            return Err(refuse("it names no user: postgres://USER@HOST/DATABASE".into()));
        }
        if config.get_password().is_none()
            && let Some(password) = std::env::var_os("PGPASSWORD").filter(|password| !password.is_empty())
        {
            config.password(password.as_encoded_bytes());
        }
        if config.get_application_name().is_none() {
            config.application_name("orrery");
        }
        config.ssl_mode(match tls {
            TlsWish::Disable => SslMode::Disable,
            TlsWish::Prefer => SslMode::Prefer,
            TlsWish::Require | TlsWish::VerifyFull => SslMode::Require,
        });
        let ports = config.get_ports();
        let port = |index: usize| match ports {
            [] => PORT_DEFAULT,
            [one] => *one,
            ports => ports.get(index).copied().unwrap_or(PORT_DEFAULT),
        };
        let places: Vec<Place> = config
            .get_hosts()
            .iter()
            .enumerate()
            .map(|(index, host)| match host {
                ConfigHost::Tcp(name) => Place::Tcp(name.clone(), port(index)),
                #[cfg(unix)]
                ConfigHost::Unix(path) => Place::Socket(path.join(format!(".s.PGSQL.{}", port(index)))),
            })
            .collect();
        if places.is_empty() {
            return Err(refuse("it names no host: postgres://USER@HOST/DATABASE".into()));
        }
        Ok(Target { config, places, tls, root_certificates })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(address: &str) -> Target {
        Target::parse(address).unwrap_or_else(|error| panic!("{address}: {error}"))
    }

    #[test]
    fn hosts_and_ports_are_paired() {
        let shown = |address| {
            let places: Vec<String> = parse(address).places.iter().map(Place::to_string).collect();
            places.join(" ")
        };
        assert_eq!(shown("postgres://u@h/d"), "h:5432");
        assert_eq!(shown("postgresql://u:p@a:1,b:2,c/d"), "a:1 b:2 c:5432");
        assert_eq!(shown("postgres://u@%2Frun%2Fpg/d"), "/run/pg/.s.PGSQL.5432");
    }

    #[test]
    fn tls_is_read_and_the_rest_is_refused() {
        assert_eq!(parse("postgres://u@h/d").tls, TlsWish::Prefer);
        let target = parse("postgres://u@h/d?sslmode=verify-full&sslrootcert=%2Fca.pem&application_name=x");
        assert_eq!((target.tls, target.root_certificates), (TlsWish::VerifyFull, Some("/ca.pem".into())));
        assert_eq!(target.config.get_application_name(), Some("x"));
        for bad in
            ["postgres://h/d", "postgres://u@h/d?sslmode=maybe", "postgres://u@h/d?sslcert=a", "postgres:"]
        {
            assert!(matches!(Target::parse(bad), Err(StoreError::Refused(_))), "{bad}");
        }
        let error = Target::parse("postgres://u:secret@h/d?x=1").err().expect("refused").to_string();
        assert!(!error.contains("secret"), "{error}");
    }
}
