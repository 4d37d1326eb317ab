//! The global block: settings of the process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::time::Duration;

use super::Context;
use super::template::fixed;
use super::value::{duration, number, port, size};
use crate::checked::{Admin, Global};
use crate::directives;
use crate::limits::CONNECTIONS_PER_ADDRESS_MAX;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Line, Token};
use crate::vocabulary::GLOBAL_OPTIONS;

/// The admin endpoint's port where none is written: beside Caddy's 2019, so that both can run.
const ADMIN_PORT: u16 = 2020;
/// Bytes of all stores where the file does not say: a large application, and little of a small machine.
const MEMORY_BYTES: u64 = 512 * 1024 * 1024;
/// How long a stop waits where the file does not say. Service managers kill after some ten
/// seconds, and an answer still being written then is lost anyway.
const GRACE_PERIOD: Duration = Duration::from_secs(10);
/// Threads that can be asked for: more than any machine has cores, so that a slip is found.
const THREADS_MAX: u64 = 1024;
/// Bytes that `memory` must allow at least, below which not even an index page fits beside others.
const MEMORY_BYTES_MIN: u64 = 1024 * 1024;

/// What holds without a global block.
pub(crate) fn defaults() -> Global {
    Global {
        admin: Admin::Default(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), ADMIN_PORT)),
        memory_bytes: MEMORY_BYTES,
        memory: None,
        connections_per_address: None,
        trusted_proxies: Vec::new(),
        limit: None,
        threads: None,
        grace_period: GRACE_PERIOD,
        auto_https: true,
        http_port: 80,
        https_port: 443,
        data_directory: None,
    }
}

/// Reads the block's options.
pub(crate) fn global(cx: &mut Context<'_>, lines: &[Line]) -> Global {
    let mut global = defaults();
    let mut seen: Vec<&Token> = Vec::new();
    for line in lines {
        let name = line.name.text.as_str();
        let result = option(cx, &mut global, line);
        if result.is_ok()
            && let Some(earlier) = seen.iter().find(|earlier| earlier.text == name)
        {
            let message = format!("`{name}` is set twice; line {} has it already", earlier.place.line());
            cx.problems.push(Problem::error("duplicate-option", &line.name.place, message));
        }
        seen.push(&line.name);
        cx.keep(result);
    }
    global.trusted_proxies.clone_from(&cx.trusted_proxies);
    global.data_directory.clone_from(&cx.data_directory);
    if global.http_port == global.https_port {
        let place = seen.iter().rev().find(|name| name.text.ends_with("_port")).map(|name| &name.place);
        if let Some(place) = place {
            let message = "`http_port` and `https_port` cannot be the same";
            cx.problems.push(Problem::error("port", place, message));
        }
    }
    global
}

fn option(cx: &mut Context<'_>, global: &mut Global, line: &Line) -> Result<(), Box<Problem>> {
    let name = line.name.text.as_str();
    match name {
        "admin" => global.admin = admin(cx, line)?,
        "memory" => {
            let (all, files) = memory(line)?;
            (global.memory, global.memory_bytes) = (Some(all), files);
        }
        "limit" => global.limit = directives::of_global_block(cx, line)?,
        "connections_per_address" => {
            let token = one(line, "connections_per_address 100")?;
            let most = number(token, "`connections_per_address`", 1, CONNECTIONS_PER_ADDRESS_MAX)?;
            global.connections_per_address = u32::try_from(most).ok();
        }
        "order" if is_our_order(line) => {}
        "threads" => global.threads = threads(one(line, "threads 4")?)?,
        "grace_period" => global.grace_period = duration(one(line, "grace_period 10s")?)?,
        "http_port" => global.http_port = port(one(line, "http_port 8080")?, "`http_port`")?,
        "https_port" => global.https_port = port(one(line, "https_port 8443")?, "`https_port`")?,
        "auto_https" => global.auto_https = auto_https(one(line, "auto_https off")?)?,
        "data_dir" => {
            let path = fixed(cx.source, one(line, "data_dir /var/lib/shop")?, "the path of a folder")?;
            cx.data_directory = Some(cx.absolute_to_write(&path));
        }
        "servers" => super::servers::servers(cx, line)?,
        "debug" if line.args.is_empty() && line.block.is_none() => {
            let message = "`debug` changes nothing yet";
            cx.problems.push(Problem::warning("no-effect", &line.name.place, message));
        }
        "debug" => return Err(Problem::error("arguments", &line.name.place, "`debug` takes nothing")),
        word if GLOBAL_OPTIONS.contains(&word) => {
            let message = format!("`{word}` is a global option of Caddy that onehop does not have yet");
            return Err(Problem::error("not-yet", &line.name.place, message));
        }
        word => {
            let message = format!("there is no global option `{word}`");
            let problem = Problem::error("unknown-option", &line.name.place, message);
            return Err(match nearest(word, GLOBAL_OPTIONS) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None if crate::directives::is_known(word) => {
                    problem.help(format!("`{word}` is a directive: it stands in a site, `:8080 {{ … }}`"))
                }
                None => problem.help("a block without an address holds global options"),
            });
        }
    }
    Ok(())
}

