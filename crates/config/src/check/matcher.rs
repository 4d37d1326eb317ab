//! Conditions on requests: `/path`, `*`, `@named`, and what a named matcher is made of.

use std::collections::HashMap;

use super::file_match::file_condition;
use super::path_pattern::path_pattern;
use super::template::fixed;
use super::value::field_name;
use super::{Context, conditions, host_pattern};
use crate::arguments::at_least_one;
use crate::checked::{Condition, HeaderTest, Matcher};
use crate::limits::BLOCK_DEPTH_MAX;
use crate::nearest::nearest;
use crate::problem::Problem;
use crate::syntax::{Directive, Quote, Token};
use crate::vocabulary::MATCHERS;

/// The matcher that a directive has.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chosen {
    /// `None` matches every request.
    pub(crate) matcher: Option<Matcher>,
    /// The path as written, where the matcher names exactly one: routes are sorted by it.
    pub(crate) single_path: Option<String>,
}

/// The named matchers of a block and of those around it.
#[derive(Default)]
pub(crate) struct Scope<'a> {
    outer: Option<&'a Scope<'a>>,
    own: HashMap<String, Chosen>,
}

impl<'a> Scope<'a> {
    /// The matchers defined among the lines of a block within `outer`.
    pub(crate) fn of_block(
        cx: &mut Context<'_>,
        lines: &[Directive],
        outer: Option<&'a Scope<'a>>,
    ) -> Scope<'a> {
        let mut scope = Scope { outer, own: HashMap::new() };
        for line in lines.iter().filter(|line| is_definition(line)) {
            let name = &line.name;
            if scope.find(&name.text).is_some() {
                let message = format!("the matcher `{}` is defined twice", name.text);
                cx.problems.push(
                    Problem::error("matcher", &name.place, message).help("give one of the two another name"),
                );
                continue;
            }
            let result = definition(cx, line);
            // A broken one counts as defined: that it is broken was said already.
            let chosen = cx.keep(result).unwrap_or_default();
            scope.own.insert(name.text.clone(), chosen);
        }
        scope
    }

    fn find(&self, name: &str) -> Option<&Chosen> {
        self.own.get(name).or_else(|| self.outer?.find(name))
    }

    fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.own.keys().map(String::as_str).collect();
        names.extend(self.outer.map(Scope::names).unwrap_or_default());
        names.sort_unstable();
        names
    }
}

/// Whether a line defines a named matcher.
pub(crate) fn is_definition(line: &Directive) -> bool {
    line.name.text.starts_with('@')
}

/// Takes the matcher off the front of a directive's arguments, if one stands there.
pub(crate) fn split<'t>(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    args: &'t [Token],
) -> Result<(Chosen, &'t [Token]), Box<Problem>> {
    let Some((first, rest)) = args.split_first() else { return Ok((Chosen::default(), args)) };
    Ok(match from_token(cx, scope, first)? {
        Some(chosen) => (chosen, rest),
        None => (Chosen::default(), args),
    })
}

/// The matcher that a token is, if it is one.
fn from_token(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    token: &Token,
) -> Result<Option<Chosen>, Box<Problem>> {
    if token.text == "*" {
        return Ok(Some(Chosen::default()));
    }
    if token.text.starts_with('/') {
        let pattern = path_pattern(cx, token)?;
        let matcher = Matcher { all: vec![Condition::Path(vec![pattern])] };
        return Ok(Some(Chosen { matcher: Some(matcher), single_path: Some(token.text.clone()) }));
    }
    if !token.text.starts_with('@') {
        return Ok(None);
    }
    match scope.find(&token.text) {
        Some(chosen) => Ok(Some(chosen.clone())),
        None => {
            let message = format!("the matcher `{}` is not defined here", token.text);
            let problem = Problem::error("matcher", &token.place, message);
            Err(match nearest(&token.text, scope.names()) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(format!("define it in this block: `{} path /some/*`", token.text)),
            })
        }
    }
}

/// `@name path /x` or `@name { … }`.
fn definition(cx: &mut Context<'_>, line: &Directive) -> Result<Chosen, Box<Problem>> {
    let name = line.name.text.trim_start_matches('@');
    let matcher = set(cx, line, Some(name), 0)?;
    let single_path = single_path(&line.args, line.block.as_deref());
    Ok(Chosen { matcher: Some(matcher), single_path })
}

