//! The rows of a column in the order of their values.
//!
//! Made once, for queries that want the first few of an order: they go through the rows in that order instead of
//! reading a value of each. Four bytes a row.

use std::cmp::Ordering;

use orrery_model::Value;

use super::column::{Column, Tag};

/// Rows whose value is defined, by value.
#[derive(Debug)]
pub struct ColumnOrder {
    rows: Vec<u32>,
}

impl Column {
    /// The rows in order; `None` where the column does not tell all values. Takes some
    /// hundred milliseconds for a million rows.
    pub fn order(&self) -> Option<ColumnOrder> {
        if !self.is_plain() {
            return None;
        }
        let mut ranks = vec![0u32; self.text_count()];
        for (rank, code) in (0..).zip(self.by_text()) {
            ranks[*code as usize] = rank;
        }
        let mut keyed: Vec<(u8, u64, u32)> = Vec::new();
        for row in 0..self.len() {
            let (kind, bits) = match self.tag(row) {
                Tag::Undefined | Tag::Deferred => continue,
                Tag::Null => (0, 0),
                Tag::False => (1, 0),
                Tag::True => (1, 1),
                Tag::Int | Tag::Double => (2, ordered_bits(self.number(row)?.as_f64())),
                Tag::Text => (3, u64::from(ranks[self.code(row)])),
            };
            keyed.push((kind, bits, row as u32));
        }
        keyed.sort_unstable();
        Some(ColumnOrder { rows: keyed.into_iter().map(|(.., row)| row).collect() })
    }

    /// The order of the values of two rows.
    pub fn compare(&self, left: usize, right: usize) -> Ordering {
        match (self.tag(left), self.tag(right)) {
            (Tag::Text, Tag::Text) if self.code(left) == self.code(right) => Ordering::Equal,
            _ => match (self.number(left), self.number(right)) {
                (Some(left), Some(right)) => left.compare(right),
                _ => self.value(left).compare(&self.value(right)),
            },
        }
    }

    /// The value of a row that is not deferred.
    pub fn value(&self, row: usize) -> Value {
        self.eval(row).to_value()
    }
}

/// Numbers that a plain column holds are small enough for doubles to tell them apart.
fn ordered_bits(number: f64) -> u64 {
    let bits = (number + 0.0).to_bits();
    if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }
}

impl ColumnOrder {
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    pub fn row(&self, at: usize) -> usize {
        self.rows[at] as usize
    }

    /// How many rows come first whose value satisfies a condition that holds for the first ones only.
    pub fn partition_point(&self, column: &Column, before: &mut dyn FnMut(&Value) -> bool) -> usize {
        self.rows.partition_point(|row| before(&column.value(*row as usize)))
    }

    pub fn size_bytes(&self) -> usize {
        4 * self.rows.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::ColumnBuilder;
    use crate::value::Eval;
    use orrery_model::Number;

    #[test]
    fn rows_come_in_the_order_of_their_values_and_those_without_are_left_out() {
        let doubles =
            [-1e14, -2.5, -0.0, 0.0, 0.25, 3.0, 9e14].map(|value| Value::Number(Number::Double(value)));
        let mut values: Vec<Value> = doubles.to_vec();
        values.extend([3i64, -3, 0, 1_000_000_007_000].map(Value::from));
        values.extend(["", "b", "a", "é", "ab", "a", "A"].map(Value::from));
        values.extend([
            Value::Null,
            Value::Undefined,
            Value::from(true),
            Value::from(false),
            Value::Undefined,
        ]);
        // The same again, elsewhere.
        values.extend(values.clone().into_iter().rev());
        let mut builder = ColumnBuilder::with_capacity(0);
        values.iter().for_each(|value| builder.push(&Eval::from_constant(value)));
        let column = builder.finish().unwrap();
        let order = column.order().unwrap();
        assert_eq!(order.len(), values.len() - 4);
        for at in 1..order.len() {
            let (left, right) = (order.row(at - 1), order.row(at));
            let expected = values[left].compare(&values[right]);
            assert!(expected.is_le(), "{:?} {:?}", values[left], values[right]);
            assert_eq!(column.compare(left, right), expected);
        }
        let strings = order.partition_point(&column, &mut |value| value.compare(&Value::from("")).is_lt());
        assert_eq!(order.len() - strings, 14);
    }

    #[test]
    fn a_column_that_does_not_tell_its_values_has_no_order() {
        let mut builder = ColumnBuilder::with_capacity(0);
        builder.push(&Eval::text("short"));
        builder.push(&Eval::text("x".repeat(100).as_str()));
        assert!(builder.finish().unwrap().order().is_none());
    }
}
