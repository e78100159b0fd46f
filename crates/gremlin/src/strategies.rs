//! What stands before the steps: strategies, side effects, sacks; `g.withStrategies(...)` and its relatives.
//!
//! Strategies that change what a traversal means are rewritten into steps: a partition or a subgraph becomes filters
//! after every step that reaches elements. Those that only make TinkerPop faster are accepted and change nothing.

use std::sync::Arc;

use crate::bytecode::{Bytecode, Instruction, Strategy};
use crate::compare::items;
use crate::error::{Error, Result};
use crate::evaluate::{Cx, SackSpec};
use crate::predicate::P;
use crate::random::Rng;
use crate::run::{Options, writes};
use crate::traverser::PathMode;
use crate::value::{Operator, Scope, Value};

#[derive(Default)]
pub(crate) struct Settings {
    pub system_properties: Vec<Arc<str>>,
    pub productive_by: Option<Vec<Arc<str>>>,
    side_effects: Vec<(Arc<str>, Value, Option<Operator>)>,
    sack: Option<SackSpec>,
    one_bulk: bool,
    with_path: bool,
    seed: Option<u64>,
    read_only: bool,
    partition: Option<Partition>,
    subgraph: Option<Subgraph>,
    reserved_keys: Option<Vec<Arc<str>>>,
    edge_labels_needed: bool,
    /// No graph computer may be asked for.
    no_computer: bool,
    /// `withoutStrategies(ConnectiveStrategy)`: `or()` and `and()` connect their arguments alone, and have none.
    pub without_infix: bool,
}

struct Partition {
    key: Arc<str>,
    write: Option<Value>,
    read: Option<Vec<Value>>,
    meta: bool,
}

#[derive(Clone)]
struct Subgraph {
    vertices: Option<Arc<Bytecode>>,
    edges: Option<Arc<Bytecode>>,
    properties: Option<Arc<Bytecode>>,
}

/// What makes the infix forms of `or()` and `and()`.
const CONNECTIVE: &str = "ConnectiveStrategy";

/// Strategies of TinkerPop without a meaning of their own here.
const WITHOUT_EFFECT: &[&str] = &[
    "AdjacentToIncidentStrategy",
    "ByModulatorOptimizationStrategy",
    "ComputerFinalizationStrategy",
    "ComputerVerificationStrategy",
    CONNECTIVE,
    "CountStrategy",
    "EarlyLimitStrategy",
    "ElementIdStrategy",
    "EventStrategy",
    "FilterRankingStrategy",
    "GraphFilterStrategy",
    "HaltedTraverserStrategy",
    "IdentityRemovalStrategy",
    "IncidentToAdjacentStrategy",
    "InlineFilterStrategy",
    "LambdaRestrictionStrategy",
    "LazyBarrierStrategy",
    "MatchAlgorithmStrategy",
    "MatchPredicateStrategy",
    "MessagePassingReductionStrategy",
    "OptionsStrategy",
    "OrderLimitStrategy",
    "PathProcessorStrategy",
    "PathRetractionStrategy",
    "ProfileStrategy",
    "ReferenceElementStrategy",
    "RemoteStrategy",
    "RepeatUnrollStrategy",
    "SackStrategy",
    "SideEffectStrategy",
    "StandardVerificationStrategy",
    "TinkerGraphCountStrategy",
    "TinkerGraphStepStrategy",
    "RequirementsStrategy",
    "ReservedKeysVerificationStrategy",
    "EdgeLabelVerificationStrategy",
];

fn texts(value: &Value) -> Vec<Arc<str>> {
    match value {
        Value::String(text) => vec![text.clone()],
        other => items(other)
            .into_iter()
            .filter_map(|item| match item {
                Value::String(text) => Some(text),
                _ => None,
            })
            .collect(),
    }
}

