//! From lines of JSON, as an export collects them, to a file of the format that was asked for.

use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::super::raw_json;
use super::columns::Columns;
use super::{Format, cells, graphson, parquet_file, table_csv};

/// Writes `to` from the lines of `from`. Formats with a header read them twice.
pub fn convert(from: &Path, to: &Path, format: Format) -> Result<()> {
    if format == Format::Parquet {
        return parquet_file::write(&learn(from)?, || lines(from), to);
    }
    let file = File::create(to).with_context(|| format!("cannot write {}", to.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    match format {
        Format::JsonLines => drop(std::io::copy(&mut File::open(from)?, &mut out)?),
        Format::Json => {
            out.write_all(b"[")?;
            for (n, line) in lines(from)?.enumerate() {
                out.write_all(if n == 0 { b"\n" } else { b",\n" })?;
                out.write_all(line?.as_bytes())?;
            }
            out.write_all(b"\n]\n")?;
        }
        Format::Mongo => {
            for line in lines(from)? {
                writeln!(out, "{}", mongo_line(&line?)?)?;
            }
        }
        Format::Csv => write_csv(&learn(from)?, from, &mut out)?,
        Format::TableCsv => write_table_csv(&learn(from)?, from, &mut out)?,
        Format::GraphSon => drop(graphson::write(&mut lines(from)?, &mut out)?),
        Format::Parquet => bail!("columns are written elsewhere"),
    }
    out.flush()?;
    out.into_inner().context("cannot write")?.sync_all()?;
    Ok(())
}

fn lines(path: &Path) -> Result<impl Iterator<Item = Result<String>>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(BufReader::with_capacity(1 << 20, file).lines().map(|line| Ok(line?)))
}

fn learn(path: &Path) -> Result<Columns> {
    let mut columns = Columns::default();
    for line in lines(path)? {
        columns.learn(&line?)?;
    }
    Ok(columns)
}

/// `id` is `_id` there; everything else is relaxed extended JSON as it stands.
fn mongo_line(line: &str) -> Result<String> {
    let members = raw_json::members(line).context("a line that is no object")?;
    let id = members.iter().find(|member| member.name == "id").map(|member| member.value.to_owned());
    let with: Vec<(&str, String)> = id.into_iter().map(|id| ("_id", id)).collect();
    Ok(raw_json::rewritten(&members, &["id"], &with))
}

fn write_csv(columns: &Columns, from: &Path, out: &mut dyn Write) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(&columns.names)?;
    for line in lines(from)? {
        let line = line?;
        let row = columns.row(&line);
        let cell = |(name, value): (&String, &Option<&str>)| match value {
            None => String::new(),
            Some(value) if name == "id" => cells::id_cell(value),
            Some(value) => cells::cell(value),
        };
        writer.write_record(columns.names.iter().zip(&row).map(cell))?;
    }
    Ok(writer.flush()?)
}

fn write_table_csv(columns: &Columns, from: &Path, out: &mut dyn Write) -> Result<()> {
    let properties: Vec<(usize, &str)> = columns
        .names
        .iter()
        .enumerate()
        .filter_map(|(place, name)| Some((place, table_csv::property(name)?)))
        .collect();
    let mut writer = csv::Writer::from_writer(out);
    let mut header = vec![table_csv::PARTITION_KEY.to_owned(), table_csv::ROW_KEY.to_owned()];
    for (_, name) in &properties {
        header.extend([(*name).to_owned(), format!("{name}{}", table_csv::TYPE_SUFFIX)]);
    }
    writer.write_record(&header)?;
    for line in lines(from)? {
        let line = line?;
        let key = |name: &str| {
            let text = raw_json::member(&line, name).and_then(raw_json::unquoted);
            text.map(|text| text.into_owned()).context("an item that is no entity: it has no $pk or $id")
        };
        let row = columns.row(&line);
        let mut record = vec![key("$pk")?, key("$id")?];
        for (place, _) in &properties {
            let cell = row[*place].and_then(table_csv::cell);
            let (value, kind) = cell.unwrap_or_default();
            record.extend([value, kind.to_owned()]);
        }
        writer.write_record(&record)?;
    }
    Ok(writer.flush()?)
}

#[cfg(test)]
mod tests {
    use super::super::{Decoder, FormatOptions, open};
    use super::*;

    /// What is written in a format is read back as what it was.
    fn round_trip(lines: &[&str], format: Format) {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("in"), directory.path().join("out"));
        std::fs::write(&from, lines.join("\n") + "\n").unwrap();
        convert(&from, &to, format).unwrap();
        let (mut reader, decoder): (_, Decoder) = open(&to, format, &FormatOptions::default(), 0).unwrap();
        let mut found = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            found.extend(decoder.items(record).unwrap());
        }
        let parse = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let expected: Vec<_> = lines.iter().map(|line| parse(line)).collect();
        assert_eq!(found.iter().map(|text| parse(text)).collect::<Vec<_>>(), expected, "{format:?}");
    }

    #[test]
    fn every_format_gives_back_what_it_got() {
        let items = [
            r#"{"id":"a","n":1,"x":0.1,"t":true,"s":"007","o":{"b":[1,null]}}"#,
            r#"{"id":"b","n":-5,"x":0.30000000000000004,"t":false,"s":"x,\"y\"\nz","m":5}"#,
            r#"{"id":"c","s":"","m":"5","u":"ü😀"}"#,
        ];
        for format in [Format::JsonLines, Format::Json, Format::Csv, Format::Mongo, Format::Parquet] {
            round_trip(&items, format);
        }
        round_trip(
            &[
                r#"{"id":"r","$id":"r","$pk":"p","Age":{"$t":16,"$v":23},"Big":{"$t":18,"$v":"-0000000000000000005"}}"#,
                r#"{"id":"s","$id":"s","$pk":"p","$ttl":{"$t":2,"$v":"x,y"},"On":{"$t":8,"$v":true}}"#,
            ],
            Format::TableCsv,
        );
    }
}
