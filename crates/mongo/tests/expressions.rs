//! Every operator and accumulator against values that nobody meant for it: an answer or an error, never a panic.

use orrery_mongo::accumulator::{ACCUMULATORS, AccumulatorSpec, window};
use orrery_mongo::expression::{Expression, table};
use orrery_mongo::{Bson, Context, Document, ValueRef, ext_json};

/// Values at the ends of their ranges, empty ones, and ones of every type.
fn odd_values() -> Vec<Bson> {
    let texts = [
        "null",
        "true",
        "0",
        "-1",
        "3",
        "2147483647",
        "{\"$numberLong\":\"9223372036854775807\"}",
        "{\"$numberLong\":\"-9223372036854775808\"}",
        "{\"$numberDouble\":\"NaN\"}",
        "{\"$numberDouble\":\"-Infinity\"}",
        "{\"$numberDouble\":\"1e308\"}",
        "0.5",
        "-0.0",
        "{\"$numberDecimal\":\"9.999999999999999999999999999999999E+6144\"}",
        "{\"$numberDecimal\":\"-1E-6176\"}",
        "{\"$numberDecimal\":\"NaN\"}",
        "{\"$numberDecimal\":\"Infinity\"}",
        "{\"$numberDecimal\":\"12.50\"}",
        "\"\"",
        "\"ab\u{e9}\u{1f648}\"",
        "\"2020-02-29T12:00:00Z\"",
        "\"Europe/Paris\"",
        "\"%Y-%m-%d %\"",
        "\"day\"",
        "\"(a*)*b\"",
        "[]",
        "[1,\"a\",null,[2],{\"k\":\"x\",\"v\":1}]",
        "[[\"k\",1],[\"k\",2]]",
        "{}",
        "{\"a\":{\"b\":[1]}}",
        "{\"$date\":{\"$numberLong\":\"9223372036854775807\"}}",
        "{\"$date\":{\"$numberLong\":\"-9223372036854775808\"}}",
        "{\"$date\":{\"$numberLong\":\"951782400000\"}}",
        "{\"$oid\":\"507f1f77bcf86cd799439011\"}",
        "{\"$timestamp\":{\"t\":4294967295,\"i\":7}}",
        "{\"$binary\":{\"base64\":\"AAEC\",\"subType\":\"04\"}}",
        "{\"$regularExpression\":{\"pattern\":\"a(b)?\",\"options\":\"i\"}}",
        "{\"$minKey\":1}",
        "{\"$maxKey\":1}",
        "{\"$code\":\"x\"}",
    ];
    texts.iter().map(|text| ext_json::parse(text, ext_json::Reading::Data).expect(text)).collect()
}

/// Names of arguments of all operators.
const NAMES: &[&str] = &[
    "input",
    "as",
    "cond",
    "in",
    "initialValue",
    "vars",
    "limit",
    "inputs",
    "useLongestLength",
    "defaults",
    "n",
    "sortBy",
    "output",
    "if",
    "then",
    "else",
    "branches",
    "default",
    "field",
    "value",
    "date",
    "timezone",
    "iso8601",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "millisecond",
    "isoWeekYear",
    "isoWeek",
    "isoDayOfWeek",
    "startDate",
    "endDate",
    "unit",
    "amount",
    "binSize",
    "startOfWeek",
    "format",
    "onNull",
    "onError",
    "dateString",
    "to",
    "chars",
    "find",
    "replacement",
    "regex",
    "options",
    "method",
    "p",
    "by",
    "N",
    "alpha",
];

/// A small generator, so that a failure comes again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % sides as u64) as usize
    }

    fn value(&mut self, values: &[Bson]) -> Bson {
        let plain = values[self.roll(values.len())].clone();
        // Through a path, so that nothing is known before evaluation.
        match self.roll(3) {
            0 => Bson::from(format!("$v{}", self.roll(values.len()))),
            1 => [("$literal", plain)]
                .into_iter()
                .map(|(name, value)| (name.into(), value))
                .collect::<Document>()
                .into(),
            _ => plain,
        }
    }

    fn argument(&mut self, values: &[Bson]) -> Bson {
        match self.roll(5) {
            0 => self.value(values),
            1..=2 => {
                let count = self.roll(5);
                Bson::array((0..count).map(|_| self.value(values)).collect())
            }
            _ => {
                let mut members = Document::new();
                for _ in 0..1 + self.roll(6) {
                    let name = NAMES[self.roll(NAMES.len())];
                    members.set(name, self.value(values));
                }
                members.into()
            }
        }
    }

    /// The arguments that an operator's usage names, so that most get past the parser.
    fn fitting(&mut self, usage: &str, values: &[Bson]) -> Bson {
        let mut members = Document::new();
        for name in NAMES {
            let mentioned = usage.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == *name);
            if mentioned && self.roll(5) > 0 {
                let value = match *name {
                    "method" => "approximate".into(),
                    "unit" => ["day", "month", "week", "hour"][self.roll(4)].into(),
                    "sortBy" => [("a".into(), Bson::Int32(1))].into_iter().collect::<Document>().into(),
                    "as" => "x".into(),
                    "useLongestLength" => Bson::Bool(self.roll(2) == 0),
                    _ => self.value(values),
                };
                members.push(*name, value);
            }
        }
        members.into()
    }
}

fn operand(name: &str, argument: Bson) -> Bson {
    let mut document = Document::new();
    document.push(name, argument);
    document.into()
}

fn documents(values: &[Bson]) -> Document {
    values.iter().enumerate().map(|(at, value)| (format!("v{at}").into(), value.clone())).collect()
}

