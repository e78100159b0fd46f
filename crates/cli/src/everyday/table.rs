//! Rows of JSON as a table for people.

use serde_json::Value;

/// Widest column; more is cut.
const COLUMN_CHARS_MAX: usize = 40;
const COLUMNS_MAX: usize = 40;

/// What the server adds to an item. In a table of whole items it is left out: it is as wide as all the rest.
const SYSTEM: [&str; 5] = ["_rid", "_self", "_etag", "_attachments", "_ts"];

/// Columns are the members of the rows in the order in which they first come. Rows that are no objects have one column.
pub fn render(rows: &[Value]) -> String {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        let whole = SYSTEM.iter().all(|name| row.get(name).is_some());
        for name in row.as_object().into_iter().flat_map(|row| row.keys()) {
            if whole && SYSTEM.contains(&name.as_str()) {
                continue;
            }
            if !names.contains(&name.as_str()) && names.len() < COLUMNS_MAX {
                names.push(name);
            }
        }
    }
    let plain = rows.iter().any(|row| !row.is_object());
    let mut lines: Vec<Vec<String>> = Vec::with_capacity(rows.len() + 1);
    let heading = |name: &&str| (*name).to_owned();
    lines.push(plain.then(|| "value".to_owned()).into_iter().chain(names.iter().map(heading)).collect());
    for row in rows {
        let first = plain.then(|| if row.is_object() { String::new() } else { cell(row) });
        let members = names.iter().map(|name| row.get(name).map_or(String::new(), cell));
        lines.push(first.into_iter().chain(members).collect());
    }
    aligned(&lines)
}

/// Lines of cells with columns of the same width; the first is the heading.
pub fn aligned(lines: &[Vec<String>]) -> String {
    let columns = lines.first().map_or(0, Vec::len);
    if columns == 0 {
        return String::new();
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let numeric = |column: usize| {
        lines.len() > 1
            && lines[1..].iter().all(|line| line[column].parse::<f64>().is_ok() || line[column].is_empty())
    };
    let right: Vec<bool> = (0..columns).map(numeric).collect();
    let mut out = String::new();
    for (n, line) in lines.iter().enumerate() {
        let cells = line.iter().enumerate().map(|(column, cell)| {
            let space = " ".repeat(widths[column] - cell.chars().count());
            if right[column] { format!("{space}{cell}") } else { format!("{cell}{space}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
        if n == 0 {
            let rule: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            out.push_str(&rule.join("  "));
            out.push('\n');
        }
    }
    out
}

fn cell(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.replace(['\n', '\r', '\t'], " "),
        other => other.to_string(),
    };
    // What a terminal would take for a command is not shown to it.
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    match text.chars().count() > COLUMN_CHARS_MAX {
        true => text.chars().take(COLUMN_CHARS_MAX - 1).chain(['…']).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn rows_are_aligned_and_controls_left_out() {
        let text = render(&[json!({"id":"a","n":1}), json!({"id":"bb\u{1b}[2J","n":10,"x":[1]}), json!(5)]);
        assert_eq!(
            text,
            "value  id      n  x\n─────  ─────  ──  ───\n       a       1\n       bb[2J  10  [1]\n    5\n"
        );
    }
}
