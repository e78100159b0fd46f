//! Date and time functions over ISO 8601 strings.

use super::{Function, entry};
use crate::context::Caller;
use crate::datetime::{Moment, Part, add, bin, difference};
use crate::value::Eval;

pub(super) fn parse_datetime(text: &str) -> Option<Moment> {
    Moment::parse(text)
}

fn moment(value: &Eval<'_>) -> Option<Moment> {
    Moment::parse(value.as_str()?)
}

fn ticks(value: &Eval<'_>) -> Option<i64> {
    moment(value)?.ticks()
}

fn part(value: &Eval<'_>) -> Option<Part> {
    Part::parse(value.as_str()?)
}

fn date_text<'a>(ticks: Option<i64>) -> Eval<'a> {
    ticks.and_then(Moment::from_ticks).map_or(Eval::Undefined, |moment| Eval::text(moment.to_string()))
}

fn integer<'a>(value: Option<i64>) -> Eval<'a> {
    value.map_or(Eval::Undefined, Eval::integer)
}

/// 1601-01-01, the earliest origin bins can be counted from.
const WINDOWS_EPOCH_TICKS: i64 = -116_444_736_000_000_000;

const TICKS_PER_MILLISECOND: i64 = 10_000;

fn part_value(part: Part, moment: &Moment) -> i64 {
    match part {
        Part::Year => moment.year,
        Part::Month => moment.month,
        Part::Day => moment.day,
        Part::Hour => moment.hour,
        Part::Minute => moment.minute,
        Part::Second => moment.second,
        Part::Millisecond => moment.fraction / TICKS_PER_MILLISECOND,
        Part::Microsecond => moment.fraction / 10,
        Part::Nanosecond => moment.fraction * 100,
    }
}

fn from_parts(arguments: &[Eval<'_>]) -> Option<i64> {
    let mut parts = [0; 7];
    for (value, argument) in parts.iter_mut().zip(arguments) {
        *value = argument.as_i64()?;
    }
    let [year, month, day, hour, minute, second, fraction] = parts;
    Moment { year, month, day, hour, minute, second, fraction }.ticks()
}

/// Now, or a number of parts away from it.
fn moved(context: &Caller<'_>, arguments: &[Eval<'_>], sign: i64) -> Option<i64> {
    match arguments {
        [] => Some(context.now_ticks),
        [name, count] => add(part(name)?, count.as_i64()?.checked_mul(sign)?, context.now_ticks),
        _ => None,
    }
}

/// Formats by runs of letters: `yyyy`, `MM`, `dd`, `HH`, `mm`, `ss`, `fff`. A backslash takes the next
/// character as it is, and so is everything that is no such letter.
fn format(moment: &Moment, pattern: &str) -> String {
    let mut out = String::new();
    let mut characters = pattern.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\\' {
            out.extend(characters.next());
            continue;
        }
        let mut run = 1;
        while characters.peek() == Some(&character) && "yMdHhmsfFt".contains(character) {
            characters.next();
            run += 1;
        }
        format_run(moment, character, run, &mut out);
    }
    out
}

fn format_run(moment: &Moment, letter: char, run: usize, out: &mut String) {
    use std::fmt::Write;
    let number = |value: i64, out: &mut String| {
        let width = run.min(2);
        let _ = write!(out, "{value:0width$}");
    };
    match letter {
        'y' if run <= 2 => number(moment.year % 100, out),
        'y' => {
            let _ = write!(out, "{:0run$}", moment.year);
        }
        'M' => number(moment.month, out),
        'd' => number(moment.day, out),
        'H' => number(moment.hour, out),
        'h' => number((moment.hour + 11) % 12 + 1, out),
        'm' => number(moment.minute, out),
        's' => number(moment.second, out),
        't' => out.push_str(&if moment.hour < 12 { "AM" } else { "PM" }[..run.min(2)]),
        'f' | 'F' if run <= 7 => {
            let digits = format!("{:07}", moment.fraction);
            let digits = &digits[..run];
            out.push_str(if letter == 'F' { digits.trim_end_matches('0') } else { digits });
        }
        other => (0..run).for_each(|_| out.push(other)),
    }
}

const NOW: &str = "The present moment, the same for a whole query.";

