//! What a query sees besides its text: the clock, the container's policies, and the system properties of each item.

use std::sync::Arc;

use orrery_engine::{Item, SQL_HOST, SYSTEM_PROPERTIES, SystemOf, SystemProperties};
use orrery_model::Value;
use orrery_query::{QueryEnv, RowView};

use crate::item_json::{write_etag, write_self};
use crate::rid::{ContainerRid, ascii};
use crate::scripts;
use crate::service::{Context, Target};
use crate::write::push_u64;

/// 100-nanosecond steps in a millisecond.
const TICKS_PER_MS: u64 = 10_000;

/// The clock and the dice; enough for queries over resources.
pub fn bare(context: &Context<'_>) -> QueryEnv {
    let env = context.account().env();
    let now_ticks = i64::try_from(env.now_ms().saturating_mul(TICKS_PER_MS)).unwrap_or(i64::MAX);
    let budget = Some((*context.budget).clone());
    QueryEnv { now_ticks, random_seed: env.random_u64(), budget, ..QueryEnv::default() }
}

/// The same with the policies of a container.
pub fn of_container(context: &Context<'_>, target: &Target) -> QueryEnv {
    let container = target.container.core();
    let QueryEnv { now_ticks, random_seed, budget, .. } = bare(context);
    QueryEnv {
        now_ticks,
        random_seed,
        budget,
        udfs: scripts::udfs::of_container(&context.service.scripts, container, &context.budget),
        ..container.definition().query_env()
    }
}

/// The system properties of a container's items, in the order in which they are printed.
pub struct WireSystem(pub ContainerRid);

/// All but the LSN, which queries do not see.
const COUNT: usize = SYSTEM_PROPERTIES.len() - 1;
const RID: usize = 0;
const SELF: usize = 1;
const ETAG: usize = 2;
const ATTACHMENTS: usize = 3;

impl SystemProperties for WireSystem {
    fn to_shared(&self) -> Arc<dyn SystemProperties> {
        Arc::new(WireSystem(self.0))
    }

    fn host(&self) -> &'static str {
        SQL_HOST
    }

    fn count(&self) -> usize {
        COUNT
    }

    fn name(&self, at: usize) -> &'static str {
        SYSTEM_PROPERTIES[at]
    }

    fn value(&self, item: &Item, at: usize) -> Value {
        match at {
            RID => Value::String(ascii(&self.0.item(item.number)).to_owned()),
            SELF => {
                let mut link = Vec::with_capacity(80);
                write_self(&mut link, &self.0, item.number);
                Value::String(ascii(&link).to_owned())
            }
            ETAG => Value::String(item.etag.to_string()),
            ATTACHMENTS => Value::String("attachments/".to_owned()),
            _ => Value::Number(orrery_model::Number::Int(i64::from(item.ts))),
        }
    }

    fn write_json(&self, item: &Item, at: usize, out: &mut Vec<u8>) {
        match at {
            RID => {
                out.push(b'"');
                out.extend_from_slice(&self.0.item(item.number));
                out.push(b'"');
            }
            SELF => {
                out.push(b'"');
                write_self(out, &self.0, item.number);
                out.push(b'"');
            }
            ETAG => write_etag(out, item.etag),
            ATTACHMENTS => out.extend_from_slice(b"\"attachments/\""),
            _ => push_u64(out, u64::from(item.ts)),
        }
    }
}

/// Calls `use_row` with an item and its system properties.
pub fn with_row<T>(rid: &ContainerRid, item: &Item, use_row: impl FnOnce(RowView<'_>) -> T) -> T {
    use_row(SystemOf { item, system: &WireSystem(*rid) }.row())
}
