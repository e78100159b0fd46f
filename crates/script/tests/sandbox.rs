//! What scripts can do and what they cannot, against a collection in memory.

use std::time::{Duration, Instant};

use orrery_budget::Budget;
use orrery_model::{Number, Value};
use orrery_script::{
    Call, Collection, Done, FailureKind, Function, Functions, Limits, Operation, OperationError, Options,
    Program, Report, Until, run,
};

/// Documents by place; ids are not looked at. Enough to see what a script asks for.
#[derive(Default)]
struct Documents {
    texts: Vec<String>,
    asked: Vec<String>,
}

impl Collection for Documents {
    fn perform(&mut self, operation: Operation<'_>, options: &Options) -> Result<Done, OperationError> {
        self.asked.push(format!("{operation:?}"));
        match operation {
            Operation::Create { document, .. } | Operation::Upsert { document, .. } => {
                self.texts.push(document.to_owned());
                let resource = (!options.unseen).then(|| document.to_owned());
                Ok(Done { resource, ..Done::default() })
            }
            Operation::List { .. } | Operation::Query { .. } => {
                let from: usize = options.continuation.as_deref().unwrap_or("0").parse().unwrap_or(0);
                let to = (from + options.page_size.unwrap_or(1000)).min(self.texts.len());
                let page = format!("[{}]", self.texts[from..to].join(","));
                let continuation = (to < self.texts.len()).then(|| to.to_string());
                Ok(Done { resource: Some(page), continuation, not_modified: false })
            }
            _ => Err(OperationError {
                status: 404,
                message: "{\"Errors\":[\"Resource Not Found\"]}".to_owned(),
            }),
        }
    }
}

/// Of what has no text of its own.
const NO_TEXT: &str = "an exception without a text";

fn run_with(source: &str, arguments: &str, limits: Limits, documents: &mut Documents) -> Report {
    run_under(source, arguments, limits, &Budget::unlimited(), documents)
}

fn run_under(
    source: &str,
    arguments: &str,
    limits: Limits,
    budget: &Budget,
    documents: &mut Documents,
) -> Report {
    let program = Program::compile("test", source).unwrap_or_else(|failure| panic!("{failure:?}"));
    let call = Call {
        program: &program,
        arguments,
        operation: "Execute",
        self_link: "dbs/d/colls/c/",
        alt_link: "dbs/name/colls/name",
        request_body: None,
        response_body: None,
        quota: "q",
        usage: "u",
        logging: true,
    };
    run(&call, &limits, &Until::moment(Instant::now() + limits.time), budget, documents)
}

fn answer(source: &str, arguments: &str) -> String {
    let report = run_with(source, arguments, Limits::default(), &mut Documents::default());
    match report.outcome {
        Ok(finished) => finished.response_body.unwrap_or_default(),
        Err(failure) => panic!("{source}: {failure:?}"),
    }
}

fn failure(source: &str) -> orrery_script::Failure {
    let limits = Limits { time: Duration::from_millis(300), ..Limits::default() };
    let started = Instant::now();
    let report = run_with(source, "[]", limits, &mut Documents::default());
    assert!(started.elapsed() < Duration::from_secs(3), "{source} took {:?}", started.elapsed());
    report.outcome.expect_err(source)
}

fn check(source: &str, expected: &str) {
    assert_eq!(answer(source, "[]"), expected, "{source}");
}

#[test]
fn bodies_are_json_and_can_be_read_back() {
    check(
        "function () { getContext().getResponse().setBody({ a: [1, 'x', null] }); }",
        r#"{"a":[1,"x",null]}"#,
    );
    check(
        "function () { for (var i = 0; i < 10; i++) getContext().getResponse().appendValue('Body', i); }",
        r#""0123456789""#,
    );
    check(
        "function () { var r = getContext().getResponse(); r.setBody(4); r.setBody(r.getBody() + 1); }",
        "5",
    );
    check(
        "function () { __.response.setBody(__.getSelfLink() + __.getAltLink()); }",
        r#""dbs/d/colls/c/dbs/name/colls/name""#,
    );
    check("function () {}", "");
}

