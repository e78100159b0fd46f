//! The log in PostgreSQL, on a real server: what every log promises, and what becomes of it when the server goes away.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_cluster::{ClusterOptions, ClusterStore, Frame, Log, PostgresLog, Session, suite};
use orrery_storage::suite::{rows, suite as store_suite};
use orrery_storage::{
    Claim, Commit, Direction, Durability, Epoch, KeyRange, Space, SpaceId, Store as _, StoreError, Table,
};
use orrery_testkit::postgres::Postgres;

const SPACE: SpaceId = SpaceId(1);

fn frame(epoch: Epoch, number: u64, data: &str) -> Frame {
    Frame { space: SPACE, epoch, number, data: data.to_owned().into() }
}

/// One server for all of it: starting one is most of the time.
#[test]
fn the_log_in_postgresql() {
    let Some(server) = Postgres::start("the_log_in_postgresql") else { return };
    let address = server.database("suite");
    suite::suite(&|| Arc::new(PostgresLog::open(&address).expect("opens")));
    the_tables_are_made_once_and_their_version_is_minded(&server);
    what_does_not_work_is_said(&server);
    two_processes_may_begin_at_the_same_time(&server);
    what_was_changed_is_found(&server);
    the_store_over_it_is_a_store(&server);
    what_was_acknowledged_outlives_the_server(&server);
    certificates_are_verified(&server);
    a_cancelled_commit_is_of_unknown_outcome(&server);
    the_log_outlives_its_server(&server);
}

fn the_tables_are_made_once_and_their_version_is_minded(server: &Postgres) {
    let address = server.database("versions");
    let identity = PostgresLog::open(&address).expect("opens").identity().to_owned();
    assert_eq!(PostgresLog::open(&address).expect("opens").identity(), identity);
    server.sql("versions", "UPDATE orrery_store SET version = 2").expect("updates");
    let refused = PostgresLog::open(&address).err().expect("refused").to_string();
    assert!(refused.contains("version 2") && refused.contains("knows version 1"), "{refused}");
}

fn what_does_not_work_is_said(server: &Postgres) {
    let error = |address: &str| PostgresLog::open(address).err().expect("refused");
    let missing = error(&server.address("nowhere"));
    assert!(matches!(missing, StoreError::Refused(_)) && missing.to_string().contains("CREATE DATABASE"));
    let begun = Instant::now();
    let away = error("postgres://u@127.0.0.1:1,127.0.0.1:2/d");
    assert!(matches!(away, StoreError::Unavailable(_)), "{away}");
    assert!(away.to_string().contains("127.0.0.1:2"), "every host is named: {away}");
    assert!(begun.elapsed() < Duration::from_secs(4));
    // No TLS is offered by this server.
    let insecure = error(&format!("{}?sslmode=require", server.address("versions")));
    assert!(insecure.to_string().contains("TLS"), "{insecure}");
    server.sql("postgres", "CREATE ROLE guest LOGIN").expect("makes");
    let poor = server.database("poor").replace("orrery@", "guest@");
    let refused = error(&poor).to_string();
    assert!(refused.contains("own its database"), "{refused}");
}

