//! Who is chosen, how often, and who again.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use onehop_config::checked::Network;
use onehop_config::checked::proxy as checked;
use onehop_http1::{RequestHead, ServerCodec};
use onehop_message::origin::Origin;

use onehop_config::checked::proxy::{BalancePolicy, PassiveHealth};
use onehop_upstream::balance::Chosen;
use onehop_upstream::member::Member;

use super::*;
use crate::limits::CODEC_LIMITS;
use onehop_upstream::peer::{Endpoint, Peer, PeerSettings};

/// An upstream at `127.0.0.1:8000` and the following ports.
pub(crate) fn member(number: usize) -> Arc<Member> {
    let address = SocketAddr::from(([127, 0, 0, 1], 8000 + u16::try_from(number).unwrap()));
    let settings = PeerSettings { dial_timeout: Duration::from_secs(3), ..PeerSettings::default() };
    Member::new(number, Peer::new(address.to_string(), Endpoint::Address(address), settings))
}

/// `reverse_proxy` with this policy, and all else switched off.
pub(crate) fn settings(policy: BalancePolicy) -> checked::Proxy {
    checked::Proxy {
        name: "test".to_owned(),
        transport: checked::ProxyTransport {
            dial_fallback_delay: None,
            keepalive: None,
            keepalive_interval: None,
            keepalive_idle_conns_per_host: 0,
            ..checked::ProxyTransport::default()
        },
        pool: checked::ProxyPool { min: 0, max: None },
        balance: checked::Balance {
            policy,
            retries: None,
            try_duration: Duration::ZERO,
            try_interval: Duration::from_millis(250),
            retry_match: Vec::new(),
        },
        passive_health: PassiveHealth {
            fail_duration: Some(Duration::from_secs(3_600)),
            ..PassiveHealth::default()
        },
        ..checked::Proxy::default()
    }
}

fn proxy(policy: BalancePolicy, members: usize) -> Arc<Proxy> {
    Proxy::new(Arc::new(settings(policy)), (0..members).map(member).collect())
}

pub(crate) struct Client {
    head: RequestHead,
    peer: SocketAddr,
    is_encrypted: bool,
}

impl Client {
    pub(crate) fn new(target: &str, fields: &str) -> Self {
        let mut head = RequestHead::new();
        let text = format!("GET {target} HTTP/1.1\r\nHost: example.com\r\n{fields}\r\n");
        ServerCodec::new(CODEC_LIMITS).read_head(text.as_bytes(), &mut head).unwrap().unwrap();
        Self { head, peer: ([192, 0, 2, 1], 4711).into(), is_encrypted: false }
    }

    fn from(address: &str) -> Self {
        Self { peer: SocketAddr::new(address.parse().unwrap(), 4711), ..Self::new("/", "") }
    }

    pub(crate) fn chosen(&self, proxy: &Proxy, tried: &[usize]) -> Option<Chosen> {
        let origin = Origin { tls: self.is_encrypted, ..Origin::plain(Some(self.peer), 0) };
        proxy.choose(&RequestContext::new(&self.head, origin, std::time::Instant::now(), &[], &[]), tried)
    }

    fn number(&self, proxy: &Proxy) -> usize {
        self.chosen(proxy, &[]).unwrap().member.number
    }
}

/// How often each upstream is chosen.
fn counts(proxy: &Proxy, client: &Client, requests: usize) -> Vec<usize> {
    let mut counts = vec![0; proxy.members.len()];
    for _ in 0..requests {
        counts[client.number(proxy)] += 1;
    }
    counts
}

/// One failure is remembered for an hour.
fn fail(proxy: &Proxy, number: usize) {
    proxy.members[number].failed(&proxy.settings.passive_health);
}

fn every_policy() -> Vec<BalancePolicy> {
    use BalancePolicy as P;
    let random = || Box::new(P::Random);
    vec![
        P::Random,
        P::RandomChoose(2),
        P::RandomChoose(3),
        P::First,
        P::RoundRobin,
        P::WeightedRoundRobin(vec![3, 2, 1]),
        P::LeastConn,
        P::PeakEwma,
        P::IpHash,
        P::ClientIpHash,
        P::UriHash,
        P::Query("q".to_owned(), random()),
        P::Header("x-key".to_owned(), random()),
        P::Cookie {
            name: "lb".to_owned(),
            secret: checked::CookieSecret(String::new()),
            max_age: None,
            fallback: random(),
        },
    ]
}

