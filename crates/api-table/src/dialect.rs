//! The two dialects of one protocol: Cosmos DB's and that of storage accounts.
//!
//! They differ in the rules for names and keys, in limits and in some errors. Clients choose their own dialect by the
//! host name that they were given, so the same name decides here:
//!
//! ```text
//! Host: shop.table.cosmos.azure.com    Cosmos
//! Host: localhost:8902                 Cosmos      (any port but 10002, the port of storage's emulator)
//! Host: 127.0.0.1:8902                 storage
//! X-HTTP-Method: MERGE                 Cosmos      (only sent to Cosmos DB)
//! ```

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Cosmos,
    Storage,
}

/// Which dialect to answer in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DialectChoice {
    Cosmos,
    Storage,
    /// By what the client calls the server.
    #[default]
    Auto,
}

/// The port of storage's emulator.
const STORAGE_EMULATOR_PORT: &str = "10002";

impl DialectChoice {
    /// The dialect of a request, by its `Host` and by whether it tunnels a method.
    pub fn of_request(self, host: &str, tunnels: bool) -> Dialect {
        match self {
            DialectChoice::Cosmos => Dialect::Cosmos,
            DialectChoice::Storage => Dialect::Storage,
            DialectChoice::Auto if tunnels || is_cosmos_host(host) => Dialect::Cosmos,
            DialectChoice::Auto => Dialect::Storage,
        }
    }
}

fn is_cosmos_host(host: &str) -> bool {
    let (name, port) = host.rsplit_once(':').unwrap_or((host, ""));
    let holds = |part: &str| {
        name.as_bytes().windows(part.len()).any(|window| window.eq_ignore_ascii_case(part.as_bytes()))
    };
    (name.eq_ignore_ascii_case("localhost") && port != STORAGE_EMULATOR_PORT)
        || holds(".table.cosmos.")
        || holds(".table.cosmosdb.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_name_decides_unless_the_operator_did() {
        for (host, tunnels, expected) in [
            ("shop.table.cosmos.azure.com:443", false, Dialect::Cosmos),
            ("shop.table.cosmosdb.azure.com", false, Dialect::Cosmos),
            ("localhost:8902", false, Dialect::Cosmos),
            ("LOCALHOST", false, Dialect::Cosmos),
            ("localhost:10002", false, Dialect::Storage),
            ("127.0.0.1:8902", false, Dialect::Storage),
            ("127.0.0.1:8902", true, Dialect::Cosmos),
            ("shop.table.core.windows.net", false, Dialect::Storage),
            ("[::1]:8902", false, Dialect::Storage),
            ("", false, Dialect::Storage),
        ] {
            assert_eq!(DialectChoice::Auto.of_request(host, tunnels), expected, "{host}");
        }
        assert_eq!(DialectChoice::Storage.of_request("localhost", true), Dialect::Storage);
        assert_eq!(DialectChoice::Cosmos.of_request("127.0.0.1", false), Dialect::Cosmos);
    }
}
