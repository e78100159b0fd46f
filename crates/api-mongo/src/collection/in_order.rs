//! The first documents in the order of a path, from the index of the container.
//!
//! SQL's order and MongoDB's agree within most types, and in the order of most types. Documents for which they do not
//! are few as a rule, and looked for first: those with an array on the path (which sort by an element), an object, a
//! boolean or the least key at its end. So are those with an array where the filter looks, because SQL does not look
//! into it. They are put in order here; all others come in SQL's order; the two are merged.

use std::collections::{HashMap, VecDeque};

use orrery_model::{Extended, PartitionKey, Value};
use orrery_mongo::filter::Filter;
use orrery_mongo::pipeline::{Row, Rows};
use orrery_mongo::sort::Sort;
use orrery_mongo::{Context, Result, codec};
use orrery_sql::{BinaryOp, Expr, ExprKind, LogicalOp};

use super::item_form::Found;
use super::lowering::{self, Exact, Lowered};
use super::read::Way;
use super::scan::Pages;
use super::{Collection, Scope, statement};

/// Documents that are wanted at most: beyond, all of them are read and sorted.
const WANTED_MAX: u64 = 1_000;
/// Documents whose order SQL does not know, at most.
const APART_MAX: usize = 512;
/// The parameter that is the least key.
const LEAST: &str = "@least";

pub struct InOrder {
    pages: Pages,
    left: u64,
    filter: Option<Filter>,
    sort: Sort,
    context: Context,
    collection: Collection,
    /// In order; the first of them comes next unless the next one of the pages comes before it.
    apart: VecDeque<Found>,
    /// Where they lie, because they may be among the pages too.
    apart_ids: HashMap<String, Vec<PartitionKey>>,
    ahead: Option<Found>,
}

impl Collection {
    /// The first documents in an order; `None` where no index gives them.
    pub fn find_in_order(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        sort: &Sort,
        wanted: u64,
        context: &Context,
    ) -> Result<Option<InOrder>> {
        let [key] = &sort.keys[..] else { return Ok(None) };
        let by_filter = filter.is_some_and(|filter| filter.near().is_some() || filter.text().is_some());
        if key.meta.is_some()
            || sort.reversed
            || wanted > WANTED_MAX
            || by_filter
            || context.collation.is_some()
            || !self.reads_the_present(scope)
            || self.ids(filter).is_some()
        {
            return Ok(None);
        }
        let by_id = &*key.path == "_id";
        let names = match by_id {
            true => vec!["_id"],
            false => match lowering::plain_names(&key.path) {
                Some(names) => names,
                None => return Ok(None),
            },
        };
        let Some(exact) = lowering::exactly(filter, self.meta.decimals, false) else { return Ok(None) };
        if by_id && self.has_foreign_items(scope, context)? {
            return Ok(None);
        }
        let Some(apart) = self.apart(scope, filter, &names, &exact, context)? else { return Ok(None) };
        let statement = statement::select_in_order(exact.lowered, &names, key.descending)?;
        let pages = self.pages(scope, filter, statement, wanted, context);
        let mut found = InOrder {
            pages,
            left: wanted,
            filter: filter.cloned(),
            sort: sort.clone(),
            context: context.clone(),
            collection: self.clone(),
            apart_ids: HashMap::with_capacity(apart.len()),
            apart: VecDeque::new(),
            ahead: None,
        };
        found.keep_apart(apart)?;
        Ok(Some(found))
    }

    fn pages(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        statement: statement::Statement,
        wanted: u64,
        context: &Context,
    ) -> Pages {
        let (budget, spent) = (context.budget.clone(), scope.spent.clone());
        Pages::new(self.container.clone(), self.shares(filter), statement, budget, spent, Some(wanted))
    }

    /// Whether another api has written here: its items have no `_id` to sort by.
    fn has_foreign_items(&self, scope: &Scope, context: &Context) -> Result<bool> {
        // What is missing sorts first.
        let statement = statement::select_in_order(Lowered::default(), &["_id"], false)?;
        let first = self.pages(scope, None, statement, 1, context).next()?;
        let Some(first) = first else { return Ok(false) };
        let raw = orrery_model::Raw::document(&first.document).ok();
        Ok(raw.is_none_or(|raw| raw.get("_id").is_none()))
    }