/// A set of conditions behind an option that takes one.
pub(crate) fn condition_set(cx: &mut Context<'_>, line: &Directive) -> Result<Matcher, Box<Problem>> {
    set(cx, line, None, 0)
}

/// A set of conditions: on the rest of a line, or in a block. Conditions of one kind in a block
/// are merged, so that either of them suffices; different kinds must all hold. `name` is that of the named matcher.
fn set(
    cx: &mut Context<'_>,
    line: &Directive,
    name: Option<&str>,
    depth: usize,
) -> Result<Matcher, Box<Problem>> {
    let Directive { number, name: owner, args, block } = line;
    if depth > BLOCK_DEPTH_MAX {
        let message = format!("matchers are nested more than {BLOCK_DEPTH_MAX} deep");
        return Err(Problem::error("too-deep", &owner.place, message));
    }
    let inline;
    let lines = match args.split_first() {
        Some((first, rest)) => {
            inline = [Directive {
                number: *number,
                name: first.clone(),
                args: rest.to_vec(),
                block: block.clone(),
            }];
            inline.as_slice()
        }
        None => block.as_deref().unwrap_or_default(),
    };
    if lines.is_empty() {
        let message = format!("`{}` has no condition", owner.text);
        return Err(Problem::error("matcher", &owner.place, message)
            .help(format!("write `{} path /some/*`, or conditions in a block", owner.text)));
    }
    let mut all: Vec<Condition> = Vec::new();
    for line in lines {
        let result = condition(cx, line, name, depth);
        if let Some(condition) = cx.keep(result) {
            merge(&mut all, condition);
        }
    }
    Ok(Matcher { all })
}

fn merge(all: &mut Vec<Condition>, new: Condition) {
    for known in all.iter_mut() {
        match (known, &new) {
            (Condition::Path(known), Condition::Path(new)) => return known.extend(new.iter().cloned()),
            (Condition::Method(known), Condition::Method(new)) => return known.extend(new.iter().cloned()),
            (Condition::Host(known), Condition::Host(new)) => return known.extend(new.iter().cloned()),
            (Condition::RemoteIp(known), Condition::RemoteIp(new))
            | (Condition::ClientIp(known), Condition::ClientIp(new)) => {
                return known.extend(new.iter().copied());
            }
            (Condition::Protocol(known), Condition::Protocol(new)) => {
                return known.extend(new.iter().copied());
            }
            (Condition::Query(known), Condition::Query(new)) => {
                return new.iter().for_each(|test| conditions::add_query(known, test));
            }
            (Condition::Not(known), Condition::Not(new)) => return known.extend(new.iter().cloned()),
            (Condition::File(known), Condition::File(new)) => {
                known.candidates.extend(new.candidates.iter().cloned());
                known.root = new.root.clone().or(known.root.take());
                known.otherwise_status = new.otherwise_status.or(known.otherwise_status);
                known.policy = new.policy;
                return;
            }
            (
                Condition::Header { name, value: HeaderTest::Like(known) },
                Condition::Header { name: new_name, value: HeaderTest::Like(new) },
            ) if name == new_name => return known.extend(new.iter().cloned()),
            _ => {}
        }
    }
    all.push(new);
}

/// The path of a definition that names exactly one, whatever else it asks for.
fn single_path(args: &[Token], block: Option<&[Directive]>) -> Option<String> {
    let paths: Vec<&Token> = match args.split_first() {
        Some((name, rest)) if name.text == "path" => rest.iter().collect(),
        Some(_) => Vec::new(),
        None => block?.iter().filter(|line| line.name.text == "path").flat_map(|line| &line.args).collect(),
    };
    match paths.as_slice() {
        [path] => Some(path.text.clone()),
        _ => None,
    }
}

