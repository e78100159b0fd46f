//! What no compiler checks: files of a size that one reads in a sitting, each saying at its top what it is; decisions
//! in one form; no notes to self; nothing that belongs to the machine it was written on.
//!
//! The files are those that git knows or would take (`git ls-files`), so build output and what `.gitignore` names are
//! not looked at.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::steps::Outcome;

const LINES_MAX: usize = 700;
/// Columns of a comment; rustfmt sees to the code.
const COMMENT_COLUMNS_MAX: usize = 120;
/// Nothing in a source tree needs more; data of this size is generated or fetched.
const FILE_BYTES_MAX: u64 = 1_000_000;
/// Problems that are printed; the rest is only counted.
const PROBLEMS_SHOWN_MAX: usize = 50;

/// Endings of files that people read and write.
const CODE: &[&str] = &["rs", "py", "js", "mjs", "css", "go", "java", "sh"];

/// Written by tools, of whatever size they need.
const LOCK_FILES: &[&str] = &["Cargo.lock", "package-lock.json", "go.sum"];

/// Modules of others, minified.
const VENDORED: &str = "crates/portal/web/vendor/";

/// Notes to self. In halves, so that this file holds none of them itself.
const NOTES: &[&str] = &[
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("XX", "X:"),
    concat!("todo", "!("),
    concat!("unimpl", "emented!("),
    concat!("dbg", "!("),
];

/// Places on somebody's machine: where they stand at the start of a path, a file was not written for everybody.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
    concat!("/Us", "ers/"),
    concat!("C:\\Us", "ers\\"),
];

/// Homes that tests and examples may name, because they are nobody's.
const NOBODYS: &[&str] = &[concat!("/ho", "me/nobody"), concat!("/ho", "me/you"), concat!("/Us", "ers/you")];

/// The only hosts that lock files may name.
const PUBLIC_REGISTRIES: &[&str] = &["https://github.com/rust-lang/crates.io-index"];

pub fn run(context: &Context) -> Result<Outcome> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&context.root)
        .output()
        .context("git is needed to list the files")?;
    if !listed.status.success() {
        bail!("git ls-files failed: {}", String::from_utf8_lossy(&listed.stderr).trim());
    }
    let names = String::from_utf8(listed.stdout).context("a file name is not UTF-8")?;
    let mut problems = Vec::new();
    let mut count = 0;
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let path = context.root.join(name);
        // Listed but deleted in the work tree, or a link to elsewhere: not a file of ours.
        let Ok(metadata) = std::fs::symlink_metadata(&path) else { continue };
        if !metadata.is_file() {
            continue;
        }
        count += 1;
        if metadata.len() > FILE_BYTES_MAX {
            problems.push(format!("{name}: {} bytes, more than {FILE_BYTES_MAX}", metadata.len()));
            continue;
        }
        // What is not text (pictures, archives) has no words to look at.
        if let Ok(text) = std::fs::read_to_string(&path) {
            find_problems(name, &text, &mut problems);
        }
    }
    if problems.is_empty() {
        return Ok(Outcome::Passed(format!("{count} files")));
    }
    let shown = problems.iter().take(PROBLEMS_SHOWN_MAX).cloned().collect::<Vec<_>>().join("\n  ");
    bail!("{} things are not tidy:\n  {shown}", problems.len());
}

fn is_wide_comment(line: &str) -> bool {
    line.len() > COMMENT_COLUMNS_MAX
        && line.trim_start().starts_with("//")
        && line.chars().count() > COMMENT_COLUMNS_MAX
}

/// The parts that every decision has, in their order; `docs/adr/README.md` shows the form.
const DECISION_PARTS: &[&str] = &["# ", "Status: ", "## Context", "## Decision", "## Consequences"];

fn find_missing_parts(name: &str, text: &str, problems: &mut Vec<String>) {
    let mut lines = text.lines();
    for part in DECISION_PARTS {
        if !lines.any(|line| line.starts_with(part)) {
            problems.push(format!("{name}: misses '{}', or it stands elsewhere", part.trim()));
            return;
        }
    }
}

