//! Bytes as what clients of the Gremlin API send: scripts, values in GraphSON and GraphBinary, whole messages.

use orrery_api_gremlin::fuzzing;

pub fn graphson(input: &[u8]) {
    fuzzing::graphson(input);
}

pub fn graphbinary(input: &[u8]) {
    fuzzing::graphbinary(input);
}

pub fn script(input: &[u8]) {
    fuzzing::script(input);
}

pub fn message(input: &[u8]) {
    fuzzing::message(input);
}
