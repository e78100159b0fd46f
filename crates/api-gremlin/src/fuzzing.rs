//! For tests only: what decodes the bytes of clients, by itself.

use orrery_gremlin::Value;

use crate::config::Results;
use crate::graphbinary::{Reader, write_value};
use crate::graphson::{self, Typed};
use crate::message;
use crate::sasl::Credentials;

/// A value in GraphSON. What was read and written in the typed form is read again.
pub fn graphson(text: &[u8]) {
    if let Ok(value) = graphson::read(text) {
        for third in [false, true] {
            let mut written = Vec::new();
            Typed { third }.write(&value, &mut written);
            assert!(
                graphson::read(&written).is_ok() || !is_plain(&value),
                "{}",
                String::from_utf8_lossy(&written)
            );
        }
        let mut written = Vec::new();
        graphson::write_untyped(&value, &mut written);
    }
}

/// A value in GraphBinary. What was read and written is read again.
pub fn graphbinary(bytes: &[u8]) {
    if let Ok(value) = Reader::new(bytes).value() {
        let mut written = Vec::new();
        write_value(&value, &mut written);
        let again = Reader::new(&written).value();
        assert!(again.is_ok() || !is_plain(&value), "{value:?}");
    }
}

/// A whole message: a length, a MIME type, a request.
pub fn message(frame: &[u8]) {
    if let Ok(request) = message::read_binary(frame, Results::Cosmos)
        && let Some(sasl) = request.arg("sasl")
    {
        match sasl {
            Value::String(text) => drop(Credentials::of_text(text)),
            Value::Binary(bytes) => drop(Credentials::of_bytes(bytes)),
            _ => {}
        }
    }
}

/// Values that are results; arguments such as predicates are written as texts, and dates beyond what one format holds differ.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Long(_)
        | Value::Double(_)
        | Value::String(_) => true,
        Value::List(items) => items.iter().all(is_plain),
        Value::Map(map) => map.iter().all(|(key, value)| matches!(key, Value::String(_)) && is_plain(value)),
        _ => false,
    }
}
