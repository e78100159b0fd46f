//! Patches: each rule with an example, and agreement with a naive model on random documents.

mod common;

use common::{print, stored, value};
use orrery_model::{
    DEPTH_MAX, Number, PatchErrorKind, PatchOp, Patched, Pointer, Raw, Value, apply_patch, apply_patch_from,
};
use proptest::prelude::*;

fn at(path: &str) -> Pointer {
    Pointer::parse(path).unwrap()
}

fn add(path: &str, text: &str) -> PatchOp {
    PatchOp::Add { path: at(path), value: value(text) }
}

fn set(path: &str, text: &str) -> PatchOp {
    PatchOp::Set { path: at(path), value: value(text) }
}

fn replace(path: &str, text: &str) -> PatchOp {
    PatchOp::Replace { path: at(path), value: value(text) }
}

fn remove(path: &str) -> PatchOp {
    PatchOp::Remove { path: at(path) }
}

fn incr(path: &str, by: impl Into<Number>) -> PatchOp {
    PatchOp::Increment { path: at(path), by: by.into() }
}

fn moved(from: &str, path: &str) -> PatchOp {
    PatchOp::Move { from: at(from), path: at(path) }
}

fn check(item: &str, ops: &[PatchOp], expected: &str) -> Patched {
    let patched = apply_patch(&stored(item), ops).unwrap_or_else(|error| panic!("{error} on {item}"));
    assert_eq!(print(&patched.document), expected, "{ops:?} on {item}");
    assert_eq!(patched.document, stored(expected), "the same bytes as storing the result afresh");
    patched
}

fn fails(item: &str, ops: &[PatchOp], kind: PatchErrorKind, message: &str) {
    let error = apply_patch(&stored(item), ops).expect_err(item);
    assert_eq!((error.kind, error.index), (kind, ops.len() - 1), "{ops:?} on {item}: {error}");
    assert!(error.message.contains(message), "{error}");
}

#[test]
fn operations_apply_in_order_and_new_members_are_counted() {
    let ops = [set("/count", "20"), incr("/count", 2i64), add("/color", "\"red\"")];
    let patched = check(
        r#"{"id":"x","count":1,"size":"L"}"#,
        &ops,
        r#"{"id":"x","count":22,"size":"L","color":"red"}"#,
    );
    assert_eq!(patched.appended, 1);
}

