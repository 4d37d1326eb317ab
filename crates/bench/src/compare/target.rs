//! One target in one round: started, ready, checked, warmed up, measured, ended.
//!
//! Owns the order within a sample. Never measures a target that did not answer every request as expected, and never
//! leaves one running that it started.

use std::thread;
use std::time::{Duration, Instant};

use onehop_load::client::{Client, RequestError, Response};
use onehop_load::engine;
use onehop_load::measure::{self, IdleConnections, Meter, Server, Staged, Start, StartError, Tree};
use onehop_load::outcome::Run;
use onehop_load::plan::{Pace, Plan, Request, Until};
use onehop_load::progress::Observer;
use onehop_load::url::{Address, Endpoint};

use super::{CompareError, Mark, Sample, Settings, Source, Target, marks};

/// How often a wait looks whether it is to be broken off.
const INTERRUPTION_POLL: Duration = Duration::from_millis(50);

/// What came of one target in one round.
pub(super) enum Outcome {
    Measured(Box<Sample>),
    /// Somebody asked for it, before there was anything to tell.
    BrokenOff,
}

/// One target's turn.
pub(super) struct Turn<'a> {
    pub(super) target: &'a Target,
    /// Its place among the targets.
    pub(super) place: usize,
    pub(super) round: usize,
    /// As many as are planned.
    pub(super) rounds: usize,
    pub(super) settings: &'a Settings,
    pub(super) observer: &'a mut dyn Observer,
}

/// A target that runs, by us or by itself.
struct Running {
    requests: Vec<Request>,
    server: Option<Server>,
    /// Ends after the server.
    staged: Option<Staged>,
    cold_start: Option<Duration>,
}

