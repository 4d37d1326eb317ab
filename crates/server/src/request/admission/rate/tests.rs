//! Rate limiters without a server: requests are made of a head and an address, time is an argument.

use std::net::SocketAddr;
use std::sync::LazyLock;
use std::time::Duration;

use onehop_config::checked::Network;
use onehop_config::checked::limit::RateKey;
use onehop_http1::{RequestHead, ServerCodec};
use onehop_message::error_response;
use onehop_message::origin::Origin;
use onehop_message::response::Response;

use super::*;
use crate::limits::CODEC_LIMITS;

const SECOND: u64 = 1_000_000_000;

/// `rate_limit` by address.
pub(crate) fn limit(events: u32, window: Duration, burst: u32) -> RateLimit {
    RateLimit {
        zone: "api".to_owned(),
        key: RateKey::ClientAddress,
        events,
        window,
        burst,
        keys_max: 10_000,
        trusted_proxies: Vec::new(),
        announce: false,
    }
}

/// A request and where it comes from.
pub(crate) struct Asking {
    head: RequestHead,
    origin: Origin,
}

impl Asking {
    /// From this address.
    pub(crate) fn from(address: &str) -> Self {
        Self::with(Some(address), "")
    }

    /// From this address or a Unix socket, with these field lines.
    pub(crate) fn with(address: Option<&str>, fields: &str) -> Self {
        let text = format!("GET / HTTP/1.1\r\nHost: example.com\r\n{fields}\r\n");
        let mut head = RequestHead::new();
        ServerCodec::new(CODEC_LIMITS).read_head(text.as_bytes(), &mut head).unwrap().unwrap();
        let peer = address.map(|address| SocketAddr::new(address.parse().unwrap(), 4711));
        Self { head, origin: Origin::plain(peer, 0) }
    }

    /// At the beginning of its way.
    pub(crate) fn context(&self) -> RequestContext<'_> {
        RequestContext::new(&self.head, self.origin.clone(), Instant::now(), &[], &[])
    }
}

fn limiter(settings: RateLimit) -> ClientRateLimiter {
    ClientRateLimiter::new(Arc::new(settings))
}

/// Checks a request so many nanoseconds after a moment at which all limiters exist.
fn check_at<'a>(
    limiter: &'a ClientRateLimiter,
    now: u64,
    context: &mut RequestContext<'a>,
) -> Result<(), HttpError> {
    static START: LazyLock<Instant> = LazyLock::new(|| Instant::now() + Duration::from_secs(3_600));
    limiter.check_at(*START + Duration::from_nanos(now), context)
}

/// The response to a request that meets these limiters: its status and its lines.
fn answer(limiters: &[&ClientRateLimiter], asking: &Asking, now: u64) -> (u16, String) {
    let mut context = asking.context();
    let mut answer = Response::default();
    answer.clear();
    match limiters.iter().try_for_each(|limiter| check_at(limiter, now, &mut context)) {
        Ok(()) => context.finish(&mut answer),
        Err(fault) => {
            error_response::fill(fault, &mut answer);
            context.finish_error(&mut answer);
        }
    }
    (answer.status, String::from_utf8(answer.fields.lines().to_vec()).unwrap())
}

#[test]
fn who_asks_too_often_learns_when_to_come_again_and_nobody_else_notices() {
    let limiter = limiter(limit(2, Duration::from_secs(60), 2));
    let (one, other) = (Asking::from("192.0.2.1"), Asking::from("192.0.2.2"));
    assert_eq!(answer(&[&limiter], &one, SECOND), (200, String::new()));
    assert_eq!(answer(&[&limiter], &one, 2 * SECOND), (200, String::new()));
    let refused = "Retry-After: 28\r\nRateLimit-Policy: \"api\";q=2;w=60\r\nRateLimit: \"api\";r=0;t=28\r\n";
    assert_eq!(answer(&[&limiter], &one, 3 * SECOND + 1), (429, refused.to_owned()));
    assert_eq!(answer(&[&limiter], &other, 3 * SECOND).0, 200);
    assert_eq!(answer(&[&limiter], &one, (3 + 28) * SECOND + 1).0, 200, "as told");
    assert_eq!(limiter.counts(), Counts { admitted: 4, rejected: 1, evicted: 0, keys: 2 });
}

