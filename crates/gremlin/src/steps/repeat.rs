//! `repeat()`, level by level: the whole frontier goes through the body together, alike traversers become one, and
//! what is emitted goes on before the next level begins.

use std::collections::VecDeque;
use std::sync::Arc;

use super::*;
use crate::error::ErrorKind;
use crate::evaluate::{BATCH_MAX, Pipeline};
use crate::predicate::P;
use crate::traverser::{Loop, Traverser};

/// Traversers that enter the loop together when the body has no barrier that needs all of them.
const FRONTIER_MAX: usize = 16 * BATCH_MAX;

enum Condition {
    Always,
    Times(u32),
    Predicate(P),
    Test(Child),
}

impl Condition {
    fn holds(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<bool> {
        match self {
            Condition::Always => Ok(true),
            Condition::Times(times) => Ok(traverser.loops.last().is_some_and(|l| l.count >= *times)),
            Condition::Predicate(p) => p.test(&traverser.value),
            Condition::Test(child) => child.test(cx, traverser),
        }
    }
}

pub(crate) fn build(builder: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let (name, body) = match call.args {
        [body] => (None, body),
        [Value::String(name), body] => (Some(name.clone()), body),
        _ => return Err(call.wrong()),
    };
    let Value::Traversal(body) = body else { return Err(call.wrong()) };
    // Every loop would put the values in again, and none of them would ever have gone through one.
    if body.steps.iter().any(|step| &*step.name == "inject") {
        return Err(Error::runtime("The parent of inject()-step can not be repeat()-step"));
    }
    let mut repeat = Repeat {
        name,
        body: builder.child(body)?.0,
        until: None,
        until_first: false,
        emit: None,
        emit_first: false,
        inside: false,
        next_level: Vec::new(),
        held: None,
        out: VecDeque::new(),
    };
    let mut first = true;
    for step in &call.mods {
        let condition = match (&*step.name, step.arguments.as_slice()) {
            ("repeat", _) => {
                first = false;
                continue;
            }
            ("times", [count]) => {
                let count = count.as_i64().and_then(|n| u32::try_from(n).ok()).ok_or_else(|| call.wrong())?;
                Condition::Times(count)
            }
            ("emit", []) => Condition::Always,
            (_, [Value::P(p)]) => Condition::Predicate(P::clone(p)),
            (_, [nested]) => Condition::Test(builder.child_of(nested)?),
            _ => return Err(call.wrong()),
        };
        if &*step.name == "emit" {
            repeat.emit_first = first;
            repeat.emit = Some(condition);
        } else {
            repeat.until_first = first;
            repeat.until = Some(condition);
        }
    }
    Ok(Box::new(repeat))
}

struct Repeat {
    name: Option<Arc<str>>,
    body: Pipeline,
    until: Option<Condition>,
    until_first: bool,
    emit: Option<Condition>,
    emit_first: bool,
    /// Whether a level is in the body.
    inside: bool,
    next_level: Batch,
    /// What the next level takes.
    held: Option<orrery_budget::Held>,
    out: VecDeque<Traverser>,
}

impl Repeat {
    fn leave(&mut self, mut traverser: Traverser) {
        traverser.loops.pop();
        self.out.push_back(traverser);
    }

    fn check(&mut self, cx: &mut Cx<'_>, traverser: &Traverser, first: bool) -> Result<(bool, bool)> {
        let until = match &mut self.until {
            Some(until) if self.until_first == first => until.holds(cx, traverser)?,
            _ => false,
        };
        let emit = match &mut self.emit {
            Some(emit) if self.emit_first == first && !until => emit.holds(cx, traverser)?,
            _ => false,
        };
        Ok((until, emit))
    }

    /// Into the body, unless a condition that stands before the repeat() says otherwise.
    fn enter(&mut self, cx: &mut Cx<'_>, traverser: Traverser) -> Result<()> {
        let (until, emit) = self.check(cx, &traverser, true)?;
        if until {
            self.leave(traverser);
            return Ok(());
        }
        if emit {
            self.leave(traverser.clone());
        }
        let loops = traverser.loops.last().map_or(0, |l| l.count);
        if loops >= cx.options.repeat_loops_max {
            let text =
                format!("repeat() goes through its loop more than {} times.", cx.options.repeat_loops_max);
            return Err(Error::new(ErrorKind::Limit, text));
        }
        self.next_level.push(traverser);
        Ok(())
    }

    fn begin_level(&mut self, cx: &mut Cx<'_>) {
        self.body.next_loop();
        let level = std::mem::take(&mut self.next_level);
        let level = merge_alike(cx, level);
        self.body.starts.extend(level);
        self.inside = true;
    }
}

impl Op for Repeat {
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch> {
        loop {
            if !self.out.is_empty() {
                let count = self.out.len().min(want.max(1));
                let batch: Batch = self.out.drain(..count).collect();
                return Ok(merge_alike(cx, batch));
            }
            if self.inside {
                let batch = self.body.next(cx, BATCH_MAX)?;
                if batch.is_empty() {
                    self.inside = false;
                    continue;
                }
                for mut traverser in batch {
                    if let Some(last) = traverser.loops.last_mut() {
                        last.count += 1;
                    }
                    let (until, emit) = self.check(cx, &traverser, false)?;
                    if until {
                        self.leave(traverser);
                        continue;
                    }
                    if emit {
                        self.leave(traverser.clone());
                    }
                    self.enter(cx, traverser)?;
                }
                let waiting = self.next_level.len() + self.out.len();
                let bytes = waiting * size_of::<Traverser>();
                match &mut self.held {
                    Some(held) => held.resize(bytes)?,
                    None => self.held = Some(cx.options.budget.hold(bytes)?),
                }
                continue;
            }
            if !self.next_level.is_empty() {
                self.begin_level(cx);
                continue;
            }
            let mut entered = 0;
            loop {
                let batch = up.next(cx, want.max(1))?;
                if batch.is_empty() {
                    break;
                }
                entered += batch.len();
                for mut traverser in batch {
                    traverser.loops.push(Loop { name: self.name.clone(), count: 0 });
                    self.enter(cx, traverser)?;
                }
                if !self.body.has_barrier && (entered >= FRONTIER_MAX || want < BATCH_MAX) {
                    break;
                }
            }
            if entered == 0 {
                return Ok(Vec::new());
            }
        }
    }

    fn reset(&mut self) {
        self.body.reset();
        self.inside = false;
        self.next_level.clear();
        self.out.clear();
    }
}

pub(crate) fn build_loops(_: &mut Builder<'_>, call: &Call<'_>) -> Result<Box<dyn Op>> {
    let name = match call.args {
        [] => None,
        [Value::String(name)] => Some(name.clone()),
        _ => return Err(call.wrong()),
    };
    Ok(Each::map(Parts::default(), move |_, _, traverser| {
        let found = match &name {
            None => traverser.loops.last(),
            Some(_) => traverser.loops.iter().rev().find(|l| l.name == name),
        };
        match found {
            Some(found) => Ok(Some(Value::Int(found.count as i32))),
            None => Err(Error::runtime("loops() is not inside of a repeat() of that name.")),
        }
    }))
}
