//! How the text of a setting becomes a value: sizes, durations, addresses, keys, choices. Every refusal says what is
//! allowed.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use base64::Engine;

/// Shortest key accepted, decoded: below this, guessing becomes thinkable.
pub const KEY_BYTES_MIN: usize = 16;

/// `10000000`, `10MB` (decimal, as disks are sold), `10MiB` (binary); a space before the unit and any case are fine.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 13] = [
        ("", 1),
        ("b", 1),
        ("k", 1000),
        ("kb", 1000),
        ("kib", 1 << 10),
        ("m", 1_000_000),
        ("mb", 1_000_000),
        ("mib", 1 << 20),
        ("gb", 1_000_000_000),
        ("gib", 1 << 30),
        ("g", 1_000_000_000),
        ("tb", 1_000_000_000_000),
        ("tib", 1 << 40),
    ];
    let allowed = || {
        format!("`{text}` is no size; allowed: bytes, or a number with kB, MB, GB, TB, KiB, MiB, GiB, TiB")
    };
    let (number, unit) = split_unit(text);
    let factor =
        UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor).ok_or_else(allowed)?;
    let bytes = match number.parse::<u64>() {
        Ok(whole) => whole.checked_mul(factor).ok_or_else(allowed)?,
        Err(_) => {
            let number: f64 = number.parse().map_err(|_| allowed())?;
            let bytes = number * factor as f64;
            // A fraction is only meaningful with a unit, and 2^53 bytes is far above any disk.
            if !(bytes >= 1.0 && bytes < (1u64 << 53) as f64) {
                return Err(allowed());
            }
            bytes as u64
        }
    };
    if bytes == 0 { Err(allowed()) } else { Ok(bytes) }
}

/// `500ms`, `30s`, `5m`, `1h`; a bare number is seconds.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (number, unit) = split_unit(text);
    let unit_ms = match unit.as_str() {
        "ms" => 1,
        "" | "s" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        _ => 0,
    };
    let ms = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit_ms)).filter(|ms| *ms > 0);
    ms.map(Duration::from_millis).ok_or_else(|| {
        format!("`{text}` is no duration; allowed: a whole number with ms, s, m or h, as in 30s")
    })
}

/// `127.0.0.1:8081`, `[::1]:8081`, `0.0.0.0:8081`, `localhost:8081`.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    match text.strip_prefix("localhost:").map(str::parse::<u16>) {
        Some(Ok(port)) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        _ => Err(format!(
            "`{text}` is no address to listen on; allowed: IP:PORT, as in 127.0.0.1:8081, [::1]:8081, 0.0.0.0:8081 \
             (every interface), localhost:8081; port 0 takes a free one"
        )),
    }
}

/// A master key: base64 of at least [`KEY_BYTES_MIN`] bytes. The text itself never enters a message.
pub fn key(text: &str) -> Result<String, String> {
    match base64::engine::general_purpose::STANDARD.decode(text) {
        Ok(bytes) if bytes.len() >= KEY_BYTES_MIN => Ok(text.to_owned()),
        Ok(bytes) => Err(format!(
            "the key has {} bytes; at least {KEY_BYTES_MIN} are needed (`orrery key new` makes one)",
            bytes.len()
        )),
        Err(_) => Err("the key is not base64 (`orrery key new` makes one)".into()),
    }
}

pub fn number(text: &str, min: u64, max: u64) -> Result<u64, String> {
    text.trim()
        .replace('_', "")
        .parse()
        .ok()
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| format!("`{text}` is not allowed; allowed: a whole number from {min} to {max}"))
}

pub fn switch(text: &str) -> Result<bool, String> {
    choice(text, &[("true", true), ("false", false), ("on", true), ("off", false)])
}

/// One of a closed list of names; case, `-` and `_` do not matter.
pub fn choice<T: Copy>(text: &str, choices: &[(&str, T)]) -> Result<T, String> {
    let plain = |text: &str| text.trim().to_ascii_lowercase().replace(['-', '_'], "");
    choices.iter().find(|(name, _)| plain(name) == plain(text)).map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
        format!("`{text}` is not allowed; allowed: {}", names.join(", "))
    })
}

