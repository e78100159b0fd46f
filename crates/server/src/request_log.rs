//! One structured line per request.
//!
//! ```text
//! 2026-01-01T12:00:00.000000Z  INFO request: method=GET path=/dbs/d operation=read_database status=200 substatus=0 …
//! {"timestamp":"2026-01-01T12:00:00.000000Z","level":"INFO","message":"request","method":"GET","path":"/dbs/d",…}
//! ```
//!
//! Lines are formatted by hand into a buffer of the thread: about half a microsecond, no allocation. At most
//! `--log-requests-rate` lines are written per second, so that a load test does not drown a terminal or fill a disk;
//! the rest are counted, and one line says how many. Server errors are always written.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;

use crate::config::{LogConfig, LogFormat, LogRequests};
use crate::limits::LOGGED_PATH_BYTES_MAX;
use crate::log::LogSink;

pub struct RequestLog {
    sink: LogSink,
    format: LogFormat,
    requests: LogRequests,
    rate_max: u32,
    /// The second that `written` counts, and what was held back in it.
    second: AtomicU64,
    written: AtomicU32,
    held_back: AtomicU64,
}

/// What a line says.
pub struct Line<'a> {
    pub method: &'a str,
    pub path: &'a str,
    pub operation: &'a str,
    pub status: u16,
    pub substatus: u32,
    pub charge_ru: f64,
    pub duration_us: u64,
    pub activity: &'a str,
    /// The fault rule that decided, if one did.
    pub fault: &'a str,
}

impl RequestLog {
    pub fn new(config: &LogConfig, sink: LogSink) -> RequestLog {
        RequestLog {
            sink,
            format: config.format,
            requests: config.requests,
            rate_max: config.requests_rate_max,
            second: AtomicU64::new(0),
            written: AtomicU32::new(0),
            held_back: AtomicU64::new(0),
        }
    }

    /// Whether a request with this status may have a line at all: asked first, so that silence costs nothing.
    pub fn wants(&self, status: u16) -> bool {
        match self.requests {
            LogRequests::On => true,
            LogRequests::Errors => status >= 400,
            LogRequests::Off => false,
        }
    }

    pub fn write(&self, line: &Line<'_>) {
        if !self.admit(line.status) {
            return;
        }
        thread_local!(static TEXT: RefCell<String> = RefCell::new(String::with_capacity(512)));
        TEXT.with_borrow_mut(|text| {
            text.clear();
            // Writing into a String cannot fail.
            let _ = match self.format {
                LogFormat::Text => write_text(text, line),
                LogFormat::Json => write_json(text, line),
            };
            self.sink.line(text.as_bytes());
        });
    }

    /// Says how many lines were held back since the last call; called about once a second.
    pub fn report_held_back(&self) {
        let count = self.held_back.swap(0, Relaxed);
        if count > 0 {
            tracing::info!(
                count,
                per_second_max = self.rate_max,
                "request lines not shown (--log-requests-rate)"
            );
        }
    }

    fn admit(&self, status: u16) -> bool {
        if self.rate_max == 0 {
            return true;
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        if self.second.load(Relaxed) != now && self.second.swap(now, Relaxed) != now {
            self.written.store(0, Relaxed);
        }
        // A small race at the turn of the second lets a few lines more through; nobody depends on the exact number.
        if status >= 500 || self.written.load(Relaxed) < self.rate_max {
            self.written.fetch_add(1, Relaxed);
            return true;
        }
        self.held_back.fetch_add(1, Relaxed);
        false
    }
}

fn level(status: u16) -> &'static str {
    match status {
        500.. => "ERROR",
        _ => "INFO",
    }
}

fn write_time(text: &mut String) -> std::fmt::Result {
    tracing_subscriber::fmt::time::SystemTime.format_time(&mut Writer::new(text))
}

fn write_text(text: &mut String, line: &Line<'_>) -> std::fmt::Result {
    write_time(text)?;
    let Line { method, operation, status, substatus, charge_ru, duration_us, activity, fault, .. } = line;
    write!(text, " {:>5} request: method={method} path=", level(*status))?;
    write_escaped(text, cut(line.path));
    write!(
        text,
        " operation={operation} status={status} substatus={substatus} charge={charge_ru:.2} duration_us={duration_us} activity={activity}"
    )?;
    if !fault.is_empty() {
        write!(text, " fault={fault}")?;
    }
    text.push('\n');
    Ok(())
}

