//! The programs of `docs/concepts`, run as a reader would. Each page has one block of Python and, after it, one block
//! of text: what it prints.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::process::Task;
use crate::server::{KEY, Server};

const DIRECTORY: &str = "docs/concepts";
const SECONDS_MAX: u64 = 120;

/// Runs every page with the Python that the suite has installed below `work`; answers how many there were.
pub fn run(context: &Context, work: &Path, server: &Server) -> Result<usize> {
    let mut pages: Vec<_> = std::fs::read_dir(context.root.join(DIRECTORY))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<Vec<_>>>()?;
    pages
        .retain(|page| page.extension().is_some_and(|ending| ending == "md") && !page.ends_with("README.md"));
    pages.sort();
    for page in &pages {
        let name = page.file_stem().context("a page has a name")?.to_string_lossy().into_owned();
        let text = std::fs::read_to_string(page)?;
        let (program, expected) = program_and_output(&text)
            .with_context(|| format!("{name}.md: no program, or no output after it"))?;
        let file = work.join(format!("concept-{name}.py"));
        std::fs::write(&file, program)?;
        let printed = Task::new(context, work.join("venv/bin/python"))
            .arg(&file)
            .env("COSMOS_ENDPOINT", server.endpoint("http"))
            .env("COSMOS_KEY", KEY)
            .limit_seconds(SECONDS_MAX)
            .run_logged(&format!("concept-{name}"))?;
        if printed.trim() != expected.trim() {
            bail!("{name}.md: its program printed\n{}\ninstead of\n{}", printed.trim(), expected.trim());
        }
    }
    Ok(pages.len())
}

/// The block of Python, and the block of text that follows it.
fn program_and_output(page: &str) -> Option<(&str, &str)> {
    let (program, rest) = block(page, "```python\n")?;
    let (output, _) = block(rest, "```text\n")?;
    Some((program, output))
}

fn block<'t>(text: &'t str, fence: &str) -> Option<(&'t str, &'t str)> {
    text.split_once(fence)?.1.split_once("```\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_a_picture_a_program_and_its_output() {
        let page = "# A\n```text\npicture\n```\n```python\nprint(1)\n```\n\n```text\n1\n```\nend\n";
        assert_eq!(program_and_output(page), Some(("print(1)\n", "1\n")));
        assert_eq!(program_and_output("```text\n1\n```\n"), None);
    }
}
