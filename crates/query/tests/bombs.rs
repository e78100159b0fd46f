//! Queries that are small themselves and large in what they build, hold or answer: one for each way the language has to
//! grow. All of them end when their budget is used up, long before the memory of a process is.

use std::rc::Rc;
use std::time::{Duration, Instant};

use orrery_budget::{Budget, Exceeded, Limits, MemoryPool};
use orrery_model::{ParseOptions, Raw, Value, parse_json};
use orrery_query::{Meter, Prepared, QueryEnv, RowView, run_within};

const POOL_BYTES: usize = 32 * 1024 * 1024;

/// An item of about 300 KB: an array of a hundred numbers, a long string, an object of a thousand members.
fn item() -> Vec<u8> {
    let members: Vec<String> = (0..1_000).map(|at| format!("\"m{at}\":{at}")).collect();
    let numbers: Vec<String> = (0..100).map(|at| at.to_string()).collect();
    let text = format!(
        r#"{{"id":"a","n":1,"arr":[{}],"text":"{}","object":{{{}}}}}"#,
        numbers.join(","),
        "ab,".repeat(100_000),
        members.join(",")
    );
    parse_json(text.as_bytes(), &ParseOptions::default()).unwrap()
}

fn run(text: &str, budget: &Budget) -> Result<usize, Exceeded> {
    let big = Value::Array(vec![Value::from("0123456789"); 50_000]);
    let parameters = [("@big".to_string(), big), ("@text".to_string(), Value::from("x".repeat(1 << 20)))];
    let query = orrery_sql::parse_query(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let env = QueryEnv { budget: Some(budget.clone()), ..QueryEnv::default() };
    let failed = |error: orrery_sql::SqlError| error.exceeded.unwrap_or_else(|| panic!("{text}: {error}"));
    let prepared = Prepared::new(&query, &parameters, &env).map_err(failed)?;
    let item = item();
    let rows = vec![RowView::plain(Raw::document(&item).unwrap()); 3];
    run_within(&prepared, rows, &Rc::new(Meter::new(budget))).map_err(failed).map(|rows| rows.len())
}

fn repeated(begin: &str, term: &str, count: usize, end: &str) -> String {
    format!("{begin}{}{end}", vec![term; count].join(","))
}

#[test]
fn what_grows_is_charged() {
    let numbered = |term: &str, count: usize| {
        (0..count).map(|at| term.replace('#', &at.to_string())).collect::<Vec<_>>().join(",")
    };
    // `$two` and `$three` stand for the pairs and triples of an array's elements, `$new` for a string of each pair.
    let written = |text: &str| {
        text.replace("$three", "a IN c.arr JOIN b IN c.arr JOIN d IN c.arr")
            .replace("$two", "a IN c.arr JOIN b IN c.arr")
            .replace("$new", "CONCAT(c.text, ToString(a+b*100))")
    };
    let of_c = |text: String| format!("SELECT VALUE {text} FROM c");
    let length = |array: &str| of_c(format!("ARRAY_LENGTH({})", written(array)));
    let parsed = "StringToArray(CONCAT('[',REPLACE(c.text,'ab,','[],[],'),'0]'))";
    let members = "OBJECTTOARRAY(c.object,REPLICATE('k',9999),REPLICATE('v',9999))";
    let tree = (0..7).fold("c.arr".to_string(), |tree, _| format!("[{tree},{tree},{tree},{tree}]"));
    let bombs = [
        ("a subquery", length("ARRAY(SELECT VALUE CONCAT(REPLICATE('x',9999),ToString(a)) FROM $three)")),
        ("objects of a subquery", length("ARRAY(SELECT a, b, d FROM $three)")),
        ("numbers of a subquery", length("ARRAY(SELECT VALUE a FROM $three)")),
        ("rows of FROM", length("ARRAY(SELECT VALUE x FROM (SELECT VALUE $new FROM $three) x)")),
        ("whole items", of_c("ARRAY(SELECT VALUE c FROM a IN c.arr)".into())),
        ("many columns", format!("SELECT {} FROM c", numbered("c AS c#", 500))),
        ("many members", of_c(format!("{{{}}}", numbered("m#: c.text", 500)))),
        ("many elements", of_c(repeated("[", "c.text", 500, "]"))),
        ("strings in arrays", length(&repeated("[", "CONCAT(c.text,'x')", 200, "]"))),
        ("strings in objects", of_c(format!("IS_OBJECT({{{}}})", numbered("m#: UPPER(c.text)", 200)))),
        ("arguments", of_c(repeated("CHOOSE(1,", "LOWER(c.text)", 200, ")"))),
        ("concat", of_c(repeated("LENGTH(CONCAT(", "REPLACE(c.text,'a','aaaaaaaaaa')", 10, "))"))),
        ("concat operator", of_c(format!("LENGTH({})", ["REPLACE(c.text,'a','aaaaaaaaa')"; 9].join("||")))),
        ("replace", of_c("LENGTH(REPLACE(REPLACE(c.text,'a','bbbbbbbbbb'),'b','cccccccccccc'))".into())),
        ("split", length("STRINGSPLIT(REPLACE(c.text,'a',',,,'),',')")),
        ("join", of_c("LENGTH(STRINGJOIN(@big, REPLICATE('x',300)))".into())),
        ("arrays concatenated", length(&repeated("ARRAY_CONCAT(c.arr,", "@big", 30, ")"))),
        ("union", length("SETUNION(ARRAY_CONCAT(c.arr,@big),ARRAY_CONCAT(@big,@big))")),
        ("members as arrays", length(members)),
        ("parsed text", length(parsed)),
        ("matches", length("RegexExtractAll(REPLACE(c.text,'a','bbbbb'), 'b')")),
        ("constants", length(&repeated("[", "REPLICATE('x',9999)", 6_000, "]"))),
        ("parameters", length(&repeated("[", "@text", 60, "]"))),
        ("parameters in calls", length(&repeated("ARRAY_CONCAT(", "@big", 60, ")"))),
        ("distinct rows", written("SELECT DISTINCT VALUE $new FROM c JOIN $two")),
        ("distinct in a subquery", length("ARRAY(SELECT DISTINCT VALUE $new FROM $two)")),
        ("groups", written("SELECT COUNT(1) AS n FROM c JOIN $two GROUP BY $new")),
        ("groups in a subquery", length("ARRAY(SELECT COUNT(1) AS n FROM $two GROUP BY $new)")),
        ("lists", written("SELECT VALUE MAKELIST($new) FROM c JOIN $two")),
        ("sets", written("SELECT VALUE MAKESET($new) FROM c JOIN $two")),
        ("maxima", format!("SELECT {} FROM c", numbered("MAX(CONCAT(c.text,'#')) AS m#", 150))),
        ("sorted rows", written("SELECT c AS c, a, b FROM c JOIN $two ORDER BY c.n")),
        ("rows", "SELECT VALUE c FROM c JOIN a IN c.arr".into()),
        ("a tree of arrays", of_c(tree)),
    ];
    for (name, text) in &bombs {
        let pool = MemoryPool::new(POOL_BYTES);
        let began = Instant::now();
        let budget = Budget::new(pool.clone());
        let failed = run(text, &budget).err();
        let ended = matches!(
            failed,
            Some(Exceeded::RequestMemory { .. } | Exceeded::ProcessMemory { .. } | Exceeded::Answer { .. })
        );
        assert!(ended, "{name}: {failed:?}, {} bytes at most", pool.peak_bytes());
        assert!(pool.peak_bytes() <= POOL_BYTES / 2 + (1 << 20), "{name}: {}", pool.peak_bytes());
        drop(budget);
        assert_eq!(pool.taken_bytes(), 0, "{name} leaves something behind");
        println!("{name}: {failed:?} after {:?}", began.elapsed());
    }
}

#[test]
fn what_is_given_back_can_be_used_again() {
    let modest = [
        // A gigabyte of strings, one after the other.
        "SELECT VALUE COUNT(1) FROM c JOIN $two WHERE LENGTH(REPLICATE('x', 9990 + b)) > 1",
        "SELECT VALUE (SELECT VALUE SUM(LENGTH(REPLICATE('x', 9000 + a))) FROM $two) FROM c",
        "SELECT VALUE LAST(SELECT VALUE CONCAT(c.text, ToString(a)) FROM $two) != '' FROM c",
        "SELECT VALUE EXISTS(SELECT VALUE CONCAT(c.text, ToString(a)) FROM a IN c.arr WHERE a = 99) FROM c",
        "SELECT VALUE ARRAY_LENGTH(ARRAY(SELECT DISTINCT VALUE CONCAT('x', ToString(a)) FROM $two)) FROM c",
        "SELECT TOP 2 VALUE a FROM c JOIN $two ORDER BY c.n",
        "SELECT a, MAX(b) AS m FROM c JOIN $two GROUP BY a",
    ];
    let modest = modest.map(|text| text.replace("$two", "a IN c.arr JOIN b IN c.arr"));
    for text in &modest {
        let pool = MemoryPool::new(POOL_BYTES);
        let within = run(text, &Budget::new(pool.clone()));
        assert_eq!(within, run(text, &Budget::unlimited()), "{text}");
        assert!(within.is_ok() && pool.peak_bytes() < POOL_BYTES / 4, "{text}: {}", pool.peak_bytes());
    }
}

#[test]
fn time_and_clients_are_looked_at_inside_one_item() {
    let slow = [
        "SELECT VALUE COUNT(1) FROM c JOIN $four",
        "SELECT VALUE (SELECT VALUE COUNT(1) FROM $four) FROM c",
        "SELECT VALUE COUNT(1) FROM c JOIN $four WHERE a + b + d + e < 0",
        "SELECT VALUE COUNT(1) FROM c JOIN $four WHERE CONCAT(c.text, ToString(e)) LIKE '%a%b%x'",
        "SELECT VALUE COUNT(1) FROM c JOIN $four WHERE CONTAINS(CONCAT(c.text, ToString(e)), 'abcd')",
        "SELECT VALUE COUNT(1) FROM c JOIN $four WHERE RegexMatch(CONCAT(c.text, ToString(e)), '(a|b)+c$')",
        "SELECT VALUE MAX(a) FROM c JOIN $four GROUP BY a",
        "SELECT VALUE @text LIKE CONCAT('%', REPLACE(c.text, 'ab,', 'x'), 'y') FROM c",
        "SELECT VALUE a FROM c JOIN $four WHERE e < 0 ORDER BY c.n",
    ];
    let slow =
        slow.map(|text| text.replace("$four", "a IN c.arr JOIN b IN c.arr JOIN d IN c.arr JOIN e IN c.arr"));
    for text in &slow {
        let deadline = Some(Instant::now() + Duration::from_millis(100));
        let limits = Limits { deadline, ..Limits::default() };
        let began = Instant::now();
        assert_eq!(
            run(text, &Budget::with(MemoryPool::unlimited(), limits, None)),
            Err(Exceeded::Time),
            "{text}"
        );
        let gone = Budget::with(MemoryPool::unlimited(), Limits::default(), Some(Box::new(|| true)));
        assert_eq!(run(text, &gone), Err(Exceeded::ClientGone), "{text}");
        assert!(began.elapsed() < Duration::from_secs(10), "{text} took {:?}", began.elapsed());
    }
}
