//! `orrery cert`: print or export the server's self-signed certificate, and explain how each SDK comes to trust it.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Arg, ArgAction, ArgMatches, Command};
use orrery_server::certificate;
use orrery_server::config::SETTINGS;

use crate::Usage;
use crate::serve::{configure, flag};

pub fn command() -> Command {
    // The settings that say which certificate it is; the same flags, variables and defaults as for `serve`.
    let place = SETTINGS.iter().filter(|setting| ["data-dir", "tls-name"].contains(&setting.name));
    Command::new("cert")
        .about("Print or export the self-signed certificate of a data directory, or of `serve --ephemeral` (made when absent)")
        .args(place.map(flag))
        .arg(
            Arg::new("config")
                .long("config")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("TOML file with settings [env: ORRERY_CONFIG]"),
        )
        .arg(
            Arg::new("out")
                .long("out")
                .value_name("FILE")
                .value_parser(clap::value_parser!(PathBuf))
                .help("Write the certificate (PEM, without its key) to this file instead of stdout"),
        )
        .arg(
            Arg::new("explain")
                .long("explain")
                .action(ArgAction::SetTrue)
                .help("Say how each SDK is made to trust it"),
        )
}

pub fn run(matches: &ArgMatches) -> Result<()> {
    let (config, _) = configure(matches)?;
    if let Some((chain, _)) = &config.tls_files {
        return Err(Usage(format!("the server uses your own certificate: {}", chain.display())).into());
    }
    let kept = certificate::load_or_make(&config.data_dir, &config.tls_names)?;
    let out = matches.get_one::<PathBuf>("out");
    let explain = matches.get_flag("explain");
    match out {
        Some(path) => {
            std::fs::write(path, &kept.certificate_pem)
                .with_context(|| format!("cannot write {}", path.display()))?;
            eprintln!("wrote the certificate for {} to {}", kept.names.join(", "), path.display());
        }
        None if !explain => print!("{}", kept.certificate_pem),
        None => {}
    }
    if explain {
        let path = out.map_or("orrery.pem".into(), |path| path.display().to_string());
        print!("{}", EXPLANATION.replace("orrery.pem", &path).replace("{names}", &kept.names.join(", ")));
    }
    Ok(())
}

const EXPLANATION: &str = "\
The server takes plain http and TLS on the same port: with an http:// endpoint no certificate is needed at all.
For https, export the certificate once and let the client trust it. It is valid for: {names}
(further names: `orrery serve --tls-name NAME`). `orrery serve --ephemeral` presents the same one as a server with the
data directory of this user.

    orrery cert --out orrery.pem

Python      azure-cosmos does not verify https://localhost and https://127.0.0.1. For other names:
                CosmosClient(url, key, connection_verify=\"orrery.pem\")

JavaScript  before Node starts:
                export NODE_EXTRA_CA_CERTS=orrery.pem

Java        into a trust store of your own, given to the JVM:
                keytool -importcert -noprompt -alias orrery -file orrery.pem -keystore orrery.jks -storepass changeit
                java -Djavax.net.ssl.trustStore=orrery.jks -Djavax.net.ssl.trustStorePassword=changeit …

Go          on Linux, beside the system's certificates:
                export SSL_CERT_FILE=orrery.pem
            or in the program: a tls.Config with RootCAs from the file, in the http.Client given as
            azcosmos.ClientOptions.Transport

Rust        azure_data_cosmos takes an HTTP client of yours: reqwest::ClientBuilder::add_root_certificate(
            reqwest::Certificate::from_pem(…)); or export SSL_CERT_FILE=orrery.pem where the client reads the system's store

.NET        Linux, for all programs:
                sudo cp orrery.pem /usr/local/share/ca-certificates/orrery.crt && sudo update-ca-certificates
            or in the program: CosmosClientOptions.ServerCertificateCustomValidationCallback, comparing the thumbprint

curl        curl --cacert orrery.pem https://localhost:8081/
";
