//! Calls of the host with odd arguments, out of bytes.
//!
//! Any bytes become a script that calls the API in the sandbox over a small collection in memory, with links,
//! documents, options and callbacks out of a box of odd ones, and with the built-ins replaced that the API works
//! with. Whatever it does must end as an answer or a failure, never as a panic, and must leave the next script a
//! runtime as new. (The fuzz target `scripts` makes other scripts of bytes, without the second one.)
//!
//! ```text
//! bytes  7 3 250 …  ->  __.createDocument(selfLink, { id: Symbol('x') }, { etag: {} }, null); …
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::{Duration, Instant};

use orrery_budget::{Budget, MemoryPool};

use orrery_script::{
    Call, Collection, Done, Limits, Operation, OperationError, Options, Program, Report, Until, run,
};

/// Statements of one script; the rest of the bytes is left.
const STATEMENTS_MAX: usize = 40;
const TIME: Duration = Duration::from_millis(250);
const MEMORY_BYTES: usize = 16 * 1024 * 1024;

#[test]
fn whatever_is_called_however_the_next_script_is_none_the_worse() {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for seed in 0..120 {
        let length = 4 + random() as usize % 120;
        let bytes: Vec<u8> = (0..length).map(|_| (random() >> 32) as u8).collect();
        let ended = std::panic::catch_unwind(|| host_calls(&bytes));
        assert!(ended.is_ok(), "seed {seed}\n{}", script(&bytes));
    }
}

/// Odd values, to stand anywhere.
const VALUES: &[&str] = &[
    "undefined",
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "NaN",
    "Infinity",
    "2 ** 53",
    "10n",
    "''",
    "'x'",
    "'\\ud800'",
    "'\\u0000'",
    "'ü💡'.repeat(99)",
    "'x'.repeat(3e5)",
    "Symbol('s')",
    "[]",
    "[1, [2, [3]]]",
    "new Array(4294967295)",
    "{}",
    "{ id: 'a' }",
    "{ id: 'b', pk: 'p', n: 1, list: [1, null, 'x'], deep: { a: { b: {} } } }",
    "{ id: 7 }",
    "{ id: '' }",
    "{ id: 'x'.repeat(2000) }",
    "{ id: 'big', text: 'x'.repeat(2.5e6) }",
    "{ id: 'j', toJSON() { return this.id; } }",
    "{ id: 'k', toJSON() { throw new Error('no'); } }",
    "{ get id() { throw 1; } }",
    "{ get id() { getContext().getResponse().setBody('seen'); return 'g'; } }",
    "{ __proto__: null, id: 'n' }",
    "(function () { var o = { id: 'c' }; o.o = o; return o; })()",
    "new Proxy({ id: 'p' }, {})",
    "new Proxy({}, { get() { throw null; }, has() { return true; }, ownKeys() { return ['id', 'id']; } })",
    "(function () { var r = Proxy.revocable({}, {}); r.revoke(); return r.proxy; })()",
    "new Date(NaN)",
    "new Map([[1, 2]])",
    "new Uint8Array(9)",
    "function () { throw new Error(449, 'again'); }",
    "function (e, d, o) { __.response.setBody([e && e.number, d, o]); }",
    "function again(e, d, o) { if (o && o.continuation) __.readDocuments(__.getSelfLink(), o, again); }",
    "() => { __.deleteDocument(__.getAltLink() + '/docs/a'); }",
    "async function () { await null; throw 'late'; }",
    "__.getSelfLink",
    "getContext()",
    "globalThis",
];

const LINKS: &[&str] = &[
    "__.getSelfLink()",
    "__.getAltLink()",
    "__.getAltLink() + '/docs/a'",
    "__.getAltLink() + '/docs/b'",
    "__.getAltLink() + '/docs/' + 'x'.repeat(3000)",
    "'dbs/other/colls/c/'",
    "'//'",
    "'dbs/../colls/%2e'",
];

const OPTIONS: &[&str] = &[
    "{}",
    "{ pageSize: 1 }",
    "{ pageSize: -1, continuation: '' }",
    "{ pageSize: 1e300, continuation: 'w.1' }",
    "{ maxItemCount: 2, continuation: 's..0.0' }",
    "{ continuation: 's.18446744073709551615.1.1' }",
    "{ continuation: 'x'.repeat(1e5) }",
    "{ etag: '*' }",
    "{ etag: {} , ifNoneMatch: Symbol('e') }",
    "{ accessCondition: { type: 'IfMatch', condition: '\"0\"' } }",
    "{ accessCondition: { get type() { throw 1; } } }",
    "{ disableAutomaticIdGeneration: true, indexAction: 'exclude' }",
    "new Proxy({}, { get() { return {}; } })",
];

