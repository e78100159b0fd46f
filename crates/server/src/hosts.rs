//! Under which names this server may be asked.
//!
//! While the well-known key opens the account, whoever can send a request can read and change everything. The server
//! listens on loopback only then, but a web page in a browser on the same machine can send requests there too: its
//! author lets a name of his own point to 127.0.0.1, the browser takes page and server for one site, and the page
//! signs with the key that everybody knows. What gives it away is the name in the request. So under that key requests
//! must be addressed to a loopback name, or to one that the operator allowed:
//!
//! ```text
//! localhost:8081  orders.localhost  127.0.0.1:4711  [::1]     served
//! host.docker.internal:8081                                   403, unless --allowed-hosts host.docker.internal
//! evil.example                                                403
//! <script>   a b   (empty)                                    400 under any key
//! ```

use std::net::IpAddr;

use http::header::HOST;
use http::{HeaderMap, Uri};
use orrery_api::Refusal;

use crate::config::Config;

/// Longest name with its port.
const HOST_BYTES_MAX: usize = 253 + 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hosts {
    loopback_only: bool,
    /// In lower case; `*.` in front stands for any name below, `*` for any name.
    allowed: Vec<String>,
}

impl Hosts {
    pub fn new(config: &Config) -> Hosts {
        Hosts {
            loopback_only: config.keys.well_known(),
            allowed: config.allowed_hosts.iter().map(|name| name.to_ascii_lowercase()).collect(),
        }
    }

    /// Whether a request may be addressed as it is. One without any name (HTTP/1.0) comes from no browser.
    pub fn check(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
        for host in headers.get_all(HOST).iter().map(http::HeaderValue::as_bytes).chain(authority) {
            if is_usual(host) {
                continue;
            }
            let name = name_of(host).ok_or(Refusal::HostInvalid)?;
            if self.loopback_only && !is_loopback(name) && !self.is_allowed(name) {
                return Err(Refusal::HostForeign);
            }
        }
        Ok(())
    }

    fn is_allowed(&self, name: &str) -> bool {
        let name = name.trim_end_matches('.').to_ascii_lowercase();
        self.allowed.iter().any(|allowed| match allowed.strip_prefix('*') {
            Some(below) => name.ends_with(below) && name.len() > below.len(),
            None => *allowed == name,
        })
    }
}

/// The names that nearly all clients on this machine use, known without taking them apart.
fn is_usual(host: &[u8]) -> bool {
    let rest = host.strip_prefix(b"127.0.0.1").or_else(|| host.strip_prefix(b"localhost"));
    match rest {
        Some([]) => true,
        // Of five digits the first says whether it may be no port.
        Some([b':', port @ ..]) => {
            let short = matches!(port, [_] | [_, _] | [_, _, _] | [_, _, _, _] | [b'0'..=b'5', _, _, _, _]);
            short && port.iter().all(u8::is_ascii_digit)
        }
        _ => false,
    }
}

/// The name in `name:port`, without the brackets of an IPv6 address; `None` if it is neither a name nor an address.
fn name_of(host: &[u8]) -> Option<&str> {
    let host = std::str::from_utf8(host).ok().filter(|host| host.len() <= HOST_BYTES_MAX)?;
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            address.parse::<std::net::Ipv6Addr>().ok()?;
            (address, port.strip_prefix(':').or(port.is_empty().then_some(""))?)
        }
        None => {
            let (name, port) = host.split_once(':').unwrap_or((host, ""));
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
            (!name.is_empty() && name.bytes().all(plain)).then_some((name, port))?
        }
    };
    (port.is_empty() || port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok())
        .then_some(name)
}

