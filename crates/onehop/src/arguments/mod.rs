//! What can be typed after `onehop`, and the help that explains it.
//!
//! Owns names, defaults and texts only. Never acts: `commands/` does. Every command shows an example,
//! since a line to copy teaches faster than a list of options.

mod bench;
mod certificates;
mod hints;
mod logs;
mod oci;
mod pack;
mod packed;
mod proxy;
mod runtime;
mod side_by_side;
mod tasks;

use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use onehop_config::limits::APP_WORKERS_MAX;

use crate::listen;

pub(crate) use self::bench::{
    AmongForeign, Bench, BenchCommand, Collection, Compare, InitScenario, Load, Max, Output, Request,
    RunScenario, Shape,
};
pub(crate) use self::certificates::{
    CertificateStore, Certs, CertsCommand, ImportCertificates, RevokeCertificate, Trust, Untrust,
};
pub(crate) use self::logs::Logs;
pub(crate) use self::oci::OciArguments;
pub(crate) use self::pack::{Inspect, InspectView, Pack};
pub(crate) use self::packed::{Changes, PackedArguments, PackedCommand, Title};
pub(crate) use self::proxy::Proxy;
pub(crate) use self::runtime::{RuntimeChoice, RuntimeKind};
pub(crate) use self::side_by_side::Try;

/// A web server that runs your application: pages from memory, one hop to your users.
#[derive(Debug, Parser)]
#[command(
    name = "onehop",
    version,
    about = "A web server that runs your application",
    long_about = "A web server that runs your application.\n\n\
        It serves a built single-page app from memory, calls JavaScript applications without a second HTTP server, \
        runs other programs and passes requests on to them, and looks after its own certificates.",
    help_template = tasks::help_template(),
    after_help = EXAMPLES,
    subcommand_required = true,
    disable_help_subcommand = true,
    propagate_version = true
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do; each command's own struct holds its help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Init(Init),
    Run(Run),
    Serve(Serve),
    App(App),
    Proxy(Proxy),
    Pack(Pack),
    Inspect(Inspect),
    Validate(Validate),
    Fmt(Fmt),
    Adapt(Adapt),
    Routes(Routes),
    Reload(Control),
    Stop(Stop),
    Status(Status),
    Logs(Logs),
    Dashboard(Dashboard),
    Workers(Workers),
    Top(Top),
    Why(Why),
    Certs(Certs),
    Trust(Trust),
    Untrust(Untrust),
    HashPassword(HashPassword),
    Bench(Box<Bench>),
    Try(Try),
    Completions(Completions),
    Man(Man),
    /// Print version
    Version,
    Help(Help),
}

impl Arguments {
    /// What was typed. Prints what is wrong with it, with the next step, and ends the process with exit code 2.
    pub(crate) fn read() -> Self {
        Self::try_parse().map_err(hints::explain).unwrap_or_else(|error| error.exit())
    }
}

/// `onehop init`
#[derive(Debug, Args)]
#[command(
    about = "Write an Onehopfile for what is in a folder",
    long_about = "Write an Onehopfile for what is in a folder.\n\n\
        It finds an application (package.json, pm2's ecosystem.config.js, a Procfile, server.js and the like, \
        the CMD of a Dockerfile), a built site, or an nginx.conf, and writes the Onehopfile that serves it. Nothing is started, but \
        that Node.js evaluates pm2's file. An Onehopfile that is there already is never replaced.",
    after_help = "Examples:\n  \
        onehop init                the folder where you are\n  \
        onehop init ./shop\n  \
        onehop init --dry-run      print it, and write nothing\n\n\
        Exit codes: 0 written or printed, 1 the file cannot be written, 2 nothing that is understood, or an Onehopfile is there."
)]
pub(crate) struct Init {
    /// The folder
    #[arg(value_name = "FOLDER", default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Print the Onehopfile and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `onehop run`
#[derive(Debug, Args)]
#[command(
    about = "Serve the sites of an Onehopfile",
    long_about = "Serve the sites of an Onehopfile.\n\n\
        Without a file, ./Onehopfile is taken, else ./Caddyfile, else /etc/onehop/Onehopfile, else \
        /etc/caddy/Caddyfile. A file whose name is Caddyfile, or ends in it, is read as Caddy reads it: relative \
        paths start in the working directory. In an Onehopfile they start in the file's own folder.\n\n\
        SIGHUP reads the file again; SIGTERM and Ctrl-C finish what is in flight and end; a second Ctrl-C ends \
        at once.",
    after_help = "Examples:\n  \
        onehop run                              the Onehopfile of this folder\n  \
        onehop run examples/quickstart/Onehopfile\n  \
        onehop run --watch                      read it again whenever it or a source of its apps changes\n  \
        onehop run --log json 2>events.jsonl    one JSON object per event\n\n\
        The smallest Onehopfile:\n  \
        http://localhost:8080 {\n      spa ./dist\n  }\n\n\
        Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage or configuration."
)]
pub(crate) struct Run {
    #[command(flatten)]
    pub(crate) file: File,
    /// Read the configuration again whenever one of its files changes, or a source of its applications
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) process: Process,
}

