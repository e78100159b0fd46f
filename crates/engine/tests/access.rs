//! Who may do what, below all APIs: every kind of demand by every kind of principal, as
//! `tests/golden/access/permit.txt` says.
//!
//! A line of the file is a reach, `reads` or `writes`, what it is done to, and a sign for each principal. Every reach
//! must have lines for both, so a new one fails here until it has been decided who may do it. `ORRERY_SNAPSHOTS=write`
//! puts the signs of a run into the file; read the difference before committing it.

mod catalog_support;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use bytes::Bytes;
use catalog_support::{World, definition, plain, wait};
use orrery_engine::access::{
    Demand, Denied, Grant, KeySlot, Limits, Part, Principal, Reach, Resource, ResourceId, ResourceName,
    Subject, permit,
};
use orrery_engine::{
    Account, Container, Kind, Operation, PermissionMode, Scope, ScriptDefinition, ScriptKind, Write,
};
use orrery_model::{Epk, ParseOptions, PartitionKey, parse_json};
use serde_json::json;

const PRINCIPALS: [&str; 20] = [
    "primary",
    "secondary",
    "primary_readonly",
    "secondary_readonly",
    "directory",
    "container_all",
    "container_read",
    "container_id",
    "key_all",
    "key_read",
    "empty_key",
    "item_all",
    "item_read",
    "item_id",
    "item_any_key",
    "script_all",
    "script_id",
    "missing",
    "elsewhere",
    "crossing",
];

/// Databases `d` and `e` with a container `c` each; in `d/c` items `i1` and `i2` under key "a", `i1` under "b", and
/// procedures `s` and `t`.
struct Fixture {
    account: Arc<Account>,
    container: Arc<Container>,
    /// The numbers of both databases, of `d/c`, of `i1` under "a", and of `s`.
    d: u32,
    e: u32,
    c: u32,
    i1: u64,
    s: u64,
}

fn key(text: &str) -> PartitionKey {
    PartitionKey::parse_header(text).expect("a key")
}

fn create(container: &Arc<Container>, id: &str, pk: &str) -> u64 {
    let text = json!({ "id": id, "pk": pk }).to_string();
    let document = Bytes::from(parse_json(text.as_bytes(), &ParseOptions::default()).unwrap());
    let write = Write::new(Operation::Create { id: id.to_owned(), document });
    let key = key(&json!([pk]).to_string());
    wait(container.write_item(&key, write)).unwrap().item.expect("it was made").number
}

impl Fixture {
    fn new() -> Fixture {
        let account = World::new().open();
        let d = wait(account.create_database("d", None)).unwrap();
        let e = wait(account.create_database("e", None)).unwrap();
        let container = wait(account.create_container(&d, plain("c"), None)).unwrap();
        wait(account.create_container(&d, plain("other"), None)).unwrap();
        wait(account.create_container(&e, plain("c"), None)).unwrap();
        let i1 = create(&container, "i1", "a");
        create(&container, "i2", "a");
        create(&container, "i1", "b");
        let script = |id: &str| {
            let definition = ScriptDefinition {
                kind: ScriptKind::Procedure,
                id: id.to_owned(),
                body: "function () {}".to_owned(),
                trigger: None,
                spelling: Default::default(),
            };
            wait(account.create_script(&container, definition)).unwrap().number
        };
        let s = script("s");
        script("t");
        Fixture { d: d.number, e: e.number, c: container.number(), i1, s, account, container }
    }

