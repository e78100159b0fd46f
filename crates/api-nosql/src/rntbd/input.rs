//! Bytes that have arrived, as whole frames with their payloads.
//!
//! A small payload comes with its frame. Whoever makes the server wait for a large one is known first, and what it
//! takes is charged to the memory that all requests share. A payload that is too large, or of somebody who may not
//! have what the frame asks for, is refused at once and passed over as it comes.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use orrery_budget::{Budget, Held};

use super::call::{Call, Reply, Shared};
use super::frame::{BrokenFrame, Extent, FRAME_BYTES_MAX, RequestHead, extent};
use crate::errors::{ApiError, Plane};
use crate::service::BODY_BYTES_MAX;

/// A payload above this is waited for only if its sender is known, and charged.
const PAYLOAD_FREE_BYTES: usize = 64 * 1024;
/// A payload above this is not even passed over.
const PASSED_OVER_BYTES_MAX: usize = 64 * 1024 * 1024;
const READ_BYTES: usize = 16 * 1024;

pub struct Input {
    buffer: BytesMut,
    /// Of the frame at the front, when it is known.
    extent: Option<Extent>,
    held: Option<Held>,
    /// Bytes that are still to be passed over.
    passing_over: usize,
}

pub enum Arrived {
    Call(Box<Call>),
    Refused(Box<Reply>),
}

impl Input {
    pub fn new(buffer: BytesMut) -> Input {
        Input { buffer, extent: None, held: None, passing_over: 0 }
    }

    /// Where to read to.
    pub fn room(&mut self) -> &mut BytesMut {
        self.buffer.reserve(READ_BYTES);
        &mut self.buffer
    }

    /// The next request, or its refusal; `None`: it is not all there.
    pub fn next(&mut self, shared: &Arc<Shared>) -> Result<Option<Arrived>, BrokenFrame> {
        let passed = self.passing_over.min(self.buffer.len());
        if passed > 0 {
            let _ = self.buffer.split_to(passed);
            self.passing_over -= passed;
        }
        let extent = match self.extent {
            Some(extent) => extent,
            None => match extent(&self.buffer, FRAME_BYTES_MAX)? {
                None => return Ok(None),
                Some(extent) => {
                    if let Some(refused) = self.judged(shared, extent)? {
                        return Ok(Some(refused));
                    }
                    self.extent = Some(extent);
                    extent
                }
            },
        };
        if self.buffer.len() < extent.total() {
            return Ok(None);
        }
        self.extent = None;
        let frame = self.buffer.split_to(extent.frame).freeze();
        let payload = match extent.payload {
            None => Bytes::new(),
            Some(bytes) => {
                let _ = self.buffer.split_to(4);
                self.buffer.split_to(bytes).freeze()
            }
        };
        let call = Call::new(frame, payload, self.held.take()).ok_or(BrokenFrame("a frame has no head"))?;
        Ok(Some(Arrived::Call(Box::new(call))))
    }

    /// Whether a frame is worth waiting for its payload.
    fn judged(&mut self, shared: &Arc<Shared>, extent: Extent) -> Result<Option<Arrived>, BrokenFrame> {
        let payload = extent.payload.unwrap_or(0);
        if payload <= PAYLOAD_FREE_BYTES || self.buffer.len() >= extent.total() && payload <= BODY_BYTES_MAX {
            return Ok(None);
        }
        if payload > PASSED_OVER_BYTES_MAX {
            return Err(BrokenFrame("a payload is longer than anybody would send"));
        }
        let frame = &self.buffer[..extent.frame];
        let head = RequestHead::read(frame).ok_or(BrokenFrame("a frame has no head"))?;
        let refusal = if payload > BODY_BYTES_MAX {
            let error = orrery_engine::Error::new(orrery_engine::Kind::TooLarge, "Request size is too large");
            Some(ApiError::from_engine(error, Plane::Items))
        } else if let Some(error) = shared.refusal(&head, frame) {
            Some(error)
        } else {
            match Budget::new(shared.service.config.memory.clone()).hold(payload) {
                Ok(held) => {
                    self.held = Some(held);
                    None
                }
                Err(exceeded) => Some(exceeded.into()),
            }
        };
        let Some(error) = refusal else {
            self.buffer.reserve(extent.total().saturating_sub(self.buffer.len()));
            return Ok(None);
        };
        let reply = shared.refused(&head, frame, &error);
        self.passing_over = extent.total();
        Ok(Some(Arrived::Refused(Box::new(reply))))
    }
}
