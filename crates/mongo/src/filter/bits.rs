//! `$bitsAllSet`, `$bitsAnySet`, `$bitsAllClear`, `$bitsAnyClear`: bits of whole numbers and of binaries.

use std::sync::Arc;

use orrery_model::Extended;

use crate::error::{Error, Result};
use crate::filter::Test;
use crate::filter::comparison::truncated;
use crate::filter::parse::Place;
use crate::value::{Bson, Document};
use crate::value_ref::{NumberRef, ValueRef};

/// Positions of bits, and what they should be.
#[derive(Clone, Debug)]
pub struct Bits {
    positions: Vec<u32>,
    /// What the bits should be: 1, or 0.
    set: bool,
    /// Whether all of them should be so, or one.
    all: bool,
}

impl Bits {
    pub fn matches(&self, value: ValueRef<'_>) -> bool {
        let test = |bit: &dyn Fn(u32) -> bool| {
            let wanted = |position: &u32| bit(*position) == self.set;
            if self.all { self.positions.iter().all(wanted) } else { self.positions.iter().any(wanted) }
        };
        if let Some(Extended::Binary { bytes, .. }) = value.as_extended() {
            return test(&|position| {
                bytes.get(position as usize / 8).is_some_and(|byte| byte >> (position % 8) & 1 == 1)
            });
        }
        let Some(number) = value.as_number().and_then(whole) else { return false };
        // Bits beyond those of the number are its sign.
        test(&|position| number >> position.min(63) & 1 == 1)
    }
}

/// A number without a fraction that fits.
fn whole(number: NumberRef) -> Option<i64> {
    let value = truncated(number)?;
    (NumberRef::Int64(value).compare(number).is_eq()).then_some(value)
}

pub fn all_set(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    parse("$bitsAllSet", value, true, true)
}

pub fn any_set(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    parse("$bitsAnySet", value, true, false)
}

pub fn all_clear(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    parse("$bitsAllClear", value, false, true)
}

pub fn any_clear(_: Place<'_>, value: &Bson, _: &Document) -> Result<Option<Test>> {
    parse("$bitsAnyClear", value, false, false)
}

fn parse(name: &str, value: &Bson, set: bool, all: bool) -> Result<Option<Test>> {
    let positions = match value {
        Bson::Array(positions) => positions.iter().map(position).collect::<Result<_>>()?,
        Bson::Binary { bytes, .. } => {
            let bits = (0..bytes.len() as u32 * 8).filter(|at| bytes[*at as usize / 8] >> (at % 8) & 1 == 1);
            bits.collect()
        }
        _ if value.is_number() => {
            let mask = ValueRef::Owned(value).as_number().and_then(whole);
            let mask = mask.ok_or_else(|| Error::failed_to_parse(format!("Expected an integer: {name}")))?;
            if mask < 0 {
                return Err(Error::failed_to_parse(format!("Expected a non-negative number in: {name}")));
            }
            (0..63).filter(|at| mask >> at & 1 == 1).collect()
        }
        _ => {
            return Err(Error::bad_value(format!("{name} takes an Array, a number, or a BinData")));
        }
    };
    Ok(Some(Test::Bits(Arc::new(Bits { positions, set, all }))))
}

fn position(value: &Bson) -> Result<u32> {
    let number = ValueRef::Owned(value).as_number();
    let number = number.ok_or_else(|| Error::bad_value("bit positions must be an integer"))?;
    let Some(position) = whole(number) else {
        return Err(Error::bad_value("bit positions must be an integer"));
    };
    if position < 0 {
        return Err(Error::bad_value("bit positions must be >= 0"));
    }
    match i32::try_from(position) {
        Ok(position) => Ok(position.unsigned_abs()),
        Err(_) => Err(Error::bad_value("bit positions cannot be represented as a 32-bit signed integer")),
    }
}
