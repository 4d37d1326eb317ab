//! Counts on two threads, as two cores do, and prints the sums as Prometheus text.
//!
//! ```sh
//! cargo run -p onehop-metrics --example counters
//! ```

use std::thread;
use std::time::Duration;

use onehop_http1::Method;
use onehop_metrics::exposition::{self, TextFormat};
use onehop_metrics::site::Delivery;
use onehop_metrics::stats::Stats;
use onehop_metrics::{Handler, Registry, collect};

fn main() {
    let registry = Registry::new(2);
    let site = registry.site("example.com");
    thread::scope(|scope| {
        for (core, counters) in registry.cores.iter().zip(&site) {
            scope.spawn(move || {
                core.connection_opened();
                for micros in 0..1_000 {
                    let took = Duration::from_micros(micros);
                    counters.record(Handler::FileServer.into(), Method::Get, 200, 512, took, Delivery::Whole);
                }
                core.connection_closed();
            });
        }
    });
    let families = collect::families(&registry, &Stats { connections_max: 100, ..Stats::default() });
    print!("{}", exposition::text(&families, TextFormat::Prometheus));
}
