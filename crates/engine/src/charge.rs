//! Request units: what an operation costs, as a pure function of what it did.
//!
//! Charges are counted in steps `U`, and `RU = U / 1.05`. Writing a version costs 5.2 U times its size step and 0.2 U
//! for each index term; an update pays for taking the old version out and putting the new one in, but only for the
//! terms that differ. Failing costs too: a refused create a quarter of the create, any other refused write a quarter
//! of a bare write.
//!
//! Worked example, the default policy: creating `{"id":"d1","pk":"a","n":1,"s":"x1"}` makes two terms for each of the
//! four scalars and one for the time of the write: `(5.2 + 0.2 * 9) / 1.05 = 6.67 RU`. Replacing `n` and `s` takes
//! two values and a time out and puts as many in: `(10.4 + 0.2 * 6) / 1.05 = 11.05 RU`.
//!
//! Terms of a document, as far as the policy includes them:
//! - a scalar, an empty array or an empty object: one for the path, one for the value;
//! - an array or object with content: one at the top level, two below;
//! - each composite index: one for each of its paths, whether the item has them or not;
//! - the time of the write: one, and it always changes, but is paid once per commit: a batch that touches an item again
//!   does not pay for it again.
//!
//! Elements of an array share their path. Terms are counted where index rows are made, in the same walk over the two
//! versions (`partition/index/walk.rs`).

const U_PER_RU: f64 = 1.05;
/// Hundredths of U. Charges are added up in them and divided once, because whole numbers add up exactly: inside a
/// batch the service shows every digit of a charge, and they are those of `660 / 105` and `1120 / 105`.
const WRITE_CU: f64 = 520.0;
const TERM_CU: f64 = 20.0;
/// What each unique key adds to storing or removing its values.
const UNIQUE_KEY_CU: f64 = 116.0;
/// What planning an expiry adds.
const EXPIRY_CU: f64 = 24.0;
const CU_PER_U: f64 = 100.0;
const CU_PER_RU: f64 = 105.0;
/// What a patch costs more than the replace it amounts to, and what each of its operations adds.
const PATCH_U: f64 = 0.3;
const PATCH_OPERATION_U: f64 = 4.9 / 159.0;
const REFUSED: f64 = 0.25;

/// A read that finds nothing, an unchanged item, an empty page of changes.
pub const LOOK_UP_RU: f64 = 1.0;
/// A write that was refused for any reason but a taken id or unique key.
pub const REFUSED_WRITE_RU: f64 = WRITE_CU / CU_PER_RU * REFUSED;

/// A request that was not let in because the throughput is used up.
pub const THROTTLED_RU: f64 = 0.38;

/// What is done to databases, containers, offers, users, permissions and client encryption keys costs the same whatever
/// its size.
pub mod catalog {
    /// Looking at a resource, or at a page of them, or for one that is not there.
    pub const READ_RU: f64 = 2.0;
    /// Creating a database or a container.
    pub const CREATE_RU: f64 = 1.0;
    /// Every other change that has no figure of its own.
    pub const CHANGE_RU: f64 = 4.95;
    pub const REPLACE_CONTAINER_RU: f64 = 10.67;
    /// Replacing a container in a way that its rules refuse.
    pub const REFUSED_REPLACE_RU: f64 = 1.24;
    pub const REPLACE_OFFER_RU: f64 = 9.9;
}

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

/// One version of an item, as far as its cost goes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Version {
    pub size_bytes: usize,
    pub unique_keys: usize,
    /// The item has a time to live of its own that is in force.
    pub expires: bool,
}

impl Version {
    fn bare_cu(&self) -> f64 {
        let extra = if self.expires { EXPIRY_CU } else { 0.0 };
        WRITE_CU * write_step(self.size_bytes) + UNIQUE_KEY_CU * self.unique_keys as f64 + extra
    }
}

