//! Clients that are far away from onehop and speak TLS: round trips from the first packet to the first byte of the answer, for
//! new and for returning clients.
//!
//! The other cases put the distance between a proxy and its upstream; here it lies in front of onehop.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use onehop_load::measure::Server;
use onehop_testkit::distance::{Between, Distance, exchange};
use onehop_testkit::tls::{Offer, TLS12, TLS13, TlsClient, certificates_in};
use serde_json::{Value, json};

use crate::{Outcome, workspace};

use super::super::interrupt;
use super::figures::Verdict;
use super::page::Section;
use super::plan::Plan;
use super::world::{self, Shared};

/// The name in the certificate.
const NAME: &str = "search";
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: search:7718\r\n\r\n";

/// What was seen of one kind of client.
pub(super) struct Row {
    version: &'static str,
    is_returning: bool,
    /// Of each visit: round trips and time to the first byte of the answer.
    visits: Vec<(u32, Duration)>,
}

/// Visits onehop so many times with each kind of client.
pub(super) fn rows(shared: &Shared, plan: &Plan) -> Outcome<Vec<Row>> {
    let distance = Distance::open(&Between { one_way: plan.one_way, ..Between::default() })?;
    distance.use_congestion_control(&plan.congestion)?;
    let _server = start(shared, &distance)?;
    let roots = certificates_in(&shared.authority());
    let mut rows = Vec::new();
    for (version, versions) in [("TLS 1.3", TLS13), ("TLS 1.2", TLS12)] {
        let row = |is_returning| Row { version, is_returning, visits: Vec::new() };
        let mut of_version = [row(false), row(true)];
        for _ in 0..plan.searches {
            interrupt::check()?;
            // Sessions are the client's: the second visit of each is a return.
            let client = TlsClient::new(Offer { versions: versions.to_vec(), ..Offer::trusting(&roots) });
            for row in &mut of_version {
                row.visits.push(visit(&distance, &client, row.is_returning)?);
            }
        }
        rows.extend(of_version);
    }
    Ok(rows)
}

fn start(shared: &Shared, distance: &Distance) -> Outcome<Server> {
    let work = workspace::target_folder("bench/distant-search/clients")?;
    let file = workspace::root().join(world::EXPERIMENT).join("measured/clients.Onehopfile");
    let words = [&workspace::program().display().to_string(), "run", "--config", &file.display().to_string()];
    world::start(&words.map(str::to_owned), &shared.environment(&work), distance.far(), world::far())
}

fn visit(distance: &Distance, client: &TlsClient, is_returning: bool) -> Outcome<(u32, Duration)> {
    let begun = Instant::now();
    let port = world::inside(distance.near(), || {
        let stream = TcpStream::connect(world::far())?;
        let port = stream.local_addr()?.port();
        let mut connection = client.connect_over(stream, NAME)?;
        if connection.is_resumed() != is_returning {
            return Err(format!("a session was resumed: {}", connection.is_resumed()).into());
        }
        connection.write_all(REQUEST)?;
        connection.flush()?;
        connection.read_exact(&mut [0])?;
        Ok(port)
    })?;
    let ended = Instant::now();
    let passed = distance.passed_since(begun);
    Ok((exchange(&passed, port, begun, ended).round_trips, ended - begun))
}

impl Row {
    fn name(&self) -> String {
        format!("{}, {} client", self.version, if self.is_returning { "returning" } else { "new" })
    }

    fn most_round_trips(&self) -> u32 {
        self.visits.iter().map(|(trips, _)| *trips).max().unwrap_or_default()
    }

    fn median(&self) -> Duration {
        let mut times: Vec<Duration> = self.visits.iter().map(|(_, took)| *took).collect();
        times.sort_unstable();
        times.get(times.len() / 2).copied().unwrap_or_default()
    }

    /// One for TCP, one for the request, and the handshake's: two where TLS 1.2 begins anew (RFC 5246 section 7.3), else one.
    fn bound(&self) -> u32 {
        if self.version == "TLS 1.2" && !self.is_returning { 4 } else { 3 }
    }

    /// The row for the record.
    pub(super) fn json(&self) -> Value {
        let milliseconds = |took: &Duration| took.as_secs_f64() * 1e3;
        json!({
            "client": self.name(),
            "round_trips": self.visits.iter().map(|(trips, _)| trips).collect::<Vec<_>>(),
            "milliseconds": self.visits.iter().map(|(_, took)| milliseconds(took)).collect::<Vec<_>>(),
        })
    }
}

/// For a person.
pub(super) fn section(rows: &[Row]) -> Section {
    let cells = |row: &Row| {
        let took = format!("{:.1}", row.median().as_secs_f64() * 1e3);
        vec![row.name(), row.most_round_trips().to_string(), took, row.visits.len().to_string()]
    };
    Section {
        title: "clients at that distance, until the first byte of the answer".to_owned(),
        head: &["client", "round trips", "median ms", "visits"],
        rows: rows.iter().map(cells).collect(),
        notes: Vec::new(),
    }
}

/// The bounds.
pub(super) fn verdicts(rows: &[Row]) -> impl Iterator<Item = Verdict> {
    rows.iter().map(|row| {
        let (most, bound) = (row.most_round_trips(), row.bound());
        let text = format!("{}: at most {bound} round trips to the first byte: {most}", row.name());
        Verdict { text, is_met: most <= bound }
    })
}