const QUERIES: &[&str] = &[
    "'SELECT * FROM c'",
    "'SELECT VALUE COUNT(1) FROM c'",
    "'nonsense'",
    "{ query: 'SELECT * FROM c WHERE c.id = @id', parameters: [{ name: '@id', value: 'a' }] }",
    "{ query: 'SELECT @x', parameters: { length: 1e9 } }",
    "{ query: 7 }",
];

/// Statements; each `%` is filled from the box that its letter names: link, value, options, query, function or value.
const STATEMENTS: &[&str] = &[
    "__.createDocument(%l, %v, %o, %v)",
    "__.createDocument(%l, %v, %v)",
    "__.upsertDocument(%l, %v, %o, %v)",
    "__.replaceDocument(%l, %v, %o, %v)",
    "__.deleteDocument(%l, %o, %v)",
    "__.readDocument(%l, %o, %v)",
    "__.readDocuments(%l, %o, %v)",
    "__.queryDocuments(%l, %q, %o, %v)",
    "__.createDocument(%v, %v, %v, %v)",
    "__.queryDocuments(%v, %v, %v, %v)",
    "__.filter(%v, %o, %v)",
    "__.map(%v, %v)",
    "__.chain().sortBy(%v).pluck(%v).flatten(%v).value(%o, %v)",
    "__.unwind(%v, %v, %o)",
    "__.createAttachment(%v, %v)",
    "getContext().getResponse().setBody(%v)",
    "getContext().getResponse().appendBody(%v)",
    "getContext().getResponse().setValue(%v, %v)",
    "getContext().getResponse().appendValue(%v, %v)",
    "getContext().getResponse().getBody()",
    "getContext().getRequest().setBody(%v)",
    "getContext().getRequest().getValue(%v)",
    "getContext().getRequest().getOperationType()",
    "getContext().abort(%v)",
    "console.log(%v, %v, %v)",
    "console.log('%s %j %d %', %v, %v)",
    "throw %v",
    "Promise.reject(%v)",
    "Promise.resolve(%v).then(%v)",
    "JSON.parse = %v",
    "JSON.stringify = %v",
    "Array.prototype.push = %v",
    "Object.prototype.toJSON = %v",
    "Object.defineProperty(Object.prototype, 'continuation', { get() { throw 1; }, configurable: true })",
    "Function.prototype.toString = %v",
    "getContext().getCollection().createDocument = %v",
    "Promise.prototype.then = %v",
    "Error.prepareStackTrace = %v",
    "String.prototype.indexOf.call(%v, %v)",
    "Array.prototype.concat.call(%v, %v)",
    "Reflect.apply(%v, %v, %v)",
];

/// A collection of a few documents, which answers like the real one without being it.
#[derive(Default)]
struct Few {
    documents: BTreeMap<String, String>,
    asked: usize,
}

impl Collection for Few {
    fn perform(&mut self, operation: Operation<'_>, options: &Options) -> Result<Done, OperationError> {
        self.asked += 1;
        let refuse =
            |status: u16| OperationError { status, message: "{\"Errors\":[\"refused\"]}".to_owned() };
        let done = |resource: Option<String>| Done { resource, ..Done::default() };
        let id = |link: &str| link.rsplit('/').next().unwrap_or_default().to_owned();
        match operation {
            Operation::Create { document, .. } | Operation::Upsert { document, .. } => {
                if document.len() > 2 * 1024 * 1024 {
                    return Err(refuse(413));
                }
                let name = format!("d{}", self.documents.len() % 16);
                self.documents.insert(name, document.to_owned());
                Ok(done((!options.unseen).then(|| document.to_owned())))
            }
            Operation::Replace { document_link, document } => {
                let known = self.documents.get_mut(&id(document_link)).ok_or_else(|| refuse(404))?;
                document.clone_into(known);
                Ok(done(Some(document.to_owned())))
            }
            Operation::Delete { document_link } => {
                self.documents.remove(&id(document_link)).map(|_| done(None)).ok_or_else(|| refuse(404))
            }
            Operation::Read { document_link } => {
                let known = self.documents.get(&id(document_link)).ok_or_else(|| refuse(404))?;
                Ok(done(Some(known.clone())))
            }
            Operation::List { .. } | Operation::Query { .. } => {
                let from =
                    options.continuation.as_deref().map_or(Some(0), |token| token.parse::<usize>().ok());
                let from = from.ok_or_else(|| refuse(400))?.min(self.documents.len());
                let most = options.page_size.unwrap_or(1000);
                let page: Vec<&str> =
                    self.documents.values().skip(from).take(most).map(String::as_str).collect();
                let next = from.saturating_add(most);
                let continuation = (next < self.documents.len()).then(|| next.to_string());
                Ok(Done {
                    resource: Some(format!("[{}]", page.join(","))),
                    continuation,
                    not_modified: false,
                })
            }
        }
    }
}

