//! TLS on the server's side, built when the first TLS connection asks for it: a start without TLS pays nothing.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio::sync::OnceCell;

use crate::certificate;
use crate::config::Config;

/// Offered in this order: HTTP/2 when the client can.
pub const ALPN_HTTP2: &[u8] = b"h2";
pub const ALPN_HTTP1: &[u8] = b"http/1.1";

/// Where the certificate comes from.
#[derive(Debug, Clone)]
pub enum CertificateSource {
    /// The operator's files: chain and key.
    Files(PathBuf, PathBuf),
    /// Self-signed, kept in this directory.
    Kept { data_dir: PathBuf, names: Vec<String> },
    /// Self-signed, of a server that keeps nothing: the one that `orrery cert` exports, so that clients can be made
    /// to trust it once and for all, or one for this process only where that cannot be kept.
    Ephemeral { data_dir: PathBuf, names: Vec<String> },
}

impl CertificateSource {
    pub fn of(config: &Config) -> CertificateSource {
        let (data_dir, names) = (config.data_dir.clone(), config.tls_names.clone());
        match &config.tls_files {
            Some((chain, key)) => CertificateSource::Files(chain.clone(), key.clone()),
            None if config.ephemeral => CertificateSource::Ephemeral { data_dir, names },
            None => CertificateSource::Kept { data_dir, names },
        }
    }
}

struct Made {
    acceptor: tokio_rustls::TlsAcceptor,
    certificate_pem: String,
}

pub struct Tls {
    source: CertificateSource,
    made: OnceCell<Made>,
}

impl Tls {
    pub fn new(source: CertificateSource) -> Tls {
        Tls { source, made: OnceCell::new() }
    }

    /// Whether the certificate outlives the server.
    pub fn keeps_certificate(&self) -> bool {
        !matches!(self.source, CertificateSource::Ephemeral { .. })
    }

    /// The acceptor; the first caller builds it on a blocking thread, others wait for that. A failure is tried again.
    pub async fn acceptor(&self) -> Result<&tokio_rustls::TlsAcceptor> {
        Ok(&self.made().await?.acceptor)
    }

    /// The certificate chain that clients are shown, as PEM.
    pub async fn certificate_pem(&self) -> Result<String> {
        Ok(self.made().await?.certificate_pem.clone())
    }

    async fn made(&self) -> Result<&Made> {
        self.made
            .get_or_try_init(|| async {
                let source = self.source.clone();
                let (config, certificate_pem) =
                    tokio::task::spawn_blocking(move || server_config(&source)).await??;
                Ok(Made { acceptor: tokio_rustls::TlsAcceptor::from(Arc::new(config)), certificate_pem })
            })
            .await
    }
}

fn server_config(source: &CertificateSource) -> Result<(ServerConfig, String)> {
    let (chain, key) = match source {
        CertificateSource::Files(chain, key) => (
            CertificateDer::pem_file_iter(chain)
                .and_then(Iterator::collect::<Result<Vec<_>, _>>)
                .with_context(|| format!("--tls-certificate: cannot read {}", chain.display()))?,
            PrivateKeyDer::from_pem_file(key)
                .with_context(|| format!("--tls-key: cannot read {}", key.display()))?,
        ),
        CertificateSource::Kept { data_dir, names } => {
            parse_kept(certificate::load_or_make(data_dir, names)?)?
        }
        CertificateSource::Ephemeral { data_dir, names } => {
            parse_kept(certificate::of_ephemeral(data_dir, names)?)?
        }
    };
    if chain.is_empty() {
        anyhow::bail!("--tls-certificate: the file has no certificate");
    }
    let shown = chain.iter().map(|certificate| pem(certificate)).collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .context("certificate and key do not fit together")?;
    config.alpn_protocols = vec![ALPN_HTTP2.to_vec(), ALPN_HTTP1.to_vec()];
    Ok((config, shown))
}

/// Characters on a line of PEM.
const PEM_LINE: usize = 64;

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(PEM_LINE) {
        pem.extend(line.iter().map(|byte| char::from(*byte)));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

fn parse_kept(
    kept: certificate::KeptCertificate,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    Ok((
        vec![CertificateDer::from_pem_slice(kept.certificate_pem.as_bytes())?],
        PrivateKeyDer::from_pem_slice(kept.key_pem.as_bytes())?,
    ))
}
