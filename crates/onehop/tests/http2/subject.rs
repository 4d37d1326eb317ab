//! A server that speaks HTTP/2, its folder, and clients of it.

use onehop_testkit::http2::Http2;
use onehop_testkit::tls::{Offer, TlsClient, TlsConnection, certificates_in};
use onehop_testkit::upstream::{Received, Upstream};
use onehop_testkit::{Client, Folder, Onehop, Program};

pub(crate) const MIB: usize = 1024 * 1024;

/// What requests are for where nothing else is said.
pub(crate) const AUTHORITY: &str = "localhost";

/// A server that runs in a folder of its own.
pub(crate) struct Subject {
    pub(crate) onehop: Onehop,
    pub(crate) folder: Folder,
}

/// The text of an Onehopfile for a folder.
fn onehopfile(folder: &Folder, globals: &str, sites: &str) -> String {
    let data = folder.join("data");
    let data = data.display();
    format!(
        "{{\n\tadmin 127.0.0.1:0\n\tauto_https disable_redirects\n\tdata_dir {data}\n{globals}\n}}\n{sites}\n"
    )
}

/// A site in clear text with these directives.
pub(crate) fn clear(directives: &str) -> String {
    format!("http://:0 {{\n\tbind 127.0.0.1\n{directives}\n}}\n")
}

/// A site with a certificate of the local authority.
pub(crate) fn encrypted(directives: &str) -> String {
    format!("https://localhost:0 {{\n\tbind 127.0.0.1\n{directives}\n}}\n")
}

impl Subject {
    /// One site in clear text with these directives.
    pub(crate) fn start(directives: &str) -> Subject {
        Self::start_in(Folder::new(), "", &clear(directives))
    }

    /// These sites in a folder that has files already, with lines of the global block.
    pub(crate) fn start_in(folder: Folder, globals: &str, sites: &str) -> Subject {
        folder.write("Onehopfile", onehopfile(&folder, globals, sites));
        Subject { onehop: Onehop::start_in(folder.path()), folder }
    }

    /// Other sites from now on.
    pub(crate) fn reload(&self, globals: &str, sites: &str) {
        self.folder.write("Onehopfile", onehopfile(&self.folder, globals, sites));
        let path = self.folder.path();
        let reloaded = Program::new(["reload"]).inside(path).control_in(path).finish();
        assert_eq!(reloaded.code, Some(0), "{}", reloaded.stderr);
    }

    pub(crate) fn address(&self) -> &str {
        &self.onehop.address
    }

    /// A new connection in clear text, with prior knowledge.
    pub(crate) fn connect(&self) -> Http2 {
        self.connect_with(&[])
    }

    /// The same with these settings.
    pub(crate) fn connect_with(&self, settings: &[(u16, u32)]) -> Http2 {
        let mut client = Http2::connect_with(self.address(), settings);
        AUTHORITY.clone_into(&mut client.authority);
        client
    }

    /// A client of HTTP/1.1 in clear text, to compare with.
    pub(crate) fn connect_http1(&self) -> Client {
        Client::connect(self.address())
    }

    /// A new connection over TLS, for a name.
    pub(crate) fn connect_tls(&self, name: &str) -> Http2 {
        let connection = self.handshake(name, &["h2", "http/1.1"]).expect("a connection");
        assert_eq!(connection.protocol(), Some(&b"h2"[..]));
        Http2::over_tls(connection, name, &[])
    }

    /// A handshake for a name that offers these protocols.
    pub(crate) fn handshake(&self, name: &str, protocols: &[&'static str]) -> std::io::Result<TlsConnection> {
        let root = certificates_in(&self.folder.join("data/tls/pki/authorities/local/root.crt"));
        let offer = Offer { protocols: protocols.to_vec(), ..Offer::trusting(&root) };
        TlsClient::new(offer).connect(self.address(), name)
    }

    /// Memory of its own that the process has resident, in bytes.
    pub(crate) fn resident_bytes(&self) -> usize {
        let status = format!("/proc/{}/status", self.onehop.process.pid());
        let text = std::fs::read_to_string(status).expect("its status");
        let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its resident size");
        line.split_whitespace().next().and_then(|kib| kib.parse::<usize>().ok()).expect("a number") * 1024
    }
}

/// An upstream that answers with the request line that it saw, and its fields in the field `seen`.
pub(crate) fn telling() -> Upstream {
    Upstream::answering(|request: &Received| {
        let line = request.head.lines().next().unwrap_or_default();
        let length = line.len();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{line}").into_bytes()
    })
}

/// Content in which no two places look alike: a part that is lost or doubled shows.
pub(crate) fn content(bytes: usize) -> Vec<u8> {
    (0..bytes / 8).flat_map(|number| (number as u64).to_le_bytes()).collect()
}
