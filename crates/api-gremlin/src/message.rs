//! Requests and answers as they travel: which format, and what is in them.
//!
//! ```text
//! binary frame   length of the MIME type, MIME type, message
//! text frame     message as JSON
//!
//! request   requestId, op, processor, args
//! answer    requestId, status (code, message, attributes), result (data, meta)
//! ```

use orrery_gremlin::Value;
use orrery_gremlin::value::Map;
use uuid::Uuid;

use crate::config::Results;
use crate::errors::Failure;
use crate::graphbinary::{Reader, trees_as_maps, write_string, write_value};
use crate::graphson::{self, ReadError, Typed, push, push_string, separated, write_untyped};

/// The first byte of messages in GraphBinary 1.
const BINARY_VERSION: u8 = 0x81;
/// The longest name of a format.
const MIME_BYTES_MAX: usize = 128;

/// How messages are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON without types: GraphSON 1, and what Cosmos DB sends under the name of 2.
    Untyped,
    GraphSon2,
    GraphSon3,
    GraphBinary1 {
        /// Whether the driver can read trees; TinkerPop's own for Python, JavaScript, Go and .NET cannot, and get maps.
        trees: bool,
    },
}

impl Format {
    /// The format of a MIME type; `None` for one that is not spoken here.
    pub fn of_mime(mime: &str, results: Results) -> Option<Format> {
        let mime = mime.trim().to_ascii_lowercase();
        let (name, untyped) = match mime.split_once(';') {
            Some((name, parameters)) => (name.trim(), parameters.contains("types=false")),
            None => (mime.as_str(), false),
        };
        Some(match name {
            _ if untyped && name.starts_with("application/vnd.gremlin-v") => Format::Untyped,
            "application/json" | "application/vnd.gremlin-v1.0+json" => Format::Untyped,
            "application/vnd.gremlin-v2.0+json" => match results {
                Results::Cosmos => Format::Untyped,
                Results::Typed => Format::GraphSon2,
            },
            "application/vnd.gremlin-v3.0+json" => Format::GraphSon3,
            "application/vnd.graphbinary-v1.0" => Format::GraphBinary1 { trees: true },
            _ => return None,
        })
    }

    /// The format in which bytecode is answered, which needs types.
    pub fn of_bytecode(self) -> Format {
        match self {
            Format::Untyped => Format::GraphSon2,
            other => other,
        }
    }

    /// The same for a driver that names itself like this when it connects.
    pub fn for_driver(self, name: &str) -> Format {
        const WITHOUT_TREES: [&str; 4] =
            ["Gremlin-Python.", "Gremlin-Javascript.", "Gremlin-Go.", "Gremlin-Dotnet."];
        let name = name.to_ascii_lowercase();
        let lacks = |driver: &&str| name.contains(&driver.to_ascii_lowercase());
        match self {
            Format::GraphBinary1 { .. } => Format::GraphBinary1 { trees: !WITHOUT_TREES.iter().any(lacks) },
            other => other,
        }
    }

    pub fn is_binary(self) -> bool {
        matches!(self, Format::GraphBinary1 { .. })
    }

    /// Appends a result.
    pub fn write(self, value: &Value, out: &mut Vec<u8>) {
        match self {
            Format::Untyped => write_untyped(value, out),
            Format::GraphSon2 => Typed { third: false }.write(value, out),
            Format::GraphSon3 => Typed { third: true }.write(value, out),
            Format::GraphBinary1 { trees: true } => write_value(value, out),
            Format::GraphBinary1 { trees: false } => write_value(&trees_as_maps(value), out),
        }
    }
}

/// What a client asks.
#[derive(Debug, Clone)]
pub struct Request {
    pub id: Uuid,
    pub op: String,
    pub args: Map,
    pub format: Format,
}

impl Request {
    pub fn arg(&self, name: &str) -> Option<&Value> {
        self.args.get(&Value::string(name)).filter(|value| !value.is_null())
    }

    pub fn text_arg(&self, name: &str) -> Option<&str> {
        self.arg(name).and_then(Value::as_str)
    }
}

/// Why a message cannot be taken. It is answered in `format`, under its own id as far as that was read.
#[derive(Debug)]
pub struct Unreadable {
    pub id: Option<Uuid>,
    pub format: Format,
    pub failure: Failure,
}

impl Unreadable {
    fn new(format: Format, text: impl Into<String>) -> Unreadable {
        Unreadable { id: None, format, failure: Failure::malformed(text) }
    }
}

