//! One rate limit while it is read: what either form says of it, and what none can be.
//!
//! Knows the bounds within which the server's arithmetic holds; nothing of lines and blocks.

use std::time::Duration;

use crate::arguments::unknown_word;
use crate::check::Reading;
use crate::check::template::{fixed, template};
use crate::check::value::{duration, field_name, is_token};
use crate::checked::limit::{RateKey, RateLimit};
use crate::checked::{Matcher, Network, Part, Placeholder, Template};
use crate::limits::{
    RATE_INTERVAL_NANOS_MIN, RATE_KEYS_MAX, RATE_KEYS_MIN, RATE_MEMORY_MAX, RATE_ZONE_CHARACTERS_MAX,
};
use crate::option_table::Value;
use crate::problem::{Location, Problem};
use crate::syntax::Token;

/// Keys that are remembered where the file does not say: less than three megabytes, and more clients than most sites have at a time.
const KEYS: u32 = 100_000;
/// What `by` takes besides placeholders.
const KEY_WORDS: [&str; 4] = ["ip", "header", "cookie", EVERYBODY];
/// The key of a zone that counts all requests together.
const EVERYBODY: &str = "everybody";
/// How a rate is written.
const RATE_HELP: &str = "write a number of requests and a time: `10r/s`, `100r/m`, `1000r/h`, `50r/10s`";

/// A rate limit while it is read.
pub(super) struct Draft {
    name: String,
    key: RateKey,
    events: u32,
    window: Duration,
    burst: Option<u32>,
    keys: u32,
    announces: bool,
    /// For which requests it counts, besides the matcher of its line.
    pub(super) conditions: Option<Matcher>,
    /// Where its name is written, or else its line.
    place: Location,
    /// Where it says how many, and in which time.
    rate_place: Location,
    /// Where it says how many at once.
    burst_place: Location,
}

impl Draft {
    /// With every default, for the line that begins with this word.
    pub(super) fn new(name: String, line: &Token) -> Self {
        Self {
            name,
            key: RateKey::ClientAddress,
            events: 1,
            window: Duration::from_secs(1),
            burst: None,
            keys: KEYS,
            announces: false,
            conditions: None,
            place: line.place.clone(),
            rate_place: line.place.clone(),
            burst_place: line.place.clone(),
        }
    }

    /// Where to say what is wrong with its name.
    pub(super) fn place(&self) -> &Location {
        &self.place
    }

