//! Lists of entries that are kept in memory: whatever is written beside it, a view finds by list what it finds by rows.

mod items_support;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use items_support::*;
use orrery_engine::testing::{IndexedPath, PartitionView, PathNumber};
use orrery_engine::{PathStep, Span};
use orrery_index::ValueRange;
use orrery_model::Value;
use orrery_storage::Direction;
use serde_json::json;

const VALUES: u64 = 6;
const WRITES: u64 = 1_500;
const WRITERS: u64 = 3;

fn path(view: &PartitionView) -> PathNumber {
    match view.path(&[PathStep::Name("v")]) {
        IndexedPath::Entries(path) => path,
        other => panic!("{other:?}"),
    }
}

/// What a scan over one value finds by a visitor, a few rows at a time, and how many rows it says it read.
fn visited(view: &PartitionView, value: u64, span: &Span, step: u64) -> (Vec<Vec<u8>>, u64) {
    let range = ValueRange::equal(&Value::from(value as i64));
    let mut entries = view.entries(path(view), &range, span, Direction::Forward, None);
    let mut found = Vec::new();
    while !entries
        .visit(step, &mut |entry| {
            assert_eq!(entry.decode(), Some(Value::from(value as i64)));
            found.push(entry.reference().to_vec());
            ControlFlow::Continue(())
        })
        .unwrap()
    {}
    (found, entries.rows_read())
}

fn iterated(view: &PartitionView, value: u64, span: &Span) -> (Vec<Vec<u8>>, u64) {
    let range = ValueRange::equal(&Value::from(value as i64));
    let mut entries = view.entries(path(view), &range, span, Direction::Forward, None);
    let mut found = Vec::new();
    while let Some(entry) = entries.next_entry().unwrap() {
        found.push(entry.reference().to_vec());
    }
    (found, entries.rows_read())
}

fn numbered(id: u64, value: u64) -> String {
    json!({"id": id.to_string(), "pk": format!("p{}", id % 7), "v": value}).to_string()
}

#[test]
fn lists_hold_what_the_rows_hold_while_others_write() {
    let fixture = Arc::new(Fixture::new(json!({})));
    for id in 0..60 {
        fixture.create(&numbered(id, id % VALUES)).unwrap();
    }
    let key = key("p3");
    let (epk, _) = fixture.container.span(&key).unwrap();
    let (min, max) = {
        let view = fixture.only_partition().open_view(&[]).unwrap();
        (view.bounds().0.clone(), view.bounds().1.clone())
    };
    let spans = [
        Span::All,
        Span::Key { epk: epk.clone(), key },
        Span::Epk { min, max: epk.clone() },
        Span::Epk { min: epk, max },
    ];
    let done = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let fixture = fixture.clone();
            std::thread::spawn(move || {
                for n in 0..WRITES {
                    let id = (n * WRITERS + writer) % 60;
                    match n % 11 {
                        0 => drop(fixture.delete(&format!("p{}", id % 7), &id.to_string())),
                        _ => drop(fixture.upsert(&numbered(id, (n / 7 + id) % VALUES)).unwrap()),
                    }
                    // Quiet times, in which lists are made and used.
                    if n % 50 == 0 {
                        std::thread::sleep(std::time::Duration::from_millis(5));
                    }
                }
            })
        })
        .collect();
    let readers: Vec<_> = (0..2u64)
        .map(|reader| {
            let (fixture, done, spans) = (fixture.clone(), done.clone(), spans.clone());
            std::thread::spawn(move || {
                let mut compared = 0;
                let mut old: Option<PartitionView> = None;
                while !done.load(Ordering::Relaxed) {
                    let view = fixture.only_partition().open_view(&[]).unwrap();
                    for view in [Some(&view), old.as_ref()].into_iter().flatten() {
                        for value in 0..VALUES {
                            for span in &spans {
                                let step = if compared % 2 == 0 { u64::MAX } else { 3 };
                                assert_eq!(
                                    visited(view, value, span, step),
                                    iterated(view, value, span),
                                    "{value} {span:?}"
                                );
                                compared += 1;
                            }
                        }
                    }
                    // Some views are held while others write.
                    if compared % (4 + reader) == 0 {
                        old = Some(view);
                    }
                }
                compared
            })
        })
        .collect();
    writers.into_iter().for_each(|writer| writer.join().unwrap());
    std::thread::sleep(std::time::Duration::from_millis(20));
    done.store(true, Ordering::Relaxed);
    let compared: u64 = readers.into_iter().map(|reader| reader.join().unwrap()).sum();
    assert!(compared > 200, "{compared}");
}

#[test]
fn a_list_is_made_anew_after_a_write() {
    let fixture = Fixture::new(json!({}));
    fixture.create(&numbered(1, 1)).unwrap();
    let look = |value| {
        let view = fixture.only_partition().open_view(&[]).unwrap();
        visited(&view, value, &Span::All, u64::MAX).0.len()
    };
    for round in 0..3 {
        assert_eq!(look(1), 1 + round, "the list is used from the third time on");
        assert_eq!(look(1), 1 + round);
        assert_eq!(look(1), 1 + round);
        fixture.create(&numbered(10 + round as u64, 1)).unwrap();
        assert_eq!(look(1), 2 + round);
    }
}
