//! Checked routes as short lines, for tests of their order.

use onehop_config::checked::{
    Condition, Expression, HeaderOp, HeaderTest, HostPattern, Matcher, Part, PathPattern, RedirectKind,
    Route, Step, Template,
};

/// One line a route, nested ones indented.
pub(crate) fn outline(routes: &[Route]) -> String {
    let mut text = String::new();
    let mut groups = Vec::new();
    lines(routes, 0, &mut groups, &mut text);
    text
}

/// Groups are numbered as they appear.
fn lines(routes: &[Route], depth: usize, groups: &mut Vec<u32>, text: &mut String) {
    for route in routes {
        let group = route.group.map_or(String::new(), |group| {
            let position = groups.iter().position(|known| *known == group).unwrap_or_else(|| {
                groups.push(group);
                groups.len() - 1
            });
            format!(" group{position}")
        });
        let condition =
            route.matcher.as_ref().map_or(String::new(), |matcher| format!(" {}", conditions(matcher)));
        let (step, inner) = step(&route.step);
        *text += &format!("{}{step}{group}{condition}\n", "  ".repeat(depth));
        lines(inner, depth + 1, groups, text);
    }
}

fn step(step: &Step) -> (String, &[Route]) {
    let name = match step {
        Step::Root(root) => format!("root {}", template(root)),
        Step::Header(header) => {
            let ops: Vec<String> = header.ops.iter().map(op).collect();
            format!("header {}{}", ops.join(", "), if header.deferred { " deferred" } else { "" })
        }
        Step::RequestHeader(ops) => {
            format!("request_header {}", ops.iter().map(op).collect::<Vec<_>>().join(", "))
        }
        Step::Redirect { to, kind: RedirectKind::Status(status) } => {
            format!("redir {} {status}", template(to))
        }
        Step::Redirect { to, kind: RedirectKind::Html } => format!("redir {} html", template(to)),
        Step::Rewrite(to) => format!("rewrite {}", template(to)),
        Step::ChangeUri(change) => format!("uri {change:?}"),
        Step::Encode(encode) => format!("encode {:?} from {}", encode.encodings, encode.minimum_length),
        Step::EarlyHints(hints) => {
            format!("early_hints {}{}", hints.links.join(", "), if hints.learn { " learn" } else { "" })
        }
        Step::Handle(routes) => return ("handle".into(), routes),
        Step::HandlePath { prefix, routes } => return (format!("handle_path {prefix}"), routes),
        Step::Limit(limit) => format!("limit {} {:?}", limit.label, limit.bound),
        Step::Priority(priority) => format!("priority {priority:?}"),
        Step::RateLimit(rate) => format!("rate_limit {} {}/{:?}", rate.zone, rate.events, rate.window),
        Step::Tracing(tracing) => {
            format!("tracing {}", tracing.span.as_ref().map(template).unwrap_or_default())
        }
        Step::Error { status, message } => format!("error {status} {}", template(message)),
        Step::BasicAuth(auth) => format!("basic_auth {auth:?}"),
        Step::RequestBody(bytes) => format!("request_body {bytes}"),
        Step::LogSkip => "log_skip".to_owned(),
        Step::LogAppend(append) => format!("log_append {} {}", append.key, template(&append.value)),
        Step::LogName(names) => format!("log_name {}", names.join(" ")),
        Step::Respond { status, body, close } => {
            let status = status.unwrap_or(200);
            format!("respond {status} {:?}{}", template(body), if *close { " close" } else { "" })
        }
        Step::FileServer(settings) => format!("file_server{}", if settings.browse { " browse" } else { "" }),
        Step::App(app) => format!("app {}", app.name),
        Step::Proxy(proxy) => format!("reverse_proxy {}", proxy.name),
        Step::Spa(settings) => format!("spa {}", settings.root.display()),
    };
    (name, &[])
}

fn op(op: &HeaderOp) -> String {
    match op {
        HeaderOp::Set { name, value } => format!("{name}={}", template(value)),
        HeaderOp::Add { name, value } => format!("+{name}={}", template(value)),
        HeaderOp::Default { name, value } => format!("?{name}={}", template(value)),
        HeaderOp::Delete { name } => format!("-{name}"),
        HeaderOp::Replace { name, find, replace } => format!("{name}~{find}~{}", template(replace)),
    }
}

/// A template with its placeholders by their variants' names.
pub(crate) fn template(template: &Template) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) => text.clone(),
        Part::Value(value) => format!("<{value:?}>"),
    };
    template.parts.iter().map(part).collect()
}

/// A matcher's conditions.
pub(crate) fn conditions(matcher: &Matcher) -> String {
    matcher.all.iter().map(condition).collect::<Vec<_>>().join(" and ")
}

fn condition(condition: &Condition) -> String {
    match condition {
        Condition::Path(patterns) => {
            format!("path {}", patterns.iter().map(path).collect::<Vec<_>>().join(" "))
        }
        Condition::Method(methods) => format!("method {}", methods.join(" ")),
        Condition::Host(hosts) => format!("host {}", hosts.iter().map(host).collect::<Vec<_>>().join(" ")),
        Condition::Header { name, value: HeaderTest::Present } => format!("header {name}"),
        Condition::Header { name, value: HeaderTest::Absent } => format!("header !{name}"),
        Condition::Header { name, value: HeaderTest::Like(values) } => {
            format!("header {name} {}", values.join(" "))
        }
        Condition::HeaderRegexp { name, expression } => {
            format!("header_regexp {name} {}", self::expression(expression))
        }
        Condition::PathRegexp(expression) => format!("path_regexp {}", self::expression(expression)),
        Condition::RemoteIp(networks) => format!("remote_ip {networks:?}"),
        Condition::ClientIp(networks) => format!("client_ip {networks:?}"),
        Condition::Protocol(tests) => format!("protocol {tests:?}"),
        Condition::Query(tests) => format!("query {tests:?}"),
        Condition::File(found) => {
            let candidates: Vec<String> = found.candidates.iter().map(template).collect();
            let status = found.otherwise_status.map_or(String::new(), |status| format!(" ={status}"));
            format!("file {}{status}", candidates.join(" "))
        }
        Condition::Not(matchers) => {
            format!("not ({})", matchers.iter().map(conditions).collect::<Vec<_>>().join(" or "))
        }
    }
}

/// An expression behind its name.
fn expression(expression: &Expression) -> String {
    let name = expression.name.as_deref().map_or(String::new(), |name| format!("{name} "));
    format!("{name}{}{}", expression.regex.as_str(), if expression.is_read { " read" } else { "" })
}

/// A host as it is written.
pub(crate) fn host(host: &HostPattern) -> String {
    match host {
        HostPattern::Exact(host) => host.clone(),
        HostPattern::Wildcard(labels) => {
            labels.iter().map(|label| label.as_deref().unwrap_or("*")).collect::<Vec<_>>().join(".")
        }
    }
}

fn path(pattern: &PathPattern) -> String {
    match pattern {
        PathPattern::Any => "*".into(),
        PathPattern::Exact(path) => path.clone(),
        PathPattern::Prefix(prefix) => format!("{prefix}*"),
        PathPattern::Suffix(suffix) => format!("*{suffix}"),
        PathPattern::Contains(middle) => format!("*{middle}*"),
        PathPattern::Glob(pattern) => format!("glob {pattern}"),
        PathPattern::Escaped(pattern) => format!("escaped {pattern}"),
    }
}