impl Turn<'_> {
    /// Takes the turn. The target is ended when this returns, if it was started.
    pub(super) fn take(mut self) -> Result<Outcome, CompareError> {
        let Some(mut running) = self.start()? else { return Ok(Outcome::BrokenOff) };
        let outcome = self.measure(&mut running);
        if let Some(server) = &running.server {
            self.stop(server);
        }
        if let Some(staged) = &running.staged {
            staged.stop_hurried_by(&|| self.observer.is_interrupted());
        }
        outcome
    }

    /// A target may end by itself for as long as nobody interrupts the comparison.
    fn stop(&self, server: &Server) {
        server.stop_hurried_by(&|| self.observer.is_interrupted());
    }

    fn measure(&mut self, running: &mut Running) -> Result<Outcome, CompareError> {
        match self.checked(&running.requests)? {
            Some(requests) => running.requests = requests,
            None => return Ok(Outcome::BrokenOff),
        }
        let idle = self.idle_connections(running)?;
        if self.observer.is_interrupted() {
            return Ok(Outcome::BrokenOff);
        }
        let mut p99_before = None;
        if !self.settings.warm_up.is_zero() {
            self.stage("warming up");
            // A run of its own: what is weighed below then begins and ends with what is counted.
            let pace = self.settings.warm_up_pace.as_ref().unwrap_or(&self.settings.pace);
            let latency = self.load(&running.requests, pace, self.settings.warm_up)?.total.latency;
            p99_before = (!latency.is_empty()).then(|| latency.at(0.99));
            if self.observer.is_interrupted() {
                return Ok(Outcome::BrokenOff);
            }
        }
        self.stage("measuring");
        let before = running.processes();
        let meter = running.tree().map(Meter::start);
        let run = self.load(&running.requests, &self.settings.pace, self.settings.time)?;
        let usage = meter.and_then(Meter::stop);
        let mut marks = match self.settings.is_overload {
            true => marks::of_overload(&run),
            false => marks::of_run(&run, &self.settings.pace),
        };
        if running.was_restarted(&before) {
            marks.push(Mark::Restarted);
        }
        let idle_memory = idle.as_ref().map(IdleConnections::memory);
        drop(idle);
        let recovery = self.recovery(&running.requests, p99_before)?;
        let after_idle = self.after_idle(&running.requests);
        Ok(Outcome::Measured(Box::new(Sample {
            target: self.place,
            round: self.round,
            run,
            usage,
            cold_start: running.cold_start,
            idle_memory,
            after_idle,
            recovery,
            marks,
        })))
    }

    fn stage(&mut self, what: &str) {
        let (round, rounds) = (self.round + 1, self.rounds);
        self.observer.stage(&format!("round {round} of {rounds}: {}, {what}", self.target.name));
    }

    /// `None` where somebody broke it off.
    fn start(&mut self) -> Result<Option<Running>, CompareError> {
        match &self.target.source {
            Source::Running => {
                let requests = self.target.requests.clone();
                Ok(Some(Running { requests, server: None, staged: None, cold_start: None }))
            }
            Source::Command(start) => self.launch(start, None),
            Source::Staged(stage) => {
                self.stage("starting");
                let is_broken_off = || self.observer.is_interrupted();
                let staged = stage.set(&self.settings.server_cores, self.settings.timeouts, &is_broken_off);
                let Some(staged) = staged.map_err(|error| self.failed(error))? else { return Ok(None) };
                self.launch(&staged.start.clone(), Some(staged))
            }
        }
    }

    /// Starts it and waits for its first good answer; `None` where somebody broke it off.
    fn launch(&mut self, start: &Start, staged: Option<Staged>) -> Result<Option<Running>, CompareError> {
        self.stage("starting");
        let is_broken_off = || self.observer.is_interrupted();
        let (timeouts, cores) = (self.settings.timeouts, &self.settings.server_cores);
        let server = Server::start(start, cores).map_err(|error| self.failed(error))?;
        let requests = requests_at(&self.target.requests, server.port());
        let Some(first) = requests.first() else {
            return Err(CompareError::NoRequests { target: self.target.name.clone() });
        };
        // In one go: a first answer may take long, and is not asked for a second time meanwhile.
        let within = start.ready_within;
        let response = measure::wait_until_ready_unless(&server, first, timeouts, within, &is_broken_off);
        let cold_start = server.started_at().elapsed();
        match response {
            Ok(Some(_)) => {
                Ok(Some(Running { requests, server: Some(server), staged, cold_start: Some(cold_start) }))
            }
            Ok(None) => {
                self.stop(&server);
                Ok(None)
            }
            Err(error) => {
                self.stop(&server);
                Err(self.failed(error))
            }
        }
    }

    fn failed(&self, source: StartError) -> CompareError {
        CompareError::Start { target: self.target.name.clone(), source }
    }

    /// One request on a new connection.
    pub(super) fn request(&self, request: &Request) -> Result<Response, RequestError> {
        let is_broken_off = || self.observer.is_interrupted();
        Client::new(request.address.clone()).request_unless(request, self.settings.timeouts, &is_broken_off)
    }

    fn load(&mut self, requests: &[Request], pace: &Pace, time: Duration) -> Result<Run, CompareError> {
        let settings = self.settings;
        let plan = Plan {
            requests: requests.to_vec(),
            pace: pace.clone(),
            until: Until { time: Some(time), ..Until::default() },
            warm_up: Duration::ZERO,
            threads: settings.threads,
            cores: settings.load_cores.clone(),
            reuse: settings.reuse,
            timeouts: settings.timeouts,
            // The same for all targets of a round: they are asked the same in the same order.
            seed: settings.seed.wrapping_add(self.round as u64),
        };
        let failed = |source| CompareError::Load { target: self.target.name.clone(), source };
        engine::run(&plan, self.observer).map_err(failed)
    }

    /// Opens the idle connections that the settings ask for, so that they are there during the load.
    fn idle_connections(&mut self, running: &Running) -> Result<Option<IdleConnections>, CompareError> {
        let count = self.settings.idle_connections;
        let (Some(tree), Some(first)) = (running.tree().filter(|_| count > 0), running.requests.first())
        else {
            return Ok(None);
        };
        self.stage("opening idle connections");
        let is_interrupted = || self.observer.is_interrupted();
        let opened = IdleConnections::open(&tree, first, count, self.settings.timeouts, &is_interrupted);
        opened.map_err(|source| CompareError::Idle { target: self.target.name.clone(), source })
    }

    /// How long an overload lasts on after its end.
    fn recovery(
        &mut self,
        requests: &[Request],
        p99_before: Option<Duration>,
    ) -> Result<Option<Duration>, CompareError> {
        let (Some(recovery), Some(p99_before)) = (self.settings.recovery, p99_before) else {
            return Ok(None);
        };
        self.stage("overloading it, and waiting until it has recovered");
        let pace = recovery.pace(self.settings.pace.connections());
        let run = self.load(requests, &pace, recovery.length())?;
        Ok((!self.observer.is_interrupted()).then(|| recovery.took(&run, p99_before)))
    }

    /// The first answer on a new connection after the target had nothing to do.
    fn after_idle(&mut self, requests: &[Request]) -> Option<Duration> {
        let idle = self.settings.idle?;
        let first = requests.first()?;
        self.stage("leaving it idle");
        let begun = Instant::now();
        while begun.elapsed() < idle {
            if self.observer.is_interrupted() {
                return None;
            }
            thread::sleep(INTERRUPTION_POLL.min(idle.saturating_sub(begun.elapsed())));
        }
        let response = self.request(first).ok()?;
        first.expect.accepts(response.status).then_some(response.took)
    }
}

