//! Counters of cores, each written by one core alone, and the registry of these and those of sites.

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use onehop_message::error::HttpError;

use crate::counter::Counter;
use crate::limits::SITES_COUNTED_MAX;
pub use crate::route::OTHER;
use crate::site::SiteCounters;

/// Why a TLS handshake failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The core has as many on their way as it may.
    TooMany,
    /// It took too long.
    Timeout,
    /// The client closed the connection, or the network did.
    Gone,
    /// The client speaks no TLS.
    NotTls,
    /// No site has the client's name, or there is no certificate for it.
    NoCertificate,
    /// The client refused what it was shown.
    RefusedByClient,
    /// The client's certificate is missing, or not one that is trusted.
    ClientCertificate,
    /// There is no version, cipher suite or group that both have.
    Incompatible,
    /// What the client sent breaks the protocol.
    Protocol,
}

impl HandshakeFailure {
    /// All of them with the `cause` label.
    pub const ALL: [(Self, &str); 9] = [
        (Self::TooMany, "too_many"),
        (Self::Timeout, "timeout"),
        (Self::Gone, "client_gone"),
        (Self::NotTls, "not_tls"),
        (Self::NoCertificate, "no_certificate"),
        (Self::RefusedByClient, "refused_by_client"),
        (Self::ClientCertificate, "client_certificate"),
        (Self::Incompatible, "incompatible"),
        (Self::Protocol, "protocol"),
    ];
}

/// Why an HTTP/2 connection was ended with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Http2Failure {
    /// Too many RST_STREAM frames.
    Resets,
    /// Too many SETTINGS frames.
    Settings,
    /// Too many frames without a request or its body.
    Overhead,
    /// Another bound of the protocol's own: streams that were reset unseen or by our side, tiny frames, header blocks.
    Excess,
    /// What the client sent breaks the protocol.
    Protocol,
}

impl Http2Failure {
    /// All of them with the `cause` label.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Resets, "resets"),
        (Self::Settings, "settings"),
        (Self::Overhead, "overhead"),
        (Self::Excess, "excess"),
        (Self::Protocol, "protocol"),
    ];
}

/// Why a connection ended over its header of the PROXY protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeaderRefusal {
    /// It is none, or has more than one reading.
    Malformed,
    /// The rest of it did not come in time.
    Timeout,
    /// Its peer has to send one.
    Missing,
    /// Its peer may not send one.
    Rejected,
    /// The peer closed the connection, or the network did.
    Gone,
}

impl HeaderRefusal {
    /// All of them with the `cause` label.
    pub const ALL: [(Self, &str); 5] = [
        (Self::Malformed, "malformed"),
        (Self::Timeout, "timeout"),
        (Self::Missing, "missing"),
        (Self::Rejected, "rejected"),
        (Self::Gone, "client_gone"),
    ];
}

/// Counters of one core that belong to no site.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CoreCounters {
    pub(crate) opened: Counter,
    pub(crate) closed: Counter,
    pub(crate) accept_failures: Counter,
    pub(crate) too_many: Counter,
    pub(crate) too_many_of_address: Counter,
    /// Full handshakes and resumed ones.
    pub(crate) handshakes: [Counter; 2],
    /// By [`HandshakeFailure`].
    pub(crate) handshake_failures: [Counter; HandshakeFailure::ALL.len()],
    pub(crate) http2_connections: Counter,
    /// By [`Http2Failure`].
    pub(crate) http2_failures: [Counter; Http2Failure::ALL.len()],
    /// By [`HeaderRefusal`].
    pub(crate) header_refusals: [Counter; HeaderRefusal::ALL.len()],
    /// By cause. Causes are a closed set of names in the program, so the table is bounded; a lock of
    /// its own core only, on a path that is not the usual one.
    pub(crate) refused: Mutex<BTreeMap<&'static str, (u16, u64)>>,
}

impl CoreCounters {
    /// Counts a connection that is open from now on.
    pub fn connection_opened(&self) {
        self.opened.add(1);
    }

