//! Vectors in a few bits for each dimension, for finding those that are worth a closer look.
//!
//! Nothing is learned from the data, so that the code of a vector depends on the vector alone. It is brought to
//! length 1 and turned by a fixed rotation that looks random (signs and Hadamard transforms), after which every
//! dimension says about as much as every other and is spread like a bell curve. Each is rounded to one of a few
//! steps; where there are fewer bits than dimensions the rest is left out. A code also keeps the vector's length, and
//! by how much rounding has changed its direction: dividing by that makes the product with another vector right on
//! average (as in RaBitQ).
//!
//! ```text
//! length (f32)   correction (f32)   codes, 1, 2, 4 or 8 bits each
//! ```

use crate::vector::Metric;

/// Largest code of a vector.
pub const CODE_BYTES_MAX: usize = 512;
/// Bits for each dimension where the policy does not say and they fit.
const BITS_DEFAULT: usize = 4;
/// Bytes before the codes.
const HEAD_BYTES: usize = 8;
/// Times that signs are changed and dimensions mixed.
const ROUNDS: u64 = 2;
/// Largest weight of a dimension of a query, so that sums fit 32 bits.
const WEIGHT_MAX: f32 = 1_000.0;

/// How vectors of an index are coded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantizer {
    dimensions: usize,
    /// Dimensions that are kept.
    kept: usize,
    bits: usize,
}

impl Quantizer {
    /// `code_bytes`: how long codes are to be, at most.
    pub fn new(dimensions: usize, code_bytes: Option<usize>) -> Quantizer {
        let bytes = code_bytes.unwrap_or((dimensions * BITS_DEFAULT).div_ceil(8)).clamp(1, CODE_BYTES_MAX);
        let bits = [8, 4, 2, 1].into_iter().find(|bits| dimensions * bits <= 8 * bytes).unwrap_or(1);
        Quantizer { dimensions, kept: dimensions.min(8 * bytes / bits), bits }
    }

    /// The distance between two steps, in standard deviations: the best for a bell curve.
    fn step(&self) -> f32 {
        let steps = match self.bits {
            1 => 1.596,
            2 => 0.9957,
            4 => 0.3352,
            _ => 0.0308,
        };
        steps / (self.dimensions as f32).sqrt()
    }

    /// The code in the middle, between two steps.
    fn middle(&self) -> f32 {
        ((1u32 << self.bits) - 1) as f32 / 2.0
    }

    /// Bytes of a code.
    pub fn code_bytes(&self) -> usize {
        HEAD_BYTES + (self.kept * self.bits).div_ceil(8)
    }

