//! Conditions of named matchers beside path, method, host, header and file: addresses, expressions, protocols, the query.

use std::sync::Arc;

use super::Context;
use super::template::fixed;
use super::value::field_name;
use crate::arguments::{at_least_one, wrong_arguments};
use crate::checked::{Condition, Expression, Network, ProtocolTest, QueryTest, compile_expression};
use crate::directives;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

/// What `protocol` takes; also `http/1.0`, `http/1.1`, `http/2`, `http/3`, each with `+` behind it.
const PROTOCOLS: [&str; 9] =
    ["http", "https", "grpc", "http/1.0", "http/1.1", "http/2", "http/3", "http/1.1+", "http/2+"];

/// `remote_ip` and `client_ip`: addresses, networks, `private_ranges`.
pub(super) fn networks(cx: &mut Context<'_>, line: &Directive) -> Result<Vec<Network>, Box<Problem>> {
    if let Some(forwarded) = line.args.iter().find(|token| token.text == "forwarded") {
        let message = "`forwarded` is an old option of Caddy";
        return Err(Problem::error("not-yet", &forwarded.place, message)
            .help("write `client_ip`, and name the proxies in front in `servers { trusted_proxies }`"));
    }
    let usage = format!("{} private_ranges | <address or network>…", line.name.text);
    directives::of_networks(cx, line, &line.args, &usage)
}

/// `path_regexp [<name>] <expression>`. Without a name it has that of its matcher.
pub(super) fn path_regexp(
    cx: &mut Context<'_>,
    line: &Directive,
    matcher: Option<&str>,
) -> Result<Condition, Box<Problem>> {
    let (name, expression) = match line.args.as_slice() {
        [expression] => (matcher, expression),
        [name, expression] => (Some(name.text.as_str()), expression),
        _ => return Err(wrong_arguments(line, "path_regexp [<name>] <expression>")),
    };
    capturing(cx, name, expression).map(Condition::PathRegexp)
}

/// `header_regexp [<name>] <field> <expression>`. Without a name it has that of its matcher.
pub(super) fn header_regexp(
    cx: &mut Context<'_>,
    line: &Directive,
    matcher: Option<&str>,
) -> Result<Condition, Box<Problem>> {
    let (name, field, expression) = match line.args.as_slice() {
        [field, expression] => (matcher, field, expression),
        [name, field, expression] => (Some(name.text.as_str()), field, expression),
        _ => return Err(wrong_arguments(line, "header_regexp [<name>] <field> <expression>")),
    };
    let expression = capturing(cx, name, expression)?;
    Ok(Condition::HeaderRegexp { name: field_name(field, &field.text)?.to_ascii_lowercase(), expression })
}

fn capturing(
    cx: &mut Context<'_>,
    name: Option<&str>,
    token: &Token,
) -> Result<Arc<Expression>, Box<Problem>> {
    let compiled = compile_expression(&token.text);
    let known = cx.expressions.add(name, compiled.as_ref().ok().cloned());
    match (known, compiled) {
        (Some(expression), _) => Ok(Arc::new(expression)),
        (None, compiled) => {
            let error = compiled.err().map(|error| error.to_string()).unwrap_or_default();
            let message = format!("`{}` is no regular expression: {error}", token.text);
            Err(Problem::error("regexp", &token.place, message).help(
                "look-around and back-references do not exist; `\\` before a character takes its meaning away",
            ))
        }
    }
}

/// `protocol http|https|grpc|http/1.1|http/2+…`
pub(super) fn protocol(line: &Directive) -> Result<Condition, Box<Problem>> {
    let args = at_least_one(line, "protocol https")?;
    args.iter().map(one_protocol).collect::<Result<Vec<_>, _>>().map(Condition::Protocol)
}

fn one_protocol(token: &Token) -> Result<ProtocolTest, Box<Problem>> {
    let word = token.text.to_ascii_lowercase();
    let (version, or_later) = match word.strip_suffix('+') {
        Some(version) => (version, true),
        None => (word.as_str(), false),
    };
    let number = match version {
        "http" if !or_later => return Ok(ProtocolTest::Http),
        "https" if !or_later => return Ok(ProtocolTest::Https),
        "grpc" if !or_later => return Ok(ProtocolTest::Grpc),
        "http/1.0" => 10,
        "http/1.1" | "http/1" => 11,
        "http/2" => 20,
        "http/3" => 30,
        _ => {
            let problem =
                Problem::error("unknown-option", &token.place, format!("there is no protocol `{word}`"));
            return Err(match nearest(&word, PROTOCOLS) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help("there are `http`, `https`, `grpc`, `http/1.1`, `http/2` and `http/2+`"),
            });
        }
    };
    Ok(ProtocolTest::Version { number, or_later })
}

/// `query name=value name=*`; `query ""` is an empty one.
pub(super) fn query(cx: &mut Context<'_>, line: &Directive) -> Result<Condition, Box<Problem>> {
    let args = at_least_one(line, "query sort=asc")?;
    let mut tests = Vec::new();
    for token in args {
        let text = fixed(cx.source, token, "a parameter of a query")?;
        let test = match text.split_once('=') {
            Some((name, "*")) => QueryTest { name: name.to_owned(), values: Vec::new() },
            Some((name, value)) => QueryTest { name: name.to_owned(), values: vec![value.to_owned()] },
            None if text.is_empty() => QueryTest { name: String::new(), values: Vec::new() },
            None => {
                let message = format!("`{text}` does not say a value");
                return Err(Problem::error("arguments", &token.place, message)
                    .help(format!("write `{text}=value`, or `{text}=*` for any")));
            }
        };
        add_query(&mut tests, &test);
    }
    Ok(Condition::Query(tests))
}

/// Values of one parameter are alternatives, and parameters must all be there.
pub(super) fn add_query(tests: &mut Vec<QueryTest>, new: &QueryTest) {
    match tests.iter_mut().find(|known| known.name == new.name) {
        Some(known) if known.values.is_empty() || new.values.is_empty() => known.values.clear(),
        Some(known) => known.values.extend(new.values.iter().cloned()),
        None => tests.push(new.clone()),
    }
}