fn find_problems(name: &str, text: &str, problems: &mut Vec<String>) {
    let path = Path::new(name);
    let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    if LOCK_FILES.contains(&file) {
        return find_private_registries(name, text, problems);
    }
    // Made by a tool from packages of others; checked by its hashes.
    if name.starts_with(VENDORED) {
        return;
    }
    let code = CODE.contains(&ending);
    let lines = text.lines().count();
    if code && lines > LINES_MAX {
        problems.push(format!("{name}: {lines} lines, more than {LINES_MAX}; are these two ideas?"));
    }
    if ending == "rs" && !text.trim_start().starts_with("//!") {
        problems.push(format!("{name}:1: does not begin with //! and what this file is"));
    }
    if name.starts_with("docs/adr/") && file != "README.md" {
        find_missing_parts(name, text, problems);
    }
    for (number, line) in text.lines().enumerate() {
        let mut report = |what: &str| problems.push(format!("{name}:{}: {what}", number + 1));
        if code {
            for note in NOTES.iter().filter(|note| line.contains(*note)) {
                report(&format!("a note to self: {note}"));
            }
        }
        for place in MACHINE_PATHS.iter().filter(|place| begins_a_path(line, place)) {
            report(&format!("a path of somebody's machine: {place}"));
        }
        if line.starts_with(concat!("<<<<", "<<< ")) || line.starts_with(concat!(">>>>", ">>> ")) {
            report("a merge was left unfinished");
        }
        if ending == "rs" && is_wide_comment(line) {
            report(&format!("a comment of more than {COMMENT_COLUMNS_MAX} columns"));
        }
        if line.ends_with([' ', '\t']) && code {
            report("blanks at the end of the line");
        }
    }
}

/// A match counts only where a path begins, so that `/address/work/…` in some test data does not.
fn begins_a_path(line: &str, place: &str) -> bool {
    line.match_indices(place).any(|(at, _)| {
        if NOBODYS.iter().any(|home| line[at..].starts_with(home)) {
            return false;
        }
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"_-./~".contains(before))
    })
}

fn find_private_registries(name: &str, text: &str, problems: &mut Vec<String>) {
    for (number, line) in text.lines().enumerate() {
        let Some(at) = line.find("https://").or_else(|| line.find("http://")) else { continue };
        let names_source = line.contains("\"resolved\"") || line.starts_with("source =");
        if names_source && !PUBLIC_REGISTRIES.iter().any(|host| line[at..].starts_with(host)) {
            problems.push(format!("{name}:{}: names a registry that not everybody reaches", number + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, text: &str, expect: usize) {
        let mut problems = Vec::new();
        find_problems(name, text, &mut problems);
        assert_eq!(problems.len(), expect, "{name}: {problems:?}");
    }

    #[test]
    fn a_file_says_what_it_is() {
        check("a.rs", "//! What this is.\nfn main() {}\n", 0);
        check("a.rs", "fn main() {}\n", 1);
        check("a.py", "print()\n", 0);
    }

    #[test]
    fn a_file_is_no_longer_than_it_may_be() {
        check("a.js", &"x\n".repeat(LINES_MAX), 0);
        check("a.js", &"x\n".repeat(LINES_MAX + 1), 1);
        check("a.json", &"x\n".repeat(LINES_MAX + 1), 0);
    }

    #[test]
    fn comments_are_no_wider_than_they_may_be() {
        let comment = |columns: usize| format!("//! x\n    // {}\n", "…".repeat(columns - 7));
        check("a.rs", &comment(COMMENT_COLUMNS_MAX), 0);
        check("a.rs", &comment(COMMENT_COLUMNS_MAX + 1), 1);
        check("a.rs", &format!("//! x\n\"{}\"\n", "x".repeat(200)), 0);
    }

    #[test]
    fn decisions_have_one_form() {
        let whole =
            "# 1. So\n\nStatus: accepted.\n\n## Context\n\n## Decision\n\n## Reasons\n\n## Consequences\n";
        check("docs/adr/0001-so.md", whole, 0);
        check("docs/adr/0001-so.md", &whole.replace("Decision", "Choice"), 1);
        check("docs/adr/0001-so.md", &whole.replace("Status: accepted.\n", ""), 1);
        check("docs/adr/README.md", "# Decisions\n", 0);
    }

    #[test]
    fn notes_and_places_are_found() {
        check("a.rs", &format!("//! {}\n", NOTES[0]), 1);
        check("a.md", &format!("see {}x\n", MACHINE_PATHS[0]), 1);
        check("a.md", &format!("\"{}x\"\n", MACHINE_PATHS[1]), 1);
        check("a.md", &format!("/address{}street\n", MACHINE_PATHS[0]), 0);
        check("a.md", &format!("HOME={}\n", NOBODYS[0]), 0);
    }

    #[test]
    fn lock_files_name_public_registries_only() {
        check("Cargo.lock", "source = \"registry+https://github.com/rust-lang/crates.io-index\"\n", 0);
        check("Cargo.lock", "source = \"registry+https://example.com/index\"\n", 1);
        check("package-lock.json", "  \"resolved\": \"https://npm.example.com/x.tgz\"\n", 1);
    }
}
