//! The official SDKs, unmodified from their registries, against the server over plain HTTP and over TLS.
//!
//! Each language is a small program in `tests/sdk/<language>` that takes the endpoint, the key and the certificate
//! from the environment and ends with the line `N passed, N failed`. This module installs what the program needs
//! below `target/sdk/<language>` and runs it twice. A language whose toolchain is absent is skipped with a line that
//! says so.
//!
//! `tests/sdk/old` has the clients of 2015 to 2020 that are still in use, as programs of the same kind. Some of them
//! know one of the two schemes only.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};

use crate::Context;
use crate::process::{Task, exists};
use crate::server::{KEY, Server};
use crate::steps::{Outcome, build};
use crate::{concepts, examples, second_try};

/// One language: the programs that must exist, how to prepare its suite, and the command that runs it.
struct Language {
    name: &'static str,
    tools: Tools,
    /// What the client can speak.
    schemes: &'static [&'static str],
    prepare: fn(&Context, &SuiteDirectories) -> Result<()>,
    suite: fn(&Context, &SuiteDirectories) -> Result<Task>,
}

/// The servers that suites talk to.
struct Servers {
    usual: Server,
    merging: Server,
    throttling: Server,
    strong: Server,
}

/// Where a suite's sources are, and where it may install and build.
pub struct SuiteDirectories {
    pub sources: PathBuf,
    pub work: PathBuf,
}

type Tools = &'static [(&'static str, &'static str)];

const BOTH: &[&str] = &["http", "https"];
const PYTHON: Tools = &[("python3", "--version")];
const NODE: Tools = &[("node", "--version"), ("npm", "--version")];
const JAVA: Tools = &[("java", "-version"), ("mvn", "--version")];

const LANGUAGES: &[Language] = &[
    Language { name: "python", tools: PYTHON, schemes: BOTH, prepare: prepare_python, suite: suite_python },
    Language {
        name: "python-old",
        tools: PYTHON,
        schemes: BOTH,
        prepare: prepare_python,
        suite: |context, place| {
            Ok(Task::new(context, place.work.join("venv/bin/python"))
                .arg(place.sources.join("quick_start.py")))
        },
    },
    Language {
        name: "javascript",
        tools: NODE,
        schemes: BOTH,
        prepare: prepare_javascript,
        suite: suite_javascript,
    },
    Language { name: "java", tools: JAVA, schemes: BOTH, prepare: prepare_java, suite: suite_java },
    Language {
        name: "go",
        tools: &[("go", "version")],
        schemes: BOTH,
        prepare: prepare_go,
        suite: |context, place| Ok(Task::new(context, place.work.join("suite"))),
    },
    Language {
        name: "rust",
        tools: &[],
        schemes: BOTH,
        prepare: prepare_rust,
        suite: |context, place| Ok(Task::new(context, place.work.join("debug/orrery-sdk-suite"))),
    },
    Language {
        name: "tables/python",
        tools: PYTHON,
        schemes: BOTH,
        prepare: prepare_python,
        suite: suite_python,
    },
    Language {
        name: "tables/javascript",
        tools: NODE,
        schemes: BOTH,
        prepare: prepare_javascript,
        suite: suite_javascript,
    },
    Language {
        name: "tables/go",
        tools: &[("go", "version")],
        schemes: BOTH,
        prepare: prepare_go,
        suite: |context, place| Ok(Task::new(context, place.work.join("suite"))),
    },
    Language { name: "tables/java", tools: JAVA, schemes: BOTH, prepare: prepare_java, suite: suite_java },
    Language {
        name: "gremlin/python",
        tools: PYTHON,
        schemes: BOTH,
        prepare: prepare_python,
        suite: suite_python,
    },
    Language {
        name: "gremlin/javascript",
        tools: NODE,
        schemes: BOTH,
        prepare: prepare_javascript,
        suite: suite_javascript,
    },
    Language {
        name: "gremlin/go",
        tools: &[("go", "version")],
        schemes: BOTH,
        prepare: prepare_go,
        suite: |context, place| Ok(Task::new(context, place.work.join("suite"))),
    },
    Language {
        name: "mongo/mongoose",
        tools: NODE,
        schemes: BOTH,
        prepare: prepare_javascript,
        suite: suite_javascript,
    },
    Language {
        name: "mongo/go",
        tools: &[("go", "version")],
        schemes: BOTH,
        prepare: prepare_go,
        suite: |context, place| Ok(Task::new(context, place.work.join("suite"))),
    },
    Language { name: "gremlin/java", tools: JAVA, schemes: BOTH, prepare: prepare_java, suite: suite_java },
    Language { name: "mongo/java", tools: JAVA, schemes: BOTH, prepare: prepare_java, suite: suite_java },
    Language {
        name: "mongo/python",
        tools: PYTHON,
        schemes: BOTH,
        prepare: prepare_python,
        suite: suite_python,
    },
    Language {
        name: "old/python",
        tools: PYTHON,
        schemes: BOTH,
        prepare: prepare_python,
        suite: suite_python,
    },
    Language {
        name: "old/pydocumentdb",
        tools: PYTHON,
        schemes: BOTH,
        prepare: prepare_python,
        suite: suite_python,
    },
    Language {
        name: "old/documentdb",
        tools: NODE,
        schemes: BOTH,
        prepare: prepare_old_javascript,
        suite: suite_javascript,
    },
    Language {
        name: "old/cosmos2",
        tools: NODE,
        schemes: BOTH,
        prepare: prepare_old_javascript,
        suite: suite_javascript,
    },
    Language {
        name: "old/cosmos3",
        tools: NODE,
        schemes: &["https"],
        prepare: prepare_old_javascript,
        suite: suite_javascript,
    },
    Language {
        name: "old/cosmosdb-table",
        tools: PYTHON,
        schemes: BOTH,
        prepare: prepare_python,
        suite: suite_python,
    },
    Language {
        name: "old/storage-tables",
        tools: NODE,
        schemes: BOTH,
        prepare: prepare_javascript,
        suite: suite_javascript,
    },
    Language {
        name: "old/storage-tables-java",
        tools: JAVA,
        schemes: BOTH,
        prepare: prepare_java,
        suite: suite_java,
    },
    Language {
        name: "old/gremlin-python",
        tools: PYTHON,
        schemes: BOTH,
        prepare: prepare_python,
        suite: suite_python,
    },
    Language {
        name: "old/gremlin-javascript",
        tools: NODE,
        schemes: BOTH,
        prepare: prepare_javascript,
        suite: suite_javascript,
    },
    Language {
        name: "old/gremlin-java",
        tools: JAVA,
        schemes: BOTH,
        prepare: prepare_java,
        suite: suite_java,
    },
    Language { name: "old/java", tools: JAVA, schemes: &["https"], prepare: prepare_java, suite: suite_java },
];