    /// `10r/s`, `50r/10s`
    pub(super) fn rate(&mut self, token: &Token) -> Result<(), Box<Problem>> {
        let wrong = || {
            let message = format!("`{}` is no rate", token.text);
            Problem::error("rate", &token.place, message).help(RATE_HELP)
        };
        self.rate_place = token.place.clone();
        self.burst_place = token.place.clone();
        let (events, time) = token.text.split_once("r/").ok_or_else(wrong)?;
        self.events = events.parse::<u32>().ok().filter(|events| *events > 0).ok_or_else(wrong)?;
        let time = if time.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
            time.to_owned()
        } else {
            format!("1{time}")
        };
        self.window = duration(&Token { text: time, ..token.clone() }).map_err(|_| wrong())?;
        Ok(())
    }

    /// `events N`
    pub(super) fn events(&mut self, value: Value<'_>) -> Result<(), Box<Problem>> {
        self.rate_place = value.token.place.clone();
        self.events = value.count(1, u64::from(u32::MAX))?;
        Ok(())
    }

    /// `window TIME`
    pub(super) fn window(&mut self, token: &Token) -> Result<(), Box<Problem>> {
        self.rate_place = token.place.clone();
        self.window = duration(token)?;
        Ok(())
    }

    /// `burst N`
    pub(super) fn burst(&mut self, value: Value<'_>) -> Result<(), Box<Problem>> {
        self.burst_place = value.token.place.clone();
        self.burst = Some(value.count(1, u64::from(u32::MAX))?);
        Ok(())
    }

    /// `keys N`
    pub(super) fn keys(&mut self, value: Value<'_>) -> Result<(), Box<Problem>> {
        self.keys = value
            .count(RATE_KEYS_MIN, RATE_KEYS_MAX)
            .map_err(|problem| problem.help("so many clients are remembered; each takes some 26 bytes"))?;
        Ok(())
    }

    /// `zone NAME`
    pub(super) fn name(&mut self, reading: Reading<'_>, token: &Token) -> Result<(), Box<Problem>> {
        let name = fixed(reading, token, "the name of a zone")?;
        let fits = |character: char| character.is_ascii_alphanumeric() || "-_.:".contains(character);
        let is_short = name.chars().count() <= RATE_ZONE_CHARACTERS_MAX;
        if name.is_empty() || !is_short || !name.chars().all(fits) {
            let help = format!(
                "letters, digits, `-`, `_`, `.` and `:` make one, at most {RATE_ZONE_CHARACTERS_MAX} of them"
            );
            return Err(
                Problem::error("name", &token.place, format!("`{name}` is no name of a zone")).help(help)
            );
        }
        (self.name, self.place) = (name, token.place.clone());
        Ok(())
    }

    /// All requests count together, as the plugin has it where nothing is said.
    pub(super) fn has_one_key(&mut self) {
        self.key = RateKey::Template(Template::text(EVERYBODY));
    }

    /// `announce`
    pub(super) fn announce(&mut self) {
        self.announces = true;
    }

    /// `key TEXT`, as the plugin has it: a text without placeholders is one count for all.
    pub(super) fn key(&mut self, reading: Reading<'_>, token: &Token) -> Result<(), Box<Problem>> {
        self.key = key_of(template(reading, token)?);
        Ok(())
    }

    /// `by ip`, `by everybody`, `by {placeholder}`
    pub(super) fn by(&mut self, reading: Reading<'_>, token: &Token) -> Result<(), Box<Problem>> {
        self.key = match token.text.as_str() {
            "ip" => RateKey::ClientAddress,
            EVERYBODY => RateKey::Template(Template::text(EVERYBODY)),
            _ => {
                let key = template(reading, token)?;
                // A word that was meant as one of ours would count everybody together.
                if key.as_text().is_some() {
                    return Err(unknown_word("by", token, &KEY_WORDS)
                        .help("it takes `ip`, `header FIELD`, `cookie NAME`, `everybody`, or placeholders"));
                }
                key_of(key)
            }
        };
        Ok(())
    }

    /// `by header FIELD`, `by cookie NAME`
    pub(super) fn by_field(
        &mut self,
        reading: Reading<'_>,
        kind: &Token,
        token: &Token,
    ) -> Result<(), Box<Problem>> {
        let name = fixed(reading, token, &format!("the name of a {}", kind.text))?;
        self.key = if kind.text == "header" {
            RateKey::Header(field_name(token, &name)?.to_ascii_lowercase())
        } else if is_token(&name) {
            RateKey::Cookie(name)
        } else {
            let message = format!("`{name}` is no name of a cookie");
            return Err(Problem::error("arguments", &token.place, message)
                .help("letters, digits, `-` and `_` make one, as in `by cookie session`"));
        };
        Ok(())
    }

    /// What it says, where the server can count it. These say who a client is.
    pub(super) fn finished(self, trusted_proxies: Vec<Network>) -> Result<RateLimit, Box<Problem>> {
        let (events, window) = (u128::from(self.events), self.window.as_nanos());
        let wrong = |place: &Location, message: &str, help: &str| {
            Err(Problem::error("rate", place, message).help(help.to_owned()))
        };
        let days = RATE_MEMORY_MAX.as_secs() / 86_400;
        if window == 0 {
            return wrong(&self.rate_place, "a rate needs a time", "for example `100r/m`, or `window 1m`");
        }
        if self.window > RATE_MEMORY_MAX {
            let message = format!("a rate is counted over at most {days} days");
            return wrong(&self.rate_place, &message, "for example `100r/m`, or `window 1m`");
        }
        if window < events * RATE_INTERVAL_NANOS_MIN {
            let message = "more than a million requests in a second are as good as no bound";
            return wrong(&self.rate_place, message, "allow fewer, or take `rate_limit` away");
        }
        let burst = self.burst.unwrap_or(self.events);
        let memory = window.saturating_mul(u128::from(burst)).div_ceil(events);
        if memory > RATE_MEMORY_MAX.as_nanos() {
            let message =
                format!("it would take more than {days} days until {burst} requests can come again");
            return wrong(&self.burst_place, &message, "make `burst` smaller, or the time shorter");
        }
        Ok(RateLimit {
            zone: self.name,
            key: self.key,
            events: self.events,
            window: self.window,
            burst,
            keys_max: self.keys,
            trusted_proxies,
            announce: self.announces,
        })
    }
}

/// What can be looked up without writing it out is.
fn key_of(key: Template) -> RateKey {
    match key.parts.as_slice() {
        [Part::Value(Placeholder::RemoteHost | Placeholder::ClientIp)] => RateKey::ClientAddress,
        [Part::Value(Placeholder::Header(name))] => RateKey::Header(name.clone()),
        [Part::Value(Placeholder::Cookie(name))] => RateKey::Cookie(name.clone()),
        [] => RateKey::Template(Template::text(EVERYBODY)),
        _ => RateKey::Template(key),
    }
}
