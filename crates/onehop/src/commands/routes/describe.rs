//! Checked settings in the words of the file that they came from.
//!
//! Not the text itself: a shorthand is written out, a path is absolute. Values of variables are left out.

use onehop_config::checked::limit::{Bound, Limit, Priority, RateKey, RateLimit};
use onehop_config::checked::proxy::{BalancePolicy, Proxy, ProxyAddress, ProxyUpstream};
use onehop_config::checked::{
    App, AppAddress, AppRun, CaptureGroup, Condition, Encoding, FileMatch, HeaderOp, HeaderTest, HostPattern,
    Matcher, Network, Part, PathPattern, Placeholder, ProtocolTest, QueryChange, QueryTest, RedirectKind,
    Step, Template, UriChange, WorkerCount,
};

/// The directive, and what it does. `usual_status` is what `respond` answers with where nothing is written.
pub(super) fn step(step: &Step, usual_status: &str) -> (&'static str, String) {
    match step {
        Step::Root(root) => ("root", template(root)),
        Step::Header(header) => {
            let ops: Vec<String> = header.ops.iter().map(header_op).collect();
            let deferred = if header.deferred { " (when the answer is written)" } else { "" };
            ("header", format!("{}{deferred}", ops.join(", ")))
        }
        Step::RequestHeader(ops) => {
            ("request_header", ops.iter().map(header_op).collect::<Vec<_>>().join(", "))
        }
        Step::Redirect { to, kind: RedirectKind::Status(status) } => {
            ("redir", format!("{} {status}", template(to)))
        }
        Step::Redirect { to, kind: RedirectKind::Html } => ("redir", format!("{} html", template(to))),
        Step::Rewrite(to) => ("rewrite", template(to)),
        Step::ChangeUri(change) => ("uri", uri_change(change)),
        Step::Encode(encode) => ("encode", codings(&encode.encodings)),
        Step::EarlyHints(hints) => {
            let learn = hints.learn.then_some("learn");
            (
                "early_hints",
                hints.links.iter().map(String::as_str).chain(learn).collect::<Vec<_>>().join(", "),
            )
        }
        Step::Handle(_) => ("handle", String::new()),
        Step::HandlePath { prefix, .. } => ("handle_path", format!("takes {prefix} off")),
        Step::Limit(limit) => ("limit", bounds(limit)),
        Step::Priority(priority) => ("limit", format!("priority {}", self::priority(*priority))),
        Step::RateLimit(rate) => ("rate_limit", rate_limit(rate)),
        Step::Tracing(tracing) => ("tracing", tracing.span.as_ref().map(template).unwrap_or_default()),
        Step::Error { status, message } => {
            ("error", format!("{status} {}", template(message)).trim_end().to_owned())
        }
        Step::BasicAuth(auth) => {
            ("basic_auth", auth.accounts.iter().map(|(user, _)| user.as_str()).collect::<Vec<_>>().join(", "))
        }
        Step::RequestBody(bytes) => ("request_body", format!("at most {bytes} bytes")),
        Step::LogSkip => ("log_skip", String::new()),
        Step::LogAppend(append) => ("log_append", format!("{} {}", append.key, template(&append.value))),
        Step::LogName(names) => ("log_name", names.join(" ")),
        Step::Respond { status, body, .. } => {
            let body = template(body);
            let status = status.map_or_else(|| usual_status.to_owned(), |status| status.to_string());
            ("respond", if body.is_empty() { status } else { format!("{status} {body:?}") })
        }
        Step::FileServer(files) => {
            let root =
                files.root.as_ref().map_or_else(String::new, |root| format!("below {}", template(root)));
            let browse = if files.browse { " browse" } else { "" };
            ("file_server", format!("{root}{browse}").trim_start().to_owned())
        }
        Step::Spa(spa) => ("spa", format!("{}, {}", spa.root.display(), spa.index)),
        Step::App(app) => ("app", application(app)),
        Step::Proxy(proxy) => ("reverse_proxy", reverse_proxy(proxy)),
    }
}

fn uri_change(change: &UriChange) -> String {
    match change {
        UriChange::StripSuffix(suffix) => format!("removes {suffix} from the end"),
        UriChange::Replace { find, by, .. } => format!("replaces {find} by {by}"),
        UriChange::PathRegexp { find, by } => {
            format!("replaces {} in the path by {}", find.regex.as_str(), template(by))
        }
        UriChange::Query(changes) => {
            format!("query {}", changes.iter().map(query_change).collect::<Vec<_>>().join(", "))
        }
    }
}

