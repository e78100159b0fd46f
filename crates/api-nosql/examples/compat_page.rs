//! Writes the page about REST routes from the table in the code: `compat_page FILE` (see `cargo xtask docs`).

use std::process::ExitCode;

const INTRODUCTION: &str = "\
# REST routes

What this server does about each route of the NoSQL API. `supported` means as the service does it, `partial` that the
note names what is missing.

This page is made from the table in `crates/api-nosql/src/compat_table.rs` by `cargo xtask docs`; change it there.

";

fn main() -> ExitCode {
    let Some(file) = std::env::args().nth(1) else {
        eprintln!("usage: compat_page FILE");
        return ExitCode::FAILURE;
    };
    match std::fs::write(&file, format!("{INTRODUCTION}{}", orrery_api_nosql::support_table())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cannot write {file}: {error}");
            ExitCode::FAILURE
        }
    }
}
