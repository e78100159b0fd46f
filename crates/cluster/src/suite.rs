//! One suite for every log: what the trait promises, as checks that each implementation runs.
//!
//! `suite` takes a function that opens a handle on the same log again and again, as other processes would where the
//! log allows it. Each check uses spaces of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use orrery_storage::{Claim, Epoch, SpaceId, StoreError};

use crate::log::{Checkpoint, Entry, Frame, Log, Taken};

type Open<'o> = &'o dyn Fn() -> Arc<dyn Log>;

/// Runs every check; panics with what is wrong. Spaces from 1000 on are used.
pub fn suite(open: Open<'_>) {
    entries_are_read_as_they_were_appended(open, SpaceId(1000));
    only_the_newest_owner_appends(open, SpaceId(1010));
    one_fenced_space_does_not_stop_the_others(open, SpaceId(1020));
    epochs_ascend_and_begin_above_what_is_asked(open, SpaceId(1030));
    only_the_last_owner_renews(open, SpaceId(1040));
    an_owner_that_is_raced_is_fenced_or_seen(open, SpaceId(1050));
    a_number_is_used_once(open, SpaceId(1060));
    reading_keeps_to_its_limit(open, SpaceId(1070));
    large_entries_are_kept(open, SpaceId(1080));
    a_checkpoint_replaces_what_is_before_it(open, SpaceId(1090));
    a_fenced_owner_makes_no_checkpoint(open, SpaceId(1100));
    a_checkpoint_in_the_making_is_nobodys(open, SpaceId(1110));
    a_dropped_space_is_empty_and_counts_on(open, SpaceId(1120));
    spaces_are_listed(open, SpaceId(1130));
    a_closed_log_refuses(open, SpaceId(1140));
}

const ANYONE: Claim = Claim::Take(Epoch(0));

fn take(log: &dyn Log, space: SpaceId) -> Taken {
    log.take(space, ANYONE, "suite", &Bytes::from_static(b"marker")).expect("takes")
}

fn frame(space: SpaceId, taken: &Taken, ahead: u64, data: impl Into<Bytes>) -> Frame {
    Frame { space, epoch: taken.epoch, number: taken.end + ahead, data: data.into() }
}

fn append(log: &dyn Log, space: SpaceId, taken: &Taken, ahead: u64, data: &'static str) {
    let fenced = log.append(taken.session, &[frame(space, taken, ahead, data)]).expect("appends");
    assert_eq!(fenced, [], "entry {ahead} of {space:?}");
}

fn read_all(log: &dyn Log, space: SpaceId, from: u64) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    loop {
        let next = entries.last().map_or(from, |entry| entry.number + 1);
        let page = log.read(space, next, 1 << 20).expect("reads");
        if page.is_empty() {
            return entries;
        }
        entries.extend(page);
    }
}

fn texts(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| String::from_utf8_lossy(&entry.data).into_owned()).collect()
}

fn entries_are_read_as_they_were_appended(open: Open<'_>, space: SpaceId) {
    let log = open();
    assert_eq!(log.state(space).expect("state"), None);
    let taken = take(&*log, space);
    assert_eq!((taken.log_from, taken.end, taken.checkpoint), (1, 1, None));
    append(&*log, space, &taken, 1, "one");
    append(&*log, space, &taken, 2, "");
    append(&*log, space, &taken, 3, "three");
    let entries = read_all(&*log, space, 1);
    assert_eq!(texts(&entries), ["marker", "one", "", "three"]);
    assert!(entries.iter().map(|entry| entry.number).eq(1..=4));
    assert!(entries.iter().all(|entry| entry.epoch == taken.epoch));
    assert_eq!(texts(&read_all(&*log, space, 4)), ["three"]);
    assert_eq!(read_all(&*log, space, 5), []);
    assert_eq!(read_all(&*open(), space, 1), entries, "by another handle");
    let state = log.state(space).expect("state").expect("taken");
    assert_eq!((state.epoch, &*state.owner, state.log_from), (taken.epoch, "suite", 1));
}

