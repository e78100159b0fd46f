//! Resource tokens, which the NoSQL API hands out for permissions, where they are about tables.
//!
//! ```text
//! Authorization: type=resource&ver=1&sig=<signature>;<payload>;    as it stands in the permission, or percent-encoded
//! ```
//!
//! A permission for a container of `TablesDB` opens the table, one with a partition key the entities under it, one
//! for an item that entity. What a token grants and whether it covers an action is decided by the engine's `access`;
//! here is what actions and addresses of this protocol mean there.
//!
//! | granted | mode | reaches |
//! |---|---|---|
//! | container | Read | the table, point reads, queries |
//! | container | All | the same, all changes and batches, and deleting the table |
//! | container, key | either | the same of the entities under the key, not the table itself |
//! | item | Read, All | reading the entity; with All also replacing, merging and deleting it, but not making it anew |

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_engine::access::{
    self, AccountKeys, Demand, Grant, Part, Principal, Reach, Resource, ResourceName, ResourceToken,
    ResourceTokens, Subject,
};
use orrery_engine::{Account, Ref};
use orrery_model::KeyComponent;
use percent_encoding::percent_decode_str;

use crate::actions::Action;
use crate::config::{DATABASE, TableKeys};
use crate::dialect::Dialect;
use crate::errors::{Code, Result, TableError};
use crate::routes::{self, EntityName};
use crate::sas::KeyRange;
use crate::service_store::key;
use crate::{stored, tables};

/// A token is some hundred bytes long, and twice as many where names are.
const TOKEN_BYTES_MAX: usize = 16 * 1024;

/// The holder of a token.
#[derive(Debug, Clone, PartialEq)]
pub struct Bearer {
    principal: Principal,
    /// The entities under the granted key.
    pub range: KeyRange,
}

/// What checks the tokens of an account.
pub fn tokens(keys: &TableKeys, account: &Account, clock_skew_s: u64) -> ResourceTokens {
    let full = |at: usize| keys.full.get(at).cloned().unwrap_or_default();
    let keys = AccountKeys { primary: full(0), secondary: full(1), ..AccountKeys::default() };
    ResourceTokens::new(&keys, account.number(), clock_skew_s)
}

/// Who sent a token, if the header holds one.
pub fn recognise(header: &str, tokens: &ResourceTokens, now_ms: u64) -> Option<Result<Bearer>> {
    let failed = || TableError::from(Code::AuthenticationFailed);
    let decoded = match header.len() <= TOKEN_BYTES_MAX {
        true => percent_decode_str(header.trim()).decode_utf8().ok()?,
        false => return None,
    };
    let (kind, rest) = decoded.strip_prefix("type=")?.split_once('&')?;
    if !kind.eq_ignore_ascii_case("resource") {
        return None;
    }
    let token = rest.split_once("&sig=").and_then(|(_, text)| read(text));
    Some(token.ok_or_else(failed).and_then(|token| {
        let grant = tokens.verify(&token, now_ms).map_err(|_| failed())?;
        Bearer::of(grant).ok_or_else(|| Code::AuthorizationFailure.into())
    }))
}

fn read(text: &str) -> Option<ResourceToken> {
    // Some clients cut the last semicolon off.
    let (signature, payload) = text.strip_suffix(';').unwrap_or(text).split_once(';')?;
    let (signature, payload) = (STANDARD.decode(signature).ok()?, STANDARD.decode(payload).ok()?);
    Some(ResourceToken { signature, payload })
}

impl Bearer {
    /// `None` for a grant under a key that no entity has.
    fn of(grant: Grant) -> Option<Bearer> {
        let range = match grant.partition_key.as_ref().map(|key| key.0.as_slice()) {
            None | Some([]) => KeyRange::default(),
            Some([KeyComponent::String(key)]) => {
                let end = Some((key.clone(), None));
                KeyRange { start: end.clone(), end }
            }
            Some(_) => return None,
        };
        Some(Bearer { principal: Principal::Granted(Box::new(grant)), range })
    }

