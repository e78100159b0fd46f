//! Frames that wait for the network. Small ones lie one behind the other and go out together; a large payload is not copied.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use orrery_api::Attendant;
use orrery_budget::Held;

use super::call::Reply;

/// A payload up to this is copied behind its frame.
const COPIED_BYTES_MAX: usize = 16 * 1024;
/// Of an idle connection no more room than this is kept.
const KEPT_BYTES_MAX: usize = 64 * 1024;

pub struct Output {
    pieces: VecDeque<Piece>,
    /// What comes after the pieces, and how much of it was written.
    tail: Vec<u8>,
    written: usize,
    bytes: usize,
    attendant: Arc<dyn Attendant>,
}

struct Piece {
    bytes: Bytes,
    _held: Option<Held>,
}

impl Output {
    pub fn new(attendant: Arc<dyn Attendant>) -> Output {
        Output { pieces: VecDeque::new(), tail: Vec::new(), written: 0, bytes: 0, attendant }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub fn push(&mut self, reply: Reply) {
        let added = reply.frame.len() + reply.payload.len();
        self.bytes += added;
        self.attendant.answer_queued(added);
        self.tail.extend_from_slice(&reply.frame);
        if reply.payload.len() <= COPIED_BYTES_MAX {
            self.tail.extend_from_slice(&reply.payload);
            return;
        }
        let mut before = Bytes::from(std::mem::take(&mut self.tail));
        before.advance(std::mem::take(&mut self.written));
        self.pieces.push_back(Piece { bytes: before, _held: None });
        self.pieces.push_back(Piece { bytes: reply.payload, _held: reply.held });
    }

    /// What is to be written next.
    pub fn next(&self) -> &[u8] {
        match self.pieces.front() {
            Some(piece) => &piece.bytes,
            None => &self.tail[self.written..],
        }
    }

    /// So much of it was.
    pub fn written(&mut self, count: usize) {
        self.bytes -= count;
        self.attendant.answer_taken(count);
        if let Some(piece) = self.pieces.front_mut() {
            piece.bytes.advance(count);
            if piece.bytes.is_empty() {
                self.pieces.pop_front();
            }
            return;
        }
        self.written += count;
        if self.written == self.tail.len() {
            self.written = 0;
            self.tail.clear();
            self.tail.shrink_to(KEPT_BYTES_MAX);
        }
    }
}

/// What nobody has taken is not waited for any more.
impl Drop for Output {
    fn drop(&mut self) {
        self.attendant.answer_taken(self.bytes);
    }
}