fn only_the_newest_owner_appends(open: Open<'_>, space: SpaceId) {
    let (first, second) = (open(), open());
    let old = take(&*first, space);
    append(&*first, space, &old, 1, "old");
    let new = take(&*second, space);
    assert_eq!(new.end, old.end + 2);
    let fenced = first.append(old.session, &[frame(space, &old, 2, "late")]).expect("answers");
    assert_eq!(fenced, [space]);
    append(&*second, space, &new, 1, "new");
    assert_eq!(texts(&read_all(&*first, space, 1)), ["marker", "old", "marker", "new"]);
}

fn one_fenced_space_does_not_stop_the_others(open: Open<'_>, space: SpaceId) {
    let log = open();
    let spaces = [space, SpaceId(space.0 + 1), SpaceId(space.0 + 2)];
    let taken = spaces.map(|space| take(&*log, space));
    let other = open();
    take(&*other, spaces[1]);
    let frames: Vec<Frame> =
        spaces.iter().zip(&taken).map(|(space, taken)| frame(*space, taken, 1, "row")).collect();
    assert_eq!(log.append(taken[2].session, &frames).expect("answers"), [spaces[1]]);
    assert_eq!(texts(&read_all(&*log, spaces[0], 1)), ["marker", "row"]);
    assert_eq!(texts(&read_all(&*log, spaces[1], 1)), ["marker", "marker"]);
    assert_eq!(texts(&read_all(&*log, spaces[2], 1)), ["marker", "row"]);
}

fn epochs_ascend_and_begin_above_what_is_asked(open: Open<'_>, space: SpaceId) {
    let log = open();
    let mut newest = take(&*log, space).epoch;
    for above in [0, 40, 3] {
        let marker = Bytes::new();
        let taken = log.take(space, Claim::Take(Epoch(above)), "suite", &marker).expect("takes");
        assert!(taken.epoch > newest && taken.epoch > Epoch(above), "{:?}", taken.epoch);
        newest = taken.epoch;
    }
}

fn only_the_last_owner_renews(open: Open<'_>, space: SpaceId) {
    let log = open();
    let marker = Bytes::new();
    let refused = log.take(space, Claim::Renew(Epoch(1)), "a", &marker);
    assert!(matches!(refused, Err(StoreError::Fenced(_))), "nobody has had it: {refused:?}");
    let first = log.take(space, ANYONE, "a", &marker).expect("takes");
    let second = log.take(space, Claim::Renew(first.epoch), "a", &marker).expect("renews");
    assert!(second.epoch > first.epoch);
    // The answer to a renewal may have been lost.
    let third = log.take(space, Claim::Renew(first.epoch), "a", &marker).expect("renews once more");
    assert!(third.epoch > second.epoch);
    let other = log.take(space, ANYONE, "b", &marker).expect("takes");
    let refused = log.take(space, Claim::Renew(third.epoch), "a", &marker);
    assert!(matches!(refused, Err(StoreError::Fenced(id)) if id == space), "{refused:?}");
    // A claim that was refused takes nothing away.
    append(&*log, space, &other, 1, "b's");
}

/// A new owner comes while the old one appends. Each append is answered as done and in the log before the new
/// owner's marker, or refused and nowhere.
fn an_owner_that_is_raced_is_fenced_or_seen(open: Open<'_>, space: SpaceId) {
    let (old, new) = (open(), open());
    for round in 0..10 {
        let before = take(&*old, space);
        let stop = AtomicBool::new(false);
        let (done, marker) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut done = 0;
                while !stop.load(Ordering::Relaxed) {
                    let frame = frame(space, &before, done + 1, "row");
                    match old.append(before.session, &[frame]).expect("answers").as_slice() {
                        [] => done += 1,
                        _ => break,
                    }
                }
                done
            });
            std::thread::sleep(std::time::Duration::from_millis(round * 3));
            let after = take(&*new, space);
            // The writer finds out by itself.
            let done = writer.join().expect("no panic");
            stop.store(true, Ordering::Relaxed);
            (done, after.end)
        });
        assert_eq!(
            before.end + done + 1,
            marker,
            "what was acknowledged is before the marker, and nothing else"
        );
        assert_eq!(read_all(&*new, space, marker).len(), 1, "nothing is behind it");
    }
}

