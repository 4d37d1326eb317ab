//! Puts load on a server and prints what it cost: `closed_loop URL [CONNECTIONS [SECONDS [CORE [RATE]]]]`.
//!
//! For comparing the load with other tools, with nothing around it. A rate makes it an open loop.

use std::time::Duration;

use onehop_load::plan::{Arrivals, Expect, Pace, Phase, Protocol, Request, Reuse, Spacing, Timeouts, Until};
use onehop_load::{Plan, Unobserved, Url};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |place: usize, otherwise: f64| words.get(place).map_or(Ok(otherwise), |word| word.parse::<f64>());
    let url = Url::parse(words.first().ok_or("a URL is missing")?)?;
    let address = url.endpoint.reach(Duration::from_secs(1))?;
    let connections = number(1, 64.0)? as usize;
    let rate = number(4, 0.0)?;
    let length = Duration::from_secs_f64(number(2, 5.0)?);
    let pace = if rate > 0.0 {
        let phases = vec![Phase { from: rate, to: rate, length }];
        Pace::Open { connections, arrivals: Arrivals { spacing: Spacing::Poisson, phases } }
    } else {
        Pace::Closed { connections, think: Duration::ZERO }
    };
    let plan = Plan {
        requests: vec![Request {
            tls: None,
            protocol: Protocol::Http1,
            name: "it".to_owned(),
            url,
            address,
            method: "GET".to_owned(),
            fields: Vec::new(),
            body: None,
            weight: 1,
            expect: Expect::Success,
        }],
        pace,
        until: Until { time: Some(length), ..Until::default() },
        warm_up: Duration::ZERO,
        threads: 1,
        cores: words.get(3).map(|core| core.parse()).transpose()?.into_iter().collect(),
        reuse: Reuse::Kept,
        timeouts: Timeouts::default(),
        seed: 1,
    };
    let run = onehop_load::engine::run(&plan, &mut Unobserved)?;
    let generator = &run.generator;
    println!(
        "{:.0} answers/s, {:.0} answers per CPU second of the load; p50 {:?}, p99 {:?}, max {:?}",
        run.rate(),
        run.total.good as f64 / generator.cpu.as_secs_f64(),
        run.total.latency.at(0.5),
        run.total.latency.at(0.99),
        run.total.latency.max(),
    );
    println!(
        "busiest {:.3}, waiting {:.3}, late p99 {:?}, limited by {:?}; faults {:?}; stalls {:?}; elapsed {:?}",
        generator.busiest,
        generator.waiting,
        generator.lateness.at(0.99),
        generator.bottleneck,
        run.total.failures,
        run.stalls,
        run.elapsed,
    );
    Ok(())
}
