//! What can be typed after `onehop bench`.
//!
//! Owns names, defaults and texts only, as `arguments/mod.rs` does. What amounts look like is the load crate's
//! (`quantity.rs`).

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use onehop_bench::compare::Settings;
use onehop_bench::quantity::{self, Rates};
use onehop_load::plan::{Expect, Protocol, STREAMS_MAX, Spacing};
use onehop_load::tls::{self, Curve, Sessions};

/// `onehop bench`
#[derive(Debug, Args)]
#[command(
    about = "Measure a server, and say what may be concluded",
    override_usage = "onehop bench [OPTIONS] URL…\n       onehop bench compare|max|collection|run|init|wrk|ab|autocannon|oha|hey|k6|h2load …",
    long_about = "Measure a server, and say what may be concluded.\n\n\
        A URL is http://HOST:PORT/PATH, the same with https://, HOST:PORT/PATH, or :PORT/PATH and PORT/PATH on this machine. Of several, 3=URL is asked three times as \
        often as the others.\n\n\
        Without --rate, each of the connections asks again as soon as it has its answer: that shows the highest \
        rate, and hides what a stall costs, which is then estimated and printed. With --rate, requests arrive whether \
        or not earlier ones are answered, as people's do, and latency counts from the moment at which a request was \
        meant to begin.\n\n\
        It measures twice and says where the two disagree. An answer that was cut off, or has another status than \
        expected, is never a success, and where the load itself was the limit the figures are said to be none of \
        the server's.",
    after_help = BENCH_AFTER_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    arg_required_else_help = true
)]
pub(crate) struct Bench {
    #[command(subcommand)]
    pub(crate) what: Option<BenchCommand>,
    #[command(flatten)]
    pub(crate) load: Load,
}

/// What else `bench` does.
#[derive(Debug, Subcommand)]
pub(crate) enum BenchCommand {
    Compare(Box<Compare>),
    Max(Box<Max>),
    Collection(Box<Collection>),
    Run(Box<RunScenario>),
    Init(InitScenario),
    #[command(about = "A load, asked for with the options of wrk (and the rate of wrk2)")]
    Wrk(Foreign),
    #[command(about = "A load, asked for with the options of ab, ApacheBench")]
    Ab(Foreign),
    #[command(about = "A load, asked for with the options of autocannon")]
    Autocannon(Foreign),
    #[command(about = "A load, asked for with the options of oha")]
    Oha(Foreign),
    #[command(about = "A load, asked for with the options of hey")]
    Hey(Foreign),
    #[command(about = "A load, asked for with the options of k6, with a URL in the place of its script")]
    K6(Foreign),
    #[command(about = "A load over HTTP/2, asked for with the options of h2load", name = "h2load")]
    H2load(Foreign),
}

