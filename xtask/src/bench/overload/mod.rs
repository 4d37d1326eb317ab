//! `cargo xtask bench overload`: what people get when more is asked than can be answered.
//!
//! Owns the order of the run: what each application can answer at all (C), then for each application and target the file alone,
//! each load on a fresh server, and the way back from the impossible one. `steps.rs` says what is asked, `targets.rs` starts who is
//! measured, `offer.rs` is the load; `cores.rs` on which cores, `figures.rs` what was seen, `recovery.rs` when it was over, `bounds.rs` judges, `pictures.rs`
//! and `plot.rs` draw. Never lets two targets meet different loads: C is measured once, on the application alone.

mod bounds;
mod cores;
mod figures;
mod offer;
mod pictures;
mod plot;
mod recovery;
mod steps;
mod table;
mod targets;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::json;

use crate::workspace::Options;
use crate::{Outcome, install, workspace};

use super::report::write_result;
use super::servers;
use cores::Home;
use figures::{Figures, Idle, Of, Recovery, Results, Row};
use offer::{Offer, Offered};
use steps::{APPLICATIONS, Application, SMOKE_STEPS, STEPS, Step, Times};
use targets::{Environment, Running, Target};

/// After an overload p99 is normal where it is no more than so many times the unloaded one: what the bound allows at any
/// load.
const NORMAL_FACTOR: f64 = 3.0;

struct Plan {
    times: Times,
    steps: Vec<Step>,
    around: Environment,
    has_recovery: bool,
}

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let known_steps = STEPS.map(|step| step.name);
    let known_applications = APPLICATIONS.map(Application::name);
    if options.flag("--list") {
        let (targets, cases) = (targets::ALL.join(" "), known_applications.join(" "));
        println!("targets:  {targets}\napps:  {cases}\nloads: {}", known_steps.join(" "));
        return options.finish();
    }
    let smoke = options.flag("--smoke");
    let rounds = options.number("--rounds", 1)?.max(1);
    let seconds = options.number("--seconds", 3)?.max(1);
    let names =
        options.names("--targets", targets::ALL, if smoke { targets::SMOKE } else { targets::ALL })?;
    let cases = options.names("--apps", &known_applications, &known_applications)?;
    let steps = options.names("--loads", &known_steps, if smoke { SMOKE_STEPS } else { &known_steps })?;
    let has_recovery = !options.flag("--no-recovery");
    let beside = options.names("--application-beside", cores::BESIDE, &cores::BESIDE[..1])?;
    let node = options.value("--node")?.unwrap_or_else(|| "node".to_owned());
    options.finish()?;

    let targets = names.iter().map(|name| Target::prepare(name)).collect::<Outcome<Vec<Target>>>()?;
    install::raise_descriptor_limit();
    servers::move_to_load_core();
    let home = Home::choose(&beside.concat());
    println!("{}", home.in_words());
    let measured = Duration::from_secs(seconds);
    let plan = Plan {
        times: if smoke { Times::of_smoke() } else { Times::of_run(measured) },
        steps: STEPS.iter().copied().filter(|step| steps.iter().any(|name| name == step.name)).collect(),
        around: Environment::prepare(&node, home)?,
        has_recovery,
    };
    let applications: Vec<Application> =
        APPLICATIONS.into_iter().filter(|one| cases.iter().any(|name| name == one.name())).collect();
    let mut results = Results::default();
    let mut lines = BTreeMap::new();
    for &application in &applications {
        let capacity = plan.capacity(application)?;
        results.capacities.push((application, capacity));
        println!("\n{}: {}; C = {capacity:.0} a second", application.name(), application.in_words());
        for round in 0..rounds {
            for target in rotated(&targets, round) {
                let of = Of { application, target: target.name, round };
                let line = plan.measure(of, target, capacity, &mut results);
                let line =
                    line.map_err(|error| format!("{}, {}: {error}", application.name(), target.name))?;
                lines.insert(target.name.to_owned(), line);
            }
        }
        print!("{}", table::of(&results, application, &plan.steps));
    }
    keep(&results, &applications, &plan, &targets, lines, smoke)
}

impl Plan {
    /// Measured with nothing before the application.
    fn capacity(&self, application: Application) -> Outcome<f64> {
        let running = self.around.start_alone(application)?;
        offer::capacity(application, running.address, self.times.capacity)
    }

    /// All loads of one target in one round; gives how it was started.
    fn measure(&self, of: Of, target: &Target, capacity: f64, results: &mut Results) -> Outcome<String> {
        let start = || target.start(&self.around, of.application, capacity);
        let mut line = None;
        for step in &self.steps {
            let running = start()?;
            if line.is_none() {
                line = Some(self.file_alone(of, &running, results)?);
            }
            let offered = self.loaded(of.application, step, capacity, &running)?;
            let figures = Figures::of(step.factor * capacity, &offered);
            if let Some(odd) = figures.statuses.keys().find(|status| ![200, 503].contains(*status)) {
                println!("  {} at {} answered {odd}: {}", target.name, step.name, last_line(&running));
            }
            println!("{}", table::row(of, step, &figures));
            results.rows.push(Row { of, step: *step, figures });
        }
        if self.has_recovery {
            let recovery = self.recovery(of, capacity, &start()?, results)?;
            println!("{}", table::recovery(&recovery));
            results.recoveries.push(recovery);
        }
        Ok(format!(
            "{}; {}",
            workspace::without_folders(&line.unwrap_or_default()),
            target.limit(capacity).trim_start_matches("# ")
        ))
    }