impl Running {
    fn tree(&self) -> Option<Tree> {
        match &self.server {
            Some(server) => Some(server.tree()),
            None => self.listening(),
        }
    }

    /// Who listens at the requests' addresses; one that is not found makes all unknown, since a part of the
    /// processes is no figure for the target.
    fn listening(&self) -> Option<Tree> {
        let mut addresses: Vec<&Address> = self.requests.iter().map(|request| &request.address).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let trees: Option<Vec<Tree>> = addresses.into_iter().map(Tree::listening_at).collect();
        trees?.into_iter().reduce(Tree::with)
    }

    /// Those of a target that runs by itself; of one that was started, its own word counts.
    fn processes(&self) -> Vec<u32> {
        match self.server {
            Some(_) => Vec::new(),
            None => self.listening().map(|tree| tree.processes()).unwrap_or_default(),
        }
    }

    /// Workers may be replaced; where none of the processes is left, it is another start.
    fn was_restarted(&self, before: &[u32]) -> bool {
        match &self.server {
            Some(server) => server.ended().is_some(),
            None => {
                let now = self.processes();
                !before.is_empty() && !before.iter().any(|process| now.contains(process))
            }
        }
    }
}

/// The requests with the target's own port wherever they name port 0.
fn requests_at(requests: &[Request], port: u16) -> Vec<Request> {
    let mut requests = requests.to_vec();
    for request in &mut requests {
        if let Address::Tcp(address) = &mut request.address
            && address.port() == 0
        {
            address.set_port(port);
        }
        let Endpoint::Tcp { port: own @ 0, .. } = &mut request.url.endpoint else { continue };
        *own = port;
        request.url.authority = with_port(&request.url.authority, port);
        for (_, value) in request.fields.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case("host")) {
            *value = with_port(value, port);
        }
    }
    requests
}

fn with_port(authority: &str, port: u16) -> String {
    match authority.strip_suffix(":0") {
        Some(host) => format!("{host}:{port}"),
        None => authority.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use onehop_load::plan::{Expect, Protocol};
    use onehop_load::url::Url;

    use super::*;

    fn request(url: &str, address: &str) -> Request {
        Request {
            name: "page".to_owned(),
            url: Url::parse(url).unwrap(),
            address: Address::Tcp(address.parse().unwrap()),
            tls: None,
            protocol: Protocol::Http1,
            method: "GET".to_owned(),
            fields: vec![("host".to_owned(), "example.com:0".to_owned())],
            body: None,
            weight: 1,
            expect: Expect::Success,
        }
    }

    #[test]
    fn port_0_becomes_the_arm_s_own_and_others_stay() {
        let own = request("http://localhost:0/a", "127.0.0.1:0");
        let other = request("http://localhost:81/a", "127.0.0.1:81");
        let filled = requests_at(&[own, other.clone()], 4321);
        assert_eq!(filled[0].url.to_string(), "http://localhost:4321/a");
        assert_eq!(filled[0].address.to_string(), "127.0.0.1:4321");
        assert_eq!(filled[0].fields[0].1, "example.com:4321");
        assert_eq!(filled[1].url, other.url);
        assert_eq!(filled[1].address, other.address);
    }
}
