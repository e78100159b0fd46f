//! Bytes as what comes on a connection of the direct protocol.

use orrery_api_nosql::fuzzing;

pub fn run(input: &[u8]) {
    fuzzing::frames(input);
    // Lengths of random bytes are never right: the same bytes as the tokens of a frame whose head is.
    let mut frame = ((24 + input.len()) as u32).to_le_bytes().to_vec();
    frame.extend_from_slice(&[3, 0, 3, 0]);
    frame.extend_from_slice(&[7; 16]);
    frame.extend_from_slice(input);
    fuzzing::frames(&frame);
    for (resource_type, operation) in [(0, 0), (1, 4), (3, 0x0F), (3, 0x25), (7, 8), (2, 0x11)] {
        frame[4] = resource_type;
        frame[6] = operation;
        fuzzing::frames(&frame);
    }
}
