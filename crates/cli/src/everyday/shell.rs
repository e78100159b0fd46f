//! The shell of `orrery query`: a line at a time, with history and completion.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor};
use serde_json::Value;

use super::query_run::{Query, Rows, run as run_query};
use super::shell_helper::{COMMANDS, Helper};
use super::{charge, container_name, counted, table};
use crate::account::{Account, Place, read_all};
use crate::workload::Target;

const HISTORY_LINES: usize = 10_000;
/// Items of which properties are learned for completion.
const SAMPLE_ITEMS: u64 = 20;

struct Shell {
    account: Account,
    /// As it was named, and where it is.
    container: Option<(String, Place)>,
    tables: bool,
    limit: u64,
}

pub fn run(target: Arc<Target>, container: Option<String>, limit: u64) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let config = Config::builder().max_history_size(HISTORY_LINES)?.auto_add_history(true).build();
    let mut editor: Editor<Helper, FileHistory> = Editor::with_config(config)?;
    editor.set_helper(Some(Helper::default()));
    let history = history_file();
    if let Some(path) = &history {
        // The first time there is none.
        let _ = editor.load_history(path);
    }
    let mut shell = Shell { account: Account::new(target), container: None, tables: true, limit };
    println!("A query, or .help; Ctrl+D ends.");
    if let Some(name) = container {
        runtime.block_on(shell.choose(&name, editor.helper_mut()))?;
    }
    loop {
        let prompt = shell.container.as_ref().map_or("orrery> ".to_owned(), |(name, _)| format!("{name}> "));
        match editor.readline(&prompt) {
            Ok(line) if line.trim().is_empty() => {}
            Ok(line) if matches!(line.trim(), ".quit" | ".exit") => break,
            Ok(line) => {
                let done = runtime.block_on(shell.line(line.trim(), editor.helper_mut()));
                if let Err(error) = done {
                    eprintln!("{error:#}");
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => break,
            Err(error) => bail!(error),
        }
    }
    if let Some(path) = history {
        let _ = editor.save_history(&path);
    }
    Ok(())
}

/// Where the platform has such files; nothing is kept for a process without a home.
fn history_file() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let base = variable("XDG_STATE_HOME").or_else(|| Some(variable("HOME")?.join(".local/state")))?;
    let directory = base.join("orrery");
    std::fs::create_dir_all(&directory).ok()?;
    Some(directory.join("query-history"))
}

impl Shell {
    async fn line(&mut self, line: &str, helper: Option<&mut Helper>) -> Result<()> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            ".help" => {
                for (name, help) in COMMANDS {
                    println!("  {name:<22} {help}");
                }
                Ok(())
            }
            ".use" => self.choose(rest, helper).await,
            ".containers" => self.containers().await,
            ".mode" => {
                self.tables = match rest {
                    "table" => true,
                    "json" => false,
                    _ => bail!("allowed: .mode table, .mode json"),
                };
                Ok(())
            }
            ".limit" => {
                self.limit =
                    rest.parse().ok().filter(|limit| *limit > 0).context("allowed: .limit NUMBER")?;
                Ok(())
            }
            ".explain" => self.query(rest, true, helper).await,
            _ if word.starts_with('.') => bail!("{word} is no command; .help lists them"),
            _ => self.query(line.trim_end_matches(';'), false, helper).await,
        }
    }

    async fn choose(&mut self, name: &str, helper: Option<&mut Helper>) -> Result<()> {
        let (database, container) = container_name(name)?;
        let place = Place::container(database, container);
        self.account.send(&place.call(http::Method::GET)).await?;
        self.container = Some((name.to_owned(), place));
        let sample = self.rows("SELECT * FROM c", SAMPLE_ITEMS, false).await?;
        if let Some(helper) = helper {
            helper.learn(&parsed(&sample));
        }
        Ok(())
    }

    async fn containers(&mut self) -> Result<()> {
        for database in read_all(&mut self.account, &Place::account(), "dbs", "Databases").await? {
            let name = database["id"].as_str().unwrap_or_default().to_owned();
            let containers =
                read_all(&mut self.account, &Place::database(&name), "colls", "DocumentCollections").await?;
            for container in containers {
                println!("{name}/{}", container["id"].as_str().unwrap_or_default());
            }
        }
        Ok(())
    }

    async fn rows(&mut self, sql: &str, limit: u64, explain: bool) -> Result<Rows> {
        let (_, place) = self.container.as_ref().context("choose a container first: .use DB/CONTAINER")?;
        let query = Query { sql: sql.to_owned(), parameters: Vec::new(), key: None, limit, explain };
        run_query(&mut self.account, place, &query, |_| {}).await
    }

    async fn query(&mut self, sql: &str, explain: bool, helper: Option<&mut Helper>) -> Result<()> {
        let began = std::time::Instant::now();
        let found = self.rows(sql, self.limit, explain).await?;
        let rows = parsed(&found);
        if explain {
            found.plan.iter().for_each(|line| println!("{line}"));
        } else if self.tables {
            print!("{}", table::render(&rows));
        } else {
            found.rows.iter().for_each(|row| println!("{row}"));
        }
        let more = if found.more { ", and there are more (.limit)" } else { "" };
        println!(
            "{}{more}, {}, {}, {:.1} ms",
            counted(found.rows.len(), "row"),
            counted(found.pages as usize, "page"),
            charge(found.charge_ru),
            began.elapsed().as_secs_f64() * 1000.0
        );
        if let Some(helper) = helper {
            helper.learn(&rows);
        }
        Ok(())
    }
}

fn parsed(rows: &Rows) -> Vec<Value> {
    rows.rows.iter().filter_map(|row| serde_json::from_str(row).ok()).collect()
}
