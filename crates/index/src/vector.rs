//! Vectors as the values of index rows: whole, in as few bytes as their type allows.
//!
//! ```text
//! (nothing)     a vector that no form holds, of numbers beyond all measure: the item must be asked
//! 00 …          4 bytes for each element: float32
//! 01 …          2 bytes: float16
//! 02 … 03 …     1 byte: int8, uint8
//! ```
//!
//! Whole numbers are written as bytes only where nothing is lost. A [`Probe`] computes how alike a stored vector is
//! to that of a query, and how far off the answer can be at most, because elements were rounded and sums are short:
//! so that whoever wants the exact order knows whom to ask.

/// How elements are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element {
    Float32,
    Float16,
    Int8,
    Uint8,
}

const FLOAT32: u8 = 0;
const FLOAT16: u8 = 1;
const INT8: u8 = 2;
const UINT8: u8 = 3;

/// Largest number that two bytes hold.
const FLOAT16_MAX: f64 = 65_504.0;
/// Relative error of rounding to four and to two bytes.
const FLOAT32_ERROR: f64 = 1.0 / 16_777_216.0;
const FLOAT16_ERROR: f64 = 1.0 / 2_048.0;
/// What two bytes are off at most however small a number is.
const FLOAT16_TINY: f64 = 1.0 / 16_777_216.0;
/// Longest vector whose products four bytes hold.
const LENGTH_MAX: f64 = 1e18;
/// Sums that run side by side.
const LANES: usize = 16;

/// Appends a vector.
pub fn encode_vector(out: &mut Vec<u8>, vector: &[f64], element: Element) {
    let whole =
        |low: f64, high: f64| vector.iter().all(|part| part.fract() == 0.0 && (low..=high).contains(part));
    match element {
        Element::Int8 if whole(-128.0, 127.0) => {
            out.push(INT8);
            out.extend(vector.iter().map(|part| *part as i8 as u8));
        }
        Element::Uint8 if whole(0.0, 255.0) => {
            out.push(UINT8);
            out.extend(vector.iter().map(|part| *part as u8));
        }
        Element::Float16 if vector.iter().all(|part| part.abs() <= FLOAT16_MAX) => {
            out.push(FLOAT16);
            vector.iter().for_each(|part| out.extend_from_slice(&to_half(*part as f32).to_le_bytes()));
        }
        _ if vector.iter().all(|part| (*part as f32).is_finite()) => {
            out.push(FLOAT32);
            vector.iter().for_each(|part| out.extend_from_slice(&(*part as f32).to_le_bytes()));
        }
        _ => {}
    }
}

/// Reads a vector; `None` for one that was not written, or for damaged bytes. The error is that of its elements:
/// relative, and whatever their size.
fn decode(bytes: &[u8], into: &mut Vec<f32>) -> Option<(f64, f64)> {
    into.clear();
    let (form, body) = bytes.split_first()?;
    match *form {
        FLOAT32 if body.len().is_multiple_of(4) => {
            into.extend(
                body.chunks_exact(4).map(|part| f32::from_le_bytes([part[0], part[1], part[2], part[3]])),
            );
            Some((FLOAT32_ERROR, 0.0))
        }
        FLOAT16 if body.len().is_multiple_of(2) => {
            into.extend(body.chunks_exact(2).map(|part| from_half(u16::from_le_bytes([part[0], part[1]]))));
            Some((FLOAT16_ERROR, FLOAT16_TINY))
        }
        INT8 => {
            into.extend(body.iter().map(|part| f32::from(*part as i8)));
            Some((0.0, 0.0))
        }
        UINT8 => {
            into.extend(body.iter().map(|part| f32::from(*part)));
            Some((0.0, 0.0))
        }
        _ => None,
    }
}

/// How two vectors are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Metric {
    Cosine,
    DotProduct,
    Euclidean,
}

/// How alike two vectors are, more being better: a cosine, a dot product, or the square of a distance below zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    pub value: f64,
    /// How far from the truth it may be.
    pub error: f64,
}

/// The vector of a query.
pub struct Probe {
    vector: Vec<f32>,
    length: f64,
    metric: Metric,
    scratch: Vec<f32>,
}

impl Probe {
    /// `None` for a vector whose numbers are too large to reckon with.
    pub fn new(vector: &[f64], metric: Metric) -> Option<Probe> {
        let narrow: Vec<f32> = vector.iter().map(|part| *part as f32).collect();
        let length = vector.iter().map(|part| part * part).sum::<f64>().sqrt();
        let usable = narrow.iter().all(|part| part.is_finite()) && length <= LENGTH_MAX;
        usable.then(|| Probe { vector: narrow, length, metric, scratch: Vec::new() })
    }

    /// Compares with a stored vector; `None` where only the item can tell. A likeness that is no number: there is none.
    pub fn compare(&mut self, stored: &[u8]) -> Option<Likeness> {
        let mut other = std::mem::take(&mut self.scratch);
        let read = decode(stored, &mut other).filter(|_| other.len() == self.vector.len());
        let likeness = read.and_then(|(relative, tiny)| {
            let (dot, square) = products(&self.vector, &other);
            let (dot, square) = (f64::from(dot), f64::from(square));
            let length = square.sqrt();
            if !length.is_finite() || length > LENGTH_MAX {
                return None;
            }
            let count = other.len() as f64;
            // Rounded elements on both sides, sums of so many terms in each lane, and the lanes.
            let sum_error = (count / LANES as f64 + LANES as f64) * FLOAT32_ERROR;
            // Of a form without tiny errors a vector of no length has none either, where dividing would make it no
            // number.
            let tiny = if tiny > 0.0 { tiny * count.sqrt() / length.max(tiny) } else { 0.0 };
            let share = relative + FLOAT32_ERROR + sum_error + tiny;
            let product = self.length * length;
            Some(match self.metric {
                Metric::DotProduct => Likeness { value: dot, error: 2.0 * share * product },
                Metric::Cosine if product == 0.0 => Likeness { value: f64::NAN, error: 0.0 },
                Metric::Cosine => Likeness { value: dot / product, error: 4.0 * share },
                Metric::Euclidean => {
                    let value = 2.0 * dot - square - self.length * self.length;
                    Likeness { value, error: 2.0 * share * (self.length + length) * (self.length + length) }
                }
            })
        });
        self.scratch = other;
        likeness
    }
}

