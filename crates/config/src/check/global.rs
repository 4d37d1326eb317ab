//! The global block: settings of the process.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use super::Context;
use super::template::fixed;
use super::value::{duration, port, size};
use crate::checked::tls::{AutoHttps, GlobalTls};
use crate::checked::{Admin, Global, History, Protocols};
use crate::directives;
use crate::limits::CONNECTIONS_PER_ADDRESS_MAX;
use crate::nearest::nearest;
use crate::option_table::{OptionTable, Outline, Row, Value, line, not_yet, repeated, value};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

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

/// Caddy's global options, and ours.
const OPTIONS: OptionTable<Global> = OptionTable {
    one: one_argument,
    ..OptionTable::new(
        "global options",
        &[
            value("acme_ca", "https://ca.internal/acme/directory", |cx, _, value| {
                cx.certificates.acme.directory =
                    Some(fixed(cx.source, value.token, "the URL of a directory")?);
                Ok(())
            }),
            value("acme_ca_root", "./root.pem", |cx, _, value| {
                cx.certificates.acme.trusted_root = Some(directives::file_of_tls(cx, value.token)?);
                Ok(())
            }),
            line("acme_dns", "exec <program>…|rfc2136 { … }", |cx, _, line| {
                cx.certificates.acme.dns = Some(directives::dns_of_tls(cx, line)?);
                Ok(())
            }),
            line("acme_eab", "{ key_id <id> mac_key <key> }", |cx, _, line| {
                cx.certificates.acme.external_account = Some(external_account(cx, line)?);
                Ok(())
            }),
            line("admin", "127.0.0.1:2020", |cx, global, line| {
                admin(cx, line).map(|admin| global.admin = admin)
            }),
            value("auto_https", "off", |_, global, value| {
                auto_https(value.token).map(|choice| global.auto_https = choice)
            }),
            repeated(line("cert_issuer", "acme|internal [{ … }]", |cx, _, line| {
                let issuer = directives::issuer_of_tls(cx, line)?;
                cx.certificates.issuers.push(issuer);
                Ok(())
            })),
            not_yet("cert_lifetime"),
            line("debug", "", debug),
            not_yet("default_bind"),
            value("default_sni", "example.com", |cx, global, value| {
                global.tls.default_name = Some(fixed(cx.source, value.token, "a name")?.to_ascii_lowercase());
                Ok(())
            }),
            not_yet("dns"),
            not_yet("ech"),
            value("email", "me@example.com", |cx, _, value| {
                cx.certificates.acme.email = Some(fixed(cx.source, value.token, "an email address")?);
                Ok(())
            }),
            not_yet("events"),
            value("fallback_sni", "example.com", |cx, global, value| {
                global.tls.fallback_name =
                    Some(fixed(cx.source, value.token, "a name")?.to_ascii_lowercase());
                Ok(())
            }),
            not_yet("filesystem"),
            value("grace_period", "10s", |_, global, value| {
                duration(value.token).map(|time| global.grace_period = time)
            }),
            value("http_port", "8080", |_, global, value| {
                port(value.token, "`http_port`").map(|port| global.http_port = port)
            }),
            value("https_port", "8443", |_, global, value| {
                port(value.token, "`https_port`").map(|port| global.https_port = port)
            }),
            value("key_type", "p256", |cx, _, value| {
                cx.certificates.key_type = directives::key_type_of_tls(cx, value.token)?;
                Ok(())
            }),
            line("local_certs", "", |cx, _, line| {
                super::servers::stands_alone(line)?;
                let issuer = directives::local_issuer(cx);
                cx.certificates.issuers.push(issuer);
                Ok(())
            }),
            line("log", "{ output … format … level … }", |cx, global, line| {
                global.log = Some(super::server_log::server_log(cx, line)?);
                cx.server_log.clone_from(&global.log);
                Ok(())
            }),
            line("metrics", "{ otlp }", |cx, global, line| {
                super::metrics::metrics(cx, line).map(|export| global.metrics_export = export)
            }),
            not_yet("ocsp_interval"),
            // OCSP answers are never stapled, and no configuration is kept beside the file.
            line("ocsp_stapling", "off", |_, _, line| only_off(line)),
            line("on_demand_tls", "{ ask <url> }", |cx, global, line| {
                global.tls.ask = directives::on_demand_of_tls(cx, line)?;
                Ok(())
            }),
            line("order", "rate_limit before basic_auth", |_, _, line| {
                if is_our_order(line) { Ok(()) } else { Err(not_yet_here(line)) }
            }),
            line("persist_config", "off", |_, _, line| only_off(line)),
            line("pki", "{ ca [<name>] { … } }", |cx, _, line| directives::pki(cx, line)),
            not_yet("preferred_chains"),
            not_yet("renew_interval"),
            value("renewal_window_ratio", "0.33", |cx, _, value| {
                cx.certificates.renewal_ratio = directives::ratio_of_tls(value.token)?;
                Ok(())
            }),
            line("servers", "{ … }", |cx, _, line| super::servers::servers(cx, line)),
            not_yet("shutdown_delay"),
            // Only `onehop trust` changes what a machine trusts.
            line("skip_install_trust", "", |_, _, line| super::servers::stands_alone(line)),
            line("storage", "file_system <folder>", |cx, global, line| {
                global.tls.storage = Some(storage(cx, line)?);
                Ok(())
            }),
            not_yet("storage_check"),
            not_yet("storage_clean_interval"),
            not_yet("tls_automate_names"),
            not_yet("tls_resolvers"),
            // Ours.
            value("connections_per_address", "100", |_, global, value| {
                let most = value.count(1, CONNECTIONS_PER_ADDRESS_MAX);
                most.map(|most| global.connections_per_address = Some(most))
            }),
            value("data_dir", "/var/lib/shop", |cx, _, value| {
                let path = fixed(cx.source, value.token, "the path of a folder")?;
                cx.data_directory = Some(cx.absolute_to_write(&path));
                Ok(())
            }),
            line("history", "off|{ keep 90d size 512MiB }", |cx, global, line| {
                super::history::history(cx, line).map(|history| global.history = history)
            }),
            line("limit", "in_flight 64 [queue 128] [wait 250ms]", |cx, global, line| {
                directives::of_global_block(cx, line).map(|limit| global.limit = limit)
            }),
            line("memory", "1GiB [files 512MiB]", |_, global, line| {
                let (all, files) = memory(line)?;
                (global.memory, global.memory_bytes) = (Some(all), files);
                Ok(())
            }),
            value("threads", "4", |_, global, value| threads(value).map(|count| global.threads = count)),
            // Of plugins that many Caddyfiles use.
            not_yet("crowdsec"),
            not_yet("frankenphp"),
            not_yet("layer4"),
        ],
    )
};

