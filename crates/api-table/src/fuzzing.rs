//! For tests only: what decodes the bytes of clients, by itself.

use crate::continuation::{self, After};
use crate::date_time;
use crate::dialect::Dialect;
use crate::edm::EdmValue;
use crate::entity::Entity;
use crate::multipart;
use crate::names;
use crate::params::Params;
use crate::policies;
use crate::sas::{Circumstances, Token};
use crate::shared_key::SigningKey;
use crate::stored::{self, StoredEntity};
use crate::xml::Element;
use crate::{filter, routes};

/// A filter: read, turned into a query, compiled.
pub fn filter(text: &str) {
    if let Ok(filter) = filter::parse(text) {
        // What can be read can be run, unless it orders what has no order.
        let compiled = filter::compile(Some(&filter));
        assert!(compiled.is_ok() || compiled.is_err_and(|error| error.status().as_u16() == 501), "{text}");
    }
}

/// The body of a batch.
pub fn batch(content_type: &str, body: &[u8]) {
    if let Ok(batch) = multipart::parse(content_type, body) {
        assert!(batch.operations.len() <= multipart::OPERATIONS_MAX);
        for operation in &batch.operations {
            drop(Entity::parse(operation.body, Dialect::Storage));
        }
    }
}

/// A path, a query string with a signature and with tokens.
pub fn address(path: &str, query: &str) {
    if let Ok(routes::Resource::Entity(name)) = routes::parse(path) {
        drop(names::check_keys(&name.partition_key, &name.row_key, Dialect::Storage));
    }
    let _ = routes::under_account(path, "orrery");
    let params = Params::parse(query);
    if let Some(Ok(token)) = Token::parse(&params) {
        // Nobody signs without a key.
        assert!(!token.is_by(SigningKey::new(&[7; 32]).iter(), "orrery"));
        let circumstances =
            Circumstances { now_ticks: date_time::UNIX_EPOCH_TICKS, tls: false, peer: [127, 0, 0, 1].into() };
        drop(token.grant(&circumstances, None));
    }
    drop(After::decode("t", params.get("NextPartitionKey"), params.get("NextRowKey")));
    drop(params.get("NextTableName").map(continuation::decode_table));
}

/// An entity: read, kept, read back.
pub fn entity(body: &[u8]) {
    if let Ok(entity) = Entity::parse(body, Dialect::Cosmos) {
        let item = stored::write("p", "r", &entity);
        let document = orrery_model::Raw::document(&item).expect("just written");
        let kept = StoredEntity::of(document).expect("it has its key");
        let same = |left: &EdmValue<'_>, right: &EdmValue<'_>| {
            left == right
                || matches!((left, right), (EdmValue::Double(left), EdmValue::Double(right)) if left.is_nan() && right.is_nan())
        };
        assert_eq!(kept.properties().count(), entity.properties.len());
        for ((name, value), (kept_name, kept_value)) in entity.properties.iter().zip(kept.properties()) {
            assert!(name == kept_name && same(value, &kept_value), "{name}: {value:?} {kept_value:?}");
        }
    }
}

/// The documents of XML that clients send.
pub fn xml(text: &str) {
    drop(Element::parse(text));
    if let Ok(policies) = policies::parse(text.as_bytes()) {
        let again = policies::parse(policies::write(&policies).as_bytes()).expect("just written");
        assert_eq!(again, policies);
    }
}