/// The product of two vectors, and that of the second with itself.
fn products(a: &[f32], b: &[f32]) -> (f32, f32) {
    let (mut dots, mut squares) = ([0f32; LANES], [0f32; LANES]);
    let (whole_a, rest_a) = a.as_chunks::<LANES>();
    let (whole_b, rest_b) = b.as_chunks::<LANES>();
    for (a, b) in whole_a.iter().zip(whole_b) {
        for at in 0..LANES {
            dots[at] += a[at] * b[at];
            squares[at] += b[at] * b[at];
        }
    }
    for (at, (a, b)) in rest_a.iter().zip(rest_b).enumerate() {
        dots[at] += a * b;
        squares[at] += b * b;
    }
    (dots.iter().sum(), squares.iter().sum())
}

fn to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let magnitude = f32::from_bits(bits & 0x7FFF_FFFF);
    if magnitude >= 65_520.0 {
        return sign | 0x7C00;
    }
    if magnitude < 6.103_515_6e-5 {
        // Subnormal: steps of 2^-24, ties to even as everywhere.
        return sign | (magnitude * 16_777_216.0).round_ties_even() as u16;
    }
    let rounded = magnitude.to_bits();
    let odd = rounded >> 13 & 1;
    let rounded = rounded + 0x0FFF + odd;
    sign | ((rounded >> 13) - (112 << 10)) as u16
}

fn from_half(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (bits >> 10 & 0x1F, f32::from(bits & 0x3FF));
    sign * match exponent {
        0 => fraction / 16_777_216.0,
        0x1F => f32::INFINITY,
        _ => (1.0 + fraction / 1_024.0) * 2f32.powi(i32::from(exponent) - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn halves_read_back_as_they_were_written() {
        for bits in (0..=u16::MAX).filter(|bits| bits & 0x7C00 != 0x7C00) {
            assert_eq!(to_half(from_half(bits)), bits, "{bits:04x}");
        }
        assert_eq!(to_half(65_520.0), 0x7C00);
        assert_eq!(to_half(1.0 + 1.0 / 2_048.0), to_half(1.0), "ties go to the even one");
    }

    #[test]
    fn a_vector_of_no_length_is_compared_like_others() {
        for element in [Element::Float32, Element::Float16, Element::Int8, Element::Uint8] {
            let mut row = Vec::new();
            encode_vector(&mut row, &[0.0; 3], element);
            for (metric, value) in [(Metric::Euclidean, -9.0), (Metric::DotProduct, 0.0)] {
                let likeness = Probe::new(&[1.0, 2.0, -2.0], metric).unwrap().compare(&row).unwrap();
                assert!((likeness.value - value).abs() <= likeness.error, "{element:?} {likeness:?}");
            }
        }
    }

    #[test]
    fn bytes_are_used_only_where_nothing_is_lost() {
        let size = |vector: &[f64], element| {
            let mut out = Vec::new();
            encode_vector(&mut out, vector, element);
            out.len()
        };
        assert_eq!(size(&[1.0, -2.0], Element::Int8), 3);
        assert_eq!(size(&[1.5, -2.0], Element::Int8), 9);
        assert_eq!(size(&[1.0, 255.0], Element::Uint8), 3);
        assert_eq!(size(&[0.1, 0.2], Element::Float16), 5);
        assert_eq!(size(&[0.1, 1e6], Element::Float16), 9);
        assert_eq!(size(&[0.1, 1e60], Element::Float32), 0);
    }

    fn exact(a: &[f64], b: &[f64], metric: Metric) -> f64 {
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        match metric {
            Metric::DotProduct => dot(a, b),
            Metric::Cosine => dot(a, b) / (dot(a, a).sqrt() * dot(b, b).sqrt()),
            Metric::Euclidean => -a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>(),
        }
    }

    proptest! {
        #[test]
        fn the_truth_is_within_the_error(
            pairs in prop::collection::vec((-1000f64..1000.0, -1000f64..1000.0), 1..300), scale in -6i32..6
        ) {
            let scale = 10f64.powi(scale);
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.into_iter().map(|(a, b)| (a * scale, b * scale)).unzip();
            for metric in [Metric::Cosine, Metric::DotProduct, Metric::Euclidean] {
                for element in [Element::Float32, Element::Float16, Element::Int8] {
                    let mut stored = Vec::new();
                    encode_vector(&mut stored, &b, element);
                    let found = Probe::new(&a, metric).unwrap().compare(&stored).unwrap();
                    let wanted = exact(&a, &b, metric);
                    prop_assert!((found.value - wanted).abs() <= found.error, "{metric:?} {element:?} {found:?} {wanted}");
                }
            }
        }

        #[test]
        fn damaged_bytes_are_no_panic(bytes: Vec<u8>) {
            let _ = Probe::new(&[1.0, 2.0], Metric::Cosine).unwrap().compare(&bytes);
        }
    }
}
