//! Request units: what an operation costs, as a pure function of what it did.
//!
//! Charges are counted in steps `U`, and `RU = U / 1.05`. Writing a version costs 5.2 U times its size step and 0.2 U
//! for each index term; an update pays for taking the old version out and putting the new one in, but only for the
//! terms that differ. Failing costs too: a refused create a quarter of the create, any other refused write a quarter
//! of a bare write.
//!
//! Worked example, the default policy: creating `{"id":"d1","pk":"a","n":1,"s":"x1"}` makes two terms for each of the four
//! scalars and one for the time of the write: `(5.2 + 0.2 * 9) / 1.05 = 6.67 RU`. Replacing `n` and `s` takes two
//! values and a time out and puts as many in: `(10.4 + 0.2 * 6) / 1.05 = 11.05 RU`.
//!
//! Terms of a document, as far as the policy includes them:
//! - a scalar, an empty array or an empty object: one for the path, one for the value;
//! - an array or object with content: one at the top level, two below;
//! - each composite index: one for each of its paths, whether the item has them or not;
//! - the time of the write: one, and it always changes, but is paid once per commit: a batch that touches an item again
//!   does not pay for it again.
//!
//! Elements of an array share their path. Terms are compared as 64-bit hashes: a collision would cost a client a fifth
//! of a unit less, and nothing else.

use orrery_model::{Kind, Raw};

use crate::definition::{ContainerDefinition, IndexingMode, PolicyCursor};

const U_PER_RU: f64 = 1.05;
const WRITE_U: f64 = 5.2;
const TERM_U: f64 = 0.2;
/// What each unique key adds to storing or removing its values.
const UNIQUE_KEY_U: f64 = 1.16;
/// What planning an expiry adds.
const EXPIRY_U: f64 = 0.24;
/// What a patch costs more than the replace it amounts to, and what each of its operations adds.
const PATCH_U: f64 = 0.3;
const PATCH_OPERATION_U: f64 = 4.9 / 159.0;
const REFUSED: f64 = 0.25;

/// A read that finds nothing, an unchanged item, an empty page of changes.
pub const LOOK_UP_RU: f64 = 1.0;
/// A write that was refused for any reason but a taken id or unique key.
pub const REFUSED_WRITE_RU: f64 = WRITE_U * REFUSED / U_PER_RU;

/// Published costs by size: KB, RU of a point read, RU of a write before index terms.
const SIZES: [(f64, f64, f64); 12] = [
    (1.0, 1.00, 4.95),
    (2.0, 1.04, 6.29),
    (4.0, 1.14, 6.67),
    (8.0, 1.33, 7.04),
    (16.0, 1.67, 9.52),
    (32.0, 2.19, 11.23),
    (64.0, 4.76, 22.67),
    (128.0, 9.95, 48.19),
    (256.0, 20.28, 98.29),
    (512.0, 40.95, 184.57),
    (1024.0, 145.90, 625.00),
    (2048.0, 291.80, 1250.00),
];

/// The index terms of one version, sorted, and what it pays for besides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    hashes: Vec<u64>,
    /// Whether the time of the write is indexed.
    timed: bool,
}

impl Terms {
    pub fn of(definition: &ContainerDefinition, document: Raw<'_>) -> Terms {
        let policy = &definition.indexing;
        if policy.mode == IndexingMode::None {
            return Terms::default();
        }
        let mut hashes = Vec::with_capacity(32);
        let cursor = policy.cursor();
        for (name, value) in document.members() {
            collect(value, hash(ROOT, name.as_bytes()), 1, cursor.name(name), &mut hashes);
        }
        for (index, composite) in policy.composite.iter().enumerate() {
            let mut term = hash(COMPOSITE, &index.to_le_bytes());
            for part in composite {
                term = mix(term, value_hash(document.path(&part.path)));
            }
            hashes.extend((0..composite.len() as u64).map(|path| mix(term, path)));
        }
        hashes.sort_unstable();
        hashes.dedup();
        Terms { hashes, timed: cursor.name("_ts").indexes_scalar() }
    }

