//! Pebble, the test server of Let's Encrypt, and the DNS server that it asks. Both end with the value.
//!
//! `ONEHOP_PEBBLE` names a folder with the programs `pebble` and `pebble-challtestsrv`; without it tests are skipped,
//! and say so. Every DNS name is 127.0.0.1, where [`Options`] says which ports are validated.

use std::fs::File;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use serde_json::Value;

use crate::tls::{Authority, Offer, TlsClient};
use crate::{Folder, free_address, wait_at_most};

/// How long a server may take to listen: both start at once, on a machine that may be busy with other tests.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The key of the external account `kid`.
pub const EXTERNAL_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

/// How a Pebble differs from others.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The port where HTTP-01 is validated.
    pub http_port: u16,
    /// The port where TLS-ALPN-01 is validated.
    pub tls_port: u16,
    /// Accounts need a key: `kid` and [`EXTERNAL_KEY`].
    pub wants_external_account: bool,
    /// The share of nonces that are refused, in percent.
    pub nonces_rejected: Option<&'static str>,
    /// The DNS server that names are looked up at, in place of one that knows every name.
    pub dns_server: Option<SocketAddr>,
    /// Seconds that validation waits before it looks, so that an order takes a while.
    pub validation_seconds: Option<&'static str>,
}

/// One Pebble.
pub struct Pebble {
    programs: PathBuf,
    folder: Folder,
    options: Options,
    dns_server: Option<Child>,
    acme_server: Option<Child>,
    /// Where ACME is spoken.
    pub acme: SocketAddr,
    /// Where names are asked for.
    pub dns: SocketAddr,
    /// Where DNS records are set.
    pub dns_management: SocketAddr,
    /// Where Pebble tells of its certificates.
    management: SocketAddr,
    /// What the HTTPS of the ACME server is to be trusted by. It is in [`Pebble::root_file`], too.
    pub root: CertificateDer<'static>,
}

impl Pebble {
    /// Starts the servers; `None` where the programs are not at hand.
    ///
    /// # Panics
    /// Where they do not start.
    pub fn start(options: Options) -> Option<Pebble> {
        let programs = std::env::var_os("ONEHOP_PEBBLE").map(PathBuf::from).filter(|path| path.is_dir());
        let Some(programs) = programs else {
            // The test harness hides what `println!` writes in a test that passes.
            let _ = writeln!(std::io::stderr(), "skipped: ONEHOP_PEBBLE names no folder with pebble");
            return None;
        };
        let folder = Folder::new();
        let authority = Authority::new("the root of Pebble's own HTTPS");
        authority.issue(&["127.0.0.1"]).write(folder.path(), "pebble");
        folder.write("root.pem", &authority.root_pem);
        let mut pebble = Pebble {
            programs,
            folder,
            options,
            dns_server: None,
            acme_server: None,
            acme: free_address(),
            dns: free_address(),
            dns_management: free_address(),
            management: free_address(),
            root: authority.root,
        };
        pebble.folder.write("config.json", pebble.config());
        pebble.dns_server = Some(pebble.start_dns());
        pebble.acme_server = Some(pebble.start_acme());
        Some(pebble)
    }

    /// The URL of its directory.
    pub fn directory(&self) -> String {
        format!("https://{}/dir", self.acme)
    }

    /// The file with the root of its HTTPS.
    pub fn root_file(&self) -> PathBuf {
        self.folder.join("root.pem")
    }

    /// The folder of its files.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the ACME server has written.
    ///
    /// # Panics
    /// Where it cannot be read.
    pub fn log(&self) -> String {
        let log = self.log_file(self.acme);
        std::fs::read(log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).expect("a log")
    }

    /// What Pebble knows of the certificate with this serial number (hexadecimal digits): `Status` is `Valid` or `Revoked`.
    ///
    /// # Panics
    /// Where it does not know the certificate.
    pub fn certificate_status(&self, serial: &str) -> Value {
        let client = TlsClient::new(Offer::trusting(std::slice::from_ref(&self.root)));
        let mut client = client.client(&self.management.to_string(), "127.0.0.1").expect("a connection");
        let response = client.get(&format!("/cert-status-by-serial/{serial}"));
        serde_json::from_str(response.text()).expect("a known certificate")
    }

    /// Replaces Pebble by another one at the same address, which knows nothing of the first one's accounts.
    pub fn restart(&mut self) {
        end(&mut self.acme_server);
        self.acme_server = Some(self.start_acme());
    }

    fn config(&self) -> String {
        let Options { http_port, tls_port, wants_external_account, .. } = &self.options;
        let keys = if *wants_external_account {
            format!(r#""externalAccountMACKeys": {{"kid": "{EXTERNAL_KEY}"}},"#)
        } else {
            String::new()
        };
        format!(
            r#"{{"pebble": {{"listenAddress": "{}", "managementListenAddress": "{}",
                "certificate": "{folder}/pebble.crt", "privateKey": "{folder}/pebble.key",
                "httpPort": {http_port}, "tlsPort": {tls_port},
                "externalAccountBindingRequired": {wants_external_account}, {keys}
                "domainBlocklist": ["blocked.example"], "keyAlgorithm": "ecdsa",
                "profiles": {{"default": {{"description": "90 days", "validityPeriod": 7776000}},
                    "shortlived": {{"description": "6 days", "validityPeriod": 518400}}}}}}}}"#,
            self.acme,
            self.management,
            folder = self.folder.path().display(),
        )
    }

    fn start_acme(&self) -> Child {
        let mut command = Command::new(self.programs.join("pebble"));
        command.arg("-config").arg(self.folder.join("config.json"));
        command.args(["-dnsserver", &self.options.dns_server.unwrap_or(self.dns).to_string()]);
        command.env("PEBBLE_AUTHZREUSE", "0");
        command.env("PEBBLE_WFE_NONCEREJECT", self.options.nonces_rejected.unwrap_or("0"));
        match self.options.validation_seconds {
            // Pebble waits a random time up to this.
            Some(seconds) => command.env("PEBBLE_VA_SLEEPTIME", seconds),
            None => command.env("PEBBLE_VA_NOSLEEP", "1"),
        };
        self.spawn(command, self.acme)
    }

    fn start_dns(&self) -> Child {
        let mut command = Command::new(self.programs.join("pebble-challtestsrv"));
        command.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""]);
        command.args(["-dnsserver", &self.dns.to_string(), "-management", &self.dns_management.to_string()]);
        self.spawn(command, self.dns_management)
    }

    fn log_file(&self, address: SocketAddr) -> PathBuf {
        self.folder.join(&format!("{}.log", address.port()))
    }

    fn spawn(&self, mut command: Command, address: SocketAddr) -> Child {
        let log = self.log_file(address);
        let file = File::options().append(true).create(true).open(&log).expect("a log");
        command.stdin(Stdio::null()).stderr(file.try_clone().expect("a descriptor")).stdout(file);
        let mut child =
            Some(command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}")));
        wait_at_most(START_TIMEOUT, "Pebble to listen", || {
            let has_ended = child.as_mut().is_none_or(|child| child.try_wait().expect("a child").is_some());
            assert!(!has_ended, "{command:?} ended: {}", std::fs::read_to_string(&log).unwrap_or_default());
            TcpStream::connect(address).is_ok().then(|| child.take()).flatten()
        })
    }
}

/// By its own handle.
fn end(child: &mut Option<Child>) {
    if let Some(mut child) = child.take() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        end(&mut self.acme_server);
        end(&mut self.dns_server);
    }
}