/// Those that `--quick` runs: they install in seconds.
const QUICK: [&str; 2] = ["python", "python-old"];

const INSTALL_SECONDS_MAX: u64 = 900;
const SUITE_SECONDS_MAX: u64 = 300;

pub fn run(context: &Context) -> Result<Outcome> {
    let mut ready = Vec::new();
    let mut notes = Vec::new();
    for language in select(context)? {
        if let Some((missing, _)) =
            language.tools.iter().find(|(program, argument)| !exists(program, argument))
        {
            println!("SKIPPED {}: there is no {missing} here", language.name);
            notes.push(format!("{} skipped (no {missing})", language.name));
            continue;
        }
        let place = place(context, language.name)?;
        let begun = Instant::now();
        (language.prepare)(context, &place)
            .with_context(|| format!("cannot prepare the {} suite", language.name))?;
        println!("{} is ready after {:.1} s", language.name, begun.elapsed().as_secs_f64());
        ready.push((language, place));
    }
    if ready.is_empty() {
        return Ok(Outcome::Skipped(notes.join("; ")));
    }
    build(context)?;
    let server = Server::start(context, "sdk")?;
    // For SDKs without a query engine: a second server, which merges for them.
    let merging = Server::start_with(context, "sdk-merging", &["--cross-partition-queries", "server"])?;
    // For what SDKs do when throughput is enforced: a third one.
    let throttling = Server::start_with(context, "sdk-throttling", &["--throttling", "on"])?;
    // For what SDKs in direct mode do when two replicas must agree: a fourth one.
    let strong = Server::start_with(context, "sdk-strong", &["--consistency", "strong"])?;
    let servers = Servers { usual: server, merging, throttling, strong };
    let certificate = certificates(context, &servers)?;
    let mut failed = false;
    for (language, place) in &ready {
        for scheme in language.schemes {
            let begun = Instant::now();
            let name = format!("{} {scheme}", language.name);
            let run = || run_suite(context, language, place, &servers, scheme, &certificate);
            let line = match second_try::suite(&name, run) {
                Ok((line, note)) => format!("{line} {note}").trim().to_owned(),
                Err(error) => {
                    failed = true;
                    format!("FAILED, {error}")
                }
            };
            println!("{} over {scheme}: {line} ({:.1} s)", language.name, begun.elapsed().as_secs_f64());
            notes.push(format!("{name} {line}"));
        }
    }
    for (language, place) in &ready {
        match examples::run(context, language.name, &place.work, [&servers.usual, &servers.merging]) {
            Ok(false) => {}
            Ok(true) => {
                println!("{} example: as expected", language.name);
                notes.push(format!("{} example ok", language.name));
            }
            Err(error) => {
                failed = true;
                println!("{} example: FAILED, {error:#}", language.name);
                notes.push(format!("{} example FAILED", language.name));
            }
        }
    }
    if let Some((_, place)) = ready.iter().find(|(language, _)| language.name == "python") {
        match concepts::run(context, &place.work, &servers.usual) {
            Ok(pages) => notes.push(format!("{pages} concepts as written")),
            Err(error) => {
                failed = true;
                println!("concepts: FAILED, {error:#}");
                notes.push("concepts FAILED".into());
            }
        }
    }
    // The file belongs to a server that is about to go.
    let _ = std::fs::remove_file(certificate);
    if failed {
        bail!("{}", notes.join("; "));
    }
    Ok(Outcome::Passed(notes.join("; ")))
}