#[test]
fn no_operator_panics() {
    let values = odd_values();
    let (document, context) = (documents(&values), Context::for_tests());
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    let operators: Vec<_> = table::OPERATORS.iter().flat_map(|(_, family)| family.iter()).collect();
    for operator in &operators {
        for round in 0..400 {
            let argument =
                if round % 2 == 0 { dice.argument(&values) } else { dice.fitting(operator.usage, &values) };
            let expression = operand(operator.name, argument);
            if let Ok(parsed) = Expression::parse(&expression, &context) {
                let _ = parsed.evaluate(ValueRef::OwnedDocument(&document), &context);
                let _ = parsed.paths();
            }
        }
    }
}

#[test]
fn no_accumulator_and_no_window_panics() {
    let values = odd_values();
    let context = Context::for_tests();
    let rows: Vec<Document> = (0..values.len())
        .map(|at| {
            let mut row = documents(&values);
            row.push("a", values[at].clone());
            row
        })
        .collect();
    let partition: Vec<ValueRef<'_>> = rows.iter().map(ValueRef::OwnedDocument).collect();
    let mut dice = Dice(42);
    for accumulator in ACCUMULATORS.iter().chain(window::WINDOW_FUNCTIONS) {
        for round in 0..60 {
            let argument = if round % 2 == 0 {
                dice.argument(&values)
            } else {
                dice.fitting(accumulator.usage, &values)
            };
            if let Ok(spec) = AccumulatorSpec::parse(accumulator.name, &argument, &context)
                && let Ok(mut started) = spec.start(partition[0], &context)
            {
                for document in &partition {
                    let _ = started.add(*document, &context);
                }
                let _ = started.finish(&context);
            }
            let mut specification = Document::new();
            specification.push(accumulator.name, argument);
            if dice.roll(2) == 0 {
                let bounds = ["unbounded".into(), "current".into(), Bson::Int32(-2), Bson::Int32(3)];
                let pair = Bson::array(vec![bounds[dice.roll(4)].clone(), bounds[dice.roll(4)].clone()]);
                let kind = ["documents", "range"][dice.roll(2)];
                specification.push("window", [(kind.into(), pair)].into_iter().collect::<Document>());
            }
            let sort: Document = [("v5".into(), Bson::Int32(1))].into_iter().collect();
            let parsed = window::WindowFunction::parse(&specification.into(), Some(&sort), &context);
            if let Ok(function) = parsed
                && let Ok(values) = function.compute(&partition, &context)
            {
                assert_eq!(values.len(), partition.len(), "{}", accumulator.name);
            }
        }
    }
}

#[test]
fn names_are_unique_and_documented() {
    let mut names = std::collections::BTreeSet::new();
    for operator in table::OPERATORS.iter().flat_map(|(_, family)| family.iter()) {
        assert!(names.insert(operator.name), "{} stands twice", operator.name);
        assert!(
            operator.name.starts_with('$') && operator.usage.contains(operator.name),
            "{}",
            operator.usage
        );
        assert!(operator.about.ends_with('.'), "{}", operator.about);
    }
    assert!(names.len() >= 155, "{} operators", names.len());
}

#[test]
fn an_expression_knows_what_it_reads() {
    let context = Context::for_tests();
    let parsed = |text: &str| {
        let value = ext_json::parse(text, ext_json::Reading::Query).expect(text);
        Expression::parse(&value, &context).expect(text)
    };
    let paths = parsed(r#"{"$add":["$a.b",{"$multiply":["$c",2]}]}"#).paths().expect("known");
    assert_eq!(paths.into_iter().collect::<Vec<_>>(), ["a.b", "c"]);
    assert!(parsed(r#"{"$mergeObjects":["$$ROOT"]}"#).paths().is_none());
    assert!(parsed(r#"{"$add":[1,2]}"#).is_constant());
    assert!(!parsed(r#"{"$rand":{}}"#).is_constant());
}

#[test]
fn nesting_is_bounded() {
    let mut value = Bson::Int32(1);
    for _ in 0..10_000 {
        value = operand("$abs", value);
    }
    assert!(Expression::parse(&value, &Context::for_tests()).is_err());
    // As deep as it may be, in every shape, on the stack of a usual thread.
    for shape in ["$abs", "$cond", "$switch", "$let", "$map", "$dateAdd"] {
        let mut value = Bson::from("$a");
        for _ in 0..60 {
            value = match shape {
                "$cond" => operand(shape, Bson::array(vec![Bson::Bool(true), value, Bson::Null])),
                "$switch" => {
                    let branch: Document = [("case", Bson::Bool(true)), ("then", value)]
                        .into_iter()
                        .map(|(name, value)| (name.into(), value))
                        .collect();
                    let branches = Bson::array(vec![branch.into()]);
                    operand(shape, [("branches".into(), branches)].into_iter().collect::<Document>().into())
                }
                "$let" | "$map" => {
                    let mut members = Document::new();
                    match shape {
                        "$let" => members.push("vars", Document::new()),
                        _ => members.push("input", Bson::array(vec![Bson::Int32(1)])),
                    }
                    members.push("in", value);
                    operand(shape, members.into())
                }
                "$dateAdd" => {
                    let mut members = Document::new();
                    members.push("startDate", value);
                    members.push("unit", "day");
                    members.push("amount", 1);
                    operand(shape, members.into())
                }
                _ => operand(shape, value),
            };
        }
        let context = Context::for_tests();
        let parsed = Expression::parse(&value, &context).expect(shape);
        let document = Document::new();
        let _ = parsed.evaluate(ValueRef::OwnedDocument(&document), &context);
    }
    // Dropping it takes as many frames, which is not the expression's doing.
    std::mem::forget(value);
}