impl Settings {
    pub(crate) fn of(source: &[Instruction], _options: &Options) -> Result<Settings> {
        let mut settings = Settings::default();
        for step in source {
            match (&*step.name, step.arguments.as_slice()) {
                ("withStrategies", strategies) => {
                    for strategy in strategies {
                        match strategy {
                            Value::Strategy(strategy) => settings.add(strategy)?,
                            _ => return Err(Error::runtime("withStrategies() takes strategies.")),
                        }
                    }
                }
                ("withoutStrategies", strategies) => {
                    let named = |strategy: &Value| match strategy {
                        Value::Strategy(strategy) => &*strategy.name == CONNECTIVE,
                        other => other.as_str().is_some_and(|name| name.ends_with(CONNECTIVE)),
                    };
                    settings.without_infix |= strategies.iter().any(named);
                }
                ("with", _) => {}
                ("withSideEffect", [Value::String(key), value, rest @ ..]) => {
                    let operator = match rest {
                        [] => None,
                        [Value::Operator(operator)] => Some(*operator),
                        _ => {
                            return Err(Error::runtime(
                                "withSideEffect() takes a key, a value and an operator.",
                            ));
                        }
                    };
                    settings.side_effects.push((key.clone(), value.clone(), operator));
                }
                ("withSack", [initial, rest @ ..]) => {
                    let merge = match rest {
                        [] => None,
                        [Value::Operator(operator)] | [_, Value::Operator(operator)] => Some(*operator),
                        _ => return Err(Error::runtime("withSack() takes a value and an operator.")),
                    };
                    settings.sack = Some(SackSpec { initial: initial.clone(), merge });
                }
                ("withBulk", [Value::Bool(bulk)]) => settings.one_bulk = !bulk,
                ("withPath", []) => settings.with_path = true,
                (name, _) => {
                    let text = format!("{name}() is not supported like this.");
                    return Err(Error::not_supported(text));
                }
            }
        }
        Ok(settings)
    }

    fn add(&mut self, strategy: &Strategy) -> Result<()> {
        let get =
            |name: &str| strategy.settings.iter().find(|(key, _)| **key == *name).map(|(_, value)| value);
        let nested = |name: &str| match get(name) {
            Some(Value::Traversal(nested)) => Some(nested.clone()),
            _ => None,
        };
        let throws = matches!(get("throwException"), Some(Value::Bool(true)));
        match &*strategy.name {
            "ReadOnlyStrategy" => self.read_only = true,
            "ProductiveByStrategy" => {
                self.productive_by = Some(get("productiveKeys").map(texts).unwrap_or_default());
            }
            "ProjectionStrategy" => {
                self.system_properties = get("includeSystemProperties").map(texts).unwrap_or_default();
            }
            "SeedStrategy" => self.seed = get("seed").and_then(Value::as_i64).map(|seed| seed as u64),
            "PartitionStrategy" => {
                let Some(Value::String(key)) = get("partitionKey") else {
                    return Err(Error::runtime("The partitionKey cannot be null"));
                };
                let read = get("readPartitions").map(|read| match read {
                    Value::String(_) => vec![read.clone()],
                    other => items(other),
                });
                self.partition = Some(Partition {
                    key: key.clone(),
                    write: get("writePartition").cloned(),
                    read,
                    meta: matches!(get("includeMetaProperties"), Some(Value::Bool(true))),
                });
            }
            "SubgraphStrategy" => {
                let (vertices, mut edges) = (nested("vertices"), nested("edges"));
                let checks = !matches!(get("checkAdjacentVertices"), Some(Value::Bool(false)));
                if let Some(criterion) = vertices.as_ref().filter(|_| checks) {
                    // An edge is of the subgraph only if both its ends are.
                    let mut steps = Vec::new();
                    for end in ["inV", "outV"] {
                        let mut to_end = vec![Instruction::new(end, vec![])];
                        to_end.push(filter(criterion));
                        steps.push(Instruction::new("filter", vec![traversal(to_end)]));
                    }
                    if let Some(edges) = &edges {
                        steps.insert(0, filter(edges));
                    }
                    edges = Some(Arc::new(Bytecode { source: vec![], steps }));
                }
                self.subgraph = Some(Subgraph { vertices, edges, properties: nested("vertexProperties") });
            }
            "ReservedKeysVerificationStrategy" if throws => {
                let keys =
                    get("keys").map(texts).unwrap_or_else(|| vec![Arc::from("id"), Arc::from("label")]);
                self.reserved_keys = Some(keys);
            }
            "VertexProgramRestrictionStrategy" => self.no_computer = true,
            "VertexProgramStrategy" if self.no_computer => {
                return Err(Error::runtime("The TraversalSource does not allow the use of a GraphComputer"));
            }
            "EdgeLabelVerificationStrategy" if throws => self.edge_labels_needed = true,
            name if WITHOUT_EFFECT.contains(&name) => {}
            name => {
                let text = format!("{name} is not supported.");
                return Err(Error::not_supported(text));
            }
        }
        Ok(())
    }

    pub(crate) fn apply(&self, cx: &mut Cx<'_>) {
        for (key, value, operator) in &self.side_effects {
            cx.side_effects.insert(key.clone(), value.clone());
            cx.given.insert(key.clone(), value.clone());
            if let Some(operator) = operator {
                cx.reducers.insert(key.clone(), *operator);
            }
        }
        cx.sack = self.sack.clone();
        cx.one_bulk = self.one_bulk;
        if let Some(seed) = self.seed {
            cx.rng = Rng::new(seed);
            cx.seed = Some(seed);
        }
    }

