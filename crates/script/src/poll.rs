//! How often QuickJS asks whether a script may go on.
//!
//! It counts loops and calls, and asks at every ten thousandth of them, which is a millisecond of ordinary code; but of
//! `a === b` on two texts of thirty megabytes it is a minute, and no setting says otherwise. The count stands in the
//! context, so it is set from here each time that QuickJS asks. Where in the context is found out once per process, by
//! watching: it is the one number that is ten thousand whenever QuickJS asks, and that makes it ask sooner when it is
//! lowered. Should a later QuickJS keep it elsewhere, or nowhere, it is left as it is.

#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::ptr::NonNull;
use std::rc::Rc;
use std::sync::OnceLock;

use rquickjs::{Context, Runtime, qjs};

use crate::heap::{Heap, SharedHeap};

/// Loops and calls between two questions: a question costs as much as two of them.
const EVERY: i32 = 64;
/// What QuickJS sets.
const USUAL: i32 = 10_000;
/// How far into a context is looked; it is a little longer.
const CONTEXT_WORDS: usize = 160;
/// Loops of a trial, and how often QuickJS must have asked by then.
const TRIAL_LOOPS: usize = 50_000;
const TRIAL_HEAP_BYTES: usize = 8 * 1024 * 1024;

/// The count of one context.
#[derive(Clone, Copy)]
pub(crate) struct Poll(Option<NonNull<i32>>);

impl Poll {
    pub(crate) fn of(context: &Context) -> Poll {
        static PLACE: OnceLock<Option<usize>> = OnceLock::new();
        let place = *PLACE.get_or_init(|| {
            let place = find();
            if place.is_none() {
                tracing::warn!("scripts are asked less often whether their time is over");
            }
            place
        });
        Poll(place.map(|place| word(context.as_raw(), place)))
    }

    /// Makes the next question come soon. On the thread of the context, which must be alive.
    pub(crate) fn soon(self) {
        if let Poll(Some(count)) = self {
            // SAFETY: it lies in the context, which is alive, and nobody else uses it at the same time.
            unsafe { count.write(EVERY) };
        }
    }
}

fn word(context: NonNull<qjs::JSContext>, place: usize) -> NonNull<i32> {
    // SAFETY: contexts lie in heaps that are longer than any place that is looked at.
    unsafe { context.cast::<i32>().add(place) }
}

/// Where the count stands, in words from the beginning of a context.
fn find() -> Option<usize> {
    let heap = SharedHeap(Rc::new(RefCell::new(Heap::new(TRIAL_HEAP_BYTES)?)));
    let runtime = Runtime::new_with_alloc(heap).ok()?;
    let context = Context::full(&runtime).ok()?;
    let raw = context.as_raw();
    let read = move |place: usize| {
        // SAFETY: as above; the trial's context is alive while its script runs, on this thread.
        unsafe { word(raw, place).read() }
    };
    let candidates = Rc::new(RefCell::new((0..CONTEXT_WORDS).collect::<Vec<usize>>()));
    let asked = Rc::new(Cell::new(0usize));
    let trial = |handler: Box<dyn FnMut() -> bool>| {
        runtime.set_interrupt_handler(Some(handler));
        asked.set(0);
        context.with(|ctx| ctx.eval::<(), _>(format!("for (let i = 0; i < {TRIAL_LOOPS}; i++);"))).ok()
    };
    let (left, count) = (candidates.clone(), asked.clone());
    trial(Box::new(move || {
        left.borrow_mut().retain(|place| read(*place) == USUAL);
        count.set(count.get() + 1);
        false
    }))?;
    let place = match candidates.borrow()[..] {
        [place] if asked.get() >= 2 => place,
        _ => return None,
    };
    let (poll, count) = (Poll(Some(word(raw, place))), asked.clone());
    poll.soon();
    trial(Box::new(move || {
        poll.soon();
        count.set(count.get() + 1);
        false
    }))?;
    (asked.get() >= TRIAL_LOOPS / EVERY as usize).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found() {
        assert!(find().is_some(), "QuickJS keeps its count elsewhere: look at its JSContext");
    }
}
