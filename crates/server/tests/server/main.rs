//! The server from outside: real sockets, real files, an Onehopfile for each test.
//!
//! Everything runs in one process, so that deadlines can be shortened. Nothing here sleeps to wait for
//! a state.

mod admit;
mod bounds;
mod captures;
mod client;
mod conformance;
mod connections;
mod deadlines;
mod edge;
mod encoded;
mod errors;
mod files;
mod hanging_up;
mod harness;
mod heads;
mod hosts;
mod listeners;
mod matchers;
mod observed;
mod packed;
#[path = "../../../archive/tests/packing/mod.rs"]
mod packing;
mod passwords;
mod places;
mod programs;
mod proxy;
mod rate_limits;
mod refusals;
mod reported;
mod request_header;
mod routes;
#[path = "../../../http1/tests/rows/mod.rs"]
mod rows;
mod spoken_in_http;
mod sticky;
mod stopping;
mod trusted_proxies;
mod tunnels;
mod uri;
mod workers;
