//! `$group` and counts by the query engine of the container, which has its index and its columns for them.
//!
//! Only what comes out the same is asked there: groups by paths, and counts, sums of whole numbers, means of them, and
//! extremes of values that both languages put in one order. Whether it does is partly for the answer to tell: a sum of
//! doubles, which MongoDB rounds once and SQL at every step, or a group whose key is a document, sends the command the
//! long way.

use orrery_model::{Number, Raw};
use orrery_mongo::filter::Filter;
use orrery_mongo::{Bson, Context, Document, Kind, Result, ValueRef, codec, order};
use orrery_query::StoredForm;
use orrery_sql::{Expr, Literal, LogicalOp};

use super::lowering::{self, Exact, Lowered};
use super::scan::Pages;
use super::{Collection, Scope, statement};

/// Fields of a group, and members of its key.
const FIELDS_MAX: usize = 32;
/// Rows of one page of groups.
const GROUPS_A_PAGE: u64 = 2_000;

/// A `$group` that can be asked for.
pub struct Grouping {
    key: Key,
    fields: Vec<(String, Field)>,
}

enum Key {
    /// One group.
    Constant(Bson),
    Path(String),
    Document(Vec<(String, String)>),
}

enum Field {
    Count,
    Sum(String),
    Mean(String),
    Least(String),
    Greatest(String),
}

impl Grouping {
    /// `None` where it must go the long way.
    pub fn of(argument: &Bson) -> Option<Grouping> {
        let argument = argument.as_document()?;
        let mut key = None;
        let mut fields = Vec::new();
        for (name, value) in argument.iter() {
            match &**name {
                "_id" => key = Some(Key::of(value)?),
                _ => fields.push((name.to_string(), Field::of(value)?)),
            }
        }
        let grouping = Grouping { key: key?, fields };
        (grouping.fields.len() <= FIELDS_MAX).then_some(grouping)
    }

    fn keys(&self) -> Vec<&str> {
        match &self.key {
            Key::Constant(_) => Vec::new(),
            Key::Path(path) => vec![path],
            Key::Document(members) => members.iter().map(|(_, path)| path.as_str()).collect(),
        }
    }

    fn sums(&self) -> bool {
        self.fields.iter().any(|(_, field)| matches!(field, Field::Sum(_)))
    }
}

impl Key {
    fn of(value: &Bson) -> Option<Key> {
        match value {
            Bson::String(text) if text.starts_with('$') => Some(Key::Path(path_of(value)?)),
            Bson::Document(members) => {
                let member = |(name, value): (&std::sync::Arc<str>, &Bson)| {
                    let plain = !name.starts_with('$') && !name.contains('.') && !name.is_empty();
                    Some((name.to_string(), path_of(value).filter(|_| plain)?))
                };
                let members = members.iter().map(member).collect::<Option<Vec<_>>>()?;
                let usable = !members.is_empty() && members.len() <= FIELDS_MAX;
                usable.then_some(Key::Document(members))
            }
            Bson::Array(_) => None,
            constant => Some(Key::Constant(constant.clone())),
        }
    }
}

impl Field {
    fn of(value: &Bson) -> Option<Field> {
        let accumulator = value.as_document()?;
        let (name, argument) = accumulator.first().filter(|_| accumulator.len() == 1)?;
        match &**name {
            "$count" => Some(Field::Count),
            "$sum" if matches!(argument, Bson::Int32(1)) => Some(Field::Count),
            "$sum" => path_of(argument).map(Field::Sum),
            "$avg" => path_of(argument).map(Field::Mean),
            "$min" => path_of(argument).map(Field::Least),
            "$max" => path_of(argument).map(Field::Greatest),
            _ => None,
        }
    }

    fn path(&self) -> Option<&str> {
        match self {
            Field::Count => None,
            Field::Sum(path) | Field::Mean(path) | Field::Least(path) | Field::Greatest(path) => Some(path),
        }
    }
}