/// A point read of an item of this size.
pub fn read(size_bytes: usize) -> f64 {
    by_size(size_bytes, |(_, read, _)| *read)
}

/// `terms` are all index terms of the version.
pub fn create(new: &Version, terms: usize) -> f64 {
    (new.bare_cu() + TERM_CU * terms as f64) / CU_PER_RU
}

/// Taking a version out costs what putting it in did.
pub fn delete(old: &Version, terms: usize) -> f64 {
    create(old, terms)
}

/// `terms` are those that must be taken out and put in to get from one version to the next.
pub fn replace(old: &Version, new: &Version, terms: usize) -> f64 {
    replace_cu(old, new, terms) / CU_PER_RU
}

pub fn patch(old: &Version, new: &Version, terms: usize, operations: usize) -> f64 {
    let extra_u = PATCH_U + PATCH_OPERATION_U * operations as f64;
    (replace_cu(old, new, terms) / CU_PER_U + extra_u) / U_PER_RU
}

/// A create whose id or unique key is taken.
pub fn refused_create(new: &Version, terms: usize) -> f64 {
    create(new, terms) * REFUSED
}

/// A page of items, each costing what reading it alone would.
pub fn page(sizes_bytes: impl IntoIterator<Item = usize>) -> f64 {
    sizes_bytes.into_iter().map(read).sum::<f64>().max(LOOK_UP_RU)
}

