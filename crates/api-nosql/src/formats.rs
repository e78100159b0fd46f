//! The form of an answer: JSON text, or the binary form of it where the client takes that.
//!
//! A client says which forms it can read (`x-ms-cosmos-supported-serialization-formats: JsonText,CosmosBinary`), or,
//! of an older kind, which it wants. As on the service this is about items and the pages of queries over them; feeds,
//! errors and everything about resources are text. An answer is made as text, with one set of rules, and then written
//! once more; where that cannot be (there is no memory for it, or it is nested too deeply) it stays text, which every
//! client takes.

use crate::actions::Action;
use crate::binary_json::{self, Features};
use crate::headers::{Answer, CONTENT_FORMAT, SUPPORTED_FORMATS};
use crate::items::ITEM_IN_PLACE_BYTES;
use crate::paging;
use crate::service::Context;

/// What clients call the binary form.
pub const COSMOS_BINARY: &str = "CosmosBinary";
/// The same of a client that knows whole numbers beyond 63 bits in it.
pub const COSMOS_BINARY_UINT64: &str = "CosmosBinary+UInt64";

/// What the stored form and the binary form may take, for each byte of text.
const BYTES_PER_BYTE: usize = 3;

/// The answer in the form that its client wants.
pub fn in_wanted_form(context: &Context<'_>, mut answer: Answer) -> Answer {
    if !answer.status.is_success() || answer.body.is_empty() {
        return answer;
    }
    let Some(features) = wanted(context) else { return answer };
    let Ok(_held) = paging::hold(context, BYTES_PER_BYTE * answer.body.len()) else { return answer };
    let written = match answer.body.len() > ITEM_IN_PLACE_BYTES {
        true => context.lengthy(|| binary_json::from_text(&answer.body, features)),
        false => binary_json::from_text(&answer.body, features),
    };
    if let Some(binary) = written {
        answer = answer.body(binary);
    }
    answer
}

fn wanted(context: &Context<'_>) -> Option<Features> {
    let about_items = matches!(
        context.action,
        Action::ReadItem
            | Action::CreateItem
            | Action::UpsertItem
            | Action::ReplaceItem
            | Action::PatchItem
            | Action::QueryItems
    );
    let named = context.text(SUPPORTED_FORMATS).or_else(|| context.text(CONTENT_FORMAT));
    named.filter(|_| about_items).and_then(binary_features)
}

/// What a client that lists these forms can read of the binary one: `JsonText,CosmosBinary+Base64Strings+UInt64`.
fn binary_features(forms: &str) -> Option<Features> {
    forms.split(',').find_map(|form| {
        let mut words = form.split('+').map(str::trim);
        let is_binary = words.next().is_some_and(|name| name.eq_ignore_ascii_case(COSMOS_BINARY));
        is_binary.then(|| Features { uint64: words.any(|feature| feature.eq_ignore_ascii_case("UInt64")) })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_whether_it_reads_the_binary_form() {
        let check = |forms: &str, want: Option<bool>| {
            assert_eq!(binary_features(forms).map(|features| features.uint64), want, "{forms}");
        };
        check("CosmosBinary", Some(false));
        check("JsonText,CosmosBinary", Some(false));
        check("JsonText, cosmosbinary", Some(false));
        check(COSMOS_BINARY_UINT64, Some(true));
        check("JsonText,CosmosBinary+Base64Strings+UInt64", Some(true));
        check("JsonText", None);
        check("HybridRow,JsonText", None);
        check("", None);
    }
}