/// `onehop serve`
#[derive(Debug, Args)]
#[command(
    about = "Serve one folder, without a file",
    long_about = "Serve one folder, without a file.\n\n\
        Files come from memory with ETag, ranges and compression. With --spa, a navigation to a path that is no \
        file is answered with index.html, and a missing asset is still a 404.\n\n\
        The address is --listen, else every interface at $PORT where that is set, else 127.0.0.1:8080.",
    after_help = "Examples:\n  \
        onehop serve                        this folder at http://127.0.0.1:8080\n  \
        onehop serve dist --spa             a built single-page app\n  \
        onehop serve ~/Downloads --browse   with directory pages\n  \
        onehop serve dist --listen :3000    to the whole network\n  \
        onehop serve dist --listen unix//run/site.sock\n  \
        PORT=5000 onehop serve dist         as platforms start it\n\n\
        Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage."
)]
pub(crate) struct Serve {
    /// The folder
    #[arg(value_name = "DIR", default_value = ".")]
    pub(crate) directory: PathBuf,
    /// Where to listen: `host:port`, `:port` for every interface, `unix//path`; port 0 takes a free one
    #[arg(long, short, value_name = "ADDR", value_parser = listen::parse)]
    pub(crate) listen: Option<listen::Address>,
    /// Answer navigations to unknown paths with index.html
    #[arg(long)]
    pub(crate) spa: bool,
    /// Show directory pages
    #[arg(long, conflicts_with = "spa")]
    pub(crate) browse: bool,
    /// Where /metrics is served over TCP; port 0 takes a free one. The control socket serves it, too
    #[arg(long, value_name = "ADDR", default_value = "off", value_parser = parse_admin)]
    pub(crate) admin: Admin,
    #[command(flatten)]
    pub(crate) process: Process,
}

/// `onehop app`
#[derive(Debug, Args)]
#[command(
    about = "Run one application, without an Onehopfile",
    long_about = "Run one application, without an Onehopfile.\n\n\
        FILE is an application: one that listens (Express, Fastify, Koa, node:http) or exports a handler, \
        `export default { fetch(request) { … } }`. What follows `--` are its arguments. \
        Without FILE, what follows `--` is a program that speaks HTTP, on the Unix socket $ONEHOP_SOCKET or \
        on $PORT of 127.0.0.1.\n\n\
        Its processes see of the environment only PATH, HOME, LANG, LC_*, TZ, TMPDIR, USER, LOGNAME, \
        SHELL, and what --env and --env-file name.\n\n\
        The address is --listen, else every interface at $PORT where that is set, else 127.0.0.1:8080.",
    after_help = "Examples:\n  \
        onehop app server.js                      at http://127.0.0.1:8080\n  \
        onehop app server.mjs --watch             start it anew whenever its sources change\n  \
        onehop app server.mjs --workers auto --listen :3000\n  \
        onehop app server.ts --runtime bun --env DATABASE_URL --env MODE=demo\n  \
        onehop app server.mjs -- --verbose        with an argument of its own\n  \
        onehop app -- npx next start              any program that speaks HTTP\n\n\
        The smallest handler:\n  \
        export default { fetch: (request) => new Response(`hello from ${request.url}`) }\n\n\
        Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage."
)]
pub(crate) struct App {
    /// The application's main file
    #[arg(value_name = "FILE", required_unless_present = "words")]
    pub(crate) file: Option<PathBuf>,
    /// Arguments of the application; without FILE, the program that is run and its arguments
    #[arg(value_name = "ARGS", last = true)]
    pub(crate) words: Vec<String>,
    /// Where to listen: `host:port`, `:port` for every interface, `unix//path`; port 0 takes a free one
    #[arg(long, short, value_name = "ADDR", value_parser = listen::parse)]
    pub(crate) listen: Option<listen::Address>,
    /// Processes; `auto` starts one for each core
    #[arg(long, value_name = "N|auto", default_value = "1", value_parser = parse_workers)]
    pub(crate) workers: String,
    /// What runs FILE: `node`, `bun` or a path [default: node]
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) runtime: Option<String>,
    /// What it is called in logs [default: made of the file's name and folder]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A variable for the application: `NAME=VALUE`, or `NAME` to pass on onehop's own (`AWS_*`: all that begin so)
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// A file of `NAME=VALUE` lines
    #[arg(long, value_name = "FILE")]
    pub(crate) env_file: Vec<PathBuf>,
    /// Start it anew, without losing a request, whenever its sources change
    #[arg(long)]
    pub(crate) watch: bool,
    /// Where /metrics is served over TCP; port 0 takes a free one. The control socket serves it, too
    #[arg(long, value_name = "ADDR", default_value = "off", value_parser = parse_admin)]
    pub(crate) admin: Admin,
    #[command(flatten)]
    pub(crate) process: Process,
}

