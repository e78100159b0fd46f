//! From a URL path to the resource it names, by position.
//!
//! Segments alternate between a keyword and an id: `dbs/{db}/colls/{coll}/docs/{item}`. Ids may equal keywords, so
//! only the position decides. Each segment is percent-decoded after splitting (an id may hold an encoded slash). One
//! trailing slash is ignored because one official client always sends it, and slashes in front count as one: clients
//! join the account's endpoint, which ends in a slash, with paths that begin with one. Two slashes anywhere else stand
//! around an id that is empty, and no path with one is a resource.
//!
//! ```text
//! GET  /dbs/d/colls/c/docs/a/   ->  Resource::Item, ids [d, c, a]      signed as type docs,  link dbs/d/colls/c/docs/a
//! POST /dbs/d/colls/c/docs      ->  Resource::Items, ids [d, c]        signed as type docs,  link dbs/d/colls/c
//! ```
//!
//! What a path cannot be turned into is the service's "Request url is invalid."

use std::borrow::Cow;

use http::Uri;
use orrery_engine::ScriptKind;
use orrery_model::Epk;
use percent_encoding::percent_decode_str;

use crate::addresses;
use crate::rid::{ContainerRid, MediaId, ascii, database_rid};

/// No route is deeper than `dbs/{}/colls/{}/docs/{}/attachments/{}`.
const SEGMENTS_MAX: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    Account,
    Databases,
    Database,
    Containers,
    Container,
    Items,
    Item,
    Ranges,
    Range,
    Conflicts,
    Conflict,
    PartitionKeyDelete,
    Offers,
    Offer,
    /// This server's own: splits and merges of partitions.
    Splits,
    /// This server's own: what partitions hold and spend.
    Partitions,
    /// This server's own: fault rules.
    Faults,
    /// This server's own: whether throughput is enforced.
    Throttling,
    /// This server's own, for tests: the clock.
    Clock,
    /// This server's own, for tests: everything is deleted.
    Reset,
    /// This server's own: databases that begin with what others hold.
    Forks,
    /// This server's own: which partition key a container should have.
    Advice,
    Users,
    User,
    Permissions,
    Permission,
    EncryptionKeys,
    EncryptionKey,
    Attachments,
    Attachment,
    /// The media of an attachment: a route of its own, with the ids of the attachment.
    Media,
    /// Who asks, as the server sees it.
    Identity,
    /// Whether a query can be understood.
    QueryCheck,
    Scripts(ScriptKind),
    Script(ScriptKind),
    /// Replica addresses of a container's partitions.
    Addresses,
    /// Those of the catalog.
    CatalogAddresses,
}

/// A path taken apart.
#[derive(Clone, Debug)]
pub struct Path<'a> {
    pub resource: Resource,
    /// The keyword that the signature names: the last keyword of the path.
    pub resource_type: &'static str,
    /// Whether the path names a feed (its link for signing is then the parent's).
    pub feed: bool,
    /// Of media: where the key of the item lies that they are attached to.
    pub media_epk: Option<Box<Epk>>,
    segments: [Cow<'a, str>; SEGMENTS_MAX],
    length: usize,
    /// As it was sent; empty where the path was not sent as text.
    raw: &'a str,
}

/// `Err` when the path is no resource of the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidPath;

/// What may follow what. Each row: the keywords on the way, what the feed is, what one of its members is.
const ROUTES: &[(&[&str], Resource, Resource)] = &[
    (&["dbs"], Resource::Databases, Resource::Database),
    (&["offers"], Resource::Offers, Resource::Offer),
    (&["dbs", "colls"], Resource::Containers, Resource::Container),
    (&["dbs", "colls", "docs"], Resource::Items, Resource::Item),
    (&["dbs", "colls", "docs", "attachments"], Resource::Attachments, Resource::Attachment),
    (&["dbs", "colls", "pkranges"], Resource::Ranges, Resource::Range),
    (&["dbs", "colls", "conflicts"], Resource::Conflicts, Resource::Conflict),
    (&["dbs", "users"], Resource::Users, Resource::User),
    (&["dbs", "users", "permissions"], Resource::Permissions, Resource::Permission),
    (&["dbs", "colls", "sprocs"], scripts(ScriptKind::Procedure), script(ScriptKind::Procedure)),
    (&["dbs", "colls", "triggers"], scripts(ScriptKind::Trigger), script(ScriptKind::Trigger)),
    (&["dbs", "colls", "udfs"], scripts(ScriptKind::Function), script(ScriptKind::Function)),
    (&["dbs", "clientencryptionkeys"], Resource::EncryptionKeys, Resource::EncryptionKey),
];

/// The keyword of addresses. What they are of is in the query, and so is what clients sign.
const ADDRESSES: &str = "addresses";

