//! What a site counts on each core, by handler, and the sums over all cores.
//!
//! What would distort the latency of a site is counted apart: streams, which last as long as their clients like; cold
//! starts, which show how a worker starts; rejected requests, which no handler sees.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use onehop_http1::Method;

use crate::counter::Counter;
use crate::handler::Handler;
use crate::histogram::{Histogram, Snapshot};
use crate::limits::{EXEMPLARS_MAX, STREAM_AFTER};
use crate::route::{self, RouteHandler, RouteNames, RouteNumber};

/// Status classes 1xx to 5xx.
pub const CLASSES: usize = 5;

/// Methods with a label of their own, by the number of [`Method`]; all others share the last one.
pub const METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "TRACE", "_other"];

/// How a response was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// Its head was sent when it was complete.
    #[default]
    Whole,
    /// Its head was sent before its body was complete.
    Pieces {
        /// From the complete head of the request to the head of the response.
        first_byte: Duration,
        /// The length of its body was known then.
        has_length: bool,
    },
    /// It may last for ever. [`SiteCounters::stream_started`] has counted it.
    Stream,
    /// The request came before the worker that answered it had answered any.
    Cold,
    /// There was too much to do, so that no handler saw the request.
    Rejected,
}

/// A traced request: links a bucket of a histogram to a trace with such a duration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exemplar {
    /// Its trace.
    pub trace_id: u128,
    /// Its span.
    pub span_id: u64,
    /// How long it took.
    pub took: Duration,
    /// When it ended.
    pub at: SystemTime,
}

/// Counters of one site on one core. A route takes memory from its first response on.
#[derive(Debug, Default)]
pub struct SiteCounters {
    /// The same on all cores.
    names: Arc<RouteNames>,
    routes: [OnceLock<Box<RouteCounters>>; route::NUMBERS],
}

/// Counters of one route. A handler takes memory from its first response on.
#[derive(Debug, Default)]
struct RouteCounters([OnceLock<Box<HandlerCounters>>; Handler::ALL.len()]);

/// Counters of one handler of a route on one core; on cache lines of their own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct HandlerCounters {
    responses: [[Counter; CLASSES]; METHODS.len()],
    sent_bytes: Counter,
    rejected: Counter,
    streams_open: Counter,
    durations: Histogram,
    cold_starts: Histogram,
    first_bytes: Histogram,
    stream_first_bytes: Histogram,
    /// The last one of each power of two of microseconds. Written for traced requests alone, and read without blocking their core
    /// for longer than a copy takes.
    exemplars: Mutex<Vec<Exemplar>>,
}

/// What all cores have counted of one handler of a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteTotals {
    /// The route's name.
    pub route: Arc<str>,
    /// The handler.
    pub handler: Handler,
    /// Its counts.
    pub totals: HandlerTotals,
}

/// Counts over all cores, of one handler or of several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HandlerTotals {
    /// Responses by method and status class; streams count when they end.
    pub responses: [[u64; CLASSES]; METHODS.len()],
    /// Bytes of response bodies.
    pub sent_bytes: u64,
    /// Requests that were rejected because there was too much to do.
    pub rejected: u64,
    /// Streams that are open.
    pub streams_open: u64,
    /// From the complete head of a request to its response, without streams, cold starts and rejected requests.
    pub durations: Snapshot,
    /// The same of cold starts.
    pub cold_starts: Snapshot,
    /// From the complete head of a request to the head of a response that was sent piece by piece.
    pub first_bytes: Snapshot,
    /// The same of streams.
    pub stream_first_bytes: Snapshot,
    /// Traced requests of different durations.
    pub exemplars: Vec<Exemplar>,
}

impl SiteCounters {
    /// Those of a core, with the names that all cores of the site share.
    pub(crate) fn new(names: &Arc<RouteNames>) -> Self {
        Self { names: Arc::clone(names), ..Self::default() }
    }

    /// The names of the site's routes.
    pub fn route_names(&self) -> &RouteNames {
        &self.names
    }

    /// Counts a response: its route and handler, the request's method, its status, the bytes of its body, the time since the request's head was
    /// complete, how it was delivered.
    #[inline(never)] // So that `xtask bench instructions` can tell what it costs.
    pub fn record(
        &self,
        at: RouteHandler,
        method: Method,
        status: u16,
        sent: u64,
        took: Duration,
        delivery: Delivery,
    ) {
        let Some(counters) = self.known(at) else {
            return self.record_first(at, method, status, sent, took, delivery);
        };
        let class = usize::from(status / 100).clamp(1, CLASSES) - 1;
        counters.responses[(method as usize).min(METHODS.len() - 1)][class].add(1);
        counters.sent_bytes.add(sent);
        match delivery {
            Delivery::Whole => counters.durations.record(took),
            // It had no end that its client waited for.
            Delivery::Pieces { first_byte, has_length: false }
                if took.saturating_sub(first_byte) > STREAM_AFTER =>
            {
                counters.stream_first_bytes.record(first_byte);
            }
            Delivery::Pieces { first_byte, .. } => {
                counters.first_bytes.record(first_byte);
                counters.durations.record(took);
            }
            Delivery::Stream => {}
            Delivery::Cold => counters.cold_starts.record(took),
            Delivery::Rejected => counters.rejected.add(1),
        }
    }

