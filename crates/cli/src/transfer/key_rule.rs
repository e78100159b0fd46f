//! The partition key of the items that arrive: as they have it, or made on the way.
//!
//! ```text
//! /customer                              the key is a property that items have
//! /tenant,/user                          a hierarchical key
//! /pk=concat(/customer,/month)           "c7-2026-11"
//! /pk=random(/day,10)                    "2026-11-18-3"     spread over ten logical partitions; readers ask all ten
//! /pk=calculated(/day,/order,10)         "2026-11-18-7"     the same; who knows the order knows the suffix
//! ```
//!
//! The calculated suffix is the 32-bit FNV-1a hash of the value's text, modulo the number: three lines in any language.
//! The random one comes from the item's id, so that an import that is run again writes the same keys.

use orrery_model::PropertyPath;

use super::raw_json::{self, Member};
use crate::Usage;

/// Paths of a hierarchical key.
const PATHS_MAX: usize = 3;
/// Parts of a concatenated key.
const PARTS_MAX: usize = 8;
const SUFFIXES_MAX: u32 = 100_000;
pub const SEPARATOR: &str = "-";

#[derive(Debug, Clone, PartialEq)]
pub struct KeyRule {
    /// The paths of the container's key, as they are written in its definition.
    pub paths: Vec<String>,
    pub made: Option<Made>,
}

/// How the value of the key is made.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    Concat(Vec<PropertyPath>),
    Random { of: PropertyPath, count: u32 },
    Calculated { of: PropertyPath, by: PropertyPath, count: u32 },
}

impl KeyRule {
    pub fn parse(text: &str) -> Result<KeyRule, Usage> {
        let wrong = |problem: String| {
            Usage(format!(
                "--partition-key: {problem}; allowed: /path, /path,/path, /path=concat(/a,/b), /path=random(/a,N), /path=calculated(/a,/b,N)"
            ))
        };
        let path = |text: &str| {
            PropertyPath::parse(text.trim()).map_err(|error| wrong(format!("`{}`: {error}", text.trim())))
        };
        let Some((target, rule)) = text.split_once('=') else {
            let paths: Vec<String> = text.split(',').map(|path| path.trim().to_owned()).collect();
            if paths.len() > PATHS_MAX {
                return Err(wrong(format!("a key has at most {PATHS_MAX} paths")));
            }
            for text in &paths {
                path(text)?;
            }
            return Ok(KeyRule { paths, made: None });
        };
        if path(target)?.segments().len() != 1 {
            return Err(wrong("a key that is made is a property at the top, like /pk".into()));
        }
        let (name, arguments) = rule
            .trim()
            .strip_suffix(')')
            .and_then(|rule| rule.split_once('('))
            .ok_or_else(|| wrong(format!("`{rule}` is no rule")))?;
        let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
        let count = |text: &str| {
            text.parse()
                .ok()
                .filter(|count| (2..=SUFFIXES_MAX).contains(count))
                .ok_or_else(|| wrong(format!("`{text}` is no number of suffixes (2 to {SUFFIXES_MAX})")))
        };
        let made = match (name.trim(), arguments.as_slice()) {
            ("concat", parts) if (2..=PARTS_MAX).contains(&parts.len()) => {
                Made::Concat(parts.iter().map(|part| path(part)).collect::<Result<_, _>>()?)
            }
            ("random", [of, number]) => Made::Random { of: path(of)?, count: count(number)? },
            ("calculated", [of, by, number]) => {
                Made::Calculated { of: path(of)?, by: path(by)?, count: count(number)? }
            }
            _ => return Err(wrong(format!("`{rule}` is no rule"))),
        };
        Ok(KeyRule { paths: vec![target.trim().to_owned()], made: Some(made) })
    }

    /// The definition of a new container.
    pub fn definition(&self) -> serde_json::Value {
        let kind = if self.paths.len() > 1 { "MultiHash" } else { "Hash" };
        serde_json::json!({"paths": self.paths, "kind": kind, "version": 2})
    }

