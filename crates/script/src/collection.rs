//! What a script may do to the world: the documents of one logical partition, as JSON text.

/// An operation that a script asked for. Links are as the script wrote them.
#[derive(Debug)]
pub enum Operation<'a> {
    Create {
        collection: &'a str,
        document: &'a str,
    },
    Upsert {
        collection: &'a str,
        document: &'a str,
    },
    Replace {
        document_link: &'a str,
        document: &'a str,
    },
    Delete {
        document_link: &'a str,
    },
    Read {
        document_link: &'a str,
    },
    List {
        collection: &'a str,
    },
    /// `query` is a JSON object with the text and its parameters.
    Query {
        collection: &'a str,
        query: &'a str,
    },
}

/// What a script may say about an operation.
#[derive(Debug, Default, PartialEq)]
pub struct Options {
    pub if_match: Option<String>,
    pub if_none_match: Option<String>,
    /// A document without an id is refused instead of being given one.
    pub fixed_id: bool,
    pub page_size: Option<usize>,
    pub continuation: Option<String>,
    /// Nobody can see what a write gives back: it need not be made.
    pub unseen: bool,
}

/// What an operation gives back.
#[derive(Debug, Default, PartialEq)]
pub struct Done {
    /// A document, or an array of documents or rows, as JSON text.
    pub resource: Option<String>,
    /// Where a list or a query goes on.
    pub continuation: Option<String>,
    /// The document is still the one that the script knows.
    pub not_modified: bool,
}

/// Why an operation did not happen. The script sees the status as the error's number and may go on.
#[derive(Debug, PartialEq)]
pub struct OperationError {
    pub status: u16,
    pub message: String,
}

pub trait Collection {
    fn perform(&mut self, operation: Operation<'_>, options: &Options) -> Result<Done, OperationError>;

    /// Whether the last failure was for good: nothing can come of the script any more, whatever it does about it.
    fn is_over(&self) -> bool {
        false
    }
}