/// Names that lead to this machine whoever answers for names: browsers do not ask for them.
fn is_loopback(name: &str) -> bool {
    let ends_with = |end: &str| {
        let start = name.len().checked_sub(end.len());
        start.and_then(|start| name.get(start..)).is_some_and(|tail| tail.eq_ignore_ascii_case(end))
    };
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| match address {
            IpAddr::V4(address) => address.is_loopback(),
            IpAddr::V6(address) => {
                address.is_loopback() || address.to_ipv4_mapped().is_some_and(|address| address.is_loopback())
            }
        })
        || ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::defaults;

    fn verdict(hosts: &Hosts, host: &str) -> &'static str {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, http::HeaderValue::from_bytes(host.as_bytes()).unwrap());
        match hosts.check(&headers, &Uri::from_static("/")) {
            Ok(()) => "served",
            Err(Refusal::HostForeign) => "foreign",
            Err(_) => "invalid",
        }
    }

    #[test]
    fn the_well_known_key_is_for_loopback_names_and_for_those_that_were_allowed() {
        let config = |allowed: &[&str], key: Option<&str>| {
            let mut config = defaults();
            config.allowed_hosts = allowed.iter().map(|name| (*name).to_owned()).collect();
            config.keys.primary = key.map_or(config.keys.primary, str::to_owned);
            Hosts::new(&config)
        };
        let (usual, own) = (config(&[], None), config(&[], Some("b3duIGtleSBvd24ga2V5")));
        let allowing = config(&["Host.Docker.Internal", "*.shop.example"], None);
        for (host, under_usual, under_allowing, under_own) in [
            ("localhost:8081", "served", "served", "served"),
            ("LocalHost", "served", "served", "served"),
            ("orders.localhost:1", "served", "served", "served"),
            ("127.0.0.1:65535", "served", "served", "served"),
            ("127.0.0.1:8081", "served", "served", "served"),
            ("127.0.0.1", "served", "served", "served"),
            ("127.0.0.12", "served", "served", "served"),
            ("localhost:80 ", "invalid", "invalid", "invalid"),
            ("127.8.9.1", "served", "served", "served"),
            ("[::1]:8081", "served", "served", "served"),
            ("[::ffff:127.0.0.1]", "served", "served", "served"),
            ("host.docker.internal:8081", "foreign", "served", "served"),
            ("db.shop.example", "foreign", "served", "served"),
            ("shop.example", "foreign", "foreign", "served"),
            ("db_1:8081", "foreign", "foreign", "served"),
            ("evil.example", "foreign", "foreign", "served"),
            ("localhost.evil.example", "foreign", "foreign", "served"),
            ("127.0.0.1.evil.example", "foreign", "foreign", "served"),
            ("notlocalhost", "foreign", "foreign", "served"),
            ("10.0.0.1", "foreign", "foreign", "served"),
            ("<script>", "invalid", "invalid", "invalid"),
            ("a b", "invalid", "invalid", "invalid"),
            ("", "invalid", "invalid", "invalid"),
            (":8081", "invalid", "invalid", "invalid"),
            ("localhost:8081:1", "invalid", "invalid", "invalid"),
            ("localhost:70000", "invalid", "invalid", "invalid"),
            ("localhost:+1", "invalid", "invalid", "invalid"),
            ("[::1", "invalid", "invalid", "invalid"),
            ("[::1]x", "invalid", "invalid", "invalid"),
            ("user@localhost", "invalid", "invalid", "invalid"),
            ("localh\u{f6}st", "invalid", "invalid", "invalid"),
        ] {
            let verdicts = [&usual, &allowing, &own].map(|hosts| verdict(hosts, host));
            assert_eq!(verdicts, [under_usual, under_allowing, under_own], "{host}");
        }
        assert_eq!(verdict(&usual, &"a".repeat(300)), "invalid");
        assert_eq!(verdict(&config(&["*"], None), "anything.example"), "served");
    }

    #[test]
    fn every_name_of_a_request_counts() {
        let hosts = Hosts::new(&defaults());
        let mut headers = HeaderMap::new();
        assert_eq!(hosts.check(&headers, &Uri::from_static("/")), Ok(()));
        let foreign = Uri::from_static("http://evil.example/");
        assert_eq!(hosts.check(&headers, &foreign), Err(Refusal::HostForeign));
        headers.append(HOST, http::HeaderValue::from_static("localhost"));
        assert_eq!(hosts.check(&headers, &foreign), Err(Refusal::HostForeign));
        headers.append(HOST, http::HeaderValue::from_static("evil.example"));
        assert_eq!(hosts.check(&headers, &Uri::from_static("/")), Err(Refusal::HostForeign));
    }
}
