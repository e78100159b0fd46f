//! OP_COMPRESSED: a message that is packed, by what both sides can.

use std::io::{Read, Write};

use super::{Broken, HEADER_BYTES, MESSAGE_BYTES_MAX, int};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compressor {
    Snappy,
    Zlib,
    Zstd,
}

impl Compressor {
    pub const ALL: [Compressor; 3] = [Compressor::Snappy, Compressor::Zstd, Compressor::Zlib];

    pub fn name(self) -> &'static str {
        match self {
            Compressor::Snappy => "snappy",
            Compressor::Zlib => "zlib",
            Compressor::Zstd => "zstd",
        }
    }

    fn number(self) -> u8 {
        match self {
            Compressor::Snappy => 1,
            Compressor::Zlib => 2,
            Compressor::Zstd => 3,
        }
    }

    pub fn named(name: &str) -> Option<Compressor> {
        Compressor::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// original opcode, size without the header, number of the compressor, packed bytes.
pub fn unpack(bytes: &[u8]) -> Result<(i32, Option<Compressor>, Vec<u8>), Broken> {
    let packed = bytes.get(9..).ok_or(Broken("a packed message that is too short"))?;
    let (opcode, size) = (int(bytes, 0), int(bytes, 4));
    let size = usize::try_from(size).ok().filter(|size| *size <= MESSAGE_BYTES_MAX);
    let size = size.ok_or(Broken("a packed message that is too long"))?;
    let unpacked = match bytes[8] {
        0 => packed.to_vec(),
        1 => {
            let length =
                snap::raw::decompress_len(packed).map_err(|_| Broken("a message that is no snappy"))?;
            if length != size {
                return Err(Broken("a packed message of another length than it says"));
            }
            snap::raw::Decoder::new()
                .decompress_vec(packed)
                .map_err(|_| Broken("a message that is no snappy"))?
        }
        2 => read_to(size, flate2::read::ZlibDecoder::new(packed))
            .ok_or(Broken("a message that is no zlib"))?,
        3 => {
            let decoder = ruzstd::decoding::StreamingDecoder::new(packed);
            let decoder = decoder.map_err(|_| Broken("a message that is no zstd"))?;
            read_to(size, decoder).ok_or(Broken("a message that is no zstd"))?
        }
        _ => return Err(Broken("a message packed by something unknown")),
    };
    if unpacked.len() != size {
        return Err(Broken("a packed message of another length than it says"));
    }
    let compressor = Compressor::ALL.into_iter().find(|known| known.number() == bytes[8]);
    Ok((opcode, compressor, unpacked))
}

/// Reads what unpacks to this many bytes, and one more to see that it does not go on.
fn read_to(size: usize, from: impl Read) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size.min(1 << 20));
    from.take(size as u64 + 1).read_to_end(&mut out).ok()?;
    Some(out)
}

/// A whole message with room for its header.
pub fn pack(compressor: Compressor, opcode: i32, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0; HEADER_BYTES];
    out.extend_from_slice(&opcode.to_le_bytes());
    out.extend_from_slice(&(bytes.len() as i32).to_le_bytes());
    out.push(compressor.number());
    let mark = out.len();
    let packed = match compressor {
        Compressor::Snappy => match snap::raw::Encoder::new().compress_vec(bytes) {
            Ok(packed) => {
                out.extend_from_slice(&packed);
                true
            }
            Err(_) => false,
        },
        Compressor::Zlib => {
            let mut encoder = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::fast());
            encoder.write_all(bytes).and_then(|()| encoder.finish().map(drop)).is_ok()
        }
        Compressor::Zstd => {
            let packed =
                ruzstd::encoding::compress_to_vec(bytes, ruzstd::encoding::CompressionLevel::Fastest);
            out.extend_from_slice(&with_content_size(packed, bytes.len()));
            true
        }
    };
    if !packed {
        // Nothing was packed: number 0 says so.
        out.truncate(mark);
        out[mark - 1] = 0;
        out.extend_from_slice(bytes);
    }
    out
}

/// A frame of Zstandard that says how long its content is, which some decoders insist on. The encoder leaves that out:
/// the field goes behind the descriptors of the frame and of its window.
fn with_content_size(mut frame: Vec<u8>, content_bytes: usize) -> Vec<u8> {
    /// Where the descriptor of the frame stands, behind the magic number.
    const DESCRIPTOR: usize = 4;
    /// Bits that are set where the header has the field already, another form, or a dictionary.
    const OTHER_FORM: u8 = 0b1110_0011;
    /// The field has eight bytes.
    const EIGHT_BYTES: u8 = 0b1100_0000;
    match frame.get(DESCRIPTOR) {
        Some(descriptor) if descriptor & OTHER_FORM == 0 && frame.len() > DESCRIPTOR + 2 => {
            frame[DESCRIPTOR] |= EIGHT_BYTES;
            let size = (content_bytes as u64).to_le_bytes();
            frame.splice(DESCRIPTOR + 2..DESCRIPTOR + 2, size);
            frame
        }
        _ => frame,
    }
}
