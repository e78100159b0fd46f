//! The database: catalog, routing, partitions, transactions, change feed, charges.
//!
//! An [`Account`] holds everything one server serves: databases, their containers, and for each container the
//! physical partitions that own a range of its hash space. It knows no protocol and no async runtime: reads run on
//! the caller's thread against a snapshot where the partition is here, writes hand back a future that any executor can
//! await, and time and randomness come from an [`Env`].
//!
//! ```text
//! Account ── catalog snapshot ── Database ── Container ── routing by hash ── PartitionRef ── Partition ── Space
//! ```
//!
//! - `account`, `catalog/`, `offer`: what exists, durably, and who changes it.
//! - `access/`: users and permissions, resource tokens, and who may do what.
//! - `encryption_key`: the wrapped keys of clients that encrypt.
//! - `definition/`: what a container is: every policy parsed, validated and defaulted.
//! - `container`, `ranges`: a handle with routing; items, feeds, batches and queries go through it.
//! - `call/`: the calls of partitions as data, answered here or elsewhere. `condition`: the conditions of patches, as
//!   data.
//! - `script_call`: scripts over a logical partition, run by a host that the account is given.
//! - `change_feed`: changes since a point, over all partitions of a scope.
//! - `split/`: partitions that become two, or one again, while they serve.
//! - `outages`: what is shown of a store that goes away and comes back.
//! - `faults/`: errors, delays and losses on purpose, for users' tests.
//! - `throughput/`: budgets of request units, and what partitions have spent.
//! - `partition/`, `item`, `attachment`, `feed`, `batch`, `script`, `charge`: one physical partition, what happens
//!   inside and what it costs.
//! - `query/`, `columns/`: queries over one partition and over several, and columns of items in memory.
//! - `consistency`, `error`: what a request may ask for, and what can go wrong, for every API to map.
//! - `sweeper`, `check`: what goes on in the background, and looking for damage and mending it.

pub mod access;
pub mod account;
pub mod attachment;
pub mod batch;
mod block_on;
mod call;
mod catalog;
pub mod change_feed;
pub mod charge;
mod check;
mod columns;
pub mod condition;
pub mod config;
pub mod consistency;
pub mod container;
pub mod definition;
pub mod encryption_key;
pub mod env;
pub mod error;
pub mod etag;
pub mod faults;
pub mod feed;
pub mod item;
pub mod item_rules;
pub mod offer;
pub mod outages;
mod partition;
pub mod query;
pub mod query_host;
mod ranges;
mod routing;
pub mod script;
pub mod script_call;
pub mod split;
pub mod sweeper;
#[doc(hidden)]
pub mod testing;
pub mod throughput;

pub use access::{
    AccountKeys, PERMISSIONS_MAX, Permission, PermissionDefinition, PermissionMode, RESOURCE_BYTES_MAX,
    USERS_MAX, User,
};
pub use account::{Account, Database, DatabaseIdentity, Ref};
pub use attachment::{
    Attachment, AttachmentChange, AttachmentContent, AttachmentName, MEDIA_BYTES_MAX, Media,
};
pub use batch::*;
pub use block_on::block_on;
pub use catalog::{CONTAINERS_MAX, DATABASES_MAX, PARTITIONS_MAX, SHARED_CONTAINERS_MAX};
pub use change_feed::{
    ChangeFeedFailure, ChangeFeedPage, ChangeMode, ChangePositions, ChangeStart, FeedChange,
};
pub use check::{AccountCheck, Finding, Mending, SpaceOwner, has_catalog};
pub use condition::{CompiledCondition, Condition};
pub use config::{EngineConfig, PartitionCalls, Switch};
pub use consistency::ConsistencyLevel;
pub use container::{Container, ContainerCore, Usage};
pub use definition::{
    ComputedProperty, ContainerDefinition, ITEM_RULES_MAX, IndexingMode, IndexingPolicy, ItemRule, ItemRules,
    KeyKinds, LARGE_ITEM_BYTES_MAX, PathStep, PolicyCursor,
};
pub use encryption_key::{ENCRYPTION_KEYS_MAX, EncryptionKey, EncryptionKeyDefinition};
pub use env::{Env, SystemEnv, TestEnv};
pub use error::{Error, Kind, Result};
pub use etag::Etag;
pub use feed::*;
pub use item::*;
pub use item_rules::{CompiledRule, RuleHost};
pub use offer::{Level, Offer, OfferOwner, Throughput};
pub use orrery_storage::Durability;
pub use partition::{Draft, Drafted, Freshness, HeldContainer, Rewritten};
pub use query::{
    Costs, DistributedFailure, DistributedPosition, DistributedQuery, IndexUse, PageSink, PartitionQuery,
    QueryFailure, QueryInsight, QueryLimits, QueryMetrics, QueryOptions, QueryPage, QueryPosition,
    RESULT_CACHE_BYTES_MAX, Report, ResultCache, ResultCachePlace, Resuming, Share, StatementSource,
    StatementText, SystemOf, SystemProperties,
};
pub use query_host::{PlainHost, QueryHost, SQL_HOST, VersionMembers};
pub use ranges::RangeInfo;
pub use script::{Script, ScriptDefinition, ScriptKind, Scripts, TriggerOperation, TriggerTime};
pub use script_call::{
    LogicalPartition, ScriptAnswer, ScriptCall, ScriptFailure, ScriptFailureKind, ScriptFuture, ScriptHost,
    ScriptReply, ScriptStop, ScriptWork,
};
pub use throughput::{HotKey, LargeKey, PartitionInsight, RequestClass};
