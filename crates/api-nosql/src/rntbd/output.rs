//! Frames that wait for the network, each written by itself.
//!
//! The Java SDK (4.81 at least) decodes what one read from the network has brought, moves what follows the first
//! frame to the front of its buffer, and only then reads the first frame's values: it takes them from the second. The
//! first answer is lost, and its request fails after five seconds. So frames are not gathered, however well they
//! would go out together, and on connections of that SDK a frame waits for [`GAP`] after the last one. Where one
//! request at a time is in flight that costs nothing; where many are, the SDK opens more connections. It makes the
//! loss rare; only the SDK could end it.
//!
//! A large payload is not copied behind its frame.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use orrery_api::Attendant;
use orrery_budget::Held;

use super::call::Reply;

/// A payload up to this is copied behind its frame: what goes into one record.
const COPIED_BYTES_MAX: usize = 12 * 1024;

pub struct Output {
    pieces: VecDeque<Piece>,
    bytes: usize,
    attendant: Arc<dyn Attendant>,
    /// Whether there is a gap between frames, and when the last one had gone out.
    has_gaps: bool,
    last_sent: Option<Instant>,
}

/// Between two frames to a client that loses answers that come together. Timers are not finer.
pub const GAP: Duration = Duration::from_millis(1);

/// What one write may bring to the network.
struct Piece {
    bytes: Bytes,
    begins_frame: bool,
    _held: Option<Held>,
}

impl Output {
    pub fn new(attendant: Arc<dyn Attendant>, has_gaps: bool) -> Output {
        Output { pieces: VecDeque::new(), bytes: 0, attendant, has_gaps, last_sent: None }
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    pub fn push(&mut self, reply: Reply) {
        let Reply { mut frame, payload, held, .. } = reply;
        let added = frame.len() + payload.len();
        self.bytes += added;
        self.attendant.answer_queued(added);
        let copied = payload.len() <= COPIED_BYTES_MAX;
        if copied {
            frame.extend_from_slice(&payload);
        }
        self.pieces.push_back(Piece { bytes: Bytes::from(frame), begins_frame: true, _held: None });
        if !copied {
            self.pieces.push_back(Piece { bytes: payload, begins_frame: false, _held: held });
        }
    }

    /// How long the next frame is to wait. Never in the middle of one.
    pub fn gap(&self) -> Option<Duration> {
        let last = self.last_sent.filter(|_| self.pieces.front().is_some_and(|piece| piece.begins_frame))?;
        GAP.checked_sub(last.elapsed())
    }

    /// What is to be written next.
    pub fn next(&self) -> &[u8] {
        self.pieces.front().map_or(&[], |piece| &piece.bytes)
    }

    /// So much of it was.
    pub fn written(&mut self, count: usize) {
        let Some(piece) = self.pieces.front_mut() else { return };
        piece.bytes.advance(count);
        piece.begins_frame &= count == 0;
        self.bytes -= count;
        self.attendant.answer_taken(count);
        if piece.bytes.is_empty() {
            self.pieces.pop_front();
            self.last_sent = self.has_gaps.then(Instant::now);
        }
    }
}

/// What nobody has taken is not waited for any more.
impl Drop for Output {
    fn drop(&mut self) {
        self.attendant.answer_taken(self.bytes);
    }
}
