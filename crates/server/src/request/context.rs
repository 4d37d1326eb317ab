//! A request's way through the routes of its site.
//!
//! Plain calls, in the order in which the compiled routes stand. Never waits: what needs the disk
//! stops with [`Halt::NeedsDisk`], and the same trip is made again on a thread that may block.

use std::borrow::Cow;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::Encode;
use onehop_connection::ResponseEdits;
use onehop_connection::compressor::{CompressorMemory, StreamCoding};
use onehop_http1::{Method, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::error_response;
use onehop_message::origin::Origin;
use onehop_message::path::{Ambiguous, RequestPath};
use onehop_message::request::Request;
use onehop_message::response::Response;
use onehop_message::uri;
use onehop_metrics::Handler;

use super::admission::RequestLimits;
use super::admission::rate::RateChecks;
use super::error_route::Failure;
use super::handle::proxy::{Member, max_forwards};
use super::handle::{encode, file, header, redirect, respond};
use super::route::{self, Action, Root, Route, Snapshot};

/// A request on its way.
pub struct RequestContext<'a> {
    /// The request, as the routes have made it so far.
    pub request: Request<'a>,
    /// What it sees.
    pub snapshot: &'a Snapshot,
    /// The client's own path has more than one reading.
    pub(crate) is_ambiguous: bool,
    /// Where files are looked for.
    pub root: Option<&'a Root>,
    /// What `try_files` found, decoded, relative to the root.
    pub file_match: Option<Vec<u8>>,
    /// What `encode` allows.
    pub encode: Option<&'a Encode>,
    /// What `limit` directives say, should somebody else have to answer.
    pub limits: RequestLimits,
    /// What `rate_limit` has said.
    pub(crate) rate_checks: RateChecks<'a>,
    /// Field changes that wait for the answer.
    pub headers: Vec<header::Gathered<'a>>,
    /// What the answer sets besides what the application does: leads later requests back to the same worker.
    pub own_cookie: Option<Vec<u8>>,
    /// Who answered.
    pub handler: Handler,
    /// The upstream that it was handed to, the last one where there were several.
    pub upstream: Option<Arc<Member>>,
    /// Why that one could not be reached, for logs.
    pub reason: Option<String>,
    /// What it has met, once it has failed. Apart, since few do and every request carries the room.
    pub failure: Option<Box<Failure>>,
    /// This thread may wait for the disk.
    pub may_block: bool,
}

/// Why a trip ends early.
#[derive(Debug)]
pub enum Halt {
    /// The answer is an error.
    HttpError(HttpError),
    /// The disk is needed and this thread may not wait for it.
    NeedsDisk,
    /// Somebody else answers, which takes its time.
    Call(Callee),
}

/// Who else answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Callee {
    /// The application of this number.
    App(u32),
    /// The upstreams of the `reverse_proxy` of this number.
    Proxy(u32),
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// There is an answer.
    Answered,
    /// The next step is taken.
    On,
}

impl From<HttpError> for Halt {
    fn from(fault: HttpError) -> Self {
        Self::HttpError(fault)
    }
}

impl From<Ambiguous> for Halt {
    fn from(_: Ambiguous) -> Self {
        Self::HttpError(HttpError::BadPath)
    }
}

impl<'a> RequestContext<'a> {
    /// A request at the beginning of its site's routes.
    pub fn new(head: &'a RequestHead, origin: Origin, received: Instant, snapshot: &'a Snapshot) -> Self {
        let own_path = own_path(head);
        let is_ambiguous = own_path.is_err();
        Self {
            request: Request {
                head,
                origin,
                received,
                path: own_path.unwrap_or(RequestPath::ROOT),
                query: head.query().map(Cow::Borrowed),
            },
            snapshot,
            is_ambiguous,
            root: None,
            file_match: None,
            encode: None,
            limits: RequestLimits::default(),
            rate_checks: RateChecks::default(),
            headers: Vec::new(),
            own_cookie: None,
            handler: Handler::None,
            upstream: None,
            reason: None,
            failure: None,
            may_block: false,
        }
    }

    /// Refuses the request where its own path has more than one reading: it takes no route, but its error routes may
    /// need the root.
    fn check_path(&mut self, routes: &'a [Route]) -> Result<(), Halt> {
        if !self.is_ambiguous {
            return Ok(());
        }
        self.root =
            routes.iter().filter(|route| route.matcher.is_none()).find_map(|route| match &route.action {
                Action::Root(root) => Some(root),
                _ => None,
            });
        Err(Ambiguous.into())
    }

    /// Takes the steps of `routes` until one answers, then what waits for the answer.
    pub fn make(&mut self, routes: &'a [Route], answer: &mut Response) -> Result<(), Halt> {
        self.check_path(routes)?;
        // Where no route answers, the answer stays what it is: an empty 200, as Caddy has it.
        if self.walk(routes, answer)? == Flow::On {
            self.know_method()?;
        }
        self.finish(answer);
        Ok(())
    }

    /// What waits for the answer, once its head is there: coding, changes of fields.
    pub(crate) fn finish(&self, answer: &mut Response) {
        if let Some(cookie) = &self.own_cookie {
            answer.fields.add("Set-Cookie", cookie);
        }
        if let Some(failure) = &self.failure {
            error_response::add_fields(failure.fault, answer);
        }
        encode::apply(self, answer);
        self.rate_checks.announce(answer);
        header::apply(self, answer);
        if answer.status == 304 {
            // What the client holds has a type already (RFC 9110 section 15.4.5).
            answer.fields.remove("content-type");
        }
    }

