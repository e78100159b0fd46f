//! `$batch` on the wire: requests inside of a request, and answers inside of an answer.
//!
//! ```text
//! --batch_1
//! Content-Type: multipart/mixed; boundary=changeset_1
//!
//! --changeset_1
//! Content-Type: application/http
//! Content-Transfer-Encoding: binary
//!
//! PUT http://host/people(PartitionKey='p',RowKey='r') HTTP/1.1
//! Content-Type: application/json
//!
//! {"Age":23}
//! --changeset_1--
//! --batch_1--
//! ```
//!
//! A single GET may stand in the batch without a changeset. Lines may end with CRLF or LF.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};

use crate::errors::{Code, Result, TableError};

/// Most operations of a batch.
pub const OPERATIONS_MAX: usize = 100;
/// Most header lines of a part, or of a request in it.
const HEADERS_MAX: usize = 64;
const LINE_BYTES_MAX: usize = 16 * 1024;
/// The longest boundary that the standard allows.
const BOUNDARY_BYTES_MAX: usize = 70;

/// A request inside of a batch.
#[derive(Debug)]
pub struct Operation<'b> {
    pub method: Method,
    /// As it was sent: a whole address, or a path.
    pub address: &'b str,
    pub headers: HeaderMap,
    pub content_id: Option<&'b str>,
    pub body: &'b [u8],
}

#[derive(Debug)]
pub struct Batch<'b> {
    pub operations: Vec<Operation<'b>>,
    /// Whether the operations stand in a changeset, and are done together or not at all.
    pub changeset: bool,
}

fn invalid(why: &'static str) -> TableError {
    TableError::new(
        Code::InvalidInput,
        format!("One of the request inputs is not valid. The batch cannot be read: {why}."),
    )
}

/// Reads a batch. More operations than there may be are an error of the one that is too many.
pub fn parse<'b>(content_type: &str, body: &'b [u8]) -> Result<Batch<'b>> {
    let boundary = boundary(content_type).ok_or_else(|| invalid("its content type names no boundary"))?;
    let parts = parts(&boundary, body, OPERATIONS_MAX + 1)?;
    let mut batch = Batch { operations: Vec::new(), changeset: false };
    for part in &parts {
        let (headers, content) = headers(part)?;
        match headers.get("content-type").and_then(|kind| kind.to_str().ok()).and_then(self::boundary) {
            Some(inner) => {
                if batch.changeset || !batch.operations.is_empty() {
                    return Err(invalid("it has more than one changeset"));
                }
                batch.changeset = true;
                for part in self::parts(&inner, content, OPERATIONS_MAX + 1)? {
                    batch.operations.push(operation(part)?);
                }
            }
            None => batch.operations.push(operation(part)?),
        }
    }
    if batch.operations.len() > OPERATIONS_MAX {
        let many = TableError::new(
            Code::InvalidInput,
            "The batch request operation exceeds the maximum 100 changes per change set.",
        );
        return Err(many.of_operation(OPERATIONS_MAX - 1));
    }
    if !batch.changeset && batch.operations.len() > 1 {
        return Err(invalid("several operations stand outside of a changeset"));
    }
    Ok(batch)
}

fn boundary(content_type: &str) -> Option<String> {
    let mut parameters = content_type.split(';');
    if !parameters.next()?.trim().eq_ignore_ascii_case("multipart/mixed") {
        return None;
    }
    let boundary = parameters.find_map(|parameter| {
        let (name, value) = parameter.trim().split_once('=')?;
        name.eq_ignore_ascii_case("boundary").then(|| value.trim().trim_matches('"'))
    })?;
    (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len()).then(|| boundary.to_owned())
}

/// What stands between the lines of a boundary.
fn parts<'b>(boundary: &str, body: &'b [u8], max: usize) -> Result<Vec<&'b [u8]>> {
    let delimiter = [b"--", boundary.as_bytes()].concat();
    let mut parts = Vec::new();
    let mut begins: Option<usize> = None;
    for at in memchr::memmem::find_iter(body, &delimiter) {
        let at_line_start = at == 0 || body[at - 1] == b'\n';
        let behind = &body[at + delimiter.len()..];
        let ends = behind.starts_with(b"--");
        // A longer boundary that begins like this one.
        let other = !ends && !behind.is_empty() && !matches!(behind[0], b'\r' | b'\n' | b' ' | b'\t');
        if !at_line_start || other {
            continue;
        }
        if let Some(begin) = begins {
            if parts.len() == max {
                return Ok(parts);
            }
            parts.push(without_line_end(&body[begin.min(at)..at]));
        }
        if ends {
            return Ok(parts);
        }
        let line = memchr::memchr(b'\n', behind).map_or(behind.len(), |end| end + 1);
        begins = Some(at + delimiter.len() + line);
    }
    match begins {
        // An end that was cut off.
        Some(_) => Err(invalid("it has no end")),
        None => Err(invalid("it has no parts")),
    }
}

