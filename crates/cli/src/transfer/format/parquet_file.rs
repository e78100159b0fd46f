//! Parquet: columns, written in groups of rows and compressed with Snappy, which every reader knows.
//!
//! A column has the type that all its values share: whole numbers, doubles, booleans, text. Values of several types,
//! arrays and objects are JSON text, marked as such, and are JSON again when they are read. Everything may be
//! missing; a null and a missing property are the same to Parquet, and are left out on the way back. Dates and times
//! become strings, decimals too, binary base64.

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::record::reader::RowIter;
use parquet::record::{Field, Row};
use parquet::schema::types::Type;
use serde_json::{Map, Value};

use super::super::raw_json;
use super::columns::{ColumnType, Columns};
use super::{RawRecord, Reader, is_stdin};

/// Rows of a group; they are in memory until it is written.
const GROUP_ROWS: usize = 10_000;

pub struct ParquetRows {
    rows: RowIter<'static>,
    /// Columns whose text is JSON.
    json: HashSet<String>,
    position: u64,
    count: u64,
    size_bytes: u64,
}

impl ParquetRows {
    pub fn open(path: &Path, from: u64) -> Result<ParquetRows> {
        if is_stdin(path) {
            bail!("columns are read from their end, so standard input cannot have them");
        }
        let file = File::open(path)?;
        let size_bytes = file.metadata()?.len();
        let reader = SerializedFileReader::new(file)?;
        let metadata = reader.metadata().file_metadata();
        let json = metadata.schema().get_fields().iter().filter(|field| {
            field.is_primitive() && field.get_basic_info().converted_type() == ConvertedType::JSON
        });
        let json = json.map(|field| field.name().to_owned()).collect();
        let count = u64::try_from(metadata.num_rows()).unwrap_or(0);
        let mut rows = RowIter::from_file_into(Box::new(reader));
        for _ in 0..from {
            rows.next().transpose()?;
        }
        Ok(ParquetRows { rows, json, position: from, count, size_bytes })
    }
}

impl Reader for ParquetRows {
    fn next(&mut self) -> Result<Option<RawRecord>> {
        let Some(row) = self.rows.next().transpose().context("a damaged row")? else { return Ok(None) };
        self.position += 1;
        Ok(Some(match object(&row, &self.json) {
            Ok(object) => RawRecord::Text(Value::Object(object).to_string().into_bytes()),
            Err(reason) => RawRecord::Bad { text: row.to_string(), reason },
        }))
    }

    fn position(&self) -> u64 {
        self.position
    }

    fn read_bytes(&self) -> u64 {
        (u128::from(self.size_bytes) * u128::from(self.position) / u128::from(self.count.max(1))) as u64
    }
}

fn object(row: &Row, json: &HashSet<String>) -> Result<Map<String, Value>, String> {
    let mut object = Map::new();
    for (name, field) in row.get_column_iter() {
        let value = match field {
            Field::Null => continue,
            Field::Str(text) if json.contains(name) => {
                serde_json::from_str(text).map_err(|error| format!("{name} is no JSON: {error}"))?
            }
            field => value(field)?,
        };
        object.insert(name.clone(), value);
    }
    Ok(object)
}

fn value(field: &Field) -> Result<Value, String> {
    let number = |number: f64| {
        serde_json::Number::from_f64(number).map_or_else(|| Value::from(number.to_string()), Value::Number)
    };
    let time = |time: Result<jiff::Timestamp, jiff::Error>| {
        time.map(|time| Value::from(time.to_string())).map_err(|error| error.to_string())
    };
    Ok(match field {
        Field::Null => Value::Null,
        Field::Bool(value) => (*value).into(),
        Field::Byte(value) => (*value).into(),
        Field::Short(value) => (*value).into(),
        Field::Int(value) => (*value).into(),
        Field::Long(value) => (*value).into(),
        Field::UByte(value) => (*value).into(),
        Field::UShort(value) => (*value).into(),
        Field::UInt(value) => (*value).into(),
        Field::ULong(value) => (*value).into(),
        Field::Float16(value) => number(value.to_f64()),
        Field::Float(value) => number(f64::from(*value)),
        Field::Double(value) => number(*value),
        Field::Str(text) => text.as_str().into(),
        Field::Bytes(bytes) => STANDARD.encode(bytes.data()).into(),
        Field::TimestampMillis(ms) => time(jiff::Timestamp::from_millisecond(*ms))?,
        Field::TimestampMicros(us) => time(jiff::Timestamp::from_microsecond(*us))?,
        Field::Date(days) => {
            let midnight = time(jiff::Timestamp::from_second(i64::from(*days) * 86_400))?;
            midnight
                .as_str()
                .map(|text| text[..text.find('T').unwrap_or(text.len())].to_owned())
                .unwrap_or_default()
                .into()
        }
        Field::Group(row) => Value::Object(object(row, &HashSet::new())?),
        Field::ListInternal(list) => list.elements().iter().map(value).collect::<Result<_, _>>()?,
        Field::MapInternal(map) => {
            let entry = |(key, inner): &(Field, Field)| {
                let name = match value(key)? {
                    Value::String(text) => text,
                    other => other.to_string(),
                };
                Ok::<_, String>((name, value(inner)?))
            };
            map.entries().iter().map(entry).collect::<Result<_, _>>()?
        }
        Field::Decimal(_) | Field::TimeMillis(_) | Field::TimeMicros(_) => field.to_string().into(),
    })
}

