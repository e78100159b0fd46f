//! The change feed: which items have changed since a point, in the order of the changes; each once at its latest
//! version, or (all versions and deletes) every change by itself.
//!
//! ```text
//! A-IM: Incremental Feed                     from the beginning        If-None-Match: "43"   after change 43
//! If-None-Match: *                           from now on               If-Modified-Since     from that second
//! ```
//!
//! All versions and deletes (`A-IM: Full-Fidelity Feed`) are there for containers whose `changeFeedPolicy` keeps
//! them, and can be read from now on or from a continuation.
//!
//! The answer's etag is where to go on, also when there was nothing and the status is 304. Inside one partition it is
//! the number of a change, `"43"`, as on the service. A scope of several partitions has a position in each: then the
//! etag lists them, `"0:43,1:12"`. A partition that the page did not reach is not listed, and begins next time where
//! the request's own starting point says.
//!
//! A partition that came from others begins where the client was in them: items keep the numbers of their changes. Of
//! two that were merged, the earlier position counts; what the client has seen of the other comes again.

use std::time::UNIX_EPOCH;

use http::StatusCode;
use http::header::{IF_MODIFIED_SINCE, IF_NONE_MATCH};
use orrery_engine::{
    ChangeFeedFailure, ChangeKind, ChangeMode, ChangePositions, ChangeStart, ChangesFrom,
    ContainerDefinition, FeedChange, ItemVersion, PageRequest, Scope, block_on,
};
use orrery_model::NumberStyle;

use crate::errors::{ApiError, Plane, Result};
use crate::headers::{A_IM, Answer};
use crate::item_json::{write_change, write_item};
use crate::items;
use crate::paging::{PAGE_BYTES_MAX, page_items};
use crate::resource_feed::{close_envelope, open_envelope};
use crate::service::{Context, Target};
use crate::write::push_json_string;
use crate::{consistency, http_date, request_class, scope};

/// A list of positions longer than this is none of ours.
const POSITIONS_MAX: usize = 10_000;

pub fn read(context: &Context<'_>) -> Result<Answer> {
    let kind = context.text(A_IM).unwrap_or("").trim();
    let all_versions = kind.eq_ignore_ascii_case("full-fidelity feed");
    if !all_versions && !kind.eq_ignore_ascii_case("incremental feed") {
        return Err(ApiError::refused(format!(
            "The value '{kind}' specified for the header 'A-IM' is invalid. Allowed: Incremental Feed, Full-Fidelity Feed."
        )));
    }
    let target = context.container_inside()?;
    if all_versions && !target.container.keeps_versions() {
        return Err(ApiError::refused(
            "Change feed mode 'All Versions and Deletes' must be enabled: the container needs a changeFeedPolicy with a \
             retentionDuration.",
        ));
    }
    let scope = scope::of_request(context, &target)?;
    let mode = if all_versions { ChangeMode::AllVersions } else { ChangeMode::LatestVersion };
    scope::routed(&target, &scope, || read_page(context, &target, &scope, mode))
}

fn read_page(context: &Context<'_>, target: &Target, scope: &Scope, mode: ChangeMode) -> Result<Answer> {
    let start = start_of(context)?;
    let page = PageRequest {
        max_items: page_items(context)?,
        max_bytes: PAGE_BYTES_MAX,
        continuation: None,
        session: consistency::session(context)?,
        class: request_class::class(context)?,
    };
    let found = block_on(target.container.read_change_feed(scope, &start, mode, &page)).map_err(|failure| match failure {
        ChangeFeedFailure::Engine(error) => {
            ApiError::from_engine(error, Plane::Items).at(items::place(target, &Default::default()))
        }
        ChangeFeedFailure::Refused(error) => {
                let at = error.at.unwrap_or_default();
            ApiError::from_engine(error, Plane::Items).at(items::at(at))
        }
        ChangeFeedFailure::NoPosition => ApiError::refused(
            "Change feed mode 'All Versions and Deletes' can be read from now on or from a continuation, and not from the \
             beginning or from a time. You must read the change feed from within the retention period.",
        ),
    })?;
    let changes = &found.changes;
    let status = if changes.is_empty() { StatusCode::NOT_MODIFIED } else { StatusCode::OK };
    let answer = items::answer(context, target, status, items::at(found.at), found.charge_ru)
        .etag(&etag(&found.positions, found.single))
        .count(changes.len());
    if changes.is_empty() {
        return Ok(answer);
    }
    let definition = target.container.definition();
    let size: usize = changes.iter().map(FeedChange::size_hint).sum();
    let mut out = Vec::with_capacity(size + 64);
    open_envelope(&mut out, "Documents", target.rid.as_str());
    for (n, change) in changes.iter().enumerate() {
        if n > 0 {
            out.push(b',');
        }
        match change {
            FeedChange::Latest(item) => write_change(&mut out, &target.rid, item),
            FeedChange::Version(version) => write_version(&mut out, target, &definition, version),
        }
    }
    close_envelope(&mut out, changes.len());
    Ok(answer.body(out))
}

