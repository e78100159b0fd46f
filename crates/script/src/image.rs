//! A runtime with the API in it, made once for each thread that runs scripts and put back for every script as it was.
//!
//! Building a runtime costs more than most scripts do. So it is built once, in a [`Heap`] of its own, and its bytes are
//! kept; before a script runs they are copied back. That is as good as a new runtime: whatever an earlier script has
//! made or changed lay in the heap and is gone. It needs no cleaning up either, however much that script has left.
//!
//! What QuickJS keeps is all in the heap. What the bindings keep outside of it (the functions of the host, the class
//! of those functions) is made before the bytes are kept, and never afterwards: nothing outside may come to point at
//! something that a copy takes away. [`Turn`] is how the functions of the host, which are made before there is a
//! script, come to know about the one that runs.

use std::cell::{Cell, RefCell};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::rc::Rc;
use std::time::Instant;

use orrery_budget::{Budget, Held};
use rquickjs::prelude::Func;
use rquickjs::{Ctx, Function, Object, Persistent, Value};

use crate::failure::Failure;
use crate::limits::{Limits, Until};
use crate::sandbox::{self, Sandbox};
use crate::written::Writer;

/// Documents that wait outside of the script's own memory.
const WRITTEN_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The line that ends a log that was cut off.
const LOG_CUT: &str = "\n… (the log is cut off here)";

/// What the host's functions know of the script that runs.
#[derive(Debug)]
pub(crate) struct Turn {
    /// From then on no operation is accepted.
    late: Cell<Instant>,
    queue_max: Cell<usize>,
    logging: Cell<bool>,
    log_bytes_max: Cell<usize>,
    log: RefCell<String>,
    /// Documents that wait in the queue, by place, and how long they are together.
    written: RefCell<Vec<String>>,
    written_bytes: Cell<usize>,
    /// What the request is charged for them.
    held: RefCell<Option<Held>>,
    /// Of `Math.random`: a copied runtime would always throw the same dice.
    random: Cell<u64>,
}

/// The functions by which a running script is driven, and the object that tells it about the request; see `api.js`.
pub(crate) struct Driver<T, O> {
    pub(crate) host: O,
    pub(crate) call: T,
    pub(crate) take: T,
    pub(crate) done: T,
    pub(crate) fail: T,
    pub(crate) body: T,
    pub(crate) request_body: T,
    pub(crate) problem: T,
}

type Kept = Driver<Persistent<Function<'static>>, Persistent<Object<'static>>>;
pub(crate) type Ready<'js> = Driver<Function<'js>, Object<'js>>;

pub(crate) struct Image {
    made_for: (usize, usize),
    // Values before the runtime that they belong to, and that before the memory that it lies in.
    driver: Kept,
    pub(crate) sandbox: Sandbox,
    pub(crate) turn: Rc<Turn>,
}

thread_local! {
    static IMAGE: RefCell<Option<Image>> = const { RefCell::new(None) };
}

/// Runs `work` in a runtime that nobody has used.
pub(crate) fn with_fresh<T>(
    limits: &Limits,
    until: &Until,
    budget: &Budget,
    work: impl FnOnce(&Image) -> T,
) -> Result<T, Failure> {
    let made_for = (limits.memory_bytes, limits.stack_bytes);
    // A thread that runs a script inside of another one, or is about to end, gets a runtime of its own each time.
    let kept =
        IMAGE.try_with(|kept| kept.try_borrow_mut().ok().and_then(|mut kept| kept.take())).ok().flatten();
    let image = match kept.filter(|image| image.made_for == made_for) {
        Some(mut image) => {
            image.renew();
            image
        }
        None => Image::new(limits, until.clone())?,
    };
    let result = image.sandbox.begin(until.clone(), budget).map(|()| work(&image));
    image.sandbox.end();
    image.sandbox.heap.0.borrow_mut().give_back();
    image.turn.forget();
    let _ = IMAGE.try_with(|kept| kept.try_borrow_mut().map(|mut kept| kept.replace(image)));
    result
}

impl Image {
    fn new(limits: &Limits, until: Until) -> Result<Image, Failure> {
        let late = Cell::new(until.deadline);
        let mut sandbox = Sandbox::new(limits.memory_bytes, limits.stack_bytes, until)?;
        let turn = Rc::new(Turn {
            late,
            queue_max: Cell::new(0),
            logging: Cell::new(false),
            log_bytes_max: Cell::new(0),
            log: RefCell::default(),
            written: RefCell::default(),
            written_bytes: Cell::default(),
            held: RefCell::default(),
            random: Cell::new(seed()),
        });
        let (driver, rejection) =
            sandbox.context.with(|ctx| make(&ctx, &turn).map_err(|_| sandbox.failure(&ctx)))?;
        sandbox.runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, handled| {
                // Without memory to note it the rejection is lost, and so is the script: every later allocation fails
                // too.
                if let Ok(told) = rejection.clone().restore(&ctx) {
                    let _: Result<(), _> = told.call((promise, reason, handled));
                }
            },
        )));
        sandbox.keep();
        let made_for = (limits.memory_bytes, limits.stack_bytes);
        Ok(Image { made_for, driver, sandbox, turn })
    }

    /// Makes the runtime what it was before its first script.
    fn renew(&mut self) {
        self.sandbox.renew();
        self.turn.random.set(seed());
    }

    /// The handles of this runtime, for one script.
    pub(crate) fn driver<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Ready<'js>> {
        let kept = &self.driver;
        let function = |function: &Persistent<Function<'static>>| function.clone().restore(ctx);
        Ok(Driver {
            host: kept.host.clone().restore(ctx)?,
            call: function(&kept.call)?,
            take: function(&kept.take)?,
            done: function(&kept.done)?,
            fail: function(&kept.fail)?,
            body: function(&kept.body)?,
            request_body: function(&kept.request_body)?,
            problem: function(&kept.problem)?,
        })
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // The handles of the driver are given back after this, and count in the runtime as it was kept.
        self.sandbox.renew_to_end();
        self.sandbox.runtime.set_host_promise_rejection_tracker(None);
    }
}