/// `onehop validate`
#[derive(Debug, Args)]
#[command(
    about = "Check an Onehopfile and say everything that is wrong with it",
    long_about = "Check an Onehopfile and say everything that is wrong with it.\n\n\
        All mistakes are shown at once, each with its file, line and column and the line itself. Nothing is \
        started, no port is opened.",
    after_help = "Examples:\n  \
        onehop validate                        the Onehopfile of this folder\n  \
        onehop validate /etc/onehop/Onehopfile && onehop reload --config /etc/onehop/Onehopfile\n\n\
        Exit codes: 0 sound, 2 not sound."
)]
pub(crate) struct Validate {
    #[command(flatten)]
    pub(crate) file: File,
}

/// `onehop fmt`
#[derive(Debug, Args)]
#[command(
    about = "Print an Onehopfile in its usual layout",
    long_about = "Print an Onehopfile in its usual layout.\n\n\
        A tab for each block, single spaces, at most one blank line in a row. Words, quotes and comments stay as they are. Without \
        --overwrite no file is changed.",
    after_help = "Examples:\n  \
        onehop fmt                          the Onehopfile of this folder, on standard output\n  \
        onehop fmt --overwrite              write it back\n  \
        onehop fmt --diff                   what would change\n  \
        onehop fmt --check Onehopfile       for a build: exit code 1 where it is laid out otherwise\n  \
        onehop fmt -                        from standard input\n\n\
        Exit codes: 0 done, 1 laid out otherwise (--check, --diff), 2 the file cannot be read, or is no configuration."
)]
pub(crate) struct Fmt {
    /// The configuration; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Write the file back
    #[arg(long, conflicts_with_all = ["check", "diff"])]
    pub(crate) overwrite: bool,
    /// Print nothing but whether the layout is the usual one
    #[arg(long, conflicts_with = "diff")]
    pub(crate) check: bool,
    /// Print the lines that would change
    #[arg(long)]
    pub(crate) diff: bool,
}

/// `onehop hash-password`
#[derive(Debug, Args)]
#[command(
    about = "Print the hash of a password for `basic_auth`",
    long_about = "Print the hash of a password for `basic_auth`.\n\n\
        The password is asked for, twice and without showing it, or is the first line of standard input. The hash is bcrypt's, \
        as those of `caddy hash-password`.",
    after_help = "Examples:\n  \
        onehop hash-password\n  \
        pass show shop/admin | onehop hash-password\n\n\
        Exit codes: 0 printed, 1 no password could be read, 2 the password has more than 72 bytes, or none."
)]
pub(crate) struct HashPassword {
    /// How much work a guess is: one more doubles it
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u32).range(10..=16))]
    pub(crate) cost: u32,
}

/// `onehop adapt`
#[derive(Debug, Args)]
#[command(
    about = "Print an nginx.conf as an Onehopfile",
    long_about = "Print an nginx.conf as an Onehopfile.\n\n\
        Each server becomes a site. nginx is not needed, nothing is started, and no file is written. What could not be \
        carried over is in the result as a comment with NOT CARRIED OVER, its line and the reason, and its location or \
        site answers 403 until you decide. A Caddyfile needs no such step: an \
        Onehopfile has Caddy's grammar.",
    after_help = "Examples:\n  \
        onehop adapt                                    /etc/nginx/nginx.conf with all that it includes\n  \
        onehop adapt /etc/nginx/sites-enabled/shop > Onehopfile && onehop validate\n  \
        onehop try /etc/nginx/sites-enabled/shop        measure both beside each other\n\n\
        Exit codes: 0 printed, 2 the file cannot be read, or has no server."
)]
pub(crate) struct Adapt {
    /// The configuration, whole or a part of one
    #[arg(value_name = "FILE", default_value = "/etc/nginx/nginx.conf")]
    pub(crate) file: PathBuf,
}

