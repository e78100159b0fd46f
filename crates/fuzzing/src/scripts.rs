//! Bytes as what a script says to its host: calls of the API it is given, with arguments of every kind.
//!
//! The bytes choose calls and arguments; what comes of it is a procedure, run within small limits over a collection
//! that answers in its turn with whatever the bytes say.

use std::time::{Duration, Instant};

use orrery_budget::{Budget, MemoryPool};
use orrery_script::{
    Call, Collection, Done, Limits, Operation, OperationError, Options, Program, Until, run as execute,
};

const CALLS_MAX: usize = 12;
/// What everything that a script asks for may take.
const MEMORY_BYTES: usize = 32 * 1024 * 1024;

/// What a script can call. `$` stands for an argument.
const CALLS: &[&str] = &[
    "c.createDocument($,$,$,$)",
    "c.createDocument(c.getSelfLink(),$,function(e,d,o){r.setBody(d)})",
    "c.upsertDocument(c.getAltLink(),$,$,k)",
    "c.replaceDocument($,$,$,k)",
    "c.replaceDocument(c.getAltLink()+'/docs/1',{id:$},k)",
    "c.deleteDocument($,$,k)",
    "c.readDocument($,$,k)",
    "c.readDocuments($,$,k)",
    "c.readDocuments(c.getSelfLink(),{pageSize:$,continuation:$},k)",
    "c.queryDocuments($,$,$,k)",
    "c.queryDocuments(c.getSelfLink(),{query:$,parameters:$},{continuation:$},k)",
    "c.chain().filter(function(d){return $}).map(function(d){return $}).value($,k)",
    "c.chain().sortBy(function(d){return d.n}).flatten().pluck($).value(k)",
    "c.map(function(d){return $},$,k)",
    "c.filter($,$,k)",
    "r.setBody($)",
    "r.appendBody&&r.appendBody($)",
    "r.setValue&&r.setValue($,$)",
    "r.getBody&&r.getBody()",
    "q.getBody&&q.getBody()",
    "q.setBody&&q.setBody($)",
    "q.getValue&&q.getValue($)",
    "q.setValue&&q.setValue($,$)",
    "q.appendValue&&q.appendValue($,$)",
    "console.log($)",
    "console.log.apply(console,$)",
    "getContext($).abort&&getContext().abort($)",
    "__.createDocument&&__.createDocument($,$,k)",
    "__.request&&__.response&&__.response.setBody($)",
    "Object.prototype.toJSON=$",
    "Array.prototype.push=$",
    "JSON.stringify=$",
    "globalThis.getContext=$",
    "throw $",
];

/// Arguments that are awkward to pass on.
const ARGUMENTS: &[&str] = &[
    "undefined",
    "null",
    "true",
    "0",
    "-1",
    "1e308",
    "NaN",
    "9007199254740993n",
    "''",
    "'x'",
    "'\\u0000'",
    "'\\ud800'",
    "'x'.repeat(1e5)",
    "{}",
    "[]",
    "[[[]]]",
    "{id:'1',pk:'p'}",
    "{id:7}",
    "{id:''}",
    "function(){}",
    "function(e,d,o){throw d}",
    "Symbol('s')",
    "/x/g",
    "new Date(NaN)",
    "new Map([[1,2]])",
    "Promise.resolve(1)",
    "Promise.reject(c)",
    "c",
    "r",
    "getContext()",
    "globalThis",
    "new Proxy({},{get(){throw 1}})",
    "{toString(){throw this}}",
    "{valueOf(){return {}}}",
    "{toJSON(){return undefined}}",
    "{get id(){throw 'id'}}",
    "(()=>{var o={};o.o=o;return o})()",
    "new Array(1e6)",
    "new Uint8Array(8)",
    "Object.create(null)",
    "c.getSelfLink()",
    "'dbs/x/colls/y/docs/z'",
    "'SELECT * FROM c'",
    "{pageSize:-1}",
    "{etag:{}}",
    "Object.freeze({id:'f'})",
    "(function*(){yield 1})()",
    "arguments",
    "new Error('e')",
    "Infinity",
];