/// Evaluates the API.
fn make<'js>(ctx: &Ctx<'js>, turn: &Rc<Turn>) -> rquickjs::Result<(Kept, Persistent<Function<'static>>)> {
    let host = Object::new(ctx.clone())?;
    let now = turn.clone();
    host.set("accepts", Func::from(move |queued: f64| now.accepts(queued)))?;
    let now = turn.clone();
    host.set("log", Func::from(move |line: String| now.log(&line)))?;
    let (now, writer) = (turn.clone(), Writer::new(ctx)?);
    host.set("write", Func::from(move |value: Value<'js>| now.write(&writer, &value)))?;
    let now = turn.clone();
    let math: Object<'js> = ctx.globals().get("Math")?;
    math.set("random", Function::new(ctx.clone(), move || now.random())?.with_name("random")?)?;
    let create: Function<'js> = sandbox::api(ctx)?.get()?;
    let api: Object<'js> = create.call((host.clone(),))?;
    let kept =
        |name: &str| -> rquickjs::Result<_> { Ok(Persistent::save(ctx, api.get::<_, Function<'js>>(name)?)) };
    let driver = Driver {
        host: Persistent::save(ctx, host),
        call: kept("call")?,
        take: kept("take")?,
        done: kept("done")?,
        fail: kept("fail")?,
        body: kept("body")?,
        request_body: kept("requestBody")?,
        problem: kept("problem")?,
    };
    Ok((driver, kept("rejection")?))
}

impl Turn {
    pub(crate) fn begin(&self, limits: &Limits, late: Instant, budget: &Budget, logging: bool) {
        self.forget();
        self.held.replace(budget.hold(0).ok());
        self.late.set(late);
        self.queue_max.set(limits.queue);
        self.logging.set(logging);
        self.log_bytes_max.set(limits.log_bytes);
    }

    /// Nothing of a script outlives it.
    fn forget(&self) {
        self.log.take();
        self.written.take();
        self.written_bytes.set(0);
        self.held.take();
    }

    /// Charges for the documents that wait; false when there is no room for them.
    fn charge(&self) -> bool {
        match self.held.borrow_mut().as_mut() {
            Some(held) => held.resize(self.written_bytes.get()).is_ok(),
            None => true,
        }
    }

    pub(crate) fn take_log(&self) -> String {
        self.log.take()
    }

    /// Keeps a document as text and says where; nothing when the script has to write it itself, where the memory that
    /// it may have is the limit.
    fn write(&self, writer: &Writer, value: &Value<'_>) -> rquickjs::Result<Option<f64>> {
        if self.written_bytes.get() > WRITTEN_BYTES_MAX {
            return Ok(None);
        }
        let Some(text) = writer.text(value)? else { return Ok(None) };
        self.written_bytes.set(self.written_bytes.get() + text.len());
        if !self.charge() {
            self.written_bytes.set(self.written_bytes.get() - text.len());
            return Ok(None);
        }
        let mut written = self.written.borrow_mut();
        written.push(text);
        Ok(Some((written.len() - 1) as f64))
    }

    /// A document that was kept.
    pub(crate) fn take_written(&self, place: f64) -> Option<String> {
        let text = self.written.borrow_mut().get_mut(place as usize).map(std::mem::take)?;
        self.written_bytes.set(self.written_bytes.get() - text.len());
        self.charge();
        Some(text)
    }

    fn accepts(&self, queued: f64) -> bool {
        queued < self.queue_max.get() as f64 && Instant::now() < self.late.get()
    }

    /// One line of the log, as far as there is room.
    fn log(&self, line: &str) {
        let mut log = self.log.borrow_mut();
        if !self.logging.get() || log.ends_with(LOG_CUT) {
            return;
        }
        let room = self.log_bytes_max.get().saturating_sub(log.len() + 1);
        if !log.is_empty() {
            log.push('\n');
        }
        let end = (0..=room.min(line.len())).rev().find(|end| line.is_char_boundary(*end)).unwrap_or(0);
        log.push_str(&line[..end]);
        if end < line.len() {
            log.push_str(LOG_CUT);
        }
    }

    /// At least zero and less than one, by xorshift64*.
    fn random(&self) -> f64 {
        let mut state = self.random.get();
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        self.random.set(state);
        let bits = state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11;
        bits as f64 / (1u64 << 53) as f64
    }
}

/// Where the dice begin, different each time and never zero, which they would not leave.
fn seed() -> u64 {
    RandomState::new().build_hasher().finish() | 1
}