fn write_json(text: &mut String, line: &Line<'_>) -> std::fmt::Result {
    text.push_str("{\"timestamp\":\"");
    write_time(text)?;
    let Line { operation, status, substatus, charge_ru, duration_us, .. } = line;
    write!(text, "\",\"level\":\"{}\",\"message\":\"request\",\"method\":\"", level(*status))?;
    write_escaped(text, line.method);
    text.push_str("\",\"path\":\"");
    write_escaped(text, cut(line.path));
    write!(
        text,
        "\",\"operation\":\"{operation}\",\"status\":{status},\"substatus\":{substatus},\"charge\":{charge_ru:.2},\"duration_us\":{duration_us},\"activity\":\""
    )?;
    write_escaped(text, line.activity);
    if !line.fault.is_empty() {
        text.push_str("\",\"fault\":\"");
        write_escaped(text, line.fault);
    }
    text.push_str("\"}\n");
    Ok(())
}

fn cut(path: &str) -> &str {
    let mut end = path.len().min(LOGGED_PATH_BYTES_MAX);
    while !path.is_char_boundary(end) {
        end -= 1;
    }
    &path[..end]
}

/// What a client sends must not end a line or a JSON string.
fn write_escaped(text: &mut String, value: &str) {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if value.bytes().all(is_plain) {
        return text.push_str(value);
    }
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c.is_control() => drop(write!(text, "\\u{:04x}", c as u32)),
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(path: &str, status: u16) -> Line<'_> {
        Line {
            method: "GET",
            path,
            operation: "read_item",
            status,
            substatus: 0,
            charge_ru: 1.5,
            duration_us: 31,
            activity: "a-b",
            fault: "",
        }
    }

    fn log(requests: LogRequests, rate_max: u32) -> RequestLog {
        let config = LogConfig {
            format: LogFormat::Text,
            level: "info".into(),
            requests,
            requests_rate_max: rate_max,
        };
        RequestLog::new(&config, LogSink::start(std::io::sink()).unwrap())
    }

    #[test]
    fn a_text_line_has_every_field_and_no_line_break_of_the_client() {
        let mut text = String::new();
        write_text(&mut text, &line("/dbs/a\nb", 404)).unwrap();
        let (_, rest) = text.split_once(" INFO ").unwrap();
        assert_eq!(
            rest,
            "request: method=GET path=/dbs/a\\u000ab operation=read_item status=404 substatus=0 charge=1.50 duration_us=31 activity=a-b\n"
        );
    }

    #[test]
    fn a_fault_is_named_in_the_line() {
        let (mut text, mut json) = (String::new(), String::new());
        let line = Line { fault: "flaky", ..line("/", 429) };
        write_text(&mut text, &line).unwrap();
        write_json(&mut json, &line).unwrap();
        assert!(text.ends_with(" activity=a-b fault=flaky\n"), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).unwrap()["fault"], "flaky");
    }

    #[test]
    fn a_json_line_is_json_whatever_the_path() {
        let mut text = String::new();
        write_json(&mut text, &line("/dbs/\"\\\u{7f}", 500)).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((value["status"].as_u64(), value["level"].as_str()), (Some(500), Some("ERROR")));
        assert_eq!(value["path"], "/dbs/\"\\\u{7f}");
    }

    #[test]
    fn a_long_path_is_cut_at_a_character() {
        let path = format!("/{}", "ä".repeat(LOGGED_PATH_BYTES_MAX));
        assert!(cut(&path).len() <= LOGGED_PATH_BYTES_MAX);
    }

    #[test]
    fn only_what_is_wanted_is_written() {
        assert!(log(LogRequests::On, 0).wants(200));
        assert!(!log(LogRequests::Errors, 0).wants(399) && log(LogRequests::Errors, 0).wants(400));
        assert!(!log(LogRequests::Off, 0).wants(500));
    }

    #[test]
    fn lines_above_the_rate_are_counted_but_server_errors_pass() {
        let log = log(LogRequests::On, 2);
        let admitted = (0..50).filter(|_| log.admit(200)).count();
        assert!(admitted <= 4, "{admitted} of 2 per second, at most over two seconds");
        assert!(log.admit(503));
        assert_eq!(log.held_back.load(Relaxed) as usize, 50 - admitted);
    }
}