    /// Side effects exist from the beginning, whether or not anything ever reaches the step that fills them.
    pub(crate) fn register(&self, cx: &mut Cx<'_>, bytecode: &Bytecode) {
        for step in &bytecode.steps {
            let empty = match &*step.name {
                "store" | "aggregate" => Value::BulkSet(Arc::default()),
                "subgraph" => Value::Graph(Arc::default()),
                _ => Value::Null,
            };
            if let (Some(Value::String(key)), false) = (step.arguments.last(), empty.is_null()) {
                cx.side_effects.entry(key.clone()).or_insert(empty);
            }
            for argument in &step.arguments {
                if let Value::Traversal(nested) = argument {
                    self.register(cx, nested);
                }
            }
        }
    }

    /// Whether alike traversers may become one before a step says so.
    pub(crate) fn allows_bulking(&self) -> bool {
        !self.one_bulk && self.sack.as_ref().is_none_or(|sack| sack.merge.is_none())
    }

    /// The traversal with what the strategies mean as steps of its own.
    pub(crate) fn rewrite(&self, bytecode: &Bytecode) -> Result<Bytecode> {
        if self.read_only && writes(bytecode) {
            return Err(Error::runtime(
                "The provided traversal has a mutating step and thus is not read only",
            ));
        }
        self.verify(bytecode)?;
        let mut steps = bytecode.steps.clone();
        if let Some(subgraph) = &self.subgraph {
            steps = rewrite_all(&steps, &|step| subgraph.rewrite(step));
        }
        if let Some(partition) = &self.partition {
            steps = rewrite_all(&steps, &|step| partition.rewrite(step));
        }
        Ok(Bytecode { source: vec![], steps })
    }

    fn verify(&self, bytecode: &Bytecode) -> Result<()> {
        for step in &bytecode.steps {
            let is_move = matches!(&*step.name, "out" | "in" | "both" | "outE" | "inE" | "bothE");
            if self.edge_labels_needed && is_move && step.arguments.is_empty() {
                return Err(Error::runtime(format!(
                    "The provided traversal contains a vertex step without any specified edge label: {}()",
                    step.name
                )));
            }
            if let Some(reserved) = &self.reserved_keys
                && matches!(&*step.name, "property" | "addV" | "addE")
            {
                let key = step.arguments.iter().find_map(|argument| match argument {
                    Value::String(key) => Some(key),
                    _ => None,
                });
                if let Some(key) = key.filter(|key| &*step.name == "property" && reserved.contains(key)) {
                    let text = format!(
                        "The provided traversal contains a {} that uses a reserved word: {key}",
                        step.name
                    );
                    return Err(Error::runtime(text));
                }
            }
            for argument in &step.arguments {
                if let Value::Traversal(nested) = argument {
                    self.verify(nested)?;
                }
            }
        }
        Ok(())
    }

    /// How much traversers must remember, by what the steps ask for.
    pub(crate) fn path_mode(&self, bytecode: &Bytecode) -> PathMode {
        if self.with_path {
            return PathMode::Full;
        }
        fn of(steps: &[Instruction]) -> PathMode {
            let mut mode = PathMode::None;
            for step in steps {
                mode = mode.max(match &*step.name {
                    "path" | "simplePath" | "cyclicPath" | "tree" | "otherV" => PathMode::Full,
                    "as" | "match" => PathMode::Labelled,
                    _ => PathMode::None,
                });
                for argument in &step.arguments {
                    if let Value::Traversal(nested) = argument {
                        mode = mode.max(of(&nested.steps));
                    }
                }
            }
            mode
        }
        of(&bytecode.steps)
    }

    /// Whether steps see what others keep beside while the stream still flows, so that it must flow one by one.
    pub(crate) fn interleaves(&self, bytecode: &Bytecode) -> bool {
        fn keeps(steps: &[Instruction], inside: bool) -> bool {
            steps.iter().any(|step| {
                let lazy = match &*step.name {
                    "store" => true,
                    "aggregate" => {
                        inside || matches!(step.arguments.first(), Some(Value::Scope(Scope::Local)))
                    }
                    "group" | "groupCount" | "tree" | "subgraph" => inside && !step.arguments.is_empty(),
                    _ => false,
                };
                let nests = inside || matches!(&*step.name, "local" | "sideEffect" | "map" | "flatMap");
                lazy || step.arguments.iter().any(|argument| match argument {
                    Value::Traversal(nested) => keeps(&nested.steps, nests),
                    _ => false,
                })
            })
        }
        keeps(&bytecode.steps, false)
    }
}

fn traversal(steps: Vec<Instruction>) -> Value {
    Value::Traversal(Arc::new(Bytecode { source: vec![], steps }))
}

