//! What can be typed after `onehop certs`, `onehop trust` and `onehop untrust`.
//!
//! Owns names, defaults and texts only, as `arguments/mod.rs` does.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use onehop_certificates::issuer::RevocationReason;

use super::Target;

/// `onehop certs`
#[derive(Debug, Args)]
#[command(
    about = "Show or revoke the certificates of a running onehop, or import those of Caddy",
    override_usage = "onehop certs [OPTIONS]\n       onehop certs revoke NAME\n       onehop certs import FOLDER",
    long_about = "Show or revoke the certificates of a running onehop, or import those of Caddy.\n\n\
        Each line is one certificate: its names, its issuer, how long it is valid and when it is renewed; of a \
        certificate from a file its path. Below, what is wrong with a certificate, and what to do.",
    after_help = "Examples:\n  \
        onehop certs                     those of the onehop of this folder, else of the only one that runs\n  \
        onehop certs --json | jq '.certificates[] | select(.reason)'\n  \
        onehop certs revoke example.com --reason key-compromise\n  \
        onehop certs import ~/.local/share/caddy\n\n\
        Exit codes: 0 shown, whatever state they are in, 1 not running, 2 wrong usage.",
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Certs {
    #[command(subcommand)]
    pub(crate) command: Option<CertsCommand>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print the answer of the control socket as it is (docs/control-api.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// What else `certs` does.
#[derive(Debug, Subcommand)]
pub(crate) enum CertsCommand {
    Revoke(RevokeCertificate),
    Import(ImportCertificates),
}

/// `onehop certs revoke`
#[derive(Debug, Args)]
#[command(
    about = "Revoke a certificate at its issuer, and obtain another one",
    long_about = "Revoke a certificate at its issuer, and obtain another one.\n\n\
        A running onehop asks the ACME server that has issued the certificate to revoke it. This cannot be undone, and no \
        confirmation is asked for. onehop then orders a new certificate with a new key, and serves the revoked one until the \
        new one is there. To have no certificate for the name any more, remove the name from the configuration afterwards \
        and run `onehop reload`.\n\n\
        Certificates of files are revoked at their own issuer. Those of the local authority cannot be revoked.",
    after_help = "Examples:\n  \
        onehop certs revoke example.com\n  \
        onehop certs revoke '*.example.com' --reason key-compromise\n\n\
        Exit codes: 0 revoked, 1 failed or not running, 2 wrong usage."
)]
pub(crate) struct RevokeCertificate {
    /// The name of the certificate, as `onehop certs` shows it
    #[arg(value_name = "NAME", value_parser = certificate_name)]
    pub(crate) name: String,
    /// Why it is revoked; the issuer publishes it
    #[arg(long, value_name = "REASON", default_value = "unspecified",
        value_parser = PossibleValuesParser::new(RevocationReason::ALL.map(|(name, _)| name)))]
    pub(crate) reason: String,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print the answer of the control socket as it is (docs/control-api.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// A DNS name, a wildcard or an IP address; nothing else can be in the path of a request.
fn certificate_name(text: &str) -> Result<String, String> {
    let is_possible = |byte: u8| byte.is_ascii_alphanumeric() || b"*.-_:".contains(&byte);
    match !text.is_empty() && text.bytes().all(is_possible) {
        true => Ok(text.to_owned()),
        false => Err("it is no DNS name and no IP address; `onehop certs` shows the names".to_owned()),
    }
}

/// `onehop certs import`
#[derive(Debug, Args)]
#[command(
    about = "Copy certificates, accounts and the local authority from Caddy's storage",
    long_about = "Copy certificates, accounts and the local authority from Caddy's storage.\n\n\
        Nothing is ordered again, and clients that trust Caddy's root need not trust another one. Nothing in \
        Caddy's folder is changed, and nothing is replaced by something older. What is skipped is shown with the \
        reason.",
    after_help = "Examples:\n  \
        onehop certs import ~/.local/share/caddy\n  \
        sudo onehop certs import /var/lib/caddy/.local/share/caddy\n  \
        onehop certs import caddy-data --storage /srv/certificates\n\n\
        Exit codes: 0 copied, or nothing was left to copy, 1 failed, 2 wrong usage or configuration."
)]
pub(crate) struct ImportCertificates {
    /// Caddy's folder, which `caddy environ` names as caddy.AppDataDir
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
    #[command(flatten)]
    pub(crate) store: CertificateStore,
}

/// `onehop trust`
#[derive(Debug, Args)]
#[command(
    about = "Let this machine trust the certificates of the local authority",
    long_about = "Let this machine trust the certificates of the local authority.\n\n\
        The local authority issues the certificates for localhost, for IP addresses and of `tls internal`. Its root is \
        installed among the system's certificates, as on Debian, Ubuntu, Alpine, Fedora, RHEL and Arch, and in the \
        store of Chrome and Chromium (~/.pki/nssdb) where `certutil` is installed. What is done and what is not is \
        shown; nothing is asked. An authority that does not exist yet is created.",
    after_help = "Examples:\n  \
        onehop trust                     shows the line with sudo that is needed, and nothing else\n  \
        sudo onehop trust --file /etc/onehop/Onehopfile\n  \
        onehop trust --print > root.pem  for other machines\n\n\
        Exit codes: 0 trusted, 1 failed, not root included, 2 wrong usage or configuration."
)]
pub(crate) struct Trust {
    #[command(flatten)]
    pub(crate) store: CertificateStore,
    /// Print the root certificate (PEM), and install nothing
    #[arg(long)]
    pub(crate) print: bool,
}

/// `onehop untrust`
#[derive(Debug, Args)]
#[command(
    about = "Undo `onehop trust`",
    long_about = "Undo `onehop trust`.\n\n\
        The root of the local authority is removed where `onehop trust` has installed it. A file with another content \
        is left alone.",
    after_help = "Examples:\n  \
        sudo onehop untrust --file /etc/onehop/Onehopfile\n\n\
        Exit codes: 0 removed, or not installed, 1 failed, not root included, 2 wrong usage or configuration."
)]
pub(crate) struct Untrust {
    #[command(flatten)]
    pub(crate) store: CertificateStore,
}

/// Which store of certificates.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub(crate) struct CertificateStore {
    /// The configuration file of the server, which names its store or its data directory [default: the one that `onehop
    /// run` takes]
    #[arg(long, visible_alias = "config", short = 'c', value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The data directory of the server, as `data_dir` in its configuration file
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The store itself, as `storage file_system` in its configuration file
    #[arg(long, value_name = "DIR")]
    pub(crate) storage: Option<PathBuf>,
}
