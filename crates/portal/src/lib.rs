//! The web pages at `/_explorer/`: plain files out of the binary, and the headers that keep them safe.
//!
//! ```text
//! GET /                           to /_explorer/ for a browser; an SDK gets the account document as ever
//! GET /_explorer/                 index.html: never stored, because it carries a fresh nonce
//! GET /_explorer/<version>/app.js stored for good: another version has another address
//! GET /_explorer/emulator.pem     the certificate, where scripts for the emulators look for it
//! ```
//!
//! The files are what stands in `web/`; nothing is compiled or bundled, so `build.rs` only packs them. They hold no
//! data and no secret: whoever uses the pages signs requests to the public API in the browser. With a directory the
//! files are read from there at every request, which is how one works on them.

mod headers;

use std::io::Read;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG,
    IF_NONE_MATCH, LOCATION, VARY,
};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri};

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// Where the emulators have theirs.
const ROOT: &str = "/_explorer/";
const INDEX: &str = "index.html";
const ICON: &str = "icon.svg";
/// What stands for the version where files are read from a directory.
const FROM_DISK: &str = "dev";
/// Largest file that is read from a directory.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;
const NONCE_BYTES: usize = 16;

/// A file of `web/`, packed.
#[derive(Debug)]
pub struct File {
    pub name: &'static str,
    pub etag: &'static str,
    /// Unpacked.
    pub size: usize,
    pub packed: &'static [u8],
}

/// All files.
pub fn files() -> &'static [File] {
    FILES
}

/// The modules that a browser loads before the first page shows.
pub fn first_modules() -> &'static [&'static str] {
    PRELOAD
}

/// What a request for the portal wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    Page(Page),
    /// The server's certificate, which the portal does not have.
    Certificate,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Page {
    Redirect,
    Index,
    File(String),
    NotFound,
    MethodNotAllowed,
}

#[derive(Debug)]
pub struct Portal {
    /// Of the server, for people.
    version: &'static str,
    /// Whether the publicly known key opens the account, so that nobody needs to be asked for one.
    well_known_key: bool,
    directory: Option<PathBuf>,
}

impl Portal {
    pub fn new(version: &'static str, well_known_key: bool, directory: Option<PathBuf>) -> Portal {
        Portal { version, well_known_key, directory }
    }

    /// Whether answering may wait for a disk.
    pub fn reads_disk(&self) -> bool {
        self.directory.is_some()
    }

    /// What a request wants of the portal; `None` if it is not for it.
    pub fn asked(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Asked> {
        let path = uri.path();
        let reads = *method == Method::GET || *method == Method::HEAD;
        if path == "/" {
            return (reads && wants_html(headers)).then_some(Asked::Page(Page::Redirect));
        }
        if path == "/favicon.ico" && reads && !headers.contains_key(AUTHORIZATION) {
            return Some(Asked::Page(Page::File(ICON.into())));
        }
        let rest = path.strip_prefix(ROOT.trim_end_matches('/'))?;
        if !(rest.is_empty() || rest.starts_with('/')) {
            return None;
        }
        if !reads {
            return Some(Asked::Page(Page::MethodNotAllowed));
        }
        Some(match rest {
            "" => Asked::Page(Page::Redirect),
            "/" | "/index.html" => Asked::Page(Page::Index),
            "/emulator.pem" => Asked::Certificate,
            _ => Asked::Page(self.file_of(&rest[1..])),
        })
    }

    fn file_of(&self, rest: &str) -> Page {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/');
        match rest.split_once('/') {
            Some((version, name))
                if version == self.files_version()
                    && name.bytes().all(plain)
                    && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
                    && name != INDEX =>
            {
                Page::File(name.to_owned())
            }
            _ => Page::NotFound,
        }
    }

    fn files_version(&self) -> &'static str {
        if self.directory.is_some() { FROM_DISK } else { VERSION }
    }

