//! Users and permissions of the catalog: names, uniqueness, what survives a restart and what goes with what.

mod catalog_support;

use catalog_support::{World, database, plain, wait};
use orrery_engine::{
    Account, ENCRYPTION_KEYS_MAX, EncryptionKeyDefinition, Kind, PermissionDefinition, PermissionMode,
    RESOURCE_BYTES_MAX, Ref,
};
use orrery_model::PartitionKey;

fn permission(name: &str, resource: &str, key: Option<&str>) -> PermissionDefinition {
    PermissionDefinition {
        name: name.to_owned(),
        mode: PermissionMode::Read,
        mode_name: "read".to_owned(),
        resource: resource.to_owned(),
        escaped: false,
        partition_key: key.map(|text| PartitionKey::parse_header(text).expect("a key")),
    }
}

/// An account with database `d`; gives its number.
fn with_database(account: &Account) -> u32 {
    wait(account.create_database("d", None)).expect("created").number
}

fn kind<T>(result: orrery_engine::Result<T>) -> Kind {
    match result {
        Ok(_) => panic!("must be refused"),
        Err(error) => error.kind,
    }
}

#[test]
fn users_and_permissions_survive_a_restart() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let user = wait(account.create_user(d, "ann")).unwrap();
    let definition = permission("p", "dbs/d/colls/c", Some("[\"a\"]"));
    let made = wait(account.create_permission(d, user.number, definition)).unwrap();
    drop(account);

    let account = world.open();
    let user_again = database(&account, "d").user(Ref::Name("ann")).unwrap();
    assert_eq!((user_again.number, user_again.etag, user_again.ts), (user.number, user.etag, user.ts));
    assert_eq!(*user_again.permission(Ref::Name("p")).unwrap(), *made);
    // The numbers go on where they were.
    let next =
        wait(account.create_permission(d, user.number, permission("q", "dbs/d/colls/e", None))).unwrap();
    assert_eq!(next.number, made.number + 1);
}

#[test]
fn users_and_containers_never_share_a_number() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let one = wait(account.create_user(d, "one")).unwrap().number;
    let container =
        wait(account.create_container(&database(&account, "d"), plain("c"), None)).unwrap().number();
    let two = wait(account.create_user(d, "two")).unwrap().number;
    assert!(one < container && container < two, "{one} {container} {two}");
    wait(account.delete_user(d, two, None)).unwrap();
    assert!(wait(account.create_user(d, "two")).unwrap().number > two, "numbers are not used again");
}

#[test]
fn a_name_is_given_once() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let ann = wait(account.create_user(d, "ann")).unwrap().number;
    let bob = wait(account.create_user(d, "bob")).unwrap().number;
    assert_eq!(kind(wait(account.create_user(d, "ann"))), Kind::AlreadyExists);
    assert_eq!(kind(wait(account.replace_user(d, bob, "ann", None))), Kind::AlreadyExists);
    assert_eq!(kind(wait(account.create_user(d, "a/b"))), Kind::BadRequest);
    // A name that was given up is free.
    wait(account.replace_user(d, ann, "anna", None)).unwrap();
    wait(account.replace_user(d, bob, "ann", None)).unwrap();
    assert_eq!(database(&account, "d").user(Ref::Name("ann")).unwrap().number, bob);
    assert_eq!(kind(database(&account, "d").user(Ref::Name("bob"))), Kind::NotFound);
}

#[test]
fn a_user_has_one_permission_for_a_resource_and_key() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let ann = wait(account.create_user(d, "ann")).unwrap().number;
    let bob = wait(account.create_user(d, "bob")).unwrap().number;
    let create = |user, definition| wait(account.create_permission(d, user, definition));
    create(ann, permission("p", "dbs/d/colls/c", None)).unwrap();
    assert_eq!(kind(create(ann, permission("q", "/dbs/d/colls/c/", None))), Kind::AlreadyExists);
    create(ann, permission("q", "dbs/d/colls/c", Some("[1]"))).unwrap();
    create(ann, permission("r", "dbs/d/colls/c", Some("[]"))).unwrap();
    assert_eq!(kind(create(ann, permission("s", "dbs/d/colls/c", Some("[1.0]")))), Kind::AlreadyExists);
    create(bob, permission("p", "dbs/d/colls/c", None)).unwrap();
    // A replace keeps its own resource and gives up the old one.
    let (moved, new) =
        wait(account.upsert_permission(d, ann, permission("p", "dbs/d/colls/x", None), None)).unwrap();
    assert!(!new && moved.definition.resource == "dbs/d/colls/x");
    create(ann, permission("s", "dbs/d/colls/c", None)).unwrap();
    assert_eq!(
        kind(wait(account.upsert_permission(d, ann, permission("p", "dbs/d/colls/c", None), None))),
        Kind::AlreadyExists
    );
}

#[test]
fn an_upsert_creates_or_replaces_and_says_which() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let (ann, new) = wait(account.upsert_user(d, "ann", None)).unwrap();
    assert!(new);
    let (again, new) = wait(account.upsert_user(d, "ann", None)).unwrap();
    assert!(!new && again.number == ann.number && again.etag != ann.etag);
    let old = ann.etag.to_string();
    assert_eq!(kind(wait(account.upsert_user(d, "ann", Some(&old)))), Kind::PreconditionFailed);
    let now = again.etag.to_string();
    wait(account.replace_user(d, ann.number, "ann", Some(&now))).unwrap();
}

