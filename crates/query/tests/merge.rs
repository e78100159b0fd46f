//! Merged answers of several shares must be what one partition after the other would answer, for any page size, any
//! page size of the shares and any number of them, and also when every page is a request of its own.

use std::sync::{Arc, Mutex, OnceLock};

use orrery_budget::Budget;

use orrery_model::{NumberStyle, ParseOptions, PropertyPath, Raw, parse_json};
use orrery_query::merge::{
    Ask, CachedRows, EVERY_ROW, MergeError, MergePlan, MergePosition, Merged, PageSize, SharePage, ShareRows,
    Shares,
};
use orrery_query::{
    DistanceFunction, Execution, Flow, JsonText, Prepared, QueryEnv, Row, RowFormat, RowView, Rows,
    SortPosition, StoredForm, run_all,
};
use orrery_sql::{SqlError, parse_query};

/// Shares in memory that answer a few rows at a time and remember by counting.
struct Memory {
    shares: Vec<Vec<Vec<u8>>>,
    page_rows: usize,
    degree: usize,
    used: usize,
    /// Rows that pages have kept, where they do.
    kept: Option<Vec<Arc<CachedRows>>>,
    /// Behind which row the present pages of each share began.
    resumed: Vec<Mutex<Option<(SortPosition, u64)>>>,
    format: &'static dyn RowFormat,
}

impl Shares for Memory {
    type Error = SqlError;

    fn count(&self) -> usize {
        self.shares.len()
    }

    fn degree(&self) -> usize {
        self.degree
    }

    fn read_ahead(&self) -> usize {
        self.degree
    }

    fn budget(&self) -> &Budget {
        static UNLIMITED: OnceLock<Budget> = OnceLock::new();
        UNLIMITED.get_or_init(Budget::unlimited)
    }

    fn pages(&mut self, asks: &[Ask<'_>]) -> Result<Vec<SharePage>, SqlError> {
        asks.iter().map(|ask| self.answer(ask)).collect()
    }

    fn used(&mut self, _: usize, _: &SharePage) {
        self.used += 1;
    }

    fn keep(&mut self, rows: CachedRows) -> u64 {
        let Some(kept) = &mut self.kept else { return 0 };
        kept.push(Arc::new(rows));
        kept.len() as u64
    }

    fn kept(&mut self, number: u64, delivered: u64) -> Result<Option<Arc<CachedRows>>, SqlError> {
        let rows = self.kept.as_ref().and_then(|kept| kept.get(number as usize - 1));
        Ok(rows.filter(|rows| rows.first <= delivered).cloned())
    }
}

impl Memory {
    fn answer(&self, ask: &Ask<'_>) -> Result<SharePage, SqlError> {
        let delivered = ask.from.map_or(0, |bytes| usize::from(bytes[0]) * 256 + usize::from(bytes[1]));
        let resumed = self.resumed[ask.share].lock().unwrap().clone();
        let mut execution = match (ask.after, resumed) {
            (Some((after, passed)), _) => {
                *self.resumed[ask.share].lock().unwrap() = Some((after.clone(), passed));
                Execution::resume_sorted(ask.query, passed, after.clone())
            }
            // A page that follows one which began behind a row.
            (None, Some((after, passed))) if ask.from.is_some() => {
                Execution::resume_sorted(ask.query, passed, after)
            }
            _ => Execution::new(ask.query),
        }
        .written_as(self.format);
        let mut seen = 0;
        let page_rows = if ask.rows == EVERY_ROW { usize::MAX } else { ask.rows.min(self.page_rows) };
        let mut rows = ShareRows::of(ask.query, Rows::default());
        let mut more = false;
        let mut sink = |row: Row<'_>| {
            seen += 1;
            if row.is_group() || seen > delivered && rows.len() < page_rows {
                rows.take(row)?;
            } else if seen > delivered {
                more = true;
            }
            Ok(Flow::More)
        };
        for item in &self.shares[ask.share] {
            let row = RowView::plain(Raw::document(item).unwrap());
            if execution.push_numbered(row, number(item), &mut sink)? == Flow::Stop {
                break;
            }
        }
        execution.finish(&mut sink)?;
        let end = delivered + rows.len();
        let next = more.then(|| vec![(end / 256) as u8, (end % 256) as u8]);
        Ok(SharePage { rows, next, ..SharePage::default() })
    }

