//! `orrery cert` exports what servers present: of a data directory, and of those that keep nothing.

use std::path::Path;
use std::process::Command;

fn exported(home: &Path, variables: &[(&str, &str)]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_orrery"))
        .arg("cert")
        .env_clear()
        .env("HOME", home)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn one_certificate_of_a_user_serves_with_and_without_a_directory() {
    let home = tempfile::tempdir().unwrap();
    let certificate = exported(home.path(), &[]);
    assert!(certificate.starts_with("-----BEGIN CERTIFICATE-----"), "{certificate}");
    assert!(!certificate.contains("PRIVATE KEY"));
    assert_eq!(exported(home.path(), &[("ORRERY_EPHEMERAL", "true")]), certificate);
}