/// `"$a.b"`, if SQL finds the same there.
fn path_of(value: &Bson) -> Option<String> {
    let Bson::String(text) = value else { return None };
    let path = text.strip_prefix('$').filter(|path| !path.starts_with('$'))?;
    lowering::plain_names(path).map(|_| path.to_owned())
}

fn expr_of(path: &str) -> Expr {
    statement::path(path.split('.'))
}

/// What is known of one group.
struct Group {
    key: Bson,
    documents: i64,
    fields: Vec<State>,
}

enum State {
    Count,
    Sum { sum: i128 },
    Mean { sum: i128, count: i64 },
    Extreme { best: Option<Bson>, greatest: bool },
}

impl Collection {
    /// How many documents match; `None` where they must be looked at.
    pub fn count(&self, scope: &Scope, filter: Option<&Filter>, context: &Context) -> Result<Option<u64>> {
        let grouping = Grouping { key: Key::Constant(Bson::Null), fields: Vec::new() };
        let groups = self.groups(scope, filter, &grouping, context)?;
        Ok(groups.map(|groups| groups.first().map_or(0, |group| group.documents.unsigned_abs())))
    }

    /// The documents of the groups; `None` where they must be made here.
    pub fn group(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        grouping: &Grouping,
        context: &Context,
    ) -> Result<Option<Vec<Document>>> {
        let Some(groups) = self.groups(scope, filter, grouping, context)? else { return Ok(None) };
        let mut documents = Vec::with_capacity(groups.len());
        for group in groups {
            let mut document = Document::new();
            document.push("_id", group.key);
            for ((name, _), state) in grouping.fields.iter().zip(group.fields) {
                document.push(name.as_str(), finish(state, group.documents));
            }
            documents.push(document);
        }
        Ok(Some(documents))
    }

    fn groups(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        grouping: &Grouping,
        context: &Context,
    ) -> Result<Option<Vec<Group>>> {
        let narrow = self.keeps_narrow();
        if !self.reads_the_present(scope)
            || context.collation.is_some()
            || self.meta.decimals
            || (grouping.sums() && !narrow)
            || self.ids(filter).is_some()
        {
            return Ok(None);
        }
        let Some(exact) = self.exactly(scope, filter, grouping, context)? else { return Ok(None) };
        let statement = statement_of(grouping, exact.lowered)?;
        let mut pages = self.rows_of(scope, filter, statement, GROUPS_A_PAGE, context);
        let mut groups: Vec<Group> = Vec::new();
        // What is missing and what is null are one key to MongoDB.
        let mut of_nothing: Option<usize> = None;
        while let Some(row) = pages.next_row()? {
            context.budget.take(row.len() + size_of::<Group>())?;
            let Some(group) = read_group(grouping, &row, narrow)? else { return Ok(None) };
            if matches!(grouping.key, Key::Constant(_)) && group.documents == 0 {
                continue;
            }
            match of_nothing.filter(|_| matches!(group.key, Bson::Null)) {
                Some(first) => groups[first].add(group),
                None => {
                    if matches!(group.key, Bson::Null) {
                        of_nothing = Some(groups.len());
                    }
                    groups.push(group);
                }
            }
        }
        Ok(Some(groups))
    }

    /// Whole numbers among the documents are as narrow as they can be, so that their values tell their types.
    fn keeps_narrow(&self) -> bool {
        let definition = self.container.definition();
        let is_ours = definition.rules.as_ref().is_some_and(|rules| rules.item_bytes_max.is_some());
        is_ours && !self.meta.longs
    }