/// A load on one server.
#[derive(Debug, Args)]
pub(crate) struct Load {
    /// What is asked for; `3=URL` is asked three times as often
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    /// Connections [default: 64; with --rate at most 512]; several, as 1,8,64, are measured one after the other
    #[arg(long, short = 'c', value_name = "N[,N…]", value_delimiter = ',', value_parser = connections)]
    pub(crate) connections: Vec<usize>,
    /// How long each measurement is: 10s, 1m30s, 500ms [default: 10s, without end with -n]
    #[arg(long, short = 'd', value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) duration: Option<Duration>,
    /// So many requests in each measurement: 1000, 10k
    #[arg(long, short = 'n', value_name = "COUNT", value_parser = quantity::count)]
    pub(crate) requests: Option<u64>,
    /// Requests per second, whether or not they are answered: 500, a ramp 100..1000, steps 100,200,400
    #[arg(long, short = 'r', value_name = "RATE", value_parser = quantity::rates)]
    pub(crate) rate: Option<Rates>,
    /// The distances between the requests of a rate: constant, or poisson as of many people
    #[arg(long, value_name = "KIND", default_value = "poisson", value_parser = quantity::spacing)]
    pub(crate) arrivals: Spacing,
    /// Go on until the rate is known this well (its 95 % interval is narrower), at most -d [default: 5m]
    #[arg(long, value_name = "SHARE", value_parser = quantity::share)]
    pub(crate) until: Option<f64>,
    /// Measure so often, and say where the measurements disagree
    #[arg(long, value_name = "N", default_value = "2", value_parser = runs)]
    pub(crate) runs: usize,
    /// Time between an answer and the next request of a connection
    #[arg(long, value_name = "TIME", value_parser = quantity::duration, conflicts_with = "rate")]
    pub(crate) think: Option<Duration>,
    #[command(flatten)]
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) request: Request,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What belongs to every load, whatever it is for.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct Shape {
    /// Load before each measurement, not counted [default: 1s, none with -n]
    #[arg(long, value_name = "TIME", value_parser = quantity::span)]
    pub(crate) warm_up: Option<Duration>,
    /// Threads of the load [default: 1, or one for each of --cores]
    #[arg(long, short = 't', value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// Cores that the load's threads are bound to: 0-1,3
    #[arg(long, value_name = "LIST", value_parser = cores)]
    pub(crate) cores: Option<Cores>,
    /// A connection for each request; connecting is then part of the latency
    #[arg(long, conflicts_with = "requests_per_connection")]
    pub(crate) new_connections: bool,
    /// A new connection after so many requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) requests_per_connection: Option<u32>,
    /// The longest wait for a whole answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    pub(crate) timeout: Duration,
    /// The longest wait for a connection
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantity::duration)]
    pub(crate) connect_timeout: Duration,
    /// Over this Unix socket; the URL gives Host and path
    #[arg(long, value_name = "PATH")]
    pub(crate) unix_socket: Option<PathBuf>,
    /// The seed of all that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Load a host that is not this machine: it is yours, and you may
    #[arg(long)]
    pub(crate) i_own_this_host: bool,
}

/// The request.
#[derive(Debug, Args)]
#[command(next_help_heading = "Request")]
pub(crate) struct Request {
    /// The method [default: GET, with a body POST]
    #[arg(long, short = 'm', visible_short_alias = 'X', value_name = "METHOD")]
    pub(crate) method: Option<String>,
    /// A header
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", value_parser = header)]
    pub(crate) headers: Vec<(String, String)>,
    /// The body, or @FILE for what a file holds
    #[arg(long, short = 'b', value_name = "TEXT|@FILE")]
    pub(crate) body: Option<String>,
    /// Name and password for basic authentication
    #[arg(long, short = 'u', value_name = "NAME:PASSWORD")]
    pub(crate) user: Option<String>,
    /// Statuses that count as success: 200,304, or any [default: 200 to 299]
    #[arg(long, value_name = "STATUS[,STATUS…]|any", value_parser = expect)]
    pub(crate) expect: Option<Expect>,
    #[command(flatten)]
    pub(crate) version: Version,
    #[command(flatten)]
    pub(crate) encryption: Encryption,
}

/// The version of HTTP.
#[derive(Debug, Args, Default, Clone)]
#[command(next_help_heading = "HTTP/2")]
pub(crate) struct Version {
    /// Ask over HTTP/2: over https by ALPN, over http with prior knowledge
    #[arg(long)]
    pub(crate) http2: bool,
    /// Concurrent streams of each connection; with -c connections
    #[arg(long, value_name = "N", default_value = "1", requires = "http2", value_parser = streams)]
    pub(crate) streams: u32,
}

impl Version {
    /// As it was typed.
    pub(crate) fn protocol(&self) -> Protocol {
        match self.http2 {
            true => Protocol::Http2 { streams: self.streams },
            false => Protocol::Http1,
        }
    }
}

/// How https is spoken.
#[derive(Debug, Args, Default, Clone)]
#[command(next_help_heading = "TLS")]
pub(crate) struct Encryption {
    /// The certificates to trust (PEM), in place of the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) cacert: Option<PathBuf>,
    /// Do not verify certificates
    #[arg(long, short = 'k')]
    pub(crate) insecure: bool,
    /// Whether new connections resume the sessions of earlier ones, as a browser's do: resume or full
    #[arg(long, value_name = "KIND", default_value = "resume", value_parser = Sessions::parse)]
    pub(crate) tls_sessions: Sessions,
    /// The key exchange groups to offer, the preferred one first [default: x25519mlkem768,x25519,secp256r1,secp384r1]
    #[arg(long, value_name = "GROUP[,GROUP…]", value_delimiter = ',', value_parser = Curve::parse)]
    pub(crate) tls_curves: Vec<Curve>,
}

