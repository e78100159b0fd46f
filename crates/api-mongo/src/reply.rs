//! Replies: a document, or a batch of a cursor whose documents are written once and never taken apart again.

use orrery_mongo::{Bson, Document, Error, ValueRef, codec, doc};

/// What a command answers.
pub enum Reply {
    Document(Document),
    Batch(Batch),
    /// There is nothing yet, and the client waits: ask again.
    NotYet,
}

impl From<Document> for Reply {
    fn from(document: Document) -> Reply {
        Reply::Document(document)
    }
}

/// Documents of a cursor on their way out.
pub struct Batch {
    /// Elements of an array, as BSON has them.
    documents: Vec<u8>,
    count: usize,
    pub cursor: i64,
    pub namespace: String,
    pub first: bool,
    /// Further members of the cursor: `postBatchResumeToken`.
    pub extra: Document,
}

impl Batch {
    pub fn new(namespace: String, first: bool) -> Batch {
        Batch { documents: Vec::new(), count: 0, cursor: 0, namespace, first, extra: Document::new() }
    }

    pub fn len(&self) -> usize {
        self.count
    }

    pub fn size_bytes(&self) -> usize {
        self.documents.len()
    }

    pub fn push(&mut self, document: ValueRef<'_>) {
        self.documents.push(DOCUMENT);
        write_number(self.count, &mut self.documents);
        self.documents.push(0);
        codec::write_document(document, &mut self.documents);
        self.count += 1;
    }

    /// Where the last document begins, so that it can be taken back.
    pub fn mark(&self) -> (usize, usize) {
        (self.documents.len(), self.count)
    }

    pub fn back_to(&mut self, (bytes, count): (usize, usize)) {
        self.documents.truncate(bytes);
        self.count = count;
    }
}

const DOCUMENT: u8 = 3;
const ARRAY: u8 = 4;

fn write_number(number: usize, out: &mut Vec<u8>) {
    use std::io::Write as _;
    // Writing to memory does not fail.
    let _ = write!(out, "{number}");
}

impl Reply {
    /// The reply as BSON, with what every reply ends with.
    pub fn write(&self, tail: &Document) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        match self {
            Reply::NotYet => write_whole(&Document::new(), tail, &mut out),
            Reply::Document(document) => write_whole(document, tail, &mut out),
            Reply::Batch(batch) => {
                out.reserve(batch.documents.len() + 256);
                nested(&mut out, |out| {
                    out.push(DOCUMENT);
                    out.extend_from_slice(b"cursor\0");
                    nested(out, |out| {
                        out.push(ARRAY);
                        out.extend_from_slice(if batch.first { b"firstBatch\0" } else { b"nextBatch\0" });
                        nested(out, |out| out.extend_from_slice(&batch.documents));
                        members(&batch.extra, out);
                        members(&doc! { "id" => batch.cursor, "ns" => batch.namespace.as_str() }, out);
                    });
                    members(tail, out);
                });
            }
        }
        out
    }
}

fn write_whole(document: &Document, tail: &Document, out: &mut Vec<u8>) {
    nested(out, |out| {
        members(document, out);
        members(tail, out);
    });
}

/// Writes a document around members.
fn nested(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    out.push(0);
    let length = (out.len() - start) as i32;
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
}

/// Writes the members of a document without what stands around them.
fn members(document: &Document, out: &mut Vec<u8>) {
    let start = out.len();
    codec::write_document(ValueRef::OwnedDocument(document), out);
    if out.len() >= start + 5 {
        out.pop();
        out.drain(start..start + 4);
    }
}

/// An error as a reply.
pub fn of_error(error: &Error, labels: &[&str]) -> Document {
    let mut reply = doc! {
        "ok" => 0.0,
        "errmsg" => error.message.to_string(),
        "code" => error.code,
        "codeName" => error.code_name().into_owned(),
    };
    for (name, value) in error.details.iter().flat_map(|details| details.iter()) {
        reply.push(name.clone(), value.clone());
    }
    if !labels.is_empty() {
        let labels: Vec<Bson> = labels.iter().map(|label| Bson::from(*label)).collect();
        reply.push("errorLabels", Bson::array(labels));
    }
    reply
}
