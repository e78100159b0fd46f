//! Scripts that mean harm, as data: `tests/scripts/bombs.txt`. However each ends, it costs its own time and little
//! more.

use std::time::{Duration, Instant};

use orrery_budget::{Budget, MemoryPool};
use orrery_script::{
    Call, Collection, Done, FailureKind, Function, Functions, Limits, Operation, OperationError, Options,
    Program, Until, run,
};

/// The time of each script. A busy machine needs more of it to get to the harm: `BOMB_TIME_MS` sets another.
fn time() -> Duration {
    let asked = std::env::var("BOMB_TIME_MS").ok().and_then(|text| text.parse().ok());
    Duration::from_millis(asked.unwrap_or(200))
}
/// What it may take of the processor beyond that, in a build for tests.
const AFTER_MAX: Duration = Duration::from_millis(2_500);
const MEMORY_BYTES_MAX: usize = 140 * 1024 * 1024;

struct Nothing;

impl Collection for Nothing {
    fn perform(&mut self, _: Operation<'_>, _: &Options) -> Result<Done, OperationError> {
        Ok(Done::default())
    }
}

/// What this thread has taken of the processor.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(stat.split(' ').next().and_then(|nanos| nanos.parse().ok()).unwrap_or(0))
}

/// What is wrong with how a script has ended.
fn check(line: &str, expected: &str, kind: Option<FailureKind>, took: Duration) -> Option<String> {
    if took > time() + AFTER_MAX {
        return Some(format!("{took:?} of the processor: {line}"));
    }
    let fits = match (expected, kind) {
        ("ends", _) => true,
        ("late", kind) => kind == Some(FailureKind::TimedOut),
        ("memory", kind) => matches!(kind, Some(FailureKind::OutOfMemory | FailureKind::TimedOut)),
        // On a slow machine the time is over first.
        ("throws", kind) => matches!(kind, Some(FailureKind::Threw | FailureKind::TimedOut)),
        (other, _) => panic!("{other} is no end"),
    };
    (!fits).then(|| format!("{kind:?}: {line}"))
}

fn each(part: usize, parts: usize) {
    let bombs =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts/bombs.txt"));
    let bombs = bombs.expect("the bombs are there");
    let lines = bombs.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let pool = MemoryPool::new(4 * MEMORY_BYTES_MAX);
    let mut wrong = Vec::new();
    for line in lines.skip(part).step_by(parts) {
        let (expected, bomb) = line.split_once('\t').expect("an end and a script");
        let program = Program::compile("bomb", &format!("function () {{ {bomb}\n }}"))
            .unwrap_or_else(|failure| panic!("{failure:?}: {line}"));
        let call = Call {
            program: &program,
            arguments: "[]",
            operation: "Execute",
            self_link: "dbs/d/colls/c/",
            alt_link: "dbs/name/colls/name",
            request_body: None,
            response_body: None,
            quota: "q",
            usage: "u",
            logging: false,
        };
        let limits = Limits { time: time(), ..Limits::default() };
        let began = cpu();
        let budget = Budget::new(pool.clone());
        let report = run(&call, &limits, &Until::moment(Instant::now() + time()), &budget, &mut Nothing);
        wrong.extend(check(line, expected, report.outcome.err().map(|failure| failure.kind), cpu() - began));
        // Functions have no promises to be told of.
        if line.contains("Promise") {
            continue;
        }
        let function = Function { name: "f".to_owned(), program };
        let functions = Functions::new([function].into(), 64 * 1024 * 1024, time(), budget);
        let began = cpu();
        let result = functions.call("f", &[]);
        wrong.extend(check(line, expected, result.err().map(|failure| failure.kind), cpu() - began));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(pool.peak_bytes() < 2 * MEMORY_BYTES_MAX, "{}", pool.peak_bytes());
}

#[test]
fn no_bomb_outlives_its_time() {
    each(0, 2);
}

#[test]
fn nor_does_any_of_the_others() {
    each(1, 2);
}

#[test]
fn what_is_guarded_still_does_what_it_should() {
    let cases =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/scripts/guarded.txt"));
    let cases = cases.expect("the cases are there");
    let mut wrong = Vec::new();
    for line in cases.lines().filter(|line| !line.starts_with('#')) {
        let (expression, expected) = line.split_once('\t').expect("an expression and its value");
        let source = format!("function () {{ return JSON.stringify({expression}); }}");
        let program =
            Program::compile("case", &source).unwrap_or_else(|failure| panic!("{failure:?}: {line}"));
        let function = Function { name: "f".to_owned(), program };
        let time = Duration::from_secs(20);
        let functions = Functions::new([function].into(), 64 * 1024 * 1024, time, Budget::unlimited());
        match functions.call("f", &[]) {
            Ok(orrery_model::Value::String(found)) if found == expected => {}
            found => wrong.push(format!("{expression}: {found:?}, not {expected}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_source_keeps_the_parser_busy_for_long() {
    let names = |count: usize| (0..count).map(|n| format!("v{n}")).collect::<Vec<_>>();
    let declared = |count: usize| format!("var {};", names(count).join(","));
    let sources = [
        ("declarations", declared(130_000)),
        ("declarations and uses", format!("{}{}", declared(60_000), "v9;".repeat(200_000))),
        ("uses of the first", format!("{}{}", declared(30_000), "v0;".repeat(250_000))),
        ("closures", format!("{}{}", declared(20_000), "()=>v0;".repeat(100_000))),
        ("lets", names(100_000).iter().map(|name| format!("let {name};")).collect()),
        ("functions", names(50_000).iter().map(|name| format!("function {name}(){{}}")).collect()),
        ("blocks", "{".repeat(400_000)),
        ("labels", "a:".repeat(400_000)),
        ("distinct labels", names(100_000).iter().map(|name| format!("{name}:")).collect()),
        ("cases", format!("switch(1){{{}}}", "case 1:".repeat(100_000))),
        ("conditions", "1?".repeat(400_000)),
        ("templates", format!("`{}`", "${1}".repeat(200_000))),
        ("patterns", "/[a-b]/;".repeat(100_000)),
        (
            "one pattern",
            format!("/[{}]/v", (0..60_000).map(|n| format!("\\u{{{:x}}}", n * 2)).collect::<String>()),
        ),
        ("alternatives", format!("/{}/", "a|".repeat(400_000))),
        ("classes", "class{a(){}}".repeat(70_000)),
        ("arrows", "a=>".repeat(300_000)),
        ("numbers", format!("{}n", "9".repeat(1_000_000))),
        (
            "objects",
            format!("({{{}}})", names(100_000).iter().map(|name| format!("{name}:1,")).collect::<String>()),
        ),
        ("exports", "export {};".repeat(90_000)),
    ];
    let mut wrong = Vec::new();
    for (name, body) in sources {
        let began = cpu();
        drop(Program::compile("source", &format!("function () {{ {body} }}")));
        let took = cpu() - began;
        if took > Duration::from_secs(6) {
            wrong.push(format!("{name}: {took:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
