//! `bulkWrite`: writes to several collections in one command.

use orrery_mongo::{Bson, Document, Error, Result, doc, error::code};

use super::insert::{check_count, ends_transaction, insert_documents, target};
use super::update::{self, Statement};
use super::{Call, cursor, delete, options};
use crate::collection;
use crate::reply::Reply;

#[derive(Default)]
struct Sums {
    inserted: u64,
    matched: u64,
    modified: u64,
    upserted: u64,
    deleted: u64,
    errors: u64,
}

pub fn bulk_write(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    if call.database != "admin" {
        return Err(Error::new(code::UNAUTHORIZED, "bulkWrite may only be run against the admin database."));
    }
    let ops = options::array(body, "ops")?.unwrap_or_default();
    check_count(ops.len())?;
    let namespaces = options::array(body, "nsInfo")?.unwrap_or_default();
    let ordered = options::boolean(body, "ordered", true)?;
    let errors_only = options::flag(body, "errorsOnly", false)?;
    let checked = !options::flag(body, "bypassDocumentValidation", false)?;
    let mut sums = Sums::default();
    let mut results: Vec<Document> = Vec::new();
    for (index, op) in ops.iter().enumerate() {
        let op =
            op.as_document().ok_or_else(|| Error::type_mismatch("an operation of bulkWrite is no object"))?;
        let (kind, at) = op.first().ok_or_else(|| Error::bad_value("an operation of bulkWrite is empty"))?;
        let at = at.as_i64().and_then(|at| usize::try_from(at).ok());
        let namespace =
            at.and_then(|at| namespaces.get(at)).and_then(Bson::as_document).and_then(|one| one.get("ns"));
        let namespace = namespace
            .and_then(Bson::as_str)
            .ok_or_else(|| Error::bad_value("BulkWrite ops entry has an invalid nsInfo index."))?;
        let (database, name) = namespace.split_once('.').ok_or_else(|| {
            Error::new(code::INVALID_NAMESPACE, format!("Invalid namespace specified '{namespace}'"))
        })?;
        let (database, name) = (database.to_owned(), name.to_owned());
        let mut inner = Call {
            moment: None,
            core: call.core,
            client: &mut *call.client,
            command: call.command,
            body: call.body,
            database: &database,
            session: call.session,
            transaction: call.transaction.clone(),
            txn_number: call.txn_number,
            control: call.control,
            spent: call.spent,
            waited: call.waited,
            streams: false,
            more: false,
        };
        match one(&mut inner, kind, op, &name, checked, &mut sums) {
            Ok(mut entry) => {
                if !errors_only {
                    entry.push_front("idx", index as i32);
                    entry.push_front("ok", 1.0);
                    results.push(entry);
                }
            }
            Err(error) if call.transaction.is_some() && ends_transaction(&error) => return Err(error),
            Err(error) => {
                sums.errors += 1;
                let mut entry = doc! {
                    "ok" => 0.0, "idx" => index as i32, "code" => error.code, "errmsg" => error.message.to_string(), "n" => 0,
                };
                for (name, value) in error.details.iter().flat_map(|details| details.iter()) {
                    entry.push(name.clone(), value.clone());
                }
                results.push(entry);
                if ordered {
                    break;
                }
            }
        }
    }
    let size = options::document(body, "cursor")?
        .map(|cursor| options::count(cursor, "batchSize"))
        .transpose()?
        .flatten();
    let Reply::Batch(batch) = cursor::of_documents(
        call,
        "admin.$cmd.bulkWrite".to_owned(),
        results,
        Some(size.unwrap_or(u64::MAX)),
    )?
    else {
        return Err(Error::new(code::INTERNAL_ERROR, "no batch"));
    };
    Ok(batch_with(batch, &sums).into())
}

/// The batch together with the sums: the documents are few and small.
fn batch_with(batch: crate::reply::Batch, sums: &Sums) -> Document {
    let bytes = Reply::Batch(batch).write(&Document::new());
    let mut reply = orrery_mongo::codec::read_document(&bytes).unwrap_or_default();
    for (name, value) in [
        ("nErrors", sums.errors),
        ("nInserted", sums.inserted),
        ("nMatched", sums.matched),
        ("nModified", sums.modified),
        ("nUpserted", sums.upserted),
        ("nDeleted", sums.deleted),
    ] {
        reply.push(name, value as i32);
    }
    reply
}

fn one(
    call: &mut Call<'_>,
    kind: &str,
    op: &Document,
    name: &str,
    checked: bool,
    sums: &mut Sums,
) -> Result<Document> {
    let context = call.context(options::document(op, "collation")?)?;
    match kind {
        "insert" => {
            let document = options::document(op, "document")?.ok_or_else(|| {
                Error::new(40414, "BSON field 'insert.document' is missing but a required field")
            })?;
            let document = collection::prepared(call.core, document);
            let target = target(call, name)?;
            insert_documents(&call.scope(), &target, &[document], true, &context)?
                .into_iter()
                .collect::<Result<()>>()?;
            sums.inserted += 1;
            Ok(doc! { "n" => 1 })
        }
        "update" => {
            let statement = Statement {
                filter: options::document(op, "filter")?.cloned().unwrap_or_default(),
                update: op.get("updateMods").cloned().unwrap_or(Bson::Null),
                array_filters: options::array(op, "arrayFilters")?.map(<[_]>::to_vec),
                multi: options::flag(op, "multi", false)?,
                upsert: options::flag(op, "upsert", false)?,
                sort: options::document(op, "sort")?.cloned(),
                constants: options::document(op, "constants")?.cloned(),
            };
            super::indexes::check_hint(call, name, op.get("hint"))?;
            let done = update::run(call, name, &statement, checked, context)?;
            sums.matched += done.matched;
            sums.modified += done.modified;
            let n = done.matched + u64::from(done.upserted.is_some());
            let mut entry = doc! { "n" => n as i32, "nModified" => done.modified as i32 };
            if let Some(id) = done.upserted {
                sums.upserted += 1;
                entry.push("upserted", doc! { "_id" => id });
            }
            Ok(entry)
        }
        "delete" => {
            let filter = options::document(op, "filter")?.cloned().unwrap_or_default();
            let multi = options::flag(op, "multi", false)?;
            super::indexes::check_hint(call, name, op.get("hint"))?;
            let n = delete::run(call, name, &filter, !multi, &context)?;
            sums.deleted += n;
            Ok(doc! { "n" => n as i32 })
        }
        other => Err(Error::bad_value(format!(
            "an operation of bulkWrite is insert, update or delete, not '{other}'"
        ))),
    }
}