    /// `@` before a name stands for the id of what has it.
    fn name(&self, text: &str) -> ResourceName<'static> {
        let (database, container) = (self.d, self.c);
        let id = match text {
            "@d" => ResourceId::Database(database),
            "@c" => ResourceId::Container { database, container },
            "@i1" => ResourceId::Item { database, container, number: self.i1 },
            "@s" => ResourceId::Script { database, container, kind: ScriptKind::Procedure, number: self.s },
            _ => return ResourceName::plain(text.to_owned()),
        };
        ResourceName { name: text.to_owned().into(), id: Some(id) }
    }

    /// `database/container`, `database/container/item/id`, or a kind of script instead of `item`.
    fn resource(&self, text: &str) -> Resource<'static> {
        let parts: Vec<&str> = text.split('/').collect();
        let part = match parts[2..] {
            [] => Part::Whole,
            ["item", id] => Part::Item(self.name(id)),
            ["procedure", id] => Part::Script(ScriptKind::Procedure, self.name(id)),
            ["trigger", id] => Part::Script(ScriptKind::Trigger, self.name(id)),
            _ => panic!("{text}"),
        };
        Resource { database: self.name(parts[0]), container: self.name(parts[1]), part }
    }

    fn granted(&self, mode: PermissionMode, resource: &str, under: Option<&str>, database: u32) -> Principal {
        Principal::Granted(Box::new(Grant {
            database,
            user: 1,
            permission: 1,
            mode,
            start_s: 0,
            expiry_s: u32::MAX,
            resource: self.resource(resource),
            partition_key: under.map(key),
        }))
    }

    fn principal(&self, name: &str) -> Principal {
        use PermissionMode::{All, Read};
        let a = Some(r#"["a"]"#);
        match name {
            "primary" => Principal::Key(KeySlot::Primary),
            "secondary" => Principal::Key(KeySlot::Secondary),
            "primary_readonly" => Principal::Key(KeySlot::PrimaryReadonly),
            "secondary_readonly" => Principal::Key(KeySlot::SecondaryReadonly),
            "directory" => Principal::Directory,
            "container_all" => self.granted(All, "d/c", None, self.d),
            "container_read" => self.granted(Read, "d/c", None, self.d),
            "container_id" => self.granted(All, "@d/@c", None, self.d),
            "key_all" => self.granted(All, "d/c", a, self.d),
            "key_read" => self.granted(Read, "d/c", a, self.d),
            "empty_key" => self.granted(All, "d/c", Some("[]"), self.d),
            "item_all" => self.granted(All, "d/c/item/i1", a, self.d),
            "item_read" => self.granted(Read, "d/c/item/i1", a, self.d),
            "item_id" => self.granted(All, "@d/@c/item/@i1", a, self.d),
            "item_any_key" => self.granted(All, "d/c/item/i1", None, self.d),
            "script_all" => self.granted(All, "d/c/procedure/s", None, self.d),
            "script_id" => self.granted(All, "@d/@c/procedure/@s", None, self.d),
            "missing" => self.granted(All, "d/nope", None, self.d),
            "elsewhere" => self.granted(All, "d/other", None, self.d),
            "crossing" => self.granted(All, "d/c", None, self.e),
            _ => panic!("{name}"),
        }
    }

    /// A resource, and then `key=`, `at=` (the key that an item asked for by its number lies under) and `scope`.
    fn subject(&self, text: &str) -> Subject<'static> {
        let mut words = text.split_whitespace();
        let resource = self.resource(words.next().expect("a resource"));
        let mut subject =
            Subject { resource, key: Some(PartitionKey::default()), item_at: None, has_scope: false };
        for word in words {
            match word.split_once('=').unwrap_or((word, "")) {
                ("key", "?") => subject.key = None,
                ("key", text) => subject.key = Some(key(text)),
                ("at", text) => {
                    let epk = self.container.definition().partition_key.effective(&key(text));
                    subject.item_at = Some((Cow::Owned(epk), self.i1));
                }
                ("scope", _) => subject.has_scope = true,
                _ => panic!("{word}"),
            }
        }
        subject
    }

    fn permit(&self, principal: &str, demand: Demand, subject: &str) -> Result<Limits, Denied> {
        wait(permit(&self.account, &self.principal(principal), demand, || self.subject(subject)))
    }

    fn sign(&self, principal: &str, demand: Demand, subject: &str) -> &'static str {
        match self.permit(principal, demand, subject) {
            Err(Denied::Insufficient) => "-",
            Err(Denied::KeyUnreadable) => "?",
            Ok(limits) => match (limits.key(), limits.permits_id("i1", Some("other"))) {
                (None, Ok(())) => "+",
                (Some(_), Ok(())) => "k",
                (None, Err(_)) => "1",
                (Some(_), Err(_)) => "k1",
            },
        }
    }
}

struct Line {
    reach: String,
    reads: bool,
    subject: String,
    signs: Vec<String>,
}

fn file() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/access/permit.txt")
}

fn lines(text: &str) -> Vec<Line> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            let (what, subject, signs) = (parts[0], parts[1], parts.get(2).copied().unwrap_or_default());
            let (reach, reads) = what.split_once(' ').unwrap_or_else(|| panic!("{line}"));
            Line {
                reach: reach.to_owned(),
                reads: match reads.trim() {
                    "reads" => true,
                    "writes" => false,
                    _ => panic!("{line}"),
                },
                subject: subject.to_owned(),
                signs: signs.split_whitespace().map(str::to_owned).collect(),
            }
        })
        .collect()
}

fn demand(line: &Line) -> Demand {
    let reach = Reach::ALL.into_iter().find(|reach| format!("{reach:?}") == line.reach);
    Demand { reach: reach.unwrap_or_else(|| panic!("{} is no reach", line.reach)), reads: line.reads }
}