    /// Counts the first response of a handler. Apart, so that no other one pays for it.
    #[cold]
    fn record_first(
        &self,
        at: RouteHandler,
        method: Method,
        status: u16,
        sent: u64,
        took: Duration,
        delivery: Delivery,
    ) {
        self.of(at);
        self.record(at, method, status, sent, took, delivery);
    }

    /// Keeps a traced request as an example of durations like its own, in place of the one before.
    pub fn exemplify(&self, at: RouteHandler, exemplar: Exemplar) {
        let size = |took: Duration| took.as_micros().checked_ilog2();
        let mut exemplars = self.of(at).exemplars();
        exemplars.retain(|known| size(known.took) != size(exemplar.took));
        if exemplars.len() < EXEMPLARS_MAX {
            exemplars.push(exemplar);
        }
    }

    /// Counts a stream whose head is sent; [`Self::stream_ended`] ends it.
    pub fn stream_started(&self, at: RouteHandler, first_byte: Duration) {
        let counters = self.of(at);
        counters.streams_open.add(1);
        counters.stream_first_bytes.record(first_byte);
    }

    /// Counts the end of a stream.
    pub fn stream_ended(&self, at: RouteHandler) {
        self.of(at).streams_open.subtract(1);
    }

    fn known(&self, at: RouteHandler) -> Option<&HandlerCounters> {
        self.routes[at.route.index()].get()?.0[at.handler as usize].get().map(|counters| &**counters)
    }

    fn of(&self, at: RouteHandler) -> &HandlerCounters {
        let route = self.routes[at.route.index()].get_or_init(Box::default);
        route.0[at.handler as usize].get_or_init(Box::default)
    }
}

impl HandlerCounters {
    fn totals(&self) -> HandlerTotals {
        HandlerTotals {
            responses: self.responses.each_ref().map(|classes| classes.each_ref().map(Counter::get)),
            sent_bytes: self.sent_bytes.get(),
            rejected: self.rejected.get(),
            streams_open: self.streams_open.get(),
            durations: self.durations.snapshot(),
            cold_starts: self.cold_starts.snapshot(),
            first_bytes: self.first_bytes.snapshot(),
            stream_first_bytes: self.stream_first_bytes.snapshot(),
            exemplars: self.exemplars().clone(),
        }
    }

    fn exemplars(&self) -> MutexGuard<'_, Vec<Exemplar>> {
        self.exemplars.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RouteTotals {
    /// The totals of each handler of each route that has answered, over the cores of a site.
    pub fn of(cores: &[Arc<SiteCounters>]) -> Vec<Self> {
        let of_both = |route: RouteNumber, handler: Handler| {
            let routes = cores.iter().filter_map(|core| core.routes[route.index()].get());
            let counted = routes.filter_map(|route| route.0[handler as usize].get());
            let totals = counted.map(|counters| counters.totals()).reduce(HandlerTotals::merged)?;
            let route = cores.first()?.names.name(route);
            Some(Self { route, handler, totals })
        };
        let all = RouteNumber::all().flat_map(|route| Handler::ALL.map(|handler| (route, handler)));
        all.filter_map(|(route, handler)| of_both(route, handler)).collect()
    }
}

impl HandlerTotals {
    /// Those of a whole site, over its cores.
    pub fn of(cores: &[Arc<SiteCounters>]) -> Self {
        RouteTotals::of(cores)
            .into_iter()
            .map(|of_route| of_route.totals)
            .reduce(Self::merged)
            .unwrap_or_default()
    }

    /// Both together.
    pub fn merged(mut self, other: Self) -> Self {
        for (total, count) in self.responses.as_flattened_mut().iter_mut().zip(other.responses.as_flattened())
        {
            *total += count;
        }
        self.sent_bytes += other.sent_bytes;
        self.rejected += other.rejected;
        self.streams_open += other.streams_open;
        self.durations.merge(&other.durations);
        self.cold_starts.merge(&other.cold_starts);
        self.first_bytes.merge(&other.first_bytes);
        self.stream_first_bytes.merge(&other.stream_first_bytes);
        self.exemplars.extend(other.exemplars);
        self
    }

