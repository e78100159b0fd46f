//! Who asks, and what of it is granted.
//!
//! A caller is recognised by a signature before anything is looked up; what it may do is decided here for every
//! action, also for each operation of a batch.

use orrery_engine::Account;

use crate::actions::Action;
use crate::dialect::Dialect;
use crate::errors::{Code, Result};
use crate::resource_token::Bearer;
use crate::routes::Resource;
use crate::sas::{Grant, KeyRange};

#[derive(Debug, Clone, PartialEq)]
pub enum Caller {
    /// A key of the account.
    Key {
        read_only: bool,
    },
    Signature(Grant),
    /// The holder of a resource token.
    Bearer(Bearer),
}

impl Caller {
    /// Refuses an action on a resource that the caller may not do.
    pub async fn permits(
        &self,
        account: &Account,
        action: Action,
        resource: &Resource,
        dialect: Dialect,
    ) -> Result<()> {
        match self {
            Caller::Bearer(bearer) => bearer.permits(account, action, resource, dialect).await,
            _ => self.permits_by_signature(action, resource.table()),
        }
    }

    /// The same of callers who have signed. `table` is the one that the request names.
    fn permits_by_signature(&self, action: Action, table: Option<&str>) -> Result<()> {
        match self {
            // Judged with what it is about at hand.
            Caller::Bearer(_) => Err(Code::AuthorizationFailure.into()),
            Caller::Key { read_only: false } => Ok(()),
            Caller::Key { read_only: true } if action.is_read() || action == Action::Batch => Ok(()),
            Caller::Key { read_only: true } => Err(Code::InsufficientAccountPermissions.into()),
            Caller::Signature(Grant::Account { permissions, service, container, object }) => {
                let (kind, granted) = match action {
                    Action::ReadProperties | Action::ReadStatistics => (*service, permissions.has("r")),
                    Action::SetProperties => (*service, permissions.has("w")),
                    Action::ListTables => (*container, permissions.has_any("lr")),
                    Action::ReadTable => (*container, permissions.has_any("lr")),
                    Action::CreateTable => (*container, permissions.has_any("cw")),
                    Action::DeleteTable => (*container, permissions.has("d")),
                    // Policies decide what signatures are good for, so no signature reads or sets them.
                    Action::ReadPolicies | Action::SetPolicies => {
                        return Err(Code::AuthorizationFailure.into());
                    }
                    Action::Preflight | Action::Batch => (true, true),
                    _ => (*object, granted_entity(action, |letters| permissions.has(letters))),
                };
                match (kind, granted) {
                    (false, _) => Err(Code::AuthorizationResourceTypeMismatch.into()),
                    (_, false) => Err(Code::AuthorizationPermissionMismatch.into()),
                    _ => Ok(()),
                }
            }
            Caller::Signature(Grant::Table { table: granted, permissions, .. }) => {
                if action == Action::Batch {
                    return Ok(());
                }
                let on_table = table.is_some_and(|table| table.to_lowercase() == *granted);
                let of_entities = matches!(
                    action,
                    Action::InsertEntity
                        | Action::ReadEntity
                        | Action::QueryEntities
                        | Action::ReplaceEntity
                        | Action::InsertOrReplaceEntity
                        | Action::MergeEntity
                        | Action::InsertOrMergeEntity
                        | Action::DeleteEntity
                );
                match on_table && of_entities {
                    false => Err(Code::AuthorizationFailure.into()),
                    true if granted_entity(action, |letters| permissions.has(letters)) => Ok(()),
                    true => Err(Code::AuthorizationPermissionMismatch.into()),
                }
            }
        }
    }

    /// Refuses an entity outside of what is granted.
    pub fn permits_entity(&self, partition_key: &str, row_key: &str) -> Result<()> {
        match self.range() {
            Some(range) if !range.holds(partition_key, row_key) => Err(Code::AuthorizationFailure.into()),
            _ => Ok(()),
        }
    }

