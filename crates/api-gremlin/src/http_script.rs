//! A script over HTTP: `POST` with JSON, or `GET ?gremlin=…`; one answer with all results.
//!
//! ```text
//! curl -u '/dbs/shop/colls/people:KEY' http://localhost:8901/ -d '{"gremlin":"g.V().count()"}'
//! ```
//!
//! The user of basic authentication is the graph, the password a key or a resource token.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderValue, Method, Request as HttpRequest, Response, StatusCode};
use orrery_api::{Answered, Client, Connection, Summary};
use orrery_budget::Budget;
use orrery_gremlin::Value;
use orrery_gremlin::value::Map;
use percent_encoding::percent_decode_str;

use crate::errors::Failure;
use crate::execution::{Outlet, Work, refusal};
use crate::graphson;
use crate::message::{Format, Request};
use crate::sasl::Credentials;
use crate::service::Core;

/// An answer is one frame.
const RESULTS_MAX: i32 = 10_000;
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Keeps the frames of an answer: the last one is what is sent, unless there are more results than one answer has.
#[derive(Default)]
struct Kept(Vec<Vec<u8>>);

impl Outlet for Kept {
    fn send(&mut self, frame: Vec<u8>, budget: &Budget) -> Result<bool, Failure> {
        if !self.0.is_empty() {
            return Err(Failure::runtime(format!(
                "An answer over HTTP has at most {RESULTS_MAX} results or 16 MB. Use limit(), or a WebSocket, which has no \
                 such bound."
            )));
        }
        budget.check()?;
        self.0.push(frame);
        Ok(true)
    }
}

pub fn answer(core: &Core, request: HttpRequest<Bytes>, connection: &Connection) -> Answered {
    let (parts, body) = request.into_parts();
    let accept =
        parts.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or("application/json");
    let mime = accept.split(',').next().unwrap_or_default();
    let format = Format::of_mime(mime, core.config.results).unwrap_or(Format::Untyped);
    let asked = match parts.method {
        Method::POST => graphson::read(&body).map_err(|error| Failure::malformed(error.0)),
        Method::GET => Ok(of_query(parts.uri.query().unwrap_or_default())),
        _ => Err(Failure::malformed("A script comes by POST or GET.")),
    };
    let header = parts.headers.get(AUTHORIZATION).and_then(|header| header.to_str().ok());
    let identity = header
        .and_then(basic)
        .ok_or_else(Failure::unauthorized)
        .and_then(|credentials| core.authorizer.recognise(&credentials, core.account.env().now_ms()));
    let id = core.random_id();
    let refused = |failure: &Failure| {
        let status = failure.http_status();
        let summary = Summary::of("gremlin_http");
        Answered::new(respond(refusal(core, Some(id), format, failure), status, format), summary)
    };
    // Who asks must be known before anything is said about what was asked.
    let identity = match identity {
        Ok(identity) => identity,
        Err(failure) => return refused(&failure),
    };
    let Value::Map(mut args) = (match asked {
        Ok(asked) => asked,
        Err(failure) => return refused(&failure),
    }) else {
        return refused(&Failure::malformed("The body is a JSON object with the member 'gremlin'."));
    };
    std::sync::Arc::make_mut(&mut args).insert(Value::string("batchSize"), Value::Int(RESULTS_MAX));
    let args: Map = (*args).clone();
    let request = Request { id, op: "eval".to_owned(), args, format };
    let client = connection.client.clone();
    let is_gone = move || !matches!(client, Client::Unknown) && client.is_gone();
    let work = Work {
        core,
        request: &request,
        identity: &identity,
        frame_bytes: ANSWER_BYTES_MAX,
        is_gone: Box::new(is_gone),
    };
    let mut kept = Kept::default();
    let done = core.lengthy(|| work.run(&mut kept));
    let body = kept.0.pop().unwrap_or_default();
    Answered::new(respond(body, done.status, format), done.summary)
}

fn respond(body: Vec<u8>, status: u16, format: Format) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let kind = match format {
        Format::Untyped => "application/json",
        Format::GraphSon2 => "application/vnd.gremlin-v2.0+json",
        Format::GraphSon3 => "application/vnd.gremlin-v3.0+json",
        Format::GraphBinary1 { .. } => "application/vnd.graphbinary-v1.0",
    };
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == 401 {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Basic realm=\"gremlin\""));
    }
    response
}

fn basic(header: &str) -> Option<Credentials> {
    let (scheme, text) = header.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(text.trim()).ok()?).ok()?;
    let (user, password) = decoded.split_once(':')?;
    Credentials::of_user(user, password)
}

/// `gremlin=…` and bindings as `bindings.x=…`, which are texts.
fn of_query(query: &str) -> Value {
    let decoded = |text: &str| percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().into_owned();
    let (mut args, mut bindings) = (Map::new(), Map::new());
    for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
        let (name, value) = (decoded(name), Value::string(decoded(value)));
        match name.strip_prefix("bindings.") {
            Some(name) => bindings.insert(Value::string(name), value),
            None => args.insert(Value::string(name), value),
        };
    }
    args.insert(Value::string("bindings"), Value::Map(std::sync::Arc::new(bindings)));
    Value::Map(std::sync::Arc::new(args))
}
