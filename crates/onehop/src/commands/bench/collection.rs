//! `onehop bench collection`: requests in order, as Postman's runner asks them.

use onehop_bench::collection::{self, ReadOptions};
use onehop_load::plan::{Protocol, Timeouts};
use onehop_report::Findings;

use super::requests::{permit, url_failure};
use super::session::Session;
use crate::arguments::Collection;
use crate::failure::Failure;
use crate::units::counted;

pub(super) fn collection(arguments: &Collection) -> Result<(), Failure> {
    let options =
        ReadOptions { variables: arguments.variables.clone(), environment: arguments.environment.clone() };
    let mut collection =
        collection::read(&arguments.file, &options).map_err(|error| Failure::wrong(error.to_string()))?;
    for request in &collection.requests {
        permit(&request.url, arguments.i_own_this_host)?;
    }
    let mut session = Session::begin(&arguments.output)?;
    let tls = arguments.encryption.client(Protocol::Http1);
    collection::reach(&mut collection, &tls, arguments.connect_timeout).map_err(url_failure)?;
    session.caveats.extend(onehop_load::plan::unverified(&collection.requests));
    let timeouts = Timeouts { connect: arguments.connect_timeout, response: arguments.timeout };
    let run = collection::run(&collection, arguments.iterations, timeouts, &mut session);
    let failed: u64 = run.requests.iter().map(|request| request.failed).sum();
    let passed: u64 = run.requests.iter().map(|request| request.passed).sum();
    session.tell(Findings::Collection(run))?;
    match (failed, passed) {
        (0, 0) => Err(Failure::failed("no request was answered")),
        (0, _) => Ok(()),
        (failed, _) => Err(Failure::failed(format!(
            "{} had another answer than expected, or none: see above",
            counted(failed, "request")
        ))),
    }
}