/// Reads a binary frame.
pub fn read_binary(frame: &[u8], results: Results) -> Result<Request, Unreadable> {
    let split = frame.split_first().and_then(|(length, rest)| rest.split_at_checked(usize::from(*length)));
    let Some((mime, body)) = split else {
        return Err(Unreadable::new(
            Format::Untyped,
            "A message begins with the length of a MIME type and the type.",
        ));
    };
    let mime = std::str::from_utf8(mime).unwrap_or_default();
    match Format::of_mime(mime, results) {
        Some(Format::GraphBinary1 { .. }) => read_graphbinary(body),
        Some(format) => read_json(body, format),
        None => {
            let shown: String = mime.chars().take(MIME_BYTES_MAX).collect();
            let text = format!(
                "The serializer {shown} is not supported. Use GraphSON (application/vnd.gremlin-v1.0+json to \
                 v3.0+json) or GraphBinary (application/vnd.graphbinary-v1.0)."
            );
            Err(Unreadable::new(Format::Untyped, text))
        }
    }
}

/// Reads a message in GraphSON.
pub fn read_json(body: &[u8], format: Format) -> Result<Request, Unreadable> {
    let unreadable = |ReadError(text)| Unreadable::new(format, text);
    let message = graphson::read(body).map_err(unreadable)?;
    let member = |name: &str| match &message {
        Value::Map(members) => members.get(&Value::string(name)),
        _ => None,
    };
    let id = match member("requestId") {
        Some(Value::Uuid(id)) => Some(Uuid::from_u128(*id)),
        Some(Value::String(text)) => Uuid::parse_str(text).ok(),
        _ => None,
    };
    let text = |name: &str| member(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let args = match member("args") {
        Some(Value::Map(args)) => (**args).clone(),
        _ => Map::new(),
    };
    match id {
        Some(id) => Ok(Request { id, op: text("op"), args, format }),
        None => Err(Unreadable::new(format, "A request has a requestId, which is a UUID.")),
    }
}

fn read_graphbinary(body: &[u8]) -> Result<Request, Unreadable> {
    let format = Format::GraphBinary1 { trees: true };
    let mut reader = Reader::new(body);
    let mut id = None;
    let read = (|| {
        if reader.byte()? & 0x80 == 0 {
            return Err(ReadError("A message in GraphBinary begins with its version.".to_owned()));
        }
        id = Some(Uuid::from_u128(reader.uuid()?));
        let op = reader.text()?.to_owned();
        // Which processor is meant, the operation says as well.
        reader.text()?;
        Ok((op, reader.entries()?))
    })();
    match (read, id) {
        (Ok((op, args)), Some(id)) => Ok(Request { id, op, args: args.into_iter().collect(), format }),
        (Err(ReadError(text)), id) => Err(Unreadable { id, format, failure: Failure::malformed(text) }),
        (Ok(_), None) => Err(Unreadable::new(format, "A request has a requestId, which is a UUID.")),
    }
}

/// An attribute of a status.
#[derive(Debug, Clone, PartialEq)]
pub enum Attribute {
    Integer(u32),
    Double(f64),
    Text(String),
}

/// One frame of an answer.
pub struct Response<'r> {
    pub id: Option<Uuid>,
    pub format: Format,
    pub code: u16,
    pub message: &'r str,
    pub attributes: &'r [(&'static str, Attribute)],
    /// Results, already written in the format one after the other, with commas between them where it has any.
    pub data: &'r [u8],
    pub count: usize,
}