impl Encryption {
    /// The client's side of TLS as it was typed.
    pub(crate) fn client(&self, protocol: Protocol) -> tls::Client {
        tls::Client::new(tls::Settings {
            cacert: self.cacert.clone(),
            is_insecure: self.insecure,
            sessions: self.tls_sessions,
            curves: self.tls_curves.clone(),
            is_http2: protocol != Protocol::Http1,
        })
    }
}

/// Where results go.
#[derive(Debug, Args, Default, Clone)]
#[command(next_help_heading = "Result")]
pub(crate) struct Output {
    /// All figures as JSON; `-` for standard output in place of the text
    #[arg(long, value_name = "FILE|-")]
    pub(crate) json: Option<PathBuf>,
    /// A page with plots, one file
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// The same as text for a pull request; `-` for standard output in place of the text
    #[arg(long, value_name = "FILE|-")]
    pub(crate) markdown: Option<PathBuf>,
    /// No view of the progress
    #[arg(long, short)]
    pub(crate) quiet: bool,
    /// All that was found, and not only what fits 15 lines; `try` shows all in any case
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

/// `onehop bench compare`
#[derive(Debug, Args)]
#[command(
    about = "Compare servers side by side, in rounds",
    override_usage = "onehop bench compare [OPTIONS] CONTROL TEST…",
    long_about = "Compare servers side by side, in rounds.\n\n\
        Each server is [NAME=]URL, one that runs already, or [NAME=]'COMMAND [@ URL]' in one argument, one that is \
        started anew for each round and ended after it. A command finds its port in $PORT and in {port}; it is \
        asked for / there, for the path of --url, or for the URL behind @. Its words are split as a shell splits \
        them; with | & ; < > $ ` ( ) in it, it is handed to sh.\n\n\
        In each round every server is measured once, in random order and apart from its start and warm-up. What is \
        printed is the ratio to the first one, of pairs within rounds, with its interval; a difference is called one \
        only where the whole interval says so.",
    after_help = "Examples:\n  \
        onehop bench compare 'env NODE_ENV=production node server.js' 'onehop app server.js --listen 127.0.0.1:{port}'\n  \
        onehop bench compare nginx=http://127.0.0.1:8080/ onehop=http://127.0.0.1:8081/\n  \
        onehop bench compare old='./old --port {port}' new='./new --port {port}' --url /blogs/001\n  \
        onehop bench compare ':8080' 'node fixed.js @ http://127.0.0.1:3000/' --html report.html\n\n\
        Exit codes: 0 measured, 1 a server did not start or gave not one good answer, 2 wrong usage."
)]
pub(crate) struct Compare {
    /// The control, and what is compared with it
    #[arg(value_name = "SERVER", required = true, num_args = 2..)]
    pub(crate) arms: Vec<String>,
    /// The path (or URL) that commands are asked for
    #[arg(long, value_name = "URL|/PATH", default_value = "/")]
    pub(crate) url: String,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = Settings::default().rounds, value_parser = rounds)]
    pub(crate) rounds: usize,
    /// Go on with twice as many rounds, and twice again, until CPU time per request is decided
    #[arg(long)]
    pub(crate) until_decided: bool,
    /// Length of each measurement
    #[arg(long, short = 'd', visible_alias = "duration", value_name = "TIME", default_value = "500ms", value_parser = quantity::duration)]
    pub(crate) time: Duration,
    /// Load before each measurement, not counted [default: 3s if a server is started for each round, else 500ms]
    #[arg(long, value_name = "TIME", value_parser = quantity::span)]
    pub(crate) warm_up: Option<Duration>,
    /// Connections [default: 64; with --rate at most 512]
    #[arg(long, short = 'c', value_name = "N", value_parser = connections)]
    pub(crate) connections: Option<usize>,
    /// Requests per second, whether or not they are answered
    #[arg(long, short = 'r', value_name = "RATE", value_parser = quantity::rates)]
    pub(crate) rate: Option<Rates>,
    /// The distances between the requests of a rate: constant, or poisson as of many people
    #[arg(long, value_name = "KIND", default_value = "poisson", value_parser = quantity::spacing)]
    pub(crate) arrivals: Spacing,
    /// Also the first answer after so long without a request
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) idle: Option<Duration>,
    /// How sure a verdict has to be
    #[arg(long, value_name = "SHARE", default_value = "99%", value_parser = quantity::share)]
    pub(crate) confidence: f64,
    /// A smaller difference counts as none
    #[arg(long, value_name = "SHARE", default_value = "1%", value_parser = quantity::share)]
    pub(crate) least: f64,
    /// How long a command may take until its first good answer
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = quantity::duration)]
    pub(crate) ready_within: Duration,
    /// Cores of the servers that are started: 0,2 [default: most of those that this process may use]
    #[arg(long, value_name = "LIST", value_parser = cores)]
    pub(crate) server_cores: Option<Cores>,
    /// Cores of the load [default: the rest]
    #[arg(long, value_name = "LIST", value_parser = cores)]
    pub(crate) load_cores: Option<Cores>,
    /// Threads of the load [default: one for each of its cores]
    #[arg(long, short = 't', value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// A connection for each request
    #[arg(long)]
    pub(crate) new_connections: bool,
    /// The longest wait for a whole answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    pub(crate) timeout: Duration,
    /// The seed of all that is random
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Load a host that is not this machine: it is yours, and you may
    #[arg(long)]
    pub(crate) i_own_this_host: bool,
    #[command(flatten)]
    pub(crate) request: Request,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `onehop bench run`
