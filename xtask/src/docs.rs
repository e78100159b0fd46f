//! Pages that are made from tables in the code, so that they cannot say anything else than the code does.
//!
//! A generator is an example of a crate that writes one page to the file it is given. `cargo xtask docs` writes the
//! pages, `--check` (and `ci`) compares them with what lies in the checkout. Adding a page is one line in `PAGES`.

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::process::Task;
use crate::steps::Outcome;

struct Page {
    package: &'static str,
    example: &'static str,
    file: &'static str,
}

const PAGES: &[Page] = &[
    Page { package: "orrery-api-nosql", example: "compat_page", file: "docs/compat/rest.md" },
    Page { package: "orrery-api-nosql", example: "rntbd_page", file: "docs/compat/rntbd.md" },
    Page { package: "orrery-api-gremlin", example: "gremlin_page", file: "docs/compat/gremlin.md" },
    Page { package: "orrery-api-mongo", example: "mongo_page", file: "docs/compat/mongo.md" },
    Page { package: "orrery-api-table", example: "table_page", file: "docs/compat/table.md" },
];

const GENERATE_SECONDS_MAX: u64 = 900;

pub fn run(context: &Context) -> Result<Outcome> {
    let mut stale = Vec::new();
    for page in PAGES {
        let path = context.root.join(page.file);
        let output = context.target.join("xtask/pages").join(page.file);
        std::fs::create_dir_all(output.parent().expect("a page lies in a directory"))?;
        Task::cargo(context, &["run", "--quiet", "--package", page.package, "--example", page.example, "--"])
            .arg(&output)
            .limit_seconds(GENERATE_SECONDS_MAX)
            .run()?;
        let wanted = std::fs::read(&output).with_context(|| format!("{} wrote no page", page.example))?;
        if std::fs::read(&path).ok().as_ref() == Some(&wanted) {
            continue;
        }
        stale.push(page.file);
        if !context.check {
            std::fs::create_dir_all(path.parent().expect("a page lies in a directory"))?;
            std::fs::write(&path, wanted)?;
        }
    }
    match (stale.is_empty(), context.check) {
        (false, true) => bail!(
            "run `cargo xtask docs`; these pages say something else than the code: {}",
            stale.join(", ")
        ),
        (false, false) => Ok(Outcome::Passed(format!("wrote {}", stale.join(", ")))),
        (true, _) => Ok(Outcome::Passed(format!("{} pages", PAGES.len()))),
    }
}