    pub fn answer(&self, page: &Page, headers: &HeaderMap) -> Response<Bytes> {
        match page {
            Page::Redirect => {
                let mut response = answer(StatusCode::FOUND, "text/plain; charset=utf-8", Bytes::new());
                response.headers_mut().insert(LOCATION, HeaderValue::from_static(ROOT));
                response.headers_mut().insert(VARY, HeaderValue::from_static("accept, authorization"));
                response
            }
            Page::MethodNotAllowed => {
                let mut response = answer(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "text/plain; charset=utf-8",
                    "allowed: GET, HEAD".into(),
                );
                response.headers_mut().insert(http::header::ALLOW, HeaderValue::from_static("GET, HEAD"));
                response
            }
            Page::NotFound => missing(),
            Page::Index => self.index(),
            Page::File(name) => match &self.directory {
                Some(directory) => match read_from(directory, name) {
                    Some(bytes) => answer(StatusCode::OK, kind(name), bytes.into()),
                    None => missing(),
                },
                None => match FILES.iter().find(|file| file.name == name) {
                    Some(file) => embedded(file, headers),
                    None => missing(),
                },
            },
        }
    }

    fn index(&self) -> Response<Bytes> {
        let template = match &self.directory {
            Some(directory) => read_from(directory, INDEX),
            None => FILES.iter().find(|file| file.name == INDEX).map(unpacked),
        };
        let Some(template) = template.and_then(|bytes| String::from_utf8(bytes).ok()) else {
            return missing();
        };
        let mut random = [0; NONCE_BYTES];
        if getrandom::fill(&mut random).is_err() {
            return answer(
                StatusCode::SERVICE_UNAVAILABLE,
                "text/plain; charset=utf-8",
                "no randomness".into(),
            );
        }
        let nonce: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let base = format!("{ROOT}{}", self.files_version());
        let preload: String = match self.directory {
            Some(_) => String::new(),
            None => PRELOAD
                .iter()
                .map(|name| format!("<link rel=\"modulepreload\" href=\"{base}/{name}\">"))
                .collect(),
        };
        let text = template
            .replace("%preload%", &preload)
            .replace("%base%", &base)
            .replace("%nonce%", &nonce)
            .replace("%version%", self.version)
            .replace("%key%", if self.well_known_key { "well-known" } else { "own" });
        let mut response = answer(StatusCode::OK, kind(INDEX), text.into());
        response.headers_mut().insert(http::header::CONTENT_SECURITY_POLICY, headers::policy(&nonce));
        response
    }
}

/// Whether a request comes from somebody who looks at pages. SDKs say who they are, or ask for JSON.
fn wants_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    !headers.contains_key(AUTHORIZATION) && accept.contains("text/html")
}

fn embedded(file: &File, headers: &HeaderMap) -> Response<Bytes> {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    let unchanged =
        text(IF_NONE_MATCH).split(',').any(|etag| etag.trim().trim_start_matches("W/") == file.etag);
    let packed = text(ACCEPT_ENCODING).split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        parts.next() == Some("gzip") && !parts.any(|part| part.replace(' ', "") == "q=0")
    });
    let mut response = match (unchanged, packed) {
        (true, _) => answer(StatusCode::NOT_MODIFIED, kind(file.name), Bytes::new()),
        (false, true) => answer(StatusCode::OK, kind(file.name), Bytes::from_static(file.packed)),
        (false, false) => answer(StatusCode::OK, kind(file.name), unpacked(file).into()),
    };
    let headers = response.headers_mut();
    if packed && !unchanged {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(ETAG, HeaderValue::from_static(file.etag));
    headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    response
}

fn unpacked(file: &File) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(file.size);
    // The build packed it; what cannot be unpacked is a defect of the binary, and an empty file says so loudly enough.
    let _ = GzDecoder::new(file.packed).read_to_end(&mut bytes);
    bytes
}

fn read_from(directory: &Path, name: &str) -> Option<Vec<u8>> {
    let path = directory.join(name);
    let metadata = std::fs::metadata(&path).ok()?;
    (metadata.is_file() && metadata.len() <= FILE_BYTES_MAX).then(|| std::fs::read(&path).ok())?
}

fn missing() -> Response<Bytes> {
    answer(
        StatusCode::NOT_FOUND,
        "text/plain; charset=utf-8",
        "no such page; the portal begins at /_explorer/".into(),
    )
}

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers::secure(response.headers_mut());
    response
}

fn kind(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, ending)| ending) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests;
