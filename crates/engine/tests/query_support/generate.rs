//! Random policies, items and queries from few names and values, so that they often meet.

use orrery_engine::Costs;
use serde_json::{Value, json};

/// SplitMix64.
pub struct Dice(pub u64);

impl Dice {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'t>(&mut self, list: &[&'t str]) -> &'t str {
        list[self.below(list.len())]
    }
}

const LONG: &str = "0123456789012345678901234567890123456789012345678901234567890123456789";

pub fn policy(dice: &mut Dice) -> Value {
    let composite = json!([
        [{"path": "/n", "order": "ascending"}, {"path": "/s", "order": "descending"}],
        [{"path": "/s", "order": "ascending"}, {"path": "/n", "order": "ascending"}],
    ]);
    match dice.below(5) {
        0 | 1 => json!({"indexingPolicy": {"compositeIndexes": composite}}),
        2 => json!({"indexingPolicy": {"indexingMode": "none", "automatic": false}}),
        3 => json!({"indexingPolicy": {
            "includedPaths": [{"path": "/n/?"}, {"path": "/tags/[]/?"}, {"path": "/o/*"}],
            "excludedPaths": [{"path": "/*"}],
            "compositeIndexes": composite,
        }}),
        _ => json!({"indexingPolicy": {
            "includedPaths": [{"path": "/*"}],
            "excludedPaths": [{"path": "/s/?"}, {"path": "/o/a/?"}],
        }, "defaultTtl": -1}),
    }
}

/// Figures at their ends, so that few items go every way.
pub fn costs(dice: &mut Dice) -> Costs {
    let mut pick = |ends: [usize; 3]| ends[dice.below(3)];
    let usual = Costs::default();
    Costs {
        created_items_max: pick([0, usual.created_items_max, usual.created_items_max]),
        created_found_max: pick([0, 5, usual.created_found_max]),
        few_items: pick([0, 0, usual.few_items]),
        candidates_min: pick([0, 3, usual.candidates_min]),
        candidates_part: pick([1, 2, 8]) as u64,
        run_entries_max: pick([1, 3, usual.run_entries_max]),
        absent_items_max: pick([1, 4, usual.absent_items_max]),
        window_rows: pick([1, 7, usual.window_rows]),
        window_candidates_min: pick([0, 2, usual.window_candidates_min]),
        entry_cost: pick([0, 1, 1]) as u64,
        load_cost: pick([0, 1, 8]) as u64,
        scan_cost: pick([0, 2, 50]) as u64,
        remembered_items: pick([0, 0, 20_000]) as u64,
        column_items_min: pick([0, 0, 1_000]) as u64,
        column_asks: pick([1, 1, 2]) as u32,
        column_sort_asks: 0,
        column_items_at_once: pick([20_000, 20_000, 10]) as u64,
        graph_nodes_min: pick([0, 10, 4_000]) as u64,
    }
}

pub fn partition_key(at: usize) -> String {
    format!("p{}", at % 3)
}

fn scalar(dice: &mut Dice) -> String {
    let long = format!("\"{LONG}{}\"", dice.below(3));
    match dice.below(8) {
        0 => "null".into(),
        1 => dice.pick(&["true", "false"]).into(),
        2 | 3 => format!("{}", dice.below(7) as i64 - 3),
        4 => dice.pick(&["0.5", "1e300", "-2.25", "9007199254740993", "1.0"]).into(),
        5 | 6 => format!("\"{}\"", dice.pick(&["", "a", "ab", "abc", "b", "é", "A", "Ab", "a b"])),
        _ => long,
    }
}

fn value(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 || !dice.one_in(4) {
        return scalar(dice);
    }
    if dice.one_in(2) {
        let elements: Vec<String> = (0..dice.below(4)).map(|_| value(dice, depth - 1)).collect();
        return format!("[{}]", elements.join(","));
    }
    let mut members = Vec::new();
    for name in ["a", "b"] {
        if !dice.one_in(3) {
            members.push(format!("\"{name}\":{}", value(dice, depth - 1)));
        }
    }
    format!("{{{}}}", members.join(","))
}

