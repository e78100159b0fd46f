//! Golden files: `tests/golden/sql/*.txt`, documents and queries in, rows or errors out.
//!
//! A file is a list of blocks with blank lines between them. A block that begins with `documents` gives
//! the items for the queries after it, one JSON object per line. A block whose lines begin with `>` is a
//! query; `@name = json` lines give its parameters; the lines after are what it answers: a row of JSON
//! each, or `error CODE start..end message`. A block of `#` lines is a comment.
//!
//! Set `UPDATE_GOLDEN=1` to write the answers again, and read the difference.

use std::path::Path;

use orrery_model::{ParseOptions, Raw, Value, parse_json, parse_json_value};
use orrery_query::{Prepared, QueryEnv, RowView, run_all};
use orrery_sql::{SqlError, parse_query};

#[test]
fn golden_files_hold() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/sql");
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let mut files = 0;
    let mut differences = Vec::new();
    for entry in std::fs::read_dir(directory).expect("the directory of golden files") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        files += 1;
        let text = std::fs::read_to_string(&path).expect("a golden file");
        let answered = answer(&text);
        if update {
            std::fs::write(&path, &answered).expect("the file can be written");
        }
        for (line, (expected, actual)) in text.lines().zip(answered.lines()).enumerate() {
            if expected != actual && !update {
                differences.push(format!("{}:{}\n  {expected}\n  {actual}", path.display(), line + 1));
                break;
            }
        }
        if text.lines().count() != answered.lines().count() && !update {
            differences.push(format!("{}: another number of lines", path.display()));
        }
    }
    assert!(files > 0, "no golden files");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

fn answer(text: &str) -> String {
    let mut documents: Vec<Vec<u8>> = Vec::new();
    let mut blocks = Vec::new();
    for block in text.trim_end().split("\n\n") {
        let lines: Vec<&str> = block.lines().collect();
        if lines.first() == Some(&"documents") {
            documents = lines[1..]
                .iter()
                .map(|line| parse_json(line.as_bytes(), &ParseOptions::default()).expect(line))
                .collect();
        } else if lines.first().is_some_and(|line| line.starts_with('>')) {
            let asked: Vec<&str> =
                lines.into_iter().take_while(|line| line.starts_with('>') || line.starts_with('@')).collect();
            let rows = run(&asked, &documents);
            blocks.push([asked.join("\n"), rows].join("\n").trim_end().to_string());
            continue;
        }
        blocks.push(block.to_string());
    }
    blocks.join("\n\n") + "\n"
}

fn run(asked: &[&str], documents: &[Vec<u8>]) -> String {
    let text = asked
        .iter()
        .filter_map(|line| line.strip_prefix('>'))
        .map(|line| line.strip_prefix(' ').unwrap_or(line))
        .collect::<Vec<_>>()
        .join("\n");
    let parameters: Vec<(String, Value)> = asked
        .iter()
        .filter(|line| line.starts_with('@'))
        .map(|line| {
            let (name, value) = line.split_once(" = ").expect(line);
            (name.to_string(), parse_json_value(value.as_bytes()).expect(line))
        })
        .collect();
    match rows(&text, &parameters, documents) {
        Ok(rows) => rows.iter().map(|row| String::from_utf8_lossy(row)).collect::<Vec<_>>().join("\n"),
        Err(error) => error
            .all()
            .map(|error| format!("error {} {}..{} {}", error.code, error.start, error.end, error.message))
            .collect::<Vec<_>>()
            .join("\n"),
    }
}

fn rows(text: &str, parameters: &[(String, Value)], documents: &[Vec<u8>]) -> Result<Vec<Vec<u8>>, SqlError> {
    let env = QueryEnv { now_ticks: 17_000_000_000_000_000, ..QueryEnv::default() };
    let prepared = Prepared::new(&parse_query(text)?, parameters, &env)?;
    let system = [
        ("_rid", Value::from("r")),
        ("_self", Value::from("s")),
        ("_etag", Value::from("e")),
        ("_attachments", Value::from("attachments/")),
        ("_ts", Value::Number(1i64.into())),
    ];
    let views = documents.iter().map(|bytes| RowView {
        document: Raw::document(bytes).expect("stored documents are valid"),
        system: &system,
        appended: 0,
    });
    run_all(&prepared, views)
}