    fn of(shares: Vec<Vec<Vec<u8>>>) -> Memory {
        Memory {
            resumed: shares.iter().map(|_| Mutex::new(None)).collect(),
            shares,
            page_rows: 1_000,
            degree: 1,
            used: 0,
            kept: None,
            format: &JsonText,
        }
    }
}

/// The number of an item, which it keeps whatever becomes of others.
fn number(item: &[u8]) -> u64 {
    Raw::document(item).unwrap().get("pk").unwrap().as_number().unwrap().as_i64().unwrap() as u64 + 1
}

fn run(prepared: &Prepared, items: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, SqlError> {
    run_all(prepared, items.iter().map(|item| RowView::plain(Raw::document(item).unwrap())))
}

/// The plan of a query, and what it was made from.
fn planned(text: &str) -> Result<MergePlan, SqlError> {
    let query = parse_query(text).unwrap();
    MergePlan::new(&query, &Prepared::new(&query, &[], &env())?, &[], &env())
}

fn env() -> QueryEnv {
    let vectors = vec![(PropertyPath::parse("/v").unwrap(), DistanceFunction::Cosine)];
    QueryEnv { vectors, ..QueryEnv::default() }
}

fn merged(text: &str, shares: &mut Memory, size: usize) -> Result<Vec<String>, SqlError> {
    let plan = planned(text)?;
    let merged = Merged::new(&plan).written_as(shares.format);
    let mut all = Vec::new();
    let mut position: Option<MergePosition> = None;
    loop {
        let page = merged.page(shares, position.take(), PageSize { rows: size, bytes: 1 << 20 });
        let (rows, next) = page.map_err(|error| match error {
            MergeError::Foreign => SqlError::whole("", "foreign"),
            MergeError::Share(error) => error,
        })?;
        assert!(rows.len() <= size, "{text}: a page of {} rows", rows.len());
        all.extend(rows.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()));
        assert!(all.len() < 10_000, "{text}: pages never end");
        match next {
            None => return Ok(all),
            next => position = next,
        }
    }
}

/// A small generator of its own: the numbers must be the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn item(random: &mut Random, number: u64) -> Vec<u8> {
    let mut members = vec![format!("\"id\":\"{number}\",\"pk\":{number},\"_rid\":\"rid{number}\"")];
    let scalars = ["null", "true", "false", "0.5", "\"a\"", "\"b\"", "\"é\"", "[1]", "{\"z\":1}"];
    for name in ["a", "b"] {
        match random.below(4) {
            0 => {}
            1 => members.push(format!("\"{name}\":{}", scalars[random.below(scalars.len() as u64) as usize])),
            _ => members.push(format!("\"{name}\":{}", random.below(6))),
        }
    }
    members.push(format!("\"n\":{}", random.below(100)));
    members.push(format!("\"kind\":\"k{}\"", random.below(4)));
    members.push(format!("\"tags\":[{},\"x\",{}]", random.below(3), random.below(3)));
    match random.below(8) {
        0 => {}
        1 => members.push("\"v\":[1]".to_owned()),
        _ => members.push(format!("\"v\":[{},{}]", random.below(9), 1 + random.below(9))),
    }
    let words = ["swim", "run", "walk", "swim run"];
    members.push(format!("\"text\":\"{}\"", words[random.below(4) as usize]));
    parse_json(format!("{{{}}}", members.join(",")).as_bytes(), &ParseOptions::default()).unwrap()
}

