//! A server with HTTPS, its folder, and clients that trust it.

use std::io;
use std::path::Path;

use onehop_testkit::tls::{CertificateDer, Offer, TlsClient, certificates_in};
use onehop_testkit::{Client, Folder, Onehop, Program, Response, wait_for};

/// A server that runs in a folder of its own.
pub(crate) struct Subject {
    pub(crate) onehop: Onehop,
    pub(crate) folder: Folder,
}

/// A site that answers `hello` with a certificate of the local authority.
pub(crate) const HELLO: &str = "https://localhost:0 {\n\tbind 127.0.0.1\n\trespond hello\n}\n";

/// The text of an Onehopfile for a folder: no plain listeners beside those of the sites.
pub(crate) fn onehopfile(folder: &Path, globals: &str, sites: &str) -> String {
    let data = folder.join("data");
    let data = data.display();
    format!(
        "{{\n\tadmin 127.0.0.1:0\n\tauto_https disable_redirects\n\tdata_dir {data}\n{globals}\n}}\n{sites}"
    )
}

impl Subject {
    /// A server with these sites.
    pub(crate) fn start(sites: &str) -> Subject {
        Self::with_globals("", sites)
    }

    /// The same with lines of the global block.
    pub(crate) fn with_globals(globals: &str, sites: &str) -> Subject {
        Self::start_in(Folder::new(), globals, sites)
    }

    /// The same in a folder that has files already.
    pub(crate) fn start_in(folder: Folder, globals: &str, sites: &str) -> Subject {
        folder.write("Onehopfile", onehopfile(folder.path(), globals, sites));
        Subject { onehop: Onehop::start_in(folder.path()), folder }
    }

    /// The first address that it listens on.
    pub(crate) fn address(&self) -> &str {
        &self.onehop.address
    }

    /// Trusts the local authority.
    pub(crate) fn offer(&self) -> Offer {
        Offer::trusting(&self.local_root())
    }

    pub(crate) fn local_root(&self) -> Vec<CertificateDer<'static>> {
        certificates_in(&self.folder.join("data/tls/pki/authorities/local/root.crt"))
    }

    /// A new client with a connection to `localhost`, which trusts the local authority.
    pub(crate) fn connect(&self) -> Client {
        TlsClient::new(self.offer()).client(self.address(), "localhost").expect("a connection")
    }

    /// Reads the Onehopfile again.
    pub(crate) fn reload(&self) {
        let folder = self.folder.path();
        let reloaded = Program::new(["reload"]).inside(folder).control_in(folder).finish();
        assert_eq!(reloaded.code, Some(0), "{}", reloaded.stderr);
    }

    /// A counter as `/metrics` has it: `name{label="value"}`.
    pub(crate) fn counter(&self, series: &str) -> u64 {
        let metrics = self.onehop.metrics();
        let value =
            metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok());
        value.unwrap_or_else(|| panic!("there is no {series} in:\n{metrics}"))
    }

    /// Waits until failed handshakes of this cause were counted.
    pub(crate) fn wait_for_failures(&self, cause: &str, count: u64) {
        let series = format!("onehop_tls_handshake_failures_total{{cause=\"{cause}\"}}");
        wait_for(&format!("{count} of {series}"), || (self.counter(&series) == count).then_some(()));
    }
}

/// GET over a new connection for a name, whose Host is another one. An error is the connection's or that of TLS, which
/// with TLS 1.3 may come after the client's handshake.
pub(crate) fn get(client: &TlsClient, address: &str, name: &str, host: &str) -> io::Result<Response> {
    let mut client = client.client(address, name)?;
    // Where the server has refused the client meanwhile, its reason is there to be read all the same.
    let sent = client.try_send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let read = client.try_read_for("GET");
    match (sent, read) {
        (Err(sent), Err(read)) if read.kind() != io::ErrorKind::InvalidData => Err(sent),
        (_, read) => read,
    }
}