    /// Responses of all classes.
    pub fn requests(&self) -> u64 {
        self.responses.as_flattened().iter().sum()
    }

    /// Responses with a status of 500 or above; those to rejected requests too.
    pub fn errors(&self) -> u64 {
        self.responses.iter().map(|classes| classes[CLASSES - 1]).sum()
    }

    /// Streams that have started.
    pub fn streams(&self) -> u64 {
        self.stream_first_bytes.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_method_has_the_label_of_its_name() {
        let methods = [
            Method::Get,
            Method::Head,
            Method::Post,
            Method::Put,
            Method::Delete,
            Method::Options,
            Method::Patch,
            Method::Connect,
            Method::Trace,
        ];
        for method in methods {
            assert_eq!(METHODS[method as usize], format!("{method:?}").to_uppercase());
        }
        assert_eq!(METHODS[Method::Other as usize], "_other");
    }

    const SECOND: Duration = Duration::from_secs(1);

    fn totals(cores: &[Arc<SiteCounters>]) -> HandlerTotals {
        let [one] = &RouteTotals::of(cores)[..] else { panic!("one handler of one route") };
        assert_eq!((&*one.route, one.handler), ("none", Handler::App));
        assert_eq!(one.totals, HandlerTotals::of(cores));
        one.totals.clone()
    }

    #[test]
    fn responses_of_all_cores_count_by_handler_method_and_class() {
        let cores: [Arc<SiteCounters>; 2] = Default::default();
        assert_eq!(RouteTotals::of(&cores), []);
        cores[0].record(Handler::App.into(), Method::Get, 304, 10, SECOND, Delivery::Whole);
        cores[1].record(Handler::App.into(), Method::Get, 200, 20, SECOND, Delivery::Whole);
        cores[1].record(Handler::App.into(), Method::Other, 503, 0, SECOND, Delivery::Rejected);
        let totals = totals(&cores);
        let mut responses = [[0; CLASSES]; METHODS.len()];
        responses[0] = [0, 1, 1, 0, 0];
        responses[METHODS.len() - 1][4] = 1;
        assert_eq!(totals.responses, responses);
        assert_eq!((totals.requests(), totals.errors(), totals.rejected, totals.sent_bytes), (3, 1, 1, 30));
        assert_eq!(totals.durations.nanos(), 2_000_000_000);
    }

    #[test]
    fn routes_with_the_same_handler_are_counted_apart() {
        let registry = crate::Registry::new(2);
        let cores = registry.site("a");
        let handlers = ["/api/*", "*"].map(|name| {
            let route = cores[0].route_names().number(name);
            assert_eq!(cores[1].route_names().number(name), route);
            RouteHandler { route, handler: Handler::Proxy }
        });
        cores[0].record(handlers[0], Method::Get, 200, 0, SECOND, Delivery::Whole);
        cores[1].record(handlers[1], Method::Get, 200, 0, SECOND, Delivery::Whole);
        cores[1].record(handlers[1], Method::Get, 200, 0, SECOND, Delivery::Whole);
        let counted: Vec<_> = RouteTotals::of(&cores)
            .into_iter()
            .map(|one| (one.route.to_string(), one.handler, one.totals.requests()))
            .collect();
        assert_eq!(counted, [("/api/*".to_owned(), Handler::Proxy, 1), ("*".to_owned(), Handler::Proxy, 2)]);
    }

    #[test]
    fn streams_cold_starts_and_rejected_requests_are_no_latency() {
        let cores: [Arc<SiteCounters>; 1] = Default::default();
        let record = |took: u32, delivery| {
            cores[0].record(Handler::App.into(), Method::Get, 200, 0, took * SECOND, delivery)
        };
        let pieces = |has_length| Delivery::Pieces { first_byte: SECOND, has_length };
        record(2, pieces(false));
        record(20, pieces(true));
        record(20, pieces(false));
        record(30, Delivery::Cold);
        record(30, Delivery::Rejected);
        cores[0].stream_started(Handler::App.into(), SECOND);
        assert_eq!(totals(&cores).streams_open, 1);
        cores[0].stream_ended(Handler::App.into());
        record(500, Delivery::Stream);
        let totals = totals(&cores);
        assert_eq!((totals.requests(), totals.streams_open), (6, 0));
        assert_eq!(totals.durations.nanos(), 22_000_000_000);
        assert_eq!((totals.first_bytes.count(), totals.stream_first_bytes.count()), (2, 2));
        assert_eq!(totals.cold_starts.nanos(), 30_000_000_000);
    }
}