const QUERIES: &[&str] = &[
    "SELECT * FROM c",
    "SELECT VALUE c.n FROM c WHERE c.n > 20",
    "SELECT c.n, t FROM c JOIN t IN c.tags",
    "SELECT TOP 7 VALUE c.n FROM c",
    "SELECT TOP 0 * FROM c",
    "SELECT VALUE c.n FROM c OFFSET 5 LIMIT 9",
    "SELECT VALUE c.n FROM c OFFSET 500 LIMIT 9",
    "SELECT VALUE [c.a, c.n] FROM c ORDER BY c.a",
    "SELECT VALUE [c.a, c.n] FROM c ORDER BY c.a DESC",
    "SELECT c.n FROM c ORDER BY c.kind",
    "SELECT VALUE [c.a, c.b, c.n] FROM c ORDER BY c.a, c.b DESC",
    "SELECT TOP 11 c.n, c.kind FROM c WHERE c.n < 70 ORDER BY c.n",
    "SELECT VALUE c.n FROM c ORDER BY c.n DESC OFFSET 6 LIMIT 12",
    "SELECT VALUE t FROM c JOIN t IN c.tags ORDER BY c.kind",
    "SELECT VALUE c.a FROM c ORDER BY c.kind",
    "SELECT VALUE t.z FROM c JOIN t IN [c.b, c.a, {z: c.n}, {z: 1}] ORDER BY c.kind",
    "SELECT DISTINCT c.a FROM c ORDER BY c.a",
    "SELECT DISTINCT VALUE c.a FROM c",
    "SELECT DISTINCT c.kind, c.a FROM c",
    "SELECT DISTINCT TOP 3 c.kind FROM c",
    "SELECT DISTINCT VALUE c.kind FROM c ORDER BY c.kind DESC",
    "SELECT DISTINCT VALUE c.a FROM c ORDER BY c.a OFFSET 2 LIMIT 5",
    "SELECT VALUE COUNT(1) FROM c",
    "SELECT VALUE COUNT(c.a) FROM c WHERE c.n > 1000",
    "SELECT VALUE SUM(c.n) FROM c",
    "SELECT VALUE SUM(c.a) FROM c",
    "SELECT VALUE AVG(c.n) FROM c",
    "SELECT VALUE AVG(c.a) FROM c",
    "SELECT VALUE AVG(c.n) FROM c WHERE c.n > 1000",
    "SELECT VALUE MIN(c.a) FROM c",
    "SELECT VALUE MAX(c.kind) FROM c",
    "SELECT VALUE MAX(c.n) FROM c WHERE c.n > 1000",
    "SELECT VALUE COUNTIF(c.n > 50) FROM c",
    "SELECT VALUE MAKELIST(c.n) FROM c",
    "SELECT VALUE MAKESET(c.kind) FROM c",
    "SELECT COUNT(1) AS n, MIN(c.n), AVG(c.n) AS m, SUM(c.a) AS s FROM c",
    "SELECT c.kind, COUNT(1) AS n, MAX(c.n) AS high FROM c GROUP BY c.kind",
    "SELECT c.a, c.kind, AVG(c.n) AS middle FROM c GROUP BY c.a, c.kind",
    "SELECT VALUE COUNT(1) FROM c GROUP BY c.a",
    "SELECT VALUE {k: UPPER(c.kind)} FROM c GROUP BY c.kind",
    "SELECT UPPER(c.kind) AS k, MAKESET(c.n % 3) AS s FROM c GROUP BY UPPER(c.kind)",
    "SELECT c.kind FROM c GROUP BY c.kind OFFSET 1 LIMIT 2",
    "SELECT TOP 2 c.kind, SUM(c.n) AS s FROM c GROUP BY c.kind",
    "SELECT c.kind, COUNT(1) AS n FROM c GROUP BY c.kind ORDER BY c.kind DESC",
    "SELECT DISTINCT VALUE COUNT(1) FROM c GROUP BY c.n",
    "SELECT TOP 8 c.n, VectorDistance(c.v, [1, 2]) AS d FROM c ORDER BY VectorDistance(c.v, [1, 2])",
    "SELECT TOP 70 c.n, VectorDistance(c.v, [1, 2]) AS d FROM c ORDER BY VectorDistance(c.v, [1, 2])",
    "SELECT TOP 8 c.n, c.v FROM c ORDER BY VectorDistance(c.v, [1, 2], false, {distanceFunction: 'euclidean'})",
    "SELECT c.n, c.v FROM c ORDER BY VectorDistance(c.v, [1, 2], false, {distanceFunction: 'euclidean'}) OFFSET 2 LIMIT 30",
];