fn place(context: &Context, language: &str) -> Result<SuiteDirectories> {
    let sources = context.root.join("tests/sdk").join(language);
    let work = context.target.join("sdk").join(language);
    std::fs::create_dir_all(&work)?;
    Ok(SuiteDirectories { sources, work })
}

/// The Python SDK, installed, for programs beside its suite.
pub fn python(context: &Context) -> Result<SuiteDirectories> {
    let place = place(context, "python")?;
    prepare_python(context, &place)?;
    Ok(place)
}

/// A proxy that serves the machine's way out has no business between a test and its server.
pub fn without_proxies(task: Task) -> Task {
    ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"]
        .into_iter()
        .fold(task, Task::without_env)
}

/// The certificates of all servers in one file.
fn certificates(context: &Context, servers: &Servers) -> Result<PathBuf> {
    let mut all = String::new();
    let mut last = PathBuf::new();
    for server in [&servers.usual, &servers.merging, &servers.throttling, &servers.strong] {
        last = server.certificate(context)?;
        all += &std::fs::read_to_string(&last)?;
        let _ = std::fs::remove_file(&last);
    }
    std::fs::write(&last, all)?;
    Ok(last)
}

fn select(context: &Context) -> Result<Vec<&'static Language>> {
    let mut words = context.words.clone();
    if words.is_empty() && context.quick {
        words.extend(QUICK.map(str::to_owned));
    }
    if words.is_empty() {
        return Ok(LANGUAGES.iter().collect());
    }
    let names = LANGUAGES.iter().map(|language| language.name).collect::<Vec<_>>().join(", ");
    let mut chosen = Vec::new();
    for word in &words {
        // `old` is all of `old/…`.
        let begins = |name: &str| name.strip_prefix(word.as_str()).is_some_and(|rest| rest.starts_with('/'));
        let before = chosen.len();
        chosen.extend(LANGUAGES.iter().filter(|language| language.name == word || begins(language.name)));
        if chosen.len() == before {
            bail!("there is no suite {word}; there are {names}");
        }
    }
    Ok(chosen)
}

/// Runs one suite to its end and gives its last line.
fn run_suite(
    context: &Context,
    language: &Language,
    place: &SuiteDirectories,
    servers: &Servers,
    scheme: &str,
    certificate: &Path,
) -> Result<String> {
    let mut task = (language.suite)(context, place)?
        .env("COSMOS_ENDPOINT", servers.usual.endpoint(scheme))
        .env("COSMOS_MERGING_ENDPOINT", servers.merging.endpoint(scheme))
        .env("COSMOS_THROTTLING_ENDPOINT", servers.throttling.endpoint(scheme))
        .env("COSMOS_STRONG_ENDPOINT", servers.strong.endpoint(scheme))
        .env("COSMOS_KEY", KEY)
        .without_env("COSMOS_CA_FILE")
        .without_env("SSL_CERT_FILE")
        .limit_seconds(SUITE_SECONDS_MAX);
    if scheme == "https" {
        // The Rust SDK takes the certificate from the second, all others from the first.
        task = task.env("COSMOS_CA_FILE", certificate).env("SSL_CERT_FILE", certificate);
    }
    let log =
        without_proxies(task).run_logged(&format!("sdk-{}-{scheme}", language.name.replace('/', "-")))?;
    let line = log.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if !line.contains(" passed, ") || !line.ends_with(" 0 failed") {
        bail!("the last line is {line:?}, not `N passed, 0 failed`");
    }
    Ok(line.to_owned())
}

