//! Pipelines and the contract of operators.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;

use super::Cx;
use crate::error::Result;
use crate::graph::StoreOp;
use crate::traverser::{MergeKey, PathMode, Traverser};
use crate::value::Value;

/// Traversers that are handed on at once.
pub(crate) const BATCH_MAX: usize = 1024;

pub(crate) type Batch = Vec<Traverser>;

/// One step at work.
pub(crate) trait Op {
    /// Some traversers, or none when there will be no more. About `want` of them are enough.
    fn next(&mut self, cx: &mut Cx<'_>, up: &mut Upstream<'_>, want: usize) -> Result<Batch>;

    /// Back to the beginning, for the next traverser of a nested traversal.
    fn reset(&mut self) {}

    /// Ready for the next loop of a repeat(), which is a new beginning for most.
    fn next_loop(&mut self) {
        self.reset();
    }

    /// Fetches what the step will need for these values, and says what values it will hand on, if it can tell.
    fn prefetch(&mut self, _cx: &mut Cx<'_>, _values: &[Value]) -> Result<Option<Vec<Value>>> {
        Ok(None)
    }
}

/// What `profile()` and `executionProfile()` show of a stage.
#[derive(Default)]
pub(crate) struct Metrics {
    pub time: Duration,
    pub traversers: u64,
    pub results: u64,
    pub store_ops: Vec<StoreOp>,
}

pub(crate) struct Stage {
    pub name: &'static str,
    /// The operator's name in an execution profile.
    pub operator: &'static str,
    pub op: Box<dyn Op>,
    pub labels: Vec<Arc<str>>,
    pub metrics: Metrics,
}

pub(crate) struct Pipeline {
    pub stages: Vec<Stage>,
    pub starts: VecDeque<Traverser>,
    /// Has a step that waits for all traversers before it gives any.
    pub has_barrier: bool,
    /// How a traverser is seen from outside depends on how many came with it: counts, limits, orders.
    pub counts_starts: bool,
}

/// What an operator sees of those before it.
pub(crate) struct Upstream<'a> {
    stages: &'a mut [Stage],
    starts: &'a mut VecDeque<Traverser>,
}

impl Upstream<'_> {
    pub(crate) fn next(&mut self, cx: &mut Cx<'_>, want: usize) -> Result<Batch> {
        let want = want.clamp(1, cx.batch_max);
        let Some((stage, before)) = self.stages.split_last_mut() else {
            let count = self.starts.len().min(want);
            return Ok(self.starts.drain(..count).collect());
        };
        let mut up = Upstream { stages: before, starts: self.starts };
        let began = cx.profiling.then(Instant::now);
        let mut batch = stage.op.next(cx, &mut up, want)?;
        cx.options.budget.step(batch.len() as u64 + 1)?;
        if !stage.labels.is_empty() {
            for traverser in &mut batch {
                traverser.label(&stage.labels, cx.mode);
            }
        }
        if let Some(began) = began {
            stage.metrics.time += began.elapsed();
            stage.metrics.traversers += batch.len() as u64;
            stage.metrics.results += batch.iter().map(|traverser| traverser.bulk).sum::<u64>();
            stage.metrics.store_ops.extend(cx.graph.take_store_ops());
        }
        Ok(batch)
    }

    /// All that is to come, charged to the request as long as the guard lives.
    pub(crate) fn all(&mut self, cx: &mut Cx<'_>) -> Result<(Batch, orrery_budget::Held)> {
        let mut all = Vec::new();
        let mut bytes = 0;
        let mut held = cx.options.budget.hold(0)?;
        loop {
            let batch = self.next(cx, BATCH_MAX)?;
            if batch.is_empty() {
                return Ok((all, held));
            }
            bytes += batch.iter().map(Traverser::size_bytes).sum::<usize>();
            held.resize(bytes)?;
            all.extend(batch);
        }
    }
}

