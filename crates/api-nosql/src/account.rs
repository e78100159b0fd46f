//! The account document: the first thing every client reads.
//!
//! Clients send everything after it to the endpoint that it names, not to the address they were given. So the
//! endpoint is the one that the client used, taken from its Host header: that works through port mappings and
//! containers. `localhost` becomes `127.0.0.1`, as on the vendor's emulator: clients treat the two as different
//! regions, and some of their tests rely on it.

use std::net::IpAddr;

use http::header::HOST;
use http::{HeaderValue, StatusCode};

use crate::errors::Result;
use crate::headers::{self, Answer};
use crate::service::Context;
use crate::write::push_json_string;

/// What clients with a query engine of their own are told about this one, as JSON inside a string.
const QUERY_ENGINE: &str = r#"{"allowNewKeywords":true,"maxJoinsPerSqlQuery":10,"maxQueryRequestTimeoutFraction":0.9,"maxSqlQueryInputLength":524288,"maxUdfRefPerSqlQuery":10,"queryMaxInMemorySortDocumentCount":-1000,"spatialMaxGeometryPointCount":256,"sqlAllowNonFiniteNumbers":false,"sqlDisableOptimizationFlags":0,"sqlQueryILDisableOptimizationFlags":0,"clientDisableOptimisticDirectExecution":false,"queryEnableFullText":true,"queryEnableFullTextPreviewFeatures":false,"queryMaxFullTextScoreSearchTerms":30,"queryMaxRrfArgumentCount":100,"enableSpatialIndexing":true,"maxInExpressionItemsCount":2147483647,"maxLogicalAndPerSqlQuery":2147483647,"maxLogicalOrPerSqlQuery":2147483647,"maxSpatialQueryCells":2147483647,"sqlAllowAggregateFunctions":true,"sqlAllowGroupByClause":true,"sqlAllowLike":true,"sqlAllowSubQuery":true,"sqlAllowScalarSubQuery":true,"sqlAllowTop":true}"#;

const ZERO: HeaderValue = HeaderValue::from_static("0");

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let config = &context.service.config;
    let endpoint = endpoint(context);
    let mut out = Vec::with_capacity(2048);
    out.extend_from_slice(b"{\"_self\":\"\",\"id\":");
    push_json_string(&mut out, &config.account_name);
    out.extend_from_slice(b",\"_rid\":");
    push_json_string(&mut out, &format!("{}.documents", config.account_name));
    out.extend_from_slice(b",\"media\":\"//media/\",\"addresses\":\"//addresses/\",\"_dbs\":\"//dbs/\"");
    for locations in ["writableLocations", "readableLocations"] {
        out.push(b',');
        push_json_string(&mut out, locations);
        out.extend_from_slice(b":[{\"name\":");
        push_json_string(&mut out, &config.region);
        out.extend_from_slice(b",\"databaseAccountEndpoint\":");
        push_json_string(&mut out, &endpoint);
        out.extend_from_slice(b"}]");
    }
    out.extend_from_slice(
        b",\"enableMultipleWriteLocations\":false,\"continuousBackupEnabled\":false,\"enableNRegionSynchronousCommit\":false,\"enablePerPartitionFailoverBehavior\":false,\"disableCrossRegionalHedging\":false,\"userReplicationPolicy\":{\"asyncReplication\":false,\"minReplicaSetSize\":3,\"maxReplicasetSize\":4},\"userConsistencyPolicy\":{\"defaultConsistencyLevel\":",
    );
    push_json_string(&mut out, config.consistency.name());
    out.extend_from_slice(
        b"},\"systemReplicationPolicy\":{\"minReplicaSetSize\":3,\"maxReplicasetSize\":4},\"readPolicy\":{\"primaryReadCoefficient\":1,\"secondaryReadCoefficient\":1},\"queryEngineConfiguration\":",
    );
    push_json_string(&mut out, QUERY_ENGINE);
    out.push(b'}');
    Ok(Answer::gateway(StatusCode::OK, &context.service.headers)
        .uncached()
        .set(headers::MEDIA_STORAGE_MAX, ZERO)
        .set(headers::MEDIA_STORAGE_USAGE, ZERO)
        .body(out))
}

/// `scheme://host:port/` as the client sees this server.
fn endpoint(context: &Context<'_>) -> String {
    endpoint_of(&authority(context), context.connection.tls)
}

/// The same, taken apart.
pub fn host_and_port(context: &Context<'_>) -> (String, u16) {
    let authority = authority(context);
    let (name, port) = parts_of(&authority, context.connection.tls);
    (name.to_owned(), port)
}

fn authority(context: &Context<'_>) -> String {
    context
        .text(HOST)
        .or_else(|| context.uri.authority().map(|authority| authority.as_str()))
        .filter(|host| is_plain(host))
        .map(str::to_owned)
        .unwrap_or_else(|| context.connection.local.to_string())
}

/// Whether this can be the host of a URL. A server on a socket has refused others; what is echoed is checked here too.
fn is_plain(host: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | b'[' | b']');
    !split(host).0.is_empty() && host.bytes().all(plain)
}

fn endpoint_of(host: &str, tls: bool) -> String {
    let scheme = if tls { "https" } else { "http" };
    let (name, port) = parts_of(host, tls);
    if name.parse::<IpAddr>().is_ok_and(|address| address.is_ipv6()) {
        format!("{scheme}://[{name}]:{port}/")
    } else {
        format!("{scheme}://{name}:{port}/")
    }
}

fn parts_of(host: &str, tls: bool) -> (&str, u16) {
    let (name, port) = split(host);
    let name = if name.eq_ignore_ascii_case("localhost") { "127.0.0.1" } else { name };
    (name, port.unwrap_or(if tls { 443 } else { 80 }))
}

/// Host and port; the brackets of an IPv6 address are taken off.
fn split(host: &str) -> (&str, Option<u16>) {
    if let Some(rest) = host.strip_prefix('[')
        && let Some((address, after)) = rest.split_once(']')
    {
        return (address, after.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') => (name, port.parse().ok()),
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_endpoint_is_the_address_that_the_client_used() {
        let check = |host: &str, tls: bool, want: &str| assert_eq!(endpoint_of(host, tls), want);
        check("127.0.0.1:8081", false, "http://127.0.0.1:8081/");
        check("localhost:9000", true, "https://127.0.0.1:9000/");
        check("LOCALHOST", false, "http://127.0.0.1:80/");
        check("db.example.com", true, "https://db.example.com:443/");
        check("[::1]:8081", false, "http://[::1]:8081/");
        check("[::1]", true, "https://[::1]:443/");
    }

    #[test]
    fn what_is_no_host_is_not_echoed() {
        for host in ["", ":80", "<script>", "a b", "a/b", "user@host", "a\"b", "h\u{f6}st"] {
            assert!(!is_plain(host), "{host}");
        }
        for host in ["localhost:8081", "db_1", "[::1]:8081", "10.0.0.1", "db.example.com:443"] {
            assert!(is_plain(host), "{host}");
        }
    }

    #[test]
    fn the_query_engine_configuration_is_json_in_a_string() {
        let parsed: serde_json::Value = serde_json::from_str(QUERY_ENGINE).unwrap();
        assert_eq!(parsed["maxJoinsPerSqlQuery"], 10);
    }
}
