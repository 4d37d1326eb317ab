//! What `bench distant-search` measures: targets, cases, and the bounds of their figures.
//!
//! Data only; it starts nothing.

use std::time::Duration;

/// Of a thousand packets so many are lost in cases with loss.
const LOST_PER_MILLE: u32 = 10;

/// Cases with loss have so many times more searches: one in a hundred packets is rare.
const SEARCHES_WITH_LOSS: u64 = 5;

/// Between two searches of a case with pauses: longer than a retransmission timeout, after which a sender begins with a
/// small window again.
const PAUSE: Duration = Duration::from_secs(1);

/// How the client's machine reaches the search service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// By itself: a fresh connection over the whole distance for each search.
    Direct,
    /// Caddy with the file.
    Caddy,
    /// onehop with the same file.
    Onehop,
    /// onehop with `pool min 4`.
    OnehopFour,
    /// nginx that keeps as many connections for as long.
    Nginx,
}

/// All targets, in the order in which they are printed.
pub(super) const TARGETS: &[Target] =
    &[Target::Direct, Target::Caddy, Target::Onehop, Target::OnehopFour, Target::Nginx];

/// What the search service speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// HTTP/1.1 in clear text.
    Plain,
    /// HTTP/1.1 over TLS.
    Tls,
    /// HTTP/2 over TLS.
    Http2,
}

/// An answer: how many hits are asked for, and the bytes of the body that holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Size {
    hits: u32,
    pub(super) bytes: usize,
}

/// What is asked and how the search service behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) name: &'static str,
    pub(super) size: Size,
    pub(super) transport: Transport,
    /// The service closes connections that have been idle for a short time; otherwise it keeps them for a day.
    pub(super) closes: bool,
    /// Packets are lost.
    pub(super) is_lossy: bool,
    /// Between two searches the client pauses.
    pauses: bool,
    /// It is asked once more after the idle time.
    pub(super) idles: bool,
}

const KIB_1: Size = Size { hits: 3, bytes: 1_033 };
const KIB_10: Size = Size { hits: 26, bytes: 10_182 };
const KIB_50: Size = Size { hits: 133, bytes: 50_684 };
const KIB_200: Size = Size { hits: 505, bytes: 204_589 };

const fn case(name: &'static str, size: Size, transport: Transport) -> Case {
    Case { name, size, transport, closes: false, is_lossy: false, pauses: false, idles: false }
}

const fn idling(name: &'static str, size: Size, transport: Transport) -> Case {
    Case { idles: true, ..case(name, size, transport) }
}

const fn closing(name: &'static str, size: Size, transport: Transport) -> Case {
    Case { closes: true, ..idling(name, size, transport) }
}

const fn lossy(name: &'static str, size: Size, transport: Transport) -> Case {
    Case { is_lossy: true, ..case(name, size, transport) }
}

/// All cases, in the order in which they are measured. Those with an idle time come first: it passes while the others run.
pub(super) const CASES: &[Case] = &[
    idling("1k-plain", KIB_1, Transport::Plain),
    idling("1k-tls", KIB_1, Transport::Tls),
    idling("1k-h2", KIB_1, Transport::Http2),
    closing("1k-plain-closing", KIB_1, Transport::Plain),
    closing("1k-tls-closing", KIB_1, Transport::Tls),
    closing("1k-h2-closing", KIB_1, Transport::Http2),
    idling("200k-plain", KIB_200, Transport::Plain),
    case("200k-tls", KIB_200, Transport::Tls),
    case("200k-h2", KIB_200, Transport::Http2),
    case("10k-plain", KIB_10, Transport::Plain),
    case("10k-tls", KIB_10, Transport::Tls),
    case("10k-h2", KIB_10, Transport::Http2),
    Case { pauses: true, ..case("50k-plain-pauses", KIB_50, Transport::Plain) },
    lossy("10k-plain-loss", KIB_10, Transport::Plain),
    lossy("10k-tls-loss", KIB_10, Transport::Tls),
    lossy("10k-h2-loss", KIB_10, Transport::Http2),
    lossy("200k-plain-loss", KIB_200, Transport::Plain),
];

/// The case of clients that are far away from onehop; it has no proxy and no search service.
pub(super) const CLIENTS: &str = "clients";

/// Cases of a run that is only to show that it works.
pub(super) const SMOKE_CASES: &[&str] = &["1k-plain", "1k-tls", "1k-h2", "10k-plain-loss", CLIENTS];

/// Options of a run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Searches in a row, before the idle time and after it.
    pub(super) searches: u64,
    /// Length of the idle time.
    pub(super) idle: Duration,
    /// Half a round trip.
    pub(super) one_way: Duration,
    /// The kernel's congestion control at both ends.
    pub(super) congestion: String,
    /// `tcp_slow_start_after_idle` of the search service's machine.
    pub(super) slow_start_after_idle: bool,
}

impl Target {
    /// Its name in tables and files.
    pub(super) fn name(self) -> &'static str {
        match self {
            Target::Direct => "direct",
            Target::Caddy => "caddy",
            Target::Onehop => "onehop",
            Target::OnehopFour => "onehop-min4",
            Target::Nginx => "nginx",
        }
    }

    /// Whether the bounds are about it.
    pub(super) fn is_bound(self) -> bool {
        matches!(self, Target::Onehop | Target::OnehopFour)
    }

    /// Whether it can be asked in this case. nginx 1.22 has no HTTP/2 to upstreams.
    pub(super) fn takes(self, case: Case) -> bool {
        !(self == Target::Nginx && case.transport == Transport::Http2)
    }

    /// Its file below experiments/distant-search, where it has one.
    pub(super) fn settings(self, transport: Transport) -> Option<&'static str> {
        match (self, transport) {
            (Target::Direct, _) => None,
            (Target::Caddy | Target::Onehop, Transport::Plain) => Some("Caddyfile"),
            (Target::Caddy | Target::Onehop, _) => Some("measured/tls.Caddyfile"),
            (Target::OnehopFour, Transport::Plain) => Some("measured/min4.Onehopfile"),
            (Target::OnehopFour, _) => Some("measured/tls-min4.Onehopfile"),
            (Target::Nginx, _) => Some("measured/nginx.conf"),
        }
    }
}

impl Case {
    /// What is asked.
    pub(super) fn path(&self) -> String {
        format!("/indexes/books/search?q=whale&limit={}", self.size.hits)
    }

    /// How often it is asked in a row.
    pub(super) fn searches(&self, plan: &Plan) -> u64 {
        if self.is_lossy { plan.searches * SEARCHES_WITH_LOSS } else { plan.searches }
    }

    /// How long the client waits before each search.
    pub(super) fn pause(&self) -> Duration {
        if self.pauses { PAUSE } else { Duration::ZERO }
    }

    /// Of a thousand packets so many are lost.
    pub(super) fn lost_per_mille(&self) -> u32 {
        if self.is_lossy { LOST_PER_MILLE } else { 0 }
    }
}
