//! Steps that look at one traverser at a time: most of them.

use super::{BATCH_MAX, Batch, By, Child, Cx, Op, Upstream};
use crate::error::Result;
use crate::traverser::Traverser;
use crate::value::Value;

/// The nested traversals of a step, by argument and by modulator.
#[derive(Default)]
pub(crate) struct Parts {
    pub children: Vec<Child>,
    pub bys: Vec<By>,
    /// Whether the step reads properties of the elements that come in.
    pub loads: bool,
}

impl Parts {
    pub(crate) fn children(children: Vec<Child>) -> Parts {
        Parts { children, ..Parts::default() }
    }

    pub(crate) fn bys(bys: Vec<By>) -> Parts {
        Parts { bys, ..Parts::default() }
    }

    pub(crate) fn loading() -> Parts {
        Parts { loads: true, ..Parts::default() }
    }

    /// Asks the graph once for what all of these values will need.
    pub(crate) fn prepare(&mut self, cx: &mut Cx<'_>, values: &[Value]) -> Result<()> {
        if values.is_empty() {
            return Ok(());
        }
        if self.loads || self.bys.iter().any(By::loads) {
            cx.load(values)?;
        }
        if values.len() > 1 {
            for child in &mut self.children {
                child.0.prefetch(cx, values)?;
            }
            for by in &mut self.bys {
                by.prefetch(cx, values)?;
            }
        }
        Ok(())
    }
}

type Step = Box<dyn FnMut(&mut Cx<'_>, &mut Parts, Traverser, &mut Batch) -> Result<()>>;

/// A step as a function of one traverser, which puts what comes of it into a batch.
pub(crate) struct Each {
    parts: Parts,
    step: Step,
    /// A filter hands on the values it gets, so what follows it can be prefetched.
    is_filter: bool,
}

impl Each {
    pub(crate) fn op(
        parts: Parts,
        step: impl FnMut(&mut Cx<'_>, &mut Parts, Traverser, &mut Batch) -> Result<()> + 'static,
    ) -> Box<dyn Op> {
        Box::new(Each { parts, step: Box::new(step), is_filter: false })
    }

    /// Keeps the traversers for which it holds.
    pub(crate) fn filter(
        parts: Parts,
        mut test: impl FnMut(&mut Cx<'_>, &mut Parts, &Traverser) -> Result<bool> + 'static,
    ) -> Box<dyn Op> {
        let step: Step = Box::new(move |cx, parts, traverser, out| {
            if test(cx, parts, &traverser)? {
                out.push(traverser);
            }
            Ok(())
        });
        Box::new(Each { parts, step, is_filter: true })
    }

    /// One value of each, or none.
    pub(crate) fn map(
        parts: Parts,
        mut map: impl FnMut(&mut Cx<'_>, &mut Parts, &Traverser) -> Result<Option<Value>> + 'static,
    ) -> Box<dyn Op> {
        Each::op(parts, move |cx, parts, traverser, out| {
            if let Some(value) = map(cx, parts, &traverser)? {
                let mode = cx.mode;
                out.push(traverser.into_step(value, mode));
            }
            Ok(())
        })
    }

    /// Any number of values of each.
    pub(crate) fn flat_map(
        parts: Parts,
        mut map: impl FnMut(&mut Cx<'_>, &mut Parts, &Traverser) -> Result<Vec<Value>> + 'static,
    ) -> Box<dyn Op> {
        Each::op(parts, move |cx, parts, traverser, out| {
            for value in map(cx, parts, &traverser)? {
                out.push(traverser.step(value, cx.mode));
            }
            Ok(())
        })
    }
}

impl Op for Each {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        // Filters may need many to find one: after some without success more are asked for at once.
        let mut ask = want;
        loop {
            let batch = up.next(cx, ask)?;
            if batch.is_empty() {
                return Ok(batch);
            }
            if batch.len() > 1 || self.parts.loads {
                let values: Vec<Value> = batch.iter().map(|traverser| traverser.value.clone()).collect();
                self.parts.prepare(cx, &values)?;
            }
            let mut out = Vec::with_capacity(batch.len());
            for traverser in batch {
                (self.step)(cx, &mut self.parts, traverser, &mut out)?;
            }
            if !out.is_empty() {
                return Ok(out);
            }
            ask = (ask * 2).min(BATCH_MAX);
        }
    }

    fn prefetch(&mut self, cx: &mut Cx<'_>, values: &[Value]) -> Result<Option<Vec<Value>>> {
        self.parts.prepare(cx, values)?;
        Ok(self.is_filter.then(|| values.to_vec()))
    }
}
