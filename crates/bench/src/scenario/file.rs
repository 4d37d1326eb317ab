//! How a scenario is written: the tables and keys of `scenario.toml`.
//!
//! Owns names, defaults and their checks; docs/bench-scenarios.md describes them. Never starts anything.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use onehop_load::plan::STREAMS_MAX;
use onehop_load::tls::{Curve, Sessions};
use serde::{Deserialize, Deserializer, de};

use super::ScenarioError;
use crate::compare::{Metric, Settings};
use crate::quantity;

/// More cases, servers or requests are a mistake: each is measured in every round.
const ENTRIES_MAX: usize = 100;
/// More rounds take days.
const ROUNDS_MAX: usize = 10_000;
/// More than one address has ports for.
const CONNECTIONS_MAX: usize = 65_535;
/// Names stand in tables.
const NAME_LETTERS_MAX: usize = 40;

/// The whole file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// What is measured, in a sentence.
    pub about: String,
    /// Programs that have to be in PATH.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Rounds; each server is measured once in each.
    #[serde(default = "rounds")]
    pub rounds: usize,
    /// Length of each measurement.
    #[serde(default = "time", deserialize_with = "duration")]
    pub time: Duration,
    /// Load before each measurement, not counted.
    #[serde(default = "warm_up", deserialize_with = "span")]
    pub warm_up: Duration,
    /// Who runs where.
    #[serde(default)]
    pub cores: Cores,
    /// How long a server may take until its first good answer.
    #[serde(default = "ready_within", deserialize_with = "duration")]
    pub ready_within: Duration,
    /// Servers that are measured; the first is the one that the others are compared with.
    #[serde(rename = "server", default)]
    pub servers: Vec<Server>,
    /// Servers behind them.
    #[serde(default)]
    pub behind: Vec<Behind>,
    /// What is asked, and how often.
    #[serde(rename = "case", default)]
    pub cases: Vec<Case>,
    /// What has to be shown.
    #[serde(rename = "bound", default)]
    pub bounds: Vec<Bound>,
}

/// Who runs where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Cores {
    /// Servers and load have cores of their own, where there are two.
    #[default]
    Apart,
    /// All share all of them, as on a small machine.
    Shared,
}

/// A server that is measured.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    /// Its name in tables.
    pub name: String,
    /// The command that starts it, split as a shell splits it.
    pub command: String,
    /// Variables beside those of this process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Files, relative to the scenario, that are filled in for each start.
    #[serde(default)]
    pub files: Vec<String>,
    /// Names of the servers behind it.
    #[serde(default)]
    pub behind: Vec<String>,
    /// It is asked over TLS, as localhost.
    #[serde(default)]
    pub https: bool,
    /// The certificates to trust in place of the system's, relative to the scenario.
    pub cacert: Option<String>,
    /// Its certificate is not verified.
    #[serde(default)]
    pub insecure: bool,
}

/// A server behind others.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Behind {
    /// The placeholder of its port.
    pub name: String,
    /// The command that starts it.
    pub command: String,
    /// Variables beside those of this process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// What it uses counts as used by the server before it. Where every server has the same one behind, it says nothing.
    #[serde(default)]
    pub weighed: bool,
}

