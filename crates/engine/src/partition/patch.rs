//! Patching: from the stored version and a list of operations to the next version.
//!
//! What each operation does to a document is the model's business. Here are the rules around it: how many there may be,
//! what they may not touch, and that the result is checked like any document. Members that a patch adds at the top
//! level are counted, because answers print them after the system properties; they stay there until they are removed
//! or the item is replaced whole.

use orrery_model::{PatchOp, PropertyPath, apply_patch_from};

use super::content::Content;
use super::item_key::ItemKey;
use super::{Partition, Settings};
use crate::error::{Error, Result};
use crate::item::{Item, PATCH_OPERATIONS_MAX, is_system_property};

const MORE: &str = "Learn more: https://aka.ms/cosmosdbpatchdocs";

impl Partition {
    pub(super) fn patched(
        &self,
        settings: &Settings,
        target: &ItemKey,
        old: &Item,
        operations: &[PatchOp],
    ) -> Result<Content> {
        check(operations, &settings.definition.partition_key.paths)?;
        let body_members = old.body().len().saturating_sub(usize::from(old.late_members));
        let patched = apply_patch_from(&old.document, body_members, operations)
            .map_err(|error| Error::bad_request(format!("{error} {MORE}")))?;
        let mut content = self.content(settings, target, patched.document.into())?;
        content.late_members = u16::try_from(patched.appended).unwrap_or(u16::MAX);
        Ok(content)
    }
}

/// Refuses patches that touch the item's identity or what the server itself writes.
fn check(operations: &[PatchOp], partition_key: &[PropertyPath]) -> Result<()> {
    if operations.is_empty() {
        return Err(Error::bad_request("The patch request has no operations."));
    }
    if operations.len() > PATCH_OPERATIONS_MAX {
        return Err(Error::bad_request(format!(
            "The number of patch operations can't exceed '{PATCH_OPERATIONS_MAX}'."
        )));
    }
    for (index, operation) in operations.iter().enumerate() {
        let (path, from) = match operation {
            PatchOp::Add { path, .. }
            | PatchOp::Set { path, .. }
            | PatchOp::Replace { path, .. }
            | PatchOp::Remove { path }
            | PatchOp::Increment { path, .. } => (path, None),
            PatchOp::Move { from, path } => (path, Some(from)),
        };
        for pointer in std::iter::once(path).chain(from) {
            let segments = pointer.segments();
            // A key is also changed by replacing an object around it.
            let around = |property: &PropertyPath| property.segments().starts_with(segments);
            let protected = match segments.first() {
                Some(first) if first == "id" || is_system_property(first) => true,
                _ => partition_key
                    .iter()
                    .any(|property| around(property) || segments.starts_with(property.segments())),
            };
            if protected {
                return Err(Error::bad_request(format!(
                    "For Operation({}): The path '{pointer}' is an id, a partition key or a system property, which \
                     cannot be patched. {MORE}",
                    index + 1
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_model::{Pointer, Value};

    fn refused(path: &str, partition_key: &str) -> bool {
        let path = Pointer::parse(path).unwrap();
        let operation = PatchOp::Set { path, value: Value::Null };
        check(&[operation], &[PropertyPath::parse(partition_key).unwrap()]).is_err()
    }

    #[test]
    fn identity_and_system_properties_are_out_of_reach() {
        for path in ["/id", "/_rid", "/_ts", "/_etag/x", "/pk", "/pk/deep"] {
            assert!(refused(path, "/pk"), "{path}");
        }
        assert!(refused("/a", "/a/b"), "replacing what is around a key replaces the key");
        for path in ["/a/c", "/identity", "/x/id", "/ts", "/ttl"] {
            assert!(!refused(path, "/a/b"), "{path}");
        }
    }
}
