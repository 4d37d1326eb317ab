//! The run of a collection: each request after the other, so many times.
//!
//! Owns the order and the counting. One request is under way at a time, each server has one kept connection.
//! Never follows a redirect: it would be a request that nobody wrote down, measured as one that somebody did.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use onehop_load::client::{Client, RequestError, Response};
use onehop_load::latency::Latencies;
use onehop_load::plan::{Expect, Request, Timeouts};
use onehop_load::progress::{Observer, Progress};
use onehop_load::url::Address;

use super::limits::{COMPLAINTS_MAX, HOPELESS_FAILURES, HOPELESS_TIME, SERVERS_MAX};
use super::{Collection, CollectionRun, RequestFigures};

/// How often the observer hears.
const PROGRESS_EVERY: Duration = Duration::from_millis(200);

/// Asks all requests of a collection in their order, so many times.
pub fn run(
    collection: &Collection,
    iterations: u64,
    timeouts: Timeouts,
    observer: &mut dyn Observer,
) -> CollectionRun {
    observer.stage(&format!(
        "{}: {} requests, {iterations} times",
        collection.name,
        collection.requests.len()
    ));
    let mut going = Going::of(collection, iterations);
    'all: for _ in 0..iterations {
        for number in 0..collection.requests.len() {
            going.tell(observer, false);
            if observer.is_interrupted() || going.is_hopeless() {
                going.is_interrupted = true;
                break 'all;
            }
            going.request(number, timeouts);
        }
        going.iterations += 1;
    }
    going.tell(observer, true);
    going.end(collection)
}

/// A run that goes on.
struct Going<'a> {
    collection: &'a Collection,
    clients: BTreeMap<Address, Client>,
    requests: Vec<RequestFigures>,
    latency: Latencies,
    iterations: u64,
    begun: Instant,
    /// When the last request ended, whole or not, from the begin.
    last_response: Duration,
    /// The same of whole answers.
    last_whole: Duration,
    is_interrupted: bool,
    /// Failures since the last whole answer.
    failures_in_a_row: u64,
    last_failure: String,
    redirects: u64,
    has_cookies: bool,
    wanted: u64,
    done: u64,
    bad: u64,
    slice: Slice,
}

/// What came since the observer last heard.
struct Slice {
    latency: Latencies,
    begun: Instant,
}

