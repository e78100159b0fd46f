//! What an update did, told by what differs between two versions of a document.

use orrery_mongo::{Bson, Document, doc, order};

/// One name of a path, or the place of an element.
#[derive(Clone)]
enum Step<'a> {
    Name(&'a str),
    Place(usize),
}

#[derive(Default)]
struct Difference {
    set: Document,
    gone: Vec<Bson>,
    /// Paths that could be taken for others, in their parts.
    ambiguous: Document,
}

/// Fields that are new or others, and fields that have gone, by their paths; of paths that could be taken for others
/// also their parts, where these are asked for.
pub fn difference(old: &Document, new: &Document, parts: bool) -> Document {
    let mut found = Difference::default();
    found.documents(old, new, &mut Vec::new());
    let mut told = doc! {
        "updatedFields" => found.set,
        "removedFields" => Bson::array(found.gone),
        "truncatedArrays" => Bson::array(Vec::new()),
    };
    if parts {
        told.push("disambiguatedPaths", found.ambiguous);
    }
    told
}

impl Difference {
    fn documents<'a>(&mut self, old: &'a Document, new: &'a Document, path: &mut Vec<Step<'a>>) {
        for (name, value) in new.iter() {
            path.push(Step::Name(name));
            self.values(old.get(name), value, path);
            path.pop();
        }
        for (name, _) in old.iter().filter(|(name, _)| !new.contains(name)) {
            path.push(Step::Name(name));
            let text = self.path_of(path);
            self.gone.push(text.into());
            path.pop();
        }
    }

    fn values<'a>(&mut self, old: Option<&'a Bson>, new: &'a Bson, path: &mut Vec<Step<'a>>) {
        match (old, new) {
            (Some(Bson::Document(before)), Bson::Document(after)) => self.documents(before, after, path),
            (Some(Bson::Array(before)), Bson::Array(after))
                if before.len() <= after.len() && !before.is_empty() =>
            {
                for (at, element) in after.iter().enumerate() {
                    path.push(Step::Place(at));
                    self.values(before.get(at), element, path);
                    path.pop();
                }
            }
            (Some(before), after) if same(before, after) => {}
            (_, after) => {
                let text = self.path_of(path);
                self.set.push(text, after.clone());
            }
        }
    }

    /// The path as text. A name that is a number or has a dot makes it one that could mean something else.
    fn path_of(&mut self, path: &[Step<'_>]) -> String {
        let text = |step: &Step<'_>| match step {
            Step::Name(name) => (*name).to_owned(),
            Step::Place(at) => at.to_string(),
        };
        let joined = path.iter().map(text).collect::<Vec<_>>().join(".");
        let unclear = |step: &Step<'_>| match step {
            Step::Name(name) => {
                name.contains('.') || !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
            }
            Step::Place(_) => false,
        };
        if path.iter().any(unclear) {
            let part = |step: &Step<'_>| match step {
                Step::Name(name) => Bson::from(*name),
                Step::Place(at) => Bson::Int32(i32::try_from(*at).unwrap_or(i32::MAX)),
            };
            self.ambiguous.push(joined.as_str(), Bson::array(path.iter().map(part).collect()));
        }
        joined
    }
}

fn same(one: &Bson, other: &Bson) -> bool {
    one.kind() == other.kind() && order::equal(one.into(), other.into(), None)
}

#[cfg(test)]
mod tests {
    use orrery_mongo::ext_json::{Reading, Style, parse_document, to_text};

    fn check(old: &str, new: &str, expected: &str) {
        let [old, new] = [old, new].map(|text| parse_document(text, Reading::Data).unwrap());
        let told = super::difference(&old, &new, true);
        assert_eq!(to_text((&told).into(), Style::Relaxed), expected);
    }

    #[test]
    fn an_update_is_told_by_its_paths() {
        check(
            r#"{"_id":1,"a":1,"b":{"c":1,"d":2},"e":1}"#,
            r#"{"_id":1,"a":2,"b":{"c":1,"d":3}}"#,
            r#"{"updatedFields":{"a":2,"b.d":3},"removedFields":["e"],"truncatedArrays":[],"disambiguatedPaths":{}}"#,
        );
        check(
            r#"{"a":[1,{"b":2}]}"#,
            r#"{"a":[1,{"b":3},4]}"#,
            r#"{"updatedFields":{"a.1.b":3,"a.2":4},"removedFields":[],"truncatedArrays":[],"disambiguatedPaths":{}}"#,
        );
    }

    #[test]
    fn paths_that_could_mean_something_else_are_told_in_parts() {
        check(
            r#"{"a":{"1":1}}"#,
            r#"{"a":{"1":2}}"#,
            r#"{"updatedFields":{"a.1":2},"removedFields":[],"truncatedArrays":[],"disambiguatedPaths":{"a.1":["a","1"]}}"#,
        );
        check(
            r#"{"a":[{"1":1}]}"#,
            r#"{"a":[{"1":2}]}"#,
            r#"{"updatedFields":{"a.0.1":2},"removedFields":[],"truncatedArrays":[],"disambiguatedPaths":{"a.0.1":["a",0,"1"]}}"#,
        );
    }
}
