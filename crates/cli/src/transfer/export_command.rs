//! `orrery export`: what its flags mean.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::export::{Export, run as run_export};
use super::format::{FORMATS, Format, is_stdin};
use super::import_command::{connections, format_of, with_suffix};
use super::{dump, progress};
use crate::Usage;
use crate::account::{EXIT_CODES_HELP, Place, target, with_account_flags};

pub fn command() -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let path = |name, value, help| text(name, value, help).value_parser(clap::value_parser!(PathBuf));
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).help(help).action(ArgAction::SetTrue)
    };
    let mut after = String::from("Formats:\n");
    for (name, _, help) in FORMATS {
        after.push_str(&format!("  {name:<10} {help}\n"));
    }
    after.push_str(
        "\nAn export that was interrupted goes on where it was when the same command is run again. It is not a picture of one moment: \
         items that change meanwhile are there as they were before or after.\n",
    );
    after.push_str(EXIT_CODES_HELP);
    let command = Command::new("export")
        .about("Write the items of a container to a file; or a whole account to a directory")
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Where to; - is standard output (jsonl only)"),
        )
        .arg(text("db", "NAME", "The database"))
        .arg(text("container", "NAME", "The container"))
        .arg(text("format", "NAME", "The format of the file [default: by its name, else jsonl]"))
        .arg(switch("system-properties", "Keep _ts, _etag, _rid, _self and _attachments"))
        .arg(text("connections", "N", "Requests at once, at most").default_value("8"))
        .arg(path("state", "FILE", "Where to keep how far the export is [default: beside the file]"))
        .arg(switch("restart", "Begin anew, whatever the state says"))
        .arg(path(
            "all",
            "DIR",
            "Write the whole account to this directory: definitions, throughput, scripts, items",
        ))
        .arg(switch("json", "Print one JSON object instead of text"))
        .after_help(after);
    with_account_flags(command)
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(async {
        let target = target(matches)?;
        let readers = connections(matches)?;
        let as_json = matches.get_flag("json");
        if let Some(directory) = matches.get_one::<PathBuf>("all") {
            let dumped = dump::dump(target, directory, readers).await?;
            dump::report("exported", &dumped, directory, as_json);
            return Ok(());
        }
        let needed = |name: &str| {
            let given = matches.get_one::<String>(name).cloned();
            given.ok_or_else(|| Usage(format!("--{name} is needed (or --all for a whole account)")))
        };
        let to = matches.get_one::<PathBuf>("file").cloned();
        let to = to.ok_or_else(|| Usage("the name of a file is needed; - is standard output".into()))?;
        let format = format_of(matches, &to)?;
        let stdout = is_stdin(&to);
        if stdout && format != Format::JsonLines {
            return Err(Usage("standard output takes jsonl only".into()).into());
        }
        let state = matches.get_one::<PathBuf>("state").cloned();
        let export = Export {
            target,
            place: Place::container(&needed("db")?, &needed("container")?),
            state: state.or_else(|| (!stdout).then(|| with_suffix(&to, ".export-state"))),
            to,
            format,
            system: matches.get_flag("system-properties"),
            readers,
            restart: matches.get_flag("restart"),
        };
        let (meter, bar) = (progress::Meter::default(), progress::bar(None, !as_json && !stdout));
        let (counts, elapsed) = run_export(&export, &meter, &bar).await?;
        let summary = progress::summary("exported", &counts, &meter, elapsed, as_json);
        match stdout {
            true => eprintln!("{summary}"),
            false => println!("{summary}"),
        }
        Ok(())
    })
}