impl Going<'_> {
    fn of(collection: &Collection, iterations: u64) -> Going<'_> {
        let requests = collection.requests.iter().map(RequestFigures::of).collect();
        Going {
            collection,
            clients: BTreeMap::new(),
            requests,
            latency: Latencies::new(),
            iterations: 0,
            begun: Instant::now(),
            last_response: Duration::ZERO,
            last_whole: Duration::ZERO,
            is_interrupted: false,
            failures_in_a_row: 0,
            last_failure: String::new(),
            redirects: 0,
            has_cookies: false,
            wanted: iterations.saturating_mul(collection.requests.len() as u64),
            done: 0,
            bad: 0,
            slice: Slice { latency: Latencies::new(), begun: Instant::now() },
        }
    }

    fn request(&mut self, number: usize, timeouts: Timeouts) {
        let Some(request) = self.collection.requests.get(number) else { return };
        let renewed = self.collection.varying.get(&number).map(|varying| {
            let mut request = request.clone();
            varying.renew(&mut request);
            request
        });
        let request = renewed.as_ref().unwrap_or(request);
        if self.clients.len() >= SERVERS_MAX && !self.clients.contains_key(&request.address) {
            self.clients.clear();
        }
        let client = self
            .clients
            .entry(request.address.clone())
            .or_insert_with(|| Client::new(request.address.clone()));
        let response = client.request(request, timeouts);
        self.last_response = self.begun.elapsed();
        self.done += 1;
        self.count(number, request, response);
    }

    fn count(&mut self, number: usize, request: &Request, response: Result<Response, RequestError>) {
        let Some(figures) = self.requests.get_mut(number) else { return };
        match response {
            Ok(response) => {
                self.failures_in_a_row = 0;
                self.last_whole = self.last_response;
                self.has_cookies |= response.field("set-cookie").is_some();
                if request.expect.accepts(response.status) {
                    figures.passed += 1;
                    figures.latency.record(response.took);
                    self.latency.record(response.took);
                    self.slice.latency.record(response.took);
                    return;
                }
                self.redirects += u64::from((300..400).contains(&response.status));
                figures.complain(format!(
                    "status {} instead of {}",
                    response.status,
                    wanted(&request.expect)
                ));
            }
            Err(error) => {
                self.failures_in_a_row += 1;
                // How much had come differs each time; the kind is the same.
                let complaint = match error {
                    RequestError::Truncated { .. } => "the answer broke off".to_owned(),
                    other => other.to_string(),
                };
                self.last_failure.clone_from(&complaint);
                figures.complain(complaint);
            }
        }
        self.bad += 1;
    }

    /// Nobody is there: hours of waiting would teach nothing.
    fn is_hopeless(&self) -> bool {
        let since = self.last_response.saturating_sub(self.last_whole);
        self.failures_in_a_row >= HOPELESS_FAILURES || (self.failures_in_a_row >= 3 && since >= HOPELESS_TIME)
    }

    fn tell(&mut self, observer: &mut dyn Observer, is_last: bool) {
        let since = self.slice.begun.elapsed();
        if since < PROGRESS_EVERY && !is_last {
            return;
        }
        let latency = &self.slice.latency;
        observer.progress(&Progress {
            is_warming_up: false,
            elapsed: self.begun.elapsed(),
            share: (self.wanted > 0).then(|| self.done as f64 / self.wanted as f64),
            good: self.done - self.bad,
            bad: self.bad,
            rate: latency.count() as f64 / since.as_secs_f64().max(f64::MIN_POSITIVE),
            p50: latency.at(0.5),
            p99: latency.at(0.99),
        });
        self.slice.latency.clear();
        self.slice.begun = Instant::now();
    }

    fn end(self, collection: &Collection) -> CollectionRun {
        let mut caveats = collection.notes.clone();
        if self.is_hopeless() {
            caveats.push(format!(
                "broken off after {} failures in a row, the last one: {}",
                self.failures_in_a_row, self.last_failure
            ));
        }
        if self.redirects > 0 {
            caveats.push(format!(
                "{} answers were redirects where none was expected: they are not followed (Newman follows \
                 them). Ask for the place they lead to, or expect the redirect's status",
                self.redirects
            ));
        }
        if self.has_cookies {
            caveats.push(
                "answers set cookies, and they are not sent back (Newman does): write what is needed into a \
                 `Cookie` header"
                    .to_owned(),
            );
        }
        CollectionRun {
            name: collection.name.clone(),
            iterations: self.iterations,
            elapsed: self.last_response,
            requests: self.requests,
            latency: self.latency,
            is_interrupted: self.is_interrupted,
            caveats,
        }
    }
}

impl RequestFigures {
    fn of(request: &Request) -> RequestFigures {
        RequestFigures {
            name: request.name.clone(),
            line: format!("{} {}", request.method, request.url),
            latency: Latencies::new(),
            passed: 0,
            failed: 0,
            complaints: Vec::new(),
        }
    }

    fn complain(&mut self, complaint: String) {
        self.failed += 1;
        if let Some((_, count)) = self.complaints.iter_mut().find(|(known, _)| *known == complaint) {
            *count += 1;
        } else if self.complaints.len() < COMPLAINTS_MAX {
            self.complaints.push((complaint, 1));
        } else if let Some((last, count)) = self.complaints.last_mut() {
            *last = "other complaints".to_owned();
            *count += 1;
        }
    }
}

/// What was expected, in words.
fn wanted(expect: &Expect) -> String {
    match expect {
        Expect::Success => "2xx".to_owned(),
        Expect::Any => "any".to_owned(),
        Expect::Exactly(statuses) => match statuses.as_slice() {
            // A class, as a test of it says: `pm.response.to.be.clientError`.
            [first, .., last]
                if statuses.len() > 3 && usize::from(last.abs_diff(*first)) + 1 == statuses.len() =>
            {
                format!("{first} to {last}")
            }
            statuses => {
                let shown: Vec<String> = statuses.iter().take(8).map(u16::to_string).collect();
                shown.join(" or ")
            }
        },
    }
}
