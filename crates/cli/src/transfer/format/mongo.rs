//! MongoDB extended JSON, canonical and relaxed, as `mongoexport` writes it.
//!
//! | there | here |
//! |---|---|
//! | `_id` | `id`: a string; an object is refused |
//! | `$numberInt`, `$numberLong`, `$numberDouble` | a number; not finite ones their name as a string |
//! | `$oid`, `$uuid`, `$symbol` | a string |
//! | `$date` | a string, ISO 8601 in UTC |
//! | `$numberDecimal` | a string: digits beyond a double are kept |
//! | `$binary` | a string, base64 |
//! | `$undefined` | left out |
//! | `$timestamp`, `$regularExpression`, `$code`, `$minKey`, `$maxKey`, `$dbPointer` | the object as it stands |

use super::super::raw_json::{self, Member};

/// Deeper documents are refused, as by servers.
const DEPTH_MAX: usize = 128;

pub fn item(text: &str) -> Result<String, String> {
    raw_json::check(text)?;
    let members = raw_json::members(text).ok_or("not JSON")?;
    let mut out = String::with_capacity(text.len());
    out.push('{');
    let has_id = members.iter().any(|member| member.name == "id");
    for member in &members {
        let value = converted(member.value, DEPTH_MAX)?;
        let Some(value) = value else { continue };
        match &*member.name {
            "_id" => {
                let id = match value.as_bytes().first() {
                    Some(b'"') => value.clone(),
                    Some(b'{' | b'[') => return Err("the _id is no scalar, so it can be no id".into()),
                    _ => raw_json::quoted(&value),
                };
                if has_id {
                    // The document has an `id` of its own, which the item's would hide.
                    push(&mut out, "\"_mongo_id\"", &value);
                    continue;
                }
                push(&mut out, "\"id\"", &id);
            }
            _ => push(&mut out, member.raw_name, &value),
        }
    }
    out.push('}');
    Ok(out)
}

fn push(out: &mut String, raw_name: &str, value: &str) {
    if !out.ends_with('{') {
        out.push(',');
    }
    out.push_str(raw_name);
    out.push(':');
    out.push_str(value);
}

/// A value in plain JSON; `None` for what is undefined.
fn converted(value: &str, depth: usize) -> Result<Option<String>, String> {
    if depth == 0 {
        return Err(format!("nested deeper than {DEPTH_MAX} levels"));
    }
    match value.as_bytes().first() {
        Some(b'{') => {
            let members = raw_json::members(value).ok_or("not JSON")?;
            if let [first, ..] = members.as_slice()
                && first.name.starts_with('$')
                && let Some(found) = typed(&members)?
            {
                return Ok(found);
            }
            let mut out = String::with_capacity(value.len());
            out.push('{');
            for member in &members {
                if let Some(value) = converted(member.value, depth - 1)? {
                    push(&mut out, member.raw_name, &value);
                }
            }
            out.push('}');
            Ok(Some(out))
        }
        Some(b'[') => {
            let elements = raw_json::elements(value).ok_or("not JSON")?;
            let parts: Vec<String> = elements
                .into_iter()
                // What is undefined inside of an array keeps its place.
                .map(|element| Ok(converted(element, depth - 1)?.unwrap_or_else(|| "null".into())))
                .collect::<Result<_, String>>()?;
            Ok(Some(format!("[{}]", parts.join(","))))
        }
        _ => Ok(Some(value.to_owned())),
    }
}

/// `Some(…)` if the members are one of the types that have a form here.
#[allow(clippy::option_option)]
fn typed(members: &[Member<'_>]) -> Result<Option<Option<String>>, String> {
    let [first, rest @ ..] = members else { return Ok(None) };
    let text = || raw_json::unquoted(first.value).ok_or_else(|| format!("{} is no string", first.name));
    let wrong = |what: &str| Err(format!("{}: {what} {}", first.name, first.value));
    Ok(Some(Some(match &*first.name {
        "$oid" | "$symbol" | "$uuid" => first.value.to_owned(),
        "$numberDecimal" => first.value.to_owned(),
        "$numberInt" | "$numberLong" => match text()?.parse::<i64>() {
            Ok(number) => number.to_string(),
            Err(_) => return wrong("no whole number:"),
        },
        "$numberDouble" => {
            let text = text()?;
            match text.parse::<f64>() {
                Ok(number) if number.is_finite() && serde_json::from_str::<f64>(&text).is_ok() => {
                    text.into_owned()
                }
                Ok(number) if number.is_finite() => number.to_string(),
                Ok(_) => first.value.to_owned(),
                Err(_) => return wrong("no number:"),
            }
        }
        "$date" => match date(first.value) {
            Some(text) => raw_json::quoted(&text),
            None => return wrong("no date:"),
        },
        "$binary" => match raw_json::member(first.value, "base64") {
            Some(base64) => base64.to_owned(),
            // The older form: {"$binary": "…", "$type": "00"}
            None if first.value.starts_with('"') && rest.len() == 1 => first.value.to_owned(),
            None => return Ok(None),
        },
        "$undefined" => return Ok(Some(None)),
        _ => return Ok(None),
    })))
}

fn date(value: &str) -> Option<String> {
    let milliseconds = match value.as_bytes().first()? {
        b'"' => {
            return raw_json::unquoted(value)?.parse::<jiff::Timestamp>().ok().map(|time| time.to_string());
        }
        b'{' => raw_json::unquoted(raw_json::member(value, "$numberLong")?)?.parse::<i64>().ok()?,
        _ => value.parse().ok()?,
    };
    Some(jiff::Timestamp::from_millisecond(milliseconds).ok()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_mongodb_become_json() {
        for (there, here) in [
            (
                r#"{"_id":{"$oid":"507f1f77bcf86cd799439011"},"n":{"$numberLong":"9007199254740993"}}"#,
                r#"{"id":"507f1f77bcf86cd799439011","n":9007199254740993}"#,
            ),
            (r#"{"_id":7,"d":{"$date":"2024-01-02T03:04:05Z"}}"#, r#"{"id":"7","d":"2024-01-02T03:04:05Z"}"#),
            (
                r#"{"_id":"a","d":{"$date":{"$numberLong":"1"}}}"#,
                r#"{"id":"a","d":"1970-01-01T00:00:00.001Z"}"#,
            ),
            (
                r#"{"_id":"a","x":{"$numberDouble":"0.10"},"y":{"$numberDouble":"NaN"}}"#,
                r#"{"id":"a","x":0.10,"y":"NaN"}"#,
            ),
            (
                r#"{"_id":"a","x":[{"$undefined":true},{"$numberDecimal":"1.50"}]}"#,
                r#"{"id":"a","x":[null,"1.50"]}"#,
            ),
            (r#"{"_id":"a","b":{"$binary":{"base64":"AAE=","subType":"00"}}}"#, r#"{"id":"a","b":"AAE="}"#),
            (r#"{"_id":"a","id":5,"x":{"$undefined":true}}"#, r#"{"_mongo_id":"a","id":5}"#),
            (
                r#"{"_id":"a","r":{"$regularExpression":{"pattern":"x","options":""}}}"#,
                r#"{"id":"a","r":{"$regularExpression":{"pattern":"x","options":""}}}"#,
            ),
        ] {
            assert_eq!(item(there).as_deref(), Ok(here), "{there}");
        }
        assert!(item(r#"{"_id":{"a":1}}"#).unwrap_err().contains("no scalar"));
        assert!(item(r#"{"_id":"a","n":{"$numberInt":"x"}}"#).unwrap_err().contains("$numberInt"));
    }
}