    fn file_alone(&self, of: Of, running: &Running, results: &mut Results) -> Outcome<String> {
        // The first requests of a server pay for what is made once.
        offer::file_alone(running.address, self.times.lead)?;
        let alone = offer::file_alone(running.address, self.times.measured)?;
        let p99 = figures::at(&alone.total.latency, 0.99).ok_or("the static file is not answered")?;
        results.idles.push(Idle { of, file_p99_ms: p99 });
        Ok(running.lines.join(" ; "))
    }

    fn loaded(
        &self,
        application: Application,
        step: &Step,
        capacity: f64,
        running: &Running,
    ) -> Outcome<Offered> {
        self.lead(application, capacity, running)?;
        let rate = step.factor * capacity;
        let offer =
            Offer { warm_up: self.times.settle, ..Offer::steady(application, rate, self.times.measured) };
        offer.put_on(running.address)
    }

    fn lead(&self, application: Application, capacity: f64, running: &Running) -> Outcome {
        let quiet = Offer::steady(application, capacity / 2.0, self.times.lead);
        quiet.put_on(running.address).map(drop)
    }

    /// From 10 C to 0.5 C.
    fn recovery(&self, of: Of, capacity: f64, running: &Running, results: &Results) -> Outcome<Recovery> {
        self.lead(of.application, capacity, running)?;
        let Times { overload, after, .. } = self.times;
        let offer = Offer {
            application: of.application,
            phases: vec![offer::steady(capacity * 10.0, overload), offer::steady(capacity / 2.0, after)],
            warm_up: Duration::ZERO,
            time: overload + after,
        };
        let run = offer.put_on(running.address)?.run;
        let unloaded = results.middle(of.application, of.target, steps::UNLOADED, |figures| figures.p99_ms);
        // A target that was not measured unloaded is judged by what the person who waits bears.
        let slow_ms = unloaded.map_or(offer::TIMEOUT.as_secs_f64() * 1e3, |p99| p99 * NORMAL_FACTOR);
        let slow = Duration::from_secs_f64(slow_ms / 1e3);
        let series = run.slices.iter().map(|slice| {
            let p99 = (slice.good > 0).then_some(slice.p99.as_secs_f64() * 1e3);
            (slice.at.as_secs_f64() - overload.as_secs_f64(), p99, slice.bad)
        });
        let series = series.collect();
        let took = recovery::until_normal(&run.slices, run.slice_length, overload, slow);
        Ok(Recovery { of, took, slow_ms, series })
    }
}

/// Prints the bounds, and writes figures and pictures to their place.
fn keep(
    results: &Results,
    applications: &[Application],
    plan: &Plan,
    targets: &[Target],
    lines: BTreeMap<String, String>,
    smoke: bool,
) -> Outcome {
    println!();
    let verdicts = bounds::verdicts(results, applications, &plan.steps);
    for verdict in &verdicts {
        println!("{:<6} {}", verdict.word(), verdict.text);
    }
    let mut versions: BTreeMap<String, String> =
        targets.iter().map(|target| (target.name.to_owned(), target.version.clone())).collect();
    versions.insert("application".to_owned(), plan.around.versions()?);
    let bounds = verdicts.iter().map(|verdict| json!({ "text": verdict.text, "is_met": verdict.is_met }));
    let mut value = json!({
        "what": "overload",
        "date": workspace::date(),
        "machine": workspace::machine(),
        "versions": versions,
        "method": "open loop, constant arrivals, latency from the intended start, clients leave after 2 s; C measured by a closed loop on the application alone; each load on a fresh server, after a second at half a C and three of this load; 5 % of requests for a route of high priority; 400 requests a second for a static file beside it",
        "cores": plan.around.home.in_words(),
        "seconds": plan.times.measured.as_secs_f64(),
        "servers": lines,
        "bounds": bounds.collect::<Vec<_>>(),
    });
    if let (Some(value), serde_json::Value::Object(seen)) = (value.as_object_mut(), results.json()) {
        value.extend(seen);
    }
    let path = write_result("overload", smoke, &value)?;
    println!("\nwritten to {}", path.display());
    for picture in applications.iter().flat_map(|application| pictures::of(results, *application)) {
        let path = path.with_file_name(format!("{}.svg", picture.name));
        std::fs::write(&path, plot::svg(&picture.chart))?;
        println!("written to {}", path.display());
    }
    Ok(())
}

fn last_line(running: &Running) -> String {
    running.last_words().lines().last().unwrap_or("its servers said nothing").to_owned()
}

/// The targets in this round's order.
fn rotated(targets: &[Target], round: u64) -> impl Iterator<Item = &Target> {
    let start = usize::try_from(round).unwrap_or(0) % targets.len().max(1);
    targets.iter().cycle().skip(start).take(targets.len())
}
