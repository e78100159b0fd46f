//! `insert`.

use std::sync::atomic::Ordering::Relaxed;

use orrery_mongo::{Bson, Context, Document, Error, Result, doc, error::code};

use super::{Call, options, unique, validation};
use crate::collection::write::Refusal;
use crate::collection::{self, Collection, NewItem, Scope};
use crate::reply::Reply;
use crate::wire::WRITE_BATCH_MAX;

const FIELDS: &[&str] =
    &["documents", "ordered", "bypassDocumentValidation", "stmtIds", "stmtId", "encryptionInformation"];

pub fn insert(call: &mut Call<'_>) -> Result<Reply> {
    let body = call.body;
    let name = call.collection_name()?.to_owned();
    options::check_known(body, FIELDS)?;
    let given = match options::required(body, "documents")? {
        Bson::Array(given) => given.clone(),
        other => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'insert.documents' is the wrong type '{}', expected type 'array'",
                other.kind().name()
            )));
        }
    };
    check_count(given.len())?;
    let ordered = options::boolean(body, "ordered", true)?;
    call.core.counts.inserts.fetch_add(given.len() as u64, Relaxed);
    let target = target(call, &name)?;
    let mut documents = Vec::with_capacity(given.len());
    for document in given.iter() {
        let document = document
            .as_document()
            .ok_or_else(|| Error::type_mismatch("a document to insert is no object"))?;
        documents.push(collection::prepared(call.core, document));
    }
    let mut context = call.context(None)?;
    if options::flag(body, "bypassDocumentValidation", false)? {
        context.variables = Document::new();
    }
    let checked = !options::flag(body, "bypassDocumentValidation", false)?;
    let outcomes = insert_checked(&call.scope(), &target, &documents, ordered, checked, &context)?;
    let mut n = 0;
    let mut errors: Vec<Bson> = Vec::new();
    for (index, outcome) in outcomes.into_iter().enumerate() {
        match outcome {
            Ok(()) => n += 1,
            Err(error) if call.transaction.is_some() && ends_transaction(&error) => return Err(error),
            Err(error) => errors.push(write_error(index, &error).into()),
        }
    }
    let mut reply = doc! { "n" => n };
    if !errors.is_empty() {
        reply.push("writeErrors", Bson::array(errors));
    }
    Ok(reply.into())
}

/// Errors that end a transaction are those of the command, not of one document.
pub fn ends_transaction(error: &Error) -> bool {
    matches!(
        error.code,
        code::WRITE_CONFLICT
            | code::OPERATION_NOT_SUPPORTED_IN_TRANSACTION
            | code::TRANSACTION_TOO_LARGE
            | code::NO_SUCH_TRANSACTION
    )
}

pub fn check_count(count: usize) -> Result<()> {
    match count {
        1..=WRITE_BATCH_MAX => Ok(()),
        _ => Err(Error::new(
            code::INVALID_LENGTH,
            format!("Write batch sizes must be between 1 and {WRITE_BATCH_MAX}. Got {count} operations."),
        )),
    }
}

/// The collection to write to, made if it is not there.
pub fn target(call: &Call<'_>, name: &str) -> Result<Collection> {
    if call.core.catalog.meta(call.core, call.database, name)?.is_some_and(|meta| meta.view().is_some()) {
        return Err(Error::new(
            code::COMMAND_NOT_SUPPORTED_ON_VIEW,
            format!("Namespace {}.{name} is a view, not a collection", call.database),
        ));
    }
    if name.starts_with("system.") && name != "system.js" && name != "system.buckets" {
        return Err(Error::new(
            code::INVALID_NAMESPACE,
            format!("cannot write to '{}.{name}'", call.database),
        ));
    }
    if call.transaction.is_some() && call.collection(name)?.is_none() {
        call.core.catalog.ensure(call.core, call.database, name)?;
        super::hidden::made(call, name);
    }
    let is_new = call.core.watched.load(Relaxed) && call.collection(name)?.is_none();
    let collection = call.core.catalog.ensure(call.core, call.database, name)?;
    if is_new {
        call.core.changed(
            call.database,
            name,
            "create",
            doc! { "idIndex" => crate::catalog::Index::of_ids() },
        );
    }
    super::index_policy::enforce(call, &collection)?;
    Ok(collection)
}

