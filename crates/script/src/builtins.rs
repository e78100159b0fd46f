//! What bounds every built-in of the realm: `builtins.txt`. A function that is not named there fails a test, so that a
//! later QuickJS cannot bring one that keeps a thread busy without anybody having thought about it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::limits::Until;
use crate::sandbox::Sandbox;

/// What bounds a built-in, as the table says it; the words are explained there.
const BOUNDS: [&str; 8] = ["constant", "calls", "held", "made", "walks", "asks", "script", "short"];
/// Built-ins with these bounds are replaced by `guards.js`.
const GUARDED: [&str; 4] = ["walks", "asks", "script", "short"];

/// Every function that a script can reach without the API, by the shortest way to it; and whether it is the engine's
/// own.
const REACHABLE: &str = r#"(function () {
  const found = new Map();
  const queue = [];
  const own = (object) => Reflect.ownKeys(object);
  const visit = (value, path) => {
    if ((typeof value !== 'object' && typeof value !== 'function') || value === null || found.has(value)) return;
    found.set(value, path);
    queue.push([value, path]);
  };
  visit(globalThis, '');
  const hidden = {
    '%GeneratorFunction%': Object.getPrototypeOf(function* () {}).constructor,
    '%AsyncFunction%': Object.getPrototypeOf(async function () {}).constructor,
    '%AsyncGeneratorFunction%': Object.getPrototypeOf(async function* () {}).constructor,
    '%TypedArray%': Object.getPrototypeOf(Uint8Array),
    '%ArrayIterator%': [][Symbol.iterator](),
    '%MapIterator%': new Map()[Symbol.iterator](),
    '%SetIterator%': new Set()[Symbol.iterator](),
    '%StringIterator%': ''[Symbol.iterator](),
    '%RegExpStringIterator%': 'a'.matchAll(/a/g),
    '%IteratorHelper%': [].values().map((x) => x),
    '%WrapForValidIterator%': Iterator.from({ next() {} }),
    '%IteratorConcat%': Iterator.concat ? Iterator.concat([]) : undefined,
    '%AsyncIterator%': Object.getPrototypeOf(Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})()))),
    '%Arguments%': (function () { 'use strict'; return Object.getOwnPropertyDescriptor(arguments, 'callee').get; })(),
  };
  const out = [];
  const drain = () => {
    while (queue.length) {
      const [object, path] = queue.shift();
      for (const key of own(object)) {
        const name = typeof key === 'symbol' ? `@@${key.description.replace('Symbol.', '')}` : key;
        const step = path === '' ? name : `${path}.${name}`;
        const { value, get, set } = Object.getOwnPropertyDescriptor(object, key);
        visit(value, step);
        visit(get, `get ${step}`);
        visit(set, `set ${step}`);
      }
      visit(Object.getPrototypeOf(object), `${path}.__proto__`);
    }
  };
  drain();
  for (const [name, value] of Object.entries(hidden)) { visit(value, name); drain(); }
  const isNative = (f) => Function.prototype.toString.call(f).includes('[native code]');
  for (const [value, path] of found) if (typeof value === 'function') out.push(`${path} ${isNative(value)}`);
  return out.sort().join('\n');
})()"#;

fn reachable() -> BTreeMap<String, bool> {
    let until = Until::moment(Instant::now() + Duration::from_secs(60));
    let sandbox = Sandbox::new(64 * 1024 * 1024, 512 * 1024, until).expect("memory");
    let found: String =
        sandbox.context.with(|ctx| ctx.eval(REACHABLE).map_err(|_| sandbox.failure(&ctx))).unwrap();
    let line = |line: &str| line.rsplit_once(' ').map(|(path, native)| (path.to_owned(), native == "true"));
    found.lines().filter_map(line).collect()
}

/// Names and bounds of the table.
fn table() -> BTreeMap<String, &'static str> {
    let lines =
        include_str!("builtins.txt").lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let mut table = BTreeMap::new();
    for line in lines {
        let (bound, names) = line.split_once('\t').unwrap_or_else(|| panic!("no bound: {line}"));
        let bound =
            BOUNDS.into_iter().find(|known| *known == bound).unwrap_or_else(|| panic!("{bound} is no bound"));
        for name in names.split(", ") {
            assert!(table.insert(name.to_owned(), bound).is_none(), "{name} stands there twice");
        }
    }
    table
}

#[test]
fn every_built_in_has_a_bound() {
    let (found, table) = (reachable(), table());
    let unbounded: Vec<&String> = found.keys().filter(|name| !table.contains_key(*name)).collect();
    assert!(unbounded.is_empty(), "what bounds these?\n{unbounded:?}");
    let gone: Vec<&String> = table.keys().filter(|name| !found.contains_key(*name)).collect();
    assert!(gone.is_empty(), "there are no such functions:\n{gone:?}");
    for (name, bound) in &table {
        let guarded = GUARDED.contains(bound);
        assert_eq!(
            found[name], !guarded,
            "{name} is bounded by '{bound}'; is the engine's own one in the realm?"
        );
    }
}
