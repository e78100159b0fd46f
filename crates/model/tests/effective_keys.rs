//! Effective partition keys against vectors computed with the official SDKs, and the boundaries that their tests
//! expect.

use orrery_model::{
    Epk, KeyKind, KeyVersion, PartitionKey, PartitionKeyDefinition, PropertyPath, Raw, parse_json,
};

fn definition(paths: &[&str], kind: KeyKind, version: KeyVersion) -> PartitionKeyDefinition {
    let paths = paths.iter().map(|path| PropertyPath::parse(path).unwrap()).collect();
    PartitionKeyDefinition { paths, kind, version, system_key: false }
}

fn hash(version: KeyVersion) -> PartitionKeyDefinition {
    definition(&["/pk"], KeyKind::Hash, version)
}

fn hierarchical() -> PartitionKeyDefinition {
    definition(&["/a", "/b", "/c"], KeyKind::MultiHash, KeyVersion::V2)
}

fn rows(data: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
    data.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

#[test]
fn single_keys_hash_as_the_sdks_hash_them() {
    let (v1, v2) = (hash(KeyVersion::V1), hash(KeyVersion::V2));
    let mut seen = 0;
    for row in rows(include_str!("data/effective_keys.tsv")) {
        let key = PartitionKey::parse_header(row[0]).unwrap();
        assert_eq!(v2.effective(&key).to_hex(), row[1], "version 2 of {}", row[0]);
        assert_eq!(v1.effective(&key).to_hex(), row[2], "version 1 of {}", row[0]);
        seen += 1;
    }
    assert_eq!(seen, 38);
}

#[test]
fn encoded_keys_hash_like_the_keys_they_are() {
    let texts = rows(include_str!("data/effective_keys.tsv")).map(|row| row[0]);
    let more = [r#"["a","b"]"#, r#"["a\u0000b"]"#, r#"["\u0000"]"#, r#"[""]"#, r#"["a",1]"#, "[]"];
    for text in texts.chain(more) {
        let key = PartitionKey::parse_header(text).unwrap();
        let mut encoded = Vec::new();
        key.encode(&mut encoded);
        for definition in [hash(KeyVersion::V1), hash(KeyVersion::V2), hierarchical()] {
            assert_eq!(definition.effective_encoded(&encoded), Some(definition.effective(&key)), "{text}");
        }
    }
    assert_eq!(hash(KeyVersion::V2).effective_encoded(&[9]), None);
}

#[test]
fn hierarchical_keys_hash_level_by_level_and_prefixes_cover_them() {
    let definition = hierarchical();
    for row in rows(include_str!("data/hierarchical_keys.tsv")) {
        let key = PartitionKey::parse_header(row[0]).unwrap();
        let epk = definition.effective(&key);
        assert_eq!(epk.to_hex(), row[1], "{}", row[0]);
        let prefix = PartitionKey(key.0[..1].iter().cloned().collect());
        let (min, max) = definition.effective_prefix(&prefix);
        assert!(min <= epk && epk < max, "{} lies in the range of its first level", row[0]);
        assert_eq!(max.to_hex(), format!("{}FF", min.to_hex()));
    }
}

#[test]
fn undefined_null_and_no_components_are_three_keys() {
    for definition in [hash(KeyVersion::V1), hash(KeyVersion::V2), hierarchical()] {
        let of = |text| definition.effective(&PartitionKey::parse_header(text).unwrap());
        assert_eq!(of("[]"), Epk::MIN);
        assert_ne!(of("[{}]"), of("[null]"));
        assert_ne!(of("[{}]"), Epk::MIN);
        assert_eq!(definition.effective_prefix(&PartitionKey::default()), (Epk::MIN, Epk::max()));
    }
}

#[test]
fn boundaries_lie_where_client_tests_expect_them() {
    let text = |definition: &PartitionKeyDefinition, n| {
        definition.boundaries(n).iter().map(Epk::to_hex).collect::<Vec<_>>()
    };
    assert_eq!(
        text(&hash(KeyVersion::V2), 5),
        [
            "",
            "0CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC",
            "19999999999999999999999999999998",
            "26666666666666666666666666666664",
            "33333333333333333333333333333330",
            "FF"
        ]
    );
    assert_eq!(
        text(&hash(KeyVersion::V1), 5),
        ["", "05C1C9CD673398", "05C1D9CD673398", "05C1E399CD6732", "05C1E9CD673398", "FF"]
    );
    assert_eq!(text(&hierarchical(), 2), ["", "1FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "FF"]);
    assert_eq!(text(&hash(KeyVersion::V2), 1), ["", "FF"]);
    assert_eq!(text(&hash(KeyVersion::V2), 0), ["", "FF"]);
    for definition in [hash(KeyVersion::V1), hash(KeyVersion::V2), hierarchical()] {
        for n in [2, 3, 7, 100, 1000] {
            let boundaries = definition.boundaries(n);
            assert_eq!(boundaries.len(), n as usize + 1);
            assert!(boundaries.windows(2).all(|w| w[0] < w[1]), "{n} boundaries rise");
        }
    }
}

#[test]
fn every_version_1_key_falls_between_boundaries_by_its_hash() {
    // The component's own encoding follows the hash, so a boundary that equals a hash still lies at or below the key.
    let definition = hash(KeyVersion::V1);
    let boundaries = definition.boundaries(10);
    let mut used = [0; 10];
    for i in 0..1000 {
        let epk = definition.effective(&PartitionKey::from(format!("key{i}").as_str()));
        used[boundaries.partition_point(|boundary| *boundary <= epk) - 1] += 1;
    }
    assert!(used.iter().all(|&n| n > 60), "keys spread over the ranges: {used:?}");
}

#[test]
fn a_path_chosen_by_the_system_gives_no_components_when_it_is_missing() {
    let definition = PartitionKeyDefinition {
        system_key: true,
        ..definition(&["/_partitionKey"], KeyKind::Hash, KeyVersion::V2)
    };
    let key = |item: &str| {
        let stored = parse_json(item.as_bytes(), &Default::default()).unwrap();
        definition.extract(Raw::document(&stored).unwrap())
    };
    assert_eq!(key(r#"{"id":"a"}"#), PartitionKey::default());
    assert_eq!(key(r#"{"id":"a","_partitionKey":"x"}"#), PartitionKey::from("x"));
}

#[test]
fn keys_are_taken_from_items_along_their_paths() {
    let check = |paths: &[&str], item: &str, expected: &str| {
        let stored = parse_json(item.as_bytes(), &Default::default()).unwrap();
        let definition = definition(paths, KeyKind::MultiHash, KeyVersion::V2);
        let mut text = Vec::new();
        definition.extract(Raw::document(&stored).unwrap()).write_json(&mut text);
        assert_eq!(String::from_utf8(text).unwrap(), expected, "{paths:?} of {item}");
    };
    check(&["/pk"], r#"{"pk":"a"}"#, r#"["a"]"#);
    check(&["/pk"], r#"{"pk":1.5}"#, "[1.5]");
    check(&["/pk"], r#"{"pk":-0.0}"#, "[0]");
    check(&["/pk"], r#"{"pk":null}"#, "[null]");
    check(&["/pk"], r#"{"other":1}"#, "[{}]");
    check(&["/a/b"], r#"{"a":{"b":true}}"#, "[true]");
    check(&["/a/b"], r#"{"a":{}}"#, "[{}]");
    check(&["/a/b"], r#"{}"#, "[{}]");
    check(&["/a/b"], r#"{"a":5}"#, "[{}]");
    check(&["/a/b"], r#"{"a":[1]}"#, "[{}]");
    check(&["/a"], r#"{"a":{"b":1}}"#, "[{}]");
    check(&["/a"], r#"{"a":[]}"#, "[{}]");
    check(&["/\"a b\"/'c'"], r#"{"a b":{"c":"x"}}"#, r#"["x"]"#);
    check(&["/a", "/b", "/c"], r#"{"a":"x","c":1}"#, r#"["x",{},1]"#);
}