#[test]
fn no_policy_chooses_one_that_is_not_available_or_has_failed_this_request() {
    let client = Client::new("/a?q=1", "X-Key: v\r\n");
    for policy in every_policy() {
        let proxy = proxy(policy.clone(), 3);
        for _ in 0..50 {
            assert_eq!(client.chosen(&proxy, &[0, 2]).unwrap().member.number, 1, "{policy:?}");
        }
        fail(&proxy, 1);
        for _ in 0..50 {
            assert_eq!(client.chosen(&proxy, &[0]).unwrap().member.number, 2, "{policy:?}");
            assert_ne!(client.number(&proxy), 1, "{policy:?}");
            let again = client.chosen(&proxy, &[0, 2]).unwrap().member.number;
            assert_ne!(again, 1, "{policy:?}: where all have failed it, those that are available");
        }
        fail(&proxy, 0);
        fail(&proxy, 2);
        assert!(client.chosen(&proxy, &[]).is_none(), "{policy:?}");
        assert!(client.chosen(&proxy, &[1]).is_none(), "{policy:?}");
    }
}

#[test]
fn random_policies_give_each_about_the_same() {
    let client = Client::new("/", "");
    for policy in [BalancePolicy::Random, BalancePolicy::RandomChoose(2), BalancePolicy::RandomChoose(9)] {
        let counts = counts(&proxy(policy.clone(), 4), &client, 8_000);
        assert!(counts.iter().all(|count| (1_750..2_250).contains(count)), "{policy:?}: {counts:?}");
    }
    for policy in [BalancePolicy::LeastConn, BalancePolicy::PeakEwma] {
        let counts = counts(&proxy(policy.clone(), 2), &client, 4_000);
        assert!(counts.iter().all(|count| (1_750..2_250).contains(count)), "{policy:?}: {counts:?}");
    }
}

#[test]
fn the_first_that_is_available_is_taken() {
    let (proxy, client) = (proxy(BalancePolicy::First, 3), Client::new("/", ""));
    assert_eq!(counts(&proxy, &client, 10), [10, 0, 0]);
    fail(&proxy, 0);
    assert_eq!(counts(&proxy, &client, 10), [0, 10, 0]);
}

#[test]
fn round_robin_is_exact_over_all_threads_and_spreads_what_a_missing_one_would_have_had() {
    let proxy = proxy(BalancePolicy::RoundRobin, 3);
    let all = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..4).map(|_| scope.spawn(|| counts(&proxy, &Client::new("/", ""), 3_000))).collect();
        let mut all = [0; 3];
        for thread in threads {
            for (sum, count) in all.iter_mut().zip(thread.join().unwrap()) {
                *sum += count;
            }
        }
        all
    });
    assert_eq!(all, [4_000; 3]);
    fail(&proxy, 1);
    assert_eq!(counts(&proxy, &Client::new("/", ""), 3_000), [1_500, 0, 1_500]);
}

#[test]
fn weights_are_kept_also_when_one_is_missing() {
    let (proxy, client) =
        (proxy(BalancePolicy::WeightedRoundRobin(vec![3, 0, 2, 1]), 4), Client::new("/", ""));
    assert_eq!(counts(&proxy, &client, 600), [300, 0, 200, 100]);
    // As in Caddy each has its turns in a row, and the first turn of all is already used.
    let order: Vec<usize> = (0..6).map(|_| client.number(&proxy)).collect();
    assert_eq!(order, [0, 0, 2, 2, 3, 0]);
    fail(&proxy, 2);
    assert_eq!(counts(&proxy, &client, 400), [300, 0, 0, 100]);
    fail(&proxy, 0);
    fail(&proxy, 3);
    assert!(client.chosen(&proxy, &[]).is_none(), "a weight of nothing gets nothing");
}

#[test]
fn the_least_loaded_is_taken() {
    let client = Client::new("/", "");
    for policy in [BalancePolicy::LeastConn, BalancePolicy::RandomChoose(3)] {
        let proxy = proxy(policy, 3);
        let _busy: Vec<_> = [0, 0, 2].map(|number| proxy.members[number].begin()).into();
        assert_eq!(counts(&proxy, &client, 100), [0, 100, 0]);
        let _busier = [1, 1].map(|number| proxy.members[number].begin());
        assert_eq!(counts(&proxy, &client, 100), [0, 0, 100]);
    }
}