/// The options of the global block, of `servers`, and of the listener wrappers in `servers`.
pub(crate) fn outlines() -> [Outline; 7] {
    use super::{history, listener_wrappers, metrics, server_log, servers};
    [
        OPTIONS.outline(),
        history::OPTIONS.outline(),
        metrics::OPTIONS.outline(),
        server_log::OPTIONS.outline(),
        servers::OPTIONS.outline(),
        listener_wrappers::WRAPPERS.outline(),
        listener_wrappers::OPTIONS.outline(),
    ]
}

/// Whether the global block has an option of this name.
pub(crate) fn is_option(name: &str) -> bool {
    OPTIONS.row(name).is_some()
}

/// What holds without a global block.
pub(crate) fn defaults() -> Global {
    Global {
        admin: Admin::Default(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), ADMIN_PORT)),
        memory_bytes: MEMORY_BYTES,
        memory: None,
        connections_per_address: None,
        protocols: Protocols::default(),
        trusted_proxies: Vec::new(),
        proxy_protocol: None,
        limit: None,
        threads: None,
        grace_period: GRACE_PERIOD,
        auto_https: AutoHttps::On,
        tls: GlobalTls::default(),
        http_port: 80,
        https_port: 443,
        data_directory: None,
        history: Some(History::default()),
        metrics_export: None,
        log: None,
    }
}

