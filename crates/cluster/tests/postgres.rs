//! The log in PostgreSQL, on a real server: what every log promises, and what becomes of it when the server goes away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use orrery_cluster::{Frame, Log, PostgresLog, Session, suite};
use orrery_storage::{Claim, Epoch, SpaceId, StoreError};
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
    let settings = |name: &str| {
        let names = format!("ALTER SYSTEM SET synchronous_standby_names = '{name}'");
        server.sql("postgres", &names).expect("alters");
        server.sql("postgres", "SELECT pg_reload_conf()").expect("reloads");
        std::thread::sleep(Duration::from_millis(300));
    };
    settings("nobody");
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
    settings("");
    let found = log.take(SPACE, Claim::Renew(taken.epoch), "test", &Bytes::new()).expect("renews");
    assert_eq!(found.end, taken.end + 2, "this one was written");
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
