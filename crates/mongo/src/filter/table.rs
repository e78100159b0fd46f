//! The operators of filters: their names, what they are for, and who reads them. Pages about compatibility are made
//! of this.

use crate::error::Result;
use crate::filter::parse::Place;
use crate::filter::{Condition, Test, bits, comparison, elements, geo, json_schema, logical, text};
use crate::value::{Bson, Document};

/// One operator.
pub struct Operator {
    pub name: &'static str,
    pub summary: &'static str,
    pub(crate) reader: Reader,
}

/// Reads an operator beside names of members: `{$or: […]}`.
type DocumentReader = fn(Place<'_>, &Bson) -> Result<Condition>;
/// Reads an operator under the name of a member: `{a: {$gt: 1}}`. Is given all operators of that member.
type FieldReader = fn(Place<'_>, &Bson, &Document) -> Result<Option<Test>>;

/// Who reads the operand.
pub(crate) enum Reader {
    Document(DocumentReader),
    Field(FieldReader),
}

macro_rules! operators {
    ($($kind:ident $name:literal $parser:path, $summary:literal;)*) => {
        &[$(Operator { name: $name, summary: $summary, reader: Reader::$kind($parser) }),*]
    };
}

/// Every operator of filters.
pub static OPERATORS: &[Operator] = operators! {
    Field "$eq" comparison::equal, "equal";
    Field "$ne" comparison::not_equal, "not equal";
    Field "$gt" comparison::greater, "greater, of the same type";
    Field "$gte" comparison::greater_or_equal, "greater or equal, of the same type";
    Field "$lt" comparison::less, "less, of the same type";
    Field "$lte" comparison::less_or_equal, "less or equal, of the same type";
    Field "$in" comparison::one_of, "equal to one of several, or matching one of several regular expressions";
    Field "$nin" comparison::none_of, "none of several";
    Field "$all" elements::all, "an array that has all of several";
    Field "$elemMatch" elements::element, "an array with an element that meets all conditions";
    Field "$size" elements::size, "an array of so many elements";
    Field "$exists" elements::exists, "is there, or is not";
    Field "$type" elements::kinds, "of one of several types";
    Field "$mod" comparison::modulo, "divided by a number leaves a remainder";
    Field "$regex" comparison::regex, "a text that matches a regular expression";
    Field "$options" comparison::options, "options of $regex: i, m, s, x";
    Field "$not" logical::not, "does not pass a test";
    Field "$bitsAllSet" bits::all_set, "bits that are all 1";
    Field "$bitsAnySet" bits::any_set, "bits of which one is 1";
    Field "$bitsAllClear" bits::all_clear, "bits that are all 0";
    Field "$bitsAnyClear" bits::any_clear, "bits of which one is 0";
    Field "$geoWithin" geo::within, "a place within $geometry, $box, $polygon, $center or $centerSphere";
    Field "$within" geo::within, "the old name of $geoWithin";
    Field "$geoIntersects" geo::intersects, "a shape that has a point in common with $geometry";
    Field "$near" geo::near, "near a place, nearest first";
    Field "$nearSphere" geo::near_sphere, "near a place on the sphere, nearest first";
    Field "$geoNear" geo::near, "the old name of $near";
    Field "$minDistance" geo::distance, "least distance of $near";
    Field "$maxDistance" geo::distance, "greatest distance of $near";
    Field "$comment" logical::comment_field, "a remark";
    Document "$and" logical::and, "all conditions hold";
    Document "$or" logical::or, "one of several conditions holds";
    Document "$nor" logical::nor, "none of several conditions holds";
    Document "$expr" logical::expr, "an expression of aggregation is true";
    Document "$jsonSchema" json_schema::json_schema, "the document is as a schema says";
    Document "$text" text::text, "texts have words, phrases, and not others";
    Document "$where" logical::where_, "refused: JavaScript is not run";
    Document "$comment" logical::comment, "a remark";
    Document "$sampleRate" logical::sample_rate, "a share of all documents, by chance";
    Document "$alwaysTrue" logical::always_true, "holds";
    Document "$alwaysFalse" logical::always_false, "does not hold";
};

pub(crate) fn of_document(name: &str) -> Option<DocumentReader> {
    OPERATORS.iter().find_map(|operator| match operator.reader {
        Reader::Document(reader) if operator.name == name => Some(reader),
        _ => None,
    })
}

pub(crate) fn of_field(name: &str) -> Option<FieldReader> {
    OPERATORS.iter().find_map(|operator| match operator.reader {
        Reader::Field(reader) if operator.name == name => Some(reader),
        _ => None,
    })
}
