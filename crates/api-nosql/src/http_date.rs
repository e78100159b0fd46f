//! Dates in headers, as clients write them.
//!
//! RFC 9110 has one zone, `GMT`. Go's clients print the same date with the name that their clock has, `UTC`; others
//! write the zone as a number. The service reads them all.

use std::time::SystemTime;

const ZONE: &str = "GMT";
/// Other names of the same zone.
const OTHER_NAMES: [&str; 5] = ["UTC", "UT", "Z", "+0000", "-0000"];

/// The moment of a date such as `Mon, 16 Nov 2026 21:40:10 GMT`.
pub fn parse(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    httpdate::parse_http_date(text).ok().or_else(|| {
        let (rest, zone) = text.rsplit_once(' ')?;
        let known = OTHER_NAMES.iter().chain([&ZONE]).any(|name| name.eq_ignore_ascii_case(zone));
        let date = known.then(|| format!("{rest} {ZONE}"))?;
        httpdate::parse_http_date(&date).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_the_same_by_every_name_of_its_zone() {
        let expected = httpdate::parse_http_date("Mon, 16 Nov 2026 21:40:10 GMT").unwrap();
        for zone in ["GMT", "UTC", "utc", "gmt", "UT", "Z", "+0000", "-0000"] {
            assert_eq!(parse(&format!("Mon, 16 Nov 2026 21:40:10 {zone}")), Some(expected), "{zone}");
        }
        assert_eq!(parse("Monday, 16-Nov-26 21:40:10 UTC"), Some(expected));
        assert_eq!(parse("Mon Nov 16 21:40:10 2026"), Some(expected));
    }

    #[test]
    fn what_is_no_date_or_of_another_zone_is_none() {
        for text in
            ["", " ", "UTC", "Mon, 16 Nov 2026 21:40:10", "Mon, 16 Nov 2026 21:40:10 CET", "yesterday UTC"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