/// What is asked, and how often.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// Its name in tables.
    pub name: String,
    /// The requests.
    #[serde(rename = "request")]
    pub requests: Vec<CaseRequest>,
    /// Connections.
    #[serde(default = "connections")]
    pub connections: usize,
    /// Requests per second, whether or not they are answered; without it each connection asks as fast as it is answered.
    pub rate: Option<f64>,
    /// The same as a share of the highest rate that the slowest server was just seen to answer.
    pub share_of_capacity: Option<f64>,
    /// More is asked than can be answered: refusals do not void a measurement, and the rate is that of the expected responses.
    #[serde(default)]
    pub overload: bool,
    /// Clients leave after so long without a whole response.
    #[serde(default, deserialize_with = "some_duration")]
    pub timeout: Option<Duration>,
    /// A connection for each request.
    #[serde(default)]
    pub new_connections: bool,
    /// Whether handshakes of TLS may be resumed.
    #[serde(default, deserialize_with = "sessions")]
    pub tls_sessions: Sessions,
    /// The key exchange groups that are offered, the preferred one first; the library's, where none is named.
    #[serde(default, deserialize_with = "curves")]
    pub tls_curves: Vec<Curve>,
    /// Asked over HTTP/2: over https by ALPN, over http with prior knowledge.
    #[serde(default)]
    pub http2: bool,
    /// Concurrent streams of each connection; 1, where none is named.
    pub streams: Option<u32>,
    /// Variables of all servers in this case, beside their own.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Names of the servers that take part; all, where none is named.
    #[serde(default)]
    pub servers: Vec<String>,
    /// Bytes of the body of the first answer.
    pub body_bytes: Option<u64>,
    /// The content coding of the first answer.
    pub encoding: Option<String>,
    /// Asked with the validator of each server's first answer, and answered with 304.
    #[serde(default)]
    pub conditional: bool,
    /// Length of the load before, where it is another than the scenario's.
    #[serde(default, deserialize_with = "some_span")]
    pub warm_up: Option<Duration>,
    /// Length of each measurement, where it is another than the scenario's.
    #[serde(default, deserialize_with = "some_duration")]
    pub time: Option<Duration>,
    /// Idle connections that are open before and during the load; what each adds to the server's memory is measured.
    #[serde(default)]
    pub idle_connections: usize,
    /// Also the first answer after so long without a request.
    #[serde(default, deserialize_with = "some_duration")]
    pub idle: Option<Duration>,
    /// Also how long the overload lasts on after its end, which is looked at for so long at half the capacity.
    #[serde(default, deserialize_with = "some_duration")]
    pub recovery: Option<Duration>,
}

/// A request.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseRequest {
    /// The path, with its query.
    pub path: String,
    /// The method.
    pub method: Option<String>,
    /// Header fields.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Option<String>,
    /// How often it is asked in comparison with the others.
    #[serde(default = "weight")]
    pub weight: u32,
    /// The statuses that count as success; 200 to 299, where none is named.
    #[serde(default)]
    pub status: Vec<u16>,
}

/// What has to be shown: a figure of the first server divided by that of another.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bound {
    /// The case.
    pub case: String,
    /// The other server.
    pub against: String,
    /// What is compared.
    #[serde(default, deserialize_with = "metric")]
    pub figure: Figure,
    /// The ratio is at most this.
    pub at_most: Option<f64>,
    /// The ratio is at least this.
    pub at_least: Option<f64>,
}

/// What a bound is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figure(pub Metric);

/// Figures by the names that JSON reports have for them.
pub const FIGURES: [(&str, Metric); 11] = [
    ("cpu_us_per_request", Metric::CpuPerRequest),
    ("rate_per_second", Metric::Rate),
    ("p50_us", Metric::P50),
    ("p99_us", Metric::P99),
    ("memory_median_bytes", Metric::MemoryMedian),
    ("memory_p99_bytes", Metric::MemoryP99),
    ("memory_at_rest_bytes", Metric::MemoryAtRest),
    ("memory_per_idle_connection_bytes", Metric::MemoryPerIdleConnection),
    ("cold_start_us", Metric::ColdStart),
    ("after_idle_us", Metric::AfterIdle),
    ("recovery_us", Metric::Recovery),
];

impl Default for Figure {
    fn default() -> Figure {
        Figure(Metric::CpuPerRequest)
    }
}

impl File {
    /// Reads what stands in a file.
    pub(super) fn parse(text: &str, path: &Path) -> Result<File, ScenarioError> {
        let wrong = |why: String| ScenarioError::Wrong { file: path.display().to_string(), why };
        let file: File =
            toml::from_str(text).map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        file.check().map_err(wrong)?;
        Ok(file)
    }