fn two_processes_may_begin_at_the_same_time(server: &Postgres) {
    let address = server.database("begun");
    let logs: Vec<String> = std::thread::scope(|scope| {
        let open = || PostgresLog::open(&address).expect("opens").identity().to_owned();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    assert!(logs.iter().all(|identity| *identity == logs[0]), "{logs:?}");
}

fn what_was_changed_is_found(server: &Postgres) {
    let address = server.database("changed");
    let log = PostgresLog::open(&address).expect("opens");
    let taken = log.take(SPACE, Claim::Take(Epoch(0)), "test", &Bytes::new()).expect("takes");
    log.append(taken.session, &[frame(taken.epoch, taken.end + 1, "row")]).expect("appends");
    server
        .sql("changed", "UPDATE orrery_log SET data = set_byte(data, 5, 0) WHERE number = 2")
        .expect("updates");
    let found = log.read(SPACE, 1, 1000);
    assert!(matches!(found, Err(StoreError::Damaged(_))), "{found:?}");
}

/// A commit that waits for a standby and is cancelled answers as if it were done.
fn a_cancelled_commit_is_of_unknown_outcome(server: &Postgres) {
    let address = server.database("cancelled");
    let log = PostgresLog::open(&address).expect("opens");
    let taken = log.take(SPACE, Claim::Take(Epoch(0)), "test", &Bytes::new()).expect("takes");
    let standbys = |names| server.configure(&[("synchronous_standby_names", names)]).expect("configures");
    standbys("nobody");
    let answer = std::thread::scope(|scope| {
        let append = scope.spawn(|| log.append(taken.session, &[frame(taken.epoch, taken.end + 1, "row")]));
        let waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        let begun = Instant::now();
        while server.sql("postgres", waiting).expect("reads") != "1" {
            assert!(begun.elapsed() < Duration::from_secs(4), "the append does not wait for a standby");
            std::thread::sleep(Duration::from_millis(20));
        }
        let cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'";
        server.sql("postgres", cancel).expect("cancels");
        append.join().expect("no panic")
    });
    assert!(matches!(answer, Err(StoreError::OutcomeUnknown(_))), "{answer:?}");
    standbys("");
    let found = log.take(SPACE, Claim::Renew(taken.epoch), "test", &Bytes::new()).expect("renews");
    assert_eq!(found.end, taken.end + 2, "this one was written");
}

/// The suite of all stores. Each check has the tables for itself, and a copy of its own.
fn the_store_over_it_is_a_store(server: &Postgres) {
    let address = server.database("store");
    let directory = tempfile::tempdir().expect("a directory");
    let number = AtomicU32::new(0);
    PostgresLog::open(&address).expect("makes the tables");
    store_suite(&|| {
        server.sql("store", "TRUNCATE orrery_space, orrery_log, orrery_chunk").expect("truncates");
        let copy = directory.path().join(number.fetch_add(1, Ordering::Relaxed).to_string());
        Arc::new(store(&address, &copy))
    });
}

fn store(address: &str, copy: &Path) -> ClusterStore {
    let log = Arc::new(PostgresLog::open(address).expect("opens"));
    let options =
        ClusterOptions { checkpoint_bytes_min: 16 << 10, chunk_bytes: 4 << 10, ..ClusterOptions::default() };
    ClusterStore::open(log, copy, "test", options).expect("opens")
}

/// Writers go on over restarts of the server: whatever was answered with success is there, in order, also for a new
/// copy, and what was refused is not.
fn what_was_acknowledged_outlives_the_server(server: &Postgres) {
    let address = server.database("restarts");
    let directory = tempfile::tempdir().expect("a directory");
    let store = store(&address, &directory.path().join("copy"));
    let stop = AtomicBool::new(false);
    let handles = [1, 2, 3].map(|id| store.open_space(SpaceId(id)).expect("opens"));
    let progress = [const { AtomicU32::new(0) }; 3];
    let write = |mut handle: Arc<dyn Space>| {
        let space = handle.id();
        let progress = &progress[space.0 as usize - 1];
        let (mut kept, mut outages) = (Vec::new(), 0);
        let mut number = 0u32;
        while !stop.load(Ordering::Relaxed) {
            let mut commit = Commit::default();
            let key = Bytes::from(format!("{number:06}"));
            commit.put(Table::Items, key.clone(), vec![7; 300]);
            number += 1;
            let unknown = match handle.commit(commit, Durability::Strict) {
                Ok(()) => {
                    kept.push(key);
                    progress.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                Err(error) => matches!(error, StoreError::OutcomeUnknown(_)),
            };
            outages += 1;
            handle = loop {
                match store.claim_space(space, Claim::Renew(handle.epoch())) {
                    Ok(handle) => break handle,
                    Err(StoreError::Unavailable(_)) => std::thread::sleep(Duration::from_millis(20)),
                    Err(error) => panic!("{space:?}: {error}"),
                }
            };
            let snapshot = handle.snapshot().expect("snapshot");
            let there = snapshot.get(Table::Items, &key).expect("get").is_some();
            assert!(unknown || !there, "{key:?} was refused, but is there");
            kept.extend(there.then_some(key));
        }
        (kept, outages)
    };
    let written: Vec<(Vec<Bytes>, u32)> = std::thread::scope(|scope| {
        let write = &write;
        let writers: Vec<_> = handles.map(|handle| scope.spawn(move || write(handle))).into();
        for round in 1..=5 {
            while progress.iter().any(|done| done.load(Ordering::Relaxed) < 30 * round) {
                std::thread::sleep(Duration::from_millis(20));
            }
            match round {
                1 | 3 => server.kill().expect("is killed"),
                2 | 4 => server.stop().expect("stops"),
                _ => break,
            }
            server.resume().expect("starts");
        }
        stop.store(true, Ordering::Relaxed);
        writers.into_iter().map(|writer| writer.join().expect("no panic")).collect()
    });
    assert!(written.iter().all(|(_, outages)| *outages > 0), "nothing was interrupted");
    assert!(store.cluster_stats().checkpoints > 0);
    store.close().expect("closes");
    drop(store);
    for copy in ["copy", "another"] {
        let store = self::store(&address, &directory.path().join(copy));
        for (id, (kept, _)) in (1..).zip(&written) {
            let snapshot = store.open_space(SpaceId(id)).expect("opens").snapshot().expect("snapshot");
            let found = rows(&*snapshot, Table::Items, KeyRange::all(), Direction::Forward);
            let found: Vec<Bytes> = found.into_iter().map(|row| row.key).collect();
            assert_eq!(&found, kept, "space {id}, {copy}");
        }
    }
}

fn certificates_are_verified(server: &Postgres) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).expect("a certificate");
    let pem = made.cert.pem();
    server.install("server.crt", &pem).expect("installs");
    server.install("server.key", &made.signing_key.serialize_pem()).expect("installs");
    server.configure(&[("ssl", "on")]).expect("configures");
    let directory = tempfile::tempdir().expect("a directory");
    let root = directory.path().join("root.pem");
    std::fs::write(&root, pem).expect("writes");
    let numeric = server.database("secure");
    let named = numeric.replace("127.0.0.1", "localhost");
    let secured = "SELECT count(*) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) \
                   WHERE s.ssl AND a.application_name = 'orrery'";
    let log = PostgresLog::open(&format!("{numeric}?sslmode=require")).expect("encrypted, with anybody");
    assert_eq!(server.sql("postgres", secured).expect("reads"), "1");
    drop(log);
    let verified = |address: &str| format!("{address}?sslmode=verify-full&sslrootcert={}", root.display());
    PostgresLog::open(&verified(&named)).expect("the certificate is for this name");
    for (address, why) in [
        (verified(&numeric), "the certificate is for another name"),
        (format!("{named}?sslmode=verify-full"), "nobody vouches for it"),
    ] {
        let refused = PostgresLog::open(&address).err().expect(why).to_string();
        assert!(refused.contains("certificate"), "{why}: {refused}");
    }
}

fn the_log_outlives_its_server(server: &Postgres) {
    let address = server.database("outlives");
    let log = PostgresLog::open(&address).expect("opens");
    let marker = Bytes::new();
    let mut taken = log.take(SPACE, Claim::Take(Epoch(0)), "test", &marker).expect("takes");
    let mut expected = taken.end;
    for round in 0..4 {
        expected += 1;
        log.append(taken.session, &[frame(taken.epoch, expected, "row")]).expect("appends");
        match round % 2 {
            0 => server.kill().expect("kills"),
            _ => server.stop().expect("stops"),
        }
        let lost = log.append(taken.session, &[frame(taken.epoch, expected + 1, "lost")]);
        assert!(
            matches!(lost, Err(StoreError::Unavailable(_) | StoreError::OutcomeUnknown(_))),
            "neither done nor final: {lost:?}"
        );
        let away = log.take(SPACE, Claim::Renew(taken.epoch), "test", &marker);
        assert!(matches!(away, Err(StoreError::Unavailable(_))), "{away:?}");
        assert!(!log.stats().connected);
        server.resume().expect("starts");
        // Another space brings the connection back, which does not give this one its session back.
        log.take(SpaceId(2), Claim::Take(Epoch(0)), "test", &marker).expect("takes");
        let refused = log.append(taken.session, &[frame(taken.epoch, expected + 1, "early")]);
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        let again = log.take(SPACE, Claim::Renew(taken.epoch), "test", &marker).expect("renews");
        assert_eq!(again.end, expected + 1, "what was acknowledged is there, and what was lost is not");
        expected = again.end;
        taken = again;
    }
    assert_eq!(log.read(SPACE, 1, 1 << 20).expect("reads").len() as u64, expected);
    assert_ne!(taken.session, Session(1));
}
