//! `lb_policy`: which upstream a request goes to.
//!
//! Chooses among those that are available ([`crate::health`]), as Caddy's policies do (2.11,
//! modules/caddyhttp/reverseproxy/selectionpolicies.go): after a move from Caddy a client's address, header or cookie
//! leads to the same upstream. Never waits. Each core chooses by itself; cores share the turn of the round robins and
//! what each [`Member`] counts.

mod cookie;
mod keys;
mod turns;

use std::cell::OnceCell;
use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::Network;
use onehop_config::checked::proxy::{BalancePolicy, PassiveHealth};
use onehop_message::request::Request;
use xxhash_rust::xxh64::Xxh64;

use crate::member::Member;
use cookie::Cookie;
use turns::{Turns, WeightedTurns};

/// Where a request goes.
pub struct Chosen {
    /// To this one.
    pub member: Arc<Member>,
    /// The value of a Set-Cookie field that leads later requests there, where the policy gives one out.
    pub cookie: Option<Vec<u8>>,
}

/// A policy, with what it remembers.
pub struct Policy(Kind);

enum Kind {
    Random,
    RandomChoose(u32),
    First,
    RoundRobin(Turns),
    WeightedRoundRobin(WeightedTurns),
    LeastConn,
    PeakEwma,
    IpHash,
    ClientIpHash,
    UriHash,
    Query(String, Box<Kind>),
    Header(String, Box<Kind>),
    Cookie(Box<Cookie>, Box<Kind>),
}

/// Those of whom one is chosen.
struct Candidates<'a> {
    members: &'a [Arc<Member>],
    passive: &'a PassiveHealth,
    /// Not these.
    tried: &'a [usize],
    now: OnceCell<Instant>,
}

type Choice<'a> = Option<(&'a Arc<Member>, Option<Vec<u8>>)>;

impl Policy {
    /// As configured, with nothing remembered.
    pub fn new(policy: &BalancePolicy, members: &[Arc<Member>]) -> Self {
        Self(Kind::new(policy, members))
    }

    /// Chooses the upstream that a request goes to; `None` where none is available. Those in `tried` have failed this
    /// request: they are chosen again only where no other is available.
    pub fn choose(
        &self,
        members: &[Arc<Member>],
        passive: &PassiveHealth,
        tried: &[usize],
        request: &Request<'_>,
        trusted: &[Network],
    ) -> Option<Chosen> {
        let among = |tried| {
            let candidates = Candidates { members, passive, tried, now: OnceCell::new() };
            let (member, cookie) = self.0.choose(&candidates, request, trusted)?;
            Some(Chosen { member: Arc::clone(member), cookie })
        };
        among(tried).or_else(|| if tried.is_empty() { None } else { among(&[]) })
    }
}

impl Kind {
    fn new(policy: &BalancePolicy, members: &[Arc<Member>]) -> Self {
        let fallback = |policy: &BalancePolicy| Box::new(Self::new(policy, members));
        match policy {
            BalancePolicy::Random => Self::Random,
            BalancePolicy::RandomChoose(count) => Self::RandomChoose(*count),
            BalancePolicy::First => Self::First,
            BalancePolicy::RoundRobin => Self::RoundRobin(Turns::default()),
            BalancePolicy::WeightedRoundRobin(weights) => {
                Self::WeightedRoundRobin(WeightedTurns::new(weights))
            }
            BalancePolicy::LeastConn => Self::LeastConn,
            BalancePolicy::PeakEwma => Self::PeakEwma,
            BalancePolicy::IpHash => Self::IpHash,
            BalancePolicy::ClientIpHash => Self::ClientIpHash,
            BalancePolicy::UriHash => Self::UriHash,
            BalancePolicy::Query(name, other) => Self::Query(name.clone(), fallback(other)),
            BalancePolicy::Header(name, other) => Self::Header(name.clone(), fallback(other)),
            BalancePolicy::Cookie { name, secret, max_age, fallback: other } => {
                let cookie = Cookie::new(name, &secret.0, *max_age, members);
                Self::Cookie(Box::new(cookie), fallback(other))
            }
        }
    }

    fn choose<'a>(&self, among: &Candidates<'a>, request: &Request<'_>, trusted: &[Network]) -> Choice<'a> {
        let chosen = match self {
            Self::Random => among.at_random(1).next(),
            Self::RandomChoose(count) => least_loaded(among.at_random(*count as usize)),
            Self::First => among.available().next(),
            Self::RoundRobin(turns) => turns.next(among),
            Self::WeightedRoundRobin(turns) => turns.next(among),
            Self::LeastConn => least_loaded(among.available()),
            Self::PeakEwma => among.cheapest_of_two(),
            Self::IpHash => among.by_hash(&keys::peer(request)),
            Self::ClientIpHash => among.by_hash(&keys::client(request, trusted)),
            Self::UriHash => among.by_hash(&keys::uri(request)),
            Self::Query(name, other) => match keys::query(request, name) {
                Some(value) => among.by_hash(&value),
                None => return other.choose(among, request, trusted),
            },
            Self::Header(name, other) => match keys::header(request, name) {
                Some(value) => among.by_hash(value),
                None => return other.choose(among, request, trusted),
            },
            Self::Cookie(cookie, other) => {
                if let Some(member) = cookie.find(request, among.available()) {
                    return Some((member, None));
                }
                let (member, _) = other.choose(among, request, trusted)?;
                return Some((member, Some(cookie.given_out(member, request, trusted))));
            }
        };
        chosen.map(|member| (member, None))
    }
}

