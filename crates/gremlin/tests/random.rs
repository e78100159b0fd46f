//! Random traversals over random graphs: with lowering, merging of traversers and shortened hops the results are those
//! without; and random texts, which must end in a result or an error, never in a panic.
//!
//! Seeds are fixed; a failure prints its seed and its script. `GREMLIN_RANDOM=n` tries n times as many.

use std::collections::HashMap;

use orrery_budget::{Budget, Limits, MemoryPool};
use orrery_gremlin::text::text_of;
use orrery_gremlin::{ErrorKind, Flow, MemoryGraph, Options, Result, Value, execute, parse};

/// A traversal that takes more is left out: it would only say that large is slow.
const STEPS_MAX: u64 = 20_000;

struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }
}

fn times(count: u64) -> u64 {
    let factor = std::env::var("GREMLIN_RANDOM").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    count * factor
}

fn run(graph: &mut MemoryGraph, script: &str, naive: bool) -> Result<Vec<String>> {
    let mut results = Vec::new();
    let limits = Limits { steps: STEPS_MAX, ..Limits::default() };
    let budget = Budget::with(MemoryPool::new(1 << 30), limits, None);
    let options = Options { naive, budget, ..Options::default() };
    let mut sink = |batch: Vec<(Value, u64)>| {
        for (value, bulk) in batch {
            results.extend(std::iter::repeat_n(text_of(&value), bulk as usize));
        }
        Ok(Flow::Continue)
    };
    execute(&parse(script, &HashMap::new())?, graph, &options, &mut sink)?;
    results.sort();
    Ok(results)
}

fn graph(chance: &mut Chance) -> MemoryGraph {
    let mut graph = MemoryGraph::new();
    let vertices = 2 + chance.below(6);
    for id in 0..vertices {
        let (label, age) = (chance.of(&["a", "b"]), chance.below(4));
        let script =
            format!("g.addV('{label}').property(id,{id}).property('n',{age}).property('name','v{id}')");
        run(&mut graph, &script, true).expect("a vertex can be added");
    }
    for id in 0..chance.below(12) {
        let (from, to, label) = (chance.below(vertices), chance.below(vertices), chance.of(&["x", "y"]));
        let weight = chance.below(3);
        let script = format!(
            "g.V({from}).addE('{label}').to(V({to})).property(id,{}).property('w',{weight})",
            100 + id
        );
        run(&mut graph, &script, true).expect("an edge can be added");
    }
    graph
}

/// A step that takes vertices and gives vertices.
fn step(chance: &mut Chance, depth: usize) -> String {
    let nested = |chance: &mut Chance| walk(chance, depth + 1);
    let choices = if depth < 2 { 24 } else { 14 };
    match chance.below(choices) {
        0 => "out()".to_owned(),
        1 => "in()".to_owned(),
        2 => "both()".to_owned(),
        3 => format!("out('{}')", chance.of(&["x", "y"])),
        4 => format!("outE().has('w',{}).inV()", chance.of(&["1", "gt(0)", "within(0,2)"])),
        5 => "bothE().otherV()".to_owned(),
        6 => "inE('x').outV()".to_owned(),
        7 => format!("has('n',{})", chance.of(&["1", "gt(1)", "lt(2)", "neq(0)", "within(1,3)"])),
        8 => format!("hasLabel('{}')", chance.of(&["a", "b"])),
        9 => "has('name')".to_owned(),
        10 => "dedup()".to_owned(),
        11 => format!("hasId({})", chance.below(6)),
        12 => "as('m').out()".to_owned(),
        13 => "barrier()".to_owned(),
        14 => format!("where({})", nested(chance)),
        15 => format!("not({})", nested(chance)),
        16 => format!("union({},{})", nested(chance), nested(chance)),
        17 => format!("coalesce({},{})", nested(chance), nested(chance)),
        18 => format!("optional({})", nested(chance)),
        19 => format!("local({})", nested(chance)),
        20 => format!("repeat({}).times({})", nested(chance), chance.below(3)),
        21 => format!("repeat(out()).emit({}).times(2)", nested(chance)),
        22 => format!("choose({},{},{})", nested(chance), nested(chance), nested(chance)),
        _ => format!("flatMap({})", nested(chance)),
    }
}

fn walk(chance: &mut Chance, depth: usize) -> String {
    let steps: Vec<String> = (0..1 + chance.below(3)).map(|_| step(chance, depth)).collect();
    format!("__.{}", steps.join("."))
}

