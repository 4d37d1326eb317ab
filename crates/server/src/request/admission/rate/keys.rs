//! The key under which a request is counted.
//!
//! A keyed hash (SipHash) of an address, a field, a cookie or a text, so that keys have one size and no client can choose
//! two that collide, or one that collides with another client's. An address costs no allocation. A request that lacks what
//! the limit counts by is counted by its client's address: leaving a field out is no way around a limit, and clients
//! without it do not use up each other's requests.

use std::fmt;
use std::hash::{BuildHasher, Hasher, RandomState};

use onehop_config::checked::limit::{RateKey, RateLimit};
use onehop_config::checked::{Part, Placeholder, Template};
use onehop_limits::client::network;
use onehop_message::cookies;
use onehop_message::trusted_proxies::Trust;

use crate::request::context::RequestContext;
use crate::request::route::{self, Into};

/// Stands for the client's address in a text that is hashed without it.
const CLIENT: &str = "{client_ip}";

/// A limiter's secrets. Addresses have one of their own, so that no text means an address.
pub(super) struct Keys {
    addresses: RandomState,
    texts: RandomState,
    /// Of a text with the client's address what else is in it: the client may be who a proxy names, and counts as his
    /// network.
    beside_client: Option<Template>,
}

impl Keys {
    pub(super) fn new(key: &RateKey) -> Self {
        let is_client =
            |part: &Part| matches!(part, Part::Value(Placeholder::RemoteHost | Placeholder::ClientIp));
        let beside_client = match key {
            RateKey::Template(template) if template.parts.iter().any(is_client) => {
                let parts = template.parts.iter().cloned();
                let parts =
                    parts.map(|part| if is_client(&part) { Part::Text(CLIENT.to_owned()) } else { part });
                Some(Template { parts: parts.collect() })
            }
            _ => None,
        };
        Self { addresses: RandomState::new(), texts: RandomState::new(), beside_client }
    }

    /// The key of this request.
    pub(super) fn of(&self, settings: &RateLimit, context: &RequestContext<'_>) -> u64 {
        let text = match &settings.key {
            RateKey::ClientAddress => None,
            // All of them: with the first one alone a client could count by one and mean another.
            RateKey::Header(name) => self.text(context.request.head.find_all(name)),
            RateKey::Cookie(name) => self.text(cookies::values(&context.request.head, name)),
            RateKey::Template(template) => {
                let text = self.text(std::iter::once(&*route::expand(
                    self.beside_client.as_ref().unwrap_or(template),
                    context,
                    Into::Key,
                )));
                match &self.beside_client {
                    Some(_) => text.map(|text| text ^ self.client(settings, context)),
                    None => text,
                }
            }
        };
        text.unwrap_or_else(|| self.client(settings, context))
    }

    fn client(&self, settings: &RateLimit, context: &RequestContext<'_>) -> u64 {
        let client = match settings.trusted_proxies.as_slice() {
            [] => context.request.origin.peer.map(|peer| peer.ip()),
            trusted => Trust::of(trusted, &context.request.origin)
                .client(&context.request.head, &context.request.origin),
        };
        self.addresses.hash_one(network(client))
    }