/// The names of a folder's files, in order: a list written down here would be forgotten by whoever adds one.
fn files(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Whether these sources were installed already; `done` remembers them.
fn is_current(place: &SuiteDirectories, sources: &[&str]) -> Result<Option<Stamp>> {
    let mut text = String::new();
    for name in sources {
        let path = place.sources.join(name);
        text += &std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    }
    let stamp = Stamp { path: place.work.join("installed"), text };
    let current = std::fs::read_to_string(&stamp.path).is_ok_and(|before| before == stamp.text);
    Ok(if current { None } else { Some(stamp) })
}

struct Stamp {
    path: PathBuf,
    text: String,
}

impl Stamp {
    fn done(self) -> Result<()> {
        Ok(std::fs::write(self.path, self.text)?)
    }
}

fn prepare_python(context: &Context, place: &SuiteDirectories) -> Result<()> {
    let Some(stamp) = is_current(place, &["requirements.txt"])? else { return Ok(()) };
    let venv = place.work.join("venv");
    Task::new(context, "python3").args(&["-m", "venv", "--clear"]).arg(&venv).run_logged("python-venv")?;
    Task::new(context, venv.join("bin/python"))
        .args(&["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"])
        .arg(place.sources.join("requirements.txt"))
        .limit_seconds(INSTALL_SECONDS_MAX)
        .run_logged("python-install")?;
    stamp.done()
}

fn prepare_javascript(context: &Context, place: &SuiteDirectories) -> Result<()> {
    // Node looks for modules beside and above the program, so the program goes where the modules are.
    for name in files(&place.sources)? {
        std::fs::copy(place.sources.join(&name), place.work.join(&name))?;
    }
    let Some(stamp) = is_current(place, &["package.json", "package-lock.json"])? else { return Ok(()) };
    Task::new(context, "npm")
        .args(&["ci", "--silent", "--no-audit", "--no-fund"])
        .directory(&place.work)
        .limit_seconds(INSTALL_SECONDS_MAX)
        .run_logged("javascript-install")?;
    stamp.done()
}

/// Programs of the old clients share files that lie beside their folders.
fn prepare_old_javascript(context: &Context, place: &SuiteDirectories) -> Result<()> {
    let shared = place.sources.with_file_name("");
    for name in files(&shared)? {
        std::fs::copy(shared.join(&name), place.work.join(&name))?;
    }
    prepare_javascript(context, place)
}

fn suite_python(context: &Context, place: &SuiteDirectories) -> Result<Task> {
    Ok(Task::new(context, place.work.join("venv/bin/python")).arg(place.sources.join("suite.py")))
}

fn suite_javascript(context: &Context, place: &SuiteDirectories) -> Result<Task> {
    Ok(Task::new(context, "node").arg(place.work.join("suite.js")))
}

fn prepare_java(context: &Context, place: &SuiteDirectories) -> Result<()> {
    const FOLDER: &str = "src/main/java/suite";
    let mut sources = vec!["pom.xml".to_owned()];
    sources.extend(files(&place.sources.join(FOLDER))?.iter().map(|name| format!("{FOLDER}/{name}")));
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let Some(stamp) = is_current(place, &sources)? else { return Ok(()) };
    Task::new(context, "mvn")
        .args(&["--quiet", "--batch-mode", "compile", "--file"])
        .arg(place.sources.join("pom.xml"))
        .arg(format!("-DbuildDirectory={}", place.work.display()))
        .limit_seconds(INSTALL_SECONDS_MAX)
        .run_logged("java-build")?;
    stamp.done()
}

fn suite_java(context: &Context, place: &SuiteDirectories) -> Result<Task> {
    let libraries = std::fs::read_to_string(place.work.join("classpath"))?;
    let classes = place.work.join("classes");
    let path = format!("{}:{}", classes.display(), libraries.trim());
    Ok(Task::new(context, "java").args(&["-cp", &path, "suite.Suite"]))
}

fn prepare_go(context: &Context, place: &SuiteDirectories) -> Result<()> {
    Task::new(context, "go")
        .args(&["build", "-o"])
        .arg(place.work.join("suite"))
        .arg(".")
        .directory(&place.sources)
        .limit_seconds(INSTALL_SECONDS_MAX)
        .run_logged("go-build")?;
    Ok(())
}

fn prepare_rust(context: &Context, place: &SuiteDirectories) -> Result<()> {
    Task::cargo(context, &["build", "--quiet", "--locked", "--manifest-path"])
        .arg(place.sources.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&place.work)
        .limit_seconds(INSTALL_SECONDS_MAX)
        .run_logged("rust-build")?;
    Ok(())
}
