//! A container's partition key definition: taking keys from items, and where keys lie in the hash space.
//!
//! Clients hash keys as the functions here do and route by the result, so every step is pinned by vectors in `tests/`:
//!
//! - version 2: each component as a type byte and its payload, all hashed to 128 bits, the top two bits cleared;
//! - hierarchical: the version 2 hash of each component, one behind the other;
//! - version 1: a 32-bit hash as an encoded double, followed by the components in an encoding that keeps their order.

use crate::document::raw::Raw;
use crate::epk::Epk;
use crate::murmur::{murmur3_x64_128, murmur3_x86_32};
use crate::partition_key::{KeyComponent, PartitionKey};
use crate::path::PropertyPath;
use smallvec::SmallVec;

/// Version 1 hashes only the start of a string.
const V1_STRING_UNITS_MAX: usize = 100;
/// Version 1 writes at most this many bytes of a string with an end mark, one more without.
const V1_STRING_BYTES_MAX: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyKind {
    Hash,
    /// Hierarchical.
    MultiHash,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyVersion {
    V1,
    V2,
}

/// A container's partition key definition.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionKeyDefinition {
    pub paths: Vec<PropertyPath>,
    pub kind: KeyKind,
    pub version: KeyVersion,
    /// The path was chosen by the system because the client gave none.
    pub system_key: bool,
}

impl PartitionKeyDefinition {
    /// The key of an item. What is missing, or is an array or object, is undefined, as SDKs take it too; where the
    /// system chose the path, an undefined key is no component at all.
    pub fn extract(&self, document: Raw<'_>) -> PartitionKey {
        let component =
            |path| document.path(path).and_then(KeyComponent::from_raw).unwrap_or(KeyComponent::Undefined);
        let key = PartitionKey(self.paths.iter().map(component).collect());
        if self.system_key && key.is_undefined() { PartitionKey::default() } else { key }
    }

    /// The effective key of a full key; `[]` gives the minimum.
    pub fn effective(&self, key: &PartitionKey) -> Epk {
        if key.0.is_empty() {
            return Epk::MIN;
        }
        match (self.kind, self.version) {
            (KeyKind::MultiHash, _) => {
                let mut bytes = SmallVec::new();
                for component in &key.0 {
                    bytes.extend_from_slice(&hash_v2(std::slice::from_ref(component)));
                }
                Epk(bytes)
            }
            (KeyKind::Hash, KeyVersion::V2) => Epk(SmallVec::from(hash_v2(&key.0))),
            (KeyKind::Hash, KeyVersion::V1) => Epk(effective_v1(&key.0)),
        }
    }

    /// The same from what [`PartitionKey::encode`] wrote; `None` when the bytes are something else. Looking up items
    /// by index does this for each of them, so the usual key, one string, is not taken apart first.
    pub fn effective_encoded(&self, encoded: &[u8]) -> Option<Epk> {
        if let (KeyKind::Hash, KeyVersion::V2, Some(text)) =
            (self.kind, self.version, PartitionKey::encoded_text(encoded))
        {
            let mut buffer: SmallVec<[u8; 128]> = SmallVec::new();
            buffer.push(8);
            buffer.extend_from_slice(text);
            buffer.push(0xFF);
            return Some(Epk(SmallVec::from(hashed_v2(&buffer))));
        }
        PartitionKey::decode(encoded).map(|key| self.effective(&key))
    }

    /// The range `[min, max)` of all effective keys that begin with this key's.
    pub fn effective_prefix(&self, key: &PartitionKey) -> (Epk, Epk) {
        let min = self.effective(key);
        let mut max = min.clone();
        max.0.push(0xFF);
        (min, max)
    }

