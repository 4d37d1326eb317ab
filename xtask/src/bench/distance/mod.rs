//! `cargo xtask bench distance`: searches at a server that is 91 ms away in each direction, by way of a proxy that is not.
//!
//! `plan.rs` says who is asked what, `world.rs` starts one target between two network namespaces, `searches.rs` asks and
//! counts round trips in the packets that passed, `figures.rs` prints, keeps and judges. `clients.rs` is a case of its own:
//! clients that are far away from onehop. All targets of a case run at the same
//! time: they wait, they do not work. Every world is kept until its idle time is over and it is asked once more.

mod clients;
mod figures;
mod plan;
mod searches;
mod world;

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use onehop_testkit::distance::Distance;
use serde_json::json;

use crate::steps::Skip;
use crate::workspace::Options;
use crate::{Outcome, install, workspace};

use super::interrupt;
use super::report::{without_places, write_result};
use figures::{Measured, When};
use plan::{CASES, Case, Plan, TARGETS, Target};
use world::{Shared, World};

/// Between two looks at a signal while nothing happens.
const PAUSE: Duration = Duration::from_millis(100);

/// What Linux distributions have their kernels use.
const USUAL_CONGESTION: &str = "cubic";

/// What the options ask for.
struct Wanted {
    smoke: bool,
    targets: Vec<Target>,
    cases: Vec<Case>,
    /// Whether clients far away are measured, too.
    clients: bool,
    plan: Plan,
}

/// A case whose first row was asked.
struct Idle {
    since: Instant,
    worlds: Vec<World>,
}

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let Some(wanted) = wanted(words)? else { return Ok(()) };
    let shared = prepare(&wanted.targets)?;
    if let Some(why) = Distance::why_not() {
        return Err(Skip(why).into());
    }
    let mut rows = Vec::new();
    let mut idle = Vec::new();
    let mut tables = String::new();
    let far_clients = if wanted.clients { clients::rows(&shared, &wanted.plan)? } else { Vec::new() };
    if wanted.clients {
        let table = clients::table(&far_clients);
        print!("\n{table}");
        tables.push_str(&table);
    }
    for case in &wanted.cases {
        let begun = rows.len();
        let worlds = first_rows(&wanted, &shared, *case, &mut rows);
        interrupt::check()?;
        tell(&mut tables, &rows[begun..]);
        idle.push(Idle { since: Instant::now(), worlds });
    }
    if !idle.is_empty() {
        println!("\nnow idle for {} s, each case for itself", wanted.plan.idle.as_secs());
    }
    for Idle { since, worlds } in idle {
        wait_until(since + wanted.plan.idle)?;
        let begun = rows.len();
        in_parallel(worlds, |mut world| {
            let row = searches::row(&mut world, &shared, wanted.plan.searches);
            measured(&world, When::AfterIdle, row)
        })
        .into_iter()
        .for_each(|row| rows.push(row));
        interrupt::check()?;
        tell(&mut tables, &rows[begun..]);
    }
    keep(&wanted, &shared, &rows, &far_clients, tables)
}

/// Prints the table of some rows of one case, and keeps it for the record.
fn tell(tables: &mut String, rows: &[Measured]) {
    let table = figures::table(rows);
    print!("\n{table}");
    tables.push_str(&table);
    tables.push('\n');
}

fn wanted(words: &[&str]) -> Outcome<Option<Wanted>> {
    let mut options = Options::new(words);
    let targets: Vec<&str> = TARGETS.iter().map(|target| target.name()).collect();
    let cases: Vec<&str> = CASES.iter().map(|case| case.name).chain([plan::CLIENTS]).collect();
    if options.flag("--list") {
        println!("targets:  {}\ncases: {}", targets.join(" "), cases.join(" "));
        options.finish()?;
        return Ok(None);
    }
    let smoke = options.flag("--smoke");
    let plan = Plan {
        searches: options.number("--searches", if smoke { 3 } else { 20 })?.max(1),
        idle: Duration::from_secs(options.number("--idle", if smoke { 1 } else { 600 })?),
        close_after: Duration::from_secs(options.number("--close-after", 5)?.max(1)),
        one_way: Duration::from_millis(options.number("--one-way", 91)?),
        congestion: options.value("--congestion")?.unwrap_or_else(|| USUAL_CONGESTION.to_owned()),
        slow_start_after_idle: !options.flag("--keep-window"),
    };
    let smoke_targets = [Target::Direct, Target::Onehop, Target::OnehopFour].map(Target::name);
    let target_names = options.names("--targets", &targets, if smoke { &smoke_targets } else { &targets })?;
    let case_names = options.names("--cases", &cases, if smoke { plan::SMOKE_CASES } else { &cases })?;
    options.finish()?;
    Ok(Some(Wanted {
        smoke,
        targets: TARGETS
            .iter()
            .copied()
            .filter(|target| target_names.iter().any(|name| name == target.name()))
            .collect(),
        clients: case_names.iter().any(|name| name == plan::CLIENTS),
        cases: CASES.iter().copied().filter(|case| case_names.iter().any(|name| name == case.name)).collect(),
        plan,
    }))
}