#[test]
fn merged_shares_answer_what_one_partition_after_the_other_answers() {
    let mut cases = 0;
    for seed in 1..=12u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let share_count = 1 + random.below(5) as usize;
        let items: Vec<Vec<Vec<u8>>> = (0..share_count as u64)
            .map(|share| (0..random.below(18)).map(|n| item(&mut random, share * 100 + n)).collect())
            .collect();
        let all: Vec<Vec<u8>> = items.iter().flatten().cloned().collect();
        for text in QUERIES {
            let prepared = Prepared::new(&parse_query(text).unwrap(), &[], &env()).unwrap();
            let expected: Vec<String> = run(&prepared, &all)
                .unwrap()
                .into_iter()
                .map(|row| String::from_utf8(row).unwrap())
                .collect();
            let (size, page_rows) = (1 + random.below(7) as usize, 1 + random.below(5) as usize);
            let degree = 1 + random.below(4) as usize;
            let mut shares = Memory {
                page_rows,
                degree,
                kept: random.below(2).eq(&1).then(Vec::new),
                ..Memory::of(items.clone())
            };
            let found = merged(text, &mut shares, size).unwrap();
            assert_eq!(found, expected, "seed {seed}, {text}, pages of {size}, share pages of {page_rows}");
            cases += 1;
        }
    }
    println!("{cases} merges");
}

#[test]
fn distinct_rows_are_counted_over_all_shares() {
    let mut random = Random(77);
    let items: Vec<Vec<Vec<u8>>> =
        (0..3).map(|share| (0..9).map(|n| item(&mut random, share * 100 + n)).collect()).collect();
    let all: Vec<Vec<u8>> = items.iter().flatten().cloned().collect();
    let distinct =
        Prepared::new(&parse_query("SELECT DISTINCT VALUE c.a FROM c").unwrap(), &[], &env()).unwrap();
    let count = run(&distinct, &all).unwrap().len();
    let mut shares = Memory { page_rows: 2, degree: 2, ..Memory::of(items) };
    let text = "SELECT VALUE COUNT(1) FROM (SELECT DISTINCT VALUE c.a FROM c)";
    assert_eq!(merged(text, &mut shares, 10).unwrap(), [count.to_string()]);
    let text = "SELECT COUNT(1) AS n FROM (SELECT DISTINCT VALUE c.a FROM c)";
    assert_eq!(merged(text, &mut shares, 10).unwrap(), [format!("{{\"n\":{count}}}")]);
}

#[test]
fn ranks_of_all_shares_are_those_of_one_partition() {
    for (seed, text) in [
        (3, "SELECT TOP 9 VALUE c.id FROM c ORDER BY RANK FullTextScore(c.text, 'swim')"),
        (
            4,
            "SELECT TOP 9 VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swim', 'run'), VectorDistance(c.v, [1, 2]))",
        ),
        (
            6,
            "SELECT TOP 9 VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swim', 'run'), VectorDistance(c.v, [1, 2], false, {distanceFunction: 'euclidean'}))",
        ),
        (
            5,
            "SELECT VALUE c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'walk'), FullTextScore(c.kind, 'k1')) OFFSET 2 LIMIT 5",
        ),
    ] {
        let mut random = Random(seed);
        let items: Vec<Vec<Vec<u8>>> =
            (0..3).map(|share| (0..12).map(|n| item(&mut random, share * 100 + n)).collect()).collect();
        let all: Vec<Vec<u8>> = items.iter().flatten().cloned().collect();
        let prepared = Prepared::new(&parse_query(text).unwrap(), &[], &env()).unwrap();
        let expected = run(&prepared, &all).unwrap();
        let mut shares = Memory { page_rows: 5, degree: 2, ..Memory::of(items) };
        let mut found = merged(text, &mut shares, 4).unwrap();
        // Equal scores may come in any order, so the ranked sets are compared.
        let mut expected: Vec<String> =
            expected.into_iter().map(|row| String::from_utf8(row).unwrap()).collect();
        assert_eq!(found.len(), expected.len(), "{text}");
        found.sort();
        expected.sort();
        let common = found.iter().filter(|id| expected.contains(id)).count();
        assert!(common * 2 >= expected.len(), "{text}: {found:?} and {expected:?}");
    }
}