#[test]
fn a_new_permission_does_not_change_its_user() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let ann = wait(account.create_user(d, "ann")).unwrap();
    wait(account.create_permission(d, ann.number, permission("p", "dbs/d/colls/c", None))).unwrap();
    drop(account);
    let account = world.open();
    assert_eq!(database(&account, "d").user(Ref::Name("ann")).unwrap().etag, ann.etag);
}

#[test]
fn deleting_a_user_or_its_database_removes_the_permissions() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let ann = wait(account.create_user(d, "ann")).unwrap().number;
    for n in 0..5 {
        let definition = permission(&format!("p{n}"), &format!("dbs/d/colls/{n}"), None);
        wait(account.create_permission(d, ann, definition)).unwrap();
    }
    let bob = wait(account.create_user(d, "bob")).unwrap().number;
    wait(account.create_permission(d, bob, permission("p", "dbs/d/colls/c", None))).unwrap();
    wait(account.delete_user(d, ann, None)).unwrap();
    assert_eq!(
        kind(wait(account.create_permission(d, ann, permission("p", "dbs/d/colls/c", None)))),
        Kind::OwnerNotFound
    );
    drop(account);
    // Rows that were left behind would be damage at the start.
    let account = world.open();
    assert_eq!(database(&account, "d").user_count(), 1);
    wait(account.delete_database(Ref::Name("d"), None)).unwrap();
    drop(account);
    let account = world.open();
    assert!(account.databases().is_empty());
    assert_eq!(database_of_users(&account), 0);
}

fn database_of_users(account: &Account) -> usize {
    account.databases().iter().map(|database| database.user_count()).sum()
}

#[test]
fn lists_go_on_after_a_number() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let numbers: Vec<u32> =
        (0..5).map(|n| wait(account.create_user(d, &format!("u{n}"))).unwrap().number).collect();
    let names = |after, limit| -> Vec<String> {
        database(&account, "d").users(after, limit).iter().map(|user| user.name.clone()).collect()
    };
    assert_eq!(names(0, 2), ["u0", "u1"]);
    assert_eq!(names(numbers[1], 2), ["u2", "u3"]);
    assert_eq!(names(numbers[4], 2), Vec::<String>::new());
    assert_eq!(names(u32::MAX, 2), Vec::<String>::new());
}

#[test]
fn a_resource_has_a_longest_name() {
    let world = World::new();
    let account = world.open();
    let d = with_database(&account);
    let ann = wait(account.create_user(d, "ann")).unwrap().number;
    let long = "x".repeat(RESOURCE_BYTES_MAX);
    wait(account.create_permission(d, ann, permission("p", &long, None))).unwrap();
    for resource in ["", &format!("{long}x")] {
        let refused = wait(account.create_permission(d, ann, permission("q", resource, None)));
        assert_eq!(kind(refused), Kind::BadRequest);
    }
    let key = format!("[\"{}\"]", "k".repeat(5_000));
    let refused = wait(account.create_permission(d, ann, permission("q", "dbs/d/colls/c", Some(&key))));
    assert_eq!(kind(refused), Kind::BadRequest);
}

fn encryption_key(name: &str, wrapped: &str) -> EncryptionKeyDefinition {
    let json = serde_json::json!({
        "id": name, "encryptionAlgorithm": "AEAD_AES_256_CBC_HMAC_SHA256", "wrappedDataEncryptionKey": wrapped,
        "keyWrapMetadata": { "type": "local", "name": "master", "value": "here", "algorithm": "RSA-OAEP" },
    });
    EncryptionKeyDefinition::parse(&json).expect("a key")
}

#[test]
fn encryption_keys_survive_a_restart_and_go_with_their_database() {
    let world = World::new();
    let account = world.open();
    let db = wait(account.create_database("db", None)).unwrap();
    let key = wait(account.create_encryption_key(db.number, encryption_key("k", "AAEC"))).unwrap();
    let taken = wait(account.create_encryption_key(db.number, encryption_key("k", "AAED")));
    assert_eq!(taken.unwrap_err().kind, Kind::AlreadyExists);
    let rewrap = |if_match: &str| {
        let new = encryption_key("k", "BBBB");
        wait(account.replace_encryption_key(db.number, key.number, new, Some(if_match)))
    };
    assert_eq!(rewrap("\"other\"").unwrap_err().kind, Kind::PreconditionFailed);
    let rewrapped = rewrap(&key.etag.to_string()).unwrap();
    assert_ne!(rewrapped.etag, key.etag);
    let renamed =
        account.replace_encryption_key(db.number, key.number, encryption_key("other", "AAEC"), None);
    assert_eq!(wait(renamed).unwrap_err().kind, Kind::BadRequest);
    drop((account, db));

    let account = world.open();
    let db = account.database(Ref::Name("db")).unwrap();
    let found = db.encryption_key(Ref::Name("k")).unwrap();
    assert_eq!(*found, *rewrapped);
    assert!(found.definition.text().contains("BBBB"));
    for number in 1..ENCRYPTION_KEYS_MAX {
        wait(account.create_encryption_key(db.number, encryption_key(&format!("k{number}"), "AAEC")))
            .unwrap();
    }
    let over = wait(account.create_encryption_key(db.number, encryption_key("over", "AAEC")));
    assert_eq!(over.unwrap_err().kind, Kind::Forbidden);
    wait(account.delete_database(Ref::Name("db"), None)).unwrap();
    drop((account, db));

    let account = world.open();
    let again = wait(account.create_database("db", None)).unwrap();
    assert!(again.encryption_keys().is_empty());
}