#[test]
fn add_creates_overwrites_and_inserts() {
    check(r#"{"a":1}"#, &[add("/b", "[1]")], r#"{"a":1,"b":[1]}"#);
    check(r#"{"a":1,"b":2}"#, &[add("/a", "null")], r#"{"a":null,"b":2}"#);
    check(r#"{"a":[1,2]}"#, &[add("/a/0", "0"), add("/a/3", "3"), add("/a/-", "4")], r#"{"a":[0,1,2,3,4]}"#);
    check(r#"{"a":{"b":{}}}"#, &[add("/a/b/c", "1")], r#"{"a":{"b":{"c":1}}}"#);
    check(r#"{"a":[{"b":1}]}"#, &[add("/a/0/c", "2")], r#"{"a":[{"b":1,"c":2}]}"#);
    check(r#"{"x/y":{"~":1}}"#, &[add("/x~1y/~0", "2")], r#"{"x/y":{"~":2}}"#);
    check(r#"{"a":{}}"#, &[add("/a/0", "1"), add("/a/-", "2")], r#"{"a":{"0":1,"-":2}}"#);
    fails(
        r#"{"a":[1]}"#,
        &[add("/a/2", "0")],
        PatchErrorKind::Index,
        "Index(2) to operate on is out of array bounds",
    );
    fails(r#"{"a":[1]}"#, &[add("/a/x", "0")], PatchErrorKind::Index, "out of array bounds");
    fails(r#"{"a":[1]}"#, &[add("/a/01", "0")], PatchErrorKind::Index, "out of array bounds");
    fails(r#"{"a":1}"#, &[add("/b/c", "0")], PatchErrorKind::Absent, "no path found beyond: 'b'");
    fails(r#"{"a":1}"#, &[add("/a/b", "0")], PatchErrorKind::Absent, "cannot create path recursively");
}

#[test]
fn set_creates_and_overwrites_also_in_arrays() {
    check(r#"{"a":[1,2,3]}"#, &[set("/a/1", "\"x\""), set("/b", "1")], r#"{"a":[1,"x",3],"b":1}"#);
    check(r#"{"a":[1]}"#, &[set("/a/1", "2"), set("/a/-", "3")], r#"{"a":[1,2,3]}"#);
    fails(r#"{"a":[1]}"#, &[set("/a/2", "2")], PatchErrorKind::Index, "Index(2)");
    fails("{}", &[set("/a/b", "2")], PatchErrorKind::Absent, "Set Operation");
}

#[test]
fn replace_and_remove_need_what_they_name() {
    check(r#"{"a":1,"b":[1,2]}"#, &[replace("/a", "{}"), replace("/b/1", "3")], r#"{"a":{},"b":[1,3]}"#);
    check(
        r#"{"a":1,"b":[1,2,3],"c":{"d":1,"e":2}}"#,
        &[remove("/a"), remove("/b/1"), remove("/c/d")],
        r#"{"b":[1,3],"c":{"e":2}}"#,
    );
    fails("{}", &[replace("/a", "1")], PatchErrorKind::Absent, "Node(/a) to be replaced is absent.");
    fails(r#"{"a":[1]}"#, &[replace("/a/1", "1")], PatchErrorKind::Index, "Index(1)");
    fails(r#"{"a":[1]}"#, &[replace("/a/-", "1")], PatchErrorKind::Index, "Index(-)");
    fails(
        r#"{"a":1}"#,
        &[remove("/a"), remove("/a")],
        PatchErrorKind::Absent,
        "For Operation(2): Node(/a) to be removed is absent.",
    );
    fails(r#"{"a":[1]}"#, &[remove("/a/1")], PatchErrorKind::Index, "Index(1)");
    fails(r#"{"a":1}"#, &[remove("/a/b")], PatchErrorKind::Absent, "to be removed is absent");
}

#[test]
fn increments_add_create_and_refuse_other_kinds() {
    check(
        r#"{"a":1,"b":[1.5]}"#,
        &[incr("/a", 2i64), incr("/b/0", -1i64), incr("/c", 5i64)],
        r#"{"a":3,"b":[0.5],"c":5}"#,
    );
    check(r#"{"a":9007199254740993}"#, &[incr("/a", 1i64)], r#"{"a":9007199254740994}"#);
    check(r#"{"a":1}"#, &[incr("/a", 0.25)], r#"{"a":1.25}"#);
    check(r#"{"a":9223372036854775807}"#, &[incr("/a", 1i64)], r#"{"a":9223372036854775808}"#);
    fails(r#"{"a":"1"}"#, &[incr("/a", 1i64)], PatchErrorKind::NotANumber, "Node(/a) is not a number.");
    fails(r#"{"a":{}}"#, &[incr("/a", 1i64)], PatchErrorKind::NotANumber, "not a number");
    fails(r#"{"a":1e308}"#, &[incr("/a", 1.7e308)], PatchErrorKind::NotANumber, "not a number");
    fails(r#"{"a":[1]}"#, &[incr("/a/1", 1i64)], PatchErrorKind::Index, "Index(1)");
}

#[test]
fn moves_take_from_one_place_to_another() {
    check(r#"{"a":1,"b":{}}"#, &[moved("/a", "/b/c")], r#"{"b":{"c":1}}"#);
    check(r#"{"a":1,"b":2}"#, &[moved("/a", "/b")], r#"{"b":1}"#);
    check(r#"{"a":[1,2,3]}"#, &[moved("/a/0", "/a/-"), moved("/a/2", "/a/1")], r#"{"a":[2,1,3]}"#);
    check(r#"{"a":{"b":1},"c":0}"#, &[moved("/a/b", "/a")], r#"{"a":1,"c":0}"#);
    check(r#"{"a":1,"b":2}"#, &[moved("/a", "/a")], r#"{"b":2,"a":1}"#);
    fails("{}", &[moved("/a", "/b")], PatchErrorKind::Absent, "Node(/a) to be moved is absent");
    fails(r#"{"a":{"b":1}}"#, &[moved("/a", "/a/b")], PatchErrorKind::IntoItself, "its own child");
}

#[test]
fn later_operations_see_earlier_ones_and_a_failure_changes_nothing() {
    check(
        "{}",
        &[add("/a", "{\"x\":[1]}"), add("/a/x/-", "2"), incr("/a/x/0", 1i64), remove("/a/x/1")],
        r#"{"a":{"x":[2]}}"#,
    );
    check(r#"{"a":1}"#, &[], r#"{"a":1}"#);
    fails(r#"{"a":1}"#, &[set("/a", "2"), remove("/b")], PatchErrorKind::Absent, "For Operation(2)");
    let error = apply_patch(b"rubbish", &[set("/a", "2")]).unwrap_err();
    assert_eq!(error.kind, PatchErrorKind::Corrupt);
    assert!(apply_patch(&stored("5"), &[set("/a", "2")]).is_err());
}

#[test]
fn appended_members_are_counted_across_patches() {
    let first = check(
        r#"{"id":"1","a":1}"#,
        &[add("/b", "1"), add("/c", "1"), set("/a", "2")],
        r#"{"id":"1","a":2,"b":1,"c":1}"#,
    );
    assert_eq!(first.appended, 2);
    let again = |ops: &[PatchOp]| apply_patch_from(&first.document, 2, ops).unwrap().appended;
    assert_eq!(again(&[set("/b", "5")]), 2);
    assert_eq!(again(&[remove("/b")]), 1);
    assert_eq!(again(&[remove("/a"), add("/a", "1")]), 3);
    assert_eq!(again(&[add("/d", "1"), remove("/d")]), 2);
    assert_eq!(check(r#"{"a":{}}"#, &[add("/a/b", "1")], r#"{"a":{"b":1}}"#).appended, 0);
}

#[test]
fn results_stay_within_the_nesting_limit() {
    let deep = format!("{}{}", "[".repeat(DEPTH_MAX - 1), "]".repeat(DEPTH_MAX - 1));
    assert!(apply_patch(&stored("{}"), &[add("/a", &deep)]).is_ok());
    let error = apply_patch(&stored("{\"a\":{}}"), &[add("/a/b", &deep)]).unwrap_err();
    assert_eq!(error.kind, PatchErrorKind::Depth);
    let item = format!("{{\"a\":{deep},\"b\":{{}}}}");
    let error = apply_patch(&stored(&item), &[moved("/a", "/b/c")]).unwrap_err();
    assert_eq!(error.kind, PatchErrorKind::Depth);
}

#[test]
fn pointers_follow_their_grammar() {
    assert_eq!(at("/a~1b/~01/").segments(), ["a/b", "~1", ""]);
    assert_eq!(at("/a~1b/~01").to_string(), "/a~1b/~01");
    for text in ["", "/", "a", "a/b"] {
        assert_eq!(Pointer::parse(text), None, "{text}");
    }
    assert_eq!(Pointer::parse(&"/a".repeat(DEPTH_MAX + 1)), None);
}

/// The same rules on owned values, as plainly as possible.
fn model(root: &mut Value, op: &PatchOp) -> Option<()> {
    match op {
        PatchOp::Add { path, value } => put(root, path, value.clone(), Mode::Insert),
        PatchOp::Set { path, value } => put(root, path, value.clone(), Mode::Overwrite),
        PatchOp::Replace { path, value } => put(root, path, value.clone(), Mode::Existing),
        PatchOp::Remove { path } => take(root, path).map(|_| ()),
        PatchOp::Increment { path, by } => {
            let (target, last) = parent(root, path)?;
            match (child(target, last).map(|existing| existing.as_number()), &target) {
                (Some(number), _) => put(root, path, number?.plus(*by).into(), Mode::Existing),
                (None, Value::Object(_)) => put(root, path, (*by).into(), Mode::Insert),
                (None, _) => None,
            }
        }
        PatchOp::Move { from, path } => {
            let (inner, outer) = (path.segments(), from.segments());
            if inner.len() > outer.len() && inner.starts_with(outer) {
                return None;
            }
            let value = take(root, from)?;
            put(root, path, value, Mode::Insert)
        }
    }
}

enum Mode {
    Insert,
    Overwrite,
    Existing,
}

fn child<'v>(value: &'v mut Value, segment: &str) -> Option<&'v mut Value> {
    match value {
        Value::Object(members) => members.iter_mut().find(|(key, _)| key == segment).map(|(_, value)| value),
        Value::Array(elements) => elements.get_mut(segment.parse::<usize>().ok()?),
        _ => None,
    }
}

fn parent<'v, 'p>(root: &'v mut Value, path: &'p Pointer) -> Option<(&'v mut Value, &'p str)> {
    let (last, way) = path.segments().split_last()?;
    Some((way.iter().try_fold(root, |value, segment| child(value, segment))?, last))
}

fn put(root: &mut Value, path: &Pointer, value: Value, mode: Mode) -> Option<()> {
    let (target, last) = parent(root, path)?;
    match target {
        Value::Object(members) => match (members.iter_mut().find(|(key, _)| key == last), mode) {
            (Some((_, existing)), _) => *existing = value,
            (None, Mode::Existing) => return None,
            (None, _) => members.push((last.to_owned(), value)),
        },
        Value::Array(elements) => {
            let length = elements.len();
            let index = if last == "-" { length } else { last.parse().ok()? };
            match mode {
                Mode::Insert if index <= length => elements.insert(index, value),
                Mode::Overwrite if index == length => elements.push(value),
                Mode::Overwrite | Mode::Existing if index < length => elements[index] = value,
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}

fn take(root: &mut Value, path: &Pointer) -> Option<Value> {
    let (target, last) = parent(root, path)?;
    match target {
        Value::Object(members) => {
            let place = members.iter().position(|(key, _)| key == last)?;
            Some(members.remove(place).1)
        }
        Value::Array(elements) => {
            let index = last.parse::<usize>().ok().filter(|index| *index < elements.len())?;
            Some(elements.remove(index))
        }
        _ => None,
    }
}

fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        (-9i64..9).prop_map(Value::from),
        "[a-c]{0,2}".prop_map(Value::from),
        Just(Value::from(0.5))
    ];
    let nested = leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array), members(inner)]
    });
    members(nested)
}

fn members(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::btree_map("[a-c]", inner, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

fn op() -> impl Strategy<Value = PatchOp> {
    let pointer = || {
        prop::collection::vec("[abc012-]", 1..4).prop_map(|segments| at(&format!("/{}", segments.join("/"))))
    };
    let value = || {
        prop_oneof![
            (-9i64..9).prop_map(Value::from),
            Just(value("{\"a\":[1,2],\"b\":{\"c\":0}}")),
            Just(value("[0,{\"a\":1}]"))
        ]
    };
    prop_oneof![
        (pointer(), value()).prop_map(|(path, value)| PatchOp::Add { path, value }),
        (pointer(), value()).prop_map(|(path, value)| PatchOp::Set { path, value }),
        (pointer(), value()).prop_map(|(path, value)| PatchOp::Replace { path, value }),
        pointer().prop_map(|path| PatchOp::Remove { path }),
        (pointer(), -5i64..5).prop_map(|(path, by)| PatchOp::Increment { path, by: Number::Int(by) }),
        (pointer(), pointer()).prop_map(|(from, path)| PatchOp::Move { from, path }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn patches_agree_with_the_plain_model(item in tree(), ops in prop::collection::vec(op(), 1..5)) {
        let document = item.to_document();
        let mut expected = item.clone();
        let outcome = ops.iter().try_for_each(|op| model(&mut expected, op));
        match (apply_patch(&document, &ops), outcome) {
            (Ok(patched), Some(())) => {
                let raw = Raw::document(&patched.document).unwrap();
                prop_assert!(raw.verify().is_ok());
                prop_assert_eq!(print(&patched.document), print(&expected.to_document()), "{:?} on {:?}", ops, item);
            }
            (Err(_), None) => {}
            (ours, theirs) => prop_assert!(false, "{ours:?} against {theirs:?} for {ops:?} on {item:?}"),
        }
    }
}
