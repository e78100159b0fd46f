//! Who may do what, for every API: principals, what has been granted to them, and the one function that decides.
//!
//! ```text
//! credentials ── an api ── Principal ┐
//! request ────── an api ── Demand, Subject ┴── permit ── Limits ── keys, scopes and ids of the request
//!                                                └────── Denied
//! ```
//!
//! - `keys`: the four keys of the account, and which of them only read.
//! - `users`: users and their permissions, as the catalog keeps them.
//! - `resource`: what a grant or a request is about, as a typed value.
//! - `grant`: what a permission has granted to whoever holds its token.
//! - `resource_token`: grants as bytes that the account has signed.
//! - `permit`: whether a principal may do something, and within which limits.
//! - `limits`: what is still restricted after that.
//!
//! How a credential travels (a signed header, a password, a text with a token in it) and how a refusal is worded are
//! matters of each API; what it means is decided here and nowhere else.

mod grant;
mod keys;
mod limits;
mod permit;
mod resource;
mod resource_token;
mod users;

pub use grant::Grant;
pub use keys::{AccountKeys, KeySlot};
pub use limits::{Denied, Limits};
pub use permit::{Demand, Principal, Reach, Subject, permit};
pub use resource::{Part, Resource, ResourceId, ResourceName};
pub use resource_token::{
    ResourceToken, ResourceTokens, TOKEN_LIFETIME_S, TOKEN_LIFETIME_S_DEFAULT, TokenRefused,
};
pub use users::{
    PERMISSION_KEY_BYTES_MAX, PERMISSIONS_MAX, Permission, PermissionDefinition, PermissionMode,
    RESOURCE_BYTES_MAX, USERS_MAX, User,
};
pub(crate) use users::{Users, key_bytes};