#[derive(Debug, Args)]
#[command(
    about = "Run a comparison that is written down in scenario.toml",
    long_about = "Run a comparison that is written down in scenario.toml.\n\n\
        A scenario names servers with the commands that start them, cases (what is asked, over how many connections), and \
        bounds. Every case is measured as `bench compare` does it: all servers once in each round, in random order. The \
        figures of the first server are divided by those of each other one.",
    after_help = "Examples:\n  \
        onehop bench init my-scenario && onehop bench run my-scenario\n  \
        onehop bench run my-scenario --cases page --until-decided\n  \
        onehop bench run my-scenario --html page.html --json figures.json\n\n\
        Exit codes: 0 measured and no bound missed, 1 a bound is missed, or a server did not start or answer, 2 wrong usage."
)]
pub(crate) struct RunScenario {
    /// The folder of the scenario, or its file
    #[arg(value_name = "FOLDER")]
    pub(crate) place: PathBuf,
    /// List its cases and servers, and run nothing
    #[arg(long)]
    pub(crate) list: bool,
    /// Only these cases
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    pub(crate) cases: Vec<String>,
    /// Only these servers, beside the first one
    #[arg(long, value_name = "NAME[,NAME…]", value_delimiter = ',')]
    pub(crate) servers: Vec<String>,
    #[arg(long, value_name = "N", value_parser = rounds, help = format!("Rounds [default: the scenario's, else {}]", Settings::default().rounds))]
    pub(crate) rounds: Option<usize>,
    /// Go on with twice as many rounds, and twice again, until CPU time per request is decided
    #[arg(long)]
    pub(crate) until_decided: bool,
    #[arg(long, short = 'd', visible_alias = "duration", value_name = "TIME", value_parser = quantity::duration,
        help = format!("Length of each measurement [default: the scenario's, else {:?}]", Settings::default().time))]
    pub(crate) time: Option<Duration>,
    #[arg(long, value_name = "TIME", value_parser = quantity::span,
        help = format!("Load before each measurement, not counted [default: the scenario's, else {:?}]", Settings::default().warm_up))]
    pub(crate) warm_up: Option<Duration>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `onehop bench init`
#[derive(Debug, Args)]
#[command(
    about = "Write a scenario.toml to begin with",
    after_help = "Example:\n  \
        onehop bench init my-scenario && onehop bench run my-scenario\n\n\
        Exit codes: 0 written, 1 it cannot be written, 2 it is there already, or wrong usage."
)]
pub(crate) struct InitScenario {
    /// The folder, made if it is missing
    #[arg(value_name = "FOLDER")]
    pub(crate) folder: PathBuf,
}

