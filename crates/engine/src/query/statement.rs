//! What a compiled query was made from: all that another node needs to compile the same.
//!
//! A page that is made in this process is made from the compiled form and looks at none of this. Only a page that is
//! asked for elsewhere takes its statement along, as text.

use orrery_model::Value;
use orrery_query::Form;
use orrery_sql::Query;

/// A statement where its sender has it.
#[derive(Clone, Copy, Debug)]
pub struct StatementSource<'s> {
    pub text: StatementText<'s>,
    /// Their names include the `@`.
    pub parameters: &'s [(String, Value)],
}

/// The text of a statement, or the tree that it is the text of.
#[derive(Clone, Copy, Debug)]
pub enum StatementText<'s> {
    Text(&'s str),
    /// Printed when the statement is sent.
    Tree(&'s Query),
}

impl<'s> StatementSource<'s> {
    pub fn of_text(text: &'s str, parameters: &'s [(String, Value)]) -> StatementSource<'s> {
        StatementSource { text: StatementText::Text(text), parameters }
    }

    pub fn of_tree(query: &'s Query) -> StatementSource<'s> {
        StatementSource { text: StatementText::Tree(query), parameters: &[] }
    }
}

/// A statement as it is sent.
#[derive(Debug)]
pub(crate) struct Statement {
    pub(crate) text: String,
    pub(crate) parameters: Vec<(String, Value)>,
    /// What of it is wanted.
    pub(crate) form: Form,
}

impl Statement {
    pub(crate) fn new(source: &StatementSource<'_>, form: &Form) -> Statement {
        let text = match source.text {
            StatementText::Text(text) => text.to_owned(),
            StatementText::Tree(query) => query.to_string(),
        };
        Statement { text, parameters: source.parameters.to_vec(), form: form.clone() }
    }
}
