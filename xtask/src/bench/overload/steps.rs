//! What is asked of whom, and how much of it: the two applications, and the loads in the order in which they are put on.
//!
//! PURE: names and numbers. Every load is told by the application's measured capacity C, so that a step means the same on
//! any machine.

use std::time::Duration;

/// A request that takes a fixed amount of work, and of what there is too little.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Application {
    /// Of CPU time: one process that has one core.
    Cpu,
    /// Of connections to a database, while the process sleeps.
    Pool,
}

/// Both, in the order in which they are measured.
pub(super) const APPLICATIONS: [Application; 2] = [Application::Cpu, Application::Pool];

/// CPU time of a request, in units of what `calibrate.mjs` finds (100 us): 4 ms, so that C is about 250 a second for both
/// applications, and the cost of refusing ten times as many is small beside the work.
pub(super) const BURN_UNITS: u64 = 40;

/// A load that stays the same.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Step {
    pub(super) name: &'static str,
    /// Requests offered, in C.
    pub(super) factor: f64,
}

/// Of how many requests one asks for the route that matters most, and how many do not: so few that at the impossible load
/// it is half a C. A route that asks for more than there is cannot be kept whole by anybody.
pub(super) const WEIGHTS: (u32, u32) = (1, 19);

/// The quiet load, by which others are judged.
pub(super) const UNLOADED: &str = "0.5C";

/// The impossible load.
pub(super) const IMPOSSIBLE: &str = "10C";

/// All loads.
pub(super) const STEPS: [Step; 5] = [
    Step { name: UNLOADED, factor: 0.5 },
    Step { name: "1C", factor: 1.0 },
    Step { name: "2C", factor: 2.0 },
    Step { name: "5C", factor: 5.0 },
    Step { name: IMPOSSIBLE, factor: 10.0 },
];

/// The loads of a smoke run.
pub(super) const SMOKE_STEPS: &[&str] = &[UNLOADED, IMPOSSIBLE];

/// How long is loaded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    /// Half of the capacity before each measurement: the engine compiles, and a limiter sees what usual is.
    pub(super) lead: Duration,
    /// The measured load before it counts: queues fill.
    pub(super) settle: Duration,
    /// What counts.
    pub(super) measured: Duration,
    /// The impossible load before a recovery.
    pub(super) overload: Duration,
    /// What is looked at after it.
    pub(super) after: Duration,
    /// Of the closed loop that finds the capacity; half as long before it.
    pub(super) capacity: Duration,
}

impl Application {
    pub(super) fn name(self) -> &'static str {
        match self {
            Application::Cpu => "cpu",
            Application::Pool => "pool",
        }
    }

    /// Whom the name stands for.
    pub(super) fn in_words(self) -> &'static str {
        match self {
            Application::Cpu => "4 ms of CPU a request, one process",
            Application::Pool => "20 ms of one of 5 database connections a request",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Application::Cpu => "/work/cpu",
            Application::Pool => "/work/pool",
        }
    }

    /// The same work for the route that matters most.
    pub(super) fn high_path(self) -> &'static str {
        match self {
            Application::Cpu => "/high/cpu",
            Application::Pool => "/high/pool",
        }
    }
}

impl Step {
    /// What the route that matters most is asked, in C.
    pub(super) fn high_factor(&self) -> f64 {
        self.factor * f64::from(WEIGHTS.0) / f64::from(WEIGHTS.0 + WEIGHTS.1)
    }
}

impl Times {
    /// Of a whole run, with so long a measurement.
    pub(super) fn of_run(measured: Duration) -> Times {
        Times {
            lead: Duration::from_secs(1),
            settle: Duration::from_secs(3),
            measured,
            overload: Duration::from_secs(3),
            after: Duration::from_secs(3),
            capacity: Duration::from_secs(4),
        }
    }

    /// Of a run that is only to show that it works.
    pub(super) fn of_smoke() -> Times {
        Times {
            lead: Duration::from_millis(200),
            settle: Duration::from_millis(100),
            measured: Duration::from_millis(400),
            overload: Duration::from_millis(400),
            after: Duration::from_millis(600),
            capacity: Duration::from_millis(500),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_most_is_asked_for_less_than_the_capacity_in_every_load() {
        let high: Vec<(&str, f64)> = STEPS.iter().map(|step| (step.name, step.high_factor())).collect();
        assert!(
            high.iter().all(|(_, factor)| *factor <= 0.5) && high.contains(&(IMPOSSIBLE, 0.5)),
            "{high:?}"
        );
        assert!(SMOKE_STEPS.iter().all(|name| STEPS.iter().any(|step| step.name == *name)));
    }
}