fn query_change(change: &QueryChange) -> String {
    match change {
        QueryChange::Rename { from, to } => format!("{from}>{to}"),
        QueryChange::Set { name, value } => format!("{name} {:?}", template(value)),
        QueryChange::Add { name, value } => format!("+{name} {:?}", template(value)),
        QueryChange::Replace { name, find, by } => {
            let name = name.as_deref().unwrap_or("*");
            format!("{name} {:?} {:?}", find.regex.as_str(), template(by))
        }
        QueryChange::Delete { name } => format!("-{name}"),
    }
}

/// A bound as it is written, without what it does not say.
pub(super) fn bounds(limit: &Limit) -> String {
    let mut words = Vec::new();
    match limit.bound {
        Bound::Unbounded => {}
        Bound::Fixed(most) => words.push(format!("in_flight {most}")),
        Bound::Adaptive { min, max } => words.push(format!("adaptive min {min} max {max}")),
    }
    if limit.queue > 0 {
        words.push(format!("queue {} wait {:?}", limit.queue, limit.wait));
    }
    words.extend(limit.lag.map(|lag| format!("lag {lag:?}")));
    if limit.shed_status != UNAVAILABLE {
        words.push(format!("shed {}", limit.shed_status));
    }
    words.join(" ")
}

/// What is answered where nothing else is written (RFC 9110 section 15.6.4).
const UNAVAILABLE: u16 = 503;

fn priority(priority: Priority) -> &'static str {
    match priority {
        Priority::High => "high",
        Priority::Normal => "normal",
        Priority::Low => "low",
    }
}

fn rate_limit(rate: &RateLimit) -> String {
    let key = match &rate.key {
        RateKey::ClientAddress => "ip".to_owned(),
        RateKey::Header(name) => format!("header {name}"),
        RateKey::Cookie(name) => format!("cookie {name}"),
        RateKey::Template(key) if key.as_text().is_some() => "everybody".to_owned(),
        RateKey::Template(key) => template(key),
    };
    let RateLimit { events, window, burst, .. } = rate;
    format!("{events} in {window:?}, {burst} at once, by {key}")
}

