//! Texts to binary data and back: `base64`, `base64url`, `hex`, `utf8`, `uuid`.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

use super::failure;
use crate::error::{Error, Result};
use crate::value::Bson;

const UUID_SUBTYPE: u8 = 4;

fn format_needed() -> Error {
    Error::new(4_341_115, "Format must be specified when converting from 'string' to 'binData' in $convert")
}

pub(super) fn of_text(text: &str, subtype: u8, format: Option<&str>) -> Result<Bson> {
    let format = format.ok_or_else(format_needed)?;
    if (format == "uuid") != (subtype == UUID_SUBTYPE) {
        let why = "Only the UUID subtype (4) is allowed with the 'uuid' format";
        let text = format!("Failed to parse BinData '{text}' in $convert with no onError value: {why}");
        return Err(Error::failed_to_parse(text));
    }
    let wrong = || failure(format!("Failed to parse BinData '{text}' in $convert with no onError value"));
    let bytes: Vec<u8> = match format {
        "utf8" => text.as_bytes().to_vec(),
        "hex" => unhex(text).ok_or_else(wrong)?,
        "uuid" => uuid(text).ok_or_else(|| failure(format!("Invalid UUID string: {text}")))?,
        "base64url" => URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).map_err(|_| wrong())?,
        _ => STANDARD.decode(text).map_err(|_| wrong())?,
    };
    Ok(Bson::Binary { subtype, bytes: Arc::from(bytes) })
}

pub(super) fn to_text(subtype: u8, bytes: &[u8], format: Option<&str>) -> Result<Bson> {
    let uuid = subtype == UUID_SUBTYPE && bytes.len() == 16;
    let text = match format {
        None => {
            return Err(Error::new(
                4_341_115,
                "Format must be specified when converting from 'binData' to 'string' in $convert",
            ));
        }
        Some("auto") => {
            if uuid {
                show_uuid(bytes)
            } else {
                STANDARD.encode(bytes)
            }
        }
        Some("uuid") if uuid => show_uuid(bytes),
        Some("uuid") => {
            return Err(failure("Only the UUID subtype (4) is allowed with the 'uuid' format".into()));
        }
        Some("utf8") => String::from_utf8(bytes.to_vec())
            .map_err(|_| failure("the binary data is no text in UTF-8".into()))?,
        Some("hex") => crate::expression::value::hex(bytes).to_ascii_uppercase(),
        Some("base64url") => URL_SAFE_NO_PAD.encode(bytes),
        Some(_) => STANDARD.encode(bytes),
    };
    Ok(text.into())
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    if !text.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    text.as_bytes().chunks(2).map(|pair| Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)).collect()
}

/// `123e4567-e89b-12d3-a456-426614174000`.
fn uuid(text: &str) -> Option<Vec<u8>> {
    let dashes = [8, 13, 18, 23];
    let shaped = text.len() == 36 && dashes.iter().all(|at| text.as_bytes()[*at] == b'-');
    if !shaped {
        return None;
    }
    let digits: String = text.chars().filter(|c| *c != '-').collect();
    unhex(&digits).filter(|bytes| bytes.len() == 16)
}

fn show_uuid(bytes: &[u8]) -> String {
    let digits = crate::expression::value::hex(bytes);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or_default();
    [part(0, 8), part(8, 12), part(12, 16), part(16, 20), part(20, 32)].join("-")
}
