//! The steps of the language as a page, from their table.

use std::fmt::Write as _;

use orrery_gremlin::{Known, steps};

/// The tables of the page about the Gremlin API.
pub fn page() -> String {
    let mut page = String::from("## Steps\n\n");
    let groups = [
        (Known::Documented, "Documented by Cosmos DB"),
        (Known::Seen, "Taken by Cosmos DB without being documented"),
        (Known::TinkerPop, "Of TinkerPop, beyond Cosmos DB"),
        (Known::Nobody, "Known and refused"),
    ];
    for (known, heading) in groups {
        let listed: Vec<_> = steps().iter().filter(|step| step.known == known).collect();
        let _ = writeln!(page, "### {heading} ({})\n\n| step | what it does |\n|---|---|", listed.len());
        for step in listed {
            let _ =
                writeln!(page, "| `{}` | {} |", step.usage.replace('|', "\\|"), step.doc.replace('|', "\\|"));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}