    /// The condition of exactly the matches, if no array is in its way.
    fn exactly(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        grouping: &Grouping,
        context: &Context,
    ) -> Result<Option<Exact>> {
        let paths = grouping.keys().into_iter().chain(grouping.fields.iter().filter_map(|(_, f)| f.path()));
        let mut on_the_way: Vec<Vec<String>> = Vec::new();
        for path in paths {
            let names: Vec<String> = path.split('.').map(str::to_owned).collect();
            on_the_way.extend((1..names.len()).map(|end| names[..end].to_vec()));
        }
        for elements in [false, true] {
            let Some(exact) = lowering::exactly(filter, self.meta.decimals, elements) else {
                return Ok(None);
            };
            let mut arrays = exact.arrays.clone();
            arrays.extend(on_the_way.iter().filter(|path| !exact.arrays.contains(path)).cloned());
            if !self.has_arrays(scope, filter, &arrays, context)? {
                return Ok(Some(exact));
            }
        }
        Ok(None)
    }

    /// Whether a document that may match has an array at one of these paths.
    fn has_arrays(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        arrays: &[Vec<String>],
        context: &Context,
    ) -> Result<bool> {
        let Some(arrays) = lowering::arrays_at(arrays) else { return Ok(false) };
        let mut lowered =
            filter.map(|filter| lowering::lower(filter, self.meta.decimals)).unwrap_or_default();
        lowered.condition = Some(match lowered.condition {
            Some(condition) => statement::logical(LogicalOp::And, vec![arrays, condition]),
            None => arrays,
        });
        let mut pages = self.rows_of(scope, filter, statement::select(lowered)?, 1, context);
        Ok(pages.next_row()?.is_some())
    }

    fn rows_of(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        statement: statement::Statement,
        wanted: u64,
        context: &Context,
    ) -> Pages {
        let (budget, spent) = (context.budget.clone(), scope.spent.clone());
        Pages::new(self.container.clone(), self.shares(filter), statement, budget, spent, Some(wanted))
            .in_form(&StoredForm)
    }
}

impl Group {
    /// Takes in another group of the same key.
    fn add(&mut self, other: Group) {
        self.documents += other.documents;
        for (state, other) in self.fields.iter_mut().zip(other.fields) {
            match (state, other) {
                (State::Sum { sum }, State::Sum { sum: more }) => *sum += more,
                (State::Mean { sum, count }, State::Mean { sum: more, count: others }) => {
                    *sum += more;
                    *count += others;
                }
                (State::Extreme { best, greatest }, State::Extreme { best: Some(other), .. }) => {
                    let better = best.as_ref().is_none_or(|best| {
                        let order = order::compare((&other).into(), best.into(), None);
                        if *greatest { order.is_gt() } else { order.is_lt() }
                    });
                    if better {
                        *best = Some(other);
                    }
                }
                _ => {}
            }
        }
    }
}

/// What the query selects: `k` the members of the key, `n` the documents, and for each field what it is made of.
fn statement_of(grouping: &Grouping, lowered: Lowered) -> Result<statement::Statement> {
    let one = || statement::literal(Literal::Integer(1));
    let mut values = vec![("n".to_owned(), statement::call("COUNT", vec![one()]))];
    let keys: Vec<Expr> = grouping.keys().into_iter().map(expr_of).collect();
    values.extend(keys.iter().enumerate().map(|(at, key)| (format!("k{at}"), key.clone())));
    for (at, (_, field)) in grouping.fields.iter().enumerate() {
        let Some(path) = field.path() else { continue };
        let of = |name: &str| statement::call(name, vec![expr_of(path)]);
        match field {
            Field::Sum(_) => values.push((format!("s{at}"), of("SUM"))),
            Field::Mean(_) => {
                values.push((format!("s{at}"), of("SUM")));
                values.push((format!("c{at}"), of("COUNT")));
            }
            _ => {
                values.push((format!("l{at}"), of("MIN")));
                values.push((format!("h{at}"), of("MAX")));
                values.push((format!("c{at}"), of("COUNT")));
            }
        }
    }
    // Groups by nothing are the same query for every key that is.
    let mut by = Vec::new();
    for key in keys {
        if !by.contains(&key) {
            by.push(key);
        }
    }
    statement::select_groups(lowered, by, values)
}