    /// Appends the code of a vector. Nothing is written for one that is not as it should be, or of length 0.
    pub fn encode(&self, out: &mut Vec<u8>, vector: &[f64]) {
        let Some((length, turned)) = self.turned(vector) else { return };
        let (step, middle) = (self.step(), self.middle());
        let highest = 2.0 * middle;
        let codes: Vec<u8> =
            turned.iter().map(|part| (part / step + middle).round().clamp(0.0, highest) as u8).collect();
        let along: f32 =
            turned.iter().zip(&codes).map(|(part, code)| part * (f32::from(*code) - middle) * step).sum();
        let correction = if along > 0.0 { 1.0 / along } else { 0.0 };
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&correction.to_le_bytes());
        for packed in codes.chunks(8 / self.bits) {
            let byte = packed.iter().enumerate().fold(0, |byte, (at, code)| byte | code << (at * self.bits));
            out.push(byte);
        }
    }

    /// The length of a vector, and the kept dimensions of its direction.
    fn turned(&self, vector: &[f64]) -> Option<(f32, Vec<f32>)> {
        if vector.len() != self.dimensions {
            return None;
        }
        let length = vector.iter().map(|part| part * part).sum::<f64>().sqrt();
        if !(length.is_normal() && (length as f32).is_normal()) {
            return None;
        }
        let mut turned: Vec<f32> = vector.iter().map(|part| (part / length) as f32).collect();
        rotate(&mut turned);
        turned.truncate(self.kept);
        Some((length as f32, turned))
    }

    /// The vector of a query; `None` for one without a direction.
    pub fn probe(&self, vector: &[f64], metric: Metric) -> Option<CodeProbe> {
        let (length, turned) = self.turned(vector)?;
        self.probe_turned(length, &turned, metric)
    }

    /// A stored vector in the place of that of a query, as far as its code tells; `None` for a code that is none.
    pub fn probe_code(&self, code: &[u8], metric: Metric) -> Option<CodeProbe> {
        let unpacked = self.unpack(code)?;
        let scale = self.step() / 2.0 * unpacked.correction;
        let turned: Vec<f32> = unpacked.steps.iter().map(|step| f32::from(*step) * scale).collect();
        self.probe_turned(unpacked.length, &turned, metric)
    }

    /// A code in a form that is quickly compared with others of its kind; `None` for a code that is none.
    pub fn unpack(&self, code: &[u8]) -> Option<Unpacked> {
        if code.len() != self.code_bytes() {
            return None;
        }
        let number = |at: usize| Some(f32::from_le_bytes(*code.get(at..)?.first_chunk()?));
        let (length, correction) = (number(0)?, number(4)?);
        let (mask, highest) = ((1u16 << self.bits) - 1, (1i16 << self.bits) - 1);
        let mut steps = Vec::with_capacity(code.len() * 8 / self.bits);
        for byte in &code[HEAD_BYTES..] {
            for at in 0..8 / self.bits {
                steps.push(2 * (u16::from(*byte) >> (at * self.bits) & mask) as i16 - highest);
            }
        }
        steps.truncate(self.kept);
        Some(Unpacked { length, correction, steps })
    }

    /// About the cosine of the angle between two vectors.
    pub fn cosine(&self, a: &Unpacked, b: &Unpacked) -> f32 {
        let half = self.step() / 2.0;
        let products = a.steps.iter().zip(&b.steps);
        let sum: i32 = products.map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        sum as f32 * (half * half) * a.correction * b.correction
    }

    fn probe_turned(&self, length: f32, turned: &[f32], metric: Metric) -> Option<CodeProbe> {
        let largest = turned.iter().fold(0f32, |most, part| most.max(part.abs()));
        if largest == 0.0 {
            return None;
        }
        let scale = WEIGHT_MAX / largest;
        let weights: Vec<i16> = turned.iter().map(|part| (part * scale).round() as i16).collect();
        let total: i32 = weights.iter().map(|weight| i32::from(*weight)).sum();
        let per_byte = 8 / self.bits;
        let tables = match self.bits {
            8 | 4 => Vec::new(),
            bits => weights
                .chunks(per_byte)
                .map(|weights| {
                    let sum = |byte: usize| {
                        let part = |(at, weight): (usize, &i16)| {
                            i32::from(*weight) * (byte >> (at * bits) & ((1 << bits) - 1)) as i32
                        };
                        weights.iter().enumerate().map(part).sum()
                    };
                    std::array::from_fn(sum)
                })
                .collect(),
        };
        let every = |from: usize| weights.iter().skip(from).step_by(per_byte.min(2)).copied().collect();
        let (even, odd) = (every(0), if self.bits == 4 { every(1) } else { Vec::new() });
        let unit = self.step() / scale;
        Some(CodeProbe {
            metric,
            length,
            code_bytes: self.code_bytes(),
            bits: self.bits,
            even,
            odd,
            tables,
            unit,
            offset: self.middle() * total as f32 * unit,
        })
    }
}

/// A code, unpacked: one number for each dimension, an odd one between the steps.
#[derive(Debug, Clone)]
pub struct Unpacked {
    pub length: f32,
    correction: f32,
    steps: Vec<i16>,
}

/// The vector of a query, as codes are compared with it.
pub struct CodeProbe {
    metric: Metric,
    length: f32,
    code_bytes: usize,
    bits: usize,
    even: Vec<i16>,
    odd: Vec<i16>,
    /// For each byte of a code, what it contributes.
    tables: Vec<[i32; 256]>,
    unit: f32,
    offset: f32,
}

impl CodeProbe {
    /// About how alike the vectors are, more being better; `None` for a code that is none.
    pub fn compare(&self, code: &[u8]) -> Option<f32> {
        let (cosine, length) = self.cosine(code)?;
        Some(match self.metric {
            Metric::Cosine => cosine,
            Metric::DotProduct => cosine * length * self.length,
            Metric::Euclidean => {
                2.0 * cosine * length * self.length - length * length - self.length * self.length
            }
        })
    }

    /// The length of the vector.
    pub fn length(&self) -> f32 {
        self.length
    }

    /// About the cosine of the angle between the vectors, and the length of the other; `None` for a code that is none.
    pub fn cosine(&self, code: &[u8]) -> Option<(f32, f32)> {
        if code.len() != self.code_bytes {
            return None;
        }
        let number = |at: usize| Some(f32::from_le_bytes(*code.get(at..)?.first_chunk()?));
        let (length, correction) = (number(0)?, number(4)?);
        let codes = &code[HEAD_BYTES..];
        let sum: i32 = match self.bits {
            8 => {
                codes.iter().zip(&self.even).map(|(code, weight)| i32::from(*code) * i32::from(*weight)).sum()
            }
            4 => {
                let low = codes.iter().zip(&self.even);
                let low: i32 = low.map(|(code, weight)| i32::from(code & 15) * i32::from(*weight)).sum();
                let high = codes.iter().zip(&self.odd);
                low + high.map(|(code, weight)| i32::from(code >> 4) * i32::from(*weight)).sum::<i32>()
            }
            _ => codes.iter().zip(&self.tables).map(|(code, table)| table[usize::from(*code)]).sum(),
        };
        Some(((sum as f32 * self.unit - self.offset) * correction, length))
    }
}