    /// Without the time of the write, for a version that was written in the same commit before.
    pub fn untimed(mut self) -> Terms {
        self.timed = false;
        self
    }

    pub fn count(&self) -> usize {
        self.hashes.len() + usize::from(self.timed)
    }

    /// Terms that must be taken out and put in to get from one version to the next.
    pub fn changes(&self, next: &Terms) -> usize {
        let (mut old, mut new) = (self.hashes.iter().peekable(), next.hashes.iter().peekable());
        let mut changes = usize::from(self.timed) + usize::from(next.timed);
        loop {
            match (old.peek(), new.peek()) {
                (Some(a), Some(b)) if a == b => {
                    old.next();
                    new.next();
                    continue;
                }
                (Some(a), Some(b)) if a < b => drop(old.next()),
                (Some(_), None) => drop(old.next()),
                (_, Some(_)) => drop(new.next()),
                (None, None) => return changes,
            }
            changes += 1;
        }
    }
}

const ROOT: u64 = 1;
const COMPOSITE: u64 = 2;
const EXISTS: u64 = 3;
const VALUE: u64 = 4;
const NODE: u64 = 5;
const DEEP_NODE: u64 = 6;
const ELEMENT: u64 = 7;

fn collect(value: Raw<'_>, path: u64, depth: usize, cursor: PolicyCursor<'_>, terms: &mut Vec<u64>) {
    let holds_more = matches!(value.kind(), Kind::Object | Kind::Array) && !value.is_empty();
    if !holds_more {
        if cursor.indexes_scalar() {
            terms.push(mix(path, EXISTS));
            terms.push(mix(mix(path, VALUE), value_hash(Some(value))));
        }
        return;
    }
    if depth > orrery_model::DEPTH_MAX || !cursor.indexes_inside() {
        return;
    }
    terms.push(mix(path, NODE));
    if depth > 1 {
        terms.push(mix(path, DEEP_NODE));
    }
    if value.kind() == Kind::Array {
        let cursor = cursor.element();
        for element in value.elements() {
            collect(element, mix(path, ELEMENT), depth + 1, cursor, terms);
        }
    } else {
        for (name, member) in value.members() {
            collect(member, hash(path, name.as_bytes()), depth + 1, cursor.name(name), terms);
        }
    }
}

fn value_hash(value: Option<Raw<'_>>) -> u64 {
    let Some(value) = value else { return 10 };
    match value.kind() {
        Kind::Null => 11,
        Kind::Bool => 12 + u64::from(value.as_bool() == Some(true)),
        Kind::Number => mix(14, value.as_number().map_or(0.0, |number| number.as_f64()).to_bits()),
        Kind::String => hash(15, value.string_bytes().unwrap_or_default()),
        Kind::Array => 16,
        Kind::Object => 17,
        _ => 18,
    }
}

fn hash(seed: u64, bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let state =
        words.iter().fold(seed ^ bytes.len() as u64, |state, word| mix(state, u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(state, u64::from_le_bytes(last))
}

/// Folds the product of the two halves; enough to tell terms of one item apart.
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a ^ 0x9E37_79B9_7F4A_7C15) * u128::from(b ^ 0xE703_7ED1_A0B4_28DB);
    (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ a
}

/// One version of an item, as far as its cost goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Version {
    pub size_bytes: usize,
    pub terms: Terms,
    pub unique_keys: usize,
    /// The item has a time to live of its own that is in force.
    pub expires: bool,
}

impl Version {
    fn bare_u(&self) -> f64 {
        let extra = if self.expires { EXPIRY_U } else { 0.0 };
        WRITE_U * write_step(self.size_bytes) + UNIQUE_KEY_U * self.unique_keys as f64 + extra
    }
}

/// A point read of an item of this size.
pub fn read(size_bytes: usize) -> f64 {
    by_size(size_bytes, |(_, read, _)| *read)
}

pub fn create(new: &Version) -> f64 {
    (new.bare_u() + TERM_U * new.terms.count() as f64) / U_PER_RU
}

/// Taking a version out costs what putting it in did.
pub fn delete(old: &Version) -> f64 {
    create(old)
}