#[test]
fn rows_that_come_and_go_between_pages_move_no_others() {
    let mut random = Random(11);
    let items: Vec<Vec<Vec<u8>>> =
        (0..3).map(|share| (0..15).map(|n| item(&mut random, share * 100 + n)).collect()).collect();
    let text = "SELECT VALUE c.id FROM c ORDER BY c.kind";
    let plan = planned(text).unwrap();
    let merged = Merged::new(&plan);
    let mut shares = Memory { page_rows: 4, degree: 1, ..Memory::of(items.clone()) };
    let whole = merged.page(&mut shares, None, PageSize { rows: 1_000, bytes: 1 << 20 }).unwrap().0;
    let whole: Vec<&[u8]> = whole.iter().collect();
    let (first, next) = merged.page(&mut shares, None, PageSize { rows: 20, bytes: 1 << 20 }).unwrap();
    // Everything that was delivered is deleted, but for the last row's own item.
    let last = first.get(19).unwrap().to_vec();
    let gone: Vec<&[u8]> = first.iter().filter(|row| **row != last[..]).collect();
    for share in &mut shares.shares {
        share.retain(|item| {
            let id = Raw::document(item).unwrap().get("id").unwrap().to_value();
            !gone.iter().any(|row| *row == format!("\"{}\"", id.as_str().unwrap()).as_bytes())
        });
    }
    let (rest, end) = merged.page(&mut shares, next, PageSize { rows: 1_000, bytes: 1 << 20 }).unwrap();
    assert_eq!(rest.iter().collect::<Vec<_>>(), whole[20..]);
    assert!(end.is_none());
}

#[test]
fn a_position_of_another_kind_is_refused() {
    let plan = planned("SELECT VALUE COUNT(1) FROM c").unwrap();
    let merged = Merged::new(&plan);
    let mut shares = Memory { page_rows: 4, ..Memory::of(vec![vec![], vec![]]) };
    let foreign = MergePosition::Chain { share: 0, inner: None, passed: 0 };
    let page = merged.page(&mut shares, Some(foreign), PageSize { rows: 9, bytes: 1 << 20 });
    assert!(matches!(page, Err(MergeError::Foreign)));
}

#[test]
fn what_is_only_read_ahead_is_not_used() {
    let mut random = Random(5);
    let items = (0..4).map(|share| (0..9).map(|n| item(&mut random, share * 100 + n)).collect()).collect();
    let mut shares = Memory { page_rows: 50, degree: 4, ..Memory::of(items) };
    let plan = planned("SELECT * FROM c").unwrap();
    let page = Merged::new(&plan).page(&mut shares, None, PageSize { rows: 5, bytes: 1 << 20 });
    assert_eq!((page.unwrap().0.len(), shares.used), (5, 1));
}

