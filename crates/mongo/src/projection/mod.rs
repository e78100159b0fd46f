//! Projections of `find` and `findAndModify`: inclusion, exclusion, `$`, `$slice`, `$elemMatch`, `$meta`, expressions.
//!
//! A projection is a tree of names, of one of two kinds. An *inclusion* keeps what is named, an *exclusion* all but
//! that; `_id` is kept unless it is excluded, whichever the kind. Members keep the order of the document; what is
//! computed comes after them, in the order of the projection.

mod apply;
mod parse;
mod write;

use std::sync::Arc;

use crate::context::Context;
use crate::error::Result;
use crate::expression::Expression;
use crate::filter::{Filter, Test};
use crate::value::Document;
use crate::value_ref::ValueRef;

#[derive(Clone, Debug)]
pub struct Projection {
    inclusion: bool,
    keeps_id: bool,
    members: Members,
    /// Paths whose values are made, in the order of the projection.
    computed: Vec<(Arc<str>, Computed)>,
    /// The path before `.$`, and the filter that it refers to.
    positional: Option<(Arc<str>, Filter)>,
    /// The filter of the command, for scores.
    filter: Option<Filter>,
}

#[derive(Clone, Debug, Default)]
struct Members(Vec<(Arc<str>, Node)>);

#[derive(Clone, Debug)]
enum Node {
    /// Kept by an inclusion, dropped by an exclusion.
    Named,
    Slice(Slice),
    /// Made, not kept.
    Computed,
    Members(Members),
}

#[derive(Clone, Copy, Debug)]
struct Slice {
    skip: Option<i64>,
    limit: i64,
}

#[derive(Clone, Debug)]
enum Computed {
    Expression(Box<Expression>),
    /// The first element that passes.
    Element(Test),
    Meta(Arc<str>),
}

impl Projection {
    /// `filter` is what the positional operator refers to.
    pub fn parse(projection: &Document, filter: Option<&Filter>, context: &Context) -> Result<Projection> {
        parse::projection(projection, filter, context)
    }

    /// Whether documents stay as they are.
    pub fn is_empty(&self) -> bool {
        self.members.0.is_empty()
            && self.computed.is_empty()
            && self.positional.is_none()
            && self.keeps_id
            && !self.inclusion
    }

    pub fn apply(&self, document: ValueRef<'_>, context: &Context) -> Result<Document> {
        apply::document(self, document, context)
    }

    /// Appends the projected document as BSON, without building it where nothing is computed.
    pub fn write(&self, document: ValueRef<'_>, context: &Context, out: &mut Vec<u8>) -> Result<()> {
        if self.computed.is_empty() && self.positional.is_none() {
            write::document(self, document, out);
        } else {
            crate::codec::write_document((&self.apply(document, context)?).into(), out);
        }
        Ok(())
    }
}