    /// What the server itself answers is answered to methods that it knows (RFC 9110 section 9.1). The page of an error is
    /// for whoever met it.
    pub(super) fn know_method(&self) -> Result<(), HttpError> {
        let is_known = self.request.head.method() != Method::Other || self.failure.is_some();
        if is_known { Ok(()) } else { Err(HttpError::NotImplemented) }
    }

    /// As in Caddy, fields that were set before the handler ran stay on an error's answer.
    pub fn amend_error(&self, answer: &mut Response) {
        self.rate_checks.announce(answer);
        header::apply_to_error(self, answer);
    }

    /// Goes back to the beginning, for the error routes of its site. The request is again as it came; root and found
    /// file stay, and so do changes of fields that do not wait for a handler's answer.
    pub(super) fn begin_again(&mut self) {
        self.request.path = own_path(self.request.head).unwrap_or(RequestPath::ROOT);
        self.request.query = self.request.head.query().map(Cow::Borrowed);
        self.encode = None;
        self.own_cookie = None;
        self.headers.retain(|gathered| !gathered.is_deferred());
    }

    /// Takes the steps of `routes` until one answers.
    pub(super) fn walk(&mut self, routes: &'a [Route], answer: &mut Response) -> Result<Flow, Halt> {
        let mut taken_groups = 0u64;
        for route in routes {
            let group_bit = route.group.map_or(0, |group| 1 << group);
            if taken_groups & group_bit != 0 {
                continue;
            }
            if let Some(matcher) = &route.matcher
                && !route::matches(matcher, self)?
            {
                continue;
            }
            taken_groups |= group_bit;
            if self.step(&route.action, answer)? == Flow::Answered {
                return Ok(Flow::Answered);
            }
        }
        Ok(Flow::On)
    }

    fn step(&mut self, action: &'a Action, answer: &mut Response) -> Result<Flow, Halt> {
        match action {
            Action::Root(root) => self.root = Some(root),
            Action::Header(step, expressions) => {
                let gathered = header::gather(step, expressions, self);
                self.headers.push(gathered);
            }
            Action::Encode(encode) => self.encode = Some(encode),
            // Only noted: what is answered from memory is never in flight.
            Action::Limit(number) => self.limits.add(*number),
            Action::Priority(priority) => self.limits.set_priority(*priority),
            Action::RateLimit(limiter) => limiter.check(self)?,
            Action::Rewrite(to) => {
                let to = route::expand(to, self, route::Into::Uri);
                let (path, query) = uri::rewrite(&to);
                if let Some(path) = path {
                    self.request.path = RequestPath::read(Cow::Owned(path))?;
                }
                if let Some(query) = query {
                    self.request.query = (!query.is_empty()).then_some(Cow::Owned(query));
                }
            }
            Action::Handle(routes) => return self.walk(routes, answer),
            Action::HandlePath { prefix, routes } => {
                if let Some(path) = self.request.path.without_prefix(prefix) {
                    self.request.path = path?;
                }
                return self.walk(routes, answer);
            }
            Action::Redirect { to, kind } => return Ok(redirect::answer(self, to, *kind, answer)),
            Action::Respond { status, body, close } => {
                self.know_method()?;
                return Ok(respond::answer(self, *status, body, *close, answer));
            }
            Action::FileServer { settings, root } => {
                // One that passes on what is not there may leave the method to the next handler.
                if !settings.pass_through {
                    self.know_method()?;
                }
                return file::file_server(self, settings, root.as_ref(), answer);
            }
            Action::App(number) => return Err(self.call(Handler::App, Callee::App(*number))),
            Action::Proxy(_) if max_forwards::ends_here(self.request.head) => {
                self.handler = Handler::Proxy;
                return max_forwards::answer(self.request.head, answer);
            }
            Action::Proxy(number) => return Err(self.call(Handler::Proxy, Callee::Proxy(*number))),
            Action::Spa { settings, store } => {
                self.know_method()?;
                return file::spa(self, settings, *store, answer);
            }
        }
        Ok(Flow::On)
    }

    /// Hands the request over to an application or an upstream.
    fn call(&mut self, handler: Handler, callee: Callee) -> Halt {
        self.handler = handler;
        if self.request.path.is_network_path() {
            // Matchers saw one path; the application could see another one, behind the name of a host.
            return Halt::HttpError(HttpError::BadPath);
        }
        Halt::Call(callee)
    }

    /// The root that applies, as text.
    pub(crate) fn root_text(&self) -> Vec<u8> {
        match self.root {
            Some(root @ Root::Stores { .. }) => {
                let number = root.store(false).or_else(|| root.store(true));
                let store = number.and_then(|number| self.snapshot.stores.get(number as usize));
                store.map_or_else(Vec::new, |store| store.root.as_os_str().as_bytes().to_vec())
            }
            // A root may name placeholders, but not itself.
            Some(Root::Disk(template)) if !template_names_root(template) => {
                route::expand(template, self, route::Into::Text)
            }
            _ => Vec::new(),
        }
    }
}

impl ResponseEdits for RequestContext<'_> {
    fn compresses(&self) -> bool {
        self.encode.is_some()
    }

    fn encode(
        &self,
        response: &mut Response,
        length: Option<u64>,
        memory: &Arc<CompressorMemory>,
    ) -> StreamCoding {
        encode::in_pieces(self, response, length, memory)
    }

    fn finish(&self, response: &mut Response) {
        RequestContext::finish(self, response);
    }
}

/// The path of the target; an error where it has more than one reading.
fn own_path(head: &RequestHead) -> Result<RequestPath<'_>, Ambiguous> {
    RequestPath::read(Cow::Borrowed(head.path()))
}

fn template_names_root(template: &onehop_config::checked::Template) -> bool {
    use onehop_config::checked::{Part, Placeholder};
    template.parts.iter().any(|part| matches!(part, Part::Value(Placeholder::Root)))
}