pub fn run(input: &[u8]) {
    let mut bytes = input.iter().copied();
    let source = source(&mut bytes);
    let Ok(program) = Program::compile("fuzz", &source) else { panic!("no script: {source}") };
    let limits = Limits {
        time: Duration::from_millis(100),
        memory_bytes: 8 * 1024 * 1024,
        operations: 50,
        queue: 20,
        result_bytes: 64 * 1024,
        log_bytes: 4 * 1024,
        ..Limits::default()
    };
    let call = Call {
        program: &program,
        arguments: "[1,\"two\",{\"three\":3}]",
        operation: "Create",
        self_link: "dbs/AAAA/colls/BBBB",
        alt_link: "dbs/d/colls/c",
        request_body: Some(r#"{"id":"1"}"#),
        response_body: Some(r#"{"id":"1","_rid":"CCCC"}"#),
        quota: "q",
        usage: "u",
        logging: true,
    };
    let began = Instant::now();
    let mut collection = Chance { bytes: bytes.collect(), count: 0 };
    let budget = Budget::new(MemoryPool::new(MEMORY_BYTES));
    let until = Until::moment(began + limits.time);
    let report = execute(&call, &limits, &until, &budget, &mut collection);
    // Far beyond what a loaded machine explains.
    assert!(began.elapsed() < Duration::from_secs(20), "{:?} for {source}", began.elapsed());
    assert!(report.log.len() <= 2 * limits.log_bytes, "a log of {} bytes", report.log.len());
    if let Ok(finished) = report.outcome {
        for body in [finished.response_body, finished.request_body].into_iter().flatten() {
            assert!(body.len() <= 2 * limits.result_bytes, "an answer of {} bytes", body.len());
            let json = serde_json::from_str::<serde_json::Value>(&body);
            assert!(json.is_ok() || body.contains("\\ud"), "an answer that is no JSON: {body}");
        }
    }
}

fn source(bytes: &mut impl Iterator<Item = u8>) -> String {
    let count = usize::from(bytes.next().unwrap_or(0)) % CALLS_MAX + 1;
    let mut body = String::new();
    for _ in 0..count {
        let form = usize::from(bytes.next().unwrap_or(0));
        let mut call = String::new();
        for (number, part) in CALLS[form % CALLS.len()].split('$').enumerate() {
            if number > 0 {
                call.push_str(ARGUMENTS[usize::from(bytes.next().unwrap_or(0)) % ARGUMENTS.len()]);
            }
            call.push_str(part);
        }
        // Every other one is caught, so that the next is reached whatever it does.
        match form < 128 {
            true => body.push_str(&format!("try{{{call}}}catch(e){{console.log(e)}}\n")),
            false => body.push_str(&format!("{call};\n")),
        }
    }
    format!(
        "function f(){{var x=getContext(),c=x.getCollection(),r=x.getResponse(),q=x.getRequest();\n\
         function k(e,d,o){{r.setBody({{e:e&&e.number,d:d,o:o}})}}\n{body}}}"
    )
}

/// A collection that answers with what is left of the bytes.
struct Chance {
    bytes: Vec<u8>,
    count: usize,
}

const ANSWERS: &[&str] = &[
    r#"{"id":"1","_self":"dbs/AAAA/colls/BBBB/docs/CCCC","_etag":"e"}"#,
    "[]",
    r#"[{"id":"1","n":1},{"id":"2","n":[]}]"#,
    "null",
    "7",
    r#""\ud800""#,
];

impl Collection for Chance {
    fn perform(&mut self, _: Operation<'_>, options: &Options) -> Result<Done, OperationError> {
        let choice = usize::from(self.bytes.get(self.count).copied().unwrap_or(0));
        self.count += 1;
        if choice % 7 == 6 {
            return Err(OperationError {
                status: 404 + (choice % 9) as u16,
                message: "No \u{0} such.".to_owned(),
            });
        }
        Ok(Done {
            resource: (choice % 5 > 0).then(|| ANSWERS[choice % ANSWERS.len()].to_owned()),
            continuation: options.continuation.clone().or_else(|| (choice > 200).then(|| "more".to_owned())),
            not_modified: choice % 11 == 10,
        })
    }
}