/// A rotation that mixes all dimensions, always the same.
fn rotate(vector: &mut [f32]) {
    let count = vector.len();
    if count < 2 {
        return;
    }
    let block = 1 << count.ilog2();
    for round in 0..ROUNDS {
        change_signs(vector, 2 * round);
        mix(&mut vector[..block]);
        if block < count {
            // The blocks overlap by more than half, so what is mixed in one reaches the other.
            change_signs(vector, 2 * round + 1);
            mix(&mut vector[count - block..]);
        }
    }
}

fn change_signs(vector: &mut [f32], round: u64) {
    for (at, part) in vector.iter_mut().enumerate() {
        let mut mixed = (at as u64 ^ round << 32).wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        if (mixed ^ (mixed >> 31)) & 1 == 1 {
            *part = -*part;
        }
    }
}

/// The Hadamard transform of a power of two of elements, which keeps lengths.
fn mix(vector: &mut [f32]) {
    let mut half = 1;
    while half < vector.len() {
        for pair in vector.chunks_exact_mut(2 * half) {
            let (left, right) = pair.split_at_mut(half);
            for (left, right) in left.iter_mut().zip(right) {
                (*left, *right) = (*left + *right, *left - *right);
            }
        }
        half *= 2;
    }
    let scale = 1.0 / (vector.len() as f32).sqrt();
    vector.iter_mut().for_each(|part| *part *= scale);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(seed: u64, dimensions: usize) -> Vec<f64> {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut next = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            (mixed >> 11) as f64 / (1u64 << 53) as f64 - 0.5
        };
        (0..dimensions).map(|_| next() + next() + next()).collect()
    }

    #[test]
    fn rotations_keep_lengths_and_angles() {
        for dimensions in [1, 2, 3, 8, 100, 128, 300] {
            let (mut a, mut b): (Vec<f32>, Vec<f32>) = (
                vector(1, dimensions).iter().map(|part| *part as f32).collect(),
                vector(2, dimensions).iter().map(|part| *part as f32).collect(),
            );
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let (before, product) = (dot(&a, &a), dot(&a, &b));
            rotate(&mut a);
            rotate(&mut b);
            assert!((dot(&a, &a) - before).abs() < 1e-3 && (dot(&a, &b) - product).abs() < 1e-3);
        }
    }

    #[test]
    fn sizes_are_as_the_policy_asks() {
        for (dimensions, asked, bytes) in [
            (128, None, 64),
            (1_536, None, 384),
            (4_096, None, 512),
            (128, Some(16), 16),
            (128, Some(8), 8),
            (3, Some(1), 1),
            (3, None, 2),
            (64, Some(64), 64),
        ] {
            let quantizer = Quantizer::new(dimensions, asked);
            let mut code = Vec::new();
            quantizer.encode(&mut code, &vector(1, dimensions));
            assert_eq!(code.len(), quantizer.code_bytes());
            assert!(code.len() - HEAD_BYTES <= bytes, "{dimensions} {asked:?} {}", code.len());
        }
    }

    /// The more bits, the better products are told; and they are right on average.
    #[test]
    fn products_come_near_the_truth() {
        for (asked, allowed) in
            [(None, 0.02), (Some(128), 0.004), (Some(32), 0.05), (Some(16), 0.09), (Some(8), 0.14)]
        {
            let quantizer = Quantizer::new(128, asked);
            let query = vector(1_000_000, 128);
            let probe = quantizer.probe(&query, Metric::Cosine).unwrap();
            let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let (mut squares, mut sum) = (0.0, 0.0);
            for seed in 0..500 {
                let other = vector(seed, 128);
                let mut code = Vec::new();
                quantizer.encode(&mut code, &other);
                let truth = dot(&query, &other) / (dot(&query, &query) * dot(&other, &other)).sqrt();
                let off = f64::from(probe.compare(&code).unwrap()) - truth;
                squares += off * off;
                sum += off;
            }
            let (spread, bias) = ((squares / 500.0).sqrt(), sum / 500.0);
            assert!(spread < allowed && bias.abs() < allowed / 5.0, "{asked:?}: {spread} {bias}");
        }
    }

    #[test]
    fn what_has_no_direction_has_no_code() {
        let quantizer = Quantizer::new(2, None);
        let mut code = Vec::new();
        quantizer.encode(&mut code, &[0.0, 0.0]);
        quantizer.encode(&mut code, &[1.0]);
        quantizer.encode(&mut code, &[1e200, 1e200]);
        assert!(code.is_empty());
        assert!(quantizer.probe(&[1.0, 2.0], Metric::Cosine).unwrap().compare(&[1, 2]).is_none());
    }
}
