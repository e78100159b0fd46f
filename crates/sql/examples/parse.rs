//! Reads queries from standard input, separated by NUL bytes, and prints one line for each: its normal
//! form, or the error. Handy for looking at what the parser makes of a text, and for running lists of
//! queries through it.

use std::io::{Read, Write};

fn main() -> std::io::Result<()> {
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input)?;
    let mut output = std::io::stdout().lock();
    for text in input.split('\0') {
        match orrery_sql::parse_query(text) {
            Ok(query) => writeln!(output, "ok {}", query.to_string().replace('\n', " "))?,
            Err(error) => writeln!(
                output,
                "error {} {}..{} {}",
                error.code,
                error.start,
                error.end,
                error.message.replace('\n', " ")
            )?,
        }
    }
    Ok(())
}