/// Statuses of errors, whole hundreds as `4xx`.
pub(super) fn statuses(statuses: &[u16]) -> String {
    if statuses.is_empty() {
        return "*".to_owned();
    }
    let mut words: Vec<String> = Vec::new();
    let is_whole = |class: u16| statuses.iter().filter(|status| **status / 100 == class).count() == 100;
    for status in statuses {
        let class = status / 100;
        let word = if is_whole(class) { format!("{class}xx") } else { status.to_string() };
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words.join(" ")
}

/// The conditions of a route.
pub(super) fn matcher(matcher: &Matcher) -> String {
    matcher.all.iter().map(condition).collect::<Vec<_>>().join(" and ")
}

fn application(app: &App) -> String {
    let many = match app.workers {
        WorkerCount::Auto => " (workers auto)".to_owned(),
        WorkerCount::Exactly(count) if count.get() > 1 => format!(" (workers {count})"),
        WorkerCount::Exactly(_) => String::new(),
    };
    let what = match &app.run {
        AppRun::Handler { file, arguments, runtime, .. } => {
            let runtime = runtime.as_ref().map_or_else(String::new, |runtime| format!("{runtime} "));
            let words = std::iter::once(file.display().to_string()).chain(arguments.iter().cloned());
            format!("{runtime}{}", words.collect::<Vec<_>>().join(" "))
        }
        AppRun::Command { line } => line.join(" "),
        AppRun::Elsewhere { address: AppAddress::Tcp(address) } => format!("somebody else's at {address}"),
        AppRun::Elsewhere { address: AppAddress::Unix(path) } => {
            format!("somebody else's at unix/{}", path.display())
        }
    };
    let unbounded = if app.limit.is_none() { " (limit off)" } else { "" };
    format!("{}: {what}{many}{unbounded}", app.name)
}

/// Upstreams that a line shows; a range of ports can be a thousand.
const UPSTREAMS_SHOWN_MAX: usize = 8;

/// Where requests go, and how one of several is chosen.
fn reverse_proxy(proxy: &Proxy) -> String {
    let shown = proxy.upstreams.iter().take(UPSTREAMS_SHOWN_MAX).map(|upstream| place(proxy, upstream));
    let mut text = format!("to {}", shown.collect::<Vec<_>>().join(" "));
    let more = proxy.upstreams.len().saturating_sub(UPSTREAMS_SHOWN_MAX);
    if more > 0 {
        text += &format!(" and {more} more");
    }
    if proxy.upstreams.len() > 1 {
        text += &format!(" ({})", policy(&proxy.balance.policy));
    }
    text
}

fn place(proxy: &Proxy, upstream: &ProxyUpstream) -> String {
    let is_excepted = |excepted: &[u16]| match &upstream.address {
        ProxyAddress::Tcp { port, .. } => excepted.contains(port),
        ProxyAddress::Unix(_) | ProxyAddress::OfRequest(_) => false,
    };
    match &proxy.transport.tls {
        Some(tls) if !is_excepted(&tls.except_ports) => format!("https://{}", upstream.label),
        _ => upstream.label.clone(),
    }
}

/// As it is written, without secrets.
fn policy(policy: &BalancePolicy) -> String {
    let (words, fallback) = match policy {
        BalancePolicy::Random => ("random".to_owned(), None),
        BalancePolicy::RandomChoose(count) => (format!("random_choose {count}"), None),
        BalancePolicy::First => ("first".to_owned(), None),
        BalancePolicy::RoundRobin => ("round_robin".to_owned(), None),
        BalancePolicy::WeightedRoundRobin(weights) => {
            let shown = weights.iter().take(UPSTREAMS_SHOWN_MAX).map(u32::to_string).collect::<Vec<_>>();
            let more = if weights.len() > UPSTREAMS_SHOWN_MAX { " …" } else { "" };
            (format!("weighted_round_robin {}{more}", shown.join(" ")), None)
        }
        BalancePolicy::LeastConn => ("least_conn".to_owned(), None),
        BalancePolicy::PeakEwma => ("peak_ewma".to_owned(), None),
        BalancePolicy::IpHash => ("ip_hash".to_owned(), None),
        BalancePolicy::ClientIpHash => ("client_ip_hash".to_owned(), None),
        BalancePolicy::UriHash => ("uri_hash".to_owned(), None),
        BalancePolicy::Query(name, fallback) => (format!("query {name}"), Some(fallback)),
        BalancePolicy::Header(name, fallback) => (format!("header {name}"), Some(fallback)),
        BalancePolicy::Cookie { name, fallback, .. } => (format!("cookie {name}"), Some(fallback)),
    };
    match fallback {
        Some(fallback) => format!("{words}, else {}", self::policy(fallback)),
        None => words,
    }
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Path(patterns) => patterns.iter().map(path_pattern).collect::<Vec<_>>().join(" or "),
        Condition::Method(methods) => methods.join(" or "),
        Condition::Host(hosts) => {
            format!("host {}", hosts.iter().map(host).collect::<Vec<_>>().join(" or "))
        }
        Condition::Header { name, value: HeaderTest::Present } => format!("{name} is there"),
        Condition::Header { name, value: HeaderTest::Absent } => format!("no {name}"),
        Condition::Header { name, value: HeaderTest::Like(values) } => {
            format!("{name} is {}", values.join(" or "))
        }
        Condition::HeaderRegexp { name, expression } => {
            format!("{name} fits {}", expression.regex.as_str())
        }
        Condition::PathRegexp(expression) => format!("the path fits {}", expression.regex.as_str()),
        Condition::RemoteIp(networks) => format!("from {}", networks_of(networks)),
        Condition::ClientIp(networks) => format!("the client is of {}", networks_of(networks)),
        Condition::Protocol(tests) => tests.iter().map(protocol).collect::<Vec<_>>().join(" or "),
        Condition::Query(tests) => tests.iter().map(query).collect::<Vec<_>>().join(" and "),
        Condition::File(found) => file_match(found),
        Condition::Not(matchers) => {
            let inner: Vec<String> = matchers.iter().map(matcher).collect();
            format!("not ({})", inner.join(") and not ("))
        }
    }
}

fn networks_of(networks: &[Network]) -> String {
    networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}

fn protocol(test: &ProtocolTest) -> String {
    match test {
        ProtocolTest::Http => "http".to_owned(),
        ProtocolTest::Https => "https".to_owned(),
        ProtocolTest::Grpc => "grpc".to_owned(),
        ProtocolTest::Version { number, or_later } => {
            let later = if *or_later { " or later" } else { "" };
            format!("HTTP/{}.{}{later}", number / 10, number % 10)
        }
    }
}

