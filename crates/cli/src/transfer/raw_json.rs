//! JSON as text with known places: members and elements without building a tree.
//!
//! What a transfer does not have to understand it must not change: digits, the order of members and the spelling of
//! strings stay as they are. [`check`] says whether a text is JSON at all; everything else expects that it is, and
//! answers `None`, never with a panic, when it is not.

use std::borrow::Cow;

use serde::de::IgnoredAny;

/// A member of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Member<'t> {
    pub name: Cow<'t, str>,
    /// With its quotes, as it stands in the text.
    pub raw_name: &'t str,
    pub value: &'t str,
}

/// Why a text is no JSON object.
pub fn check(text: &str) -> Result<(), String> {
    match text.trim_start().as_bytes().first() {
        Some(b'{') => {
            serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| format!("not JSON: {error}"))
        }
        Some(_) => Err("not a JSON object".into()),
        None => Err("empty".into()),
    }
}

/// The members of an object, in their order.
pub fn members(text: &str) -> Option<Vec<Member<'_>>> {
    let bytes = text.as_bytes();
    let mut at = skip_space(bytes, 0);
    if *bytes.get(at)? != b'{' {
        return None;
    }
    at = skip_space(bytes, at + 1);
    let mut found = Vec::with_capacity(16);
    if *bytes.get(at)? == b'}' {
        return Some(found);
    }
    loop {
        let name_end = string_end(bytes, at)?;
        let raw_name = text.get(at..name_end)?;
        at = skip_space(bytes, name_end);
        if *bytes.get(at)? != b':' {
            return None;
        }
        at = skip_space(bytes, at + 1);
        let end = value_end(bytes, at)?;
        found.push(Member { name: unquoted(raw_name)?, raw_name, value: text.get(at..end)? });
        at = skip_space(bytes, end);
        match bytes.get(at)? {
            b',' => at = skip_space(bytes, at + 1),
            b'}' => return Some(found),
            _ => return None,
        }
    }
}

/// The elements of an array.
pub fn elements(text: &str) -> Option<Vec<&str>> {
    let bytes = text.as_bytes();
    let mut at = skip_space(bytes, 0);
    if *bytes.get(at)? != b'[' {
        return None;
    }
    at = skip_space(bytes, at + 1);
    let mut found = Vec::new();
    if *bytes.get(at)? == b']' {
        return Some(found);
    }
    loop {
        let end = value_end(bytes, at)?;
        found.push(text.get(at..end)?);
        at = skip_space(bytes, end);
        match bytes.get(at)? {
            b',' => at = skip_space(bytes, at + 1),
            b']' => return Some(found),
            _ => return None,
        }
    }
}

/// The value of one member. Of several with the same name the last counts, as for servers.
pub fn member<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    members(text)?.into_iter().rev().find(|member| member.name == name).map(|member| member.value)
}

/// The value at a path of names.
pub fn at_path<'t>(text: &'t str, path: &[String]) -> Option<&'t str> {
    path.iter().try_fold(text, |text, name| member(text, name))
}

/// The object without these members and with others at its end.
pub fn rewritten(members: &[Member<'_>], without: &[&str], with: &[(&str, String)]) -> String {
    let size: usize = members.iter().map(|member| member.raw_name.len() + member.value.len() + 2).sum();
    let mut out = String::with_capacity(size + 128);
    out.push('{');
    let mut add = |name: &str, value: &str| {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(name);
        out.push(':');
        out.push_str(value);
    };
    for (name, value) in with {
        add(&quoted(name), value);
    }
    for member in members {
        let dropped = without.contains(&&*member.name) || with.iter().any(|(name, _)| *name == member.name);
        if !dropped {
            add(member.raw_name, member.value);
        }
    }
    out.push('}');
    out
}

/// A string as JSON.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The text of a JSON string, quotes included.
pub fn unquoted(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(raw).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

fn skip_space(bytes: &[u8], mut at: usize) -> usize {
    while matches!(bytes.get(at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
        at += 1;
    }
    at
}

/// Behind the closing quote of the string that begins here.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    if *bytes.get(start)? != b'"' {
        return None;
    }
    let mut at = start + 1;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes[at] {
            b'"' => return Some(at + 1),
            _ => at += 2,
        }
    }
}

/// Behind the value that begins here.
pub fn value_end(bytes: &[u8], start: usize) -> Option<usize> {
    match bytes.get(start)? {
        b'"' => string_end(bytes, start),
        b'{' | b'[' => {
            let (mut at, mut depth) = (start, 0usize);
            loop {
                match bytes.get(at)? {
                    b'"' => {
                        at = string_end(bytes, at)?;
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
        _ => {
            let length = bytes[start..]
                .iter()
                .position(|byte| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r'));
            let end = length.map_or(bytes.len(), |length| start + length);
            (end > start).then_some(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_and_elements_keep_their_text() {
        let text = r#" { "a" : 9007199254740993 , "b\u0041":{"x":[1,"}"]}, "c":"\"", "a":2e400 } "#;
        let found = members(text).unwrap();
        let names: Vec<&str> = found.iter().map(|member| &*member.name).collect();
        assert_eq!(names, ["a", "bA", "c", "a"]);
        assert_eq!((found[0].value, found[1].value), ("9007199254740993", r#"{"x":[1,"}"]}"#));
        assert_eq!(member(text, "a"), Some("2e400"));
        assert_eq!(at_path(text, &["bA".into(), "x".into()]), Some(r#"[1,"}"]"#));
        assert_eq!(elements(r#"[1, {"a":[]} ,"x,y"]"#).unwrap(), ["1", r#"{"a":[]}"#, r#""x,y""#]);
        assert_eq!((elements("[]").unwrap().len(), members("{}").unwrap().len()), (0, 0));
    }

    #[test]
    fn broken_text_is_none_and_not_a_panic() {
        let text = r#"{"a":{"b":[1,"\\"]},"c":tru}"#;
        for end in 0..text.len() {
            let _ = members(&text[..end]);
            let _ = elements(&text[..end]);
        }
        assert!(
            members("[1]").is_none() && members(r#"{"a" 1}"#).is_none() && members(r#"{"a":"\"#).is_none()
        );
        assert!(check(text).unwrap_err().contains("not JSON"));
        assert_eq!(check("[]").unwrap_err(), "not a JSON object");
    }

    #[test]
    fn members_are_taken_out_and_put_in() {
        let text = r#"{"_ts":1,"id":"a","n":0.10}"#;
        let found = members(text).unwrap();
        let new = rewritten(&found, &["_ts"], &[("pk", quoted("x-1"))]);
        assert_eq!(new, r#"{"pk":"x-1","id":"a","n":0.10}"#);
        assert_eq!(rewritten(&found, &[], &[("n", "7".into())]), r#"{"n":7,"_ts":1,"id":"a"}"#);
    }
}