/// The keyword of media, and their type in signatures.
const MEDIA: &str = "media";

/// The type in the signature of this server's own routes.
pub const OWN_TYPE: &str = "_orrery";

const fn scripts(kind: ScriptKind) -> Resource {
    Resource::Scripts(kind)
}

const fn script(kind: ScriptKind) -> Resource {
    Resource::Script(kind)
}

impl<'a> Path<'a> {
    pub fn parse(raw: &'a str) -> Result<Path<'a>, InvalidPath> {
        let trimmed = raw.trim_start_matches('/');
        let trimmed = trimmed.strip_suffix('/').filter(|rest| !rest.is_empty()).unwrap_or(trimmed);
        let mut segments: [Cow<'a, str>; SEGMENTS_MAX] = Default::default();
        let mut length = 0;
        if !trimmed.is_empty() {
            for segment in trimmed.split('/') {
                if length == SEGMENTS_MAX || segment.is_empty() {
                    return Err(InvalidPath);
                }
                segments[length] = decode(segment)?;
                length += 1;
            }
        }
        if let [media, id] = &segments[..length]
            && media == MEDIA
        {
            let media = MediaId::parse(id).ok_or(InvalidPath)?;
            return Ok(Path::of_media(media, trimmed));
        }
        let (resource, resource_type, feed) = resolve(&segments[..length])?;
        Ok(Path { resource, resource_type, feed, media_epk: None, segments, length, raw: trimmed })
    }

    /// The path that a URI names. Only addresses are named by more than the path of the URI: they have the ids, and the
    /// signature, of what they are wanted for.
    pub fn of_uri(uri: &'a Uri) -> Result<Path<'a>, InvalidPath> {
        if uri.path().trim_matches('/') != ADDRESSES {
            return Path::parse(uri.path());
        }
        let wanted = addresses::resolved_for(uri.query().unwrap_or("")).ok_or(InvalidPath)?;
        let path = Path::parse(&wanted)?;
        let resource = match path.segments.get(2).is_some_and(|keyword| keyword == "colls") && path.ids() >= 2
        {
            true => Resource::Addresses,
            false => Resource::CatalogAddresses,
        };
        let segments = path.segments.map(|segment| Cow::Owned(segment.into_owned()));
        Ok(Path { resource, segments, media_epk: path.media_epk, raw: "", ..path })
    }

    /// Media have the path of their attachment, by rids. That is also what clients sign.
    fn of_media(media: MediaId, raw: &'a str) -> Path<'a> {
        let container = ContainerRid::new(media.database, media.container);
        let ids = [
            database_rid(media.database),
            container.as_str().to_owned(),
            ascii(&container.item(media.item)).to_owned(),
            container.attachment(media.item, media.attachment),
        ];
        let mut segments: [Cow<'a, str>; SEGMENTS_MAX] = Default::default();
        for (n, (keyword, id)) in ["dbs", "colls", "docs", "attachments"].into_iter().zip(ids).enumerate() {
            segments[2 * n] = Cow::Borrowed(keyword);
            segments[2 * n + 1] = Cow::Owned(id);
        }
        Path {
            resource: Resource::Media,
            resource_type: MEDIA,
            feed: false,
            media_epk: Some(Box::new(media.epk)),
            segments,
            length: SEGMENTS_MAX,
            raw,
        }
    }

    /// The path of what is named by keywords and ids, as clients of the direct protocol do. An id may be anything but
    /// empty. The last keyword alone is a feed.
    pub fn of_names(keywords: &[&'static str], ids: &[Cow<'a, str>]) -> Result<Path<'a>, InvalidPath> {
        let mut segments: [Cow<'a, str>; SEGMENTS_MAX] = Default::default();
        let length = keywords.len() + ids.len();
        if length > SEGMENTS_MAX || ids.iter().any(|id| id.is_empty()) {
            return Err(InvalidPath);
        }
        for (n, keyword) in keywords.iter().enumerate() {
            segments[2 * n] = Cow::Borrowed(keyword);
        }
        for (n, id) in ids.iter().enumerate() {
            segments[2 * n + 1] = id.clone();
        }
        let (resource, resource_type, feed) = resolve(&segments[..length])?;
        Ok(Path { resource, resource_type, feed, media_epk: None, segments, length, raw: "" })
    }

    /// The n-th id of the path: 0 the database or offer, 1 the container or user, 2 the item or permission.
    pub fn id(&self, n: usize) -> &str {
        let at = n * 2 + 1;
        if at < self.length { &self.segments[at] } else { "" }
    }

    pub fn ids(&self) -> usize {
        match self.resource {
            Resource::PartitionKeyDelete => 2,
            _ => self.length / 2,
        }
    }

    /// The link that a client signs for a name-based request: decoded, case kept, the parent's for a feed.
    pub fn link(&self) -> String {
        self.segments[..self.link_length()].join("/")
    }

    /// The same as it was sent. Some clients sign what they send instead of what they mean.
    pub fn raw_link(&self) -> Option<String> {
        let raw = (!self.raw.is_empty()).then_some(self.raw)?;
        Some(raw.split('/').take(self.link_length()).collect::<Vec<_>>().join("/"))
    }

    /// The last id, lower-cased: what a client signs when it addresses resources by rid.
    pub fn rid_link(&self) -> Option<String> {
        let ids = self.ids();
        (ids > 0).then(|| self.id(ids - 1).to_ascii_lowercase())
    }

    /// The decoded segments of the link, for hashing without building a string.
    pub fn link_segments(&self) -> &[Cow<'a, str>] {
        &self.segments[..self.link_length()]
    }

    fn link_length(&self) -> usize {
        match self.resource {
            Resource::PartitionKeyDelete => 4,
            _ if self.feed => self.length.saturating_sub(1),
            _ => self.length,
        }
    }
}

fn resolve(segments: &[Cow<'_, str>]) -> Result<(Resource, &'static str, bool), InvalidPath> {
    if segments.is_empty() {
        return Ok((Resource::Account, "", false));
    }
    if let [dbs, _, colls, _, operations, operation] = segments
        && dbs == "dbs"
        && colls == "colls"
        && operations == "operations"
        && operation == "partitionkeydelete"
    {
        return Ok((Resource::PartitionKeyDelete, "colls", false));
    }
    // Routes of this server's own. They are signed with this type and the whole path as the link.
    if let [own, name] = segments
        && own == OWN_TYPE
    {
        return match &**name {
            "splits" => Ok((Resource::Splits, OWN_TYPE, false)),
            "partitions" => Ok((Resource::Partitions, OWN_TYPE, false)),
            "faults" => Ok((Resource::Faults, OWN_TYPE, false)),
            "throttling" => Ok((Resource::Throttling, OWN_TYPE, false)),
            "clock" => Ok((Resource::Clock, OWN_TYPE, false)),
            "reset" => Ok((Resource::Reset, OWN_TYPE, false)),
            "advise" => Ok((Resource::Advice, OWN_TYPE, false)),
            "forks" => Ok((Resource::Forks, OWN_TYPE, false)),
            "whoami" => Ok((Resource::Identity, OWN_TYPE, false)),
            "check" => Ok((Resource::QueryCheck, OWN_TYPE, false)),
            _ => Err(InvalidPath),
        };
    }
    let keywords = segments.len().div_ceil(2);
    for (route, feed, member) in ROUTES {
        if route.len() == keywords && route.iter().enumerate().all(|(i, keyword)| segments[i * 2] == *keyword)
        {
            let is_feed = segments.len() % 2 == 1;
            return Ok((if is_feed { *feed } else { *member }, route[keywords - 1], is_feed));
        }
    }
    Err(InvalidPath)
}

fn decode(segment: &str) -> Result<Cow<'_, str>, InvalidPath> {
    if !segment.as_bytes().contains(&b'%') {
        return Ok(Cow::Borrowed(segment));
    }
    percent_decode_str(segment).decode_utf8().map_err(|_| InvalidPath)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, resource: Resource, ids: &[&str], resource_type: &str, link: &str) {
        let parsed = Path::parse(path).unwrap_or_else(|_| panic!("{path} is a route"));
        assert_eq!(parsed.resource, resource, "{path}");
        assert_eq!((0..parsed.ids()).map(|n| parsed.id(n)).collect::<Vec<_>>(), ids, "{path}");
        assert_eq!((parsed.resource_type, parsed.link().as_str()), (resource_type, link), "{path}");
    }

    #[test]
    fn positions_decide_what_a_path_names() {
        check("/", Resource::Account, &[], "", "");
        check("/dbs", Resource::Databases, &[], "dbs", "");
        check("/dbs/d", Resource::Database, &["d"], "dbs", "dbs/d");
        check("/dbs/d/colls", Resource::Containers, &["d"], "colls", "dbs/d");
        check("/dbs/d/colls/c", Resource::Container, &["d", "c"], "colls", "dbs/d/colls/c");
        check("/dbs/d/colls/c/docs", Resource::Items, &["d", "c"], "docs", "dbs/d/colls/c");
        check("/dbs/d/colls/c/docs/i", Resource::Item, &["d", "c", "i"], "docs", "dbs/d/colls/c/docs/i");
        check("/dbs/d/colls/c/pkranges", Resource::Ranges, &["d", "c"], "pkranges", "dbs/d/colls/c");
        check(
            "/dbs/d/colls/c/conflicts/x",
            Resource::Conflict,
            &["d", "c", "x"],
            "conflicts",
            "dbs/d/colls/c/conflicts/x",
        );
        check("/offers", Resource::Offers, &[], "offers", "");
        check("/offers/AbCd", Resource::Offer, &["AbCd"], "offers", "offers/AbCd");
        check(
            "/dbs/d/colls/c/sprocs/s",
            Resource::Script(ScriptKind::Procedure),
            &["d", "c", "s"],
            "sprocs",
            "dbs/d/colls/c/sprocs/s",
        );
    }

    #[test]
    fn media_have_the_ids_of_their_attachment_and_its_signature() {
        let epk = Epk::from_hex("0A0B").unwrap();
        let path = format!("/media/{}", ContainerRid::new(1, 2).media(5, 3, &epk));
        let parsed = Path::parse(&path).unwrap();
        assert_eq!(
            (parsed.resource, parsed.resource_type, &parsed.media_epk),
            (Resource::Media, "media", &Some(Box::new(epk)))
        );
        assert_eq!(
            (parsed.id(0), parsed.id(1), parsed.id(2)),
            ("AAAAAQ==", "AAAAAYAAAAI=", "AAAAAYAAAAIFAAAAAAAAAA==")
        );
        assert_eq!(parsed.rid_link(), Some(ContainerRid::new(1, 2).attachment(5, 3).to_ascii_lowercase()));
    }

    #[test]
    fn ids_may_equal_keywords() {
        check(
            "/dbs/dbs/colls/colls/docs/docs",
            Resource::Item,
            &["dbs", "colls", "docs"],
            "docs",
            "dbs/dbs/colls/colls/docs/docs",
        );
    }

    #[test]
    fn one_trailing_slash_is_ignored() {
        check("/dbs/d/colls/c/docs/", Resource::Items, &["d", "c"], "docs", "dbs/d/colls/c");
        check("/dbs/d/", Resource::Database, &["d"], "dbs", "dbs/d");
        assert!(Path::parse("/dbs/d//").is_err());
    }

    #[test]
    fn slashes_in_front_count_as_one() {
        check("//", Resource::Account, &[], "", "");
        check("//dbs", Resource::Databases, &[], "dbs", "");
        check("//dbs/d/colls/c/docs/i/", Resource::Item, &["d", "c", "i"], "docs", "dbs/d/colls/c/docs/i");
        check("///offers/AbCd", Resource::Offer, &["AbCd"], "offers", "offers/AbCd");
        assert_eq!(Path::parse("//dbs/a%20b").unwrap().raw_link().as_deref(), Some("dbs/a%20b"));
        for empty_id in ["/dbs//colls", "//dbs//colls", "/dbs/d//colls", "/dbs/d/colls//docs"] {
            assert!(Path::parse(empty_id).is_err(), "{empty_id}");
        }
    }

    #[test]
    fn segments_are_decoded_after_splitting() {
        check(
            "/dbs/d/colls/c/docs/a%2Fb%20c",
            Resource::Item,
            &["d", "c", "a/b c"],
            "docs",
            "dbs/d/colls/c/docs/a/b c",
        );
        check("/dbs/%E4%BD%A0", Resource::Database, &["你"], "dbs", "dbs/你");
        assert_eq!(Path::parse("/dbs/a%20b").unwrap().raw_link().as_deref(), Some("dbs/a%20b"));
        assert!(Path::parse("/dbs/%FF").is_err(), "not UTF-8");
    }

    #[test]
    fn deleting_a_partition_key_is_signed_as_its_container() {
        let path = "/dbs/d/colls/c/operations/partitionkeydelete";
        check(path, Resource::PartitionKeyDelete, &["d", "c"], "colls", "dbs/d/colls/c");
        assert!(Path::parse("/dbs/d/colls/c/operations/other").is_err());
    }

    #[test]
    fn rid_links_are_the_last_id_in_lower_case() {
        assert_eq!(Path::parse("/offers/AbCd").unwrap().rid_link().as_deref(), Some("abcd"));
        assert_eq!(Path::parse("/dbs/A==/colls/B=/docs").unwrap().rid_link().as_deref(), Some("b="));
        assert_eq!(Path::parse("/dbs").unwrap().rid_link(), None);
    }

    #[test]
    fn other_paths_are_invalid() {
        for path in [
            "/nope",
            "/dbs/d/views",
            "/dbs/d/colls/c/docs/a/attachments/b/more",
            "/media",
            "/media/x",
            "/dbs/d/colls/c/docs/_apis/batch",
        ] {
            assert!(Path::parse(path).is_err(), "{path}");
        }
    }
}