impl Pipeline {
    pub(crate) fn next(&mut self, cx: &mut Cx<'_>, want: usize) -> Result<Batch> {
        Upstream { stages: &mut self.stages, starts: &mut self.starts }.next(cx, want)
    }

    pub(crate) fn reset(&mut self) {
        self.starts.clear();
        for stage in &mut self.stages {
            stage.op.reset();
        }
    }

    pub(crate) fn next_loop(&mut self) {
        self.starts.clear();
        for stage in &mut self.stages {
            stage.op.next_loop();
        }
    }

    pub(crate) fn drain(&mut self, cx: &mut Cx<'_>) -> Result<Batch> {
        let mut all = Vec::new();
        loop {
            let batch = self.next(cx, BATCH_MAX)?;
            if batch.is_empty() {
                return Ok(all);
            }
            all.extend(batch);
        }
    }

    pub(crate) fn prefetch(&mut self, cx: &mut Cx<'_>, values: &[Value]) -> Result<Option<Vec<Value>>> {
        let mut current: Option<Vec<Value>> = None;
        for stage in &mut self.stages {
            let values = current.as_deref().unwrap_or(values);
            if values.is_empty() {
                return Ok(None);
            }
            match stage.op.prefetch(cx, values)? {
                Some(next) => current = Some(next),
                None => return Ok(None),
            }
        }
        Ok(current)
    }
}

/// A nested traversal that is evaluated for one traverser after another.
pub(crate) struct Child(pub Pipeline);

impl Child {
    fn start(&mut self, traverser: Traverser) {
        self.0.reset();
        self.0.starts.push_back(traverser);
    }

    /// All results. The traverser enters as one, whatever its bulk.
    pub(crate) fn all(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<Batch> {
        let mut start = traverser.clone();
        start.bulk = 1;
        self.start(start);
        self.0.drain(cx)
    }

    pub(crate) fn first(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<Option<Traverser>> {
        let mut start = traverser.clone();
        start.bulk = 1;
        self.start(start);
        let batch = self.0.next(cx, 1)?;
        Ok(batch.into_iter().next())
    }

    pub(crate) fn test(&mut self, cx: &mut Cx<'_>, traverser: &Traverser) -> Result<bool> {
        Ok(self.first(cx, traverser)?.is_some())
    }

    /// The results of many starts together.
    pub(crate) fn run(&mut self, cx: &mut Cx<'_>, starts: Batch) -> Result<Batch> {
        self.0.reset();
        self.0.starts.extend(starts);
        self.0.drain(cx)
    }
}

/// Makes one of traversers that nothing tells apart. Whole paths tell all apart.
pub(crate) fn merge_alike(cx: &Cx<'_>, batch: Batch) -> Batch {
    if cx.mode == PathMode::Full || !cx.bulking || batch.len() < 2 {
        return batch;
    }
    merge(batch)
}

pub(crate) fn merge(batch: Batch) -> Batch {
    let mut bulks: Vec<u64> = Vec::new();
    let mut kept: Vec<usize> = Vec::new();
    {
        let mut seen: HashMap<MergeKey<'_>, usize, RandomState> = HashMap::default();
        seen.reserve(batch.len());
        for (index, traverser) in batch.iter().enumerate() {
            match seen.entry(MergeKey(traverser)) {
                std::collections::hash_map::Entry::Occupied(entry) => {
                    let at = *entry.get();
                    bulks[at] = bulks[at].saturating_add(traverser.bulk);
                }
                std::collections::hash_map::Entry::Vacant(entry) => {
                    entry.insert(bulks.len());
                    bulks.push(traverser.bulk);
                    kept.push(index);
                }
            }
        }
    }
    let mut kept = kept.into_iter().peekable();
    let mut bulks = bulks.into_iter();
    batch
        .into_iter()
        .enumerate()
        .filter_map(|(index, mut traverser)| {
            kept.next_if_eq(&index)?;
            traverser.bulk = bulks.next()?;
            Some(traverser)
        })
        .collect()
}