/// A row of the query; `None` where it cannot tell what MongoDB's group would be.
fn read_group(grouping: &Grouping, row: &[u8], narrow: bool) -> Result<Option<Group>> {
    let value = codec::item(row)?;
    let Ok(raw) = Raw::document(row) else { return Ok(None) };
    let number = |name: String| raw.get(&name).and_then(Raw::as_number);
    let whole = |name: String| match number(name) {
        Some(Number::Int(value)) => Some(value),
        _ => None,
    };
    let key_of = |at: usize| key_value(value.get(&format!("k{at}")), narrow);
    let key = match &grouping.key {
        Key::Constant(constant) => Some(constant.clone()),
        Key::Path(_) => key_of(0).map(|key| key.unwrap_or(Bson::Null)),
        Key::Document(members) => {
            let mut key = Document::new();
            let mut known = true;
            for (at, (name, _)) in members.iter().enumerate() {
                match key_of(at) {
                    None => known = false,
                    Some(None) => {}
                    Some(Some(value)) => key.push(name.as_str(), value),
                }
            }
            known.then_some(key.into())
        }
    };
    let (Some(key), Some(documents)) = (key, whole("n".into())) else { return Ok(None) };
    let mut fields = Vec::with_capacity(grouping.fields.len());
    for (at, (_, field)) in grouping.fields.iter().enumerate() {
        let state = match field {
            Field::Count => Some(State::Count),
            Field::Sum(_) => whole(format!("s{at}")).map(|sum| State::Sum { sum: sum.into() }),
            Field::Mean(_) => whole(format!("s{at}"))
                .zip(whole(format!("c{at}")))
                .map(|(sum, count)| State::Mean { sum: sum.into(), count }),
            Field::Least(_) | Field::Greatest(_) => {
                let greatest = matches!(field, Field::Greatest(_));
                let ends = value.get(&format!("l{at}")).zip(value.get(&format!("h{at}")));
                match (whole(format!("c{at}")), ends) {
                    (Some(0), _) => Some(State::Extreme { best: None, greatest }),
                    (Some(_), Some((least, most))) if are_of_one_order(least, most) => {
                        let best = key_value(Some(if greatest { most } else { least }), narrow);
                        best.map(|best| State::Extreme { best, greatest })
                    }
                    _ => None,
                }
            }
        };
        match state {
            Some(state) => fields.push(state),
            None => return Ok(None),
        }
    }
    Ok(Some(Group { key, documents, fields }))
}

/// Where the least and the greatest value are of such a type, so are all between them, and both languages order them
/// alike.
fn are_of_one_order(least: ValueRef<'_>, most: ValueRef<'_>) -> bool {
    let is_number = |value: ValueRef<'_>| value.kind().is_number();
    (is_number(least) && is_number(most))
        || (least.kind() == most.kind()
            && matches!(least.kind(), Kind::String | Kind::Date | Kind::ObjectId | Kind::Timestamp))
}

/// A value of a row, or nothing; `None` where its type cannot be told, or where SQL may have put different ones
/// together.
fn key_value(value: Option<ValueRef<'_>>, narrow: bool) -> Option<Option<Bson>> {
    let Some(value) = value else { return Some(None) };
    match value.kind() {
        Kind::Int32 | Kind::Int64 => narrow.then(|| Some(value.to_bson())),
        Kind::Document | Kind::Array | Kind::Decimal | Kind::Regex | Kind::Binary => None,
        _ => Some(Some(value.to_bson())),
    }
}

fn finish(state: State, documents: i64) -> Bson {
    match state {
        State::Count => whole_number(documents.into()),
        State::Sum { sum } => whole_number(sum),
        State::Mean { count: 0, .. } => Bson::Null,
        State::Mean { sum, count } => Bson::Double(sum as f64 / count as f64),
        State::Extreme { best, .. } => best.unwrap_or(Bson::Null),
    }
}

fn whole_number(value: i128) -> Bson {
    match i32::try_from(value) {
        Ok(value) => Bson::Int32(value),
        Err(_) => i64::try_from(value).map_or(Bson::Double(value as f64), Bson::Int64),
    }
}