#[test]
fn of_two_the_one_is_taken_where_requests_wait_less() {
    let (proxy, client) = (proxy(BalancePolicy::PeakEwma, 2), Client::new("/", ""));
    let answered = |number: usize, milliseconds: u64| {
        let asked = Instant::now() - Duration::from_millis(milliseconds);
        proxy.members[number].answered(200, asked, &proxy.settings.passive_health);
    };
    answered(0, 50);
    assert_eq!(counts(&proxy, &client, 10), [0, 10], "one of which nothing is known is tried");
    let first = proxy.members[1].begin();
    assert_eq!(counts(&proxy, &client, 10), [10, 0], "and then waited for");
    drop(first);
    answered(1, 10);
    assert_eq!(counts(&proxy, &client, 10), [0, 10]);
    let busy: Vec<_> = (0..6).map(|_| proxy.members[1].begin()).collect();
    assert_eq!(counts(&proxy, &client, 10), [10, 0], "seven times 10 ms are more than 50");
    drop(busy);
    answered(1, 400);
    assert_eq!(counts(&proxy, &client, 10), [10, 0], "a peak counts at once");
}

#[test]
fn a_refused_connection_does_not_look_quick() {
    let (mut settings, client) = (settings(BalancePolicy::PeakEwma), Client::new("/", ""));
    settings.passive_health = PassiveHealth::default();
    let proxy = Proxy::new(Arc::new(settings), (0..2).map(member).collect());
    proxy.members[0].failed(&PassiveHealth::default());
    proxy.members[1].answered(200, Instant::now() - Duration::from_millis(300), &PassiveHealth::default());
    assert_eq!(counts(&proxy, &client, 10), [0, 10]);
}

#[test]
fn hashes_spread_keys_and_keep_them_while_others_fail_and_come_back() {
    let (proxy, addresses) = (proxy(BalancePolicy::IpHash, 4), 0..4_000u32);
    let chosen = || -> Vec<usize> {
        let from = addresses.clone().map(|n| format!("10.0.{}.{}", n >> 8, n & 255));
        from.map(|address| Client::from(&address).number(&proxy)).collect()
    };
    let before = chosen();
    let counts: Vec<_> = (0..4).map(|number| before.iter().filter(|n| **n == number).count()).collect();
    assert!(counts.iter().all(|count| (850..1_150).contains(count)), "{counts:?}");
    let busy = proxy.members[2].begin();
    let mut settings = (*proxy.settings).clone();
    settings.passive_health.unhealthy_request_count = Some(1);
    let without = Proxy::new(Arc::new(settings), proxy.members.clone());
    let mut moved_to = [0; 4];
    for (n, was) in addresses.clone().zip(&before) {
        let now = Client::from(&format!("10.0.{}.{}", n >> 8, n & 255)).number(&without);
        if *was == 2 {
            moved_to[now] += 1;
        } else {
            assert_eq!(now, *was, "only keys of the missing one move");
        }
    }
    assert!(moved_to[2] == 0 && [0, 1, 3].iter().all(|n| moved_to[*n] > 200), "{moved_to:?}");
    drop(busy);
    assert_eq!(chosen(), before, "they move back");
}

#[test]
fn a_hash_leads_where_caddy_leads() {
    // hostByHashing: the highest xxhash64 of address and key together.
    let proxy = proxy(BalancePolicy::UriHash, 4);
    for key in ["/", "/a", "/a?b=c", "/index.html"] {
        let scores = (0..4).map(|n| {
            let text = format!("127.0.0.1:{}{key}", 8000 + n);
            xxhash_rust::xxh64::xxh64(text.as_bytes(), 0)
        });
        let scores: Vec<u64> = scores.collect();
        let best = (0..4).max_by_key(|n| scores[*n]).unwrap();
        assert_eq!(Client::new(key, "").number(&proxy), best, "{key}");
    }
}

#[test]
fn a_client_knows_of_stops_apart_as_the_policy_says() {
    let four = |policy| proxy(policy, 4);
    let headers = four(BalancePolicy::Header("x-key".to_owned(), Box::new(BalancePolicy::First)));
    let hosts = four(BalancePolicy::Header("host".to_owned(), Box::new(BalancePolicy::First)));
    let queries = four(BalancePolicy::Query("k".to_owned(), Box::new(BalancePolicy::First)));
    let by = |proxy: &Proxy, key: &[u8]| {
        let score = |n: &usize| {
            let address = format!("127.0.0.1:{}", 8000 + n);
            xxhash_rust::xxh64::xxh64(&[address.as_bytes(), key].concat(), 0)
        };
        (0..proxy.members.len()).max_by_key(score).unwrap()
    };
    for key in ["a", "b", "c", "d", "e"] {
        let fields = format!("X-Key: {key}\r\nX-Key: other\r\n");
        assert_eq!(Client::new("/", &fields).number(&headers), by(&headers, key.as_bytes()));
    }
    for fields in ["", "X-Key: \r\n"] {
        assert_eq!(Client::new("/", fields).number(&headers), 0, "what is done where there is none");
    }
    assert_eq!(Client::new("/", "").number(&hosts), by(&hosts, b"example.com"));
    for (target, key) in [
        ("/?k=a", Some("a")),
        ("/?x=1&k=a%2Fb+c", Some("a/b c")),
        ("/?k=a&k=b", Some("a,b")),
        ("/?%6B=a", Some("a")),
        ("/?k=&k=", Some(",")),
        ("/?k=", None),
        ("/?kk=a", None),
        ("/", None),
    ] {
        let expected = key.map_or(0, |key| by(&queries, key.as_bytes()));
        assert_eq!(Client::new(target, "").number(&queries), expected, "{target}");
    }
}