/// The one argument that most options take.
fn one<'l>(line: &'l Line, example: &str) -> Result<&'l Token, Box<Problem>> {
    match (line.args.as_slice(), &line.block) {
        ([only], None) => Ok(only),
        _ => Err(Problem::error(
            "arguments",
            &line.name.place,
            format!("`{}` takes one argument", line.name.text),
        )
        .help(format!("for example `{example}`"))),
    }
}

/// `memory <all> [files <size>]`: the bound of everything, and that of files.
fn memory(line: &Line) -> Result<(u64, u64), Box<Problem>> {
    let usage = "`memory 1GiB`, or `memory 1GiB files 512MiB`";
    let wrong = || {
        Problem::error("arguments", &line.name.place, "the arguments of `memory` do not fit")
            .help(format!("it is written {usage}"))
    };
    if line.block.is_some() {
        return Err(wrong());
    }
    let (all, files) = match line.args.as_slice() {
        [all] => (all, None),
        [all, word, files] if word.text == "files" => (all, Some(files)),
        _ => return Err(wrong()),
    };
    let all_bytes = large_enough(all, "`memory`")?;
    let Some(files) = files else { return Ok((all_bytes, all_bytes)) };
    let files_bytes = large_enough(files, "`files` of `memory`")?;
    if files_bytes >= all_bytes {
        let message =
            format!("`files {}` leaves nothing of `memory {}` for anything else", files.text, all.text);
        return Err(Problem::error("contradiction", &files.place, message)
            .help("files are a part of it, beside what connections and queues take"));
    }
    Ok((all_bytes, files_bytes))
}

fn large_enough(token: &Token, what: &str) -> Result<u64, Box<Problem>> {
    let bytes = size(token)?;
    if bytes < MEMORY_BYTES_MIN {
        return Err(Problem::error("size", &token.place, format!("{what} must be at least 1MiB"))
            .help("it bounds the bytes of files and connections, for example `memory 512MiB`"));
    }
    Ok(bytes)
}

/// What Caddyfiles say of the plugin's directive is how it is here.
fn is_our_order(line: &Line) -> bool {
    let words: Vec<&str> = line.args.iter().map(|token| token.text.as_str()).collect();
    let holds = matches!(words.as_slice(), ["rate_limit", "before", "basicauth" | "basic_auth"]);
    holds && line.block.is_none()
}

fn threads(token: &Token) -> Result<Option<NonZeroUsize>, Box<Problem>> {
    if token.text == "auto" {
        return Ok(None);
    }
    let threads = number(token, "`threads`", 1, THREADS_MAX)?;
    Ok(usize::try_from(threads).ok().and_then(NonZeroUsize::new))
}

fn auto_https(token: &Token) -> Result<bool, Box<Problem>> {
    match token.text.as_str() {
        "off" => Ok(false),
        // There are no redirects yet to be disabled.
        "disable_redirects" => Ok(true),
        word @ ("disable_certs" | "ignore_loaded_certs") => {
            let message = format!("`auto_https {word}` is a setting of Caddy that onehop does not have yet");
            Err(Problem::error("not-yet", &token.place, message))
        }
        word => {
            Err(Problem::error("unknown-option", &token.place, format!("`auto_https` cannot be `{word}`"))
                .help("it can be `off` or `disable_redirects`"))
        }
    }
}

fn admin(cx: &mut Context<'_>, line: &Line) -> Result<Admin, Box<Problem>> {
    if let Some(block) = &line.block {
        let place = block.first().map_or(&line.name.place, |option| &option.name.place);
        return Err(Problem::error(
            "not-yet",
            place,
            "options of `admin` are Caddy's; onehop does not have them yet",
        ));
    }
    let token = one(line, "admin 127.0.0.1:2020")?;
    if token.text == "off" {
        return Ok(Admin::Off);
    }
    let wrong = || {
        Problem::error("address", &token.place, format!("`{}` is no address for `admin`", token.text))
            .help("write an IP address and a port, `admin 127.0.0.1:2020`, or `admin off`")
    };
    let address = match token.text.rsplit_once(':') {
        Some(("", port)) => {
            SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), port.parse().map_err(|_| wrong())?)
        }
        Some(("localhost", port)) => {
            SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().map_err(|_| wrong())?)
        }
        _ => token.text.parse().map_err(|_| wrong())?,
    };
    if !address.ip().is_loopback() {
        let message = "`admin` can be reached from other machines";
        cx.problems.push(Problem::warning("open-admin", &token.place, message).help(
            "metrics tell what runs here; keep them on 127.0.0.1 unless a firewall stands before them",
        ));
    }
    Ok(Admin::Address(address))
}
