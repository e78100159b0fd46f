//! User-defined functions of one query: a runtime of their own, values in, a value out.
//!
//! A query may call a function once for each of a hundred thousand items, so the runtime is made once and values cross
//! over without becoming text. It lives on the thread that runs the query: runtimes cannot move between threads, and a
//! query does not either while it makes a page.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use orrery_budget::Budget;
use orrery_model::{Number, Value};
use parking_lot::Mutex;
use rquickjs::function::Args;
use rquickjs::{Array, Ctx, Function as JsFunction, Object, Persistent, Value as JsValue};

use crate::bytecode;
use crate::failure::{Failure, FailureKind};
use crate::limits::Until;
use crate::program::Program;
use crate::sandbox::Sandbox;

/// Arguments and results nest at most as deep as documents do.
const DEPTH_MAX: usize = 128;
/// Runtimes that one thread keeps; a query whose runtime had to go gets a new one.
const RUNTIMES_PER_THREAD_MAX: usize = 4;
/// Queries run on threads with small stacks.
const STACK_BYTES: usize = 256 * 1024;

/// A function by its name.
#[derive(Debug, Clone)]
pub struct Function {
    pub name: String,
    pub program: Program,
}

/// The functions that a query may call.
pub struct Functions {
    number: u64,
    functions: Arc<[Function]>,
    memory_bytes: usize,
    budget: Budget,
    /// What is left of the time that all calls together may take.
    left: Mutex<Duration>,
}

struct Loaded {
    number: u64,
    // Before the sandbox: values of a runtime must be gone before it is.
    functions: Vec<Option<Persistent<JsFunction<'static>>>>,
    sandbox: Sandbox,
}

thread_local! {
    static LOADED: RefCell<Vec<Loaded>> = const { RefCell::new(Vec::new()) };
}

static NUMBERS: AtomicU64 = AtomicU64::new(0);

impl Functions {
    /// Functions for one query: what they keep in memory is charged to `budget`, which may also end them.
    pub fn new(functions: Arc<[Function]>, memory_bytes: usize, time: Duration, budget: Budget) -> Functions {
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        Functions { number, functions, memory_bytes, budget, left: Mutex::new(time) }
    }

    pub fn exists(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function.name == name)
    }

    /// Calls a function on this thread.
    pub fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, Failure> {
        let Some(place) = self.functions.iter().position(|function| function.name == name) else {
            return Err(Failure::new(FailureKind::Threw, format!("Error: There is no function '{name}'.")));
        };
        let started = Instant::now();
        let deadline = started + *self.left.lock();
        let result = LOADED.with_borrow_mut(|loaded| {
            let at = match loaded.iter().position(|entry| entry.number == self.number) {
                Some(at) => at,
                None => {
                    if loaded.len() >= RUNTIMES_PER_THREAD_MAX {
                        loaded.remove(0);
                    }
                    let sandbox = Sandbox::new(self.memory_bytes, STACK_BYTES, Until::moment(deadline))?;
                    let functions = self.functions.iter().map(|_| None).collect();
                    loaded.push(Loaded { number: self.number, functions, sandbox });
                    loaded.len() - 1
                }
            };
            let until = Until { budget: Some(self.budget.clone()), ..Until::moment(deadline) };
            let loaded = &mut loaded[at];
            loaded.sandbox.begin(until, &self.budget)?;
            let result = loaded.call(place, &self.functions[place], arguments);
            // The runtime may outlive the query on this thread; what the query is charged may not.
            loaded.sandbox.end();
            result
        });
        let mut left = self.left.lock();
        *left = left.saturating_sub(started.elapsed());
        result
    }
}

impl Drop for Functions {
    fn drop(&mut self) {
        // Usually the thread that ran the query. Elsewhere the runtime is pushed out by the next ones.
        let _ = LOADED.try_with(|loaded| {
            if let Ok(mut loaded) = loaded.try_borrow_mut() {
                loaded.retain(|entry| entry.number != self.number);
            }
        });
    }
}

