//! How queries of this api see items, and what it does on the node that has a partition for those that came from
//! another.

use std::sync::Arc;

use orrery_budget::{Budget, IsGone, Limits, MemoryPool};
use orrery_engine::{ContainerCore, Item, QueryHost, SystemProperties};
use orrery_model::{Number, NumberStyle, Value};
use orrery_query::{QueryEnv, RowFormat};

use super::item_form::ItemForm;
use super::statement::query_env;

/// Under which this api is known to other nodes.
pub const HOST: &str = "mongo";

const ETAG: &str = "_etag";
const TS: &str = "_ts";

/// What queries see of an item besides its members.
pub struct DocumentSystem;

impl SystemProperties for DocumentSystem {
    fn to_shared(&self) -> Arc<dyn SystemProperties> {
        Arc::new(DocumentSystem)
    }

    fn host(&self) -> &'static str {
        HOST
    }

    fn count(&self) -> usize {
        2
    }

    fn name(&self, at: usize) -> &'static str {
        [ETAG, TS][at.min(1)]
    }

    fn value(&self, item: &Item, at: usize) -> Value {
        match at {
            0 => item.etag.to_string().into(),
            _ => Value::Number(Number::Int(i64::from(item.ts))),
        }
    }

    fn write_json(&self, item: &Item, at: usize, out: &mut Vec<u8>) {
        self.value(item, at).write_json(out, NumberStyle::Query);
    }
}

pub struct Host {
    pub memory: Arc<MemoryPool>,
    /// The most memory that one command may hold.
    pub memory_bytes: usize,
}

impl QueryHost for Host {
    fn env(&self, _: &Arc<ContainerCore>, _: &Budget) -> QueryEnv {
        query_env()
    }

    fn system(&self, _: &Arc<ContainerCore>) -> Arc<dyn SystemProperties> {
        Arc::new(DocumentSystem)
    }

    fn budget(&self, limits: Limits, is_gone: Option<IsGone>) -> Budget {
        let limits = Limits { memory_bytes: limits.memory_bytes.min(self.memory_bytes), ..limits };
        Budget::with(self.memory.clone(), limits, is_gone)
    }

    fn format(&self, name: &str) -> Option<&'static dyn RowFormat> {
        (name == ItemForm.name()).then_some(&ItemForm)
    }
}