#[test]
fn pages_of_shares_one_by_one_end_with_their_share() {
    for seed in 1..=40u64 {
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let counts: Vec<u64> = (0..1 + random.below(5)).map(|_| random.below(6)).collect();
        let of_share = |random: &mut Random, share: u64, count| -> Vec<Vec<u8>> {
            (0..count).map(|n| item(random, share * 100 + n)).collect()
        };
        let items: Vec<Vec<Vec<u8>>> =
            counts.iter().zip(0..).map(|(count, share)| of_share(&mut random, share, *count)).collect();
        let (size, degree) = (1 + random.below(7) as usize, 1 + random.below(4) as usize);
        for (text, counted) in [
            ("SELECT VALUE c.pk FROM c", false),
            ("SELECT VALUE c.pk FROM c WHERE c.pk >= 0", false),
            ("SELECT TOP 9 VALUE c.pk FROM c", true),
            ("SELECT VALUE c.pk FROM c OFFSET 2 LIMIT 5", true),
            ("SELECT VALUE c.pk FROM c ORDER BY c.pk", true),
        ] {
            let plan = planned(text).unwrap();
            let one_by_one = Merged::new(&plan).one_by_one();
            let mut shares = Memory { page_rows: 50, degree, ..Memory::of(items.clone()) };
            let (mut found, mut position): (Vec<String>, _) = (Vec::new(), None);
            loop {
                let page =
                    one_by_one.page(&mut shares, position.take(), PageSize { rows: size, bytes: 1 << 20 });
                let (rows, next) = page.unwrap();
                let rows: Vec<String> =
                    rows.iter().map(|row| String::from_utf8(row.to_vec()).unwrap()).collect();
                let share = |row: &String| row.parse::<u64>().unwrap() / 100;
                if !counted {
                    let first = rows.first().map(share);
                    assert!(
                        rows.iter().all(|row| Some(share(row)) == first),
                        "seed {seed}, {text}: {rows:?}"
                    );
                    assert!(
                        !rows.is_empty() || next.is_none(),
                        "seed {seed}, {text}: an empty page, and more"
                    );
                }
                found.extend(rows);
                match next {
                    None => break,
                    next => position = next,
                }
            }
            let mut shares = Memory { page_rows: 50, degree, ..Memory::of(items.clone()) };
            assert_eq!(
                found,
                merged(text, &mut shares, 1_000).unwrap(),
                "seed {seed}, {text}, pages of {size}"
            );
        }
    }
}

#[test]
fn a_result_that_is_kept_is_made_once() {
    let mut random = Random(11);
    let items: Vec<Vec<Vec<u8>>> =
        (0..3).map(|share| (0..40).map(|n| item(&mut random, share * 100 + n)).collect()).collect();
    for (text, runs) in [
        ("SELECT c.n, COUNT(1) AS k FROM c GROUP BY c.n", 1),
        ("SELECT DISTINCT VALUE c.n FROM c", 2),
        ("SELECT TOP 60 c.id FROM c ORDER BY VectorDistance(c.v, [1, 2])", 1),
    ] {
        let mut shares = Memory { degree: 3, kept: Some(Vec::new()), ..Memory::of(items.clone()) };
        let rows = merged(text, &mut shares, 5).unwrap();
        assert!(rows.len() > 30, "{text}");
        assert!(shares.used <= 3 * runs, "{text}: {} pages of shares", shares.used);
    }
}

#[test]
fn rows_are_merged_in_whatever_form_they_are_written() {
    let mut random = Random(21);
    let items: Vec<Vec<Vec<u8>>> =
        (0..3).map(|share| (0..20).map(|n| item(&mut random, share * 100 + n)).collect()).collect();
    for text in QUERIES.iter().filter(|text| !text.contains("VectorDistance")) {
        let mut shares = Memory { page_rows: 4, degree: 2, ..Memory::of(items.clone()) };
        let expected = merged(text, &mut shares, 3).unwrap();
        let plan = planned(text).unwrap();
        let stored = Merged::new(&plan).written_as(&StoredForm);
        let mut shares = Memory { page_rows: 4, format: &StoredForm, ..Memory::of(items.clone()) };
        let page = stored.page(&mut shares, None, PageSize { rows: 1_000, bytes: 1 << 20 });
        let json = |row: &[u8]| {
            let mut out = Vec::new();
            Raw::document(row).unwrap().write_json(&mut out, NumberStyle::Query);
            String::from_utf8(out).unwrap()
        };
        let rows: Vec<String> = page.unwrap().0.iter().map(json).collect();
        assert_eq!(rows, expected, "{text}");
    }
}