/// `onehop bench max`
#[derive(Debug, Args)]
#[command(
    about = "Find the highest rate that keeps latency under a limit",
    long_about = "Find the highest rate that keeps latency under a limit.\n\n\
        Every rate that is tried is an open loop: requests arrive whether or not earlier ones are answered, so that \
        a server that falls behind is found out. The rate that is reported was confirmed by a longer \
        step.",
    after_help = "Examples:\n  \
        onehop bench max :8080                                     the highest rate with p99 under 50 ms\n  \
        onehop bench max :8080/blogs --limit 'p99.9<100ms' --failures 0.5%\n  \
        onehop bench max :8080 --time 10s --html max.html          latency against load, as a page\n\n\
        Exit codes: 0 found, 1 failed or no rate was within the limit, 2 wrong usage."
)]
pub(crate) struct Max {
    /// What is asked for; `3=URL` is asked three times as often
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    /// The percentile and what it must stay below
    #[arg(long, value_name = "pNN<TIME", default_value = "p99<50ms", value_parser = limit)]
    pub(crate) limit: LatencyLimit,
    /// The share of requests that may fail
    #[arg(long, value_name = "SHARE", default_value = "0.1%", value_parser = quantity::share)]
    pub(crate) failures: f64,
    /// How long each rate is tried; up to four times as long where it gives too few answers for the percentile
    #[arg(long, short = 'd', visible_alias = "duration", value_name = "TIME", default_value = "5s", value_parser = quantity::duration)]
    pub(crate) time: Duration,
    /// Most connections at a time
    #[arg(long, short = 'c', value_name = "N", default_value = "512", value_parser = connections)]
    pub(crate) connections: usize,
    /// The distances between requests: constant, or poisson as of many people
    #[arg(long, value_name = "KIND", default_value = "poisson", value_parser = quantity::spacing)]
    pub(crate) arrivals: Spacing,
    #[command(flatten)]
    pub(crate) shape: Shape,
    #[command(flatten)]
    pub(crate) request: Request,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `onehop bench collection`
#[derive(Debug, Args)]
#[command(
    about = "Ask the requests of a Postman collection, a HAR or a list, in order",
    long_about = "Ask the requests of a Postman collection, a HAR or a list, in order.\n\n\
        One request at a time, as Postman's runner does it, N times over. FILE is a Postman collection (v2.1, with \
        variables, folders, headers, bodies, basic and bearer authentication), a HAR, or a text with a URL in each \
        line; which one is seen from what it holds. Scripts in it are not run; a line names them.\n\n\
        Which status is expected: of a Postman request the one that its tests name \
        (`pm.response.to.have.status(404)`), else that of its first example answer; in a HAR the one that was \
        recorded; else 200 to 299.",
    after_help = "Examples:\n  \
        onehop bench collection blog.postman_collection.json -n 1000\n  \
        onehop bench collection blog.json --var URL=http://localhost:8080 --var BLOG_ID=001\n  \
        onehop bench collection blog.json --environment staging.postman_environment.json --json out.json\n  \
        onehop bench collection urls.txt -n 100\n\n\
        Exit codes: 0 every status was the expected one, 1 failed or an unexpected status, 2 wrong usage or file."
)]
pub(crate) struct Collection {
    /// The collection
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// How often all of it is asked
    #[arg(long, short = 'n', value_name = "N", default_value = "1", value_parser = quantity::count)]
    pub(crate) iterations: u64,
    /// The value of a variable, in place of the collection's own
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) variables: Vec<(String, String)>,
    /// A Postman environment with values of variables
    #[arg(long, short, value_name = "FILE")]
    pub(crate) environment: Option<PathBuf>,
    /// The longest wait for a whole answer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = quantity::duration)]
    pub(crate) timeout: Duration,
    /// The longest wait for a connection
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = quantity::duration)]
    pub(crate) connect_timeout: Duration,
    /// Ask a host that is not this machine: it is yours, and you may
    #[arg(long)]
    pub(crate) i_own_this_host: bool,
    #[command(flatten)]
    pub(crate) encryption: Encryption,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// `onehop bench wrk`, `ab`, `autocannon`, `oha`, `hey`, `k6` and `h2load`