fn without_line_end(part: &[u8]) -> &[u8] {
    let part = part.strip_suffix(b"\n").unwrap_or(part);
    part.strip_suffix(b"\r").unwrap_or(part)
}

/// The line at the beginning, and what follows it.
fn line(text: &[u8]) -> Result<(&str, &[u8])> {
    let end = memchr::memchr(b'\n', text);
    let (line, rest) = match end {
        Some(end) => (&text[..end], &text[end + 1..]),
        None => (text, &text[text.len()..]),
    };
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() > LINE_BYTES_MAX {
        return Err(invalid("a line is too long"));
    }
    std::str::from_utf8(line).map(|line| (line, rest)).map_err(|_| invalid("a line is no text"))
}

/// The headers at the beginning, and what follows the empty line behind them.
fn headers(text: &[u8]) -> Result<(HeaderMap, &[u8])> {
    let mut headers = HeaderMap::new();
    let mut rest = text;
    loop {
        let (line, behind) = line(rest)?;
        rest = behind;
        if line.trim().is_empty() {
            return Ok((headers, rest));
        }
        let (name, value) = line.split_once(':').ok_or_else(|| invalid("a header has no value"))?;
        let name =
            HeaderName::from_bytes(name.trim().as_bytes()).map_err(|_| invalid("a header has no name"))?;
        let value =
            HeaderValue::from_str(value.trim()).map_err(|_| invalid("a header has a value that is none"))?;
        if headers.len() == HEADERS_MAX {
            return Err(invalid("a part has too many headers"));
        }
        headers.append(name, value);
    }
}

fn operation(part: &[u8]) -> Result<Operation<'_>> {
    let (mime, request) = headers(part)?;
    let (request_line, rest) = line(request)?;
    let mut words = request_line.split(' ').filter(|word| !word.is_empty());
    let (Some(method), Some(address)) = (words.next(), words.next()) else {
        return Err(invalid("a part holds no request"));
    };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| invalid("a request has no method"))?;
    let (headers, body) = headers(rest)?;
    let content_id = content_id(part).filter(|_| mime.contains_key("content-id"));
    // Some clients put it among the headers of the request.
    let content_id =
        content_id.or_else(|| self::content_id(rest).filter(|_| headers.contains_key("content-id")));
    Ok(Operation { method, address, headers, content_id, body })
}

/// The value of the first header of this name, from the text itself, so that it lives as long.
fn content_id(text: &[u8]) -> Option<&str> {
    let mut rest = text;
    while let Ok((found, behind)) = line(rest) {
        if found.is_empty() || behind.len() == rest.len() {
            return None;
        }
        match found.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("content-id") => return Some(value.trim()),
            _ => rest = behind,
        }
    }
    None
}

/// One answer inside of an answer.
#[derive(Debug)]
pub struct Part {
    pub status: StatusCode,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub content_id: Option<String>,
    pub body: Vec<u8>,
}

/// Writes the answer to a batch. Returns its content type and its body.
pub fn write(parts: &[Part], changeset: bool, id: &str) -> (String, Vec<u8>) {
    let mut out = Vec::with_capacity(256 * parts.len() + 256);
    let push = |out: &mut Vec<u8>, text: &str| out.extend_from_slice(text.as_bytes());
    let (outer, inner) = (format!("batchresponse_{id}"), format!("changesetresponse_{id}"));
    push(&mut out, &format!("--{outer}\r\n"));
    if changeset {
        push(&mut out, &format!("Content-Type: multipart/mixed; boundary={inner}\r\n\r\n"));
    }
    for part in parts {
        if changeset {
            push(&mut out, &format!("--{inner}\r\n"));
        }
        push(&mut out, "Content-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n");
        let reason = part.status.canonical_reason().unwrap_or("Unknown");
        push(&mut out, &format!("HTTP/1.1 {} {reason}\r\n", part.status.as_u16()));
        if let Some(content_id) = &part.content_id {
            push(&mut out, &format!("Content-ID: {content_id}\r\n"));
        }
        for (name, value) in &part.headers {
            push(&mut out, &title_case(name.as_str()));
            push(&mut out, ": ");
            out.extend_from_slice(value.as_bytes());
            push(&mut out, "\r\n");
        }
        push(&mut out, "\r\n");
        out.extend_from_slice(&part.body);
        push(&mut out, "\r\n");
    }
    if changeset {
        push(&mut out, &format!("--{inner}--\r\n"));
    }
    push(&mut out, &format!("--{outer}--\r\n"));
    (format!("multipart/mixed; boundary={outer}"), out)
}