    /// Names that nothing has, and what no comparison can be made of.
    fn check(&self) -> Result<(), String> {
        let servers: Vec<&str> = self.servers.iter().map(|server| server.name.as_str()).collect();
        let cases: Vec<&str> = self.cases.iter().map(|case| case.name.as_str()).collect();
        let behind: Vec<&str> = self.behind.iter().map(|one| one.name.as_str()).collect();
        for (kind, names) in [("server", &servers), ("case", &cases), ("behind", &behind)] {
            check_names(kind, names)?;
        }
        if servers.len() < 2 {
            return Err(
                "a comparison needs two [[server]] tables: the first is compared with each other".to_owned()
            );
        }
        if cases.is_empty() {
            return Err("there is no [[case]]: say what is asked".to_owned());
        }
        let known = |kind: &str, name: &str, names: &[&str], at: &str| match names.contains(&name) {
            true => Ok(()),
            false => Err(format!("{at} names the {kind} `{name}`, and there are {}", names.join(", "))),
        };
        if let Some(name) = behind.iter().find(|name| ["port", "work", "folder"].contains(name)) {
            return Err(format!(
                "a server behind cannot be called `{name}`: {{{name}}} stands for something else"
            ));
        }
        if self.rounds == 0 || self.rounds > ROUNDS_MAX {
            return Err(format!("`rounds` is from 1 to {ROUNDS_MAX}"));
        }
        for server in &self.servers {
            let mut names: Vec<&str> = server.files.iter().map(|file| base_name(file)).collect();
            names.sort_unstable();
            if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                return Err(format!("server `{}` has two files called `{}`", server.name, pair[0]));
            }
            if !server.https && (server.cacert.is_some() || server.insecure) {
                return Err(format!(
                    "server `{}` is asked over http: say `https = true`, or leave `cacert` and `insecure` out",
                    server.name
                ));
            }
            for name in &server.behind {
                known("server behind", name, &behind, &format!("server `{}`", server.name))?;
            }
        }
        for case in &self.cases {
            let at = format!("case `{}`", case.name);
            for name in &case.servers {
                known("server", name, &servers, &at)?;
            }
            case.check(servers[0]).map_err(|why| format!("{at}: {why}"))?;
            if case.recovery.is_some() && case.warm_up.unwrap_or(self.warm_up).is_zero() {
                return Err(format!("{at}: `recovery` needs a `warm_up`: its p99 says what is normal"));
            }
        }
        for bound in &self.bounds {
            let at = format!("a bound of `{}`", bound.case);
            known("case", &bound.case, &cases, &at)?;
            known("server", &bound.against, &servers, &at)?;
            let of_case = self.cases.iter().find(|case| case.name == bound.case);
            if bound.against == servers[0] || of_case.is_some_and(|case| !case.has(&bound.against)) {
                return Err(format!("{at}: `{}` is not compared with `{}` there", bound.against, servers[0]));
            }
            if let Some(missing) = of_case.and_then(|case| case.lacks(bound.figure)) {
                return Err(format!("{at}: its figure is measured where the case says `{missing}`"));
            }
            if bound.at_most.is_none() == bound.at_least.is_none() {
                return Err(format!("{at}: say either at_most or at_least"));
            }
        }
        Ok(())
    }
}

impl Case {
    /// Whether a server takes part.
    pub(super) fn has(&self, server: &str) -> bool {
        self.servers.is_empty() || self.servers.iter().any(|name| name == server)
    }