/// `onehop routes`
#[derive(Debug, Args)]
#[command(
    about = "Show what acts for the requests of each site, in which order",
    long_about = "Show what acts for the requests of each site, in which order.\n\n\
        Directives are sorted as Caddy sorts them, whatever their order in the file. Each line has the line of the \
        file, the directive, for which requests it acts, and what it does. Values of applications' variables are \
        not shown.",
    after_help = "Examples:\n  \
        onehop routes                        the Onehopfile of this folder\n  \
        onehop routes /etc/onehop/Onehopfile\n\n\
        Exit codes: 0 shown, 2 not sound."
)]
pub(crate) struct Routes {
    #[command(flatten)]
    pub(crate) file: File,
}

/// `onehop reload`
#[derive(Debug, Args)]
#[command(
    about = "Let a running onehop read its Onehopfile again",
    long_about = "Let a running onehop read its Onehopfile again.\n\n\
        The new settings are built in full before they are published; what is in flight is answered by the old \
        ones. Applications keep their processes, WebSockets and event streams unless their settings have changed, \
        or a file that they have loaded. If anything is wrong, nothing changes, and this command prints the cause.",
    after_help = "Examples:\n  \
        onehop reload                        the onehop of this folder, else the only one that runs\n  \
        onehop reload --config /etc/onehop/Onehopfile\n  \
        onehop reload --restart              with new processes for every application\n\n\
        Exit codes: 0 published, 1 nothing was changed, 2 wrong usage."
)]
pub(crate) struct Control {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Give every application new processes, also where nothing has changed
    #[arg(long)]
    pub(crate) restart: bool,
}

/// `onehop stop`
#[derive(Debug, Args)]
#[command(
    about = "Let a running onehop finish what is in flight and end",
    long_about = "Let a running onehop finish what is in flight and end.\n\n\
        Waits until the process is gone.",
    after_help = "Examples:\n  \
        onehop stop                        the onehop of this folder, else the only one that runs\n  \
        onehop stop --config /etc/onehop/Onehopfile\n\n\
        Exit codes: 0 ended, 1 not running or still running after --wait, 2 wrong usage."
)]
pub(crate) struct Stop {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Seconds to wait for the end
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    pub(crate) wait: u32,
}

/// `onehop status`
#[derive(Debug, Args)]
#[command(
    about = "Show what a running onehop is doing",
    long_about = "Show what a running onehop is doing: addresses, sites, requests, files in memory, applications.\n\n\
        Every onehop has a control socket, a Unix socket that only its user may open. Its name follows from the \
        configuration file (for `serve`, from the folder), so in the folder where onehop was started nothing \
        needs to be named; nor elsewhere, while only one runs. It lies in $XDG_RUNTIME_DIR/onehop, else /run/user/UID/onehop, else /tmp/onehop-UID; \
        root's in /run/onehop. Where no folder can be made there, it lies in onehop-UID in /tmp, /dev/shm or where packs \
        are unpacked.",
    after_help = "Examples:\n  \
        onehop status                        the onehop of this folder, else the only one that runs\n  \
        onehop status --json | jq .requests\n  \
        onehop status --healthy              for the health check of a container\n\n\
        Exit codes: 0 running (and healthy), 1 not running or not healthy, 2 wrong usage."
)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print the answer of the control socket as it is (docs/control-api.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Only tell whether it answers and all of its applications serve: exit code 0, else 1
    #[arg(long, conflicts_with = "json")]
    pub(crate) healthy: bool,
}

/// `onehop dashboard`
#[derive(Debug, Args)]
#[command(
    about = "Show the dashboard of a running onehop in a browser",
    long_about = "Show the dashboard of a running onehop in a browser.\n\n\
        Listens at a port of 127.0.0.1 until Ctrl-C, and passes what the page asks on to the control socket. The page shows sites, \
        latencies, applications and events of the last 90 days. It reloads, replaces workers and changes their number with \
        the token in the address that is printed; without the token it only shows.",
    after_help = "Examples:\n  \
        onehop dashboard                     of the onehop of this folder, else of the only one that runs\n  \
        onehop dashboard --no-open           only print the address\n  \
        onehop dashboard --port 4000 --no-open\n  \
        ssh -L 4000:127.0.0.1:4000 server onehop dashboard --port 4000 --no-open\n\n\
        Exit codes: 1 not running or the port is taken, 2 wrong usage; it ends by a signal."
)]
pub(crate) struct Dashboard {
    #[command(flatten)]
    pub(crate) target: Target,
    /// The port of 127.0.0.1 [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
}