/// Reads the block's options.
pub(crate) fn global(cx: &mut Context<'_>, lines: &[Directive]) -> Global {
    let mut global = defaults();
    let mut seen: Vec<&Token> = Vec::new();
    // Issuers name authorities, in whichever order both are written.
    let (authorities, others): (Vec<_>, Vec<_>) = lines.iter().partition(|line| line.name.text == "pki");
    for line in authorities.into_iter().chain(others) {
        let name = line.name.text.as_str();
        let result = option(cx, &mut global, line);
        if result.is_ok()
            && !OPTIONS.row(name).is_some_and(Row::may_repeat)
            && let Some(earlier) = seen.iter().find(|earlier| earlier.text == name)
        {
            let message = format!("`{name}` is set twice; line {} has it already", earlier.place.line());
            cx.problems.push(Problem::error("duplicate-option", &line.name.place, message));
        }
        seen.push(&line.name);
        cx.keep(result);
    }
    global.protocols = cx.protocols;
    global.trusted_proxies.clone_from(&cx.trusted_proxies);
    global.proxy_protocol.clone_from(&cx.proxy_protocol);
    global.data_directory.clone_from(&cx.data_directory);
    if global.http_port == global.https_port {
        let place = seen.iter().rev().find(|name| name.text.ends_with("_port")).map(|name| &name.place);
        if let Some(place) = place {
            let message = "`http_port` and `https_port` cannot be the same";
            cx.problems.push(Problem::error("port", place, message).help("give one of them another port"));
        }
    }
    global
}

fn option(cx: &mut Context<'_>, global: &mut Global, line: &Directive) -> Result<(), Box<Problem>> {
    match OPTIONS.row(&line.name.text) {
        Some(row) if row.works() => OPTIONS.read_option(cx, global, line),
        Some(_) => Err(not_yet_here(line)),
        None => Err(unknown(line)),
    }
}

fn not_yet_here(line: &Directive) -> Box<Problem> {
    let message = format!("`{}` is a global option of Caddy that onehop does not have yet", line.name.text);
    Problem::error("not-yet", &line.name.place, message)
}

fn unknown(line: &Directive) -> Box<Problem> {
    let word = line.name.text.as_str();
    let message = format!("there is no global option `{word}`");
    let problem = Problem::error("unknown-option", &line.name.place, message);
    match nearest(word, OPTIONS.all_names()) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None if directives::is_known(word) => {
            problem.help(format!("`{word}` is a directive: it stands in a site, `:8080 {{ … }}`"))
        }
        None => problem.help("a block without an address holds global options"),
    }
}

/// The one argument that most options take.
fn one_argument<'l>(line: &'l Directive, usage: &str) -> Result<&'l Token, Box<Problem>> {
    match (line.args.as_slice(), &line.block) {
        ([only], None) => Ok(only),
        _ => Err(Problem::error(
            "arguments",
            &line.name.place,
            format!("`{}` takes one argument", line.name.text),
        )
        .help(format!("for example `{usage}`"))),
    }
}

/// An option of Caddy that can only be turned off, for what onehop does not do.
fn only_off(line: &Directive) -> Result<(), Box<Problem>> {
    match (line.args.as_slice(), &line.block) {
        ([off], None) if off.text == "off" => Ok(()),
        _ => Err(Problem::error(
            "arguments",
            &line.name.place,
            format!("`{0}` can only be `{0} off`", line.name.text),
        )
        .help(format!("write `{} off`, or take the line away", line.name.text))),
    }
}