    /// The matches that SQL would put elsewhere; `None` where they are too many.
    fn apart(
        &self,
        scope: &Scope,
        filter: Option<&Filter>,
        names: &[&str],
        exact: &Exact,
        context: &Context,
    ) -> Result<Option<Vec<Found>>> {
        let mut lowered =
            filter.map(|filter| lowering::lower(filter, self.meta.decimals)).unwrap_or_default();
        let end = || statement::path(names.iter().copied());
        let least = statement::expr(ExprKind::Parameter(LEAST.into()));
        let mut odd: Vec<Expr> = vec![
            statement::call("IS_BOOL", vec![end()]),
            statement::call("IS_OBJECT", vec![end()]),
            statement::binary(BinaryOp::Equal, end(), least),
        ];
        lowered.parameters.push((LEAST.into(), Value::from(Extended::MinKey)));
        let on_the_way: Vec<Vec<String>> = (1..=names.len())
            .map(|end| names[..end].iter().map(|name| (*name).to_owned()).collect())
            .collect();
        odd.extend(lowering::arrays_at(&on_the_way));
        let looked_at: Vec<Vec<String>> =
            exact.arrays.iter().filter(|path| !on_the_way.contains(path)).cloned().collect();
        odd.extend(lowering::arrays_at(&looked_at));
        let odd = statement::logical(LogicalOp::Or, odd);
        lowered.condition = Some(match lowered.condition {
            Some(condition) => statement::logical(LogicalOp::And, vec![odd, condition]),
            None => odd,
        });
        let statement = statement::select(lowered)?;
        let mut pages = self.pages(scope, filter, statement, APART_MAX as u64 + 1, context);
        let mut apart = Vec::new();
        while let Some(found) = pages.next()? {
            if apart.len() == APART_MAX {
                return Ok(None);
            }
            context.budget.take(found.document.len())?;
            apart.push(found);
        }
        Ok(Some(apart))
    }
}

impl InOrder {
    fn keep_apart(&mut self, apart: Vec<Found>) -> Result<()> {
        let mut matching = Vec::with_capacity(apart.len());
        for found in apart {
            let (key, id) = self.collection.place_of(&found)?;
            self.apart_ids.entry(id).or_default().push(key);
            if self.matches(&found)? {
                let key = self.sort.key_of(codec::item(&found.document)?, &self.context);
                matching.push((key, found));
            }
        }
        matching.sort_by(|(a, _), (b, _)| self.sort.compare_keys(a, b, &self.context));
        self.apart = matching.into_iter().map(|(_, found)| found).collect();
        Ok(())
    }

    fn matches(&self, found: &Found) -> Result<bool> {
        match &self.filter {
            None => Ok(true),
            Some(filter) => filter.matches(codec::item(&found.document)?, &self.context),
        }
    }

    fn is_apart(&self, found: &Found) -> Result<bool> {
        if self.apart_ids.is_empty() {
            return Ok(false);
        }
        let (key, id) = self.collection.place_of(found)?;
        Ok(self.apart_ids.get(&id).is_some_and(|keys| keys.contains(&key)))
    }

    /// The next one in SQL's order.
    fn next_of_pages(&mut self) -> Result<Option<Found>> {
        while let Some(found) = self.pages.next()? {
            if !self.is_apart(&found)? && self.matches(&found)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn next_found(&mut self) -> Result<Option<Found>> {
        if self.ahead.is_none() {
            self.ahead = self.next_of_pages()?;
        }
        let Some(apart) = self.apart.front() else { return Ok(self.ahead.take()) };
        let first = match &self.ahead {
            None => true,
            Some(ahead) => {
                let apart = self.sort.key_of(codec::item(&apart.document)?, &self.context);
                let ahead = self.sort.key_of(codec::item(&ahead.document)?, &self.context);
                self.sort.compare_keys(&apart, &ahead, &self.context).is_le()
            }
        };
        Ok(if first { self.apart.pop_front() } else { self.ahead.take() })
    }

    /// How the documents are found; the first of them are looked for.
    pub fn explain(&mut self) -> Result<Way> {
        let text = self.pages.text();
        Ok(Way::Statement { text, explained: self.pages.explain()? })
    }
}

impl Rows for InOrder {
    fn next(&mut self) -> Result<Option<Row>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        Ok(self.next_found()?.map(|found| Row::Stored(found.document)))
    }
}