/// Old clients look for headers by their usual spelling.
fn title_case(name: &str) -> String {
    match name {
        "etag" => "ETag".to_owned(),
        "dataserviceid" => "DataServiceId".to_owned(),
        "dataserviceversion" => "DataServiceVersion".to_owned(),
        name if name.starts_with("x-ms-") => name.to_owned(),
        name => {
            let mut upper = true;
            let turned = name.chars().map(|char| {
                let turned = if upper { char.to_ascii_uppercase() } else { char };
                upper = char == '-';
                turned
            });
            turned.collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "multipart/mixed; boundary=batch_1";

    fn changeset(parts: &str) -> String {
        format!(
            "--batch_1\r\nContent-Type: multipart/mixed; boundary=\"changeset_1\"\r\n\r\n{parts}--changeset_1--\r\n--batch_1--\r\n"
        )
    }

    fn part(request: &str) -> String {
        format!(
            "--changeset_1\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\nContent-ID: 7\r\n\r\n{request}\r\n"
        )
    }

    #[test]
    fn operations_are_read_in_their_order() {
        let one =
            part("PUT http://h/t(PartitionKey='p',RowKey='r') HTTP/1.1\r\nIf-Match: *\r\n\r\n{\"A\":1}");
        let two = part("DELETE /t(PartitionKey='p',RowKey='--changeset_1') HTTP/1.1\r\nIf-Match: *\r\n\r\n");
        let text = changeset(&(one + &two));
        for text in [text.clone(), text.replace("\r\n", "\n")] {
            let batch = parse(KIND, text.as_bytes()).unwrap();
            assert!(batch.changeset);
            let [put, delete] = &batch.operations[..] else { panic!("{:?}", batch.operations) };
            assert_eq!(
                (put.method.as_str(), put.address),
                ("PUT", "http://h/t(PartitionKey='p',RowKey='r')")
            );
            assert_eq!((put.body, put.content_id), (&b"{\"A\":1}"[..], Some("7")));
            assert_eq!(put.headers["if-match"], "*");
            assert_eq!((delete.method.as_str(), delete.body), ("DELETE", &b""[..]));
        }
    }

    #[test]
    fn a_query_may_stand_alone() {
        let text = "--batch_1\r\nContent-Type: application/http\r\n\r\nGET http://h/t() HTTP/1.1\r\nAccept: x\r\n\r\n\r\n--batch_1--";
        let batch = parse(KIND, text.as_bytes()).unwrap();
        assert_eq!(
            (batch.changeset, batch.operations.len(), batch.operations[0].method.as_str()),
            (false, 1, "GET")
        );
    }

    #[test]
    fn what_is_no_batch_is_refused() {
        let many: String = (0..101).map(|_| part("DELETE /t HTTP/1.1\r\n\r\n")).collect();
        assert_eq!(parse(KIND, changeset(&many).as_bytes()).unwrap_err().operation, Some(99));
        for (kind, text) in [
            ("application/json", changeset("")),
            ("multipart/mixed", changeset("")),
            (KIND, String::new()),
            (KIND, "--batch_1\r\n".into()),
            (KIND, "--batch_2\r\n\r\n--batch_2--".into()),
            (KIND, changeset(&part("nonsense"))),
            (KIND, changeset(&part("GET /t HTTP/1.1\r\nno header\r\n\r\n"))),
            (KIND, changeset("").replace("--batch_1--", "")),
        ] {
            assert!(parse(kind, text.as_bytes()).is_err(), "{kind} {text}");
        }
        assert!(parse(KIND, changeset("--changeset_1\r\n").as_bytes()).is_err());
    }

    #[test]
    fn an_answer_has_a_part_for_each_operation() {
        let etag = (http::header::ETAG, HeaderValue::from_static("W/\"x\""));
        let part = Part {
            status: StatusCode::NO_CONTENT,
            headers: vec![etag],
            content_id: Some("1".into()),
            body: vec![],
        };
        let (kind, body) = write(&[part], true, "g");
        assert_eq!(kind, "multipart/mixed; boundary=batchresponse_g");
        assert_eq!(
            String::from_utf8(body).unwrap(),
            "--batchresponse_g\r\nContent-Type: multipart/mixed; boundary=changesetresponse_g\r\n\r\n\
             --changesetresponse_g\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n\
             HTTP/1.1 204 No Content\r\nContent-ID: 1\r\nETag: W/\"x\"\r\n\r\n\r\n\
             --changesetresponse_g--\r\n--batchresponse_g--\r\n"
        );
    }
}
