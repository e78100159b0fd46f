//! Frames: a length, a fixed head, tokens, and perhaps a payload that the length does not count.
//!
//! ```text
//! request   u32 length · u16 resource type · u16 operation · 16 B activity · tokens    [u32 length · payload]
//! response  u32 length · u32 status                        · 16 B activity · tokens    [u32 length · payload]
//! ```
//!
//! Whether a payload follows is said by the token PayloadPresent. Activities are in the byte order of Microsoft's
//! GUIDs.

use super::token::Tokens;
use super::tokens::request;

/// Length, types and activity.
pub const HEAD_BYTES: usize = 24;
/// The longest frame without its payload: continuation and session tokens are 64 KB each at most.
pub const FRAME_BYTES_MAX: usize = 256 * 1024;
/// The longest context request: a version and the name of a client.
pub const CONTEXT_BYTES_MAX: usize = 4 * 1024;

/// How long the next frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    pub frame: usize,
    /// Bytes of the payload, if there is one; its length is 4 bytes more.
    pub payload: Option<usize>,
}

impl Extent {
    pub fn total(self) -> usize {
        self.frame + self.payload.map_or(0, |payload| 4 + payload)
    }
}

/// What comes is no frame, and where the next one would begin cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenFrame(pub &'static str);

/// How long the frame is that begins here; `None`: more must arrive to tell.
pub fn extent(input: &[u8], frame_bytes_max: usize) -> Result<Option<Extent>, BrokenFrame> {
    let Some(length) = u32_at(input, 0) else { return Ok(None) };
    let frame = length as usize;
    if frame < HEAD_BYTES {
        return Err(BrokenFrame("a frame is shorter than its head"));
    }
    if frame > frame_bytes_max {
        return Err(BrokenFrame("a frame is longer than allowed"));
    }
    let Some(bytes) = input.get(..frame) else { return Ok(None) };
    if !has_payload(&bytes[HEAD_BYTES..]) {
        return Ok(Some(Extent { frame, payload: None }));
    }
    Ok(u32_at(input, frame).map(|payload| Extent { frame, payload: Some(payload as usize) }))
}

/// Tokens that are broken further on are the business of whoever reads the request.
fn has_payload(tokens: &[u8]) -> bool {
    let mut tokens = Tokens::new(tokens).map_while(Result::ok);
    let present = tokens.find(|(id, _)| *id == request::PAYLOAD_PRESENT);
    present.and_then(|(_, value)| value.number()).is_some_and(|present| present != 0)
}

/// The fixed part of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    pub resource_type: u16,
    pub operation: u16,
    pub activity: [u8; 16],
}

impl RequestHead {
    /// Of a whole frame.
    pub fn read(frame: &[u8]) -> Option<RequestHead> {
        let head = frame.get(..HEAD_BYTES)?;
        let mut activity = [0; 16];
        activity.copy_from_slice(&head[8..]);
        Some(RequestHead {
            resource_type: u16::from_le_bytes([head[4], head[5]]),
            operation: u16::from_le_bytes([head[6], head[7]]),
            activity,
        })
    }
}

/// The head of a response, whose length [`close`] fills in when its tokens are written.
pub fn open(out: &mut Vec<u8>, status: u16, activity: &[u8; 16]) -> usize {
    let begin = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&u32::from(status).to_le_bytes());
    out.extend_from_slice(activity);
    begin
}

pub fn close(out: &mut [u8], begin: usize) {
    let length = (out.len() - begin) as u32;
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request whose only token says whether a payload follows.
    fn frame(present: u8, rest: &[u8]) -> Vec<u8> {
        let mut bytes = vec![28, 0, 0, 0, 3, 0, 1, 0];
        bytes.extend_from_slice(&[7; 16]);
        bytes.extend_from_slice(&[2, 0, 0, present]);
        bytes.extend_from_slice(rest);
        bytes
    }

    #[test]
    fn the_length_does_not_count_the_payload() {
        let whole = frame(1, &[5, 0, 0, 0, 1, 2, 3, 4, 5]);
        let extent_of = |bytes: &[u8]| extent(bytes, FRAME_BYTES_MAX);
        assert_eq!(extent_of(&whole).unwrap().map(Extent::total), Some(whole.len()));
        assert_eq!(extent_of(&frame(0, &[])), Ok(Some(Extent { frame: 28, payload: None })));
        for end in 0..31 {
            assert_eq!(extent_of(&whole[..end]), Ok(None), "{end}");
        }
    }

    #[test]
    fn lengths_that_no_frame_has_are_refused_before_anything_is_kept() {
        for length in [0u32, 23, FRAME_BYTES_MAX as u32 + 1, u32::MAX] {
            assert!(extent(&length.to_le_bytes(), FRAME_BYTES_MAX).is_err(), "{length}");
        }
        assert!(extent(&5000u32.to_le_bytes(), CONTEXT_BYTES_MAX).is_err());
    }
}
