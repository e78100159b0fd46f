//! Groups, aggregates and filters from columns: the same rows, positions, figures and charges as from items, whatever
//! was written between two queries or is being written meanwhile.
//!
//! A failure prints its seed; `ORRERY_SEED=n` runs that case alone, `ORRERY_CASES=n` that many.

mod items_support;
mod query_support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use items_support::{Fixture, Partition, key, parts, wait};
use orrery_engine::{Costs, EngineConfig, Operation, QueryPage, QueryPosition, Scope, Write};
use orrery_storage::MemoryStore;
use query_support::{Case, Dice, Ready, predicate};
use serde_json::json;

const CASES: u64 = 40;

/// Pages that columns put in order, and pages that go through columns in order.
static ORDERED: AtomicU64 = AtomicU64::new(0);
static WALKED: AtomicU64 = AtomicU64::new(0);

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// Columns from the first query on, or none at all.
fn tuned(costs: Costs, columns: bool) -> Costs {
    Costs {
        column_items_min: 0,
        column_asks: u32::from(columns),
        column_sort_asks: 0,
        column_items_at_once: u64::MAX,
        ..costs
    }
}

fn by_columns(page: &QueryPage) -> bool {
    page.report.to_string().lines().next().is_some_and(|way| way.ends_with("by columns"))
}

/// Whether it goes through columns that were put in order beforehand. Without them candidates may be collected first,
/// which reads more entries, costs the same and leads to the same items.
fn walks(page: &QueryPage) -> bool {
    page.report.to_string().contains(", by columns, until the page is full")
}

/// Everything a client can see of a page, and the way to the next.
fn seen(
    case: &Case,
    rows: Vec<String>,
    page: &QueryPage,
) -> (Vec<String>, Option<QueryPosition>, u64, [u64; 6]) {
    let metrics = &page.metrics;
    // Entries that were read before there turned out to be too many lead nowhere and cost nothing.
    // And those of items that are over go at any time.
    let gave_up = page.report.to_string().contains("too many candidates")
        || case.fixture.container.definition().default_ttl.is_some();
    let figures = [
        if gave_up { 0 } else { metrics.index_entries },
        metrics.loaded_items,
        metrics.loaded_bytes,
        metrics.matched_items,
        metrics.output_rows,
        metrics.output_bytes,
    ];
    (rows, page.next.clone(), page.charge_ru.to_bits(), figures)
}

/// Asks a query with and without columns, page by page. Returns how many pages came from columns.
fn compare(case: &mut Case, partition: &Partition, scope: &Scope, query: &Ready, context: &str) -> u64 {
    let (usual, mut columns) = (case.costs, 0);
    let mut from: Option<QueryPosition> = None;
    for _ in 0..500 {
        let mut walked = false;
        let mut both = [true, false].map(|with| {
            case.costs = tuned(usual, with);
            let page = case.page(partition, scope, query, from.as_ref(), 7);
            page.map_err(|error| format!("{error:?}")).map(|(rows, page)| {
                columns += u64::from(by_columns(&page));
                let ordered = page.report.to_string().contains("put in order by columns");
                ORDERED.fetch_add(u64::from(ordered), Ordering::Relaxed);
                walked |= walks(&page);
                WALKED.fetch_add(u64::from(walks(&page)), Ordering::Relaxed);
                assert!(with || !by_columns(&page) && !walks(&page));
                seen(case, rows, &page)
            })
        });
        case.costs = usual;
        if walked {
            both.iter_mut().flatten().for_each(|(.., figures)| figures[0] = 0);
        }
        assert_eq!(both[0], both[1], "{context}, from {from:?}");
        match both[0].as_mut().ok().and_then(|page| page.1.take()) {
            Some(next) => from = Some(next),
            None => return columns,
        }
    }
    panic!("the query has no end: {context}");
}

