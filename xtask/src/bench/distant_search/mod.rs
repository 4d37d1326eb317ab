//! `cargo xtask bench distant-search`: searches at a service that is 91 ms away in each direction, by way of a proxy that
//! is not. The service and the files of the proxies are those of experiments/distant-search.
//!
//! `plan.rs` says who is asked what, `world.rs` starts one target between two network namespaces, `searches.rs` asks and
//! counts round trips in the packets that passed, `figures.rs` keeps and judges, `overview.rs` sums up, `page.rs` prints.
//! `clients.rs` is a case of its own: clients that are far away from onehop. All targets of a case run at the same time:
//! they wait, they do not work. Every world is kept until its idle time is over and it is asked once more.

mod clients;
mod figures;
mod overview;
mod page;
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
use figures::{Measured, Verdict, When};
use page::Section;
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
    let mut sections = Vec::new();
    let far_clients = if wanted.clients { clients::rows(&shared, &wanted.plan)? } else { Vec::new() };
    if wanted.clients {
        tell(&mut sections, clients::section(&far_clients));
    }
    for case in &wanted.cases {
        let begun = rows.len();
        let worlds = first_rows(&wanted, &shared, *case, &mut rows);
        interrupt::check()?;
        tell(&mut sections, figures::section(&rows[begun..]));
        // Else its servers end here.
        if case.idles {
            idle.push(Idle { since: Instant::now(), worlds });
        }
    }
    if !idle.is_empty() {
        println!("\nnow idle for {} s, each case for itself", wanted.plan.idle.as_secs());
    }
    for Idle { since, worlds } in idle {
        wait_until(since + wanted.plan.idle)?;
        let begun = rows.len();
        in_parallel(worlds, |world| {
            let row = searches::row(&world, &shared, world.case.searches(&wanted.plan));
            measured(&world, When::AfterIdle, row)
        })
        .into_iter()
        .for_each(|row| rows.push(row));
        interrupt::check()?;
        tell(&mut sections, figures::section(&rows[begun..]));
    }
    let verdicts = figures::verdicts(&rows).into_iter().chain(clients::verdicts(&far_clients)).collect();
    keep(&wanted, &shared, &rows, &far_clients, verdicts, sections)
}

/// Prints a table, and keeps it for the record.
fn tell(sections: &mut Vec<Section>, section: Section) {
    print!("{}", section.markdown());
    sections.push(section);
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

/// Installs what the search service and the targets need.
fn prepare(targets: &[Target]) -> Outcome<Shared> {
    install::debian(&["openssl", "curl", "iproute2"])?;
    install::npm(world::EXPERIMENT)?;
    let nginx = if targets.contains(&Target::Nginx) {
        install::debian(&["nginx-light"])?;
        Some(PathBuf::from("/usr/sbin/nginx"))
    } else {
        None
    };
    let caddy = if targets.contains(&Target::Caddy) { Some(install::caddy()?) } else { None };
    if targets.iter().any(|target| target.is_bound()) && !workspace::program().exists() {
        return Err(format!("{} is not there", workspace::program().display()).into());
    }
    install::raise_descriptor_limit();
    Shared::prepare(nginx, caddy)
}

/// Starts all targets of a case and asks each its first row; gives the worlds of those that could be started.
fn first_rows(wanted: &Wanted, shared: &Shared, case: Case, rows: &mut Vec<Measured>) -> Vec<World> {
    let one = |target: Target| match World::open(shared, &wanted.plan, case, target) {
        Ok(world) => {
            let row = searches::row(&world, shared, case.searches(&wanted.plan));
            (measured(&world, When::First, row), Some(world))
        }
        Err(error) => {
            let row = Err(error.to_string());
            let (lateness, log) = Default::default();
            (Measured { case, target, when: When::First, row, lateness, log }, None)
        }
    };
    let targets = wanted.targets.iter().copied().filter(|target| target.takes(case)).collect();
    let mut worlds = Vec::new();
    for (row, world) in in_parallel(targets, one) {
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

/// What a reader of the page has to know.
fn method(plan: &Plan) -> String {
    format!(
        "A client opens a new connection for each search: to a search service that is {} ms away in each direction, or to a proxy beside \
         the client that asks the service. Averages are those of {} searches, of five times as many with loss. Each target has two network \
         namespaces and a service of its own, and the targets of a case are asked at the same time; a relay between two TUN devices \
         holds every packet back, handshakes included. Round trips are the longest chain of packets on the connection that carried the \
         request. After idle: the searches after {} s without one",
        plan.one_way.as_millis(),
        plan.searches,
        plan.idle.as_secs()
    )
}

/// Prints the bounds and writes everything to its place.
fn keep(
    wanted: &Wanted,
    shared: &Shared,
    rows: &[Measured],
    far_clients: &[clients::Row],
    verdicts: Vec<Verdict>,
    mut sections: Vec<Section>,
) -> Outcome {
    let plan = &wanted.plan;
    let line =
        |verdict: &Verdict| format!("{}: {}", if verdict.is_met { "met" } else { "MISSED" }, verdict.text);
    let notes = verdicts.iter().map(line).collect();
    tell(&mut sections, Section { title: "bounds".to_owned(), head: &[], rows: Vec::new(), notes });
    tell(&mut sections, overview::section(rows, &verdicts));
    // A page begins with its result; a terminal ends with it.
    sections.rotate_right(1);
    let method = method(plan);
    let mut name = "distant-search".to_owned();
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
            "node": workspace::output_of("node", &["--version"]),
            "nginx": shared.nginx.as_ref().and_then(|nginx| workspace::output_of(nginx, &["-v"])),
            "caddy": shared.caddy.as_ref().and_then(|caddy| workspace::output_of(caddy, &["version"])),
            "curl": workspace::output_of("curl", &["--version"])
                .and_then(|text| text.lines().next().map(str::to_owned)),
        },
        "method": method,
        "one_way_ms": plan.one_way.as_secs_f64() * 1e3,
        "searches": plan.searches,
        "idle_seconds": plan.idle.as_secs(),
        "congestion_control": plan.congestion,
        "tcp_slow_start_after_idle_of_the_search_service": plan.slow_start_after_idle,
        "bounds": verdicts
            .iter()
            .map(|verdict| json!({ "text": verdict.text, "is_met": verdict.is_met }))
            .collect::<Vec<_>>(),
        "rows": rows.iter().map(Measured::json).collect::<Vec<_>>(),
        "clients": far_clients.iter().map(clients::Row::json).collect::<Vec<_>>(),
    });
    let path = write_result(&name, wanted.smoke, &value)?;
    let markdown: String = sections.iter().map(Section::markdown).collect();
    std::fs::write(
        path.with_extension("md"),
        without_places(&format!("# {name}\n\n{method}.\n\n{markdown}")),
    )?;
    std::fs::write(path.with_extension("html"), without_places(&page::html(&name, &method, &sections)))?;
    println!("written to {}, as .md and .html beside it", path.display());
    let failed = rows.iter().filter(|row| !row.errors().is_empty()).count();
    if failed > 0 {
        return Err(format!("{failed} of {} rows have errors", rows.len()).into());
    }
    Ok(())
}