/// One condition; `not` makes one of a nested set.
fn condition(
    cx: &mut Context<'_>,
    line: &Directive,
    matcher: Option<&str>,
    depth: usize,
) -> Result<Condition, Box<Problem>> {
    let name = &line.name;
    if name.quote != Quote::None {
        let message = "an expression is a matcher of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &name.place, message));
    }
    if line.block.is_some() && !matches!(name.text.as_str(), "file" | "not") {
        return Err(Problem::error("block", &name.place, format!("`{}` takes no block", name.text)));
    }
    match name.text.as_str() {
        "path" => path(cx, line),
        "path_regexp" => conditions::path_regexp(cx, line, matcher),
        "method" => method(cx, line),
        "host" => host(cx, line),
        "header" => header(cx, line),
        "header_regexp" => conditions::header_regexp(cx, line, matcher),
        "remote_ip" => conditions::networks(cx, line).map(Condition::RemoteIp),
        "client_ip" => conditions::networks(cx, line).map(Condition::ClientIp),
        "protocol" => conditions::protocol(line),
        "query" => conditions::query(cx, line),
        "file" => file_condition(cx, line),
        "not" => set(cx, line, matcher, depth + 1).map(|inner| Condition::Not(vec![inner])),
        word if MATCHERS.contains(&word) => {
            let message = format!("`{word}` is a Caddy matcher that onehop does not have yet");
            Err(Problem::error("not-yet", &name.place, message))
        }
        word => {
            let problem =
                Problem::error("unknown-matcher", &name.place, format!("there is no matcher `{word}`"));
            Err(match nearest(word, MATCHERS) {
                Some(near) => problem.help(format!("did you mean `{near}`?")),
                None => problem.help(
                    "there are `path`, `path_regexp`, `method`, `host`, `header`, `header_regexp`, `remote_ip`, `client_ip`, \
                     `protocol`, `query`, `file` and `not`",
                ),
            })
        }
    }
}

fn path(cx: &mut Context<'_>, line: &Directive) -> Result<Condition, Box<Problem>> {
    let args = at_least_one(line, "path /assets/* *.css")?;
    let patterns: Result<Vec<_>, _> = args.iter().map(|token| path_pattern(cx, token)).collect();
    patterns.map(Condition::Path)
}

fn method(cx: &mut Context<'_>, line: &Directive) -> Result<Condition, Box<Problem>> {
    let args = at_least_one(line, "method GET HEAD")?;
    for token in args {
        if token.text.bytes().any(|byte| byte.is_ascii_lowercase()) {
            // RFC 9110 section 9.1: methods are case-sensitive.
            let message = format!("no request has the method `{}`", token.text);
            let help = format!("methods are compared exactly: write `{}`", token.text.to_ascii_uppercase());
            cx.problems.push(Problem::warning("method", &token.place, message).help(help));
        }
    }
    Ok(Condition::Method(args.iter().map(|token| token.text.clone()).collect()))
}

fn host(cx: &mut Context<'_>, line: &Directive) -> Result<Condition, Box<Problem>> {
    let args = at_least_one(line, "host example.com *.example.com")?;
    let mut hosts = Vec::new();
    for token in args {
        let text = fixed(cx.source, token, "a host")?;
        hosts.push(host_pattern(&text, &token.place)?);
    }
    Ok(Condition::Host(hosts))
}

fn header(cx: &mut Context<'_>, line: &Directive) -> Result<Condition, Box<Problem>> {
    let wrong = |help: &str| {
        Problem::error("arguments", &line.name.place, "`header` takes a field and a value").help(help)
    };
    let (field, value) = match line.args.as_slice() {
        [field] if field.text.starts_with('!') => (field, None),
        [field, value] if !field.text.starts_with('!') => (field, Some(value)),
        [field, ..] if field.text.starts_with('!') => {
            return Err(wrong("a field that must be absent has no value: `header !Cookie`"));
        }
        [field] => return Err(wrong(&format!("for any value, write `header {} *`", field.text))),
        _ => return Err(wrong("for several values, write several `header` lines in a block")),
    };
    let name = field_name(field, field.text.trim_start_matches('!'))?.to_ascii_lowercase();
    let value = match value {
        None => HeaderTest::Absent,
        Some(value) => match fixed(cx.source, value, "the value of a `header` matcher")?.as_str() {
            "*" => HeaderTest::Present,
            like => HeaderTest::Like(vec![like.to_owned()]),
        },
    };
    Ok(Condition::Header { name, value })
}
