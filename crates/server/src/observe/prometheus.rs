//! The counters as Prometheus text (exposition format 0.0.4).

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, PoisonError};

use crate::control::AppStatus;

use super::counters::{BUCKETS_MICROS, CLASSES, CoreCounters, Counter, HANDLERS, Registry, SiteCounters};

/// All counters, added up over the cores.
pub fn render(registry: &Registry) -> String {
    let mut out = String::new();
    let sites = registry.sites();
    requests(&mut out, &sites);
    sent_bytes(&mut out, &sites);
    durations(&mut out, &sites);
    process(&mut out, registry);
    refused_connections(&mut out, &registry.cores);
    refused(&mut out, registry);
    out
}

/// The bound on open connections, as it is now.
pub fn render_connections_max(most: usize) -> String {
    let (mut out, name) = (String::new(), "onehop_connections_max");
    family(&mut out, name, "gauge", "Connections that may be open.");
    let _ = writeln!(out, "{name} {most}");
    out
}

/// Applications and their workers, as they are now.
pub fn render_apps(apps: &[AppStatus]) -> String {
    let mut out = String::new();
    if apps.is_empty() {
        return out;
    }
    family(&mut out, "onehop_app_workers", "gauge", "Workers of an application, by state.");
    for app in apps {
        for state in ["starting", "serving", "draining", "stuck"] {
            let count = app.workers.iter().filter(|worker| worker.state == state).count();
            let app = escape(&app.app);
            let _ = writeln!(out, "onehop_app_workers{{app=\"{app}\",state=\"{state}\"}} {count}");
        }
    }
    let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&AppStatus) -> String| {
        family(&mut out, name, kind, help);
        for app in apps {
            let _ = writeln!(out, "{name}{{app=\"{}\"}} {}", escape(&app.app), value(app));
        }
    };
    each("onehop_app_restarts_total", "counter", "Workers that ended without being told to.", &|app| {
        app.failures.to_string()
    });
    each("onehop_app_queue_length", "gauge", "Requests that wait for a worker.", &|app| {
        app.queued.to_string()
    });
    each("onehop_app_in_flight", "gauge", "Requests that workers have.", &|app| {
        app.workers.iter().map(|worker| worker.in_flight).sum::<usize>().to_string()
    });
    each(
        "onehop_app_worker_lag_seconds",
        "gauge",
        "Longest delay of a worker's event loop, as last said.",
        &|app| {
            let longest = app.workers.iter().map(|worker| worker.lag_ms).fold(0.0, f64::max);
            format!("{:.6}", longest / 1_000.0)
        },
    );
    each("onehop_app_resident_bytes", "gauge", "Resident bytes of the workers, as last said.", &|app| {
        app.workers.iter().map(|worker| worker.resident_bytes).sum::<u64>().to_string()
    });
    out
}

type Sites = [(Arc<str>, Vec<Arc<SiteCounters>>)];

pub(super) fn family(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn sum<T>(cores: &[Arc<T>], which: impl Fn(&T) -> &Counter) -> u64 {
    cores.iter().map(|core| which(core).get()).sum()
}

fn requests(out: &mut String, sites: &Sites) {
    family(out, "onehop_requests_total", "counter", "Requests answered, by site, handler and status class.");
    for (site, cores) in sites {
        let site = escape(site);
        for (number, (_, handler)) in HANDLERS.iter().enumerate() {
            for class in 0..CLASSES {
                let count = sum(cores, |core| &core.requests[number][class]);
                if count > 0 {
                    let class = class + 1;
                    let _ = writeln!(
                        out,
                        "onehop_requests_total{{site=\"{site}\",handler=\"{handler}\",class=\"{class}xx\"}} {count}"
                    );
                }
            }
        }
    }
}

fn sent_bytes(out: &mut String, sites: &Sites) {
    family(out, "onehop_sent_bytes_total", "counter", "Bytes of answers' bodies.");
    for (site, cores) in sites {
        let (site, bytes) = (escape(site), sum(cores, |core| &core.sent_bytes));
        let _ = writeln!(out, "onehop_sent_bytes_total{{site=\"{site}\"}} {bytes}");
    }
}

fn durations(out: &mut String, sites: &Sites) {
    let name = "onehop_request_duration_seconds";
    family(out, name, "histogram", "From a complete head to an answer that is written or ready to be.");
    for (site, cores) in sites {
        let site = escape(site);
        let mut total = 0;
        for (number, bound) in BUCKETS_MICROS.iter().enumerate() {
            total += sum(cores, |core| &core.buckets[number]);
            let bound = seconds(*bound * 1_000);
            let _ = writeln!(out, "{name}_bucket{{site=\"{site}\",le=\"{bound}\"}} {total}");
        }
        total += sum(cores, |core| &core.buckets[BUCKETS_MICROS.len()]);
        let spent = seconds(sum(cores, |core| &core.duration_nanos));
        let _ = writeln!(out, "{name}_bucket{{site=\"{site}\",le=\"+Inf\"}} {total}");
        let _ =
            writeln!(out, "{name}_sum{{site=\"{site}\"}} {spent}\n{name}_count{{site=\"{site}\"}} {total}");
    }
}

fn process(out: &mut String, registry: &Registry) {
    let mut single = |name: &str, kind: &str, help: &str, value: u64| {
        family(out, name, kind, help);
        let _ = writeln!(out, "{name} {value}");
    };
    let (opened, closed) = registry.connections();
    let cores = &registry.cores;
    single("onehop_connections_open", "gauge", "Connections that are open.", opened.saturating_sub(closed));
    single("onehop_connections_total", "counter", "Connections opened since the start.", opened);
    let failures = sum(cores, |core: &CoreCounters| &core.accept_failures);
    single("onehop_accept_failures_total", "counter", "Connections that could not be accepted.", failures);
    let dropped = registry.log_lines_dropped.load(std::sync::atomic::Ordering::Relaxed);
    single(
        "onehop_log_lines_dropped_total",
        "counter",
        "Lines of access logs that were lost: the log was slow, or its disk full.",
        dropped,
    );
}

fn refused_connections(out: &mut String, cores: &[Arc<CoreCounters>]) {
    let name = "onehop_connections_refused_total";
    family(out, name, "counter", "Connections closed because there were too many, of all or of one address.");
    for (cause, count) in [
        ("in_all", sum(cores, |core| &core.too_many)),
        ("of_address", sum(cores, |core| &core.too_many_of_address)),
    ] {
        let _ = writeln!(out, "{name}{{cause=\"{cause}\"}} {count}");
    }
}

fn refused(out: &mut String, registry: &Registry) {
    family(out, "onehop_refused_total", "counter", "Requests that no handler answered, by cause.");
    let mut causes: BTreeMap<&str, (u16, u64)> = BTreeMap::new();
    for core in &registry.cores {
        for (cause, (status, count)) in core.refused.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            causes.entry(cause).or_insert((*status, 0)).1 += count;
        }
    }
    for (cause, (status, count)) in causes {
        let _ = writeln!(out, "onehop_refused_total{{cause=\"{cause}\",status=\"{status}\"}} {count}");
    }
}

fn seconds(nanos: u64) -> String {
    let text = format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn escape(label: &str) -> String {
    label.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