#[test]
fn every_demand_of_every_principal_is_decided_as_written_down() {
    let text = std::fs::read_to_string(file()).unwrap();
    let lines = lines(&text);
    for reach in Reach::ALL {
        for reads in [true, false] {
            let decided = lines.iter().any(|line| demand(line) == Demand { reach, reads });
            assert!(decided, "decide in {} who may do {reach:?}, reads: {reads}", file().display());
        }
    }
    let fixture = Fixture::new();
    let signs = |line: &Line| {
        PRINCIPALS.map(|principal| fixture.sign(principal, demand(line), &line.subject)).join(" ")
    };
    if std::env::var_os("ORRERY_SNAPSHOTS").is_some_and(|mode| mode == "write") {
        let comments = text.lines().take_while(|line| line.starts_with('#') || line.is_empty());
        let mut out: String = comments.map(|line| format!("{line}\n")).collect();
        let width = lines.iter().map(|line| line.subject.len()).max().unwrap_or(0);
        for line in &lines {
            let access = if line.reads { "reads" } else { "writes" };
            let (reach, subject) = (&line.reach, &line.subject);
            out.push_str(&format!("{reach:<11} {access:<6} | {subject:<width$} | {}\n", signs(line)));
        }
        std::fs::write(file(), out).unwrap();
        return;
    }
    let wrong: Vec<String> = lines
        .iter()
        .filter(|line| signs(line) != line.signs.join(" "))
        .map(|line| format!("{} reads: {} {}: {}", line.reach, line.reads, line.subject, signs(line)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whoever holds a key is not asked what it is about, so that nothing is decoded for it.
#[test]
fn the_subject_is_asked_for_only_if_it_matters() {
    let fixture = Fixture::new();
    let read = Demand { reach: Reach::OneItem, reads: true };
    let write = Demand { reach: Reach::OneItem, reads: false };
    for (name, demand) in
        [("primary", write), ("primary_readonly", read), ("primary_readonly", write), ("key_read", write)]
    {
        let _ = wait(permit(&fixture.account, &fixture.principal(name), demand, || panic!("{name}")));
    }
}

#[test]
fn a_scope_is_narrowed_to_the_granted_key_and_never_widened() {
    let fixture = Fixture::new();
    let feed = Demand { reach: Reach::Feed, reads: true };
    let limits = fixture.permit("key_read", feed, "d/c scope").unwrap();
    let container = &fixture.container;
    let a = key(r#"["a"]"#);
    let (min, max) = container.span(&a).unwrap();
    let scope = |scope| limits.scope(container, scope);
    assert!(matches!(scope(Scope::Key(a.clone())), Ok(Scope::Key(found)) if found == a));
    // Keys can share a hash, so the part of one key is that key.
    let part = Scope::Epk { min: min.clone(), max, range: None };
    assert!(matches!(scope(part), Ok(Scope::Key(found)) if found == a));
    let whole = Scope::Epk { min: Epk::MIN, max: Epk::max(), range: None };
    for wider in [Scope::All, Scope::Range(0), whole, Scope::Key(key(r#"["b"]"#)), Scope::Key(key("[]"))] {
        assert_eq!(scope(wider).unwrap_err().kind, Kind::AccessDenied);
    }
    let gone = Scope::Epk { min: min.clone(), max: min, range: Some(99) };
    assert_eq!(scope(gone).unwrap_err().kind, Kind::RangeGone);
    assert!(matches!(Limits::default().scope(container, Scope::All), Ok(Scope::All)));
}

#[test]
fn a_prefix_of_a_hierarchical_key_opens_what_lies_under_it() {
    let fixture = Fixture::new();
    let paths = json!({ "paths": ["/tenant", "/user"], "kind": "MultiHash", "version": 2 });
    let definition = definition(json!({ "id": "h", "partitionKey": paths }));
    let d = catalog_support::database(&fixture.account, "d");
    let container = wait(fixture.account.create_container(&d, definition, None)).unwrap();
    let tenant = fixture.granted(PermissionMode::All, "d/h", Some(r#"["t"]"#), fixture.d);
    let under_key = Demand { reach: Reach::UnderKey, reads: false };
    let permitted = |key: &str| {
        let subject = format!("d/h key={key}");
        wait(permit(&fixture.account, &tenant, under_key, || fixture.subject(&subject)))
    };
    assert!(permitted(r#"["t","u"]"#).is_ok() && permitted(r#"["t"]"#).is_ok());
    assert_eq!(permitted(r#"["s","t"]"#), Err(Denied::Insufficient));
    let limits = permitted(r#"["t","u"]"#).unwrap();
    let (min, max) = container.span(&key(r#"["t"]"#)).unwrap();
    let scope = limits.scope(&container, Scope::Epk { min: min.clone(), max: max.clone(), range: None });
    assert!(matches!(scope, Ok(Scope::Epk { min: low, max: high, .. }) if low == min && high == max));
}
