//! What the parser accepts, refuses and prints.

use orrery_sql::{NESTING_MAX, parse_condition, parse_query};

fn check(text: &str, normal: &str) {
    match parse_query(text) {
        Ok(query) => assert_eq!(query.to_string(), normal, "{text}"),
        Err(error) => panic!("{text}: {error:?}"),
    }
}

fn refused(text: &str, code: &str, start: usize, end: usize, message: &str) {
    let error = parse_query(text).expect_err(text);
    assert_eq!((error.code, error.start, error.end, error.message.as_str()), (code, start, end, message));
}

#[test]
fn operators_bind_as_documented() {
    check("SELECT VALUE 1 + 2 * 3 - 4", "SELECT VALUE ((1 + (2 * 3)) - 4)");
    check("SELECT VALUE 1 = 2 & 3 != 4", "SELECT VALUE ((1 = 2) & (3 != 4))");
    check("SELECT VALUE a || b OR c", "SELECT VALUE ((a || b) OR c)");
    check("SELECT VALUE 1 ? 2 ?? 3 : 4", "SELECT VALUE (1 ? (2 ?? 3) : 4)");
    check("SELECT VALUE a ? b : c ? d : e", "SELECT VALUE (a ? b : (c ? d : e))");
    check("SELECT VALUE NOT a = b AND c", "SELECT VALUE ((NOT (a = b)) AND c)");
    check("SELECT VALUE -a * -2", "SELECT VALUE ((-a) * -2)");
    check(
        "SELECT VALUE a NOT BETWEEN 1 AND 2 AND b NOT IN (1)",
        "SELECT VALUE ((a NOT BETWEEN 1 AND 2) AND (b NOT IN (1)))",
    );
    check("SELECT VALUE a LIKE 'x!%' ESCAPE '!'", r#"SELECT VALUE (a LIKE "x!%" ESCAPE "!")"#);
}

#[test]
fn every_clause_is_printed_in_order() {
    check(
        "select distinct top @n c.a as x, c['b c'] from Root r join c in r.items join (select value 1) one \
         where r.a[0].b = @p group by c.a, UPPER(c.b) order by c.a desc, c.b offset 1 limit @l",
        "SELECT DISTINCT TOP @n c.a AS x, c[\"b c\"] FROM Root AS r JOIN c IN r.items JOIN (SELECT VALUE 1) AS one \
         WHERE (r.a[0].b = @p) GROUP BY c.a, UPPER(c.b) ORDER BY c.a DESC, c.b OFFSET 1 LIMIT @l",
    );
    check(
        "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, 'a'), VectorDistance(c.v, [1, 2]))",
        "SELECT * FROM c ORDER BY RANK RRF(FullTextScore(c.t, \"a\"), VectorDistance(c.v, [1, 2]))",
    );
    check("SELECT * FROM rank ORDER BY rank.x", "SELECT * FROM rank ORDER BY rank.x");
    check(
        "SELECT ALL, ALL(1), LEFT('ab', 1), udf.f() FROM ALL WHERE ALL(SELECT VALUE true)",
        "SELECT ALL, ALL(1), LEFT(\"ab\", 1), udf.f() FROM ALL WHERE ALL(SELECT VALUE true)",
    );
}

#[test]
fn errors_carry_the_services_code_text_and_place() {
    refused("", "SC1002", 0, 0, "Syntax error, unexpected end-of-file.");
    refused("SELECT c.id FROM c;", "SC1010", 18, 19, "Syntax error, invalid token ';'.");
    refused("INSERT INTO c", "SC1001", 0, 6, "Syntax error, incorrect syntax near 'INSERT'.");
    refused("SELECT TOP -1 c.name FROM c", "SC1001", 11, 12, "Syntax error, incorrect syntax near '-'.");
    refused("SELECT 1 AS a /* no */", "SC1001", 14, 15, "Syntax error, incorrect syntax near '/'.");
    refused("SELECT c.value FROM c", "SC1001", 9, 14, "Syntax error, incorrect syntax near 'value'.");
    // Two UTF-16 units for the emoji, one for each of the others.
    refused("SELECT '😀' AS é", "SC1010", 15, 16, "Syntax error, invalid token 'é'.");
    refused("SELECT 0.E", "SC1012", 7, 10, "Syntax error, invalid numeric value token '0.E'.");
    refused("SELECT 'a", "SC1011", 7, 9, "Syntax error, invalid string literal token ''a'.");
}

#[test]
fn strings_take_json_escapes_in_either_quotes() {
    check(r#"SELECT VALUE 'it\'s \u0027q\u0027 "x"'"#, r#"SELECT VALUE "it's 'q' \"x\"""#);
    check(r#"SELECT VALUE "\ud83d\ude00 \ud83d \n""#, "SELECT VALUE \"😀 \u{fffd} \\n\"");
}

#[test]
fn numbers_keep_64_bits() {
    check("SELECT VALUE 9223372036854775807", "SELECT VALUE 9223372036854775807");
    check("SELECT VALUE -9223372036854775808", "SELECT VALUE -9223372036854775808");
    check("SELECT VALUE [0x1F, .5, 1., 1E2, 1e-7, 0.1]", "SELECT VALUE [31, 0.5, 1, 100, 1e-07, 0.1]");
    check("SELECT VALUE 18446744073709551615", "SELECT VALUE 1.8446744073709552e+19");
}

#[test]
fn comments_end_with_the_line() {
    check("SELECT 1 -- one\n, 2", "SELECT 1, 2");
}

#[test]
fn conditions_need_no_alias() {
    let condition = parse_condition("from c where c.x = 1").unwrap();
    assert_eq!(condition.alias.unwrap().text, "c");
    assert_eq!(condition.filter.to_string(), "(c.x = 1)");
    assert!(parse_condition("where c.x = 1").unwrap().alias.is_none());
    assert_eq!(parse_condition("FROM root r WHERE r.x").unwrap().alias.unwrap().text, "r");
    assert!(parse_condition("c.x = 1").is_err());
}

#[test]
fn a_chain_of_thousands_is_flat_and_nesting_is_bounded() {
    let chain = vec!["(c.id = 'a' AND c.pk = 1)"; 5000].join(" OR ");
    let query = parse_query(&format!("SELECT * FROM c WHERE {chain}")).unwrap();
    assert_eq!(parse_query(&query.to_string()).unwrap(), query);

    for (open, close) in [("(", ")"), ("[", "]"), ("- ", ""), ("NOT ", ""), ("~", ""), ("a[", "]")] {
        let deep = |levels: usize| format!("SELECT VALUE {}1{}", open.repeat(levels), close.repeat(levels));
        assert!(parse_query(&deep(NESTING_MAX / 2)).is_ok(), "{open}");
        assert!(parse_query(&deep(100_000)).is_err(), "{open}");
    }
    let additions = vec!["1"; 100_000].join(" + ");
    assert!(parse_query(&format!("SELECT VALUE {additions}")).is_err());
    let subqueries = format!("SELECT VALUE {}1{}", "(SELECT VALUE ".repeat(50_000), ")".repeat(50_000));
    assert!(parse_query(&subqueries).is_err());
    assert!(parse_query(&" ".repeat(600 * 1024)).is_err());
}
