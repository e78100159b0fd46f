//! A request, reduced to what it knows about the items it is for.

use std::collections::BTreeSet;

use orrery_sql::{BinaryOp, Expr, ExprKind, LogicalOp, parse_query};
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Known {
    /// The whole item: a write.
    All,
    /// The values of these paths.
    Paths(BTreeSet<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub known: Known,
    pub charge_ru: f64,
    /// Whether it asked one logical partition.
    pub is_local: bool,
    /// Several items in one transaction.
    pub transaction: bool,
    /// The key it named, as JSON.
    pub key: Option<String>,
}

impl Request {
    /// A line of a recording (`serve --record`) about a container whose key has these paths; `None` for requests that
    /// are not about items.
    pub fn of_line(line: &Value, key_paths: &[String]) -> Option<Request> {
        let operation = line["operation"].as_str()?;
        let key = line.get("partitionKey").filter(|key| !key.is_null()).map(Value::to_string);
        let of_key = || key_paths.iter().cloned().collect::<BTreeSet<_>>();
        let (known, transaction) = match operation {
            "create_item" | "upsert_item" | "replace_item" => (Known::All, false),
            "read_item" | "patch_item" | "delete_item" => {
                // Who knows the key and the id of an item knows just that.
                let mut paths = of_key();
                paths.insert("/id".into());
                (Known::Paths(paths), false)
            }
            // Whoever writes several items at once has them all in hand.
            "batch" => (Known::All, line["atomic"] == true),
            "execute_procedure" => (Known::Paths(of_key()), true),
            "query_items" => {
                let text = line["body"]["query"].as_str().unwrap_or_default();
                let mut paths = filtered(text);
                if key.is_some() {
                    paths.extend(of_key());
                }
                (Known::Paths(paths), false)
            }
            "list_items" if key.is_some() => (Known::Paths(of_key()), false),
            _ => return None,
        };
        let is_local = key.is_some() || key_paths.iter().all(|path| knows(&known, path));
        Some(Request { known, charge_ru: line["charge"].as_f64().unwrap_or(0.0), is_local, transaction, key })
    }
}

pub fn knows(known: &Known, path: &str) -> bool {
    match known {
        Known::All => true,
        Known::Paths(paths) => paths.contains(path),
    }
}

/// The paths that a query compares with one value, in conditions that all must hold.
pub fn filtered(text: &str) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    if let Ok(query) = parse_query(text)
        && let Some(filter) = &query.filter
    {
        conditions(filter, &mut paths);
    }
    paths
}

fn conditions(filter: &Expr, paths: &mut BTreeSet<String>) {
    match &filter.kind {
        ExprKind::Logical(LogicalOp::And, parts) => parts.iter().for_each(|part| conditions(part, paths)),
        ExprKind::Binary(BinaryOp::Equal, left, right) => {
            for (side, other) in [(left, right), (right, left)] {
                let fixed = matches!(other.kind, ExprKind::Literal(_) | ExprKind::Parameter(_));
                if let (true, Some(path)) = (fixed, path(side)) {
                    paths.insert(path);
                }
            }
        }
        _ => {}
    }
}

/// `c.a.b` is `/a/b`.
fn path(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Identifier(_) => Some(String::new()),
        ExprKind::Member(object, name) => Some(format!("{}/{name}", path(object)?)),
        ExprKind::Index(object, index) => match &index.kind {
            ExprKind::Literal(orrery_sql::Literal::String(name)) => Some(format!("{}/{name}", path(object)?)),
            _ => None,
        },
        _ => None,
    }
    .filter(|path| !path.is_empty() || matches!(expr.kind, ExprKind::Identifier(_)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn queries_know_what_they_compare_with_one_value() {
        let paths = |text| filtered(text).into_iter().collect::<Vec<_>>();
        assert_eq!(paths("SELECT * FROM c WHERE c.a = @x AND 5 = c.b.d AND c.e > 3"), ["/a", "/b/d"]);
        assert_eq!(paths("SELECT * FROM c WHERE c['a'] = 'x'"), ["/a"]);
        assert!(paths("SELECT * FROM c WHERE c.a = 1 OR c.b = 2").is_empty());
        assert!(paths("SELECT * FROM c WHERE c.a = c.b").is_empty() && paths("not sql").is_empty());
    }

    #[test]
    fn lines_of_a_recording_become_requests() {
        let keys = ["/pk".to_owned()];
        let of = |line| Request::of_line(&line, &keys);
        let read = of(json!({"operation":"read_item","partitionKey":["a"],"charge":1.0})).unwrap();
        assert!(
            read.is_local
                && knows(&read.known, "/id")
                && knows(&read.known, "/pk")
                && !knows(&read.known, "/x")
        );
        let query = of(
            json!({"operation":"query_items","charge":9.0,"body":{"query":"SELECT * FROM c WHERE c.x = 1"}}),
        )
        .unwrap();
        assert!(!query.is_local && knows(&query.known, "/x"));
        assert_eq!(of(json!({"operation":"read_container"})), None);
        let batch = |atomic: bool| {
            of(json!({"operation":"batch","partitionKey":["a"],"atomic":atomic})).unwrap().transaction
        };
        assert!(batch(true) && !batch(false), "a bulk is no transaction");
    }
}
