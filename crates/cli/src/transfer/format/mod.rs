//! File formats: how a file is cut into records, and how a record becomes the JSON of items (and back).
//!
//! Cutting is sequential and done by one thread, decoding is done by whoever sends the items. A reader knows after
//! every record where it is, so that an import can go on there.

mod cells;
mod columns;
mod csv_file;
mod graphson;
mod json_values;
mod lines;
mod mongo;
mod parquet_file;
mod table_csv;
mod write;

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};

pub use write::convert;

/// The longest record that is read; more is no item anyway.
pub const RECORD_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Names for `--format`, and what they mean.
pub const FORMATS: &[(&str, Format, &str)] = &[
    ("jsonl", Format::JsonLines, "one JSON object per line"),
    ("json", Format::Json, "one JSON array of objects (or objects one behind the other)"),
    ("csv", Format::Csv, "a header with names, then a row for each item; types by the rules below"),
    ("mongo", Format::Mongo, "MongoDB extended JSON, as mongoexport writes it: lines or an array"),
    ("graphson", Format::GraphSon, "TinkerPop's GraphSON: one vertex with its out-edges per line"),
    (
        "table-csv",
        Format::TableCsv,
        "entities as storage tools write them: PartitionKey, RowKey, Timestamp, Name, Name@type",
    ),
    ("parquet", Format::Parquet, "columns; nested values as JSON text"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    JsonLines,
    Json,
    Csv,
    Mongo,
    GraphSon,
    TableCsv,
    Parquet,
}

impl Format {
    /// By the end of a file's name, whether it is packed or not.
    pub fn of_name(path: &Path) -> Option<Format> {
        let name = path.file_name()?.to_str()?.to_ascii_lowercase();
        let name = name.strip_suffix(".gz").unwrap_or(&name);
        let ends = |end: &str| name.ends_with(end);
        Some(match () {
            () if ends(".jsonl") || ends(".ndjson") => Format::JsonLines,
            () if ends(".graphson") => Format::GraphSon,
            () if ends(".json") => Format::Json,
            () if ends(".table.csv") => Format::TableCsv,
            () if ends(".csv") => Format::Csv,
            () if ends(".parquet") => Format::Parquet,
            () => return None,
        })
    }

    pub fn name(self) -> &'static str {
        FORMATS.iter().find(|(_, format, _)| *format == self).map_or("", |(name, ..)| name)
    }
}

/// A record as it was cut out of its source.
#[derive(Debug)]
pub enum RawRecord {
    /// One JSON value, not checked yet.
    Text(Vec<u8>),
    /// The fields of a row.
    Row(csv::ByteRecord),
    /// What cannot be a record, and why.
    Bad { text: String, reason: String },
}

impl RawRecord {
    pub fn size_bytes(&self) -> usize {
        match self {
            RawRecord::Text(text) => text.len(),
            RawRecord::Row(row) => row.as_slice().len() + row.len(),
            RawRecord::Bad { text, .. } => text.len(),
        }
    }
}

/// Cuts a file into records.
pub trait Reader: Send {
    fn next(&mut self) -> Result<Option<RawRecord>>;
    /// Where the next record begins: what [`open`] takes to go on from here.
    fn position(&self) -> u64;
    /// How far this is through the file, in bytes.
    fn read_bytes(&self) -> u64 {
        self.position()
    }
}

/// What decoding has to know besides the record.
#[derive(Debug, Clone, Default)]
pub struct FormatOptions {
    /// Cells stay text, whatever they look like.
    pub text_only: bool,
    /// Separates the names of nested properties in a header.
    pub nesting: Option<char>,
    /// The property that is the partition key of a graph.
    pub graph_key: Option<String>,
}

/// Makes items of records.
#[derive(Clone)]
pub struct Decoder {
    kind: DecoderKind,
}

#[derive(Clone)]
enum DecoderKind {
    Json,
    Mongo,
    Csv { header: Arc<Vec<String>>, options: FormatOptions },
    TableCsv { header: Arc<Vec<String>> },
    Graph(Arc<graphson::Graph>),
}

impl Decoder {
    pub fn json() -> Decoder {
        Decoder { kind: DecoderKind::Json }
    }

