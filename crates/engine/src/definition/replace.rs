//! What a replace of a container may change, and what it must leave.

use serde_json::Value;

use super::{ContainerDefinition, RULES, policies, vector};
use crate::error::{Error, Kind, Result};

impl ContainerDefinition {
    /// The definition after a replace by `new`, or why it cannot be.
    ///
    /// A replace is whole: a policy that is left out is back at its default. Only the conflict policy stays when the
    /// default is sent or none: it can be set at creation alone, and most clients never mention it. So do the
    /// rules of apis where nothing is said of them.
    pub(crate) fn replaced_by(&self, mut new: ContainerDefinition) -> Result<ContainerDefinition> {
        if self.id != new.id {
            return Err(Error::bad_request("Document collection id cannot be changed."));
        }
        if self.partition_key != new.partition_key {
            return Err(Error::bad_request("Document collection partition key cannot be changed."));
        }
        if self.unique_keys != new.unique_keys {
            return Err(Error::new(
                Kind::Forbidden,
                "The unique index cannot be modified. To change the unique index, remove the collection and re-create a new one.",
            ));
        }
        vector::check_replace(
            (&self.vector_embeddings, &self.indexing.vector),
            (&new.vector_embeddings, &new.indexing.vector),
        )?;
        if self.json.get("clientEncryptionPolicy") != new.json.get("clientEncryptionPolicy") {
            return Err(Error::bad_request(
                "'clientEncryptionPolicy' cannot be changed as part of collection replace operation.",
            ));
        }
        self.keep_conflict_resolution(&mut new)?;
        if let (Some(rules), Some(old)) = (&mut new.rules, &self.rules)
            && rules.next < old.next
            && let Value::Object(json) = &mut new.json
        {
            rules.next = old.next;
            json.insert(RULES.to_owned(), rules.to_json());
        }
        if new.rules.is_none()
            && let (Some(rules), Value::Object(json)) = (&self.rules, &mut new.json)
        {
            json.insert(RULES.to_owned(), rules.to_json());
            new.rules = Some(rules.clone());
        }
        Ok(new)
    }

    fn keep_conflict_resolution(&self, new: &mut ContainerDefinition) -> Result<()> {
        const NAME: &str = "conflictResolutionPolicy";
        if self.json.get(NAME) == new.json.get(NAME) {
            return Ok(());
        }
        if new.json.get(NAME) != Some(&policies::default_conflict_resolution()) {
            return Err(Error::bad_request(
                "The conflict resolution policy of a collection cannot be modified.",
            ));
        }
        if let (Value::Object(json), Some(old)) = (&mut new.json, self.json.get(NAME)) {
            json.insert(NAME.to_owned(), old.clone());
        }
        Ok(())
    }
}