/// Writes the lines, group by group.
pub fn write<I: Iterator<Item = Result<String>>>(
    columns: &Columns,
    lines: impl FnOnce() -> Result<I>,
    to: &Path,
) -> Result<()> {
    let schema = Arc::new(schema(columns)?);
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut lines = lines()?;
    loop {
        let group: Vec<String> = lines.by_ref().take(GROUP_ROWS).collect::<Result<_>>()?;
        if group.is_empty() {
            break;
        }
        let rows: Vec<Vec<Option<&str>>> = group.iter().map(|line| columns.row(line)).collect();
        let mut out = writer.next_row_group()?;
        let mut place = 0;
        while let Some(column) = out.next_column()? {
            write_column(column, columns.column_type(place), rows.iter().map(|row| row[place]))?;
            place += 1;
        }
        out.close()?;
    }
    writer.close()?;
    Ok(())
}

fn schema(columns: &Columns) -> Result<Type> {
    let mut fields = Vec::with_capacity(columns.names.len());
    for (place, name) in columns.names.iter().enumerate() {
        let (physical, converted) = match columns.column_type(place) {
            ColumnType::Whole => (Physical::INT64, ConvertedType::NONE),
            ColumnType::Double => (Physical::DOUBLE, ConvertedType::NONE),
            ColumnType::Boolean => (Physical::BOOLEAN, ConvertedType::NONE),
            ColumnType::Text => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
            ColumnType::Json => (Physical::BYTE_ARRAY, ConvertedType::JSON),
        };
        let field = Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_converted_type(converted)
            .build()?;
        fields.push(Arc::new(field));
    }
    Ok(Type::group_type_builder("items").with_fields(fields).build()?)
}

fn write_column<'t>(
    mut column: SerializedColumnWriter<'_>,
    kind: ColumnType,
    values: impl Iterator<Item = Option<&'t str>>,
) -> Result<()> {
    let mut levels = Vec::with_capacity(GROUP_ROWS);
    let present: Vec<&str> = values
        .filter_map(|value| {
            let value = value.filter(|value| *value != "null");
            levels.push(i16::from(value.is_some()));
            value
        })
        .collect();
    let levels = Some(levels.as_slice());
    match kind {
        ColumnType::Whole => {
            let numbers: Vec<i64> = present.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
            column.typed::<Int64Type>().write_batch(&numbers, levels, None)?;
        }
        ColumnType::Double => {
            let numbers: Vec<f64> = present.iter().map(|text| text.parse()).collect::<Result<_, _>>()?;
            column.typed::<DoubleType>().write_batch(&numbers, levels, None)?;
        }
        ColumnType::Boolean => {
            let values: Vec<bool> = present.iter().map(|text| *text == "true").collect();
            column.typed::<BoolType>().write_batch(&values, levels, None)?;
        }
        ColumnType::Text => {
            let texts = present.iter().map(|text| raw_json::unquoted(text).context("no string"));
            let texts: Vec<ByteArray> = texts
                .map(|text| Ok(ByteArray::from(text?.into_owned().into_bytes())))
                .collect::<Result<_>>()?;
            column.typed::<ByteArrayType>().write_batch(&texts, levels, None)?;
        }
        ColumnType::Json => {
            let texts: Vec<ByteArray> =
                present.iter().map(|text| ByteArray::from(text.as_bytes().to_vec())).collect();
            column.typed::<ByteArrayType>().write_batch(&texts, levels, None)?;
        }
    }
    Ok(column.close()?)
}
