//! For tests only: what decodes the bytes of clients, by itself.

use std::collections::HashMap;

use orrery_budget::{Budget, Limits, MemoryPool};
use orrery_gremlin::{Flow, MemoryGraph, Options, Result, Value, execute, parse};

use crate::config::Results;
use crate::graphbinary::{Reader, write_value};
use crate::graphson::{self, Typed};
use crate::message;
use crate::sasl::Credentials;

/// A value in GraphSON. What was read and written in the typed form is read again.
pub fn graphson(text: &[u8]) {
    if let Ok(value) = graphson::read(text) {
        for third in [false, true] {
            let mut written = Vec::new();
            Typed { third }.write(&value, &mut written);
            assert!(
                graphson::read(&written).is_ok() || !is_plain(&value),
                "{}",
                String::from_utf8_lossy(&written)
            );
        }
        let mut written = Vec::new();
        graphson::write_untyped(&value, &mut written);
    }
}

/// A value in GraphBinary. What was read and written is read again.
pub fn graphbinary(bytes: &[u8]) {
    if let Ok(value) = Reader::new(bytes).value() {
        let mut written = Vec::new();
        write_value(&value, &mut written);
        let again = Reader::new(&written).value();
        assert!(again.is_ok() || !is_plain(&value), "{value:?}");
    }
}

/// A script. What can be parsed is run over a small graph, in bounds.
pub fn script(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(script) = parse(text, &HashMap::new()) else { return };
    let _ = run(&script, text);
}

/// A traversal that wants more than this would only say that large is slow.
const STEPS_MAX: u64 = 5_000;
const MEMORY_BYTES_MAX: usize = 16 << 20;
const RESULTS_MAX: usize = 1_000;

fn run(script: &orrery_gremlin::Script, text: &str) -> Result<()> {
    let mut graph = MemoryGraph::new();
    let small = "g.addV('p').property(id,'a').property('n',1).as('a').addV('p').property(id,'b').property('n',2).as('b').\
                 addV('q').property(id,'c').property('n',3).as('c').addE('x').from('a').to('b').property('w',1).\
                 addE('x').from('b').to('c').property('w',2).addE('y').from('c').to('a')";
    let mut nothing = |_: Vec<(Value, u64)>| Ok(Flow::Continue);
    execute(&parse(small, &HashMap::new())?, &mut graph, &Options::default(), &mut nothing)?;
    let limits = Limits { steps: STEPS_MAX, memory_bytes: MEMORY_BYTES_MAX, ..Limits::default() };
    let budget = Budget::with(MemoryPool::new(MEMORY_BYTES_MAX), limits, None);
    let options = Options { budget, repeat_loops_max: 100, script: text.to_owned(), ..Options::default() };
    let mut count = 0;
    let mut sink = |results: Vec<(Value, u64)>| {
        count += results.len();
        for (value, _) in &results {
            let mut written = Vec::new();
            Typed { third: true }.write(value, &mut written);
            write_value(value, &mut written);
        }
        Ok(if count > RESULTS_MAX { Flow::Stop } else { Flow::Continue })
    };
    execute(script, &mut graph, &options, &mut sink)
}

/// A whole message: a length, a MIME type, a request.
pub fn message(frame: &[u8]) {
    if let Ok(request) = message::read_binary(frame, Results::Cosmos)
        && let Some(sasl) = request.arg("sasl")
    {
        match sasl {
            Value::String(text) => drop(Credentials::of_text(text)),
            Value::Binary(bytes) => drop(Credentials::of_bytes(bytes)),
            _ => {}
        }
    }
}

/// Values that are results; arguments such as predicates are written as texts, and dates beyond what one format holds
/// differ.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::Double(_)
        | Value::String(_) => true,
        Value::List(items) => items.iter().all(is_plain),
        Value::Map(map) => map.iter().all(|(key, value)| matches!(key, Value::String(_)) && is_plain(value)),
        _ => false,
    }
}