pub(super) const FUNCTIONS: &[Function] = &[
    entry(
        "DATETIMEADD",
        3,
        3,
        "part, count, date",
        "The date with `count` parts added.",
        &[
            ("DATETIMEADD('mm', 1, '2024-01-31')", "\"2024-02-29T00:00:00.0000000Z\""),
            ("DATETIMEADD('hh', -1, '2024-01-01T00:00:00Z')", "\"2023-12-31T23:00:00.0000000Z\""),
            ("DATETIMEADD('mm', 1.5, '2024-01-31')", "undefined"),
        ],
        |_, a| {
            let moved = || add(part(&a[0])?, a[1].as_i64()?, ticks(&a[2])?);
            date_text(moved())
        },
    ),
    entry(
        "DATETIMEBIN",
        2,
        4,
        "date, part [, size [, origin]]",
        "The start of the bin the date falls into; bins of `size` parts are counted from 1970 or from `origin`.",
        &[("DATETIMEBIN('2021-01-08T18:35:00', 'hh', 5)", "\"2021-01-08T15:00:00.0000000Z\"")],
        |_, a| {
            let size = a.get(2).map_or(Some(1), Eval::as_i64);
            let origin = a
                .get(3)
                .map_or(Some(0), |origin| ticks(origin).filter(|ticks| *ticks >= WINDOWS_EPOCH_TICKS));
            let start = || bin(ticks(&a[0])?, part(&a[1])?, size?, origin?);
            date_text(start())
        },
    ),
    entry(
        "DATETIMEDIFF",
        3,
        3,
        "part, start, end",
        "How many boundaries of the part lie between two dates.",
        &[
            ("DATETIMEDIFF('dd', '2024-01-01T23:00:00', '2024-01-02T01:00:00')", "1"),
            ("DATETIMEDIFF('yyyy', '2024-01-01', '2023-12-31')", "-1"),
        ],
        |_, a| {
            let between = || difference(part(&a[0])?, ticks(&a[1])?, ticks(&a[2])?);
            integer(between())
        },
    ),
    entry(
        "DATETIMEFORMAT",
        2,
        2,
        "date, pattern",
        "The date by a pattern of `yyyy MM dd HH mm ss fff`; a backslash takes the next character as it is.",
        &[("DATETIMEFORMAT('2024-10-10 14:40:20', 'yyyy/MM/dd HH:mm')", "\"2024/10/10 14:40\"")],
        |_, a| match (moment(&a[0]), a[1].as_str()) {
            (Some(moment), Some(pattern)) => Eval::text(format(&moment, pattern)),
            _ => Eval::Undefined,
        },
    ),
    entry(
        "DATETIMEFROMPARTS",
        3,
        7,
        "year, month, day [, hour, minute, second, hundredNanoseconds]",
        "The date of its parts.",
        &[
            ("DATETIMEFROMPARTS(2024, 2, 29)", "\"2024-02-29T00:00:00.0000000Z\""),
            ("DATETIMEFROMPARTS(2023, 2, 29)", "undefined"),
        ],
        |_, a| date_text(from_parts(a)),
    ),
    entry(
        "DATETIMEPART",
        2,
        2,
        "part, date",
        "A part of a date.",
        &[("DATETIMEPART('mcs', '2020-01-02T03:04:05.6789123Z')", "678912")],
        |_, a| match (part(&a[0]), moment(&a[1])) {
            (Some(part), Some(moment)) => Eval::integer(part_value(part, &moment)),
            _ => Eval::Undefined,
        },
    ),
    entry(
        "DATETIMETOTICKS",
        1,
        1,
        "date",
        "Steps of 100 nanoseconds since 1970.",
        &[("DATETIMETOTICKS('1970-01-01T00:00:01Z')", "10000000")],
        |_, a| integer(ticks(&a[0])),
    ),
    entry(
        "DATETIMETOTIMESTAMP",
        1,
        1,
        "date",
        "Milliseconds since 1970.",
        &[("DATETIMETOTIMESTAMP('1970-01-02')", "86400000")],
        |_, a| integer(ticks(&a[0]).map(|ticks| ticks.div_euclid(TICKS_PER_MILLISECOND))),
    ),
    entry(
        "TICKSTODATETIME",
        1,
        1,
        "ticks",
        "The date of a number of 100-nanosecond steps since 1970.",
        &[("TICKSTODATETIME(0)", "\"1970-01-01T00:00:00.0000000Z\"")],
        |_, a| date_text(a[0].as_i64()),
    ),
    entry(
        "TIMESTAMPTODATETIME",
        1,
        1,
        "milliseconds",
        "The date of a number of milliseconds since 1970.",
        &[("TIMESTAMPTODATETIME(1)", "\"1970-01-01T00:00:00.0010000Z\"")],
        |_, a| date_text(a[0].as_i64().and_then(|value| value.checked_mul(TICKS_PER_MILLISECOND))),
    ),
    entry("YEAR", 1, 1, "date", "The year.", &[("YEAR('2024-02-29')", "2024")], |_, a| {
        integer(moment(&a[0]).map(|moment| moment.year))
    }),
    entry("MONTH", 1, 1, "date", "The month, 1 to 12.", &[("MONTH('2024-02-29')", "2")], |_, a| {
        integer(moment(&a[0]).map(|moment| moment.month))
    }),
    entry("DAY", 1, 1, "date", "The day of the month.", &[("DAY('2024-02-29')", "29")], |_, a| {
        integer(moment(&a[0]).map(|moment| moment.day))
    }),
    entry(
        "NOW",
        0,
        2,
        "[part, count]",
        "The present moment, or one `count` parts later.",
        &[],
        |context, a| date_text(moved(context, a, 1)),
    )
    .changes(),
    entry("AGO", 2, 2, "part, count", "The moment `count` parts ago.", &[], |context, a| {
        date_text(moved(context, a, -1))
    })
    .changes(),
    entry("GETCURRENTDATETIME", 0, 0, "", NOW, &[], |context, _| date_text(Some(context.now_ticks)))
        .changes(),
    entry("GETCURRENTDATETIMESTATIC", 0, 0, "", NOW, &[], |context, _| date_text(Some(context.now_ticks)))
        .changes(),
    entry(
        "GETCURRENTTICKS",
        0,
        0,
        "",
        "The present in 100-nanosecond steps since 1970.",
        &[],
        |context, _| Eval::integer(context.now_ticks),
    )
    .changes(),
    entry(
        "GETCURRENTTICKSSTATIC",
        0,
        0,
        "",
        "The present in 100-nanosecond steps since 1970.",
        &[],
        |context, _| Eval::integer(context.now_ticks),
    )
    .changes(),
    entry("GETCURRENTTIMESTAMP", 0, 0, "", "The present in milliseconds since 1970.", &[], |context, _| {
        Eval::integer(context.now_ticks / TICKS_PER_MILLISECOND)
    })
    .changes(),
    entry(
        "GETCURRENTTIMESTAMPSTATIC",
        0,
        0,
        "",
        "The present in milliseconds since 1970.",
        &[],
        |context, _| Eval::integer(context.now_ticks / TICKS_PER_MILLISECOND),
    )
    .changes(),
];