pub fn replace(old: &Version, new: &Version) -> f64 {
    replace_u(old, new) / U_PER_RU
}

pub fn patch(old: &Version, new: &Version, operations: usize) -> f64 {
    (replace_u(old, new) + PATCH_U + PATCH_OPERATION_U * operations as f64) / U_PER_RU
}

/// A create whose id or unique key is taken.
pub fn refused_create(new: &Version) -> f64 {
    create(new) * REFUSED
}

/// A page of items, each costing what reading it alone would.
pub fn page(sizes_bytes: impl IntoIterator<Item = usize>) -> f64 {
    sizes_bytes.into_iter().map(read).sum::<f64>().max(LOOK_UP_RU)
}

fn replace_u(old: &Version, new: &Version) -> f64 {
    // Sizes count for both versions; what did not change of the rest is not paid twice.
    let sizes = WRITE_U * (write_step(old.size_bytes) + write_step(new.size_bytes));
    let expiry = if old.expires != new.expires || new.expires { EXPIRY_U } else { 0.0 };
    sizes + expiry + TERM_U * old.terms.changes(&new.terms) as f64
}

/// How many times a write of up to 1 KB a write of this size is.
fn write_step(size_bytes: usize) -> f64 {
    by_size(size_bytes, |(_, _, write)| *write) / SIZES[0].2
}

