//! What is done with bytes that nobody would send: see `crates/fuzzing`.

use std::sync::Arc;

use orrery_budget::{Budget, MemoryPool};
use orrery_model::{DocWriter, Raw};

use crate::codec;
use crate::context::Context;
use crate::ext_json::{self, Reading, Style};
use crate::memory::Memory;
use crate::order;
use crate::value::{Bson, Document};
use crate::value_ref::ValueRef;

/// What one input may use.
const MEMORY_BYTES: usize = 64 << 20;

/// A document in BSON: read, stored, printed, read again, compared.
pub fn bson(input: &[u8]) {
    let Ok(document) = codec::read_document(input) else { return };
    let value = ValueRef::from(&document);
    let mut written = Vec::new();
    codec::write_document(value, &mut written);
    let again = codec::read_document(&written).expect("what was written is read");
    assert!(again.is_identical(&document) || has_nan(value), "BSON comes back");
    assert!(order::compare(value, (&again).into(), None).is_eq(), "a document equals itself");
    let mut writer = DocWriter::keeping_widths(written.len());
    codec::write_stored(value, &mut writer);
    let stored = writer.finish();
    let raw = Raw::document(&stored).expect("a document that was just written");
    let mut out = Vec::new();
    codec::write_document(ValueRef::Stored(raw), &mut out);
    codec::read_document(&out).expect("a stored document is BSON");
    let text = ext_json::to_text(value, Style::Canonical);
    // Deeper than the parser of JSON goes, or with names that are the forms of values, texts do not come back.
    let _ = ext_json::parse(&text, Reading::Data);
}

/// Bits of NaN differ where their meaning does not.
fn has_nan(value: ValueRef<'_>) -> bool {
    value.as_number().is_some_and(order::is_not_a_number)
        || value.elements().any(has_nan)
        || value.members().any(|(_, member)| has_nan(member))
}

/// A text in Extended JSON: documents and what commands say of them, all run in memory.
pub fn operation(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(case) = ext_json::parse_document(text, Reading::Query) else { return };
    let arguments = case.get("args").and_then(Bson::as_document).cloned().unwrap_or_default();
    let budget = Budget::new(MemoryPool::new(MEMORY_BYTES));
    let context = Context { budget, ..Context::for_tests() };
    let memory = Arc::new(Memory::default());
    let documents = case.get("documents").and_then(Bson::as_array).unwrap_or_default();
    let documents: Vec<Document> = documents.iter().filter_map(Bson::as_document).cloned().collect();
    memory.fill("c", documents.clone());
    let _ = memory.find("c", &arguments, &context);
    let _ = memory.update("c", &arguments, true, &context);
    memory.fill("c", documents.clone());
    let _ = memory.update("c", &arguments, false, &context);
    if let Some(stages) = arguments.get("pipeline").and_then(Bson::as_array) {
        memory.fill("c", documents);
        let _ = memory.aggregate(Some("c"), stages, &context);
    }
}