    /// Refuses what the token does not cover, before anything is looked for. An insert brings its keys in its body:
    /// they are held against the range where they are read.
    pub async fn permits(
        &self,
        account: &Account,
        action: Action,
        resource: &routes::Resource,
        dialect: Dialect,
    ) -> Result<()> {
        let denied = || TableError::from(Code::AuthorizationFailure);
        let Some(reach) = reach(action) else { return Ok(()) };
        let Some(table) = resource.table() else { return Err(denied()) };
        let entity = match resource {
            routes::Resource::Entity(name) => Some(name),
            _ => None,
        };
        let demand = Demand { reach, reads: action.is_read() };
        let subject = || subject(meant(account, table, dialect), entity);
        let permitted = access::permit(account, &self.principal, demand, subject).await;
        permitted.map(drop).map_err(|_| denied())
    }
}

/// What an action comes near; `None` for batches, whose operations are judged one by one.
fn reach(action: Action) -> Option<Reach> {
    Some(match action {
        Action::Batch => return None,
        Action::ReadTable => Reach::Properties,
        Action::DeleteTable => Reach::Container,
        Action::QueryEntities => Reach::Feed,
        Action::ReadEntity | Action::ReplaceEntity | Action::MergeEntity | Action::DeleteEntity => {
            Reach::OneItem
        }
        Action::InsertOrReplaceEntity | Action::InsertOrMergeEntity => Reach::UnderKey,
        Action::InsertEntity => Reach::Batch,
        // Policies decide what signatures are good for.
        Action::ListTables
        | Action::CreateTable
        | Action::ReadPolicies
        | Action::SetPolicies
        | Action::ReadProperties
        | Action::SetProperties
        | Action::ReadStatistics
        | Action::Preflight => Reach::Keys,
    })
}

/// The name of the table that a request means: storage does not tell names apart by case, grants do.
fn meant(account: &Account, table: &str, dialect: Dialect) -> String {
    let exact =
        account.database(Ref::Name(DATABASE)).and_then(|database| database.container(Ref::Name(table)));
    match exact {
        Ok(_) => table.to_owned(),
        Err(_) => tables::find(account, table, dialect)
            .map_or_else(|_| table.to_owned(), |found| found.name().to_owned()),
    }
}

fn subject(table: String, entity: Option<&EntityName>) -> Subject<'_> {
    let part = entity.map_or(Part::Whole, |name| Part::Item(ResourceName::plain(stored::id(&name.row_key))));
    Subject {
        resource: Resource {
            database: ResourceName::plain(DATABASE),
            container: ResourceName::plain(table),
            part,
        },
        key: entity.map(|name| key(&name.partition_key)),
        item_at: None,
        // Queries are held to the range of the bearer.
        has_scope: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_token_is_left_to_others_and_what_is_none_of_ours_is_refused() {
        let tokens = ResourceTokens::new(&AccountKeys::default(), 1, 900);
        let outcome = |header: &str| match recognise(header, &tokens, 0) {
            None => "none",
            Some(Err(error)) => error.code.name(),
            Some(Ok(_)) => "known",
        };
        for (header, expected) in [
            ("", "none"),
            ("SharedKey a:b", "none"),
            ("type=master&ver=1.0&sig=AAAA", "none"),
            ("type=resource", "none"),
            ("type%3Dresource%26ver%3D1%26sig%3D", "AuthenticationFailed"),
            ("type=resource&ver=1", "AuthenticationFailed"),
            ("type=resource&ver=1&sig=!!;!!;", "AuthenticationFailed"),
            ("type=resource&ver=1&sig=AAAA;AAAA;", "AuthenticationFailed"),
            ("type=resource&ver=1&sig=AAAA;AAAA", "AuthenticationFailed"),
            ("%FF", "none"),
        ] {
            assert_eq!(outcome(header), expected, "{header}");
        }
        assert_eq!(outcome(&"x".repeat(TOKEN_BYTES_MAX + 1)), "none");
    }
}
