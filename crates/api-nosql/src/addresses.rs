//! `/addresses`: where clients of the direct protocol find the partitions of a container, and the catalog.
//!
//! ```text
//! GET /addresses/?$resolveFor=dbs                                          the catalog, range `M`
//! GET /addresses/?$resolveFor=dbs/{rid}/colls/{rid}/docs&$partitionKeyRangeIds=0,1
//! {"_rid":"…","Addresss":[{"isPrimary":true,"protocol":"rntbd","physcialUri":"rntbd://HOST:PORT/apps/…/"},…],…}
//! ```
//!
//! Every range has four replicas by name, as on the service: clients compare the number with what the account
//! promises, and with fewer they would ask again all the time. All of them are this server, on the host and port that
//! the client used for this request: that is what it can reach and what the certificate names. The path of an address
//! comes back in every request; it says which range the client believes it asks. A range of another node would have
//! that node's address here.
//!
//! There is nothing to refresh: addresses are made from the present map.

use std::collections::BTreeSet;

use http::StatusCode;
use orrery_engine::{Error, Kind};

use crate::account;
use crate::errors::{ApiError, Plane, Result};
use crate::headers::Answer;
use crate::resource_feed::{close_envelope, open_envelope};
use crate::service::Context;
use crate::write::{push_json_string, push_u64};

/// As many as the account document promises.
pub const REPLICAS: u32 = 4;
/// How many of them must have a write.
pub const WRITE_QUORUM: u32 = 3;
/// What the catalog is called among ranges.
pub const MASTER_RANGE: &str = "M";
/// Ranges in one request; clients ask for 50 at most.
const RANGES_MAX: usize = 1_000;
const RANGES_PARAMETER: &str = "$partitionKeyRangeIds";
const RESOLVE_PARAMETER: &str = "$resolveFor";
const APPLICATION: &str = "apps/orrery/services";

/// What a request wants addresses for: a path, to be routed like one.
pub fn resolved_for(query: &str) -> Option<String> {
    parameter(query, RESOLVE_PARAMETER)
}

fn parameter(query: &str, wanted: &str) -> Option<String> {
    let decoded =
        |text: &str| percent_encoding::percent_decode_str(text).decode_utf8().ok().map(|t| t.into_owned());
    query.split('&').find_map(|pair| {
        let (name, value) = pair.split_once('=')?;
        (decoded(name)? == wanted).then(|| decoded(value)).flatten()
    })
}

/// The addresses of a container's partitions.
pub fn of_container(context: &Context<'_>) -> Result<Answer> {
    let endpoint = endpoint(context)?;
    let target = context.container_inside()?;
    let present: Vec<u32> = target.container.ranges().iter().map(|range| range.id).collect();
    let ranges = match parameter(context.uri.query().unwrap_or(""), RANGES_PARAMETER) {
        None => present,
        Some(list) => asked(&list, &present)?,
    };
    let mut out = Vec::with_capacity(64 + ranges.len() * REPLICAS as usize * 320);
    open_envelope(&mut out, "Addresss", target.rid.as_str());
    for (n, range) in ranges.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        push_replicas(&mut out, &endpoint, target.rid.as_str(), &range.to_string());
    }
    close_envelope(&mut out, ranges.len() * REPLICAS as usize);
    Ok(Answer::gateway(StatusCode::OK, &context.service.headers).uncached().body(out))
}

/// The addresses of the catalog, where databases, users and lists of containers are read.
pub fn of_catalog(context: &Context<'_>) -> Result<Answer> {
    let endpoint = endpoint(context)?;
    let mut out = Vec::with_capacity(64 + REPLICAS as usize * 320);
    open_envelope(&mut out, "Addresss", "");
    push_replicas(&mut out, &endpoint, "catalog", MASTER_RANGE);
    close_envelope(&mut out, REPLICAS as usize);
    Ok(Answer::gateway(StatusCode::OK, &context.service.headers).uncached().body(out))
}

/// The range that an address leads to; `None` for the catalog, and for what is no address of this server.
pub fn range_of(replica_path: &str) -> Option<u32> {
    let (_, rest) = replica_path.split_once("/partitions/")?;
    rest.split('/').next()?.parse().ok()
}