    /// The items of a record as JSON text; or the record as text, and what is wrong with it.
    pub fn items(&self, record: RawRecord) -> Result<Vec<String>, (String, String)> {
        match record {
            RawRecord::Bad { text, reason } => Err((text, reason)),
            RawRecord::Text(bytes) => {
                let text = String::from_utf8(bytes).map_err(|error| {
                    let lossy = String::from_utf8_lossy(error.as_bytes()).into_owned();
                    (lossy, "not UTF-8".to_owned())
                })?;
                match &self.kind {
                    DecoderKind::Mongo => {
                        mongo::item(&text).map(|item| vec![item]).map_err(|reason| (text, reason))
                    }
                    DecoderKind::Graph(graph) => graph.items(&text).map_err(|reason| (text, reason)),
                    _ => Ok(vec![text]),
                }
            }
            RawRecord::Row(row) => {
                let shown = || row.iter().map(String::from_utf8_lossy).collect::<Vec<_>>().join(",");
                let item = match &self.kind {
                    DecoderKind::Csv { header, options } => csv_file::item(header, &row, options),
                    DecoderKind::TableCsv { header } => table_csv::item(header, &row),
                    _ => Err("a row where none is expected".into()),
                };
                item.map(|item| vec![item]).map_err(|reason| (shown(), reason))
            }
        }
    }
}

/// A file, from its beginning or from where an earlier reader was.
pub fn open(
    path: &Path,
    format: Format,
    options: &FormatOptions,
    from: u64,
) -> Result<(Box<dyn Reader>, Decoder)> {
    let shown = path.display();
    let found = open_inner(path, format, options, from);
    found.with_context(|| format!("cannot read {shown} as {}", format.name()))
}

fn open_inner(
    path: &Path,
    format: Format,
    options: &FormatOptions,
    from: u64,
) -> Result<(Box<dyn Reader>, Decoder)> {
    let json = |kind| Decoder { kind };
    Ok(match format {
        Format::JsonLines => (Box::new(lines::Lines::open(path, from)?), json(DecoderKind::Json)),
        Format::Json => (Box::new(json_values::JsonValues::open(path, from)?), json(DecoderKind::Json)),
        Format::Mongo => {
            let reader: Box<dyn Reader> = match first_sign(path)? {
                Some(b'[') => Box::new(json_values::JsonValues::open(path, from)?),
                _ => Box::new(lines::Lines::open(path, from)?),
            };
            (reader, json(DecoderKind::Mongo))
        }
        Format::GraphSon => {
            let graph = graphson::Graph::survey(path, options.graph_key.clone())?;
            (Box::new(lines::Lines::open(path, from)?), json(DecoderKind::Graph(Arc::new(graph))))
        }
        Format::Csv | Format::TableCsv => {
            let (reader, header) = csv_file::CsvRows::open(path, from)?;
            let header = Arc::new(header);
            let kind = match format {
                Format::Csv => DecoderKind::Csv { header, options: options.clone() },
                _ => {
                    table_csv::check_header(&header)?;
                    DecoderKind::TableCsv { header }
                }
            };
            (Box::new(reader), json(kind))
        }
        Format::Parquet => (Box::new(parquet_file::ParquetRows::open(path, from)?), json(DecoderKind::Json)),
    })
}

/// The first byte that is no space.
fn first_sign(path: &Path) -> Result<Option<u8>> {
    use std::io::Read as _;
    if is_stdin(path) {
        return Ok(None);
    }
    let mut start = Vec::new();
    input(path, 0)?.take(4096).read_to_end(&mut start)?;
    Ok(start.iter().copied().find(|byte| !byte.is_ascii_whitespace() && !b"\xEF\xBB\xBF".contains(byte)))
}

pub fn is_stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// Whether a file is packed with gzip, by its first bytes.
pub fn is_packed(path: &Path) -> bool {
    use std::io::Read as _;
    let mut start = [0; 2];
    let read = std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut start));
    !is_stdin(path) && read.is_ok() && start == [0x1f, 0x8b]
}

/// A file at a place, or standard input at its beginning. Of a packed file the place is one in what it holds: it is
/// unpacked up to there.
fn input(path: &Path, from: u64) -> Result<Box<dyn std::io::Read + Send>> {
    use std::io::{Read as _, Seek as _, SeekFrom};
    if is_stdin(path) {
        if from > 0 {
            bail!("standard input cannot be read again");
        }
        return Ok(Box::new(std::io::stdin()));
    }
    let mut file = std::fs::File::open(path)?;
    if is_packed(path) {
        let mut unpacked = flate2::read::MultiGzDecoder::new(std::io::BufReader::new(file));
        std::io::copy(&mut unpacked.by_ref().take(from), &mut std::io::sink())?;
        return Ok(Box::new(unpacked));
    }
    file.seek(SeekFrom::Start(from))?;
    Ok(Box::new(file))
}