#[test]
fn a_clients_address_is_believed_from_trusted_proxies_alone() {
    let mut settings = settings(BalancePolicy::ClientIpHash);
    settings.trusted_proxies = vec![Network::new("192.0.2.0".parse().unwrap(), 24).unwrap()];
    let proxy = Proxy::new(Arc::new(settings), (0..8).map(member).collect());
    let direct = |address: &str| Client::from(address).number(&proxy);
    for number in 0..50 {
        let client = format!("198.51.100.{number}");
        let fields = format!("X-Forwarded-For: {client}\r\n");
        let reported = Client::new("/", &fields);
        assert_eq!(reported.number(&proxy), direct(&client), "{client} behind a trusted proxy");
        let stranger = Client { peer: ([203, 0, 113, 9], 1).into(), ..Client::new("/", &fields) };
        assert_eq!(stranger.number(&proxy), direct("203.0.113.9"), "whoever says so");
    }
}

fn cookies(secret: &str, max_age: Option<Duration>) -> Arc<Proxy> {
    let fallback = Box::new(BalancePolicy::RoundRobin);
    let secret = checked::CookieSecret(secret.to_owned());
    proxy(BalancePolicy::Cookie { name: "lb".to_owned(), secret, max_age, fallback }, 3)
}

fn given(chosen: &Chosen) -> String {
    String::from_utf8(chosen.cookie.clone().unwrap()).unwrap()
}

#[test]
fn a_cookie_leads_back_to_who_gave_it_out_for_as_long_as_that_one_is_available() {
    let proxy = cookies("secret", None);
    for number in [1, 2, 0] {
        let first = Client::new("/", "").chosen(&proxy, &[]).unwrap();
        assert_eq!(first.member.number, number);
        let cookie = given(&first).split(';').next().unwrap().to_owned();
        for fields in
            [format!("Cookie: a=b; {cookie}\r\n"), format!("Cookie: a=lb=x\r\nCookie: {cookie};c=d\r\n")]
        {
            let client = Client::new("/", &fields);
            for _ in 0..5 {
                let chosen = client.chosen(&proxy, &[]).unwrap();
                assert_eq!((chosen.member.number, chosen.cookie), (number, None));
            }
        }
    }
    let first = Client::new("/", "").chosen(&proxy, &[]).unwrap();
    let client = Client::new("/", &format!("Cookie: {}\r\n", given(&first).split(';').next().unwrap()));
    fail(&proxy, first.member.number);
    let other = client.chosen(&proxy, &[]).unwrap();
    assert_ne!(other.member.number, first.member.number);
    assert!(other.cookie.is_some(), "it stays with the other one from now on");
}

#[test]
fn a_cookie_that_nobody_gave_out_is_replaced() {
    let proxy = cookies("secret", None);
    let foreign = given(&Client::new("/", "").chosen(&cookies("another", None), &[]).unwrap());
    let foreign = foreign.split(';').next().unwrap();
    for cookie in [foreign, "lb=", "lb=127.0.0.1:8000", "lb=\"\""] {
        let chosen = Client::new("/", &format!("Cookie: {cookie}\r\n")).chosen(&proxy, &[]).unwrap();
        assert!(chosen.cookie.is_some(), "{cookie}");
    }
}

#[test]
fn a_cookie_is_written_as_caddy_writes_it() {
    let chosen = Client::new("/", "").chosen(&cookies("secret", None), &[]).unwrap();
    // printf 127.0.0.1:8001 | openssl dgst -sha256 -hmac secret
    let value = HMAC_OF_8001;
    assert_eq!(given(&chosen), format!("lb={value}; Path=/; HttpOnly; SameSite=Lax"));
    let day = cookies("secret", Some(Duration::from_secs(86_400)));
    let encrypted = Client { is_encrypted: true, ..Client::new("/", "") };
    let chosen = encrypted.chosen(&day, &[]).unwrap();
    let fields = "Path=/; Max-Age=86400; HttpOnly; Secure; SameSite=None";
    assert_eq!(given(&chosen), format!("lb={value}; {fields}"));
}

const HMAC_OF_8001: &str = "c85de7861bfe972f021d8e76ee2136ee7c5185104ea088545bde678cddef29dd";