impl Response<'_> {
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.data.len() + self.message.len() + 768);
        match self.format {
            Format::GraphBinary1 { .. } => self.write_binary(&mut out),
            _ => self.write_json(&mut out),
        }
        out
    }

    fn write_json(&self, out: &mut Vec<u8>) {
        let typed = self.format != Format::Untyped;
        let lists = self.format == Format::GraphSon3;
        push(out, "{\"requestId\":");
        match self.id {
            Some(id) => push_string(out, &id.hyphenated().to_string()),
            None => push(out, "null"),
        }
        push(out, &format!(",\"status\":{{\"code\":{},\"message\":", self.code));
        push_string(out, self.message);
        push(out, ",\"attributes\":");
        push(out, if lists { "{\"@type\":\"g:Map\",\"@value\":[" } else { "{" });
        separated(out, self.attributes, |out, (name, attribute)| {
            push_string(out, name);
            out.push(if lists { b',' } else { b':' });
            attribute.write_json(typed, out);
        });
        push(out, if lists { "]}" } else { "}" });
        push(out, "},\"result\":{\"data\":");
        push(out, if lists { "{\"@type\":\"g:List\",\"@value\":[" } else { "[" });
        out.extend_from_slice(self.data);
        push(
            out,
            if lists { "]},\"meta\":{\"@type\":\"g:Map\",\"@value\":[]}}}" } else { "],\"meta\":{}}}" },
        );
    }

    fn write_binary(&self, out: &mut Vec<u8>) {
        out.push(BINARY_VERSION);
        match self.id {
            Some(id) => {
                out.push(0);
                out.extend_from_slice(id.as_bytes());
            }
            None => out.push(1),
        }
        out.extend_from_slice(&i32::from(self.code).to_be_bytes());
        out.push(0);
        write_string(out, self.message);
        out.extend_from_slice(&(self.attributes.len() as i32).to_be_bytes());
        for (name, attribute) in self.attributes {
            write_value(&Value::string(name), out);
            let value = match attribute {
                Attribute::Integer(number) => Value::Int(i32::try_from(*number).unwrap_or(i32::MAX)),
                Attribute::Double(number) => Value::Double(*number),
                Attribute::Text(text) => Value::string(text),
            };
            write_value(&value, out);
        }
        out.extend_from_slice(&0i32.to_be_bytes());
        out.extend_from_slice(&[crate::graphbinary::code::LIST, 0]);
        out.extend_from_slice(&i32::try_from(self.count).unwrap_or(i32::MAX).to_be_bytes());
        out.extend_from_slice(self.data);
    }
}

impl Attribute {
    fn write_json(&self, typed: bool, out: &mut Vec<u8>) {
        let value = match self {
            Attribute::Integer(number) => Value::Int(i32::try_from(*number).unwrap_or(i32::MAX)),
            Attribute::Double(number) => Value::Double(*number),
            Attribute::Text(text) => return push_string(out, text),
        };
        match typed {
            true => Typed { third: true }.write(&value, out),
            false => write_untyped(&value, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(mime: &str, body: &[u8]) -> Vec<u8> {
        [&[mime.len() as u8][..], mime.as_bytes(), body].concat()
    }

    #[test]
    fn ids_come_bare_or_typed_and_arguments_with_them() {
        let id = "cb682578-9d92-4499-9ebc-5c6aa73c5397";
        for (mime, text) in [
            (
                "application/json",
                format!(
                    r#"{{"requestId":"{id}","op":"eval","processor":"","args":{{"gremlin":"g.V()","bindings":{{"x":1}}}}}}"#
                ),
            ),
            (
                "application/vnd.gremlin-v3.0+json",
                format!(
                    r#"{{"requestId":{{"@type":"g:UUID","@value":"{id}"}},"op":"eval","processor":"","args":{{"@type":"g:Map","@value":["gremlin","g.V()","bindings",{{"@type":"g:Map","@value":["x",{{"@type":"g:Int32","@value":1}}]}}]}}}}"#
                ),
            ),
        ] {
            let request = read_binary(&framed(mime, text.as_bytes()), Results::Cosmos).expect(mime);
            assert_eq!((request.id.to_string().as_str(), request.op.as_str()), (id, "eval"));
            assert_eq!(request.text_arg("gremlin"), Some("g.V()"));
            let Some(Value::Map(bindings)) = request.arg("bindings") else { panic!("{mime}") };
            assert_eq!(bindings.get(&Value::string("x")), Some(&Value::Int(1)));
        }
    }

    #[test]
    fn what_cannot_be_read_is_malformed() {
        for frame in [
            Vec::new(),
            vec![200, 1],
            framed("application/vnd.gremlin-v3.0+gryo", b""),
            framed("application/json", b"{"),
            framed("application/json", b"{}"),
            framed("application/vnd.graphbinary-v1.0", b""),
            framed("application/vnd.graphbinary-v1.0", &[0x81; 40]),
        ] {
            let unreadable = read_binary(&frame, Results::Cosmos).expect_err("refused");
            assert_eq!(unreadable.failure.code, 498);
        }
    }

    #[test]
    fn a_binary_request_is_read() {
        let mut body = vec![BINARY_VERSION];
        body.extend_from_slice(&[7; 16]);
        write_string(&mut body, "eval");
        write_string(&mut body, "");
        body.extend_from_slice(&1i32.to_be_bytes());
        write_value(&Value::string("gremlin"), &mut body);
        write_value(&Value::string("g.V()"), &mut body);
        let request = read_binary(&framed("application/vnd.graphbinary-v1.0", &body), Results::Cosmos)
            .expect("understood");
        assert_eq!((request.text_arg("gremlin"), request.id.as_bytes()), (Some("g.V()"), &[7; 16]));
    }
}
