//! The operators of updates: their names, what they are for, and who reads them. Pages about compatibility are made
//! of this.

use std::sync::Arc;

use crate::context::Context;
use crate::error::Result;
use crate::update::parse::{self, Change};
use crate::value::Bson;

/// One operator.
pub struct Operator {
    pub name: &'static str,
    pub summary: &'static str,
    /// Reads a path and what stands under it.
    pub(crate) read: fn(&Arc<str>, &Bson, &Context) -> Result<Change>,
}

macro_rules! operators {
    ($($name:literal $reader:ident, $summary:literal;)*) => {
        &[$(Operator { name: $name, summary: $summary, read: parse::$reader }),*]
    };
}

/// Every operator of updates.
pub static OPERATORS: &[Operator] = operators! {
    "$set" set, "sets a member";
    "$unset" unset, "takes a member away; an element of an array becomes null";
    "$setOnInsert" set_on_insert, "sets a member of what an upsert inserts";
    "$inc" inc, "adds to a number";
    "$mul" mul, "multiplies a number";
    "$min" min, "sets a member that is greater";
    "$max" max, "sets a member that is less";
    "$rename" rename, "gives a member another name";
    "$currentDate" current_date, "sets a member to now, as a date or a timestamp";
    "$bit" bit, "and, or, xor on the bits of a whole number";
    "$push" push, "adds to an array, with $each, $position, $slice, $sort";
    "$addToSet" add_to_set, "adds to an array what it does not have";
    "$pop" pop, "takes the first or the last element away";
    "$pull" pull, "takes elements away that meet a condition";
    "$pullAll" pull_all, "takes elements away that equal one of several";
};

pub(crate) fn find(name: &str) -> Option<&'static Operator> {
    OPERATORS.iter().find(|operator| operator.name == name)
}
