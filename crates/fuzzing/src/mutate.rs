//! Changes to inputs at random, by a seed: bits, bytes, pieces taken out, doubled or exchanged with another input.

/// A sequence of inputs that begin as one of the kept ones.
pub struct Mutations<'i> {
    inputs: &'i [Vec<u8>],
    state: u64,
}

/// Longer inputs take longer without finding more.
const LENGTH_MAX: usize = 4096;

/// Bytes that often stand for something: the edges of numbers, and what texts are made of.
const TELLING: &[u8] = b"\x00\x01\x7f\x80\xff\"'\\{}[](),:;#+-0919.eE@*%/ \n";

impl<'i> Mutations<'i> {
    pub fn new(inputs: &'i [Vec<u8>], seed: u64) -> Mutations<'i> {
        assert!(!inputs.is_empty(), "there is nothing to begin with");
        Mutations { inputs, state: seed }
    }

    /// SplitMix64.
    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }

    fn piece(&mut self, length: usize) -> std::ops::Range<usize> {
        let from = self.below(length + 1);
        let count = self.below(16).min(length - from);
        from..from + count
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        match self.below(7) {
            0 if !input.is_empty() => input[at] ^= 1 << self.below(8),
            1 if !input.is_empty() => input[at] = TELLING[self.below(TELLING.len())],
            2 => input.insert(at, self.below(256) as u8),
            3 => drop(input.drain(self.piece(input.len()))),
            4 => {
                let piece = input[self.piece(input.len())].to_vec();
                input.splice(at..at, piece);
            }
            5 => {
                let other = &self.inputs[self.below(self.inputs.len())];
                let piece = other[self.piece(other.len())].to_vec();
                let place = self.piece(input.len());
                input.splice(place, piece);
            }
            _ => input.truncate(at),
        }
    }
}

impl Iterator for Mutations<'_> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut input = self.inputs[self.below(self.inputs.len())].clone();
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        input.truncate(LENGTH_MAX);
        Some(input)
    }
}
