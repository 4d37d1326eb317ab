//! `onehop bench wrk|ab|autocannon|oha|hey|k6|h2load`: commands of other tools, as they stand.

use std::time::Duration;

use clap::Parser as _;
use onehop_bench::foreign::{self, Body, Options, Tool};
use onehop_bench::quantity::Rates;
use onehop_load::caveat::CaveatCode;
use onehop_load::measure::Start;
use onehop_load::measure::{self, Server};
use onehop_load::plan::{Expect, Pace, Plan, Protocol, Reuse, Spacing, Until};
use onehop_load::url::Url;

use super::load;
use super::requests::{self, RequestOptions};
use super::session::Session;
use crate::arguments::AmongForeign;
use crate::failure::Failure;

/// How long a program behind `--` may take until its first good answer.
const READY_WITHIN: Duration = Duration::from_secs(30);

pub(super) fn foreign(tool: Tool, words: &[String]) -> Result<(), Failure> {
    let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok());
    let asked = foreign::read(tool, words, port).map_err(|error| Failure::wrong(error.to_string()))?;
    let own = std::iter::once("onehop bench").chain(asked.ours.iter().map(String::as_str));
    let mut own = AmongForeign::try_parse_from(own).map_err(|error| {
        let text = error.to_string();
        Failure::wrong(text.trim_start_matches("error: ").lines().next().unwrap_or_default())
    })?;
    own.output.quiet |= asked.is_quiet;
    if asked.is_json {
        own.output.json.get_or_insert_with(|| "-".into());
    }
    let mut asked = asked;
    if requests::take_framing(&mut asked.fields)? && asked.reuse != Reuse::New {
        asked.reuse = Reuse::New;
        asked
            .notes
            .push("`Connection: close`: each request has a new connection, and connecting counts".to_owned());
    }
    let mut plan = plan(&asked, &own)?;
    let mut session = Session::begin(&own.output)?;
    session.caveats.extend(asked.notes.iter().map(|note| CaveatCode::OtherTool.says(note)));
    // It lives until the end of the measurement.
    let _server = match &asked.start {
        Some(words) => Some(start(words, &mut plan, &mut session)?),
        None => {
            requests::reach(&mut plan.requests, own.i_own_this_host, plan.timeouts.connect)?;
            None
        }
    };
    let loads = load::measure(&mut session, &[plan], own.runs)?;
    load::tell(session, loads)
}

fn plan(asked: &Options, own: &AmongForeign) -> Result<Plan, Failure> {
    let body = match &asked.body {
        None => None,
        Some(Body::Text(text)) => Some(text.clone().into_bytes()),
        Some(Body::File(file)) => Some(requests::read_body(file)?),
    };
    let protocol = match own.version.protocol() {
        Protocol::Http1 => asked.protocol,
        protocol => protocol,
    };
    let options = RequestOptions {
        method: asked.method.clone(),
        fields: asked.fields.clone(),
        body,
        expect: own.expect.clone().unwrap_or(Expect::Success),
        tls: own.encryption.client(protocol),
        protocol,
    };
    let mut requests = Vec::new();
    for url in &asked.urls {
        let url = Url::parse(url).map_err(requests::url_failure)?;
        let url = match &asked.socket {
            Some(socket) => url.over(socket.clone()),
            None => url,
        };
        requests.push(options.to(url, 1)?);
    }
    let connections = asked.connections;
    Ok(Plan {
        requests,
        pace: match asked.rate {
            None => Pace::Closed { connections, think: Duration::ZERO },
            // wrk2 and autocannon send at even distances.
            Some(rate) => {
                let time = asked.time.unwrap_or(Duration::from_secs(10));
                load::open(&Rates::constant(rate), Spacing::Constant, time, connections)
            }
        },
        until: Until { time: asked.time, requests: asked.requests, narrow: None },
        warm_up: own.warm_up.unwrap_or(asked.warm_up),
        threads: asked.threads.min(connections),
        cores: own.cores.clone().map(|cores| cores.0).unwrap_or_default(),
        reuse: asked.reuse,
        timeouts: asked.timeouts,
        seed: own.seed,
    })
}

/// Starts the program behind `--` and waits until it answers.
fn start(words: &[String], plan: &mut Plan, session: &mut Session) -> Result<Server, Failure> {
    let start = Start {
        words: words.to_vec(),
        environment: Vec::new(),
        directory: None,
        port: None,
        behind: Vec::new(),
        ready_within: READY_WITHIN,
    };
    let failed = |error: measure::StartError| Failure::failed(error.to_string());
    if let Some(program) = words.first() {
        session.note_version(program);
    }
    let mut server = Server::start(&start, &[]).map_err(failed)?;
    for request in &mut plan.requests {
        request.at_port(server.port());
    }
    if let Some(request) = plan.requests.first() {
        measure::wait_until_ready(&mut server, request, plan.timeouts, READY_WITHIN).map_err(failed)?;
    }
    Ok(server)
}
