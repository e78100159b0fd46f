//! The one item that a filter names by partition key and id. Its row is looked up, and no index is asked for it.

use orrery_index::{decode, is_exact};
use orrery_model::{KeyComponent, PartitionKey, Value};
use orrery_query::pushdown::{Filter, Step};
use orrery_storage::keys;

use super::{Candidate, ItemReader};
use crate::partition::Span;

impl ItemReader<'_> {
    /// The only candidate of a filter that fixes partition key and id; `None` where it does not.
    pub fn named(&mut self) -> Option<Vec<Candidate>> {
        let Value::String(id) = fixed_at(self.filter, &["id"])? else { return None };
        let definition = &self.view.definition().partition_key;
        let component = |path: &[String]| match fixed_at(self.filter, path)? {
            Value::String(text) => Some(KeyComponent::String(text.to_string())),
            Value::Bool(value) => Some(KeyComponent::Bool(value)),
            // Equal numbers may be two keys: 0.0 and -0.0.
            _ => None,
        };
        let components = definition.paths.iter().map(|path| component(path.segments()));
        let key = PartitionKey(components.collect::<Option<_>>()?);
        let epk = definition.effective(&key);
        let within = match self.query.span {
            Span::All => true,
            Span::Epk { min, max } => (min..max).contains(&&epk),
            // A part of a key holds many.
            Span::Key { key: wanted, .. } if wanted.0.len() != key.0.len() => return None,
            Span::Key { key: wanted, .. } => *wanted == key,
        };
        let mut encoded = Vec::new();
        key.encode(&mut encoded);
        let item = keys::item(epk.as_bytes(), &encoded, id.as_bytes());
        let reference = keys::index::reference(epk.as_bytes(), &item).into();
        let found: Vec<Candidate> =
            within.then_some(Candidate { reference, uncertain: true }).into_iter().collect();
        self.report.candidates(found.len() as u64);
        Some(found)
    }
}

/// The one value that a filter leaves at a place, if an entry tells it whole.
fn fixed_at(filter: &Filter, path: &[impl AsRef<str>]) -> Option<Value> {
    match filter {
        Filter::Scan(scan) => {
            let steps = scan.place.0.iter().zip(path);
            let there = scan.place.0.len() == path.len()
                && steps
                    .into_iter()
                    .all(|(step, name)| matches!(step, Step::Name(step) if step == name.as_ref()));
            match scan.ranges.as_slice() {
                [range] if there && range.is_point() && is_exact(&range.start) => decode(&range.start),
                _ => None,
            }
        }
        Filter::All(parts) => parts.iter().find_map(|part| fixed_at(part, path)),
        _ => None,
    }
}
