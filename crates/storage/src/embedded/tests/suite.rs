//! The store suite, run by every store and by pairs of them.

use std::cell::RefCell;
use std::sync::Arc;

use super::{small, temporary};
use crate::doubles::{Counting, Mirror};
use crate::embedded::{EmbeddedOptions, EmbeddedStore};
use crate::memory::MemoryStore;
use crate::store::Store;
use crate::suite::suite;

#[test]
fn the_memory_store_passes_the_suite() {
    suite(&|| Arc::new(MemoryStore::new()));
}

/// Runs the suite on embedded stores whose directories live until it ends.
fn embedded_suite(options: EmbeddedOptions, wrap: impl Fn(EmbeddedStore) -> Arc<dyn Store>) {
    let directories = RefCell::new(Vec::new());
    suite(&|| {
        let directory = temporary();
        let store = EmbeddedStore::open(directory.path(), options.clone()).expect("opens");
        directories.borrow_mut().push(directory);
        wrap(store)
    });
}

#[test]
fn the_embedded_store_passes_the_suite() {
    embedded_suite(EmbeddedOptions::default(), |store| Arc::new(store));
}

#[test]
fn the_embedded_store_passes_the_suite_while_it_flushes_all_the_time() {
    let options = EmbeddedOptions { memtable_bytes: [2048; 3], segment_bytes: 4096, ..small() };
    embedded_suite(options, |store| Arc::new(store));
}

#[test]
fn memory_and_embedded_agree() {
    embedded_suite(small(), |store| Arc::new(Mirror::new(MemoryStore::new(), store)));
}

#[test]
fn counting_changes_nothing() {
    suite(&|| Arc::new(Counting::new(MemoryStore::new())));
}