/// Reads choices out of bytes; where there are none left the first is chosen.
struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn next(&mut self) -> usize {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        usize::from(*first)
    }

    fn of(&mut self, list: &[&'static str]) -> &'static str {
        list[self.next() % list.len()]
    }
}

/// The script that some bytes stand for.
fn script(bytes: &[u8]) -> String {
    let mut choices = Choices(bytes);
    let mut source = String::from("function () {\n");
    let mut statements = 0;
    while !choices.0.is_empty() && statements < STATEMENTS_MAX {
        statements += 1;
        let shape = choices.next();
        let mut rest = choices.of(STATEMENTS);
        let mut statement = String::new();
        while let Some((before, after)) = rest.split_once('%') {
            statement.push_str(before);
            let boxed = match after.as_bytes().first() {
                Some(b'l') => LINKS,
                Some(b'o') => OPTIONS,
                Some(b'q') => QUERIES,
                Some(b'v') => VALUES,
                _ => {
                    statement.push('%');
                    rest = after;
                    continue;
                }
            };
            let _ = write!(statement, "({})", choices.of(boxed));
            rest = &after[1..];
        }
        statement.push_str(rest);
        // Some go on when a call throws, some do not, and some make it from a callback.
        let _ = match shape % 4 {
            0 => writeln!(source, "  {statement};"),
            1 => writeln!(source, "  __.readDocuments(__.getSelfLink(), function () {{ {statement}; }});"),
            _ => writeln!(source, "  try {{ {statement}; }} catch (e) {{}}"),
        };
    }
    source.push('}');
    source
}

/// Runs the script that some bytes stand for, and after it one that finds everything as new. Panics when it does not.
fn host_calls(bytes: &[u8]) -> Report {
    let source = script(bytes);
    let program = Program::compile("fuzz", &source).expect("the boxes hold JavaScript");
    let probe = "function () { __.createDocument(__.getSelfLink(), { id: 'p', list: [1] }, function (e, d) {
        __.response.setBody([d.id, [1, [2]].flat().length, String({}), JSON.stringify(JSON.parse('[1]'))]); }); }";
    let probe = Program::compile("probe", probe).expect("it is JavaScript");
    let pool = MemoryPool::new(8 * MEMORY_BYTES);
    let budget = Budget::new(pool.clone());
    let mut few = Few::default();
    let mut run_one = |program: &Program, time: Duration, response_body| {
        let call = Call {
            program,
            arguments: "[1, {\"a\": []}]",
            operation: "Execute",
            self_link: "dbs/d/colls/c/",
            alt_link: "dbs/name/colls/name",
            request_body: Some("{\"id\":\"r\"}"),
            response_body,
            quota: "q",
            usage: "u",
            logging: true,
        };
        let limits = Limits { time, memory_bytes: MEMORY_BYTES, operations: 500, ..Limits::default() };
        let report = run(&call, &limits, &Until::moment(Instant::now() + time), &budget, &mut few);
        assert!(report.log.len() <= limits.log_bytes + 100, "the log is cut off");
        report
    };
    let report = run_one(&program, TIME, Some("{\"id\":\"s\"}"));
    let after = run_one(&probe, Duration::from_secs(60), None);
    let told = after.outcome.expect("the next script runs").response_body;
    assert_eq!(told.as_deref(), Some(r#"["p",2,"[object Object]","[1]"]"#), "after\n{source}");
    if let Ok(finished) = &report.outcome {
        let longest = finished.response_body.as_ref().map_or(0, String::len);
        assert!(longest <= Limits::default().result_bytes, "{longest}");
    }
    report
}
