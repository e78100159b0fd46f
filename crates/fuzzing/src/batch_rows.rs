//! Bytes as a batch in rows.

pub fn run(input: &[u8]) {
    orrery_api_nosql::fuzzing::rows(input);
}
