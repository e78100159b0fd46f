//! A runtime with limits, in which no script has run yet.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::OnceLock;

use orrery_budget::Budget;
use rquickjs::prelude::Func;
use rquickjs::{Context, Ctx, Function, Object, Runtime, Value};

use crate::bytecode;
use crate::failure::{Failure, FailureKind};
use crate::heap::{Heap, Refused, Saved, SharedHeap};
use crate::limits::Until;
use crate::poll::Poll;
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
    /// The runtime as it was before anything of others ran in it.
    pristine: Option<Saved>,
    // After the runtime that lies in it.
    pub(crate) heap: SharedHeap,
    /// What the runtime itself takes of it, which no request is charged for.
    own_bytes: usize,
}

/// Says when a script is over, and remembers that it has.
#[derive(Clone)]
struct Clock {
    until: Rc<RefCell<Until>>,
    interrupted: Rc<Cell<bool>>,
}

impl Clock {
    fn is_over(&self) -> bool {
        let over = self.until.borrow().is_over_now();
        if over {
            self.interrupted.set(true);
        }
        over
    }
}

impl Sandbox {
    pub(crate) fn new(memory_bytes: usize, stack_bytes: usize, until: Until) -> Result<Sandbox, Failure> {
        let heap = Heap::new(memory_bytes).ok_or_else(|| no_memory(rquickjs::Error::Allocation))?;
        let heap = SharedHeap(Rc::new(RefCell::new(heap)));
        let runtime = Runtime::new_with_alloc(heap.clone()).map_err(no_memory)?;
        runtime.set_max_stack_size(stack_bytes);
        runtime.set_gc_threshold(GC_THRESHOLD_BYTES.min(memory_bytes / 2));
        let interrupted = Rc::new(Cell::new(false));
        let until = Rc::new(RefCell::new(until));
        let context = Context::full(&runtime).map_err(no_memory)?;
        let poll = Poll::of(&context);
        let clock = Clock { until: until.clone(), interrupted: interrupted.clone() };
        let asked = clock.clone();
        runtime.set_interrupt_handler(Some(Box::new(move || {
            poll.soon();
            asked.is_over()
        })));
        poll.soon();
        let own_bytes = heap.0.borrow().top();
        let mut sandbox = Sandbox { runtime, context, interrupted, until, pristine: None, heap, own_bytes };
        sandbox.context.with(|ctx| guard(&ctx, clock).map_err(|_| sandbox.failure(&ctx)))?;
        sandbox.keep();
        Ok(sandbox)
    }

    /// From now on [`Sandbox::renew`] leads back to what is there at this moment.
    pub(crate) fn keep(&mut self) {
        self.pristine = Some(self.heap.0.borrow().save());
    }

    /// Makes the runtime what it was when it was kept.
    pub(crate) fn renew(&self) {
        if let Some(pristine) = &self.pristine {
            self.heap.0.borrow_mut().restore(pristine);
        }
    }

    /// Makes the runtime what it was, for the last time: whoever holds values of it gives them back next.
    pub(crate) fn renew_to_end(&mut self) {
        self.renew();
        self.pristine = None;
    }

    /// Begins the time and the charges of a script.
    pub(crate) fn begin(&self, until: Until, budget: &Budget) -> Result<(), Failure> {
        let watched = self.heap.0.borrow_mut().watch(until.clone(), budget, self.own_bytes);
        watched.map_err(Failure::exceeded)?;
        self.until.replace(until);
        self.interrupted.set(false);
        Ok(())
    }

    /// Ends them: what is left is cleaning up.
    pub(crate) fn end(&self) {
        self.heap.0.borrow_mut().unwatch();
    }

    /// What the pending exception says, or that the time was over, also if it ran out while that was being read.
    pub(crate) fn failure(&self, ctx: &Ctx<'_>) -> Failure {
        self.ended(Failure::caught(ctx))
    }

    /// What ended a script that failed like this: its time and its memory have their own words.
    pub(crate) fn ended(&self, failure: Failure) -> Failure {
        let refused = self.heap.0.borrow().refused();
        if self.interrupted.get() || refused == Some(Refused::Late) {
            return Failure { stack: failure.stack, ..Failure::timed_out() };
        }
        match (failure.kind, refused) {
            (FailureKind::OutOfMemory, Some(Refused::Budget(exceeded))) => Failure::exceeded(exceeded),
            // Nothing was refused: the script itself has thrown what looks like it.
            (FailureKind::OutOfMemory, None) => Failure { kind: FailureKind::Threw, ..failure },
            _ => failure,
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // A script that was refused memory in the middle of something may leave objects behind that nobody counts any
        // more, and QuickJS ends the process when it finds them. The runtime as it was made can be taken apart.
        self.renew();
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

fn guard<'js>(ctx: &Ctx<'js>, clock: Clock) -> rquickjs::Result<()> {
    static CODE: OnceLock<Vec<u8>> = OnceLock::new();
    let code = CODE.get_or_init(|| own(include_str!("guards.js"), GUARDS_FILE));
    let guard: Function<'js> = bytecode::evaluate(ctx, code)?.get()?;
    let writer = Writer::new(ctx)?;
    let host = Object::new(ctx.clone())?;
    host.set("write", Func::from(move |value: Value<'js>| writer.text(&value)))?;
    host.set("isOver", Func::from(move || clock.is_over()))?;
    host.set("isList", Func::from(move |value: Value<'js>| writer.is_array(&value)))?;
    host.set("isProxy", Func::from(move |value: Value<'js>| value.is_proxy()))?;
    guard.call((host,))
}

/// Compiles a file of this crate, once per process.
fn own(source: &str, file: &str) -> Vec<u8> {
    let runtime = Runtime::new().expect("a new process has memory for a runtime");
    let context = Context::full(&runtime).expect("a new process has memory for a context");
    context.with(|ctx| bytecode::compile(&ctx, source, file)).expect("the crate's own source compiles")
}
