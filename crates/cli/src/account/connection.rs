//! The flags that say which account, and what becomes of them.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::{Arg, ArgAction, ArgMatches, Command};

use crate::Usage;
use crate::workload::{Target, client_config, endpoint_of, key_of};

/// Where `orrery connect` puts a connection string, and many samples of SDKs look for one.
const CONNECTION_VARIABLE: &str = "COSMOS_CONNECTION_STRING";
const ENDPOINT_DEFAULT: &str = "http://127.0.0.1:8081";

/// Adds the flags that say which server it is.
pub fn with_account_flags(command: Command) -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help).help_heading("Server").global(true)
    };
    command
        .arg(text(
            "endpoint",
            "URL",
            "Where the account is: a URL, or a connection string (AccountEndpoint=…;AccountKey=…;) \
             [env: COSMOS_CONNECTION_STRING] [default: http://127.0.0.1:8081]",
        ))
        .arg(text(
            "key",
            "BASE64",
            "Master key [env: ORRERY_KEY] [default: the emulator's, for loopback endpoints]",
        ))
        .arg(
            text("ca", "FILE", "Trust the certificates in this PEM file, besides the system's")
                .value_parser(clap::value_parser!(PathBuf)),
        )
        .arg(
            Arg::new("insecure")
                .long("insecure")
                .help("Do not verify the server's certificate")
                .help_heading("Server")
                .global(true)
                .action(ArgAction::SetTrue),
        )
}

/// The account that the flags name.
pub fn target(matches: &ArgMatches) -> Result<Arc<Target>> {
    let text = |name: &str| matches.get_one::<String>(name).map(String::as_str);
    let given = text("endpoint").map(str::to_owned);
    let given = given.or_else(|| std::env::var(CONNECTION_VARIABLE).ok().filter(|text| !text.is_empty()));
    let given = given.unwrap_or_else(|| ENDPOINT_DEFAULT.to_owned());
    target_of(&given, text("key"), matches.get_one::<PathBuf>("ca"), matches.get_flag("insecure"))
}

/// The account behind a URL or a connection string.
pub fn target_of(
    text: &str,
    key: Option<&str>,
    authority: Option<&PathBuf>,
    insecure: bool,
) -> Result<Arc<Target>> {
    let (endpoint, own_key) = connection_of(text)?;
    let endpoint = endpoint_of(&endpoint)?;
    let key = key_of(own_key.as_deref().or(key), &endpoint)?;
    let tls = match endpoint.scheme_str() {
        Some("https") => Some(client_config(authority.map(PathBuf::as_path), insecure)?),
        _ => None,
    };
    Ok(Arc::new(Target::new(endpoint, &key, tls)?))
}

/// Endpoint and key out of a connection string; a URL is an endpoint without a key.
fn connection_of(text: &str) -> Result<(String, Option<String>), Usage> {
    let text = text.trim();
    if text.starts_with("http://") || text.starts_with("https://") {
        return Ok((text.to_owned(), None));
    }
    let (mut endpoint, mut key) = (None, None);
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        // Keys are base64 and may end in `=`, so only the first one separates.
        match part.split_once('=') {
            Some((name, value)) if name.eq_ignore_ascii_case("AccountEndpoint") => endpoint = Some(value),
            Some((name, value)) if name.eq_ignore_ascii_case("AccountKey") => key = Some(value),
            // SDKs know more words (Database, DisableServerCertificateValidation), which mean nothing here.
            Some(_) => {}
            None => return Err(malformed()),
        }
    }
    let endpoint = endpoint.ok_or_else(malformed)?;
    Ok((endpoint.to_owned(), key.map(str::to_owned)))
}

fn malformed() -> Usage {
    Usage("an account is named by a URL (http://HOST:PORT) or by a connection string (AccountEndpoint=…;AccountKey=…;)".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_strings_and_urls_name_an_account() {
        let both = |text: &str| connection_of(text).map_err(|error| error.0);
        assert_eq!(both("http://h:1/").unwrap(), ("http://h:1/".into(), None));
        let (endpoint, key) = both("AccountEndpoint=https://h:443/;AccountKey=YQ==;Database=d;").unwrap();
        assert_eq!((endpoint.as_str(), key.as_deref()), ("https://h:443/", Some("YQ==")));
        assert!(both("localhost:8081").is_err() && both("AccountKey=YQ==").is_err());
    }
}