/// `onehop workers`
#[derive(Debug, Args)]
#[command(
    about = "Show the workers of a running onehop's applications, or change their number",
    override_usage = "onehop workers [OPTIONS] [APP] [N]",
    long_about = "Show the workers of a running onehop's applications, or change their number.\n\n\
        A new number holds until the next reload, or until all workers are replaced. New workers take requests as soon as they are \
        ready; those that are too many finish what they have.",
    after_help = "Examples:\n  \
        onehop workers                   every worker of the onehop of this folder, else of the only one that runs\n  \
        onehop workers api               those of one application\n  \
        onehop workers api 4             as many as that from now on\n  \
        onehop workers 4                 the same where there is one application only\n  \
        onehop workers --json | jq '.[].workers[].pid'\n\n\
        Exit codes: 0 done, 1 not running, no such application or nothing changed, 2 wrong usage."
)]
pub(crate) struct Workers {
    /// The application, and how many workers it is to have
    #[arg(value_name = "APP|N", num_args = 0..=2)]
    pub(crate) words: Vec<String>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print what the control socket says of them (docs/control-api.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// `onehop top`
#[derive(Debug, Args)]
#[command(
    about = "Show live what a running onehop is doing",
    long_about = "Show live what a running onehop is doing.\n\n\
        Each second: requests and errors of each site, CPU, memory and event-loop lag of each worker, what limits let in and \
        refuse. Percentiles are those since the start. Keys: q or Escape quits, up and down scroll, left and right choose \
        what sites are sorted by.",
    after_help = "Examples:\n  \
        onehop top                        the onehop of this folder, else the only one that runs\n  \
        onehop top --config /etc/onehop/Onehopfile\n\n\
        Exit codes: 0 left, 1 not running or no terminal, 2 wrong usage."
)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) target: Target,
}

/// `onehop why`
#[derive(Debug, Args)]
#[command(
    about = "Explain why a request was slow, or why it failed",
    long_about = "Explain why a request was slow, or why it failed.\n\n\
        A running onehop keeps the slowest requests of each minute, for a quarter of an hour, and the last ones that failed or \
        were rejected. Without ID they are listed, the newest first. With one, its time is shown by what it was spent on: \
        the queue, the connection, the application, its blocked event loop, a slow client.\n\n\
        ID is the one of that list, `request_id` in the access log, `ctx.requestId` in a handler, the trace id of `traceparent`, \
        what `{http.request.uuid}` or `{err.id}` was, or the client's own X-Request-Id.",
    after_help = "Examples:\n  \
        onehop why                               what was slow or failed\n  \
        onehop why 5f3a00000000002a              one of them\n  \
        onehop why 0af7651916cd43dd8448eb211c80319c   the one of this trace\n  \
        onehop why --json | jq '.requests[] | select(.parts.queue_ms > 100) | .id'\n\n\
        Exit codes: 0 shown, 1 not running or no such request, 2 wrong usage."
)]
pub(crate) struct Why {
    /// The request
    #[arg(value_name = "ID")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) target: Target,
    /// Print what the control socket says (docs/control-api.md)
    #[arg(long)]
    pub(crate) json: bool,
}

/// `onehop completions`
#[derive(Debug, Args)]
#[command(
    about = "Print the completions for a shell",
    long_about = "Print the completions for a shell.",
    after_help = "Examples:\n  \
        onehop completions bash > ~/.local/share/bash-completion/completions/onehop\n  \
        onehop completions zsh > ~/.zfunc/_onehop\n  \
        onehop completions fish > ~/.config/fish/completions/onehop.fish"
)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `onehop man`
#[derive(Debug, Args)]
#[command(
    about = "Print the manual page",
    long_about = "Print the manual page.",
    after_help = "Examples:\n  \
        onehop man | man -l -\n  \
        onehop man | gzip > /usr/local/share/man/man1/onehop.1.gz\n  \
        onehop man run | man -l -           the page of one command\n  \
        onehop man bench compare | man -l -"
)]
pub(crate) struct Man {
    /// The page of one command; the whole program's where it is left out
    #[arg(value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// `onehop help`
#[derive(Debug, Args)]
#[command(
    about = "Print the help of a command, or the reference of a directive",
    long_about = "Print the help of a command, or the reference of a directive of the Onehopfile.",
    after_help = "Examples:\n  \
        onehop help bench compare\n  \
        onehop help directive                 the names of all directives\n  \
        onehop help directive reverse_proxy   its syntax, options and examples"
)]
pub(crate) struct Help {
    /// A command, or `directive` and a name
    #[arg(value_name = "COMMAND|directive NAME")]
    pub(crate) words: Vec<String>,
}

