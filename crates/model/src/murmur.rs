//! MurmurHash3 in the two variants that partition keys use, always with seed 0.
//!
//! Clients compute the same hashes to route requests, so these functions are part of the protocol: version 1
//! keys use the 32-bit x86 variant, version 2 and hierarchical keys the 128-bit x64 variant.

/// 32-bit MurmurHash3 (x86) with seed 0.
pub fn murmur3_x86_32(data: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let scramble = |k: u32| k.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let (blocks, tail) = data.as_chunks::<4>();
    let mut h = 0u32;
    for block in blocks {
        h ^= scramble(u32::from_le_bytes(*block));
        h = h.rotate_left(13).wrapping_mul(5).wrapping_add(0xe654_6b64);
    }
    let mut last = 0u32;
    for (i, byte) in tail.iter().enumerate() {
        last |= u32::from(*byte) << (8 * i);
    }
    h ^= scramble(last);
    h ^= data.len() as u32;
    h ^= h >> 16;
    h = h.wrapping_mul(0x85eb_ca6b);
    h ^= h >> 13;
    h = h.wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

/// 128-bit MurmurHash3 (x64) with seed 0, as its two words `(h1, h2)`.
pub fn murmur3_x64_128(data: &[u8]) -> (u64, u64) {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let scramble1 = |k: u64| k.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let scramble2 = |k: u64| k.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let (blocks, tail) = data.as_chunks::<16>();
    let (mut h1, mut h2) = (0u64, 0u64);
    for block in blocks {
        let word = u128::from_le_bytes(*block);
        h1 ^= scramble1(word as u64);
        h1 = h1.rotate_left(27).wrapping_add(h2).wrapping_mul(5).wrapping_add(0x52dc_e729);
        h2 ^= scramble2((word >> 64) as u64);
        h2 = h2.rotate_left(31).wrapping_add(h1).wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    let mut last = 0u128;
    for (i, byte) in tail.iter().enumerate() {
        last |= u128::from(*byte) << (8 * i);
    }
    h2 ^= scramble2((last >> 64) as u64);
    h1 ^= scramble1(last as u64);
    let length = data.len() as u64;
    h1 ^= length;
    h2 ^= length;
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    h1 = finish(h1);
    h2 = finish(h2);
    h1 = h1.wrapping_add(h2);
    h2 = h2.wrapping_add(h1);
    (h1, h2)
}

fn finish(mut k: u64) -> u64 {
    k ^= k >> 33;
    k = k.wrapping_mul(0xff51_afd7_ed55_8ccd);
    k ^= k >> 33;
    k = k.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    k ^ (k >> 33)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_vectors_hold() {
        assert_eq!(murmur3_x86_32(b""), 0);
        assert_eq!(murmur3_x86_32(b"test"), 0xba6b_d213);
        assert_eq!(murmur3_x86_32(b"Hello, world!"), 0xc036_3e43);
        assert_eq!(murmur3_x86_32(b"The quick brown fox jumps over the lazy dog"), 0x2e4f_f723);
        assert_eq!(murmur3_x64_128(b""), (0, 0));
        assert_eq!(
            murmur3_x64_128(b"The quick brown fox jumps over the lazy dog"),
            (0xe34b_bc7b_bc07_1b6c, 0x7a43_3ca9_c49a_9347)
        );
    }
}