fn replace_cu(old: &Version, new: &Version, terms: usize) -> f64 {
    // Sizes count for both versions; what did not change of the rest is not paid twice.
    let sizes = WRITE_CU * (write_step(old.size_bytes) + write_step(new.size_bytes));
    let expiry = if old.expires != new.expires || new.expires { EXPIRY_CU } else { 0.0 };
    sizes + expiry + TERM_CU * terms as f64
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
    use crate::definition::{ContainerDefinition, KeyKinds};
    use crate::partition::index::terms;
    use orrery_model::{ParseOptions, Raw, parse_json};

    /// A version with its document and its policy, and whether the time of its write counts.
    struct Sample<'p> {
        policy: &'p ContainerDefinition,
        document: Vec<u8>,
        version: Version,
        timed: bool,
    }

    impl Sample<'_> {
        fn body(&self) -> Raw<'_> {
            Raw::document(&self.document).unwrap()
        }

        fn count(&self) -> usize {
            terms(self.policy, None, Some(self.body())) + usize::from(self.timed)
        }

        fn changes(&self, next: &Sample<'_>) -> usize {
            let changes = terms(self.policy, Some(self.body()), Some(next.body()));
            changes + usize::from(self.timed) + usize::from(next.timed)
        }
    }

    fn create(new: &Sample<'_>) -> f64 {
        super::create(&new.version, new.count())
    }

    fn delete(old: &Sample<'_>) -> f64 {
        super::delete(&old.version, terms(old.policy, Some(old.body()), None) + usize::from(old.timed))
    }

    fn replace(old: &Sample<'_>, new: &Sample<'_>) -> f64 {
        super::replace(&old.version, &new.version, old.changes(new))
    }

    fn patch(old: &Sample<'_>, new: &Sample<'_>, operations: usize) -> f64 {
        super::patch(&old.version, &new.version, old.changes(new), operations)
    }

    fn refused_create(new: &Sample<'_>) -> f64 {
        super::refused_create(&new.version, new.count())
    }

    fn container(extra: &str) -> ContainerDefinition {
        let text = format!(r#"{{"id":"c","partitionKey":{{"paths":["/pk"],"kind":"Hash"}}{extra}}}"#);
        ContainerDefinition::parse(&serde_json::from_str(&text).unwrap(), KeyKinds::All).unwrap()
    }

    fn version<'p>(policy: &'p ContainerDefinition, text: &str) -> Sample<'p> {
        let document = parse_json(text.as_bytes(), &ParseOptions::default()).unwrap();
        let version = Version {
            size_bytes: text.len(),
            unique_keys: policy.unique_keys.len(),
            expires: policy.default_ttl.is_some() && Raw::document(&document).unwrap().get("ttl").is_some(),
        };
        let timed = policy.indexing.cursor().name("_ts").indexes_scalar();
        Sample { policy, document, version, timed }
    }

    fn check(found: f64, recorded: f64) {
        assert_eq!((found * 100.0).round() / 100.0, recorded, "{found}");
    }

    const EVERY_TYPE: &str = r#"{"id":"v1","pk":"t","i":42,"f":1.5,"t":true,"fa":false,"nu":null,"s":"text","arr":[1,"a",null,[2]],"obj":{"a":{"b":1}},"emp":"","ea":[],"eo":{},"ts":"2020","dt":"20","tm":"12","uuid":"1","b64":"A","dec":"1.0"}"#;
    const NESTED: &str =
        r#"{"id":"v2","pk":"a","zeta":1,"alpha":2,"mid":3,"b":4,"abcdef":5,"nu":null,"obj":{"a":{"b":1}}}"#;
    const FOURTEEN: &str =
        r#"{"id":"w","pk":"a","c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1,"j":1,"k":1,"l":1,"m":1,"n":1}"#;
    const FOUR: &str = r#"{"id":"d1","pk":"a","n":1,"s":"x1"}"#;

    #[test]
    fn a_create_costs_what_the_service_charged() {
        let policy = container("");
        for (text, recorded) in [
            (r#"{"id":"e","pk":"t","s":"x"}"#, 6.29),
            (FOUR, 6.67),
            (r#"{"id":"r","pk":"p","n":0,"grp":0,"txt":"row"}"#, 7.05),
            (NESTED, 9.14),
            (FOURTEEN, 10.48),
            (EVERY_TYPE, 14.29),
        ] {
            check(create(&version(&policy, text)), recorded);
        }
        let exact = create(&version(&policy, r#"{"id":"r","pk":"p","n":0,"grp":0,"txt":"row"}"#));
        assert_eq!(exact, 7.047_619_047_619_047_4);
        assert_eq!(create(&version(&policy, r#"{"id":"b1","pk":"b","n":10}"#)), 6.285_714_285_714_286);
        check(exact * 100.0, 704.76);
        check(2.0 * create(&version(&policy, r#"{"id":"e","pk":"t","s":"x"}"#)), 12.57);
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
        let again = |text: &str| Sample { timed: false, ..version(&policy, text) };
        let (old, new) = (again(r#"{"id":"b2","pk":"b","n":98}"#), again(r#"{"id":"b2","pk":"b","n":1}"#));
        // Every digit that the service shows.
        assert_eq!(patch(&old, &new, 1), 10.600_778_676_250_373);
        assert_eq!(delete(&new), 6.095_238_095_238_095);
        let first = |text: &str| version(&policy, text);
        let replaced =
            replace(&first(r#"{"id":"b1","pk":"b","n":10}"#), &first(r#"{"id":"b1","pk":"b","n":99}"#));
        assert_eq!(replaced, 10.666_666_666_666_666);
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
        assert_eq!(taken, 1.571_428_571_428_571_4);
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
        check(super::create(&large, 0) / super::create(&small, 0), (22.67f64 / 4.95 * 100.0).round() / 100.0);
    }

    #[test]
    fn what_is_not_indexed_is_not_charged() {
        let none = container(r#","indexingPolicy":{"indexingMode":"none","automatic":false}"#);
        check(create(&version(&none, FOUR)), 4.95);
        let one = container(
            r#","indexingPolicy":{"indexingMode":"consistent","includedPaths":[{"path":"/n/?"}],"excludedPaths":[{"path":"/*"}]}"#,
        );
        assert_eq!(version(&one, EVERY_TYPE).count(), 0);
        assert_eq!(version(&one, FOUR).count(), 2);
    }
}