/// A failed write of a batch.
pub fn write_error(index: usize, error: &Error) -> Document {
    let mut document =
        doc! { "index" => index as i32, "code" => error.code, "errmsg" => error.message.to_string() };
    for (name, value) in error.details.iter().flat_map(|details| details.iter()) {
        document.push(name.clone(), value.clone());
    }
    document
}

pub fn insert_documents(
    scope: &Scope,
    target: &Collection,
    documents: &[Document],
    ordered: bool,
    context: &Context,
) -> Result<Vec<Result<()>>> {
    insert_checked(scope, target, documents, ordered, true, context)
}

/// Inserts documents with an `_id`; what became of each, up to the first failure if they are ordered.
fn insert_checked(
    scope: &Scope,
    target: &Collection,
    documents: &[Document],
    ordered: bool,
    checked: bool,
    context: &Context,
) -> Result<Vec<Result<()>>> {
    let validator = if checked { validation::Validator::of(target, context)? } else { None };
    let item = |document: &Document| -> Result<NewItem> {
        target.check_shard_key(document)?;
        if let Some(validator) = &validator {
            validator.check(document, context)?;
        }
        target.item_of(document)
    };
    unique::note_numbers(scope, target, documents.iter())?;
    let refused = |refusal: Refusal, document: &Document| match refusal {
        Refusal::Exists => target.duplicate(document.get("_id").unwrap_or(&Bson::Null)),
        Refusal::Stale => crate::sessions::conflict(),
        Refusal::Taken => {
            unique::taken(scope, target, document, context).unwrap_or_else(|| unique::was_taken(target))
        }
        Refusal::Other(error) if error.code == code::BSON_OBJECT_TOO_LARGE => too_large(&error),
        Refusal::Other(error) => error,
    };
    let mut outcomes: Vec<Result<()>> = Vec::with_capacity(documents.len());
    if target.meta.has_unique() && scope.transaction.is_some() {
        for document in documents {
            let written = item(document).and_then(|item| {
                unique::check(scope, target, document, context)?;
                target
                    .write(scope, &item.key, &item.id, collection::write::Change::Create(item.document), None)
                    .map_err(|refusal| refused(refusal, document))
            });
            let failed = written.is_err();
            outcomes.push(written);
            if failed && ordered {
                break;
            }
        }
    } else {
        // Documents that cannot be stored divide the others into runs.
        let mut rest = documents;
        while !rest.is_empty() {
            let mut items = Vec::new();
            let mut bad = None;
            for document in rest {
                match item(document) {
                    Ok(item) => items.push(item),
                    Err(error) => {
                        bad = Some(error);
                        break;
                    }
                }
            }
            let count = items.len();
            let written = if items.is_empty() { Vec::new() } else { target.insert(scope, items, ordered) };
            let short = written.len() < count;
            let mut failed = false;
            for (result, document) in written.into_iter().zip(rest) {
                failed |= result.is_err();
                outcomes.push(result.map_err(|refusal| refused(refusal, document)));
            }
            if short || failed && ordered {
                break;
            }
            rest = &rest[count..];
            if let Some(error) = bad {
                outcomes.push(Err(error));
                if ordered {
                    break;
                }
                rest = &rest[1..];
            }
        }
    }
    super::create::trim(scope, target, context)?;
    Ok(outcomes)
}

fn too_large(error: &Error) -> Error {
    Error::new(
        code::BSON_OBJECT_TOO_LARGE,
        format!(
            "object to insert too large: a document takes up to 16 MB, and 2 MB as JSON in a container of another api. {}",
            error.message
        ),
    )
}