/// `{"current": …, "previous": …, "metadata": …}`. After a delete there is nothing current, and the metadata names the
/// item.
fn write_version(
    out: &mut Vec<u8>,
    target: &Target,
    definition: &ContainerDefinition,
    version: &ItemVersion,
) {
    out.extend_from_slice(b"{\"current\":");
    match &version.current {
        Some(item) => write_change(out, &target.rid, item),
        None => out.extend_from_slice(b"{}"),
    }
    if let Some(item) = &version.previous {
        out.extend_from_slice(b",\"previous\":");
        write_item(out, &target.rid, item);
    }
    let operation = match version.kind {
        ChangeKind::Create => "create",
        ChangeKind::Replace | ChangeKind::Leave => "replace",
        ChangeKind::Delete | ChangeKind::Expire | ChangeKind::Purge => "delete",
    };
    let text = format!(
        ",\"metadata\":{{\"operationType\":\"{operation}\",\"lsn\":{},\"crts\":{},\"previousImageLSN\":{}",
        version.lsn, version.ts, version.previous_lsn
    );
    out.extend_from_slice(text.as_bytes());
    if let (None, Some(item)) = (&version.current, &version.previous) {
        out.extend_from_slice(b",\"id\":");
        push_json_string(out, item.id());
        out.extend_from_slice(b",\"partitionKey\":{");
        let mut first = true;
        for path in &definition.partition_key.paths {
            // A key that is not there has no value to tell.
            let Some(value) = item.body().path(path) else { continue };
            if !std::mem::take(&mut first) {
                out.push(b',');
            }
            push_json_string(
                out,
                &path.segments().iter().map(|name| name.as_str()).collect::<Vec<_>>().join("/"),
            );
            out.push(b':');
            value.write_json(out, NumberStyle::Item);
        }
        out.push(b'}');
    }
    if version.kind == ChangeKind::Expire {
        out.extend_from_slice(b",\"timeToLiveExpired\":true");
    }
    out.extend_from_slice(b"}}");
}

fn etag(positions: &[(u32, u64)], single: bool) -> String {
    if single && let [(_, lsn)] = positions {
        return format!("\"{lsn}\"");
    }
    let list: Vec<String> = positions.iter().map(|(range, lsn)| format!("{range}:{lsn}")).collect();
    format!("\"{}\"", list.join(","))
}

/// Where a request begins.
fn start_of(context: &Context<'_>) -> Result<ChangeStart> {
    let since = context.text(IF_MODIFIED_SINCE).map(|text| {
        let time = http_date::parse(text).and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        time.map(|passed| u32::try_from(passed.as_secs()).unwrap_or(u32::MAX)).ok_or_else(|| {
            ApiError::refused(format!(
                "The value '{text}' specified for the header 'If-Modified-Since' is invalid."
            ))
        })
    });
    let otherwise = match since.transpose()? {
        Some(second) => ChangesFrom::Time(second),
        None => ChangesFrom::Beginning,
    };
    parse(context.text(IF_NONE_MATCH).unwrap_or(""), otherwise)
}

fn parse(etag: &str, otherwise: ChangesFrom) -> Result<ChangeStart> {
    let text = etag.trim().trim_matches('"');
    let positions = match text {
        "" => ChangePositions::None,
        "*" => return Ok(ChangeStart { positions: ChangePositions::None, otherwise: ChangesFrom::Now }),
        text if text.contains(':') => {
            let list: Option<Vec<(u32, u64)>> = text
                .split(',')
                .take(POSITIONS_MAX)
                .map(|entry| {
                    let (range, lsn) = entry.split_once(':')?;
                    Some((range.parse().ok()?, lsn.parse().ok()?))
                })
                .collect();
            ChangePositions::Each(list.ok_or_else(|| wrong(etag))?)
        }
        text => ChangePositions::One(text.parse().map_err(|_| wrong(etag))?),
    };
    Ok(ChangeStart { positions, otherwise })
}

fn wrong(etag: &str) -> ApiError {
    ApiError::bad_request(format!(
        "The value '{etag}' specified for the header 'If-None-Match' is no position in this change feed."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(etag: &str, range: u32, parents: &[u32]) -> Option<ChangesFrom> {
        parse(etag, ChangesFrom::Beginning).map(|start| start.of_range(range, parents)).ok()
    }

    #[test]
    fn a_position_is_read_in_both_forms() {
        assert_eq!(from("", 0, &[]), Some(ChangesFrom::Beginning));
        assert_eq!(from("*", 0, &[]), Some(ChangesFrom::Now));
        assert_eq!(from("\"43\"", 0, &[]), Some(ChangesFrom::After(43)));
        assert_eq!(from("43", 7, &[]), Some(ChangesFrom::After(43)));
        assert_eq!(from("\"0:43,1:12\"", 1, &[]), Some(ChangesFrom::After(12)));
        assert_eq!(from("\"0:43,1:12\"", 2, &[]), Some(ChangesFrom::Beginning));
    }

    #[test]
    fn text_that_is_no_position_is_refused() {
        assert_eq!(from("\"nonsense\"", 0, &[]), None);
        assert_eq!(from("\"0:x\"", 0, &[]), None);
    }

    #[test]
    fn the_etag_is_plain_for_one_partition() {
        assert_eq!(etag(&[(3, 43)], true), "\"43\"");
        assert_eq!(etag(&[(0, 43), (1, 12)], false), "\"0:43,1:12\"");
    }
}