/// A query that adds up, groups, filters or sorts, of few paths, so that they are asked for again.
fn query(dice: &mut Dice) -> String {
    let path = |dice: &mut Dice| dice.pick(&["c.n", "c.s", "c.x", "c.o.a", "c.tags", "c.id", "c.pk", "c.n"]);
    let input = match dice.below(4) {
        0 => format!("LENGTH({})", path(dice)),
        1 => format!("{} * 2 + {}", path(dice), path(dice)),
        _ => path(dice).to_owned(),
    };
    let kind = dice.pick(&["COUNT", "SUM", "AVG", "MIN", "MAX"]);
    let filter = match dice.below(5) {
        0 => String::new(),
        1 => format!(" WHERE LENGTH(c.s) > {} AND c.n % 2 != 1", dice.below(3)),
        2 => format!(" WHERE c.n + 1 {} c.x", dice.pick(&["<", "=", "!=", ">="])),
        3 => format!(" WHERE {} {} 1.0", path(dice), dice.pick(&["<", "=", "!=", ">="])),
        _ => format!(" WHERE {}", predicate(dice, 2)),
    };
    if dice.one_in(3) {
        let equal = dice.pick(&[
            "c.s = 'a'",
            "c.x = 1",
            "c.pk = 'p1'",
            "c.pk = 'p0'",
            "c.s = 'ab'",
            "c.pk != 'p2'",
            "c.pk IN ('p0', 'p2')",
        ]);
        let more = dice.pick(&["", "", " AND (true)", " AND c.n > 1"]);
        // Ids and keys are what columns tell in any case.
        let order =
            dice.pick(&["c.n", "c.n DESC", "c.id", "c.id DESC", "c.id DESC", "c.pk", "c.s", "c.x DESC"]);
        let top = dice.pick(&["TOP 1 ", "TOP 1 ", "TOP 3 ", ""]);
        return format!("SELECT {top}c.id, c.n FROM c WHERE {equal}{more} ORDER BY {order}");
    }
    match dice.below(6) {
        0 => format!("SELECT VALUE {kind}({input}) FROM c{filter}"),
        3 => format!("SELECT c.id, {} AS v FROM c{filter}", path(dice)),
        4 => format!("SELECT DISTINCT VALUE {} FROM c{filter}", path(dice)),
        1 => {
            let key = path(dice);
            format!("SELECT {key} AS k, COUNT(1) AS n, {kind}({input}) AS v FROM c{filter} GROUP BY {key}")
        }
        2 => {
            let (a, b) = (path(dice), path(dice));
            format!("SELECT {a} AS a, {b} AS b, {kind}({input}) AS v FROM c{filter} GROUP BY {a}, {b}")
        }
        _ => format!("SELECT VALUE {{a: COUNT({input}), b: MIN(c.s), c: MAX(c.x)}} FROM c{filter}"),
    }
}

fn scopes(partition: &Partition, dice: &mut Dice) -> Vec<Scope> {
    let (min, max) = partition.bounds();
    let middle = format!("{:02X}", dice.below(0x40));
    let mut scopes = vec![Scope::Range(partition.range_id())];
    if let Some(middle) =
        orrery_model::Epk::from_hex(&middle).ok().filter(|middle| min < middle && middle < max)
    {
        let range = Some(partition.range_id());
        scopes.push(Scope::Epk { min: min.clone(), max: middle, range });
    }
    scopes
}

fn check(seed: u64) -> u64 {
    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) + 1);
    let mut case = Case::new(&mut dice);
    case.keep_nothing();
    let mut columns = 0;
    for round in 0..60 {
        let text = query(&mut dice);
        let Ok(prepared) = case.prepare(&text) else { continue };
        for partition in case.partitions() {
            for scope in scopes(&partition, &mut dice) {
                let context = format!("seed {seed}, round {round}, {text}, {scope:?}");
                columns += compare(&mut case, &partition, &scope, &prepared, &context);
            }
        }
        for _ in 0..[0, 0, 1, 2, 30][dice.below(5)] {
            case.change(&mut dice);
        }
        match dice.below(40) {
            // Items that are over stay until the sweeper comes.
            0 => {
                let at = dice.below(60);
                let text = format!(r#"{{"id":"i{at}","pk":"p{}","n":1,"ttl":5}}"#, at % 3);
                case.fixture.upsert(&text).unwrap();
            }
            1 => case.fixture.env.advance_ms(6_000),
            2 => case.fixture.sweep(),
            3 if case.partitions().len() < 4 => {
                let id = case.partitions()[0].range_id();
                if let Ok(job) = case.fixture.account.split_partition(&case.fixture.container, Some(id)) {
                    let _ = wait(job.done());
                }
            }
            _ => {}
        }
    }
    columns
}

#[test]
fn columns_answer_as_items_do_whatever_is_written_between() {
    if let Some(seed) = environment("ORRERY_SEED") {
        check(seed);
        return;
    }
    let cases = environment("ORRERY_CASES").unwrap_or(CASES);
    let columns: u64 = (0..cases).map(check).sum();
    assert!(columns > 20 * cases, "only {columns} pages from columns");
    let ordered = ORDERED.load(Ordering::Relaxed);
    assert!(ordered > cases / 4, "only {ordered} pages put in order by columns");
    let walked = WALKED.load(Ordering::Relaxed);
    assert!(walked > cases / 2, "only {walked} pages by columns in order");
}