fn debug(cx: &mut Context<'_>, _: &mut Global, line: &Directive) -> Result<(), Box<Problem>> {
    let place = &line.name.place;
    if !line.args.is_empty() || line.block.is_some() {
        return Err(Problem::error("arguments", place, "`debug` takes nothing").help("write `debug` alone"));
    }
    cx.problems.push(Problem::warning("no-effect", place, "`debug` changes nothing yet"));
    Ok(())
}

/// `memory <all> [files <size>]`: the bound of everything, and that of files.
fn memory(line: &Directive) -> Result<(u64, u64), Box<Problem>> {
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
fn is_our_order(line: &Directive) -> bool {
    let words: Vec<&str> = line.args.iter().map(|token| token.text.as_str()).collect();
    let holds = matches!(words.as_slice(), ["rate_limit", "before", "basicauth" | "basic_auth"]);
    holds && line.block.is_none()
}

fn threads(value: Value<'_>) -> Result<Option<NonZeroUsize>, Box<Problem>> {
    if value.token.text == "auto" {
        return Ok(None);
    }
    let threads = value.number(1, THREADS_MAX)?;
    Ok(usize::try_from(threads).ok().and_then(NonZeroUsize::new))
}

fn auto_https(token: &Token) -> Result<AutoHttps, Box<Problem>> {
    match token.text.as_str() {
        "off" => Ok(AutoHttps::Off),
        "disable_redirects" => Ok(AutoHttps::DisableRedirects),
        "disable_certs" => Ok(AutoHttps::DisableCertificates),
        "ignore_loaded_certs" => Ok(AutoHttps::IgnoreLoaded),
        word => {
            let message = format!("`auto_https` cannot be `{word}`");
            Err(Problem::error("unknown-option", &token.place, message)
                .help("it can be `off`, `disable_redirects`, `disable_certs` or `ignore_loaded_certs`"))
        }
    }
}

/// Both halves stand in a block, as in Caddy.
fn external_account(cx: &Context<'_>, line: &Directive) -> Result<(String, String), Box<Problem>> {
    let wrong = || {
        Problem::error("arguments", &line.name.place, "`acme_eab` needs a key identifier and a MAC key")
            .help("it is written `acme_eab { key_id ID mac_key KEY }`, each on a line of its own")
    };
    let half = |name: &str| {
        let found = line.block.iter().flatten().find(|inner| inner.name.text == name);
        match found.map(|inner| inner.args.as_slice()) {
            Some([only]) => fixed(cx.source, only, "a key"),
            _ => Err(wrong()),
        }
    };
    if !line.args.is_empty() {
        return Err(wrong());
    }
    Ok((half("key_id")?, half("mac_key")?))
}

fn storage(cx: &Context<'_>, line: &Directive) -> Result<PathBuf, Box<Problem>> {
    let folder = match line.args.as_slice() {
        [kind, folder] if kind.text == "file_system" && line.block.is_none() => Some(folder),
        [kind] if kind.text == "file_system" => {
            let root = line.block.iter().flatten().find(|inner| inner.name.text == "root");
            root.and_then(|root| root.args.first())
        }
        [kind, ..] if kind.text != "file_system" => {
            let message = format!("`storage {}` is a plugin of Caddy that onehop does not have", kind.text);
            return Err(Problem::error("not-yet", &kind.place, message)
                .help("certificates are kept in files: `storage file_system FOLDER`"));
        }
        _ => None,
    };
    match folder {
        Some(folder) => Ok(cx.absolute_to_write(&fixed(cx.source, folder, "the path of a folder")?)),
        None => Err(Problem::error("arguments", &line.name.place, "`storage` does not say which folder")
            .help("it is written `storage file_system FOLDER`")),
    }
}

fn admin(cx: &mut Context<'_>, line: &Directive) -> Result<Admin, Box<Problem>> {
    if let Some(block) = &line.block {
        let place = block.first().map_or(&line.name.place, |option| &option.name.place);
        return Err(Problem::error(
            "not-yet",
            place,
            "options of `admin` are Caddy's; onehop does not have them yet",
        ));
    }
    let token = one_argument(line, "admin 127.0.0.1:2020")?;
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