/// Which configuration file.
#[derive(Debug, Args)]
pub(crate) struct File {
    /// The configuration file [default: ./Onehopfile, else ./Caddyfile, else those in /etc/onehop and /etc/caddy]
    #[arg(value_name = "FILE", conflicts_with = "config")]
    positional: Option<PathBuf>,
    /// The configuration file, as an option
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl File {
    /// The file that was named, either way.
    pub(crate) fn named(&self) -> Option<&PathBuf> {
        self.config.as_ref().or(self.positional.as_ref())
    }
}

/// Which running onehop.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The configuration file (or, for `serve`, the folder) that it was started with
    /// [default: that of this folder, else the only one that runs]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Its control socket
    #[arg(long, value_name = "PATH", env = "ONEHOP_CONTROL", hide_env_values = true)]
    pub(crate) control: Option<PathBuf>,
}

/// Options of a process that serves.
#[derive(Debug, Args)]
pub(crate) struct Process {
    /// Core threads [default: one per core that this process may use]
    #[arg(long, value_name = "N", value_parser = parse_threads)]
    pub(crate) threads: Option<NonZeroUsize>,
    /// How events are written
    #[arg(long, value_name = "FORM", value_enum, default_value_t = LogForm::Plain, env = "ONEHOP_LOG", hide_env_values = true)]
    pub(crate) log: LogForm,
    /// Where events are written
    #[arg(long, value_name = "WHERE", value_enum, default_value_t = LogTo::Stderr, env = "ONEHOP_LOG_TO", hide_env_values = true)]
    pub(crate) log_to: LogTo,
    /// The control socket, or `off` [default: one per configuration file, see `onehop status --help`]
    #[arg(long, value_name = "PATH", env = "ONEHOP_CONTROL", hide_env_values = true)]
    pub(crate) control: Option<PathBuf>,
}

/// How events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogForm {
    /// Lines for a person
    Plain,
    /// One JSON object per line
    Json,
}

/// Where events are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogTo {
    /// Standard error
    Stderr,
    /// Standard output, which some platforms collect alone
    Stdout,
}

/// Where `serve` serves its metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admin {
    /// Nowhere.
    Off,
    /// Here.
    Address(SocketAddr),
}

const EXAMPLES: &str = "Examples:\n  \
    onehop serve dist --spa     a built single-page app at http://127.0.0.1:8080\n  \
    onehop app server.js        an application in JavaScript\n  \
    onehop proxy --to :3000     a server that runs already\n  \
    onehop run                  the sites of ./Onehopfile\n  \
    onehop pack                 the same as one executable\n  \
    onehop try                  what onehop would do for the application of this folder\n  \
    onehop bench :8080          measure any server\n  \
    onehop help run             more about one command\n\n\
    Exit codes: 0 done, 1 failed, 2 wrong usage or configuration.";

/// More threads than any machine has cores, so that a slip is found; an Onehopfile has the same bound.
const THREADS_MAX: usize = 1024;

fn parse_threads(text: &str) -> Result<NonZeroUsize, String> {
    match text.parse::<NonZeroUsize>() {
        Ok(threads) if threads.get() <= THREADS_MAX => Ok(threads),
        _ => Err(format!("write a number from 1 to {THREADS_MAX}")),
    }
}

fn parse_workers(text: &str) -> Result<String, String> {
    match text.parse::<u64>() {
        _ if text == "auto" => Ok(text.to_owned()),
        Ok(workers) if (1..=APP_WORKERS_MAX).contains(&workers) => Ok(workers.to_string()),
        _ => Err(format!("write a number from 1 to {APP_WORKERS_MAX}, or auto for one on each core")),
    }
}

fn parse_admin(text: &str) -> Result<Admin, String> {
    if text == "off" {
        return Ok(Admin::Off);
    }
    text.parse()
        .map(Admin::Address)
        .map_err(|_| "write an IP address and a port (127.0.0.1:2020), or off".into())
}