#[test]
fn a_set_is_made_when_it_is_asked_for_again_and_renewed_by_what_was_written() {
    let fixture = Fixture::embedded(json!({}));
    let item =
        |at: usize, n: usize| format!(r#"{{"id":"i{at}","pk":"p{}","n":{n},"city":"c{}"}}"#, at % 50, n % 7);
    for at in 0..2_000 {
        fixture.create(&item(at, at)).unwrap();
    }
    let case = Case::of(fixture);
    let partition = case.partitions().remove(0);
    let prepared =
        case.prepare("SELECT c.city, COUNT(1) AS n, AVG(c.n) AS a FROM c GROUP BY c.city").unwrap();
    let way = || by_columns(&case.page(&partition, &Scope::All, &prepared, None, 100).unwrap().1);
    assert_eq!([way(), way(), way(), way()], [false, false, true, true]);
    // A few changes, and so many that the set is renewed on the way, many times over.
    for round in 0..60 {
        for at in 0..10 {
            case.fixture.upsert(&item((round * 37 + at * 101) % 2_000, round + at)).unwrap();
        }
        assert!(way(), "round {round}");
    }
    // So many that reading everything again is better.
    for at in 0..400 {
        case.fixture.upsert(&item(at * 3, at)).unwrap();
    }
    assert_eq!([way(), way()], [false, true]);
    // Another query of other paths gets its columns beside these.
    let other = case.prepare("SELECT VALUE COUNT(1) FROM c WHERE LENGTH(c.id) > 3 AND c.n % 7 = 3").unwrap();
    let other_way = || by_columns(&case.page(&partition, &Scope::All, &other, None, 100).unwrap().1);
    assert_eq!([other_way(), other_way(), other_way(), way()], [false, false, true, true]);
}

/// The best few of a filter's items, however many the filter lets through: by index at first, and by columns when they
/// are there, which are made beside the pages where making them takes long.
#[test]
fn the_first_of_an_order_are_met_by_columns_when_they_are_ready() {
    const ITEMS: usize = 3_000;
    for at_once in [true, false] {
        let fixture = Fixture::embedded(json!({}));
        let item = |at: usize, n: usize| {
            format!(r#"{{"id":"i{at}","pk":"p{}","n":{n},"city":"c{}"}}"#, at % 50, at % 10)
        };
        for at in 0..ITEMS {
            fixture.create(&item(at, at * 7919 % 100_003)).unwrap();
        }
        let mut case = Case::of(fixture);
        if !at_once {
            case.costs.column_items_at_once = 0;
        }
        let partition = case.partitions().remove(0);
        for (order, range) in [("c.n DESC", ""), ("c.n", ""), ("c.n DESC", " AND c.n < 50000")] {
            let text = format!("SELECT TOP 10 c.id, c.n FROM c WHERE c.city = 'c3'{range} ORDER BY {order}");
            let prepared = case.prepare(&text).unwrap();
            let page = || case.page(&partition, &Scope::All, &prepared, None, 100).unwrap();
            let (expected, first) = page();
            let mut asked = 0;
            while !walks(&page().1) {
                asked += 1;
                assert!(!at_once || asked < 100, "{}", page().1.report);
                std::thread::yield_now();
            }
            let (rows, walked) = page();
            assert_eq!(rows, expected, "{text}");
            assert_eq!(walked.charge_ru.to_bits(), first.charge_ru.to_bits(), "{text}");
            // An item that comes to the front, one that goes, and one that is new.
            case.fixture.upsert(&item(3, 99_999)).unwrap();
            case.fixture.upsert(&item(13, 49_999)).unwrap();
            case.fixture.upsert(&item(23, 0)).unwrap();
            case.fixture.upsert(&item(ITEMS + 3, 1)).unwrap();
            let (rows, walked) = page();
            assert!(walks(&walked), "{}", walked.report);
            case.costs.column_asks = 0;
            let (expected, _) = case.page(&partition, &Scope::All, &prepared, None, 100).unwrap();
            case.costs.column_asks = 2;
            assert_eq!(rows, expected, "{text}");
        }
    }
}

#[test]
fn pages_of_a_filter_read_columns() {
    let fixture = Fixture::embedded(json!({}));
    for at in 0..1_500 {
        let text = format!(r#"{{"id":"i{at}","pk":"p{}","n":{at},"s":"{}"}}"#, at % 50, "x".repeat(at % 100));
        fixture.create(&text).unwrap();
    }
    let mut case = Case::of(fixture);
    let partition = case.partitions().remove(0);
    let prepared = case.prepare("SELECT c.id, c.s FROM c WHERE LENGTH(c.s) * 2 > c.n % 200 + 80").unwrap();
    let columns = compare(&mut case, &partition, &Scope::All, &prepared, "a filter of two paths");
    assert!(columns > 20, "{columns} pages from columns");
}

/// Every batch moves an amount from one item to another, so the sum is always the same in every snapshot.
#[test]
fn sums_hold_in_every_snapshot_while_amounts_are_moved() {
    const ITEMS: usize = 600;
    for embedded in [false, true] {
        let fixture = if embedded { Fixture::embedded(json!({})) } else { Fixture::new(json!({})) };
        for at in 0..ITEMS {
            fixture.create(&format!(r#"{{"id":"{at}","pk":"p{}","n":10}}"#, at % 3)).unwrap();
        }
        let mut case = Case::of(fixture);
        case.costs = tuned(case.costs, true);
        let prepared = case
            .prepare("SELECT VALUE {sum: SUM(c.n), items: COUNT(c.n)} FROM c WHERE LENGTH(c.id) > 0")
            .unwrap();
        let partition = case.partitions().remove(0);
        let done = AtomicBool::new(false);
        let mut columns = 0;
        std::thread::scope(|threads| {
            for thread in 0..2 {
                let (case, done) = (&case, &done);
                threads.spawn(move || {
                    let mut dice = Dice(thread);
                    while !done.load(Ordering::Relaxed) {
                        let pk = format!("p{thread}");
                        let (from, to) = (dice.below(ITEMS / 3) * 3, dice.below(ITEMS / 3) * 3);
                        if from == to {
                            continue;
                        }
                        let amount = dice.below(100) as i64;
                        let add = |at: usize, amount: i64| -> Write {
                            let id = (at + thread as usize).to_string();
                            let item = case.fixture.read(&pk, &id).unwrap();
                            let n = item.body().get("n").and_then(|n| n.as_number()?.as_i64()).unwrap();
                            let text = format!(r#"{{"id":"{id}","pk":"{pk}","n":{}}}"#, n + amount);
                            let (_, id, document) = parts(&text);
                            Operation::Replace { id, document }.into()
                        };
                        let writes = vec![add(from, -amount), add(to, amount)];
                        wait(case.fixture.container.write_batch(&key(&pk), writes)).unwrap();
                    }
                });
            }
            for round in 0..400 {
                let (rows, page) = case.page(&partition, &Scope::All, &prepared, None, 10).unwrap();
                columns += u64::from(by_columns(&page));
                let expected = format!(r#"{{"sum":{},"items":{ITEMS}}}"#, 10 * ITEMS);
                if rows != [expected.clone()] {
                    done.store(true, Ordering::Relaxed);
                    panic!("round {round}: {rows:?} instead of {expected}, {}", page.report);
                }
            }
            done.store(true, Ordering::Relaxed);
        });
        assert!(columns > 100, "{columns} of 400 pages from columns");
    }
}

#[test]
fn little_room_means_few_sets_and_never_other_answers() {
    let store = std::sync::Arc::new(MemoryStore::new());
    let config = EngineConfig { column_bytes_max: 70_000, ..EngineConfig::default() };
    let fixture = Fixture::over(store, config, json!({}), 25_000);
    for at in 0..2_400 {
        fixture.create(&format!(r#"{{"id":"i{at}","pk":"p{at}","n":{at},"s":"s{}"}}"#, at % 5)).unwrap();
    }
    let mut case = Case::of(fixture);
    case.keep_nothing();
    let prepared = case.prepare("SELECT c.s, SUM(c.n) AS n FROM c GROUP BY c.s").unwrap();
    let partitions = case.partitions();
    assert_eq!(partitions.len(), 3);
    let mut columns = 0;
    for round in 0..12 {
        for partition in &partitions {
            let scope = Scope::Range(partition.range_id());
            columns += compare(&mut case, partition, &scope, &prepared, &format!("round {round}"));
        }
    }
    // Three sets do not fit: in turns, most are gone before they are asked for again.
    assert!(columns <= 24, "{columns} of 36: sets of all partitions were kept");
    columns = 0;
    for round in 0..70 {
        let scope = Scope::Range(partitions[0].range_id());
        columns += compare(&mut case, &partitions[0], &scope, &prepared, &format!("round {round}"));
    }
    assert!(columns > 0, "the set of one partition fits");
}