    /// The member that an item gets, if its key is made.
    pub fn member(&self, members: &[Member<'_>], id: &str) -> Result<Option<(String, String)>, String> {
        let Some(made) = &self.made else { return Ok(None) };
        let name = PropertyPath::parse(&self.paths[0]).ok().and_then(|path| path.segments().first().cloned());
        let name = name.ok_or("the path of the key is none")?;
        let value = match made {
            Made::Concat(parts) => {
                let parts: Vec<String> =
                    parts.iter().map(|path| scalar(members, path)).collect::<Result<_, _>>()?;
                parts.join(SEPARATOR)
            }
            Made::Random { of, count } => {
                // One more round than the calculated suffix, so that hashing the id does not give this one away as
                // that.
                let mixed = fnv1a(fnv1a(id.as_bytes()).to_string().as_bytes());
                format!("{}{SEPARATOR}{}", scalar(members, of)?, mixed % count)
            }
            Made::Calculated { of, by, count } => {
                let hash = fnv1a(scalar(members, by)?.as_bytes());
                format!("{}{SEPARATOR}{}", scalar(members, of)?, hash % count)
            }
        };
        Ok(Some((name, raw_json::quoted(&value))))
    }
}

/// The text of a scalar: a string without its quotes, anything else as it stands.
fn scalar(members: &[Member<'_>], path: &PropertyPath) -> Result<String, String> {
    let shown = || format!("/{}", path.segments().join("/"));
    let (first, rest) = path.segments().split_first().ok_or("an empty path")?;
    let found = members.iter().rev().find(|member| member.name == *first).map(|member| member.value);
    let found = found.and_then(|value| raw_json::at_path(value, rest));
    match found.and_then(|value| value.as_bytes().first().map(|first| (*first, value))) {
        None => Err(format!("{} is missing, of which the partition key is made", shown())),
        Some((b'{' | b'[', _)) => {
            Err(format!("{} is no scalar, so no partition key can be made of it", shown()))
        }
        Some((b'"', value)) => raw_json::unquoted(value).map(Into::into).ok_or_else(|| "not JSON".into()),
        Some((_, value)) => Ok(value.to_owned()),
    }
}

pub fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(rule: &str, item: &str) -> Result<Option<(String, String)>, String> {
        KeyRule::parse(rule).map_err(|error| error.0)?.member(&raw_json::members(item).unwrap(), "id1")
    }

    #[test]
    fn keys_are_made_as_the_rule_says() {
        let item = r#"{"a":"x","b":{"c":7},"d":[1]}"#;
        let value = |rule| made(rule, item).unwrap().unwrap().1;
        assert_eq!(value("/pk=concat(/a,/b/c)"), r#""x-7""#);
        assert_eq!(value("/pk=calculated(/a,/b/c,10)"), format!("\"x-{}\"", fnv1a(b"7") % 10));
        assert_eq!(value("/pk=random(/a,4)"), value("/pk=random(/a,4)"), "an import can be run again");
        assert_eq!(made("/a", item), Ok(None));
        assert!(made("/pk=concat(/a,/zz)", item).unwrap_err().contains("/zz is missing"));
        assert!(made("/pk=concat(/a,/d)", item).unwrap_err().contains("no scalar"));
    }

    #[test]
    fn the_hash_is_the_one_that_everybody_has() {
        assert_eq!((fnv1a(b""), fnv1a(b"a"), fnv1a(b"foobar")), (0x811c_9dc5, 0xe40c_292c, 0xbf9c_f968));
    }

    #[test]
    fn rules_that_are_none_are_refused() {
        for rule in
            ["pk", "/a,/b,/c,/d", "/pk=x(/a)", "/pk=random(/a,1)", "/a/b=concat(/x,/y)", "/pk=concat(/a)"]
        {
            assert!(KeyRule::parse(rule).is_err(), "{rule}");
        }
        assert_eq!(KeyRule::parse("/t,/u").unwrap().definition()["kind"], "MultiHash");
    }
}