/// Where every setting puts what it was given.
pub fn put<T>(field: &mut T, value: Result<T, String>) -> Result<(), String> {
    *field = value?;
    Ok(())
}

/// Of several texts the last counts, where one is wanted.
pub fn last(texts: &[String]) -> Result<&str, String> {
    texts.last().map(String::as_str).ok_or_else(|| "a value is missing".into())
}

/// `info`, `info,orrery_storage=debug`: kept as it is once it is known to make sense.
pub fn log_filter(text: &str) -> Result<String, String> {
    match text.parse::<tracing_subscriber::filter::Targets>() {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!(
            "`{text}` is not allowed; allowed: error, warn, info, debug, trace, and module=level after a comma"
        )),
    }
}

/// The name among `known` that a mistyped `text` most likely meant.
pub fn closest<'a>(text: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const TYPOS_MAX: usize = 3;
    known
        .map(|name| (edit_distance(text.as_bytes(), name.as_bytes()), name))
        .min()
        .filter(|(typos, _)| *typos <= TYPOS_MAX)
        .map(|(_, name)| name)
}

fn split_unit(text: &str) -> (&str, String) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (&text[..end], text[end..].trim().to_ascii_lowercase())
}

fn edit_distance(left: &[u8], right: &[u8]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let change = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

/// Whether a text names a host: an address, a name, or `*.` and a name.
pub fn host_name(text: &str) -> bool {
    const HOST_NAME_BYTES_MAX: usize = 253;
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let host = text.strip_prefix("*.").unwrap_or(text);
    text.parse::<std::net::IpAddr>().is_ok()
        || (!host.is_empty()
            && text.len() <= HOST_NAME_BYTES_MAX
            && host.chars().all(plain)
            && !host.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_take_decimal_and_binary_units() {
        for (text, bytes) in [
            ("1", Some(1)),
            ("10MB", Some(10_000_000)),
            ("10 mb", Some(10_000_000)),
            ("10MiB", Some(10 << 20)),
            ("1.5GB", Some(1_500_000_000)),
            ("50 GB", Some(50_000_000_000)),
            ("2TiB", Some(2 << 40)),
            ("", None),
            ("0", None),
            ("-1", None),
            ("ten", None),
            ("10XB", None),
            ("99999999999TB", None),
            ("1.2.3MB", None),
        ] {
            assert_eq!(size_bytes(text).ok(), bytes, "{text}");
        }
    }

    #[test]
    fn durations_need_a_known_unit() {
        for (text, ms) in [
            ("250ms", Some(250)),
            ("30", Some(30_000)),
            ("2m", Some(120_000)),
            ("1h", Some(3_600_000)),
            ("0s", None),
            ("1d", None),
            ("s", None),
        ] {
            assert_eq!(duration(text).ok(), ms.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn addresses_are_ip_and_port() {
        assert_eq!(address("localhost:80").unwrap(), "127.0.0.1:80".parse().unwrap());
        for wrong in ["8081", ":8081", "127.0.0.1", "example.com:8081", "localhost:x", "127.0.0.1:70000"] {
            assert!(address(wrong).unwrap_err().contains("allowed: IP:PORT"), "{wrong}");
        }
    }

    #[test]
    fn a_refused_key_is_not_repeated() {
        let problem = key("not/base64/at-all!").unwrap_err();
        assert!(!problem.contains("base64/at"), "{problem}");
        assert!(key("c2hvcnQ=").unwrap_err().contains("5 bytes"));
    }

    #[test]
    fn a_typo_finds_its_name() {
        let known = ["listen", "data-dir", "durability"];
        assert_eq!(closest("listn", known.into_iter()), Some("listen"));
        assert_eq!(closest("data-directory-of-mine", known.into_iter()), None);
    }
}