fn query(test: &QueryTest) -> String {
    let QueryTest { name, values } = test;
    match (name.as_str(), values.as_slice()) {
        ("", []) => "no query".to_owned(),
        (_, []) => format!("?{name} is there"),
        _ => format!("?{name} is {}", values.join(" or ")),
    }
}

fn file_match(found: &FileMatch) -> String {
    let candidates: Vec<String> = found.candidates.iter().map(template).collect();
    let otherwise = found.otherwise_status.map_or_else(String::new, |status| format!(", else {status}"));
    format!("a file {}{otherwise}", candidates.join(" or "))
}

fn path_pattern(pattern: &PathPattern) -> String {
    match pattern {
        PathPattern::Any => "*".to_owned(),
        PathPattern::Exact(path) | PathPattern::Glob(path) | PathPattern::Escaped(path) => path.clone(),
        PathPattern::Prefix(path) => format!("{path}*"),
        PathPattern::Suffix(path) => format!("*{path}"),
        PathPattern::Contains(path) => format!("*{path}*"),
    }
}

fn host(pattern: &HostPattern) -> String {
    match pattern {
        HostPattern::Exact(host) => host.clone(),
        HostPattern::Wildcard(labels) => {
            let labels = labels.iter().map(|label| label.as_deref().unwrap_or("*"));
            labels.collect::<Vec<_>>().join(".")
        }
    }
}

fn header_op(op: &HeaderOp) -> String {
    match op {
        HeaderOp::Set { name, value } => format!("{name} {:?}", template(value)),
        HeaderOp::Add { name, value } => format!("+{name} {:?}", template(value)),
        HeaderOp::Default { name, value } => format!("?{name} {:?}", template(value)),
        HeaderOp::Delete { name } => format!("-{name}"),
        HeaderOp::Replace { name, find, replace } => format!("{name} {find:?} {:?}", template(replace)),
    }
}

fn codings(encodings: &[Encoding]) -> String {
    let name = |encoding: &Encoding| match encoding {
        Encoding::Gzip => "gzip",
        Encoding::Brotli => "br",
        Encoding::Zstd => "zstd",
    };
    encodings.iter().map(name).collect::<Vec<_>>().join(" ")
}

fn template(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Value(value) => format!("{{{}}}", placeholder(value)),
    };
    template.parts.iter().map(part).collect()
}