fn asked(list: &str, present: &[u32]) -> Result<Vec<u32>> {
    let mut ranges = BTreeSet::new();
    for text in list.split(',').map(str::trim) {
        let gone = || {
            let error =
                Error::new(Kind::RangeGone, format!("The partition key range '{text}' does not exist."));
            ApiError::from_engine(error, Plane::Items)
        };
        let range: u32 = text.parse().map_err(|_| gone())?;
        if !present.contains(&range) {
            return Err(gone());
        }
        ranges.insert(range);
        if ranges.len() > RANGES_MAX {
            return Err(ApiError::refused(format!("More than {RANGES_MAX} ranges in {RANGES_PARAMETER}.")));
        }
    }
    Ok(ranges.into_iter().collect())
}

/// `host:port` for addresses.
fn endpoint(context: &Context<'_>) -> Result<String> {
    if !context.service.config.direct_mode {
        return Err(ApiError::refused(
            "This server does not serve direct mode: it was started with --direct-mode off, or without TLS. \
             Set the client to gateway mode.",
        ));
    }
    let (host, port) = account::host_and_port(context);
    if host.contains(':') {
        return Err(ApiError::refused(
            "Clients cannot use direct mode at an IPv6 address: give them a name, 127.0.0.1, or gateway mode.",
        ));
    }
    Ok(format!("{host}:{port}"))
}

fn push_replicas(out: &mut Vec<u8>, endpoint: &str, service: &str, range: &str) {
    for replica in 1..=REPLICAS {
        if replica > 1 {
            out.push(b',');
        }
        let primary = replica == 1;
        let letter = if primary { 'p' } else { 's' };
        let path = format!("{APPLICATION}/{service}/partitions/{range}/replicas/{replica}{letter}/");
        out.extend_from_slice(b"{\"isPrimary\":");
        out.extend_from_slice(if primary { b"true" } else { b"false" });
        out.extend_from_slice(b",\"protocol\":\"rntbd\",\"logicalUri\":");
        push_json_string(out, &format!("urn:orrery:{service}:{range}:{replica}"));
        out.extend_from_slice(b",\"physcialUri\":");
        push_json_string(out, &format!("rntbd://{endpoint}/{path}"));
        out.extend_from_slice(b",\"partitionKeyRangeId\":");
        push_json_string(out, range);
        out.extend_from_slice(b",\"partitionTargetReplicaSetSize\":");
        push_u64(out, u64::from(REPLICAS));
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_in_any_order_and_decoded() {
        let query =
            "$filter=protocol%20eq%20rntbd&$partitionKeyRangeIds=0,1&$resolveFor=dbs%2fAA%3d%3D%2Fcolls";
        assert_eq!(resolved_for(query).as_deref(), Some("dbs/AA==/colls"));
        assert_eq!(parameter(query, RANGES_PARAMETER).as_deref(), Some("0,1"));
        assert_eq!(resolved_for("$resolvefor=dbs"), None);
        assert_eq!(resolved_for(""), None);
    }

    #[test]
    fn a_list_of_ranges_is_answered_once_each_and_only_if_all_are_there() {
        assert_eq!(asked("2,0,2", &[0, 1, 2]).unwrap(), [0, 2]);
        for list in ["3", "0,3", "", "0,", "x", "-1"] {
            let error = asked(list, &[0, 1]).unwrap_err();
            assert_eq!((error.status.as_u16(), error.substatus), (410, 1002), "{list:?}");
        }
    }

    #[test]
    fn the_path_of_an_address_leads_back_to_its_range() {
        let mut out = Vec::new();
        push_replicas(&mut out, "h:1", "AAAAAYAAAAI=", "12");
        let json = format!("[{}]", String::from_utf8(out).unwrap());
        let replicas: serde_json::Value = serde_json::from_str(&json).unwrap();
        let replicas = replicas.as_array().unwrap();
        assert_eq!(replicas.len(), 4);
        assert_eq!(replicas.iter().filter(|replica| replica["isPrimary"] == true).count(), 1);
        for replica in replicas {
            assert_eq!(range_of(replica["physcialUri"].as_str().unwrap()), Some(12));
            assert_eq!(replica["partitionKeyRangeId"], "12");
        }
        assert_eq!(range_of("/apps/orrery/services/catalog/partitions/M/replicas/1p"), None);
        assert_eq!(range_of("/somewhere/else"), None);
    }
}