#[test]
fn those_let_in_learn_what_is_left_where_that_is_asked_for() {
    let limiter = limiter(RateLimit { announce: true, ..limit(10, Duration::from_secs(1), 20) });
    let asking = Asking::from("192.0.2.1");
    let policy = "RateLimit-Policy: \"api\";q=10;w=1;onehop-burst=20\r\n";
    for (left, seconds) in [(19, 2), (18, 2)] {
        let lines = format!("{policy}RateLimit: \"api\";r={left};t={seconds}\r\n");
        assert_eq!(answer(&[&limiter], &asking, SECOND), (200, lines));
    }
    for left in (0..18).rev() {
        let (status, lines) = answer(&[&limiter], &asking, SECOND);
        assert_eq!(status, 200);
        assert!(lines.contains(&format!("r={left};")), "{lines}");
    }
    assert_eq!(
        answer(&[&limiter], &asking, SECOND),
        (429, format!("Retry-After: 1\r\n{policy}RateLimit: \"api\";r=0;t=1\r\n"))
    );
}

#[test]
fn errors_of_others_tell_what_is_left_and_redirections_do_not() {
    let limiter = limiter(RateLimit { announce: true, ..limit(10, Duration::from_secs(1), 20) });
    let asking = Asking::from("192.0.2.1");
    for (status, is_reported) in
        [(200, true), (302, false), (308, false), (304, true), (404, true), (503, true)]
    {
        let mut context = asking.context();
        check_at(&limiter, SECOND, &mut context).unwrap();
        let mut answer = Response::default();
        answer.clear();
        answer.status = status;
        match status {
            404 => {
                error_response::fill(HttpError::NotFound, &mut answer);
                context.finish_error(&mut answer);
            }
            _ => context.finish(&mut answer),
        }
        assert_eq!(answer.fields.get("RateLimit").is_some(), is_reported, "{status}");
    }
}

#[test]
fn of_several_zones_only_the_one_that_refuses_is_reported() {
    let second = limiter(RateLimit { announce: true, ..limit(5, Duration::from_secs(1), 5) });
    let hour = limiter(RateLimit { zone: "hour".to_owned(), ..limit(2, Duration::from_secs(3_600), 2) });
    let asking = Asking::from("192.0.2.1");
    for _ in 0..2 {
        let (status, lines) = answer(&[&second, &hour], &asking, SECOND);
        assert_eq!((status, lines.contains("\"api\";r="), lines.contains("hour")), (200, true, false));
    }
    let (status, lines) = answer(&[&second, &hour], &asking, SECOND);
    assert_eq!(status, 429);
    assert!(!lines.contains("\"api\"") && lines.contains("\"hour\";r=0;t=1800"), "{lines}");
}

#[test]
fn a_client_known_by_its_address_costs_no_allocation() {
    let networks = vec![Network::new("10.0.0.0".parse().unwrap(), 8).unwrap()];
    let limiter =
        limiter(RateLimit { trusted_proxies: networks, ..limit(u32::MAX, Duration::from_secs(1), 1_000) });
    let said = "X-Forwarded-For: 198.51.100.7, 2001:db8::1\r\n";
    for asking in
        [Asking::from("192.0.2.1"), Asking::from("2001:db8::1"), Asking::with(Some("10.0.0.1"), said)]
    {
        let _ = limiter.check(&mut asking.context());
        let counted = allocation_counter::measure(|| {
            let mut context = asking.context();
            let _ = limiter.check(&mut context);
        });
        assert_eq!(counted.count_total, 0);
    }
}