/// Reads the table at a size, on a straight line between its rows and beyond the last.
fn by_size(size_bytes: usize, column: impl Fn(&(f64, f64, f64)) -> f64) -> f64 {
    let size_kb = size_bytes as f64 / 1024.0;
    if size_kb <= SIZES[0].0 {
        return column(&SIZES[0]);
    }
    let above = SIZES.iter().position(|row| row.0 >= size_kb).unwrap_or(SIZES.len() - 1).max(1);
    let (low, high) = (&SIZES[above - 1], &SIZES[above]);
    column(low) + (column(high) - column(low)) * (size_kb - low.0) / (high.0 - low.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use orrery_model::{ParseOptions, parse_json};

    fn container(extra: &str) -> ContainerDefinition {
        let text = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash"}}{extra}}}"#);
        ContainerDefinition::parse(&serde_json::from_str(&text).unwrap(), "2018-12-31").unwrap()
    }

    fn version(definition: &ContainerDefinition, text: &str) -> Version {
        let document = parse_json(text.as_bytes(), &ParseOptions::default()).unwrap();
        let body = Raw::document(&document).unwrap();
        Version {
            size_bytes: text.len(),
            terms: Terms::of(definition, body),
            unique_keys: definition.unique_keys.len(),
            expires: definition.default_ttl.is_some() && body.get("ttl").is_some(),
        }
    }

    fn check(found: f64, recorded: f64) {
        assert_eq!((found * 100.0).round() / 100.0, recorded, "{found}");
    }

    const EVERY_TYPE: &str = r#"{"id":"v1","pk":"t","i":42,"f":1.5,"t":true,"fa":false,"nu":null,"s":"text","arr":[1,"a",null,[2]],"obj":{"a":{"b":1}},"emp":"","ea":[],"eo":{},"ts":"2020","dt":"20","tm":"12","uuid":"1","b64":"A","dec":"1.0"}"#;
    const NESTED: &str =
        r#"{"id":"v2","pk":"a","zeta":1,"alpha":2,"mid":3,"b":4,"abcdef":5,"nu":null,"obj":{"a":{"b":1}}}"#;
    const FOUR: &str = r#"{"id":"d1","pk":"a","n":1,"s":"x1"}"#;

    #[test]
    fn a_create_costs_what_the_service_charged() {
        let policy = container("");
        for (text, recorded) in [
            (r#"{"id":"e","pk":"t","s":"x"}"#, 6.29),
            (FOUR, 6.67),
            (r#"{"id":"r","pk":"p","n":0,"grp":0,"txt":"row"}"#, 7.05),
            (NESTED, 9.14),
            (EVERY_TYPE, 14.29),
        ] {
            check(create(&version(&policy, text)), recorded);
        }
        let exact = create(&version(&policy, r#"{"id":"r","pk":"p","n":0,"grp":0,"txt":"row"}"#));
        assert!((exact - 7.047_619_047_619_047).abs() < 1e-12);
        check(exact * 100.0, 704.76);
    }

    #[test]
    fn an_update_pays_for_what_differs() {
        let policy = container("");
        let old = version(&policy, FOUR);
        check(replace(&old, &version(&policy, r#"{"id":"d1","pk":"a","n":100,"s":"x1"}"#)), 10.67);
        check(replace(&old, &version(&policy, r#"{"id":"d1","pk":"a","n":5,"s":"y"}"#)), 11.05);
        check(
            replace(&version(&policy, EVERY_TYPE), &version(&policy, r#"{"id":"v1","pk":"t","i":43}"#)),
            18.67,
        );
        check(delete(&old), 6.67);
    }

    #[test]
    fn an_item_touched_again_in_its_commit_pays_no_second_time_of_write() {
        let policy = container("");
        let again = |text: &str| {
            let version = version(&policy, text);
            Version { terms: version.terms.untimed(), ..version }
        };
        let (old, new) = (again(r#"{"id":"b2","pk":"b","n":98}"#), again(r#"{"id":"b2","pk":"b","n":1}"#));
        assert!((patch(&old, &new, 1) - 10.600_778_676_250_373).abs() < 1e-12);
        assert!((delete(&new) - 6.095_238_095_238_095).abs() < 1e-12);
    }

    #[test]
    fn a_patch_costs_about_its_replace() {
        let policy = container("");
        let old = version(&policy, r#"{"id":"d1","pk":"a","n":5,"s":"y"}"#);
        check(patch(&old, &version(&policy, r#"{"id":"d1","pk":"a","n":10,"s":"y","new":"v"}"#), 3), 11.42);
    }

    #[test]
    fn unique_keys_composite_indexes_and_expiry_add_to_a_create() {
        let policy = container(
            r#","defaultTtl":-1,"uniqueKeyPolicy":{"uniqueKeys":[{"paths":["/email"]}]},"indexingPolicy":{"indexingMode":"consistent","automatic":true,"includedPaths":[{"path":"/*"}],"compositeIndexes":[[{"path":"/a","order":"ascending"},{"path":"/b","order":"descending"}]]}"#,
        );
        check(create(&version(&policy, r#"{"id":"1","pk":"p","email":"a@b"}"#)), 7.77);
        check(create(&version(&policy, r#"{"id":"3","pk":"p","ttl":1}"#)), 8.0);
        check(refused_create(&version(&policy, r#"{"id":"2","pk":"p","email":"a@b"}"#)), 1.94);
    }

    #[test]
    fn a_refusal_costs_a_quarter() {
        let policy = container("");
        check(REFUSED_WRITE_RU, 1.24);
        let taken = refused_create(&version(&policy, r#"{"id":"b1","pk":"b","n":11}"#));
        assert!((taken - 1.571_428_571_428_571_4).abs() < 1e-12);
        let taken = refused_create(&version(&policy, r#"{"id":"b1","pk":"b"}"#));
        assert!((taken - 1.476_190_476_190_476_3).abs() < 1e-12);
    }

    #[test]
    fn size_counts_by_the_published_table() {
        check(read(10), 1.0);
        check(read(2048), 1.04);
        check(read(3072), 1.09);
        check(read(2 << 20), 291.8);
        check(read(3 << 20), 437.7);
        let (small, large) = (Version::default(), Version { size_bytes: 65536, ..Version::default() });
        check(create(&large) / create(&small), (22.67f64 / 4.95 * 100.0).round() / 100.0);
    }

    #[test]
    fn what_is_not_indexed_is_not_charged() {
        let none = container(r#","indexingPolicy":{"indexingMode":"none","automatic":false}"#);
        check(create(&version(&none, FOUR)), 4.95);
        let one = container(
            r#","indexingPolicy":{"indexingMode":"consistent","includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#,
        );
        assert_eq!(version(&one, EVERY_TYPE).terms.count(), 0);
        assert_eq!(version(&one, FOUR).terms.count(), 2);
    }
}
