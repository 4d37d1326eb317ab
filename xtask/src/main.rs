//! `cargo xtask`: everything that is done to onehop rather than by it.
//!
//! This file knows the commands and their words. It must never do a command's work: `check.rs` runs
//! the tests, `tidy/` reads the source, `bench/` measures, `suites.rs` runs what takes long.
#![forbid(unsafe_code)]

mod bench;
mod caddy_fixtures;
mod check;
mod claims;
mod clients;
mod dist;
mod fuzz;
mod http2;
mod install;
mod programs;
mod steps;
mod suites;
mod testssl;
mod tidy;
mod workspace;

use std::process::ExitCode;

pub(crate) use workspace::Outcome;

const HELP: &str = "\
The project's own commands.

Usage: cargo xtask COMMAND [OPTIONS]

Commands:
  check           While programming: formatting, lints, tidy, and the tests that start no program.
  test            Everything that needs no foreign program but Node, with npm's packages installed:
                  the same, all tests, and end-to-end tests with real applications. What is skipped
                  is listed at the end, and fails where CI=true.
  suites --ci     The rest of what each change has to pass, installing what is missing: browsers,
                  containers, Caddy and nginx, frameworks, packages, short fuzzing, short benchmarks.
                  All three take --only NAME[,NAME] for some of the steps; --list names them.
  tidy            Check the design's rules in the source (also a part of `test`).
                  --report           print the crates, which sees which, and their sizes
                  --graph CRATE      print the modules of a crate in layers, which uses which
  claims          Compare the tables of figures with the results in benchmarks/claims.toml (also a part of `test`).
                  --write            make them anew
  bench SCENARIO  Run benchmarks/SCENARIO or experiments/SCENARIO with `onehop bench run`, whose options it takes
                  (--cases, --servers, --rounds, --until-decided, --list), and keep its result. Installs what it needs.
                  handlers-in-server, handlers-in-server/mariadb, map, portfolio, spa, spa/tls: the experiments, as
                  docs/experiments.md tells.
                  files, handlers, mixed, proxy, proxy-shared: CPU per request, rate, latency, memory, first answer.
                  overload: goodput, p99 and recovery of an application that is asked more than it can answer.
                  --smoke            one short round, to see that it works
  bench limits    What limits cost a request that none of them holds up: user instructions by callgrind,
                  and CPU time in interleaved pairs. Takes --smoke, --pairs N (default 20).
  bench instructions
                  User instructions per request by callgrind: page, 304, asset, fetch handler, proxied page,
                  Fastify. Takes --smoke, and
                  --against FILE     another onehop; the difference to it is shown
  bench distant-search
                  Searches at the service of experiments/distant-search, 91 ms away in each direction, with and without a
                  proxy nearby, at first and after ten idle minutes, with packet loss; and clients at that distance from
                  onehop. Makes network namespaces (as root, or below `unshare -r -n`). Takes --smoke, --targets A,B, --cases A,B, --list, and
                  --searches N       searches in a row (default 20)
                  --idle SECONDS     length of the idle time (default 600)
                  --one-way MS       half a round trip (default 91)
                  --congestion NAME  the kernels' congestion control (default cubic)
                  --keep-window      the search service's kernel keeps its window over idle times
  bench attacks   Attacks over HTTP/2 at one core's full speed, 30 seconds each: p99 of other clients beside a harmless
                  client of the same CPU use and beside the attack, the server's memory, how soon attackers are
                  disconnected. Takes --smoke, --seconds N, --rounds N (default 3, half an hour), --only A,B.
  bench tree      Time to ready for 200 small files; peak memory when a 200 MiB tree changes.
  bench pack      Packed applications: time to the first page in an empty root, memory of what nobody asked
                  for, and what a container costs (podman). Takes --smoke, --parts start,memory,container,
                  --starts N, --rounds N, --seconds N, --program FILE (a static onehop; default: that of `dist`).
  bench trust     Whether comparisons may be believed: nginx with itself, and two servers 5 % apart,
                  20 times each. Takes --smoke, --comparisons N, --rounds N, --milliseconds N,
                  --only equal|apart.
  dist            Build the static program for Linux, and its packages, into target/dist: a .deb, npm
                  packages, a wheel, an SBOM, licences of what is inside, SHA256SUMS.
                  --architectures A,B   of x86_64 and aarch64 (default: this machine's)
                  --program ARCH=FILE   package this program instead of building one; repeatable
                  --maintainer TEXT     the .deb's maintainer, `Name <address>`
                  --output FOLDER       where to put it all (default target/dist)
                  --check               install each package in a folder, run its program, run lintian
  suites          Long runs: 20 rebuilds, 50,000 requests, long fuzzing, suites by others. Writes
                  tests/suites/results. --smoke runs a short form, --only NAME[,NAME] some of them.

Exit codes: 0 done, 1 failed, 2 wrong usage.
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] | ["help" | "--help" | "-h", ..] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        [.., "--help" | "-h"] => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        ["check", options @ ..] => check::check(options),
        ["test", options @ ..] => check::test(options),
        ["tidy", options @ ..] => tidy::run(options),
        ["claims", options @ ..] => claims::run(options),
        ["bench", name, options @ ..] => bench::run(name, options),
        ["dist", options @ ..] => dist::run(options),
        ["suites", "--ci", options @ ..] => check::ci(options),
        ["suites", options @ ..] => suites::run(options),
        _ => {
            eprintln!("error: no such command: cargo xtask {}\n\n{HELP}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.is::<workspace::WrongUsage>() => {
            eprintln!("error: {error}\n\nSee `cargo xtask --help`.");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
