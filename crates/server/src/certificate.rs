//! The server's own certificate: made once, kept in the data directory, exported with `orrery cert`.
//!
//! It is one self-signed certificate that clients trust directly. There is no certificate authority beside it: an
//! authority's key lying on a developer's disk could vouch for any site. Key and certificate share one file (mode
//! 0600) that appears by a rename-like link, so two processes that make it at the same time end with the same pair.
//! The names it covers are written above the PEM blocks; when a later start asks for a name that is missing, a new
//! pair is made and the log says so, because exported copies must then be exported again.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, date_time_ymd};

/// Its file in the data directory.
pub const FILE_NAME: &str = "tls.pem";
const NAMES_LINE: &str = "names: ";
const YEARS_VALID: i32 = 10;
/// Far above any certificate file: what is larger is something else.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptCertificate {
    pub certificate_pem: String,
    pub key_pem: String,
    pub names: Vec<String>,
}

/// The certificate of a data directory; made when there is none, or when it lacks one of `further_names`.
pub fn load_or_make(data_dir: &Path, further_names: &[String]) -> Result<KeptCertificate> {
    let path = data_dir.join(FILE_NAME);
    if let Some(kept) = load(&path)? {
        let missing: Vec<&String> = further_names.iter().filter(|name| !kept.names.contains(name)).collect();
        if missing.is_empty() {
            return Ok(kept);
        }
        let mut names = kept.names.clone();
        names.extend(missing.into_iter().cloned());
        let made = make(names)?;
        write_atomically(&path, &made.file_text(), Replace::Yes)?;
        tracing::warn!(file = %path.display(), "made a new certificate for a further name; export it again with `orrery cert`");
        return Ok(made);
    }
    let made = make(usual_names(further_names))?;
    match write_atomically(&path, &made.file_text(), Replace::No) {
        Ok(()) => Ok(made),
        // Another process was faster; its pair is the one.
        Err(_) if path.exists() => load(&path)?.context("the certificate vanished while it was read"),
        Err(error) => Err(error),
    }
}

/// For a server that keeps nothing: the pair of the data directory that it would have used, which is the one that
/// `orrery cert` exports. A process without a home, or on a disk that cannot be written, gets one in memory.
pub fn of_ephemeral(data_dir: &Path, further_names: &[String]) -> Result<KeptCertificate> {
    if data_dir.is_relative() {
        return make_ephemeral(further_names);
    }
    load_or_make(data_dir, further_names).or_else(|error| {
        tracing::warn!(
            error = format!("{error:#}"),
            "using a certificate for this run only; `orrery cert` does not know it"
        );
        make_ephemeral(further_names)
    })
}

/// A pair that lives as long as the process.
pub fn make_ephemeral(further_names: &[String]) -> Result<KeptCertificate> {
    make(usual_names(further_names))
}

fn load(path: &Path) -> Result<Option<KeptCertificate>> {
    let shown = path.display();
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
            anyhow::bail!("{shown} is too large for a certificate")
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    KeptCertificate::parse(&text)
        .with_context(|| format!("{shown} is damaged; remove it and a new certificate will be made"))
        .map(Some)
}

fn make(names: Vec<String>) -> Result<KeptCertificate> {
    let mut params = CertificateParams::new(names.clone()).context("a name cannot stand in a certificate")?;
    let key = KeyPair::generate().context("cannot make a key")?;
    // Clients that trust several servers look certificates up by this name, and some take the first that they find.
    let end: String = key.public_key_raw().iter().rev().take(4).map(|byte| format!("{byte:02x}")).collect();
    params.distinguished_name.push(DnType::CommonName, format!("Orrery {end}"));
    params.distinguished_name.push(DnType::OrganizationName, "Orrery self-signed certificate");
    params.is_ca = IsCa::ExplicitNoCa;
    // No key usage: some verifiers refuse a trusted self-signed certificate that may not sign certificates.
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let year = current_year();
    params.not_before = date_time_ymd(year - 1, 1, 1);
    params.not_after = date_time_ymd(year + YEARS_VALID, 1, 1);
    let certificate = params.self_signed(&key).context("cannot make a certificate")?;
    Ok(KeptCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem(), names })
}

fn usual_names(further: &[String]) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).to_vec();
    let host = host_name();
    for name in host.iter().chain(further) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