    /// Counts the end of an open connection.
    pub fn connection_closed(&self) {
        self.closed.add(1);
    }

    /// Counts a connection that was closed because the process has as many as it may.
    pub fn too_many_connections(&self) {
        self.too_many.add(1);
    }

    /// Counts a connection that was closed because its address has as many as it may.
    pub fn too_many_of_address(&self) {
        self.too_many_of_address.add(1);
    }

    /// Counts a TLS handshake that was completed.
    pub fn handshake_done(&self, is_resumed: bool) {
        self.handshakes[usize::from(is_resumed)].add(1);
    }

    /// Counts a TLS handshake that was not.
    pub fn handshake_failed(&self, failure: HandshakeFailure) {
        self.handshake_failures[failure as usize].add(1);
    }

    /// Counts a connection that speaks HTTP/2.
    pub fn http2_begun(&self) {
        self.http2_connections.add(1);
    }

    /// Counts an HTTP/2 connection that was ended with an error.
    pub fn http2_failed(&self, failure: Http2Failure) {
        self.http2_failures[failure as usize].add(1);
    }

    /// Counts a connection that ended over its header of the PROXY protocol.
    pub fn header_refused(&self, refusal: HeaderRefusal) {
        self.header_refusals[refusal as usize].add(1);
    }

    /// Counts a connection that the kernel could not hand over.
    pub fn accept_failed(&self) {
        self.accept_failures.add(1);
    }

    /// Counts a request that no handler answered under its cause.
    pub fn refused(&self, error: HttpError) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.entry(error.name()).or_insert((error.status(), 0)).1 += 1;
    }
}

/// Every counter of the process.
#[derive(Debug)]
pub struct Registry {
    /// One for each core.
    pub cores: Vec<Arc<CoreCounters>>,
    /// Lines that all access logs have lost; rare, so that all share it.
    pub log_lines_dropped: Arc<AtomicU64>,
    /// For each site label, one for each core. `_other` counts the requests that reached no site.
    sites: Mutex<BTreeMap<Arc<str>, Vec<Arc<SiteCounters>>>>,
}

impl Registry {
    /// Counters for so many cores.
    pub fn new(cores: usize) -> Self {
        let cores = (0..cores).map(|_| Arc::default()).collect();
        let registry = Self { cores, log_lines_dropped: Arc::default(), sites: Mutex::default() };
        registry.site(OTHER);
        registry
    }

    /// The counters of a site, one for each core; the same ones again after a reload.
    pub fn site(&self, label: &str) -> Vec<Arc<SiteCounters>> {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let label = if sites.len() > SITES_COUNTED_MAX && !sites.contains_key(label) { OTHER } else { label };
        if let Some(counters) = sites.get(label) {
            return counters.clone();
        }
        let names = Arc::default();
        let counters: Vec<_> = self.cores.iter().map(|_| Arc::new(SiteCounters::new(&names))).collect();
        sites.insert(label.into(), counters.clone());
        counters
    }

    /// Every site with its counters.
    pub fn sites(&self) -> Vec<(Arc<str>, Vec<Arc<SiteCounters>>)> {
        let sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        sites.iter().map(|(label, counters)| (Arc::clone(label), counters.clone())).collect()
    }

    /// Connections opened and closed until now.
    pub fn connections(&self) -> (u64, u64) {
        let sum =
            |which: fn(&CoreCounters) -> &Counter| self.cores.iter().map(|core| which(core).get()).sum();
        (sum(|core| &core.opened), sum(|core| &core.closed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_keeps_its_counters_and_sites_beyond_the_bound_share_one() {
        let registry = Registry::new(2);
        let first = registry.site("a.test");
        assert!(Arc::ptr_eq(&first[1], &registry.site("a.test")[1]));
        for number in 1..SITES_COUNTED_MAX {
            registry.site(&number.to_string());
        }
        assert!(Arc::ptr_eq(&registry.site("beyond")[0], &registry.site(OTHER)[0]));
        assert_eq!(registry.sites().len(), SITES_COUNTED_MAX + 1);
    }
}
