//! `$limit`, `$skip`, `$sample`, `$count`.

use super::memory::StageMemory;
use super::rows::{Blocking, Row, Rows};
use super::specification::{self, Parsing, shown};
use super::{BoxedRows, Env, Hint, ListRows, Stage};
use crate::error::{Error, Result};
use crate::value::{Bson, Document};

pub struct Limit(u64);

pub fn parse_limit(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let invalid = |why: &str| {
        Error::new(
            5_107_201,
            format!("invalid argument to $limit stage: {why} in: $limit: {}", shown(argument)),
        )
    };
    if !argument.is_number() {
        return Err(invalid("Expected a number"));
    }
    let rows = argument.as_i64().ok_or_else(|| invalid("Cannot represent as a 64-bit integer"))?;
    match rows {
        0 => Err(Error::new(15_958, "the limit must be positive")),
        rows => u64::try_from(rows)
            .map(|rows| Box::new(Limit(rows)) as Box<dyn Stage>)
            .map_err(|_| invalid("Expected a non-negative number")),
    }
}

struct Limited {
    input: BoxedRows,
    left: u64,
}

impl Rows for Limited {
    fn next(&mut self) -> Result<Option<Row>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        self.input.next()
    }
}

impl Stage for Limit {
    fn attach(&self, input: BoxedRows, _: &Env) -> Result<BoxedRows> {
        Ok(Box::new(Limited { input, left: self.0 }))
    }

    fn hint(&self) -> Hint<'_> {
        Hint::Limit(self.0)
    }
}

pub struct Skip(u64);

pub fn parse_skip(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let invalid = |why: &str| {
        Error::new(
            5_107_200,
            format!("invalid argument to $skip stage: {why} in: $skip: {}", shown(argument)),
        )
    };
    if !argument.is_number() {
        return Err(invalid("Expected a number"));
    }
    let rows = argument.as_i64().ok_or_else(|| invalid("Cannot represent as a 64-bit integer"))?;
    let rows = u64::try_from(rows).map_err(|_| invalid("Expected a non-negative number"))?;
    Ok(Box::new(Skip(rows)))
}

struct Skipped {
    input: BoxedRows,
    left: u64,
}

impl Rows for Skipped {
    fn next(&mut self) -> Result<Option<Row>> {
        while self.left > 0 {
            self.left -= 1;
            if self.input.next()?.is_none() {
                self.left = 0;
                return Ok(None);
            }
        }
        self.input.next()
    }
}

impl Stage for Skip {
    fn attach(&self, input: BoxedRows, _: &Env) -> Result<BoxedRows> {
        Ok(Box::new(Skipped { input, left: self.0 }))
    }

    fn hint(&self) -> Hint<'_> {
        Hint::Skip(self.0)
    }
}

pub struct Sample(u64);

pub fn parse_sample(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let specification =
        specification::document(argument, 28_745, "the $sample stage specification must be an object")?;
    let mut size = None;
    for (name, value) in specification.iter() {
        if &**name != "size" {
            return Err(Error::new(28_748, format!("unrecognized option to $sample: {name}")));
        }
        if !value.is_number() {
            return Err(Error::new(28_746, "size argument to $sample must be a number"));
        }
        let rows = match value {
            Bson::Double(rows) => Some(*rows as i64),
            value => value.as_i64(),
        };
        size = Some(
            rows.and_then(|rows| u64::try_from(rows).ok())
                .ok_or_else(|| Error::new(28_747, "size argument to $sample must not be negative"))?,
        );
    }
    let size = size.ok_or_else(|| Error::new(28_749, "$sample stage must specify a size"))?;
    Ok(Box::new(Sample(size)))
}

impl Stage for Sample {
    /// Reservoir sampling, and at last a shuffle: every row has the same chance, at any place.
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (size, context) = (self.0, env.context.clone());
        Ok(Blocking::boxed(move || {
            let mut memory = StageMemory::new("$sample", &context.budget)?;
            let mut chosen: Vec<Row> = Vec::new();
            let mut seen = 0u64;
            while let Some(row) = input.next()? {
                context.budget.step(1)?;
                seen += 1;
                if (chosen.len() as u64) < size {
                    memory.take(row.size_bytes())?;
                    chosen.push(row);
                } else if size > 0 {
                    let at = (context.random)() % seen;
                    if at < size {
                        let old = std::mem::replace(&mut chosen[at as usize], row);
                        memory.give_back(old.size_bytes());
                        memory.take(chosen[at as usize].size_bytes())?;
                    }
                }
            }
            for at in (1..chosen.len()).rev() {
                let other = ((context.random)() % (at as u64 + 1)) as usize;
                chosen.swap(at, other);
            }
            Ok(ListRows::boxed(chosen))
        }))
    }
}

pub struct Count(String);

pub fn parse_count(argument: &Bson, _: &Parsing<'_>) -> Result<Box<dyn Stage>> {
    let Bson::String(name) = argument else {
        return Err(Error::new(40_156, "the count field must be a non-empty string"));
    };
    if name.is_empty() {
        return Err(Error::new(40_157, "the count field must be a non-empty string"));
    }
    if name.starts_with('$') {
        return Err(Error::new(40_158, "the count field cannot be a $-prefixed path"));
    }
    if name.contains('\0') {
        return Err(Error::new(40_159, "the count field cannot contain a null byte"));
    }
    if name.contains('.') {
        return Err(Error::new(40_160, "the count field cannot contain '.'"));
    }
    Ok(Box::new(Count(name.to_string())))
}

/// A count as `$count`, `$sum: 1` and buckets give it: as narrow as it can be.
pub fn count_value(rows: u64) -> Bson {
    match i32::try_from(rows) {
        Ok(rows) => Bson::Int32(rows),
        Err(_) => Bson::Int64(rows as i64),
    }
}

impl Stage for Count {
    fn attach(&self, mut input: BoxedRows, env: &Env) -> Result<BoxedRows> {
        let (name, context) = (self.0.clone(), env.context.clone());
        Ok(Blocking::boxed(move || {
            let mut rows = 0u64;
            while input.next()?.is_some() {
                context.budget.step(1)?;
                rows += 1;
            }
            if rows == 0 {
                return Ok(ListRows::empty());
            }
            let mut document = Document::new();
            document.push(name.as_str(), count_value(rows));
            Ok(ListRows::boxed([Row::Built(document)]))
        }))
    }
}