impl Loaded {
    fn call(&mut self, place: usize, function: &Function, arguments: &[Value]) -> Result<Value, Failure> {
        let (sandbox, saved) = (&self.sandbox, &mut self.functions[place]);
        sandbox.context.with(|ctx| {
            let mut run = || -> rquickjs::Result<Option<Value>> {
                let callable = match saved {
                    Some(saved) => saved.clone().restore(&ctx)?,
                    None => {
                        let value = bytecode::evaluate(&ctx, &function.program.bytecode)?;
                        let Some(callable) = value.as_function() else { return Ok(None) };
                        *saved = Some(Persistent::save(&ctx, callable.clone()));
                        callable.clone()
                    }
                };
                let mut args = Args::new(ctx.clone(), arguments.len());
                for argument in arguments {
                    args.push_arg(to_js(&ctx, argument)?)?;
                }
                let result: JsValue<'_> = callable.call_arg(args)?;
                from_js(&result, 0).map(Some)
            };
            match run() {
                Ok(Some(value)) => Ok(value),
                Ok(None) => {
                    Err(Failure::new(FailureKind::Compile, "TypeError: The script must be a function."))
                }
                Err(rquickjs::Error::Exception) => Err(sandbox.failure(&ctx)),
                Err(error) => Err(Failure::new(FailureKind::Threw, format!("Error: {error}"))),
            }
        })
    }
}

fn to_js<'js>(ctx: &Ctx<'js>, value: &Value) -> rquickjs::Result<JsValue<'js>> {
    Ok(match value {
        Value::Undefined => JsValue::new_undefined(ctx.clone()),
        Value::Null => JsValue::new_null(ctx.clone()),
        Value::Bool(value) => JsValue::new_bool(ctx.clone(), *value),
        Value::Number(number) => JsValue::new_number(ctx.clone(), number.as_f64()),
        Value::String(text) => rquickjs::String::from_str(ctx.clone(), text)?.into_value(),
        Value::Array(elements) => {
            let array = Array::new(ctx.clone())?;
            for (place, element) in elements.iter().enumerate() {
                array.set(place, to_js(ctx, element)?)?;
            }
            array.into_value()
        }
        Value::Object(members) => {
            let object = Object::new(ctx.clone())?;
            for (name, member) in members {
                object.set(name.as_str(), to_js(ctx, member)?)?;
            }
            object.into_value()
        }
        // Scripts see what SQL shows: an object such as {"$oid": "…"}.
        Value::Extended(_) => {
            let mut json = Vec::new();
            value.write_json(&mut json, orrery_model::NumberStyle::Item);
            ctx.json_parse(json)?
        }
    })
}

/// What JSON would keep of a result: functions are undefined, what is not finite is null inside of others.
fn from_js(value: &JsValue<'_>, depth: usize) -> rquickjs::Result<Value> {
    if depth > DEPTH_MAX {
        return Err(rquickjs::Exception::throw_range(
            value.ctx(),
            "The result of a function nests too deeply.",
        ));
    }
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let Some(value) = value.as_bool() {
        return Ok(Value::Bool(value));
    }
    if let Some(number) = value.as_number() {
        return Ok(Value::Number(number_of(number)));
    }
    if let Some(text) = value.as_string() {
        return Ok(Value::String(text.to_string()?));
    }
    if value.is_function() || value.is_symbol() || value.is_undefined() {
        return Ok(Value::Undefined);
    }
    if let Some(array) = value.as_array() {
        let mut elements = Vec::with_capacity(array.len().min(1024));
        for element in array.iter::<JsValue<'_>>() {
            // As in JSON, a hole in an array is null.
            elements.push(match from_js(&element?, depth + 1)? {
                Value::Undefined => Value::Null,
                value => value,
            });
        }
        return Ok(Value::Array(elements));
    }
    let Some(object) = value.as_object() else { return Ok(Value::Undefined) };
    // Dates and whatever else knows how it wants to be written.
    if let Some(to_json) =
        object.get::<_, Option<JsValue<'_>>>("toJSON")?.as_ref().and_then(JsValue::as_function)
    {
        let written: JsValue<'_> = to_json.call((rquickjs::function::This(object.clone()),))?;
        return from_js(&written, depth + 1);
    }
    let mut members = Vec::new();
    for member in object.props::<String, JsValue<'_>>() {
        let (name, member) = member?;
        match from_js(&member, depth + 1)? {
            Value::Undefined => {}
            value => members.push((name, value)),
        }
    }
    Ok(Value::Object(members))
}

fn number_of(number: f64) -> Number {
    // Integers that a double holds exactly are written without a fraction.
    if number.fract() == 0.0 && number.abs() <= 9_007_199_254_740_992.0 {
        Number::Int(number as i64)
    } else {
        Number::Double(number)
    }
}