fn filter(criterion: &Arc<Bytecode>) -> Instruction {
    Instruction::new("filter", vec![Value::Traversal(criterion.clone())])
}

fn rewrite_all(
    steps: &[Instruction],
    rewrite: &dyn Fn(&Instruction) -> Vec<Instruction>,
) -> Vec<Instruction> {
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let mut step = step.clone();
        for argument in &mut step.arguments {
            if let Value::Traversal(nested) = argument {
                *argument = traversal(rewrite_all(&nested.steps, rewrite));
            }
        }
        all.extend(rewrite(&step));
    }
    all
}

/// A hop over edges that are looked at on the way, seen from outside as the one step that it was.
fn hop(step: &Instruction, edge_filter: Instruction) -> Instruction {
    let (edges, end, labels) = match (&*step.name, step.arguments.as_slice()) {
        ("out", labels) => ("outE", "inV", labels),
        ("in", labels) => ("inE", "outV", labels),
        (_, labels) => ("bothE", "otherV", labels),
    };
    let steps = vec![Instruction::new(edges, labels.to_vec()), edge_filter, Instruction::new(end, vec![])];
    Instruction::new("flatMap", vec![traversal(steps)])
}

impl Subgraph {
    fn rewrite(&self, step: &Instruction) -> Vec<Instruction> {
        let mut all = vec![step.clone()];
        match &*step.name {
            "V" | "outV" | "inV" | "otherV" | "bothV" | "toV" => all.extend(self.vertices.iter().map(filter)),
            "E" | "outE" | "inE" | "bothE" | "toE" => all.extend(self.edges.iter().map(filter)),
            "out" | "in" | "both" => {
                if let Some(edges) = &self.edges {
                    all = vec![hop(step, filter(edges))];
                }
                all.extend(self.vertices.iter().map(filter));
            }
            "properties" => all.extend(self.properties.iter().map(on_vertex_properties)),
            "values" => {
                if let Some(properties) = &self.properties {
                    all = vec![
                        Instruction::new("properties", step.arguments.clone()),
                        on_vertex_properties(properties),
                        Instruction::new("value", vec![]),
                    ];
                }
            }
            _ => {}
        }
        all
    }
}

/// The criterion is for properties of vertices; those of edges pass.
fn on_vertex_properties(criterion: &Arc<Bytecode>) -> Instruction {
    let is_other = Instruction::new(
        "not",
        vec![traversal(vec![Instruction::new(
            "is",
            vec![Value::P(Arc::new(P::TypeOf(crate::value::GType::VProperty)))],
        )])],
    );
    Instruction::new("or", vec![traversal(vec![is_other]), Value::Traversal(criterion.clone())])
}

impl Partition {
    fn has(&self) -> Option<Instruction> {
        let read = self.read.clone()?;
        let key = Value::String(self.key.clone());
        Some(Instruction::new("has", vec![key, Value::P(Arc::new(P::Within(read)))]))
    }

    fn rewrite(&self, step: &Instruction) -> Vec<Instruction> {
        let mut all = vec![step.clone()];
        match &*step.name {
            "V" | "E" | "outE" | "inE" | "bothE" | "toE" | "outV" | "inV" | "otherV" | "bothV" | "toV" => {
                all.extend(self.has());
            }
            "out" | "in" | "both" => {
                if let Some(has) = self.has() {
                    all = vec![hop(step, has.clone()), has];
                }
            }
            "properties" | "values" if self.meta => {
                if let Some(has) = self.has() {
                    all = vec![Instruction::new("properties", step.arguments.clone())];
                    let criterion = Arc::new(Bytecode { source: vec![], steps: vec![has] });
                    all.push(on_vertex_properties(&criterion));
                    if &*step.name == "values" {
                        all.push(Instruction::new("value", vec![]));
                    }
                }
            }
            "property" if self.meta => {
                if let (Some(write), false) = (&self.write, is_token(step)) {
                    all[0].arguments.extend([Value::String(self.key.clone()), write.clone()]);
                }
            }
            "addV" | "addE" => {
                if let Some(write) = &self.write {
                    let key = Value::String(self.key.clone());
                    all.push(Instruction::new("property", vec![key, write.clone()]));
                }
            }
            "mergeV" | "mergeE" => {
                if let Some(write) = &self.write {
                    let key = Value::String(self.key.clone());
                    for argument in &mut all[0].arguments {
                        if let Value::Map(map) = argument {
                            Arc::make_mut(map).insert(key.clone(), write.clone());
                        }
                    }
                }
            }
            _ => {}
        }
        all
    }
}

fn is_token(step: &Instruction) -> bool {
    step.arguments.iter().take(2).any(|argument| matches!(argument, Value::T(_)))
}