    /// The key without which a figure is not measured.
    fn lacks(&self, figure: Figure) -> Option<&'static str> {
        match figure.0 {
            Metric::AfterIdle => self.idle.is_none().then_some("idle"),
            Metric::Recovery => self.recovery.is_none().then_some("recovery"),
            Metric::MemoryAtRest | Metric::MemoryPerIdleConnection => {
                (self.idle_connections == 0).then_some("idle_connections")
            }
            _ => None,
        }
    }

    /// Concurrent streams of each connection.
    pub(super) fn streams(&self) -> u32 {
        self.streams.unwrap_or(1)
    }

    fn check_streams(&self) -> Result<(), String> {
        if self.streams.is_some() && !self.http2 {
            return Err("`streams` are HTTP/2's: say `http2 = true` beside it".to_owned());
        }
        if !(1..=STREAMS_MAX).contains(&self.streams()) {
            return Err(format!("`streams` are from 1 to {STREAMS_MAX}"));
        }
        if self.new_connections && self.streams() > 1 {
            return Err(
                "with `new_connections` each connection has one request: leave `streams` out".to_owned()
            );
        }
        Ok(())
    }

    fn check(&self, first: &str) -> Result<(), String> {
        self.check_streams()?;
        if self.requests.is_empty() || self.requests.len() > ENTRIES_MAX {
            return Err(format!("`request` holds 1 to {ENTRIES_MAX} requests"));
        }
        if !self.has(first) || self.servers.len() == 1 {
            return Err(format!(
                "`servers` names `{first}`, which the others are compared with, and another one"
            ));
        }
        if self.connections.saturating_add(self.idle_connections) > CONNECTIONS_MAX {
            return Err(format!(
                "`connections` and `idle_connections` together are {CONNECTIONS_MAX} at most: an address has no more ports"
            ));
        }
        if self.connections == 0 || self.requests.iter().any(|request| request.weight == 0) {
            return Err("`connections` and `weight` are at least 1".to_owned());
        }
        if self.rate.is_some_and(|rate| !(rate > 0.0 && rate.is_finite())) {
            return Err("`rate` is a number of requests per second above 0".to_owned());
        }
        if self.share_of_capacity.is_some_and(|share| !(0.0..=10.0).contains(&share) || share == 0.0) {
            return Err("`share_of_capacity` is above 0 and at most 10: 0.6 for 60 %".to_owned());
        }
        if self.rate.is_some() && self.share_of_capacity.is_some() {
            return Err("say either `rate` or `share_of_capacity`".to_owned());
        }
        if self.overload && self.rate.is_none() && self.share_of_capacity.is_none() {
            return Err("`overload` needs a `rate` or a `share_of_capacity` above 1".to_owned());
        }
        if self.recovery.is_some() && !(self.overload && self.share_of_capacity.is_some()) {
            return Err("`recovery` needs `overload = true` and a `share_of_capacity`".to_owned());
        }
        match self.requests.iter().find(|request| !request.path.starts_with('/')) {
            Some(request) => Err(format!("the path `{}` has to begin with /", request.path)),
            None => Ok(()),
        }
    }
}

/// What stands in braces for a file.
fn base_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

fn check_names(kind: &str, names: &[&str]) -> Result<(), String> {
    if names.len() > ENTRIES_MAX {
        return Err(format!("there are more than {ENTRIES_MAX} [[{kind}]] tables"));
    }
    for (place, name) in names.iter().enumerate() {
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_. ".contains(letter);
        if name.is_empty() || name.len() > NAME_LETTERS_MAX || !name.chars().all(is_plain) {
            let rule = format!("1 to {NAME_LETTERS_MAX} letters, digits, blanks, `-`, `_` and `.`");
            return Err(format!("the name `{name}` of a {kind} has to consist of {rule}"));
        }
        if names[..place].contains(name) {
            return Err(format!("two [[{kind}]] tables have the name `{name}`"));
        }
    }
    Ok(())
}

fn rounds() -> usize {
    Settings::default().rounds
}

fn time() -> Duration {
    Settings::default().time
}

fn warm_up() -> Duration {
    Settings::default().warm_up
}

fn ready_within() -> Duration {
    Duration::from_secs(30)
}

fn connections() -> usize {
    64
}

fn weight() -> u32 {
    1
}

fn duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    quantity::duration(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

fn span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    quantity::span(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

fn some_span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    span(deserializer).map(Some)
}

fn some_duration<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    duration(deserializer).map(Some)
}

fn sessions<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Sessions, D::Error> {
    Sessions::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

fn curves<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Curve>, D::Error> {
    let names = Vec::<String>::deserialize(deserializer)?;
    names.iter().map(|name| Curve::parse(name)).collect::<Result<_, _>>().map_err(de::Error::custom)
}

fn metric<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Figure, D::Error> {
    let name = String::deserialize(deserializer)?;
    let found = FIGURES.iter().find(|(known, _)| *known == name);
    found.map(|(_, metric)| Figure(*metric)).ok_or_else(|| {
        let names: Vec<&str> = FIGURES.iter().map(|(name, _)| *name).collect();
        de::Error::custom(format!("there is no figure `{name}`; there are {}", names.join(", ")))
    })
}