// tidy: table, because each placeholder has one name
fn placeholder(placeholder: &Placeholder) -> String {
    let fixed = match placeholder {
        Placeholder::Method => "method",
        Placeholder::Uri => "uri",
        Placeholder::Path => "path",
        Placeholder::PathDir => "dir",
        Placeholder::PathFile => "file",
        Placeholder::PathFileBase => "file.base",
        Placeholder::PathFileExt => "file.ext",
        Placeholder::PathSegment(number) => return format!("path.{number}"),
        Placeholder::Query => "query",
        Placeholder::PrefixedQuery => "?query",
        Placeholder::QueryValue(name) => return format!("query.{name}"),
        Placeholder::OriginalUri => "orig_uri",
        Placeholder::OriginalPath => "orig_path",
        Placeholder::OriginalQuery => "orig_query",
        Placeholder::Host => "host",
        Placeholder::HostPort => "hostport",
        Placeholder::Port => "port",
        Placeholder::HostLabel(number) => return format!("labels.{number}"),
        Placeholder::Scheme => "scheme",
        Placeholder::Protocol => "http.request.proto",
        Placeholder::Remote => "remote",
        Placeholder::RemoteHost => "remote_host",
        Placeholder::ErrorMessage => "err.message",
        Placeholder::AuthUser => "http.auth.user.id",
        Placeholder::ClientIp => "client_ip",
        Placeholder::RemotePort => "remote_port",
        Placeholder::Header(name) => return format!("header.{name}"),
        Placeholder::Cookie(name) => return format!("cookie.{name}"),
        Placeholder::Tls(value) => return value.to_string(),
        Placeholder::Capture { expression, group } => {
            let expression = expression.as_ref().map_or_else(String::new, |name| format!("{name}."));
            return match group {
                CaptureGroup::Number(number) => format!("re.{expression}{number}"),
                CaptureGroup::Name(name) => format!("re.{expression}{name}"),
            };
        }
        Placeholder::Root => "http.vars.root",
        Placeholder::FileMatchRelative => "file_match.relative",
        Placeholder::TimeUnix => "time.now.unix",
        Placeholder::Uuid => "uuid",
        Placeholder::TraceId => "http.vars.trace_id",
        Placeholder::SpanId => "http.vars.span_id",
        Placeholder::UpstreamHostPort => "upstream_hostport",
        Placeholder::UpstreamHost => "http.reverse_proxy.upstream.host",
        Placeholder::UpstreamPort => "http.reverse_proxy.upstream.port",
        Placeholder::ErrorStatus => "err.status_code",
        Placeholder::ErrorStatusText => "err.status_text",
        Placeholder::ErrorId => "err.id",
    };
    fixed.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{statuses, step};
    use onehop_config::{FileKind, FileSource, load};

    /// What the steps of a site with these lines are called.
    fn words(name: &str, lines: &str) -> Vec<String> {
        let file = std::env::temp_dir().join(format!("onehop-words-{}-{name}", std::process::id()));
        std::fs::write(&file, format!(":8080 {{\n{lines}\n}}\n")).expect("a file");
        let loaded = load(&file, FileKind::Onehopfile, &FileSource).expect("sound");
        std::fs::remove_file(&file).expect("it was there");
        let mut words = Vec::new();
        loaded.checked.each_step(|made| {
            let (directive, text) = step(made, "200");
            words.push(format!("{directive} {text}"));
        });
        words
    }

    #[test]
    fn a_bound_is_what_it_says() {
        for (number, (lines, expected)) in [
            ("limit in_flight 64 queue 128 wait 250ms", "limit in_flight 64 queue 128 wait 250ms"),
            ("limit in_flight 64 shed 429", "limit in_flight 64 shed 429"),
            ("limit adaptive min 2 max 9", "limit adaptive min 2 max 9"),
            ("limit priority low in_flight 1", "limit priority low; limit in_flight 1"),
            ("rate_limit 10r/s", "rate_limit 10 in 1s, 10 at once, by ip"),
            ("rate_limit 5r/m burst 2 by header X-Key", "rate_limit 5 in 60s, 2 at once, by header x-key"),
            ("rate_limit 5r/m by everybody", "rate_limit 5 in 60s, 5 at once, by everybody"),
            ("rate_limit 5r/m by {host}{path}", "rate_limit 5 in 60s, 5 at once, by {host}{path}"),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(words(&format!("limit-{number}"), lines).join("; "), expected, "{lines}");
        }
    }

    #[test]
    fn statuses_are_reported_by_their_class_where_it_is_whole() {
        let class: Vec<u16> = (400..500).chain([502]).collect();
        assert_eq!(statuses(&class), "4xx 502");
        assert_eq!(statuses(&class[1..]).split(' ').count(), 100);
        assert_eq!(statuses(&[]), "*");
    }

    #[test]
    fn a_proxy_is_its_upstreams_and_how_one_of_them_is_chosen() {
        for (number, (lines, expected)) in [
            ("reverse_proxy a:3000", "reverse_proxy to a:3000"),
            ("reverse_proxy https://a", "reverse_proxy to https://a:443"),
            ("reverse_proxy unix//run/a.sock", "reverse_proxy to unix//run/a.sock"),
            ("reverse_proxy {labels.0}:80", "reverse_proxy to {labels.0}:80"),
            ("reverse_proxy a:1 :2", "reverse_proxy to a:1 :2 (random)"),
            ("reverse_proxy a:1-20", "reverse_proxy to a:1 a:2 a:3 a:4 a:5 a:6 a:7 a:8 and 12 more (random)"),
            (
                "reverse_proxy a:443 a:80 {\ntransport http {\ntls_except_ports 80\n}\n}",
                "reverse_proxy to https://a:443 a:80 (random)",
            ),
            (
                "reverse_proxy a:1 b:2 {\nlb_policy weighted_round_robin 2 1\n}",
                "reverse_proxy to a:1 b:2 (weighted_round_robin 2 1)",
            ),
            (
                "reverse_proxy a:1 b:2 {\nlb_policy cookie seat much-secret {\nfallback header X-User\n}\n}",
                "reverse_proxy to a:1 b:2 (cookie seat, else header x-user, else random)",
            ),
        ]
        .into_iter()
        .enumerate()
        {
            assert_eq!(words(&number.to_string(), lines), [expected], "{lines}");
        }
    }
}