/// An item of which some values are such as SQL cannot write.
pub fn extended_item(dice: &mut Dice, at: usize) -> String {
    let mut text = item(dice, at);
    for name in ["n", "s", "x"] {
        if dice.one_in(3) {
            // Of a name given twice the last value counts.
            text = format!("{},\"{name}\":{}}}", &text[..text.len() - 1], extended(dice));
        }
    }
    text
}

fn extended(dice: &mut Dice) -> String {
    let small = dice.below(4);
    match dice.below(12) {
        0 => format!(r#"{{"$oid":"00000000000000000000000{small}"}}"#),
        1 => format!(r#"{{"$date":{{"$numberLong":"{}"}}}}"#, small as i64 - 2),
        2 => format!(r#"{{"$timestamp":{{"t":1,"i":{small}}}}}"#),
        3 => format!(r#"{{"$numberLong":"{small}"}}"#),
        4 => format!(r#"{{"$numberDouble":"{small}.0"}}"#),
        5 | 6 => format!(r#"{{"$numberDecimal":"{}"}}"#, small as i64 - 2),
        7 => {
            let decimals =
                ["0.50", "0.5", "-2.2500000000000000001", "1E+300", "9007199254740993", "NaN", "1E-6000"];
            format!(r#"{{"$numberDecimal":"{}"}}"#, dice.pick(&decimals))
        }
        8 => dice.pick(&[r#"{"$minKey":1}"#, r#"{"$maxKey":1}"#]).into(),
        9 => {
            let long = "A".repeat(96);
            let bytes = ["", "AA==", "AAA=", "/w=="].map(|bytes| bytes.to_owned());
            let bytes = [bytes, [0, 1, 2, 3].map(|last| format!("{long}AAA{last}"))].concat();
            format!(r#"{{"$binary":{{"base64":"{}","subType":"0{small}"}}}}"#, bytes[dice.below(bytes.len())])
        }
        10 => format!(r#"{{"$regularExpression":{{"pattern":"{}","options":"i"}}}}"#, &LONG[small * 20..]),
        _ => format!(r#"{{"$code":"{LONG}{small}"}}"#),
    }
}

pub fn item(dice: &mut Dice, at: usize) -> String {
    let mut members = vec![format!("\"id\":\"i{at}\""), format!("\"pk\":\"{}\"", partition_key(at))];
    for name in ["n", "s", "x"] {
        if !dice.one_in(5) {
            members.push(format!("\"{name}\":{}", value(dice, 1)));
        }
    }
    if dice.one_in(2) {
        let elements: Vec<String> = (0..dice.below(4)).map(|_| scalar(dice)).collect();
        members.push(format!("\"tags\":[{}]", elements.join(",")));
    }
    if dice.one_in(2) {
        members.push(format!("\"o\":{}", value(dice, 2)));
    }
    format!("{{{}}}", members.join(","))
}

fn path(dice: &mut Dice) -> &'static str {
    dice.pick(&[
        "c.n",
        "c.s",
        "c.x",
        "c.n",
        "c.s",
        "c.o",
        "c.o.a",
        "c.o.b",
        "c.tags",
        "c.id",
        "c.pk",
        "c._ts",
        "c.missing",
        "c.tags[0]",
    ])
}

fn constant(dice: &mut Dice) -> String {
    if dice.one_in(12) {
        return dice.pick(&["undefined", "[]", "{}", "[1]", "{\"a\":1}", "'p1'", "1800000000"]).into();
    }
    scalar(dice)
}

pub fn predicate(dice: &mut Dice, depth: usize) -> String {
    if depth > 0 && dice.one_in(2) {
        let (a, b) = (predicate(dice, depth - 1), predicate(dice, depth - 1));
        return match dice.below(5) {
            0 | 1 => format!("({a} AND {b})"),
            2 | 3 => format!("({a} OR {b})"),
            _ => format!("(NOT {a})"),
        };
    }
    let p = path(dice);
    match dice.below(18) {
        0..=2 => format!("{p} = {}", constant(dice)),
        3 => format!("{} {} {p}", constant(dice), dice.pick(&["=", "<", ">=", "!="])),
        4 | 5 => format!("{p} {} {}", dice.pick(&["<", "<=", ">", ">=", "!="]), constant(dice)),
        6 => format!("{p} IN ({}, {}, {})", constant(dice), constant(dice), constant(dice)),
        7 => format!("{p} NOT IN ({}, {})", constant(dice), constant(dice)),
        8 => format!("{p} {}BETWEEN {} AND {}", dice.pick(&["", "NOT "]), constant(dice), constant(dice)),
        9 => format!(
            "STARTSWITH({p}, '{}'{})",
            dice.pick(&["a", "", "ab", "0123"]),
            dice.pick(&["", ", true"])
        ),
        10 => format!(
            "{p} {}LIKE '{}'",
            dice.pick(&["", "NOT "]),
            dice.pick(&["a%", "%b%", "ab", "_", "0%2", ""])
        ),
        11 => format!(
            "{}({p}, '{}')",
            dice.pick(&["CONTAINS", "ENDSWITH", "STRINGEQUALS", "REGEXMATCH"]),
            dice.pick(&["a", "b", "ab", "1"])
        ),
        12 => format!(
            "{}({p})",
            dice.pick(&[
                "IS_DEFINED",
                "IS_NULL",
                "IS_NUMBER",
                "IS_STRING",
                "IS_BOOL",
                "IS_ARRAY",
                "IS_OBJECT",
                "IS_PRIMITIVE",
                "NOT IS_DEFINED",
                "IS_INTEGER",
            ])
        ),
        13 if dice.one_in(2) => format!("ARRAY_CONTAINS(c.tags, {})", constant(dice)),
        13 => format!(
            "ARRAY_CONTAINS([{}, {}], {p}{})",
            constant(dice),
            constant(dice),
            dice.pick(&["", ", false", ", true"])
        ),
        14 => format!(
            "EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t {} {})",
            dice.pick(&["=", ">"]),
            scalar(dice)
        ),
        15 => p.to_string(),
        16 => format!("LOWER({p}) = '{}'", dice.pick(&["a", "ab"])),
        _ => format!("{p} % 2 = {}", dice.below(2)),
    }
}

pub fn query(dice: &mut Dice) -> String {
    let from = if dice.one_in(8) { "c JOIN t IN c.tags" } else { "c" };
    let joined = from != "c";
    let mut filter = if dice.one_in(6) { String::new() } else { format!(" WHERE {}", predicate(dice, 2)) };
    if joined && dice.one_in(2) {
        let own = format!("t = {}", scalar(dice));
        filter = if filter.is_empty() { format!(" WHERE {own}") } else { format!("{filter} AND {own}") };
    }
    let p = path(dice);
    match dice.below(12) {
        0 => format!(
            "SELECT VALUE {}({p}) FROM {from}{filter}",
            dice.pick(&["COUNT", "MIN", "MAX", "SUM", "AVG"])
        ),
        1 => format!("SELECT VALUE COUNT(1) FROM {from}{filter}"),
        2 => format!("SELECT {p} AS k, COUNT(1) AS n, MAX(c.n) AS m FROM {from}{filter} GROUP BY {p}"),
        3 => format!("SELECT DISTINCT VALUE {p} FROM {from}{filter}"),
        4 => format!("SELECT VALUE {p} FROM {from}{filter}"),
        5 => format!("SELECT TOP {} c.id, {p} AS v FROM {from}{filter}", dice.below(6)),
        6 => format!(
            "SELECT c.id, {p} AS v FROM {from}{filter} OFFSET {} LIMIT {}",
            dice.below(4),
            dice.below(6)
        ),
        7 | 8 => {
            let direction = dice.pick(&["", " ASC", " DESC"]);
            let top = if dice.one_in(2) { format!("TOP {} ", 1 + dice.below(6)) } else { String::new() };
            format!("SELECT {top}c.id, {p} AS v FROM {from}{filter} ORDER BY {p}{direction}")
        }
        9 => {
            let order = dice.pick(&[
                "c.n, c.s DESC",
                "c.n DESC, c.s",
                "c.s, c.n",
                "c.s DESC, c.n DESC",
                "c.n ASC, c.s ASC",
            ]);
            format!("SELECT c.id, c.n, c.s FROM {from}{filter} ORDER BY {order}")
        }
        10 => format!(
            "SELECT VALUE c.id FROM {from}{filter} ORDER BY {p} DESC OFFSET {} LIMIT 3",
            dice.below(4)
        ),
        _ if joined => format!("SELECT c.id, t FROM {from}{filter}"),
        _ => format!("SELECT * FROM {from}{filter}"),
    }
}
