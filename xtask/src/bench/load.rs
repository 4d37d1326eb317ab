//! The load: the engine of `onehop bench` within this process, on the load's core.
//!
//! Owns what is asked in one case and what was seen. Never tells a figure that the load itself limited without
//! saying so.

use std::net::SocketAddr;
use std::time::Duration;

use onehop_load::engine;
use onehop_load::measure::Usage;
use onehop_load::measure::{self, Meter, Tree};
use onehop_load::outcome::{Bottleneck, Run};
use onehop_load::plan::{Expect, Pace, Plan, Request, Reuse, Timeouts, Until};

use crate::Outcome;

use super::interrupt::{self, Interruptible};
use super::servers::{self, Cores};

/// What is asked in one case.
#[derive(Debug, Clone)]
pub(crate) struct Load {
    /// GET, unless there is a body.
    pub(crate) method: &'static str,
    /// Path of the request.
    pub(crate) path: String,
    /// Header fields of the request.
    pub(crate) fields: Vec<(String, String)>,
    /// The body; connections share its bytes.
    pub(crate) body: Option<Vec<u8>>,
    /// The one status that counts.
    pub(crate) status: u16,
    /// Connections, all kept.
    pub(crate) connections: u64,
    /// Threads of the load.
    pub(crate) threads: u64,
    /// How long.
    pub(crate) time: Duration,
    /// Where the load runs.
    pub(crate) cores: Cores,
}

/// What the load saw.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// Whole answers with the status that counts.
    pub(crate) requests: u64,
    /// The same per second.
    pub(crate) rate: f64,
    /// Median latency.
    pub(crate) p50_us: u64,
    /// CPU time of the load for each of them.
    pub(crate) load_cpu_us: f64,
    /// Answers that were not whole or had another status.
    pub(crate) errors: u64,
    /// What they were.
    pub(crate) errors_in_words: String,
}

impl Load {
    /// Loads a server and weighs these processes meanwhile.
    pub(crate) fn weighed(&self, address: SocketAddr, tree: Tree) -> Outcome<(Seen, Usage)> {
        let meter = Meter::start(tree);
        let seen = self.run(address);
        let measured = meter.finish();
        Ok((seen?, measured?.usage))
    }

    /// The same for so long, and nothing is kept of it.
    pub(crate) fn warm_up(&self, address: SocketAddr, time: Duration) -> Outcome {
        Load { time, ..self.clone() }.run(address).map(drop)
    }

    fn run(&self, address: SocketAddr) -> Outcome<Seen> {
        let plan = self.plan(address)?;
        let cores = self.cores.of_load();
        // Threads that the plan binds to no core get those of the thread that starts them.
        let load = || {
            measure::bind_to(&cores);
            engine::run(&plan, &mut Interruptible)
        };
        let run = std::thread::scope(|scope| scope.spawn(load).join()).map_err(|_| "the load broke")??;
        interrupt::check()?;
        match run.end.given_up() {
            Some(why) => Err(format!("{}: nothing good came: {why}", self.path).into()),
            None => Ok(seen_in(&run)),
        }
    }

    fn plan(&self, address: SocketAddr) -> Outcome<Plan> {
        let ask = Request {
            method: self.method.to_owned(),
            fields: self.fields.clone(),
            body: self.body.clone(),
            expect: Expect::Exactly(vec![self.status]),
            ..servers::ask(address, &self.path)?
        };
        Ok(Plan {
            requests: vec![ask],
            pace: Pace::Closed { connections: usize::try_from(self.connections)?, think: Duration::ZERO },
            until: Until { time: Some(self.time), ..Until::default() },
            warm_up: Duration::ZERO,
            threads: usize::try_from(self.threads)?,
            cores: if self.cores == Cores::Apart { self.cores.of_load() } else { Vec::new() },
            reuse: Reuse::Kept,
            timeouts: Timeouts::default(),
            seed: 1,
        })
    }
}

fn seen_in(run: &Run) -> Seen {
    let micros = |share: f64| u64::try_from(run.total.latency.at(share).as_micros()).unwrap_or(u64::MAX);
    Seen {
        requests: run.total.good,
        rate: run.rate(),
        p50_us: micros(0.5),
        load_cpu_us: run.generator.cpu.as_secs_f64() * 1e6 / run.total.good.max(1) as f64,
        errors: run.total.unexpected + run.total.failures.sum(),
        errors_in_words: format!("statuses {:?}, {:?}", run.total.statuses, run.total.failures),
    }
}

/// Why figures are the load's own.
pub(crate) fn in_words(bottleneck: Bottleneck) -> String {
    match bottleneck {
        Bottleneck::Thread { share } => format!("a thread of the load used {:.0} % of a core", share * 100.0),
        Bottleneck::Core { share } => {
            format!("a thread of the load waited for a core for {:.0} % of the time", share * 100.0)
        }
        Bottleneck::System { refused } => format!("the system refused {refused} connections of the load"),
        Bottleneck::Late { p99, .. } => format!("requests were sent {p99:?} late"),
        Bottleneck::Connections { arrivals } => format!("{arrivals} requests waited for a connection"),
    }
}
