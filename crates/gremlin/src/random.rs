//! Chance: ids that nobody else has, and choices that a seed repeats.

use crate::value::Value;

/// A version 4 UUID.
pub fn uuid() -> Value {
    let mut bytes = [0; 16];
    // Without a source of randomness the clock must do; ids are then only as unique as instants are.
    if getrandom::fill(&mut bytes).is_err() {
        bytes = jiff::Timestamp::now().as_nanosecond().to_be_bytes();
    }
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    Value::Uuid(u128::from_be_bytes(bytes))
}

/// The linear congruential generator of `java.util.Random`: with a seed, coin() and sample() choose what TinkerPop's
/// choose.
#[derive(Clone, Debug)]
pub(crate) struct Rng(u64);

const MULTIPLIER: u64 = 0x5_deec_e66d;
const MASK: u64 = (1 << 48) - 1;

impl Rng {
    pub(crate) fn new(seed: u64) -> Rng {
        Rng((seed ^ MULTIPLIER) & MASK)
    }

    /// The highest bits of the next state, at most 32.
    fn bits(&mut self, count: u32) -> u32 {
        self.0 = self.0.wrapping_mul(MULTIPLIER).wrapping_add(0xb) & MASK;
        (self.0 >> (48 - count)) as u32
    }

    pub(crate) fn next(&mut self) -> u64 {
        u64::from(self.bits(32)) << 32 | u64::from(self.bits(32))
    }

    /// At least 0, below 1.
    pub(crate) fn unit(&mut self) -> f64 {
        let whole = u64::from(self.bits(26)) << 27 | u64::from(self.bits(27));
        whole as f64 / (1u64 << 53) as f64
    }

    /// Below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        if bound.is_power_of_two() {
            return ((u64::from(bound) * u64::from(self.bits(31))) >> 31) as u32;
        }
        loop {
            let bits = self.bits(31);
            let value = bits % bound;
            // Draws from the last, incomplete round would favour the small ones.
            if bits - value <= (i32::MAX as u32).saturating_sub(bound - 1) {
                return value;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_what_it_gives_in_java() {
        let mut rng = Rng::new(999_999);
        let heads: Vec<bool> = (0..6).map(|_| rng.unit() <= 0.5).collect();
        assert_eq!(heads, [true, false, false, false, false, false]);
        let mut rng = Rng::new(999_999);
        let mut left = vec![0.2, 0.4, 0.4, 0.5, 0.5, 1.0, 1.0, 1.0];
        let chosen: Vec<f64> = (0..5).map(|_| left.remove(rng.below(left.len() as u32) as usize)).collect();
        assert_eq!(chosen, [0.5, 1.0, 0.4, 0.2, 1.0]);
    }
}