/// Installs what the targets need. The search server is nginx for all of them.
fn prepare(targets: &[Target]) -> Outcome<Shared> {
    install::debian(&["nginx-light", "openssl", "curl", "iproute2"])?;
    let caddy = if targets.contains(&Target::Caddy) { Some(install::caddy()?) } else { None };
    if targets.iter().any(|target| target.is_bound()) && !workspace::program().exists() {
        return Err(format!("{} is not there", workspace::program().display()).into());
    }
    install::raise_descriptor_limit();
    Shared::prepare(PathBuf::from("/usr/sbin/nginx"), caddy)
}

/// Starts all targets of a case and asks each its first row; gives the worlds of those that could be started.
fn first_rows(wanted: &Wanted, shared: &Shared, case: Case, rows: &mut Vec<Measured>) -> Vec<World> {
    let one = |target: Target| match World::open(shared, &wanted.plan, case, target) {
        Ok(mut world) => {
            let row = searches::row(&mut world, shared, wanted.plan.searches);
            (measured(&world, When::First, row), Some(world))
        }
        Err(error) => {
            let row = Err(error.to_string());
            let (lateness, log) = Default::default();
            (Measured { case, target, when: When::First, row, lateness, log }, None)
        }
    };
    let mut worlds = Vec::new();
    for (row, world) in in_parallel(wanted.targets.clone(), one) {
        rows.push(row);
        worlds.extend(world);
    }
    worlds
}

fn measured(world: &World, when: When, row: Outcome<searches::Row>) -> Measured {
    let row = row.map_err(|error| error.to_string());
    Measured {
        case: world.case,
        target: world.target,
        when,
        row,
        lateness: world.lateness(),
        log: world.log_tail(),
    }
}

/// Does the same with each at the same time.
fn in_parallel<T: Send, R: Send>(each: Vec<T>, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = each.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined.map(|outcome| outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
    })
}

fn wait_until(moment: Instant) -> Outcome {
    while Instant::now() < moment {
        interrupt::check()?;
        thread::sleep(PAUSE.min(moment.saturating_duration_since(Instant::now())));
    }
    Ok(())
}

/// Prints the bounds and writes everything to its place.
fn keep(
    wanted: &Wanted,
    shared: &Shared,
    rows: &[Measured],
    far_clients: &[clients::Row],
    mut tables: String,
) -> Outcome {
    let plan = &wanted.plan;
    let mut verdicts = figures::verdicts(rows, plan);
    verdicts.extend(clients::verdicts(far_clients));
    println!();
    for verdict in &verdicts {
        let line = format!("{:<6} {}", if verdict.is_met { "met" } else { "MISSED" }, verdict.text);
        println!("{line}");
        tables.push_str(&line);
        tables.push('\n');
    }
    let mut name = "distance".to_owned();
    if plan.congestion != USUAL_CONGESTION {
        name.push_str(&format!("-{}", plan.congestion));
    }
    if !plan.slow_start_after_idle {
        name.push_str("-kept-window");
    }
    let value = json!({
        "what": name,
        "date": workspace::date(),
        "machine": workspace::machine(),
        "versions": {
            "onehop": workspace::output_of(workspace::program(), &["--version"]),
            "nginx": workspace::output_of(&shared.nginx, &["-v"]),
            "caddy": shared.caddy.as_ref().and_then(|caddy| workspace::output_of(caddy, &["version"])),
            "curl": workspace::output_of("curl", &["--version"])
                .and_then(|text| text.lines().next().map(str::to_owned)),
        },
        "method": "two network namespaces; a relay between two TUN devices holds every packet, handshakes included; each target in a world of its own, the targets of a case at the same time; round trips are the longest chain of packets on the connection that carried the request",
        "one_way_ms": plan.one_way.as_secs_f64() * 1e3,
        "searches": plan.searches,
        "idle_seconds": plan.idle.as_secs(),
        "closing_upstream_closes_after_seconds": plan.close_after.as_secs(),
        "congestion_control": plan.congestion,
        "tcp_slow_start_after_idle_of_the_search_server": plan.slow_start_after_idle,
        "bounds": verdicts
            .iter()
            .map(|verdict| json!({ "text": verdict.text, "is_met": verdict.is_met }))
            .collect::<Vec<_>>(),
        "rows": rows.iter().map(Measured::json).collect::<Vec<_>>(),
        "clients": far_clients.iter().map(clients::Row::json).collect::<Vec<_>>(),
    });
    let path = write_result(&name, wanted.smoke, &value)?;
    std::fs::write(path.with_extension("txt"), without_places(&tables))?;
    println!("\nwritten to {}, the tables beside it", path.display());
    let failed = rows.iter().filter(|row| !row.errors().is_empty()).count();
    if failed > 0 {
        return Err(format!("{failed} of {} rows have errors", rows.len()).into());
    }
    Ok(())
}