fn script(chance: &mut Chance) -> String {
    let walk = walk(chance, 0);
    let end = chance.of(&[
        "",
        ".count()",
        ".values('name')",
        ".groupCount().by('n')",
        ".group().by(label).by(count())",
        ".out().count()",
        ".values('n').sum()",
        ".order().by('name').by('n').values('name')",
        ".path()",
        ".simplePath().count()",
        ".values('n').fold().order(local)",
        ".project('a','b').by('n').by(out().count())",
        ".order().by('n').by('name').limit(3).values('n')",
        ".id()",
        ".bothE().count()",
        ".aggregate('q').cap('q').count(local)",
        ".where(both().count().is(gt(1))).count()",
    ]);
    format!("g.V().{}{end}", &walk[3..])
}

#[test]
fn optimised_traversals_give_what_naive_ones_give() {
    for seed in 1..=times(800) {
        let mut chance = Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut graph = graph(&mut chance);
        let script = script(&mut chance);
        let naive = run(&mut graph, &script, true);
        if naive.as_ref().is_err_and(|error| error.kind == ErrorKind::Limit) {
            continue;
        }
        let naive = naive.map_err(|error| error.to_string());
        let optimised = run(&mut graph, &script, false).map_err(|error| error.to_string());
        assert_eq!(optimised, naive, "seed {seed}: {script}");
    }
}

#[test]
fn texts_of_any_kind_are_parsed_or_refused() {
    const PIECES: &[&str] = &[
        "g",
        ".",
        "V",
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "'",
        "\"",
        "\\",
        "..",
        "-",
        "1",
        "1.5f",
        "0x",
        "9e",
        "null",
        "__",
        "P",
        "T",
        "id",
        "has",
        "gt",
        "not",
        "new",
        "Strategy",
        "withStrategies",
        ";",
        "\n",
        "//",
        "/*",
        "é",
        "\u{0}",
        "repeat",
        "match",
        "as",
        "by",
        "datetime",
        "UUID",
        "->",
        "it",
        "=",
        "Infinity",
        "inject",
        "out",
        "math",
        "'_+'",
    ];
    for seed in 1..=times(20_000) {
        let mut chance = Chance(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        let text: String = if chance.below(2) == 0 {
            (0..chance.below(30)).map(|_| chance.of(PIECES)).collect()
        } else {
            // A script that was right, with something cut out or put in.
            let mut chars: Vec<char> = script(&mut chance).chars().collect();
            let at = chance.below(chars.len());
            let piece: Vec<char> = chance.of(PIECES).chars().collect();
            let end = (at + chance.below(3)).min(chars.len());
            chars.splice(at..end, piece);
            chars.into_iter().collect()
        };
        let _ = parse(&text, &HashMap::new());
    }
}

/// The longest and the deepest that are accepted, on the stack that a thread has by itself.
#[test]
fn long_and_deep_traversals_fit_the_stack_of_a_thread() {
    let mut graph = graph(&mut Chance(7));
    for length in [390, 5_000] {
        let script = format!("g.V(){}.count()", ".identity()".repeat(length));
        let ended = run(&mut graph, &script, false).map_err(|error| error.kind);
        assert_eq!(ended.is_ok(), length < 400, "{length} steps: {ended:?}");
    }
    let chain = ".identity()".repeat(380);
    let both = format!("g.V(){chain}.local(__.out(){chain}.local(out())).count()");
    assert!(run(&mut graph, &both, false).is_ok(), "long and nested");
    let more = format!("g.V(){chain}.local(__.out(){chain}.local(__.out(){chain})).count()");
    assert!(run(&mut graph, &more, false).is_err(), "longer and nested");
    for depth in [40, 5_000] {
        for step in ["local", "where", "repeat", "union", "map"] {
            let script = format!("g.V().{}out(){}", format!("{step}(").repeat(depth), ")".repeat(depth));
            let ended = run(&mut graph, &script.replace("repeat(out())", "repeat(out()).times(1)"), false);
            assert!(depth < 100 || ended.is_err(), "{depth} levels of {step}()");
        }
        let list = format!("g.inject({}1{})", "[".repeat(depth), "]".repeat(depth));
        assert_eq!(run(&mut graph, &list, false).is_ok(), depth < 100, "{depth} levels of lists");
    }
}
