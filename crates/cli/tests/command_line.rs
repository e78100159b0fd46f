//! What the binary says: help, wrong flags and values, as files in `tests/snapshots`.
//!
//! `ORRERY_SNAPSHOTS=write cargo test -p orrery --test command_line` writes them anew; look at the difference before
//! committing it.

use std::path::Path;
use std::process::{Command, Output};

fn orrery(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_orrery"));
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("ORRERY_")) {
        command.env_remove(name);
    }
    // Help wraps at the width of the terminal; tests have none.
    command
        .args(arguments)
        .envs(variables.iter().copied())
        .env("COLUMNS", "120")
        .env("HOME", "/home/nobody")
        .env_remove("XDG_DATA_HOME");
    command.output().expect("the binary runs")
}

fn check(name: &str, arguments: &[&str], variables: &[(&str, &str)], code: i32) {
    let output = orrery(arguments, variables);
    let text = format!(
        "{}{}{}",
        String::from_utf8_lossy(&output.stdout),
        if output.stdout.is_empty() || output.stderr.is_empty() { "" } else { "--- stderr\n" },
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("ORRERY_SNAPSHOTS").is_some_and(|mode| mode == "write") {
        std::fs::write(&path, &text).expect("the snapshot can be written");
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(text == expected, "{} differs; the output is now:\n{text}", path.display());
}

#[test]
fn help_is_as_recorded() {
    check("help", &["--help"], &[], 0);
    check("help-serve", &["serve", "--help"], &[], 0);
    check("help-connect", &["connect", "--help"], &[], 0);
    check("help-cert", &["cert", "--help"], &[], 0);
    check("help-check", &["check", "--help"], &[], 0);
    check("help-repair", &["repair", "--help"], &[], 0);
    check("help-key", &["key", "--help"], &[], 0);
    check("help-script", &["script", "run", "--help"], &[], 0);
    check("help-partitions", &["partitions", "--help"], &[], 0);
    check("help-faults", &["faults", "--help"], &[], 0);
    check("help-database", &["database", "--help"], &[], 0);
    check("help-container", &["container", "create", "--help"], &[], 0);
    check("help-item", &["item", "patch", "--help"], &[], 0);
    check("help-query", &["query", "--help"], &[], 0);
    check("help-feed", &["feed", "--help"], &[], 0);
    check("help-fork", &["fork", "--help"], &[], 0);
    check("help-top", &["top", "--help"], &[], 0);
    check("help-import", &["import", "--help"], &[], 0);
    check("help-export", &["export", "--help"], &[], 0);
    check("help-advise", &["advise", "--help"], &[], 0);
    check("help-budget", &["budget", "--help"], &[], 0);
    check("help-clock", &["clock", "--help"], &[], 0);
    check("help-completions", &["completions", "--help"], &[], 0);
    check("help-workload", &["workload", "--help"], &[], 0);
    check("version", &["version"], &[], 0);
}

#[test]
fn connect_prints_what_clients_are_told() {
    check("connect", &["connect"], &[], 0);
    check(
        "connect-tls",
        &["connect", "--tls", "required", "--listen", "0.0.0.0:9000", "--account-name", "shop"],
        &[("ORRERY_KEY", "c2VjcmV0IHNlY3JldCBzZWNyZXQ=")],
        0,
    );
    check("connect-emulator", &["connect", "--table-listen", "127.0.0.1:10002"], &[], 0);
    check("connect-no-tables", &["connect", "--table-listen", "off"], &[], 0);
    check("connect-port-0", &["connect", "--listen", "127.0.0.1:0"], &[], 2);
}

#[test]
fn wrong_flags_and_values_say_what_is_allowed() {
    check("wrong-command", &["serv"], &[], 2);
    check("wrong-flag", &["serve", "--listn", "127.0.0.1:0"], &[], 2);
    check("wrong-choice", &["serve", "--durability", "fast"], &[], 2);
    check("wrong-size", &["serve", "--partition-size-limit", "many"], &[], 2);
    check("wrong-address", &["serve", "--listen", "8081"], &[], 2);
    check("wrong-key", &["serve", "--key", "not base64!"], &[], 2);
    check("twice", &["serve", "--durability", "strict", "--durability", "strict"], &[], 2);
    check("both-places", &["serve", "--ephemeral", "--data-dir", "/tmp/x"], &[], 2);
    check("open-with-known-key", &["serve", "--ephemeral", "--listen", "0.0.0.0:8081"], &[], 2);
    check("wrong-environment", &["serve"], &[("ORRERY_CONSISTENCY", "eventually")], 2);
    check("missing-file", &["serve", "--config", "/nonexistent/orrery.toml"], &[], 2);
    check(
        "wrong-rule",
        &["import", "a", "--db", "d", "--container", "c", "--partition-key", "/pk=sum(/a)"],
        &[],
        2,
    );
    check("wrong-source", &["import", "--db", "d", "--container", "c"], &[], 2);
    check("wrong-operation", &["workload", "--operations", "read,write"], &[], 2);
}

#[test]
fn an_unknown_key_of_the_file_names_the_allowed_ones() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("orrery.toml");
    std::fs::write(&path, "durabilty = 'strict'\n").unwrap();
    let output = orrery(&["serve", "--config", path.to_str().unwrap()], &[]);
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        text.contains("did you mean `durability`?") && text.contains("logical-partition-size-limit"),
        "{text}"
    );
}

#[test]
fn new_keys_are_long_and_different() {
    let make = || String::from_utf8(orrery(&["key", "new"], &[]).stdout).unwrap();
    let (one, two) = (make(), make());
    assert_eq!(one.trim().len(), 88, "64 bytes in base64");
    assert_ne!(one, two);
}

#[test]
fn the_certificate_is_exported_without_its_key_and_explained() {
    let directory = tempfile::tempdir().unwrap();
    let data_dir = directory.path().join("data");
    let data_dir = data_dir.to_str().unwrap();
    let printed = String::from_utf8(orrery(&["cert", "--data-dir", data_dir], &[]).stdout).unwrap();
    assert!(printed.starts_with("-----BEGIN CERTIFICATE-----") && !printed.contains("PRIVATE"), "{printed}");
    let out = directory.path().join("exported.pem");
    let output =
        orrery(&["cert", "--out", out.to_str().unwrap(), "--explain"], &[("ORRERY_DATA_DIR", data_dir)]);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), printed);
    let text = String::from_utf8(output.stdout).unwrap();
    for sdk in ["Python", "JavaScript", "Java ", "Go ", "Rust", ".NET"] {
        assert!(text.contains(sdk), "{sdk}\n{text}");
    }
    assert!(
        text.contains("NODE_EXTRA_CA_CERTS=") && text.contains("exported.pem") && text.contains("localhost")
    );
}