impl KeptCertificate {
    fn file_text(&self) -> String {
        format!(
            "Orrery's self-signed certificate and its private key. Keep this file private; `orrery cert` exports the \
             certificate alone.\n{NAMES_LINE}{}\n{}{}",
            self.names.join(" "),
            self.certificate_pem,
            self.key_pem
        )
    }

    fn parse(text: &str) -> Option<KeptCertificate> {
        let block = |label: &str| {
            let start = text.find(&format!("-----BEGIN {label}-----"))?;
            let end_line = format!("-----END {label}-----");
            let end = start + text[start..].find(&end_line)? + end_line.len();
            Some(format!("{}\n", &text[start..end]))
        };
        let names = text.lines().find_map(|line| line.strip_prefix(NAMES_LINE))?;
        Some(KeptCertificate {
            certificate_pem: block("CERTIFICATE")?,
            key_pem: block("PRIVATE KEY")?,
            names: names.split_whitespace().map(str::to_owned).collect(),
        })
    }
}

#[derive(PartialEq)]
enum Replace {
    Yes,
    No,
}

fn write_atomically(path: &Path, text: &str, replace: Replace) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    static MADE: AtomicU32 = AtomicU32::new(0);
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let unfinished = Unfinished(path.with_extension(format!("pem.new-{}-{number}", std::process::id())));
    let write = || -> std::io::Result<()> {
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished.0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        match replace {
            Replace::Yes => fs::rename(&unfinished.0, path),
            // Unlike a rename, a link never replaces what is already there.
            Replace::No => fs::hard_link(&unfinished.0, path),
        }
    };
    write().with_context(|| format!("cannot write {}", path.display()))
}

struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn host_name() -> Option<String> {
    let text = fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| fs::read_to_string("/etc/hostname"))
        .ok()?;
    let name = text.trim();
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    (!name.is_empty() && name.len() <= 253 && name.chars().all(plain)).then(|| name.to_owned())
}

fn current_year() -> i32 {
    const SECONDS_PER_YEAR: u64 = 31_556_952;
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    1970 + (seconds / SECONDS_PER_YEAR) as i32
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_made_once_and_kept_private() {
        let directory = tempfile::tempdir().unwrap();
        let made = load_or_make(directory.path(), &["db.example".into()]).unwrap();
        assert!(
            made.names.contains(&"localhost".to_owned()) && made.names.contains(&"db.example".to_owned())
        );
        assert_eq!(load_or_make(directory.path(), &[]).unwrap(), made);
        assert_eq!(load_or_make(directory.path(), &["db.example".into()]).unwrap(), made);
        let mode = fs::metadata(directory.path().join(FILE_NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "no unfinished file stays behind");
    }

    #[test]
    fn a_further_name_makes_a_new_one_that_keeps_the_old_names() {
        let directory = tempfile::tempdir().unwrap();
        let first = load_or_make(directory.path(), &["a.example".into()]).unwrap();
        let second = load_or_make(directory.path(), &["b.example".into()]).unwrap();
        assert_ne!(first.certificate_pem, second.certificate_pem);
        assert!(first.names.iter().all(|name| second.names.contains(name)));
    }

    #[test]
    fn a_damaged_file_is_named_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(FILE_NAME);
        fs::write(&path, "-----BEGIN CERTIFICATE-----\nAAAA").unwrap();
        let problem = format!("{:#}", load_or_make(directory.path(), &[]).unwrap_err());
        assert!(problem.contains("tls.pem is damaged"), "{problem}");
        assert!(path.exists());
    }

    #[test]
    fn a_server_that_keeps_nothing_presents_what_can_be_exported() {
        let directory = tempfile::tempdir().unwrap();
        let presented = of_ephemeral(directory.path(), &[]).unwrap();
        assert_eq!(load_or_make(directory.path(), &[]).unwrap(), presented);
        // Nowhere to keep it: beside the program, or below a file.
        assert!(of_ephemeral(Path::new("orrery-data"), &[]).is_ok() && !Path::new("orrery-data").exists());
        assert!(of_ephemeral(&directory.path().join(FILE_NAME).join("x"), &[]).is_ok());
    }

    #[test]
    fn two_makers_agree() {
        let directory = tempfile::tempdir().unwrap();
        let made: Vec<KeptCertificate> = std::thread::scope(|scope| {
            let makers: Vec<_> =
                (0..4).map(|_| scope.spawn(|| load_or_make(directory.path(), &[]).unwrap())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        assert!(made.iter().all(|one| *one == made[0]));
    }
}
