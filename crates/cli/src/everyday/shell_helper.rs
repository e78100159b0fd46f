//! What the shell completes: its commands, the words of the language, and properties that it has seen.

use std::collections::BTreeSet;

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use serde_json::Value;

pub const COMMANDS: [(&str, &str); 8] = [
    (".use DB/CONTAINER", "choose the container"),
    (".containers", "list all containers"),
    (".explain QUERY", "show how each partition makes its part"),
    (".mode table|json", "how rows are shown"),
    (".limit N", "rows to read, at most"),
    (".help", "this list"),
    (".quit", "end; so does Ctrl+D"),
    (".exit", "the same"),
];

const WORDS: [&str; 40] = [
    "SELECT",
    "FROM",
    "WHERE",
    "ORDER BY",
    "GROUP BY",
    "OFFSET",
    "LIMIT",
    "TOP",
    "DISTINCT",
    "VALUE",
    "AS",
    "JOIN",
    "IN",
    "AND",
    "OR",
    "NOT",
    "BETWEEN",
    "LIKE",
    "EXISTS",
    "ASC",
    "DESC",
    "COUNT(1)",
    "SUM(",
    "AVG(",
    "MIN(",
    "MAX(",
    "CONTAINS(",
    "STARTSWITH(",
    "ENDSWITH(",
    "ARRAY_CONTAINS(",
    "ARRAY_LENGTH(",
    "IS_DEFINED(",
    "IS_NULL(",
    "LOWER(",
    "UPPER(",
    "LENGTH(",
    "SUBSTRING(",
    "CONCAT(",
    "ST_DISTANCE(",
    "VectorDistance(",
];

/// Properties that are remembered.
const PROPERTIES_MAX: usize = 2_000;

#[derive(Default)]
pub struct Helper {
    properties: BTreeSet<String>,
}

impl Helper {
    /// Remembers the properties of rows, and one level below.
    pub fn learn(&mut self, rows: &[Value]) {
        for (name, value) in rows.iter().filter_map(Value::as_object).flatten() {
            if self.properties.len() >= PROPERTIES_MAX {
                return;
            }
            self.properties.insert(name.clone());
            for inner in value.as_object().into_iter().flat_map(|inner| inner.keys()) {
                self.properties.insert(format!("{name}.{inner}"));
            }
        }
    }

    /// Where the word before the cursor begins, and what it could become.
    fn candidates(&self, line: &str) -> (usize, Vec<String>) {
        let start = line.rfind(|c: char| c.is_whitespace() || "(),=<>".contains(c)).map_or(0, |at| at + 1);
        let word = &line[start..];
        if start == 0 && word.starts_with('.') {
            let names = COMMANDS.iter().filter_map(|(name, _)| name.split(' ').next());
            return (0, names.filter(|name| name.starts_with(word)).map(str::to_owned).collect());
        }
        // `c.na`: a property of the alias.
        if let Some((alias, prefix)) = word.split_once('.') {
            let begin = start + alias.len() + 1;
            let found = self.properties.iter().filter(|name| name.starts_with(prefix));
            return (begin, found.cloned().collect());
        }
        let upper = word.to_ascii_uppercase();
        let words =
            WORDS.iter().filter(|known| !word.is_empty() && known.to_ascii_uppercase().starts_with(&upper));
        (start, words.map(|known| (*known).to_owned()).collect())
    }
}

impl Completer for Helper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.candidates(line.get(..at).unwrap_or(line)))
    }
}

impl Hinter for Helper {
    type Hint = String;
}

impl Highlighter for Helper {}
impl Validator for Helper {}
impl rustyline::Helper for Helper {}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_commands_and_properties_are_completed() {
        let mut helper = Helper::default();
        helper.learn(&[json!({"customer": 1, "at": {"city": 1}})]);
        assert_eq!(helper.candidates("sel"), (0, vec!["SELECT".to_owned()]));
        assert_eq!(helper.candidates("SELECT c.cu"), (9, vec!["customer".to_owned()]));
        assert_eq!(helper.candidates("SELECT c.at."), (9, vec!["at.city".to_owned()]));
        assert_eq!(helper.candidates(".ex"), (0, vec![".explain".to_owned(), ".exit".to_owned()]));
    }
}