impl<'a> Candidates<'a> {
    /// Those that may be asked, in the order of the file.
    fn available(&self) -> impl Iterator<Item = &'a Arc<Member>> {
        self.members.iter().filter(|member| self.has(member))
    }

    fn has(&self, member: &Member) -> bool {
        let now = || *self.now.get_or_init(Instant::now);
        !self.tried.contains(&member.number) && member.is_available_at(self.passive, now)
    }

    /// So many of them at random, each as likely as any other (reservoir sampling, Vitter's algorithm R).
    fn at_random(&self, count: usize) -> impl Iterator<Item = &'a Arc<Member>> {
        // Nearly always one or two are wanted: those need no memory.
        let mut first: [Option<&'a Arc<Member>>; 2] = [None; 2];
        let mut more = Vec::new();
        let count = count.clamp(1, self.members.len().max(1));
        for (seen, member) in self.available().enumerate() {
            let place = if seen < count { seen } else { fastrand::usize(..=seen) };
            match first.get_mut(place).filter(|_| place < count) {
                Some(chosen) => *chosen = Some(member),
                None if seen < count => more.push(member),
                None => {
                    if let Some(chosen) = place.checked_sub(first.len()).and_then(|place| more.get_mut(place))
                    {
                        *chosen = member;
                    }
                }
            }
        }
        first.into_iter().flatten().chain(more)
    }

    /// Power of two choices (Mitzenmacher 2001): of two at random the one where a request costs less. Always taking
    /// the best of all would send every core's next request to the same one.
    fn cheapest_of_two(&self) -> Option<&'a Arc<Member>> {
        let now = *self.now.get_or_init(Instant::now);
        let cost = |member: &Arc<Member>| member.health.standing.latency.cost(member.in_flight(), now);
        let mut two = self.at_random(2);
        let (one, Some(other)) = (two.next()?, two.next()) else {
            return self.available().next();
        };
        let (cost_of_one, cost_of_other) = (cost(one), cost(other));
        // The sample is in the order of the file where there are two only; equals take turns.
        let takes_one =
            if cost_of_one == cost_of_other { fastrand::bool() } else { cost_of_one < cost_of_other };
        Some(if takes_one { one } else { other })
    }

    /// The one that the key belongs to: rendezvous hashing (Thaler and Ravishankar 1998) with Caddy's own hash, so that
    /// a key moves only where its upstream is gone, and back with it.
    fn by_hash(&self, key: &[u8]) -> Option<&'a Arc<Member>> {
        let score = |member: &&'a Arc<Member>| {
            let mut hash = Xxh64::new(0);
            hash.update(member.name.as_bytes());
            hash.update(key);
            hash.digest()
        };
        // Of equals Caddy takes the first.
        self.available()
            .map(|member| (score(&member), member))
            .reduce(|best, other| if other.0 > best.0 { other } else { best })
            .map(|(_, member)| member)
    }
}

/// The one with the fewest requests; one of them at random where there are several.
fn least_loaded<'a>(members: impl Iterator<Item = &'a Arc<Member>>) -> Option<&'a Arc<Member>> {
    let mut best: Option<(usize, &Arc<Member>)> = None;
    let mut equals = 0;
    for member in members {
        let load = member.in_flight();
        let least = best.map_or(usize::MAX, |(least, _)| least);
        equals = if load < least { 1 } else { equals + usize::from(load == least) };
        if load < least || (load == least && fastrand::usize(..equals.max(1)) == 0) {
            best = Some((load, member));
        }
    }
    best.map(|(_, member)| member)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_members::member;

    #[test]
    fn a_sample_has_as_many_different_ones_as_it_should() {
        let members: Vec<_> = (0..6).map(member).collect();
        let passive = PassiveHealth::default();
        let mut counts = [0; 6];
        for count in 1..=7 {
            for _ in 0..1_000 {
                let among =
                    Candidates { members: &members, passive: &passive, tried: &[], now: OnceCell::new() };
                let mut numbers: Vec<_> = among.at_random(count).map(|member| member.number).collect();
                numbers.iter().for_each(|number| counts[*number] += 1);
                numbers.sort_unstable();
                numbers.dedup();
                assert_eq!(numbers.len(), count.min(6));
            }
        }
        // 1 + 2 + 3 + 4 + 5 + 6 + 6 for each thousand, spread over six.
        assert!(counts.iter().all(|count| (4_200..4_800).contains(count)), "{counts:?}");
    }
}
