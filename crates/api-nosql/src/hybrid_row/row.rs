//! One row, read and written by its schema.

use super::schemas::{FALSE, Kind, Length, NULL, Schema, Storage, TRUE, code, length};
use super::{HEADER_BYTES, Malformed, Result, VERSION};

/// The value of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    Bool(bool),
    Int32(i32),
    UInt32(u32),
    Float64(f64),
    Utf8(&'a str),
    Binary(&'a [u8]),
}

impl<'a> Cell<'a> {
    pub fn as_i32(self) -> Option<i32> {
        if let Cell::Int32(value) = self { Some(value) } else { None }
    }

    pub fn as_u32(self) -> Option<u32> {
        if let Cell::UInt32(value) = self { Some(value) } else { None }
    }

    pub fn as_bool(self) -> Option<bool> {
        if let Cell::Bool(value) = self { Some(value) } else { None }
    }

    pub fn as_str(self) -> Option<&'a str> {
        if let Cell::Utf8(value) = self { Some(value) } else { None }
    }

    pub fn as_bytes(self) -> Option<&'a [u8]> {
        if let Cell::Binary(value) = self { Some(value) } else { None }
    }
}

/// The columns of a row, each if it is there.
pub type Cells<'a> = Vec<Option<Cell<'a>>>;

/// Reads a row that is all of these bytes.
pub fn read<'a>(schema: &Schema, bytes: &'a [u8]) -> Result<Cells<'a>> {
    let mut input = Input { bytes };
    read_header(schema, &mut input)?;
    let mut cells = vec![None; schema.columns.len()];
    let bits = input.take(schema.bits().div_ceil(8))?;
    let mut bit = 0;
    for (column, cell) in schema.columns.iter().zip(&mut cells) {
        *cell = match column.storage {
            Storage::Sparse => continue,
            Storage::Required => Some(value(column.kind, &mut input)?),
            Storage::Fixed | Storage::Variable => {
                let is_there = bits[bit / 8] >> (bit % 8) & 1 == 1;
                bit += 1;
                match (column.storage, is_there) {
                    (Storage::Variable, false) => None,
                    // Its place is kept whether or not it is there.
                    (_, is_there) => Some(value(column.kind, &mut input)?).filter(|_| is_there),
                }
            }
        };
    }
    while !input.bytes.is_empty() {
        sparse(schema, &mut input, &mut cells)?;
    }
    Ok(cells)
}

fn read_header(schema: &Schema, input: &mut Input<'_>) -> Result<()> {
    let header: [u8; HEADER_BYTES] = input.array()?;
    let expected = schema.id.to_le_bytes();
    if header[0] == VERSION && header[1..] == expected { Ok(()) } else { Err(Malformed) }
}

/// A column with its type and its name: the number that the schema gives it, or, beyond those, the length of a name
/// that follows. Columns that are unknown are passed over.
fn sparse<'a>(schema: &Schema, input: &mut Input<'a>, cells: &mut Cells<'a>) -> Result<()> {
    let type_code = input.byte()?;
    let token = usize::try_from(input.varint()?).map_err(|_| Malformed)?;
    // The number 0 is the empty name.
    let place = match token.checked_sub(schema.columns.len() + 1) {
        None => token.checked_sub(1),
        Some(length) => {
            let name = input.take(length)?;
            schema.columns.iter().position(|column| column.name.as_bytes() == name)
        }
    };
    let known = place.and_then(|place| Some((schema.columns.get(place)?, cells.get_mut(place)?)));
    match known {
        None => pass_over(type_code, input),
        Some((column, _)) if column.storage != Storage::Sparse => Err(Malformed),
        Some((column, cell)) => {
            *cell = match (column.kind, type_code) {
                (_, NULL) => None,
                (Kind::Bool, FALSE) => Some(Cell::Bool(false)),
                (Kind::Bool, TRUE) => Some(Cell::Bool(true)),
                (kind, given) if given == code(kind) => Some(value(kind, input)?),
                _ => return Err(Malformed),
            };
            Ok(())
        }
    }
}

fn pass_over(type_code: u8, input: &mut Input<'_>) -> Result<()> {
    match length(type_code).ok_or(Malformed)? {
        Length::Bytes(bytes) => input.take(bytes).map(drop),
        Length::Varint => input.varint().map(drop),
        Length::Prefixed => input.prefixed().map(drop),
    }
}

fn value<'a>(kind: Kind, input: &mut Input<'a>) -> Result<Cell<'a>> {
    Ok(match kind {
        Kind::Bool => return Err(Malformed),
        Kind::Int32 => Cell::Int32(i32::from_le_bytes(input.array()?)),
        Kind::UInt32 => Cell::UInt32(u32::from_le_bytes(input.array()?)),
        Kind::Float64 => Cell::Float64(f64::from_le_bytes(input.array()?)),
        Kind::Utf8 => Cell::Utf8(std::str::from_utf8(input.prefixed()?).map_err(|_| Malformed)?),
        Kind::Binary => Cell::Binary(input.prefixed()?),
    })
}

/// Appends a row. `cells` are in the order of the columns and of their kinds; those that are missing at the end are
/// not there.
pub fn write(schema: &Schema, cells: &[Option<Cell<'_>>], out: &mut Vec<u8>) {
    out.push(VERSION);
    out.extend_from_slice(&schema.id.to_le_bytes());
    let bits_at = out.len();
    out.resize(bits_at + schema.bits().div_ceil(8), 0);
    let cell = |place: usize| cells.get(place).copied().flatten();
    let mut bit = 0;
    for (place, column) in schema.columns.iter().enumerate() {
        let cell = cell(place);
        if matches!(column.storage, Storage::Fixed | Storage::Variable) {
            out[bits_at + bit / 8] |= u8::from(cell.is_some()) << (bit % 8);
            bit += 1;
        }
        match (column.storage, cell) {
            (Storage::Sparse, _) | (Storage::Variable, None) => {}
            (_, Some(cell)) => put(cell, out),
            (_, None) => out.resize(out.len() + fixed_bytes(column.kind), 0),
        }
    }
    for (place, column) in schema.columns.iter().enumerate() {
        if let (Storage::Sparse, Some(cell)) = (column.storage, cell(place)) {
            out.push(if cell == Cell::Bool(false) { FALSE } else { code(column.kind) });
            put_varint(out, place as u64 + 1);
            put(cell, out);
        }
    }
}

fn fixed_bytes(kind: Kind) -> usize {
    match length(code(kind)) {
        Some(Length::Bytes(bytes)) => bytes,
        _ => 0,
    }
}

fn put(cell: Cell<'_>, out: &mut Vec<u8>) {
    match cell {
        // The type says it.
        Cell::Bool(_) => {}
        Cell::Int32(value) => out.extend_from_slice(&value.to_le_bytes()),
        Cell::UInt32(value) => out.extend_from_slice(&value.to_le_bytes()),
        Cell::Float64(value) => out.extend_from_slice(&value.to_le_bytes()),
        Cell::Utf8(text) => put_prefixed(out, text.as_bytes()),
        Cell::Binary(bytes) => put_prefixed(out, bytes),
    }
}

fn put_prefixed(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// What of the bytes is still to be read.
struct Input<'a> {
    bytes: &'a [u8],
}

impl<'a> Input<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.bytes.split_at_checked(count).ok_or(Malformed)?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_| Malformed)
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..63).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn prefixed(&mut self) -> Result<&'a [u8]> {
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed)?;
        self.take(length)
    }
}