fn a_number_is_used_once(open: Open<'_>, space: SpaceId) {
    let log = open();
    let taken = take(&*log, space);
    append(&*log, space, &taken, 1, "first");
    let again = log.append(taken.session, &[frame(space, &taken, 1, "second")]);
    assert!(again.is_err(), "{again:?}");
    assert_eq!(texts(&read_all(&*log, space, 1)), ["marker", "first"]);
}

fn reading_keeps_to_its_limit(open: Open<'_>, space: SpaceId) {
    let log = open();
    let taken = take(&*log, space);
    for ahead in 1..=9 {
        let data = vec![ahead as u8; 1000];
        assert_eq!(log.append(taken.session, &[frame(space, &taken, ahead, data)]).expect("appends"), []);
    }
    let page = log.read(space, 1, 3500).expect("reads");
    assert!((3..=5).contains(&page.len()), "{} entries", page.len());
    assert_eq!(log.read(space, 4, 1).expect("reads").len(), 1, "one at least");
    assert_eq!(read_all(&*log, space, 1).len(), 10);
}

fn large_entries_are_kept(open: Open<'_>, space: SpaceId) {
    let log = open();
    let taken = take(&*log, space);
    let large: Bytes =
        (0..5_000_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let frame = frame(space, &taken, 1, large.clone());
    assert_eq!(log.append(taken.session, &[frame]).expect("appends"), []);
    assert_eq!(read_all(&*log, space, 2)[0].data, large);
}

fn cut_all(log: &dyn Log, space: SpaceId) {
    for _ in 0..1000 {
        if !log.cut(space).expect("cuts") {
            return;
        }
    }
    panic!("cutting does not end");
}

fn a_checkpoint_replaces_what_is_before_it(open: Open<'_>, space: SpaceId) {
    let log = open();
    let taken = take(&*log, space);
    for ahead in 1..=20 {
        append(&*log, space, &taken, ahead, "row");
    }
    for (at, chunks) in [(taken.end + 5, 3), (taken.end + 15, 2)] {
        let chunk = |number| Bytes::from(format!("{at}-{number}"));
        for number in 0..chunks {
            log.write_chunk(space, taken.epoch, at, number, &Bytes::from_static(b"first try"))
                .expect("writes");
            log.write_chunk(space, taken.epoch, at, number, &chunk(number)).expect("writes");
        }
        let checkpoint = Checkpoint { at, chunks };
        log.set_checkpoint(space, taken.epoch, checkpoint).expect("sets");
        cut_all(&*log, space);
        let state = open().state(space).expect("state").expect("taken");
        assert_eq!((state.checkpoint, state.log_from), (Some(checkpoint), at));
        assert_eq!(read_all(&*log, space, 1).first().map(|entry| entry.number), Some(at), "the rest is cut");
        for number in 0..chunks {
            assert_eq!(open().read_chunk(space, at, number).expect("reads"), chunk(number));
        }
    }
    assert!(log.read_chunk(space, taken.end + 5, 0).is_err(), "cut");
    assert_eq!(read_all(&*log, space, taken.end + 15).len(), 6);
    let behind = Checkpoint { at: taken.end + 10, chunks: 0 };
    assert!(log.set_checkpoint(space, taken.epoch, behind).is_err(), "an older one would lose entries");
    append(&*log, space, &taken, 21, "on");
    let again = take(&*open(), space);
    assert_eq!((again.log_from, again.end), (taken.end + 15, taken.end + 22));
    assert_eq!(again.checkpoint, Some(Checkpoint { at: taken.end + 15, chunks: 2 }));
    assert_eq!(read_all(&*log, space, again.log_from).len(), 8);
}

fn a_fenced_owner_makes_no_checkpoint(open: Open<'_>, space: SpaceId) {
    let (log, other) = (open(), open());
    let old = take(&*log, space);
    append(&*log, space, &old, 1, "row");
    take(&*other, space);
    let refused = log.write_chunk(space, old.epoch, old.end + 1, 0, &Bytes::new());
    assert!(matches!(refused, Err(StoreError::Fenced(id)) if id == space), "{refused:?}");
    let refused = log.set_checkpoint(space, old.epoch, Checkpoint { at: old.end + 1, chunks: 0 });
    assert!(matches!(refused, Err(StoreError::Fenced(id)) if id == space), "{refused:?}");
    assert_eq!(log.state(space).expect("state").expect("taken").checkpoint, None);
}

fn a_checkpoint_in_the_making_is_nobodys(open: Open<'_>, space: SpaceId) {
    let log = open();
    let taken = take(&*log, space);
    append(&*log, space, &taken, 1, "row");
    append(&*log, space, &taken, 2, "row");
    let data = Bytes::from_static(b"given up");
    log.write_chunk(space, taken.epoch, taken.end + 1, 0, &data).expect("writes");
    cut_all(&*log, space);
    assert_eq!(log.state(space).expect("state").expect("taken").checkpoint, None);
    assert_eq!(read_all(&*log, space, 1).len(), 3);
    log.set_checkpoint(space, taken.epoch, Checkpoint { at: taken.end + 2, chunks: 0 }).expect("sets");
    cut_all(&*log, space);
    assert!(log.read_chunk(space, taken.end + 1, 0).is_err(), "removed with what it was to replace");
}

fn a_dropped_space_is_empty_and_counts_on(open: Open<'_>, space: SpaceId) {
    let log = open();
    let old = take(&*log, space);
    append(&*log, space, &old, 1, "row");
    log.write_chunk(space, old.epoch, old.end + 1, 0, &Bytes::new()).expect("writes");
    log.set_checkpoint(space, old.epoch, Checkpoint { at: old.end + 1, chunks: 1 }).expect("sets");
    append(&*log, space, &old, 2, "row");
    log.drop_space(space).expect("drops");
    cut_all(&*log, space);
    assert_eq!(log.append(old.session, &[frame(space, &old, 3, "late")]).expect("answers"), [space]);
    let renewed = log.take(space, Claim::Renew(old.epoch), "suite", &Bytes::new());
    assert!(matches!(renewed, Err(StoreError::Fenced(_))), "{renewed:?}");
    let new = take(&*log, space);
    assert!(new.epoch > old.epoch && new.checkpoint.is_none() && new.log_from == new.end, "{new:?}");
    assert!(new.end > old.end + 2, "numbers are not used again");
    append(&*log, space, &new, 1, "new");
    assert_eq!(texts(&read_all(&*open(), space, new.log_from)), ["marker", "new"]);
    log.drop_space(SpaceId(space.0 + 1)).expect("what was never there can be dropped");
}

fn spaces_are_listed(open: Open<'_>, space: SpaceId) {
    let log = open();
    for id in [space.0 + 1, u32::MAX, space.0] {
        take(&*log, SpaceId(id));
    }
    let listed = open().spaces().expect("lists");
    assert!(listed.is_sorted());
    assert!([space.0, space.0 + 1, u32::MAX].iter().all(|id| listed.contains(&SpaceId(*id))));
}

fn a_closed_log_refuses(open: Open<'_>, space: SpaceId) {
    let log = open();
    let taken = take(&*log, space);
    log.close();
    let refused = log.append(taken.session, &[frame(space, &taken, 1, "late")]);
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
    let refused = log.take(space, ANYONE, "suite", &Bytes::new());
    assert!(matches!(refused, Err(StoreError::Closed)), "{refused:?}");
    log.close();
}