    /// The `n + 1` boundaries of `n` equal ranges: `""`, …, `"FF"`. Clients' tests know where they lie. Zero counts
    /// as one.
    pub fn boundaries(&self, n: u32) -> Vec<Epk> {
        let n = n.max(1);
        let inner = (1..n).map(|i| match (self.kind, self.version) {
            (KeyKind::Hash, KeyVersion::V1) => {
                let mut bytes = SmallVec::new();
                write_number_v1(&mut bytes, f64::from(i * (u32::MAX / n)));
                Epk(bytes)
            }
            _ => {
                let step = ((1u128 << 126) - 1) / u128::from(n);
                Epk(SmallVec::from((u128::from(i) * step).to_be_bytes()))
            }
        });
        std::iter::once(Epk::MIN).chain(inner).chain([Epk::max()]).collect()
    }
}

fn write_for_hash(buffer: &mut Vec<u8>, component: &KeyComponent, string_end: u8) {
    match component {
        KeyComponent::Undefined => buffer.push(0),
        KeyComponent::Null => buffer.push(1),
        KeyComponent::Bool(value) => buffer.push(if *value { 3 } else { 2 }),
        KeyComponent::Number(value) => {
            buffer.push(5);
            buffer.extend_from_slice(&value.to_le_bytes());
        }
        KeyComponent::String(value) => {
            buffer.push(8);
            buffer.extend_from_slice(value.as_bytes());
            buffer.push(string_end);
        }
    }
}

fn hash_v2(components: &[KeyComponent]) -> [u8; 16] {
    let mut buffer = Vec::with_capacity(64);
    components.iter().for_each(|component| write_for_hash(&mut buffer, component, 0xFF));
    hashed_v2(&buffer)
}

fn hashed_v2(buffer: &[u8]) -> [u8; 16] {
    let (low, high) = murmur3_x64_128(buffer);
    let mut bytes = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
    bytes[0] &= 0x3F;
    bytes
}

fn effective_v1(components: &[KeyComponent]) -> SmallVec<[u8; 16]> {
    let mut buffer = Vec::with_capacity(64);
    let truncated: SmallVec<[KeyComponent; 1]> = components.iter().map(truncate_v1).collect();
    truncated.iter().for_each(|component| write_for_hash(&mut buffer, component, 0));
    let mut bytes = SmallVec::new();
    write_number_v1(&mut bytes, f64::from(murmur3_x86_32(&buffer)));
    for component in &truncated {
        match component {
            KeyComponent::Undefined => bytes.push(0),
            KeyComponent::Null => bytes.push(1),
            KeyComponent::Bool(value) => bytes.push(if *value { 3 } else { 2 }),
            KeyComponent::Number(value) => write_number_v1(&mut bytes, *value),
            KeyComponent::String(value) => {
                bytes.push(8);
                let text = value.as_bytes();
                let short = text.len() <= V1_STRING_BYTES_MAX;
                // UTF-8 has no FF, so one more never wraps.
                bytes.extend(text.iter().take(V1_STRING_BYTES_MAX + 1).map(|byte| byte + 1));
                if short {
                    bytes.push(0);
                }
            }
        }
    }
    bytes
}

/// Strings count in UTF-16 units, as most clients do; half a pair becomes U+FFFD, as in their UTF-8 encoders.
fn truncate_v1(component: &KeyComponent) -> KeyComponent {
    let KeyComponent::String(text) = component else { return component.clone() };
    let mut units = 0;
    for (at, character) in text.char_indices() {
        units += character.len_utf16();
        if units > V1_STRING_UNITS_MAX {
            let half = units - character.len_utf16() < V1_STRING_UNITS_MAX;
            return KeyComponent::String(format!("{}{}", &text[..at], if half { "\u{FFFD}" } else { "" }));
        }
    }
    component.clone()
}

/// The order-keeping number encoding of version 1: type, the top 8 bits, then 7 bits a byte, each marked whether more
/// follow.
fn write_number_v1(out: &mut SmallVec<[u8; 16]>, value: f64) {
    let bits = value.to_bits();
    let mut rest = if bits >> 63 == 1 { bits.wrapping_neg() } else { bits | 1 << 63 };
    out.extend_from_slice(&[5, (rest >> 56) as u8]);
    rest <<= 8;
    loop {
        let chunk = (rest >> 56) as u8 & 0xFE;
        rest <<= 7;
        out.push(chunk | u8::from(rest != 0));
        if rest == 0 {
            return;
        }
    }
}
