//! Scripts of a container: procedures, triggers and functions as the catalog keeps them.
//!
//! The engine keeps their text and gives them numbers and versions; what they mean is for whoever runs them. A handle
//! of a container always sees its present scripts, in an immutable list that each change replaces.

use std::sync::Arc;

use imbl::{HashMap, OrdMap};

use crate::error::{Error, Kind, Result};
use crate::etag::Etag;

/// Longest text of a script.
pub const SCRIPT_BYTES_MAX: usize = 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ScriptKind {
    Procedure = 1,
    Trigger = 2,
    Function = 3,
}

impl ScriptKind {
    pub const ALL: [ScriptKind; 3] = [ScriptKind::Procedure, ScriptKind::Trigger, ScriptKind::Function];

    pub(crate) fn from_u8(kind: u8) -> Option<ScriptKind> {
        ScriptKind::ALL.into_iter().find(|known| *known as u8 == kind)
    }

    /// Most scripts of a kind in one container, as the service's quota headers state.
    pub fn count_max(self) -> usize {
        match self {
            ScriptKind::Procedure => 100,
            ScriptKind::Trigger => 25,
            ScriptKind::Function => 50,
        }
    }
}

/// When a trigger runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TriggerTime {
    Pre = 1,
    Post = 2,
}

/// For which operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum TriggerOperation {
    All = 1,
    Create = 2,
    Update = 3,
    Delete = 4,
    Replace = 5,
    Upsert = 6,
}

impl TriggerTime {
    pub const ALL: [TriggerTime; 2] = [TriggerTime::Pre, TriggerTime::Post];

    pub(crate) fn from_u8(time: u8) -> Option<TriggerTime> {
        TriggerTime::ALL.into_iter().find(|known| *known as u8 == time)
    }
}

impl TriggerOperation {
    pub const ALL: [TriggerOperation; 6] = [
        TriggerOperation::All,
        TriggerOperation::Create,
        TriggerOperation::Update,
        TriggerOperation::Delete,
        TriggerOperation::Replace,
        TriggerOperation::Upsert,
    ];

    pub(crate) fn from_u8(operation: u8) -> Option<TriggerOperation> {
        TriggerOperation::ALL.into_iter().find(|known| *known as u8 == operation)
    }
}

/// What a client says about a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptDefinition {
    pub kind: ScriptKind,
    pub id: String,
    pub body: String,
    /// Of triggers.
    pub trigger: Option<(TriggerTime, TriggerOperation)>,
    /// The words for a trigger's time and operation as the client wrote them: they are given back like that.
    pub spelling: (String, String),
}

/// A stored script. `number` and `etag` together are different for every text it ever had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// Given at creation, never used again; grows with time.
    pub number: u64,
    pub definition: ScriptDefinition,
    pub etag: Etag,
    pub ts: u32,
}

/// The scripts of a container at one moment.
#[derive(Debug, Clone, Default)]
pub struct Scripts {
    by_number: OrdMap<(ScriptKind, u64), Arc<Script>>,
    by_id: HashMap<(ScriptKind, String), Arc<Script>>,
}

impl Scripts {
    /// In creation order.
    pub fn list(&self, kind: ScriptKind) -> impl Iterator<Item = &Arc<Script>> {
        self.by_number.range((kind, 0)..=(kind, u64::MAX)).map(|(_, script)| script)
    }

    pub fn by_id(&self, kind: ScriptKind, id: &str) -> Option<&Arc<Script>> {
        self.by_id.get(&(kind, id.to_owned()))
    }

    pub fn by_number(&self, kind: ScriptKind, number: u64) -> Option<&Arc<Script>> {
        self.by_number.get(&(kind, number))
    }

    pub fn count(&self, kind: ScriptKind) -> usize {
        self.list(kind).count()
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Script>> {
        self.by_number.values()
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.by_number.keys().map(|(_, number)| *number)
    }

    pub(crate) fn insert(&mut self, script: Arc<Script>) {
        let kind = script.definition.kind;
        if let Some(old) = self.by_number.insert((kind, script.number), script.clone()) {
            self.by_id.remove(&(kind, old.definition.id.clone()));
        }
        self.by_id.insert((kind, script.definition.id.clone()), script);
    }

    pub(crate) fn remove(&mut self, script: &Script) {
        let kind = script.definition.kind;
        self.by_number.remove(&(kind, script.number));
        self.by_id.remove(&(kind, script.definition.id.clone()));
    }
}

impl ScriptDefinition {
    pub(crate) fn check(&self) -> Result<()> {
        crate::definition::names::check(&self.id)?;
        if self.body.len() > SCRIPT_BYTES_MAX {
            return Err(Error::new(Kind::TooLarge, "Request size is too large"));
        }
        if (self.kind == ScriptKind::Trigger) != self.trigger.is_some() {
            return Err(Error::internal("Triggers, and only they, say when they run."));
        }
        Ok(())
    }
}
