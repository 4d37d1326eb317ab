//! `limit`: who is let in, who waits, who is refused, and what others notice of it.

mod kinds;
mod queues;

use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use onehop_metrics::stats::limiters::LimiterStats;

use crate::client::Client;
use crate::harness::{TestServer, Wishes, application};
use crate::programs::program::Program;

/// No test waits longer for a state.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A program that answers with the path, each request when it is let go.
struct Holding {
    program: Program,
    let_go: Arc<(Mutex<usize>, Condvar)>,
}

impl Holding {
    fn start() -> Self {
        let let_go = Arc::new((Mutex::new(0), Condvar::new()));
        let of_program = Arc::clone(&let_go);
        let program = Program::start(move |talk, head| {
            let (count, changed) = &*of_program;
            let mut count = changed.wait_while(count.lock().unwrap(), |count| *count == 0).unwrap();
            *count -= 1;
            drop(count);
            talk.answer(path_of(head))
        });
        Self { program, let_go }
    }

    /// Answers so many requests, those that are there or the next ones.
    fn let_go(&self, count: usize) {
        let (left, changed) = &*self.let_go;
        *left.lock().unwrap() += count;
        changed.notify_all();
    }

    /// The paths of all requests that it has had.
    fn paths(&self) -> Vec<String> {
        self.program.heads().iter().map(|head| path_of(head)).collect()
    }
}

fn path_of(head: &str) -> String {
    head.split(' ').nth(1).unwrap_or_default().to_owned()
}

/// A server of one site with these directives, `APP` among them for an application that is this program, without a
/// protection of its own.
fn serve(holding: &Holding, directives: &str) -> TestServer {
    serve_with("", &holding.program, directives)
}

/// Such a server whose program has one request, `/1` of this client.
#[track_caller]
fn busy(directives: &str) -> (Holding, TestServer, Client) {
    let holding = Holding::start();
    let server = serve(&holding, directives);
    let client = ask(&server, "/1");
    wait_until(&server, 1, 0);
    (holding, server, client)
}

/// The same as [`serve`] with options of the global block.
fn serve_with(global: &str, program: &Program, directives: &str) -> TestServer {
    TestServer::start(application(), &text(global, program, directives), Wishes::default())
}

fn text(global: &str, program: &Program, directives: &str) -> String {
    let app = format!("{{\nsupervise off {}\nlimit off\n}}", program.address);
    let directives = directives.replace("APP", &app);
    let global = if global.is_empty() { String::new() } else { format!("{{\n{global}\n}}\n") };
    format!("{global}http://localhost:0 {{\nbind 127.0.0.1\n{directives}\n}}\n")
}

/// A client that has asked for a path.
fn ask(server: &TestServer, path: &str) -> Client {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    client
}

fn limits(server: &TestServer) -> Vec<LimiterStats> {
    server.running().api().status().limits
}

/// The only limit, or the first.
fn limit(server: &TestServer) -> LimiterStats {
    limits(server).swap_remove(0)
}

/// Waits until so many are in flight and so many wait.
#[track_caller]
fn wait_until(server: &TestServer, in_flight: u32, queued: usize) {
    let begun = Instant::now();
    loop {
        let limit = limit(server);
        if (limit.in_flight, limit.queued) == (in_flight, queued) {
            return;
        }
        assert!(begun.elapsed() < TIMEOUT, "{limit:?}");
        std::thread::yield_now();
    }
}

/// Waits until the program has had so many requests.
#[track_caller]
fn wait_for_paths(holding: &Holding, count: usize) {
    let begun = Instant::now();
    while holding.paths().len() < count {
        assert!(begun.elapsed() < TIMEOUT, "{:?}", holding.paths());
        std::thread::yield_now();
    }
}

/// How often requests were refused for this cause, by the one limit and by all that is counted.
fn refused(server: &TestServer, cause: &str) -> (u64, u64) {
    let by_limit = limit(server).shed.get(cause).copied().unwrap_or(0);
    (by_limit, server.metric(&format!("onehop_refused_total{{cause=\"limit_{cause}\"")))
}