#[derive(Debug, Args)]
#[command(
    long_about = "A load, asked for with the options of wrk, ab, autocannon, oha, hey, k6 or h2load, so that a command from elsewhere works \
        as it is. What the tool has by default is the default here too; it is measured twice all the same \
        (--runs 1 for once). An option that would change the figures and is not done is an error that says what to \
        do instead.\n\n\
        Of onehop's own options --html, --markdown, --json (not with autocannon, whose own --json prints), --runs, \
        --warm-up, --cores, --seed, --expect, --http2, --streams, --cacert, --insecure, --tls-sessions, --tls-curves, --quiet and --i-own-this-host may be among them.",
    after_help = "Examples:\n  \
        onehop bench wrk -t2 -c100 -d30s --latency http://localhost:8080/\n  \
        onehop bench wrk -t2 -c100 -d30s -R2000 http://localhost:8080/      (the rate of wrk2)\n  \
        onehop bench ab -n 10000 -c 100 -k http://localhost:8080/\n  \
        onehop bench autocannon -c 100 -d 40 localhost:3000\n  \
        onehop bench autocannon --on-port / -- node server.js\n\n\
        Exit codes: 0 measured, 1 failed or not one good answer, 2 wrong usage.",
    disable_version_flag = true,
    arg_required_else_help = true
)]
pub(crate) struct Foreign {
    /// That tool's options and URL
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub(crate) words: Vec<String>,
}

/// Options of ours among another tool's.
#[derive(Debug, Parser)]
#[command(name = "onehop bench")]
pub(crate) struct AmongForeign {
    #[arg(long, default_value = "2", value_parser = runs)]
    pub(crate) runs: usize,
    #[arg(long, value_parser = quantity::span)]
    pub(crate) warm_up: Option<Duration>,
    #[arg(long, value_parser = cores)]
    pub(crate) cores: Option<Cores>,
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[arg(long, value_parser = expect)]
    pub(crate) expect: Option<Expect>,
    #[arg(long)]
    pub(crate) i_own_this_host: bool,
    #[command(flatten)]
    pub(crate) version: Version,
    #[command(flatten)]
    pub(crate) encryption: Encryption,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A list of cores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cores(pub(crate) Vec<usize>);

/// A percentile and its bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct LatencyLimit {
    /// As a share.
    pub(crate) share: f64,
    /// The bound.
    pub(crate) latency: Duration,
}

const BENCH_AFTER_HELP: &str = "Examples:\n  \
    onehop bench :8080                                    64 connections, 10 s, twice\n  \
    onehop bench :8080 -r 500                             500 requests per second, as people send them\n  \
    onehop bench :8080 -c 1,8,64 --html sweep.html        with more and more connections, as a page\n  \
    onehop bench :8080 -r 100..2000 -d 1m                 a rate that rises\n  \
    onehop bench 9=:3000/ 1=:3000/search -H 'Accept: text/html'\n  \
    onehop bench :3000/api -m PUT -b @order.json -H 'Content-Type: application/json' -n 1000\n  \
    onehop bench https://localhost --http2 -c 1 --streams 64\n  \
    onehop bench compare 'node a.js' 'node b.js --port {port}'\n  \
    onehop bench wrk -t2 -c100 -d30s http://localhost:8080/\n\n\
    Ctrl-C breaks off and tells what was measured until then; once more ends at once.\n\n\
    Exit codes: 0 measured, 1 failed or not one good answer, 2 wrong usage.";

/// More than one address has ports for; a slip is found.
const CONNECTIONS_MAX: u64 = 65_535;
/// More measurements of one load than anybody waits for.
const RUNS_MAX: usize = 100;
/// A core's number is below this; the kernel's own sets end there.
const CORE_MAX: usize = 1024;

fn connections(text: &str) -> Result<usize, String> {
    let wrong = || format!("write a number from 1 to {CONNECTIONS_MAX}");
    match quantity::count(text) {
        Ok(count) if count <= CONNECTIONS_MAX => usize::try_from(count).map_err(|_| wrong()),
        _ => Err(wrong()),
    }
}

