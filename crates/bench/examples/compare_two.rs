//! Compares the same request on two servers that run already: `compare_two URL URL`.

use std::time::Duration;

use onehop_bench::compare::{Check, Settings, Source, Target, compare};
use onehop_load::plan::{Expect, Protocol, Request};
use onehop_load::{Unobserved, Url};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let targets = std::env::args().skip(1).map(|url| target(&url)).collect::<Result<Vec<_>, _>>()?;
    let found = compare(&targets, &Settings::default(), &mut Unobserved)?;
    for row in &found.rows {
        println!("{:?}: {} of {} ({:?})", row.metric, row.ratio.middle, found.targets[row.test], row.verdict);
    }
    for caveat in &found.caveats {
        println!("{caveat}");
    }
    Ok(())
}

fn target(url: &str) -> Result<Target, Box<dyn std::error::Error>> {
    let url = Url::parse(url)?;
    let request = Request {
        name: url.path.clone(),
        address: url.endpoint.reach(Duration::from_secs(1))?,
        tls: None,
        protocol: Protocol::Http1,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Success,
        url,
    };
    Ok(Target {
        name: request.url.authority.clone(),
        source: Source::Running,
        requests: vec![request],
        check: Check::default(),
    })
}
