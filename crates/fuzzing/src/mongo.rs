//! Bytes as what clients of the MongoDB API send, and its language, whose own checks are in its crate.

use orrery_mongo::fuzzing;

pub fn bson(input: &[u8]) {
    fuzzing::bson(input);
}

pub fn operation(input: &[u8]) {
    fuzzing::operation(input);
}

pub fn messages(input: &[u8]) {
    orrery_api_mongo::fuzzing::messages(input);
}
