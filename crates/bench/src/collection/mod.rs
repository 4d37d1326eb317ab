//! Collections of requests, asked one after the other: Postman v2.1, HAR, a plain list of URLs.
//!
//! Owns reading them and the run in order. Never executes a script of a collection, and says so. A file is told
//! apart by what it holds, never by its name; `kind.rs` says how. Each kind has its file, and all end in the same
//! place: requests whose variables are filled in (`variables.rs`), which `run.rs` asks.

mod encode;
mod har;
mod kind;
mod limits;
mod list;
mod notes;
mod postman;
mod problem;
mod run;
#[cfg(test)]
mod tests;
mod variables;
mod varying;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_load::latency::Latencies;
use onehop_load::plan::Request;
use onehop_load::tls;
use onehop_load::url::{Address, Endpoint, Scheme, UrlError};
pub use problem::CollectionError;
use problem::Problem;
pub use run::run;
use variables::Variables;
use varying::Varying;

/// How a collection is read.
#[derive(Debug, Clone, Default)]
pub struct ReadOptions {
    /// Values from the command line, which win over all others.
    pub variables: Vec<(String, String)>,
    /// A Postman environment, exported as JSON. Its values win over those of the collection.
    pub environment: Option<PathBuf>,
}

/// A collection that was read, with its variables filled in.
#[derive(Debug, Clone)]
pub struct Collection {
    /// Its name.
    pub name: String,
    /// Its requests, in order; folders are part of the names (`Blogs / one`).
    pub requests: Vec<Request>,
    /// What it holds that is not done (scripts, files that are missing), for people.
    pub notes: Vec<String>,
    /// Requests with parts that are made anew for each iteration (`{{$guid}}`), by their number.
    varying: BTreeMap<usize, Varying>,
}

/// What a collection's run saw.
#[derive(Debug, Clone)]
pub struct CollectionRun {
    /// The collection's name.
    pub name: String,
    /// Iterations that were made.
    pub iterations: u64,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// Each request, in the collection's order.
    pub requests: Vec<RequestFigures>,
    /// All requests together.
    pub latency: Latencies,
    /// It was broken off.
    pub is_interrupted: bool,
    /// The notes of the collection, and what else a reader must know.
    pub caveats: Vec<String>,
}

/// One request of a collection over all iterations.
#[derive(Debug, Clone)]
pub struct RequestFigures {
    /// Its name.
    pub name: String,
    /// Method and URL.
    pub line: String,
    /// Latencies of whole answers with the expected status.
    pub latency: Latencies,
    /// How many those are.
    pub passed: u64,
    /// Whole answers with another status, and failures.
    pub failed: u64,
    /// What was expected and what came, first each kind with its count (`status 500 instead of 200`).
    pub complaints: Vec<(String, u64)>,
}

/// Reads a collection of any kind. Its requests have no address yet, that is [`reach`]'s.
///
/// # Errors
/// Where the file cannot be read or a request in it cannot be sent as it stands.
pub fn read(path: &Path, options: &ReadOptions) -> Result<Collection, CollectionError> {
    let bytes = read_file(path, limits::FILE_BYTES_MAX).map_err(|problem| problem.of(path))?;
    let mut variables = Variables::new(options.variables.clone());
    if let Some(environment) = &options.environment {
        read_file(environment, limits::FILE_BYTES_MAX)
            .and_then(|bytes| variables.add_environment(&bytes))
            .map_err(|problem| problem.of(environment))?;
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let name = path.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    parse(&bytes, &name, folder, variables).map_err(|problem| problem.of(path))
}

/// The same for bytes that were read already. Files that the collection names are looked for in the folder.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(
    bytes: &[u8],
    name: &str,
    folder: &Path,
    options: &ReadOptions,
) -> Result<Collection, CollectionError> {
    let variables = Variables::new(options.variables.clone());
    parse(bytes, name, folder, variables).map_err(|problem| problem.of(Path::new(name)))
}

/// Finds the address of each request; each server is looked for once.
///
/// # Errors
/// Where a server's name leads nowhere, nobody accepts, or TLS fails.
pub fn reach(collection: &mut Collection, tls: &tls::Client, timeouts: Duration) -> Result<(), UrlError> {
    let mut found: BTreeMap<(Endpoint, Scheme), Address> = BTreeMap::new();
    for request in &mut collection.requests {
        request.tls = tls.of(&request.url)?;
        let server = (request.url.endpoint.clone(), request.url.scheme);
        if let Some(address) = found.get(&server) {
            request.address = address.clone();
            continue;
        }
        request.reach(timeouts)?;
        found.insert(server, request.address.clone());
    }
    Ok(())
}

fn parse(bytes: &[u8], name: &str, folder: &Path, mut variables: Variables) -> Result<Collection, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| {
            let line = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = line.iter().filter(|byte| **byte == b'\n').count() + 1;
            Problem::at(format!("line {line}"), "it is not written in UTF-8", "Save it in UTF-8.")
        })?
        .trim_start_matches('\u{feff}');
    let mut collection = match kind::of(text)? {
        kind::Kind::Postman => postman::read(text, folder, &mut variables)?,
        kind::Kind::Har => har::read(text)?,
        kind::Kind::List => list::read(text, &mut variables)?,
    };
    if collection.name.trim().is_empty() {
        collection.name = name.to_owned();
    }
    for (number, request) in collection.requests.iter_mut().enumerate() {
        if let Some(varying) = variables.mark.settle(request) {
            collection.varying.insert(number, varying);
        }
    }
    Ok(collection)
}

/// A file of at most so many bytes, whole.
fn read_file(path: &Path, bytes_max: u64) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max + 1).read_to_end(&mut bytes));
    if let Err(error) = read {
        let error = error.to_string();
        let why = error.split(" (os error").next().unwrap_or_default().to_lowercase();
        return Err(Problem::new(format!("it cannot be read: {why}"), "Is its name spelled right?"));
    }
    if bytes.len() as u64 > bytes_max {
        let size = bytes_max / (1024 * 1024);
        return Err(Problem::new(
            format!("it is larger than {size} MiB"),
            "Leave out what is not asked, recorded answers for example.",
        ));
    }
    Ok(bytes)
}

/// Whether a request can be sent as it stands.
fn check(request: &Request, next: &str) -> Result<(), Problem> {
    // What follows its answer is no HTTP (RFC 9110 section 9.3.6).
    if request.method == "CONNECT" {
        return Err(Problem::new("CONNECT asks for a tunnel, and no tunnel is made here", next));
    }
    match request.field_lines() {
        Ok(_) => Ok(()),
        Err(error) => Err(Problem::new(error.to_string(), next)),
    }
}

/// The address of a request that nobody looked for yet: nobody can be connected to there.
fn nowhere() -> Address {
    Address::Tcp(std::net::SocketAddr::from(([0, 0, 0, 0], 0)))
}