fn streams(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(streams) if (1..=STREAMS_MAX).contains(&streams) => Ok(streams),
        _ => Err(format!("write a number from 1 to {STREAMS_MAX}")),
    }
}

fn runs(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(runs) if (1..=RUNS_MAX).contains(&runs) => Ok(runs),
        _ => Err(format!("write a number from 1 to {RUNS_MAX}; two show whether figures hold")),
    }
}

fn rounds(text: &str) -> Result<usize, String> {
    match text.parse::<usize>() {
        Ok(rounds) if (1..=1000).contains(&rounds) => Ok(rounds),
        _ => Err("write a number from 1 to 1000; below 3 nothing can be said".to_owned()),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    super::parse_threads(text).map(std::num::NonZeroUsize::get)
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("write 'Name: value'".to_owned()),
    }
}

pub(super) fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

fn expect(text: &str) -> Result<Expect, String> {
    if text == "any" {
        return Ok(Expect::Any);
    }
    let status = |text: &str| text.trim().parse().ok().filter(|status| (100..=599).contains(status));
    let statuses: Option<Vec<u16>> = text.split(',').map(status).collect();
    statuses.map(Expect::Exactly).ok_or_else(|| "write statuses as 200,304, or any".to_owned())
}

fn cores(text: &str) -> Result<Cores, String> {
    let wrong = || format!("write cores as 0-1,3, each below {CORE_MAX}");
    let core = |text: &str| text.trim().parse().ok().filter(|core| *core < CORE_MAX).ok_or_else(wrong);
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (core(first)?, core(last)?);
        if first > last {
            return Err(wrong());
        }
        cores.extend((first..=last).filter(|core| !cores.contains(core)).collect::<Vec<_>>());
    }
    Ok(Cores(cores))
}

fn limit(text: &str) -> Result<LatencyLimit, String> {
    let wrong = || "write a percentile and its bound: 'p99<50ms'".to_owned();
    let (percentile, bound) = text.split_once('<').ok_or_else(wrong)?;
    let percent = percentile.trim().strip_prefix('p').ok_or_else(wrong)?;
    let share = quantity::share(&format!("{percent}%")).map_err(|_| wrong())?;
    let latency = quantity::duration(bound.trim_start_matches('=').trim()).map_err(|_| wrong())?;
    Ok(LatencyLimit { share, latency })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn comparisons_are_those_that_bench_trust_tests() {
        #[derive(Parser)]
        struct Arguments {
            #[command(flatten)]
            compare: Compare,
        }
        let Arguments { compare } = Arguments::parse_from(["compare", "a", "b"]);
        let tested = Settings::default();
        assert_eq!(
            (compare.rounds, compare.time, compare.confidence, compare.least),
            (tested.rounds, tested.time, tested.confidence, tested.least_difference)
        );
    }

    #[test]
    fn a_limit_is_a_percentile_and_a_time() {
        for (text, share, milliseconds) in
            [("p99<50ms", 0.99, 50), ("p50 < 1s", 0.5, 1000), ("p99.9<=2s", 0.999, 2000)]
        {
            let limit = limit(text).unwrap();
            assert!((limit.share - share).abs() < 1e-9, "{text}");
            assert_eq!(limit.latency, Duration::from_millis(milliseconds));
        }
        for text in ["p99", "99<50ms", "p100<1s", "p0<1s", "p99<", "p99>5ms"] {
            assert!(limit(text).is_err(), "{text}");
        }
    }

    #[test]
    fn cores_are_a_list_with_ranges() {
        assert_eq!(cores("0-2,4,1"), Ok(Cores(vec![0, 1, 2, 4])));
        for text in ["", "a", "3-1", "0-", "1024", "0-99999999999"] {
            assert!(cores(text).is_err(), "{text}");
        }
    }

    #[test]
    fn statuses_are_a_list_or_any() {
        assert_eq!(expect("200, 304"), Ok(Expect::Exactly(vec![200, 304])));
        assert_eq!(expect("any"), Ok(Expect::Any));
        for text in ["", "2xx", "99", "600", "200,"] {
            assert!(expect(text).is_err(), "{text}");
        }
    }
}
