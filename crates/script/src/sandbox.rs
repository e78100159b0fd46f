//! A runtime with limits, in which no script has run yet.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;

use rquickjs::prelude::Func;
use rquickjs::{Context, Ctx, Function, Runtime, Value};

use crate::bytecode;
use crate::failure::{Failure, FailureKind};
use crate::limits::Until;
use crate::written::Writer;

/// The names under which the two files of this crate appear in stacks; frames of theirs are left out.
pub(crate) const API_FILE: &str = "orrery:api";
pub(crate) const GUARDS_FILE: &str = "orrery:guards";

/// Collecting garbage is cheap next to running out of memory, and most scripts end long before this.
const GC_THRESHOLD_BYTES: usize = 8 * 1024 * 1024;

pub(crate) struct Sandbox {
    pub(crate) runtime: Runtime,
    pub(crate) context: Context,
    interrupted: Rc<Cell<bool>>,
    until: Rc<RefCell<Until>>,
}

impl Sandbox {
    pub(crate) fn new(memory_bytes: usize, stack_bytes: usize, until: Until) -> Result<Sandbox, Failure> {
        Sandbox::over(Runtime::new().map_err(no_memory)?, memory_bytes, stack_bytes, until)
    }

    /// The same over a runtime with memory of its own.
    pub(crate) fn over(
        runtime: Runtime,
        memory_bytes: usize,
        stack_bytes: usize,
        until: Until,
    ) -> Result<Sandbox, Failure> {
        runtime.set_memory_limit(memory_bytes);
        runtime.set_max_stack_size(stack_bytes);
        runtime.set_gc_threshold(GC_THRESHOLD_BYTES.min(memory_bytes / 2));
        let interrupted = Rc::new(Cell::new(false));
        let until = Rc::new(RefCell::new(until));
        let (flag, asked) = (interrupted.clone(), until.clone());
        runtime.set_interrupt_handler(Some(Box::new(move || {
            let over = asked.borrow().is_over_now();
            if over {
                flag.set(true);
            }
            over
        })));
        let context = Context::full(&runtime).map_err(no_memory)?;
        let sandbox = Sandbox { runtime, context, interrupted, until };
        sandbox.context.with(|ctx| guard(&ctx).map_err(|_| sandbox.failure(&ctx)))?;
        Ok(sandbox)
    }

    pub(crate) fn timed_out(&self) -> bool {
        self.interrupted.get()
    }

    pub(crate) fn set_until(&self, until: Until) {
        self.until.replace(until);
        self.interrupted.set(false);
    }

    /// What the pending exception says, or that the time was over, also if it ran out while that was being read.
    pub(crate) fn failure(&self, ctx: &Ctx<'_>) -> Failure {
        let failure = Failure::caught(ctx);
        if self.timed_out() { Failure { stack: failure.stack, ..Failure::timed_out() } } else { failure }
    }
}

pub(crate) fn no_memory(_: rquickjs::Error) -> Failure {
    Failure::new(FailureKind::OutOfMemory, "InternalError: out of memory")
}

/// The function that makes the API.
pub(crate) fn api<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Value<'js>> {
    static CODE: OnceLock<Vec<u8>> = OnceLock::new();
    bytecode::evaluate(ctx, CODE.get_or_init(|| own(include_str!("api.js"), API_FILE)))
}

fn guard<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<()> {
    static CODE: OnceLock<Vec<u8>> = OnceLock::new();
    let code = CODE.get_or_init(|| own(include_str!("guards.js"), GUARDS_FILE));
    let guard: Function<'js> = bytecode::evaluate(ctx, code)?.get()?;
    let writer = Writer::new(ctx)?;
    guard.call((Func::from(move |value: Value<'js>| writer.text(&value)),))
}

/// Compiles a file of this crate, once per process.
fn own(source: &str, file: &str) -> Vec<u8> {
    let runtime = Runtime::new().expect("a new process has memory for a runtime");
    let context = Context::full(&runtime).expect("a new process has memory for a context");
    context.with(|ctx| bytecode::compile(&ctx, source, file)).expect("the crate's own source compiles")
}
