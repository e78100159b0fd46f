//! The little XML that the protocol has: elements and text, read into a tree of bounded size.
//!
//! Attributes, comments and declarations are passed over; entities that a document defines itself do not exist here.

use std::fmt::Write as _;

/// An element with its elements or its text.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Element {
    pub name: String,
    pub text: String,
    pub children: Vec<Element>,
}

const DEPTH_MAX: usize = 8;
const ELEMENTS_MAX: usize = 512;

impl Element {
    /// `None` where the text is no document.
    pub fn parse(text: &str) -> Option<Element> {
        let mut reader = Reader { rest: text.trim_start_matches('\u{feff}'), elements: 0 };
        reader.skip_asides()?;
        let root = reader.element(0)?;
        reader.skip_asides()?;
        reader.rest.is_empty().then_some(root)
    }

    pub fn child(&self, name: &str) -> Option<&Element> {
        self.children.iter().find(|child| child.name == name)
    }

    /// The text of an element inside.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.child(name).map(|child| child.text.trim())
    }
}

struct Reader<'t> {
    rest: &'t str,
    elements: usize,
}

impl Reader<'_> {
    /// Passes over blanks, `<?…?>` and `<!--…-->`.
    fn skip_asides(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start();
            let end = match self.rest {
                rest if rest.starts_with("<?") => "?>",
                rest if rest.starts_with("<!--") => "-->",
                _ => return Some(()),
            };
            self.rest = self.rest.split_once(end)?.1;
        }
    }

    fn element(&mut self, depth: usize) -> Option<Element> {
        self.elements += 1;
        if depth > DEPTH_MAX || self.elements > ELEMENTS_MAX {
            return None;
        }
        let (tag, rest) = self.rest.strip_prefix('<')?.split_once('>')?;
        self.rest = rest;
        let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let name = tag.split_whitespace().next()?.to_owned();
        let plain = |char: char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | ':');
        if !name.chars().all(plain) {
            return None;
        }
        let mut element = Element { name, ..Element::default() };
        if empty {
            return Some(element);
        }
        loop {
            let end = self.rest.find('<')?;
            element.text.push_str(&unescape(&self.rest[..end])?);
            self.rest = &self.rest[end..];
            if let Some(rest) = self.rest.strip_prefix("</") {
                let (closing, rest) = rest.split_once('>')?;
                self.rest = rest;
                return (closing.trim_end() == element.name).then_some(element);
            }
            match self.rest.starts_with("<!--") {
                true => self.rest = self.rest.split_once("-->")?.1,
                false => element.children.push(self.element(depth + 1)?),
            }
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    if !text.contains('&') {
        return Some(text.to_owned());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('&') {
        out.push_str(before);
        let (name, behind) = behind.split_once(';')?;
        let char = match name {
            "amp" => '&',
            "lt" => '<',
            "gt" => '>',
            "quot" => '"',
            "apos" => '\'',
            _ => {
                let number = name.strip_prefix('#')?;
                let code = match number.strip_prefix('x') {
                    Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                    None => number.parse().ok()?,
                };
                char::from_u32(code)?
            }
        };
        out.push(char);
        rest = behind;
    }
    out.push_str(rest);
    Some(out)
}

/// Appends `<name>text</name>`.
pub fn push(out: &mut String, name: &str, text: &str) {
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let _ = write!(out, "<{name}>{text}</{name}>");
}

/// What every document begins with.
pub const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_into_trees() {
        let root = Element::parse(
            "\u{feff}<?xml version='1.0'?>\n<!-- x --><A a=\"1\"><B>x &lt; y &#x41;&#66;</B><C/><B> 2 </B></A>\n",
        )
        .unwrap();
        assert_eq!((root.name.as_str(), root.children.len()), ("A", 3));
        assert_eq!((root.value("B"), root.value("C"), root.value("D")), (Some("x < y AB"), Some(""), None));
    }

    #[test]
    fn what_is_no_document_is_refused() {
        for text in [
            "",
            "x",
            "<A>",
            "<A></B>",
            "<A/><B/>",
            "<A>&odd;</A>",
            "<A>&#xD800;</A>",
            "<!DOCTYPE a><A/>",
            "<>",
            "</A>",
        ] {
            assert_eq!(Element::parse(text), None, "{text}");
        }
        let deep = format!("{}{}", "<a>".repeat(50), "</a>".repeat(50));
        assert_eq!(Element::parse(&deep), None);
        assert_eq!(Element::parse(&format!("<a>{}</a>", "<b/>".repeat(600))), None);
    }
}
