//! Values as bytes: numbers little-endian, texts and lists behind a length (u32), an option or a variant behind a byte.
//!
//! What is read comes from another node and may be anything. Every length is checked against the bytes that are there
//! before anything is made of it, so that reading takes no more memory than a small multiple of the frame; what does
//! not read is `None`, never a panic. Documents stay where they are: they are pieces of the frame, not copies.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use orrery_model::{Epk, Number, PartitionKey, PatchOp, Pointer, Raw, Value};

/// A value that can be sent.
pub(crate) trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);

    /// Takes the value off the front; `None` where the bytes are no such value.
    fn take(from: &mut Bytes) -> Option<Self>;
}

/// A struct as its fields in this order.
macro_rules! record {
    ($($type:ty { $($field:ident),* $(,)? })*) => {
        $(impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }

            fn take(from: &mut Bytes) -> Option<Self> {
                Some(Self { $($field: Wire::take(from)?),* })
            }
        })*
    };
}

/// An enum as the number of its variant, which is never given to another one, and the fields of the variant.
macro_rules! variants {
    ($($type:ty { $($tag:literal => $name:ident $(($($item:ident),*))? $({ $($field:ident),* })?),* $(,)? })*) => {
        $(impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$name $(($($item),*))? $({ $($field),* })? => {
                        out.push($tag);
                        $($($item.put(out);)*)?
                        $($($field.put(out);)*)?
                    })*
                }
            }

            fn take(bytes: &mut Bytes) -> Option<Self> {
                Some(match u8::take(bytes)? {
                    $($tag => {
                        $($(let $item = Wire::take(bytes)?;)*)?
                        $($(let $field = Wire::take(bytes)?;)*)?
                        Self::$name $(($($item),*))? $({ $($field),* })?
                    })*
                    _ => return None,
                })
            }
        })*
    };
}

pub(crate) use {record, variants};

macro_rules! numbers {
    ($($type:ty)*) => {
        $(impl Wire for $type {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(from: &mut Bytes) -> Option<Self> {
                let number = Self::from_le_bytes(*from.first_chunk()?);
                bytes::Buf::advance(from, size_of::<Self>());
                Some(number)
            }
        })*
    };
}

numbers! { u8 u16 u32 u64 i32 i64 f64 }

impl Wire for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }

    fn take(from: &mut Bytes) -> Option<usize> {
        usize::try_from(u64::take(from)?).ok()
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn take(from: &mut Bytes) -> Option<bool> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

fn put_slice(out: &mut Vec<u8>, bytes: &[u8]) {
    // A frame is checked against a limit far below 4 GB before it is sent.
    (bytes.len() as u32).put(out);
    out.extend_from_slice(bytes);
}

impl Wire for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        put_slice(out, self);
    }

    fn take(from: &mut Bytes) -> Option<Bytes> {
        let length = u32::take(from)? as usize;
        (length <= from.len()).then(|| from.split_to(length))
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_slice(out, self.as_bytes());
    }

    fn take(from: &mut Bytes) -> Option<String> {
        std::str::from_utf8(&Bytes::take(from)?).ok().map(str::to_owned)
    }
}

/// In nanoseconds.
impl Wire for Duration {
    fn put(&self, out: &mut Vec<u8>) {
        u64::try_from(self.as_nanos()).unwrap_or(u64::MAX).put(out);
    }

    fn take(from: &mut Bytes) -> Option<Duration> {
        u64::take(from).map(Duration::from_nanos)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_some()));
        if let Some(value) = self {
            value.put(out);
        }
    }

    fn take(from: &mut Bytes) -> Option<Option<T>> {
        Some(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u32).put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn take(from: &mut Bytes) -> Option<Vec<T>> {
        let count = u32::take(from)? as usize;
        // Every value takes a byte at least; a vector grows with what was really read.
        if count > from.len() {
            return None;
        }
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(T::take(from)?);
        }
        Some(values)
    }
}

impl<T: Wire> Wire for Box<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn take(from: &mut Bytes) -> Option<Box<T>> {
        T::take(from).map(Box::new)
    }
}

impl<T: Wire> Wire for Arc<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (**self).put(out);
    }

    fn take(from: &mut Bytes) -> Option<Arc<T>> {
        T::take(from).map(Arc::new)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn take(from: &mut Bytes) -> Option<(A, B)> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl<T: Wire, E: Wire> Wire for Result<T, E> {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.is_ok()));
        match self {
            Ok(value) => value.put(out),
            Err(error) => error.put(out),
        }
    }

    fn take(from: &mut Bytes) -> Option<Result<T, E>> {
        Some(if bool::take(from)? { Ok(T::take(from)?) } else { Err(E::take(from)?) })
    }
}

impl Wire for Epk {
    fn put(&self, out: &mut Vec<u8>) {
        put_slice(out, self.as_bytes());
    }

    fn take(from: &mut Bytes) -> Option<Epk> {
        Bytes::take(from).map(|bytes| Epk(bytes[..].into()))
    }
}

impl Wire for PartitionKey {
    fn put(&self, out: &mut Vec<u8>) {
        let mut encoded = Vec::new();
        self.encode(&mut encoded);
        put_slice(out, &encoded);
    }

    fn take(from: &mut Bytes) -> Option<PartitionKey> {
        PartitionKey::decode(&Bytes::take(from)?)
    }
}

/// In stored form.
impl Wire for Value {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            // Which has no stored form.
            Value::Undefined => put_slice(out, &[]),
            value => put_slice(out, &value.to_document()),
        }
    }

    fn take(from: &mut Bytes) -> Option<Value> {
        let bytes = Bytes::take(from)?;
        match bytes.is_empty() {
            true => Some(Value::Undefined),
            false => Raw::document(&bytes).ok().map(Raw::to_value),
        }
    }
}

/// As its text.
impl Wire for Pointer {
    fn put(&self, out: &mut Vec<u8>) {
        self.to_string().put(out);
    }

    fn take(from: &mut Bytes) -> Option<Pointer> {
        Pointer::parse(&String::take(from)?)
    }
}

variants! {
    Number { 1 => Int(value), 2 => UInt(value), 3 => Double(value) }
    PatchOp {
        1 => Add { path, value },
        2 => Set { path, value },
        3 => Replace { path, value },
        4 => Remove { path },
        5 => Increment { path, by },
        6 => Move { from, path },
    }
}
