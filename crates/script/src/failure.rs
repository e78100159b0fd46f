//! What a failed script says: the exception, where it came from, and what kind of end it was.

use orrery_budget::Exceeded;
use rquickjs::{Ctx, Exception, Object, Value, qjs};

use crate::sandbox::{API_FILE, GUARDS_FILE};
use crate::written::Writer;

/// Longest exception text and stack that are passed on.
const TEXT_BYTES_MAX: usize = 8 * 1024;
const FRAMES_MAX: usize = 32;
/// How QuickJS says it.
pub(crate) const OUT_OF_MEMORY: &str = "InternalError: out of memory";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureKind {
    /// The source is no script.
    Compile,
    /// The script threw, or an operation failed that had no callback.
    Threw,
    /// The time was over.
    TimedOut,
    OutOfMemory,
    /// It answered with more than a response may hold.
    ResultTooLarge,
    /// Its request has used up what it may have.
    Exceeded(Exceeded),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    /// `Error: what was said`
    pub exception: String,
    /// `   at name (script.js:line:column)`, innermost first, one line each. Empty when nothing is known.
    pub stack: String,
    /// The number that the thrown error carries: a status of an operation, or the script's own code.
    pub number: Option<u32>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, exception: impl Into<String>) -> Failure {
        Failure { kind, exception: exception.into(), stack: String::new(), number: None }
    }

    pub(crate) fn timed_out() -> Failure {
        Failure::new(FailureKind::TimedOut, "Error: The script ran longer than it may.")
    }

    /// What a script says whose request may not go on.
    pub fn exceeded(exceeded: Exceeded) -> Failure {
        let kind = match exceeded {
            Exceeded::Time | Exceeded::ClientGone => return Failure::timed_out(),
            Exceeded::RequestMemory { .. }
            | Exceeded::ProcessMemory { .. }
            | Exceeded::Answer { .. }
            | Exceeded::Steps { .. } => FailureKind::Exceeded(exceeded),
        };
        Failure::new(kind, format!("Error: {exceeded}"))
    }

    /// Takes the exception that is pending in the context.
    pub(crate) fn caught(ctx: &Ctx<'_>) -> Failure {
        Failure::of_value(&ctx.catch())
    }

    /// What was thrown may be anything, and reading it may run the script's code again; whatever cannot be read is left
    /// out. `OutOfMemory` says what it looks like: whether memory was refused, the sandbox knows.
    pub(crate) fn of_value(thrown: &Value<'_>) -> Failure {
        let Some(object) = thrown.as_object() else {
            // Where there is no memory for an exception there is null in its place.
            let kind = if thrown.is_null() { FailureKind::OutOfMemory } else { FailureKind::Threw };
            return Failure::new(kind, cut(display(thrown)));
        };
        let exception = cut(display(thrown));
        let stack = text(object, "stack").map(|stack| frames(&stack)).unwrap_or_default();
        let number = object.get::<_, Value<'_>>("number").unwrap_or_else(|_| object.ctx().catch());
        let number = number.as_number();
        let number =
            number.filter(|number| number.fract() == 0.0 && (0.0..=4_294_967_295.0).contains(number));
        let kind = match exception.as_str() {
            OUT_OF_MEMORY => FailureKind::OutOfMemory,
            _ => FailureKind::Threw,
        };
        Failure { kind, exception, stack, number: number.map(|number| number as u32) }
    }
}

/// An error that knows nothing of where it was made: it gets its stack where the script throws it.
#[allow(unsafe_code)]
pub(crate) fn without_stack<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
    let example = Exception::from_message(ctx.clone(), "")?;
    let raw = ctx.as_raw().as_ptr();
    // SAFETY: the context is alive and in use by this thread; the value is new, and given to one owner.
    unsafe {
        let class = qjs::JS_GetClassID(example.as_object().as_raw());
        let error = qjs::JS_NewObjectClass(raw, class);
        if qjs::JS_IsException(error) {
            return Err(rquickjs::Error::Exception);
        }
        Ok(Value::from_raw(ctx.clone(), error))
    }
}

/// `String(value)`, or JSON for objects that have no text of their own.
fn display(value: &Value<'_>) -> String {
    let ctx = value.ctx();
    if let Some(symbol) = value.as_symbol() {
        let name = symbol.description().ok().and_then(|name| name.as_string()?.to_string().ok());
        return format!("Symbol({})", name.unwrap_or_default());
    }
    let string = rquickjs::Coerced::<String>::from_value(value);
    match string {
        // Whatever is too much to write out stays what it is.
        Some(text) if text == "[object Object]" => {
            let written = Writer::new(ctx).and_then(|writer| writer.text(value));
            written
                .unwrap_or_else(|_| {
                    ctx.catch();
                    None
                })
                .unwrap_or(text)
        }
        Some(text) => text,
        None => {
            ctx.catch();
            "an exception without a text".to_owned()
        }
    }
}

trait FromValue: Sized {
    fn from_value(value: &Value<'_>) -> Option<String>;
}

impl FromValue for rquickjs::Coerced<String> {
    fn from_value(value: &Value<'_>) -> Option<String> {
        value.get::<rquickjs::Coerced<String>>().ok().map(|coerced| coerced.0)
    }
}

fn text(object: &Object<'_>, name: &str) -> Option<String> {
    let found = object.get::<_, Option<rquickjs::Coerced<String>>>(name);
    match found {
        Ok(found) => found.map(|text| text.0),
        Err(_) => {
            object.ctx().catch();
            None
        }
    }
}

/// The frames of the script itself, without those of the API around it.
fn frames(stack: &str) -> String {
    let mut out = String::new();
    let own = stack.lines().filter(|line| !line.contains(API_FILE) && !line.contains(GUARDS_FILE));
    for line in own.filter(|line| line.contains("at ") && line.contains(':')).take(FRAMES_MAX) {
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str("   ");
        out.push_str(&placed(line.trim()));
    }
    cut(out)
}

/// The source stands in one parenthesis, which moves the columns of its first line by one.
fn placed(frame: &str) -> String {
    let frame = frame.replace("<anonymous>", "Anonymous function").replace("<eval>", "Global code");
    let (rest, end) = frame.strip_suffix(')').map_or((frame.as_str(), ""), |rest| (rest, ")"));
    let moved = rest.rsplit_once(":1:").and_then(|(before, column)| {
        let column = column.parse::<u32>().ok()?.saturating_sub(1).max(1);
        Some(format!("{before}:1:{column}{end}"))
    });
    moved.unwrap_or(frame)
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        let end = (0..=TEXT_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
    }
    text
}