#[test]
fn parameters_arrive_as_values() {
    assert_eq!(answer("function (a, b) { __.response.setBody(a.n + b); }", r#"[{"n":1},2]"#), "3");
    assert_eq!(answer("function (a) { __.response.setBody(typeof a); }", "[]"), r#""undefined""#);
}

#[test]
fn callbacks_run_in_turn_and_never_inside_the_call() {
    let source = "function () {
        var order = [];
        __.createDocument(__.getSelfLink(), { id: 'a' }, function (err, doc) { order.push('created ' + doc.id); });
        order.push('asked');
        __.readDocuments(__.getSelfLink(), {}, function (err, docs) {
            order.push('read ' + docs.length);
            __.response.setBody(order);
        });
    }";
    check(source, r#"["asked","created a","read 1"]"#);
}

#[test]
fn a_chain_of_ten_thousand_callbacks_does_not_nest() {
    let source = "function () {
        var n = 0;
        (function next() {
            if (n === 9000) return __.response.setBody(n);
            __.createDocument(__.getSelfLink(), { id: String(n++) }, next);
        })();
    }";
    let report = run_with(
        source,
        "[]",
        Limits { time: Duration::from_secs(60), ..Limits::default() },
        &mut Documents::default(),
    );
    assert_eq!(report.outcome.unwrap().response_body.as_deref(), Some("9000"));
}

#[test]
fn sloppy_and_modern_code_both_run() {
    check("function () { for (i = 0; i < 3; i++); __.response.setBody(i); }", "3");
    check(
        "async function () {
            const create = (doc) => new Promise((ok, no) =>
                __.createDocument(__.getSelfLink(), doc, (err, made) => err ? no(err) : ok(made)));
            const made = await Promise.all([1, 2, 3].map((n) => create({ id: `${n}`, n })));
            const total = made.reduce((sum, { n }) => sum + (n ?? 0), 0);
            __.response.setBody({ total, big: String(2n ** 64n), flat: [[1], [2]].flat(), at: [1, 2].at(-1) });
        }",
        r#"{"total":6,"big":"18446744073709551616","flat":[1,2],"at":2}"#,
    );
}

#[test]
fn an_operation_that_fails_tells_its_callback_or_ends_the_script() {
    check(
        "function () { __.readDocument('x', function (err) { __.response.setBody([err.number, err.message, err.body === err.message, err instanceof Error, Object.keys(err), String(err)]); }); }",
        r#"[404,"{\"Errors\":[\"Resource Not Found\"]}",true,true,["number","body"],"Error: {\"Errors\":[\"Resource Not Found\"]}"]"#,
    );
    let failure = failure("function () { __.readDocument('x'); }");
    assert_eq!((failure.kind, failure.number), (FailureKind::Threw, Some(404)));
    assert!(failure.exception.contains("Resource Not Found"));
}

#[test]
fn thrown_errors_say_line_column_and_code() {
    let thrown = failure(
        "function outer() {\n  inner();\n  function inner() {\n    throw new Error('no luck');\n  }\n}",
    );
    assert_eq!(thrown.exception, "Error: no luck");
    assert!(thrown.stack.starts_with("   at inner (test.js:4:"), "{}", thrown.stack);
    assert!(thrown.stack.contains("\n   at outer (test.js:2:"), "{}", thrown.stack);
    let passed_on = failure(
        "function outer() {\n  __.readDocument('x', function found(err) {\n    if (err) throw err;\n  });\n}",
    );
    assert!(passed_on.stack.starts_with("   at found (test.js:3:"), "{passed_on:?}");
    let coded = failure("function () { throw new Error(1234, 'coded'); }");
    assert_eq!((coded.exception.as_str(), coded.number), ("Error: coded", Some(1234)));
    assert_eq!(failure("function () { throw 'just text'; }").exception, "just text");
    assert_eq!(failure("function () { throw { code: 7 }; }").exception, r#"{"code":7}"#);
    assert_eq!(
        failure("function () { class Mine extends Error {}; throw new Mine('m'); }").exception,
        "Error: m"
    );
    assert_eq!(
        failure("function () { undefinedName(); }").exception,
        "ReferenceError: undefinedName is not defined"
    );
}

#[test]
fn whatever_is_thrown_is_told_as_it_is() {
    for (thrown, told) in [
        ("null", "null"),
        ("undefined", "undefined"),
        ("1", "1"),
        ("''", ""),
        ("12345678901234567890n", "12345678901234567890"),
        ("Symbol('s')", "Symbol(s)"),
        ("Symbol()", "Symbol()"),
        ("{ toString() { throw 1; } }", NO_TEXT),
        ("{ toString() { return {}; }, valueOf() { return {}; } }", NO_TEXT),
        ("{ get toString() { throw 1; }, get stack() { throw 2; }, get number() { throw 3; } }", NO_TEXT),
        ("{ toString: null, valueOf: null }", NO_TEXT),
        ("Object.create(null)", NO_TEXT),
        ("(function () { var r = Proxy.revocable({}, {}); r.revoke(); return r.proxy; })()", NO_TEXT),
        ("new Proxy({}, { get() { throw null; } })", NO_TEXT),
        ("{ stack: Symbol('x'), number: Symbol('y'), message: 'm' }", r#"{"message":"m"}"#),
        ("[1, [2]]", "1,2"),
    ] {
        // Thrown at once, in a callback, and where nobody could catch it.
        for source in [
            format!("function () {{ throw {thrown}; }}"),
            format!("function () {{ __.readDocument('x', function () {{ throw {thrown}; }}); }}"),
            format!("async function () {{ await 1; throw {thrown}; }}"),
            format!("function () {{ getContext().abort({thrown}); }}"),
        ] {
            let expected = match (thrown, source.contains("abort")) {
                ("undefined", true) => "Error: The script was aborted.",
                _ => told,
            };
            let failure = failure(&source);
            assert_eq!(
                (failure.kind, failure.exception.as_str()),
                (FailureKind::Threw, expected),
                "{source}"
            );
        }
    }
    let full = failure("function () { var a = []; for (;;) a.push(new Array(1000).fill(1)); }");
    assert!(matches!(full.kind, FailureKind::OutOfMemory | FailureKind::TimedOut), "{full:?}");
}

#[test]
fn what_a_script_keeps_is_charged_to_its_request() {
    let pool = orrery_budget::MemoryPool::new(32 * 1024 * 1024);
    let budget = Budget::new(pool.clone());
    let limits = Limits { time: Duration::from_secs(5), ..Limits::default() };
    let mut documents = Documents::default();
    let mut ended = |source: &str| {
        let report = run_under(source, "[]", limits, &budget, &mut documents);
        let in_use = pool.taken_bytes();
        assert_eq!((budget.used_bytes(), in_use < 1024 * 1024), (0, true), "{source}");
        report.outcome.map(|finished| finished.response_body)
    };
    let greedy =
        ended("function () { var a = []; for (;;) a.push('x'.repeat(1e5) + a.length); }").unwrap_err();
    assert!(
        matches!(greedy.kind, FailureKind::Exceeded(orrery_budget::Exceeded::RequestMemory { .. })),
        "{greedy:?}"
    );
    assert!(greedy.exception.contains("16 MB"), "{greedy:?}");
    assert_eq!(ended("function () {}").unwrap(), None, "the next one finds everything free");
}

#[test]
fn nothing_that_fails_later_is_forgotten() {
    assert_eq!(failure("async function () { throw new Error('late'); }").exception, "Error: late");
    assert_eq!(failure("() => { (async () => { throw new Error('lost'); })(); }").exception, "Error: lost");
    assert_eq!(
        failure("function () { (async () => { throw 'x'; })().catch((e) => getContext().abort(e)); }")
            .exception,
        "x"
    );
    assert_eq!(
        failure("function () { try { getContext().abort(new Error('stop')); } catch (e) {} }").exception,
        "Error: stop"
    );
    check(
        "function () { (async () => { throw 1; })().catch(() => __.response.setBody('seen')); }",
        r#""seen""#,
    );
}

#[test]
fn the_query_api_filters_maps_and_sorts() {
    let mut documents = Documents::default();
    for n in [3, 1, 2] {
        documents.texts.push(format!(r#"{{"id":"{n}","n":{n},"tags":["a{n}","b{n}"]}}"#));
    }
    let mut check = |body: &str, expected: &str| {
        let source = format!("function () {{ {body} }}");
        let report = run_with(&source, "[]", Limits::default(), &mut documents);
        assert_eq!(report.outcome.unwrap().response_body.as_deref(), Some(expected), "{body}");
    };
    check(
        "__.filter(function (d) { return d.n > 1; }, function (err, feed) { __.response.setBody(feed.length); });",
        "2",
    );
    check("__.map(function (d) { return d.n * 10; });", "[30,10,20]");
    check("__.pluck('n');", "[3,1,2]");
    check("__.chain().pluck('tags').flatten().value();", r#"["a3","b3","a1","b1","a2","b2"]"#);
    check("__.chain().sortBy(function (d) { return d.n; }).pluck('n').value();", "[1,2,3]");
    check(
        "__.chain().sortByDescending(function (d) { return d.n; }).map(function (d) { return d.n; }).value();",
        "[3,2,1]",
    );
    check(
        "__.unwind(function (d) { return d.tags; }, function (d, t) { return d.n + t; }, {});",
        r#"["3a3","3b3","1a1","1b1","2a2","2b2"]"#,
    );
    check(
        "var r = __.filter(function () { return true; }, { pageSize: 2 }, function (e, feed, o) { __.response.setBody([feed.length, o.continuation, r.isAccepted]); });",
        r#"[2,"2",true]"#,
    );
    check(
        "__.chain().sortBy(function (d) { return d.n; }).value({ pageSize: 2 }, function (e, f, o) { __.chain().sortBy(function (d) { return d.n; }).value({ pageSize: 2, continuation: o.continuation }, function (e, g, p) { __.response.setBody([f.length, g.length, g[0].n, p.continuation === undefined]); }); });",
        "[2,1,3,true]",
    );
}

#[test]
fn the_console_is_kept_within_its_limit() {
    let report = run_with(
        "function () { console.log('The value of %s is %s.', 'x', 1); console.log({ a: 1 }, [2]); }",
        "[]",
        Limits::default(),
        &mut Documents::default(),
    );
    assert_eq!(report.log, "The value of x is 1.\n{\"a\":1} [2]");
    let report = run_with(
        "function () { for (;;) console.log('x'.repeat(100)); }",
        "[]",
        Limits { time: Duration::from_millis(200), log_bytes: 1000, ..Limits::default() },
        &mut Documents::default(),
    );
    assert!(report.log.len() < 1100 && report.log.ends_with("(the log is cut off here)"), "{}", report.log);
}

#[test]
fn late_operations_are_not_accepted() {
    let limits = Limits { time: Duration::from_millis(400), ..Limits::default() };
    let source = "function () { var n = 0; while (__.createDocument(__.getSelfLink(), { id: String(n) })) n++; __.response.setBody(n); }";
    let report = run_with(source, "[]", Limits { queue: 50, ..limits }, &mut Documents::default());
    assert_eq!(report.outcome.unwrap().response_body.as_deref(), Some("50"));
    let source = "function () { var n = 0; (function next() { if (!__.createDocument(__.getSelfLink(), { id: String(n++) }, next)) __.response.setBody('stopped'); })(); }";
    // Short enough that the limit of operations is not met first, on a fast machine either.
    let limits = Limits { time: Duration::from_millis(100), ..limits };
    let report = run_with(source, "[]", limits, &mut Documents::default());
    assert_eq!(report.outcome.unwrap().response_body.as_deref(), Some("\"stopped\""));
}

#[test]
fn runaway_scripts_are_stopped() {
    // Those that harm without the API are in `tests/scripts/bombs.txt`.
    for source in [
        "async function () { for (;;) await 1; }",
        "function () { (function next() { __.readDocuments(__.getSelfLink(), {}, next); })(); for (;;); }",
        "function () { (function again() { Promise.resolve().then(again); })(); }",
        "function () { __.createDocument(__.getSelfLink(), { toJSON() { for (;;); } }); }",
        "function () { var q = []; for (var i = 0; i < 60; i++) q = [q, q]; __.createDocument(__.getSelfLink(), { q }); }",
        "function () { var q = []; for (var i = 0; i < 60; i++) q = [q, q]; console.log(q); }",
        "function () { var q = []; for (var i = 0; i < 60; i++) q = [q, q]; __.response.setBody(q); }",
        "function () { __.readDocument('x', function () { for (;;); }); }",
    ] {
        assert_eq!(failure(source).kind, FailureKind::TimedOut, "{source}");
    }
}

#[test]
fn greedy_scripts_are_refused_memory_and_stack() {
    for source in [
        "function () { new ArrayBuffer(2 ** 31); }",
        "function () { return (function f() { return f() + 1; })(); }",
        "function () { var a = []; a[0] = a; for (var i = 0, o = {}; ; i++) o = { o }; }",
        "function () { var o = {}; for (var i = 0; i < 100000; i++) o = { o }; __.response.setBody(o); }",
        "function () { var q = []; for (var i = 0; i < 60; i++) q = [q, q]; throw { q }; }",
    ] {
        // On a slow machine the clock may be faster than the allocator.
        failure(source);
    }
}

#[test]
fn a_body_larger_than_an_answer_may_be_fails() {
    for source in [
        "function () { __.response.setBody('x'.repeat(5e6)); }",
        "function () { __.response.setBody('ü'.repeat(3e6)); }",
    ] {
        let report = run_with(source, "[]", Limits::default(), &mut Documents::default());
        assert_eq!(report.outcome.unwrap_err().kind, FailureKind::ResultTooLarge, "{source}");
    }
}

#[test]
fn scripts_leave_nothing_behind_for_others() {
    let pollute = "function () { Object.prototype.evil = 1; Array.prototype.push = null; globalThis.x = 1; JSON.parse = null; Promise = null; }";
    let report = run_with(pollute, "[]", Limits::default(), &mut Documents::default());
    assert!(report.outcome.is_ok(), "{:?}", report.outcome);
    check(
        "function () { __.response.setBody([typeof x, ({}).evil === undefined, JSON.stringify(JSON.parse('[1]'))]); }",
        r#"["undefined",true,"[1]"]"#,
    );
}

#[test]
fn there_is_no_way_out() {
    check(
        "function () { __.response.setBody(['require', 'process', 'setTimeout', 'fetch', 'std', 'os', 'print', 'load', 'Worker'].filter(function (n) { return typeof globalThis[n] !== 'undefined'; })); }",
        "[]",
    );
    assert!(failure("function () { return import('std'); }").kind == FailureKind::Threw);
    check(
        "async function () { try { await import('std'); } catch (e) { __.response.setBody('refused'); } }",
        r#""refused""#,
    );
}

#[test]
fn attachments_are_refused_by_name() {
    let failure = failure("function () { __.createAttachment(); }");
    assert_eq!(
        (failure.exception.as_str(), failure.number),
        ("Error: Attachments are not supported.", Some(400))
    );
}

fn functions(list: &[(&str, &str)], time: Duration) -> Functions {
    let list: Vec<Function> = list
        .iter()
        .map(|(name, source)| Function {
            name: (*name).to_owned(),
            program: Program::compile(name, source).unwrap(),
        })
        .collect();
    Functions::new(list.into(), 16 * 1024 * 1024, time, Budget::unlimited())
}

#[test]
fn functions_take_and_give_values() {
    let list = [
        (
            "tax",
            "function (income) { if (income === undefined) throw 'no input'; return income < 1000 ? income * 0.1 : income * 0.2; }",
        ),
        ("same", "function (x) { return x; }"),
        ("matches", "function (text, pattern) { return new RegExp(pattern).test(text); }"),
        ("date", "function () { return new Date(0); }"),
    ];
    let functions = functions(&list, Duration::from_secs(5));
    assert!(functions.exists("tax") && !functions.exists("Tax"));
    let int = |n| Value::Number(Number::Int(n));
    assert_eq!(functions.call("tax", &[int(5000)]).unwrap(), int(1000));
    assert!(functions.call("tax", &[Value::Undefined]).unwrap_err().exception.contains("no input"));
    let nested = Value::Object(vec![
        ("a".to_owned(), Value::Array(vec![int(1), Value::Null, Value::Bool(true)])),
        ("s".to_owned(), Value::String("ü💡".to_owned())),
        ("d".to_owned(), Value::Number(Number::Double(0.5))),
    ]);
    assert_eq!(functions.call("same", std::slice::from_ref(&nested)).unwrap(), nested);
    assert_eq!(functions.call("same", &[]).unwrap(), Value::Undefined);
    let text = |s: &str| Value::String(s.to_owned());
    assert_eq!(functions.call("matches", &[text("Orrery"), text("^O.*y$")]).unwrap(), Value::Bool(true));
    assert_eq!(functions.call("date", &[]).unwrap(), text("1970-01-01T00:00:00.000Z"));
    assert!(functions.call("missing", &[]).is_err());
}

#[test]
fn functions_share_one_time_limit() {
    let functions =
        functions(&[("spin", "function () { for (;;); }"), ("one", "() => 1")], Duration::from_millis(100));
    assert!(functions.call("one", &[]).is_ok());
    assert_eq!(functions.call("spin", &[]).unwrap_err().kind, FailureKind::TimedOut);
    assert_eq!(functions.call("spin", &[]).unwrap_err().kind, FailureKind::TimedOut);
}

#[test]
fn callbacks_get_what_they_can_see() {
    // By name, by default value, by the list of all arguments, through a bound function, or not at all.
    for callback in [
        "function (e, d) { seen(d); }",
        "(e, d) => seen(d)",
        "function (e, d = null) { seen(d); }",
        "function (...all) { seen(all[1]); }",
        "(...all) => seen(all[1])",
        "function () { seen(arguments[1]); }",
        "function (e) { seen(arguments[1]); }",
        "function (e) { seen(eval('argu' + 'ments')[1]); }",
        "(function () { seen(arguments[1]); }).bind(null)",
        "async function (e, d) { seen(d); }",
        "new Proxy(function () { seen(arguments[1]); }, {})",
        "({ called(e) { seen(arguments[1]); } }).called",
    ] {
        let source = format!(
            "function () {{ var response = getContext().getResponse();
               function seen(d) {{ response.setBody(d === undefined ? 'nothing' : d); }}
               __.createDocument(__.getSelfLink(), {{ id: 'a' }}, {callback}); }}"
        );
        assert_eq!(answer(&source, "[]"), r#"{"id":"a"}"#, "{callback}");
    }
    let unseen = "function () { __.createDocument(__.getSelfLink(), { id: 'a' }, function (e) {
        getContext().getResponse().setBody(e === undefined); }); }";
    assert_eq!(answer(unseen, "[]"), "true");
}

#[test]
fn however_a_script_ends_the_next_one_finds_everything_as_new() {
    // Left behind in every way there is: memory full, in the middle of jobs, of a callback, of an exception, of the
    // API.
    let ends = [
        "function () { globalThis.a = []; for (;;) a.push(new Array(1000).fill('x'.repeat(50))); }",
        "function () { globalThis.s = 'x'; for (;;) s += s; }",
        "async function () { for (;;) await new Promise((ok) => ok({ a: [1] })); }",
        "function () { for (var i = 0; i < 500; i++) __.createDocument(__.getSelfLink(), { id: 'x' + i }); throw new Error('x'); }",
        "function () { __.createDocument(__.getSelfLink(), { id: 'a' }, function (e, d) { globalThis.kept = d; for (;;); }); }",
        "function () { (function f() { try { f(); } finally { globalThis.depth = f; } })(); }",
        "function () { Object.freeze(Array.prototype); getContext().getCollection().createDocument = null; getContext = null; }",
        "function () { Promise.reject(new Error('nobody looks')); }",
        "function () { var r = new FinalizationRegistry(function () {}); for (var i = 0; i < 100; i++) r.register({}, i); new WeakRef({}); }",
        "function () { new Proxy(function () {}, { apply() { throw 1; } })(); }",
        "function () { var m = new Map(); m.set(m, new Set([m])); globalThis.m = m; Symbol.for('left'); eval('var q = 1'); }",
    ];
    let probe = "function () {
        var seen = ['a', 's', 'kept', 'depth', 'm', 'q'].filter(function (n) { return typeof globalThis[n] !== 'undefined'; });
        var frozen = Object.isFrozen(Array.prototype);
        __.createDocument(__.getSelfLink(), { id: 'p' }, function (e, d) { __.response.setBody([seen, frozen, d.id]); });
    }";
    let limits =
        Limits { time: Duration::from_millis(100), memory_bytes: 8 * 1024 * 1024, ..Limits::default() };
    let mut dice = Vec::new();
    for round in 0..4 {
        for end in ends {
            let report = run_with(end, "[]", limits, &mut Documents::default());
            drop(report);
            let relaxed = Limits { time: Duration::from_secs(5), ..limits };
            let report = run_with(probe, "[]", relaxed, &mut Documents::default());
            let body = report.outcome.unwrap_or_else(|failure| panic!("round {round}, {end}: {failure:?}"));
            assert_eq!(
                body.response_body.as_deref(),
                Some(r#"[[],false,"p"]"#),
                "round {round}, after {end}"
            );
            assert_eq!(report.log, "");
        }
        let roll = run_with(
            "function () { __.response.setBody([Math.random(), Math.random.name, Math.random.length]); }",
            "[]",
            limits,
            &mut Documents::default(),
        );
        dice.push(roll.outcome.unwrap().response_body.unwrap());
    }
    assert!(dice.iter().all(|roll| roll.ends_with(r#","random",0]"#)), "{dice:?}");
    dice.sort();
    dice.dedup();
    assert_eq!(dice.len(), 4, "every script throws its own dice: {dice:?}");
}

#[test]
fn a_script_that_nobody_waits_for_is_stopped() {
    let program = Program::compile("test", "function () { for (;;); }").unwrap();
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
        logging: true,
    };
    let until = Until::moment(Instant::now() + Duration::from_secs(60));
    let gone = until.gone.clone();
    let leaves = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        gone.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let started = Instant::now();
    let report = run(&call, &Limits::default(), &until, &Budget::unlimited(), &mut Documents::default());
    assert_eq!(report.outcome.unwrap_err().kind, FailureKind::TimedOut);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    leaves.join().unwrap();
}

#[test]
fn documents_are_stored_as_json_writes_them() {
    // With a function the engine's own `JSON.stringify` does the work.
    for value in [
        "{}",
        "{ id: 'a', n: 1, f: 1.5, big: 2 ** 53, neg: -0, tiny: 5e-324, e: 1e-7, t: true, x: false, nul: null }",
        "{ beyond: 2 ** 60, huge: 1e300, nan: NaN, inf: -Infinity, third: 1 / 3, cents: 0.1 + 0.2, low: -2147483649 }",
        "{ u: undefined, f: function () {}, s: Symbol('s'), a: [undefined, function () {}, Symbol('s'), , 1] }",
        r#"{ q: 'a"b\\c', control: '\u0000\u001f\n\t\b', ü: 'ü💡', nul: 'a\u0000b', '': 'empty', line: '\u2028' }"#,
        "{ half: '\\ud800x', '\\udc00': 1 }",
        "{ b: 1, a: 2, 10: 'x', 9: 'y', '-1': 'z', nested: { c: { d: [[], {}, [[1]]] } } }",
        "{ date: new Date(0), own: { toJSON() { return { its: 1 }; } }, toJSON: 1, boxed: [new Number(1), new String('s'), new Boolean(false)] }",
        "{ map: new Map([[1, 2]]), set: new Set([1]), re: /x/, err: new Error('e'), typed: new Uint8Array(2), args: (function () { return arguments; })(1) }",
        "{ get computed() { return 7; }, proxy: new Proxy({ p: 1 }, {}), list: new Proxy([1, 2], {}), bare: Object.assign(Object.create(null), { k: 1 }) }",
        "Object.create({ inherited: 1 }, { own: { value: 1, enumerable: true }, hidden: { value: 2 } })",
        "new (class Thing { constructor() { this.a = 1; } get b() { return 2; } })()",
        "{ rope: 'x'.repeat(40) + 'ü'.repeat(40) + String(Math.PI), slice: 'abcdefghijklmnopqrstuvwxyz'.repeat(9).slice(3, 200) }",
        "{ deep: JSON.parse('['.repeat(100) + ']'.repeat(100)) }",
    ] {
        let source = format!(
            "function () {{ var value = {value}; __.response.setBody(JSON.stringify(value, function (key, member) {{ return member; }}));
               __.createDocument(__.getSelfLink(), value); }}"
        );
        let mut documents = Documents::default();
        let report = run_with(&source, "[]", Limits::default(), &mut documents);
        let told = report.outcome.unwrap_or_else(|failure| panic!("{value}: {failure:?}")).response_body;
        let told = orrery_model::parse_json_value(told.unwrap().as_bytes()).unwrap();
        let Value::String(expected) = told else { panic!("{told:?}") };
        assert_eq!(documents.texts[0], expected, "{value}");
    }
    for (value, exception) in [
        ("{ a: 1n }", "TypeError"),
        ("(function () { var o = {}; o.o = o; return o; })()", "TypeError"),
        ("{ get a() { throw new RangeError('no'); } }", "RangeError: no"),
        ("[1]", "Error: A document must be an object."),
        ("{ toJSON() { return undefined; } }", "Error: A document must be an object."),
    ] {
        let source = format!("function () {{ __.createDocument(__.getSelfLink(), {value}); }}");
        assert!(failure(&source).exception.starts_with(exception), "{value}: {:?}", failure(&source));
    }
}