    /// Values as whoever joins them sees them; `None` where there is nothing in them.
    fn text<'v>(&self, values: impl Iterator<Item = &'v [u8]>) -> Option<u64> {
        let mut hasher = self.texts.build_hasher();
        let mut is_empty = true;
        for (number, value) in values.enumerate() {
            if number > 0 {
                hasher.write_u8(b',');
            }
            hasher.write(value);
            is_empty &= value.is_empty();
        }
        (!is_empty).then(|| hasher.finish())
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Keys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use onehop_config::checked::Network;

    use super::*;
    use crate::request::admission::rate::tests::{Asking, limit};

    fn key(keys: &Keys, settings: &RateLimit, asking: &Asking) -> u64 {
        keys.of(settings, &asking.context())
    }

    #[test]
    fn an_ipv6_client_is_its_64_and_an_ipv4_mapped_one_is_ipv4() {
        let settings = limit(1, Duration::from_secs(1), 1);
        let keys = Keys::new(&settings.key);
        let of = |address: &str| key(&keys, &settings, &Asking::from(address));
        for (one, other, is_same) in [
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff:ffff:ffff:ffff", true),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", false),
            ("::1", "127.0.0.1", false),
            ("::1", "0.0.0.0", false),
        ] {
            assert_eq!(of(one) == of(other), is_same, "{one} {other}");
        }
        let socket = key(&keys, &settings, &Asking::with(None, ""));
        assert!(["::1", "0.0.0.1", "::1:0:0:0:0"].iter().all(|address| of(address) != socket));
    }

    #[test]
    fn the_address_is_the_peers_unless_a_trusted_proxy_says_another() {
        let keys = Keys::new(&RateKey::ClientAddress);
        let mut settings = limit(1, Duration::from_secs(1), 1);
        let said = "X-Forwarded-For: 198.51.100.9, 203.0.113.7\r\n";
        let behind = Asking::with(Some("192.0.2.1"), said);
        let own = key(&keys, &settings, &Asking::from("192.0.2.1"));
        assert_eq!(key(&keys, &settings, &behind), own, "nobody is trusted");
        settings.trusted_proxies = vec![Network::new("192.0.2.0".parse().unwrap(), 24).unwrap()];
        let behind_proxy = key(&keys, &settings, &behind);
        assert_eq!(
            behind_proxy,
            key(&keys, &settings, &Asking::from("203.0.113.7")),
            "the last one that it names"
        );
        assert_eq!(key(&keys, &settings, &Asking::from("192.0.2.1")), own, "it names none");
    }

    #[test]
    fn fields_cookies_and_texts_count_by_their_value_and_by_the_address_where_they_are_missing() {
        let keys = Keys::new(&RateKey::ClientAddress);
        let with = |rate_key: &RateKey, address: &str, fields: &str| {
            let settings = RateLimit { key: rate_key.clone(), ..limit(1, Duration::from_secs(1), 1) };
            key(&keys, &settings, &Asking::with(Some(address), fields))
        };
        let template = Template { parts: vec![Part::Value(Placeholder::Header("x-key".to_owned()))] };
        for (rate_key, one, same, other, missing) in [
            (
                RateKey::Header("x-key".to_owned()),
                "X-Key: one\r\n",
                "A: b\r\nx-key: one\r\n",
                "X-Key: other\r\n",
                "X-Key: \r\n",
            ),
            (
                RateKey::Header("x-key".to_owned()),
                "X-Key: one\r\nX-Key: two\r\n",
                "X-Key: one,two\r\n",
                "X-Key: one\r\n",
                "",
            ),
            (
                RateKey::Cookie("session".to_owned()),
                "Cookie: session=one\r\n",
                "Cookie: a=b; session=one; c=d\r\n",
                "Cookie: session=other\r\n",
                "Cookie: sessions=one; session=\r\n",
            ),
            (
                RateKey::Cookie("session".to_owned()),
                "Cookie: session=new; session=one\r\n",
                "Cookie: session=new\r\nCookie: session=one\r\n",
                "Cookie: session=newer; session=one\r\n",
                "",
            ),
            (RateKey::Template(template), "X-Key: one\r\n", "x-key: one\r\n", "X-Key: other\r\n", ""),
        ] {
            let first = with(&rate_key, "192.0.2.1", one);
            assert_eq!(with(&rate_key, "192.0.2.2", same), first, "{rate_key:?} from elsewhere");
            assert_ne!(with(&rate_key, "192.0.2.1", other), first, "{rate_key:?} of another");
            let without = with(&rate_key, "192.0.2.1", missing);
            assert_eq!(without, with(&RateKey::ClientAddress, "192.0.2.1", ""), "{rate_key:?} missing");
            assert_ne!(without, with(&rate_key, "192.0.2.2", missing), "{rate_key:?} missing elsewhere");
        }
    }

    #[test]
    fn a_text_with_the_address_counts_the_client_that_a_proxy_names_and_of_ipv6_his_network() {
        let parts =
            vec![Part::Value(Placeholder::RemoteHost), Part::Value(Placeholder::Header("x-key".to_owned()))];
        let mut settings = limit(1, Duration::from_secs(1), 1);
        settings.key = RateKey::Template(Template { parts });
        settings.trusted_proxies = vec![Network::new("192.0.2.0".parse().unwrap(), 24).unwrap()];
        let keys = Keys::new(&settings.key);
        let of = |address, fields| key(&keys, &settings, &Asking::with(Some(address), fields));
        let own = of("2001:db8:0:1::1", "X-Key: a\r\n");
        assert_eq!(own, of("2001:db8:0:1::2", "X-Key: a\r\n"));
        assert_eq!(own, of("192.0.2.1", "X-Forwarded-For: 2001:db8:0:1::3\r\nX-Key: a\r\n"));
        assert_ne!(own, of("2001:db8:0:2::1", "X-Key: a\r\n"));
        assert_ne!(own, of("2001:db8:0:1::1", "X-Key: b\r\n"));
    }

    #[test]
    fn keys_are_others_in_each_zone() {
        let (asking, settings) = (Asking::from("192.0.2.1"), limit(1, Duration::from_secs(1), 1));
        let own = || key(&Keys::new(&settings.key), &settings, &asking);
        assert_ne!(own(), own());
    }
}