    /// The part of the table that is granted, if it is not all of it.
    pub fn range(&self) -> Option<&KeyRange> {
        match self {
            Caller::Signature(Grant::Table { range, .. }) | Caller::Bearer(Bearer { range, .. })
                if !range.is_everything() =>
            {
                Some(range)
            }
            _ => None,
        }
    }
}

/// Whether letters grant an action on an entity. What may insert and may replace needs both.
fn granted_entity(action: Action, has: impl Fn(&str) -> bool) -> bool {
    match action {
        Action::ReadEntity | Action::QueryEntities => has("r"),
        Action::InsertEntity => has("a"),
        Action::ReplaceEntity | Action::MergeEntity => has("u"),
        Action::InsertOrReplaceEntity | Action::InsertOrMergeEntity => has("au"),
        Action::DeleteEntity => has("d"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sas::Permissions;

    const ENTITY_ACTIONS: [Action; 8] = [
        Action::ReadEntity,
        Action::QueryEntities,
        Action::InsertEntity,
        Action::ReplaceEntity,
        Action::MergeEntity,
        Action::InsertOrReplaceEntity,
        Action::InsertOrMergeEntity,
        Action::DeleteEntity,
    ];

    fn table_grant(letters: &str) -> Caller {
        Caller::Signature(Grant::Table {
            table: "people".into(),
            permissions: Permissions::parse(letters),
            range: KeyRange::default(),
        })
    }

    #[test]
    fn a_table_signature_opens_entities_of_its_table_by_letter() {
        for (letters, expected) in [("r", 2), ("a", 1), ("u", 2), ("d", 1), ("au", 5), ("raud", 8), ("", 0)] {
            let caller = table_grant(letters);
            let permitted = ENTITY_ACTIONS
                .iter()
                .filter(|action| caller.permits_by_signature(**action, Some("People")).is_ok());
            assert_eq!(permitted.count(), expected, "{letters}");
            assert!(
                ENTITY_ACTIONS
                    .iter()
                    .all(|action| caller.permits_by_signature(*action, Some("other")).is_err())
            );
            for other in [Action::ListTables, Action::DeleteTable, Action::SetPolicies, Action::SetProperties]
            {
                assert!(caller.permits_by_signature(other, Some("people")).is_err());
            }
        }
    }

    #[test]
    fn an_account_signature_opens_its_kinds_of_resources() {
        let caller = |letters: &str, kinds: &str| {
            Caller::Signature(Grant::Account {
                permissions: Permissions::parse(letters),
                service: kinds.contains('s'),
                container: kinds.contains('c'),
                object: kinds.contains('o'),
            })
        };
        let code = |caller: Caller, action| {
            caller.permits_by_signature(action, Some("t")).map_or_else(|error| error.code.name(), |()| "ok")
        };
        assert_eq!(code(caller("r", "o"), Action::QueryEntities), "ok");
        assert_eq!(code(caller("r", "sc"), Action::QueryEntities), "AuthorizationResourceTypeMismatch");
        assert_eq!(code(caller("a", "o"), Action::QueryEntities), "AuthorizationPermissionMismatch");
        assert_eq!(code(caller("c", "c"), Action::CreateTable), "ok");
        assert_eq!(code(caller("l", "c"), Action::ListTables), "ok");
        assert_eq!(code(caller("r", "s"), Action::ReadProperties), "ok");
        assert_eq!(code(caller("rwdlacup", "sco"), Action::SetPolicies), "AuthorizationFailure");
    }

    #[test]
    fn a_read_only_key_reads() {
        let caller = Caller::Key { read_only: true };
        assert!(caller.permits_by_signature(Action::QueryEntities, Some("t")).is_ok());
        assert!(caller.permits_by_signature(Action::InsertEntity, Some("t")).is_err());
        assert!(caller.permits_by_signature(Action::DeleteTable, Some("t")).is_err());
    }
}
