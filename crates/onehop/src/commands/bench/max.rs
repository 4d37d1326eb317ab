//! `onehop bench max`: the highest rate that keeps a percentile under a limit.

use onehop_bench::quantity::Rates;
use onehop_bench::saturation::{self, Limit};
use onehop_load::plan::{self, Until};
use onehop_report::Findings;

use super::load;
use super::marks::Marks;
use super::requests::{self, RequestOptions};
use super::session::Session;
use crate::arguments::Max;
use crate::failure::Failure;

pub(super) fn max(arguments: &Max) -> Result<(), Failure> {
    let options = RequestOptions::of(&arguments.request)?;
    let mut plan = load::skeleton(&arguments.shape, arguments.connections);
    for url in &arguments.urls {
        let (weight, url) = requests::weighted(url)?;
        let url = match &arguments.shape.unix_socket {
            Some(socket) => url.over(socket.clone()),
            None => url,
        };
        plan.requests.push(options.to(url, weight)?);
    }
    // The search chooses the rates; what it keeps of this are the connections and the spacing.
    plan.pace = load::open(&Rates::constant(1.0), arguments.arrivals, arguments.time, arguments.connections);
    plan.until = Until { time: Some(arguments.time), ..Until::default() };
    let limit = Limit {
        share: arguments.limit.share,
        latency: arguments.limit.latency,
        failures: arguments.failures,
    };
    let mut session = Session::begin(&arguments.output)?;
    requests::reach(&mut plan.requests, arguments.shape.i_own_this_host, arguments.shape.connect_timeout)?;
    session.caveats.extend(plan::unverified(&plan.requests));
    let settings = saturation::Settings {
        spacing: arguments.arrivals,
        time: arguments.time,
        warm_up: plan.warm_up,
        ..saturation::Settings::default()
    };
    let marks = Marks::begin(plan.requests.iter().map(|request| &request.address));
    let found = saturation::search(&plan, limit, &settings, &mut session)
        .map_err(|error| Failure::failed(error.to_string()))?;
    drop(marks);
    let best = found.best;
    session.tell(Findings::Saturation(found))?;
    best.map(drop).map_err(|why| {
        Failure::failed(format!(
            "{why}: allow more latency with --limit or longer steps with --time, or see `onehop bench URL --rate RATE`"
        ))
    })
}
