//! A projection from a stored item straight to BSON, where nothing is computed.

use crate::codec::tag;
use crate::codec::write::{begin, end, write_array_with, write_element_with, write_value};
use crate::projection::{Node, Projection};
use crate::value::Kind;
use crate::value_ref::ValueRef;

const ID: &str = "_id";

pub fn document(projection: &Projection, document: ValueRef<'_>, out: &mut Vec<u8>) {
    let start = begin(out);
    for (name, value) in document.members() {
        let node = projection.members.get(name);
        write_element_with(name, out, |out| {
            if name == ID && node.is_none() {
                return projection.keeps_id.then(|| write_value(value, out));
            }
            member(node, value, projection.inclusion, out)
        });
    }
    end(start, out);
}

/// Appends what is kept of a member and gives its tag; `None` where it goes.
fn member(node: Option<&Node>, value: ValueRef<'_>, inclusion: bool, out: &mut Vec<u8>) -> Option<u8> {
    let keeps_others = |out: &mut Vec<u8>| (!inclusion).then(|| write_value(value, out));
    match node {
        None | Some(Node::Computed) => keeps_others(out),
        Some(Node::Named) => inclusion.then(|| write_value(value, out)),
        Some(Node::Slice(slice)) => {
            if value.kind() != Kind::Array {
                return Some(write_value(value, out));
            }
            let (start, limit) = slice.range(value.len());
            let elements = value.elements().skip(start).take(limit);
            write_array_with(elements, out, |element, out| Some(write_value(element, out)));
            Some(tag::ARRAY)
        }
        Some(Node::Members(members)) => match value.kind() {
            Kind::Document => {
                let start = begin(out);
                for (name, value) in value.members() {
                    write_element_with(name, out, |out| member(members.get(name), value, inclusion, out));
                }
                end(start, out);
                Some(tag::DOCUMENT)
            }
            Kind::Array => {
                write_array_with(value.elements(), out, |element, out| match element.kind() {
                    Kind::Document | Kind::Array => member(node, element, inclusion, out),
                    _ => (!inclusion).then(|| write_value(element, out)),
                });
                Some(tag::ARRAY)
            }
            _ => keeps_others(out),
        },
    }
}
