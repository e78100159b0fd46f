//! Attachments live in the row of their item: they share its commits, its moves and its end, and leave its document
//! alone.

mod items_support;

use items_support::*;
use orrery_engine::{
    AttachmentChange, AttachmentContent, AttachmentName, ChangesFrom, Kind, MEDIA_BYTES_MAX, Media,
    Operation, Outcome, PageRequest, Scope, WriteReply,
};
use serde_json::json;

fn stored(id: &str, bytes: usize) -> AttachmentContent {
    AttachmentContent {
        id: id.to_owned(),
        content_type: "text/plain".to_owned(),
        members: String::new(),
        media: Some(Media::Stored(vec![b'm'; bytes].into())),
    }
}

fn attach(fixture: &Fixture, id: &str, change: AttachmentChange) -> orrery_engine::Result<WriteReply> {
    let operation = Operation::Attach { id: id.to_owned(), change: Box::new(change) };
    fixture.write("k", operation)
}

fn names(fixture: &Fixture, id: &str) -> Vec<String> {
    let item = fixture.read("k", id).unwrap();
    item.attachments().unwrap().into_iter().map(|one| one.id).collect()
}

fn item(id: &str, n: usize) -> String {
    json!({"id": id, "pk": "k", "n": n}).to_string()
}

#[test]
fn an_attachment_changes_neither_document_nor_etag_nor_time() {
    let fixture = Fixture::new(json!({"defaultTtl": 100}));
    let before = fixture.create(&item("a", 1)).unwrap().item.unwrap();
    fixture.env.advance_ms(5_000);
    let reply = attach(&fixture, "a", AttachmentChange::Create(stored("photo", 10))).unwrap();
    assert_eq!(reply.outcome, Outcome::Created);
    let after = reply.item.unwrap();
    assert_eq!((after.etag, after.ts, &after.document), (before.etag, before.ts, &before.document));
    assert!(after.lsn > before.lsn, "the commit has an LSN all the same");
    let read = fixture.read("k", "a").unwrap();
    assert_eq!((read.etag, read.attachments().unwrap()), (before.etag, after.attachments().unwrap()));
    // A change of the document is one, and keeps the attachments.
    let replaced = fixture.replace(&item("a", 2)).unwrap().item.unwrap();
    assert_ne!(replaced.etag, before.etag);
    assert_eq!(names(&fixture, "a"), ["photo"]);
    attach(&fixture, "a", AttachmentChange::Delete(AttachmentName::Id("photo".into()))).unwrap();
    let read = fixture.read("k", "a").unwrap();
    assert_eq!((read.etag, read.attachments().unwrap().len()), (replaced.etag, 0));
}

#[test]
fn they_are_counted_and_gone_with_their_item() {
    let fixture = Fixture::new(json!({}));
    let empty = fixture.container.usage();
    fixture.create(&item("a", 1)).unwrap();
    let plain = fixture.container.usage();
    attach(&fixture, "a", AttachmentChange::Create(stored("photo", 100_000))).unwrap();
    let usage = fixture.container.usage();
    assert!(usage.size_bytes >= plain.size_bytes + 100_000 && usage.items == 1, "{usage:?}");
    assert_eq!(
        kind(attach(&fixture, "a", AttachmentChange::Create(stored("x", MEDIA_BYTES_MAX + 1)))),
        Kind::TooLarge
    );
    assert_eq!(fixture.container.usage(), usage, "what was refused changed nothing");
    fixture.delete("k", "a").unwrap();
    assert_eq!(fixture.container.usage(), empty);
    assert_eq!(kind(attach(&fixture, "a", AttachmentChange::Create(stored("x", 1)))), Kind::NotFound);
}

#[test]
fn they_move_with_their_item_through_restarts_splits_and_merges() {
    let mut fixture = Fixture::embedded(json!({}));
    for n in 0..200 {
        fixture.create(&json!({"id": n.to_string(), "pk": format!("k{n}"), "n": n}).to_string()).unwrap();
    }
    fixture.create(&item("a", 1)).unwrap();
    attach(&fixture, "a", AttachmentChange::Create(stored("photo", 1000))).unwrap();
    let (etag, usage) = {
        let item = fixture.read("k", "a").unwrap();
        (item.etag, fixture.container.usage())
    };
    wait(fixture.account.split_partition(&fixture.container, None).unwrap().done()).unwrap();
    assert_eq!(names(&fixture, "a"), ["photo"]);
    attach(&fixture, "a", AttachmentChange::Upsert(stored("more", 10))).unwrap();
    fixture.reopen();
    assert_eq!(names(&fixture, "a"), ["photo", "more"]);
    attach(&fixture, "a", AttachmentChange::Delete(AttachmentName::Id("more".into()))).unwrap();
    wait(fixture.account.merge_partitions(&fixture.container, None).unwrap().done()).unwrap();
    let item = fixture.read("k", "a").unwrap();
    assert_eq!((names(&fixture, "a"), item.etag), (vec!["photo".to_owned()], etag));
    assert_eq!(fixture.container.usage(), usage);
}

#[test]
fn the_change_feed_shows_the_item_once_and_queries_do_not_look_inside() {
    let fixture = Fixture::new(json!({}));
    fixture.create(&item("a", 1)).unwrap();
    attach(&fixture, "a", AttachmentChange::Create(stored("photo", 10))).unwrap();
    attach(&fixture, "a", AttachmentChange::Create(stored("more", 10))).unwrap();
    let changes =
        wait(fixture.container.read_changes(&Scope::All, ChangesFrom::Beginning, &PageRequest::new(100)))
            .unwrap();
    assert_eq!(changes.items.len(), 1);
    assert_eq!(fixture.only_partition().check_index().unwrap(), [""; 0]);
}
