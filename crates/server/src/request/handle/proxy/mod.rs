//! `reverse_proxy`: passes requests on to upstreams over connections that are already open.
//!
//! [`Proxy`] is one such directive as requests see it, [`call`] one request's way through it on a page. [`onehop_upstream::balance`]
//! chooses one of its upstreams, [`onehop_upstream::health`] knows which of them are well, [`of_request`] those whose address comes with
//! the request. [`buffer`] reads what is sent in one piece, [`forward`] makes one attempt at one upstream, [`request_head`] writes
//! the request's head, [`delegate`] says what becomes of the answer, [`retry`] whether another attempt may be made. What
//! happens on the connection is `request/upstream/exchange/`.

mod buffer;
mod delegate;
mod forward;
pub(crate) mod max_forwards;
mod members;
pub(crate) mod of_request;
mod request_head;
mod retry;
#[cfg(test)]
pub(crate) mod tests;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::proxy as checked;
use onehop_message::error::HttpError;
use onehop_message::response::Response;
use onehop_message::trusted_proxies::Trust;
use regex_lite::Regex;

use crate::request::context::RequestContext;
use crate::request::handle::header;
use buffer::Opening;
use of_request::OfRequest;
use onehop_connection::{Ended, RequestBody, ResponseWriter};
use onehop_upstream::balance::{Chosen, Policy};
use onehop_upstream::exchange::ClientSide;
use onehop_upstream::member::Member;
use onehop_upstream::pool::Pools;
use retry::{Attempts, Failed};

/// One `reverse_proxy`, compiled.
pub struct Proxy {
    /// As configured.
    pub settings: Arc<checked::Proxy>,
    /// Its upstreams, in the order of the file. One with placeholders stands for those that requests make of it: its own
    /// peer is asked nothing.
    pub members: Box<[Arc<Member>]>,
    policy: Policy,
    /// By number of the member: where its address is only known with the request.
    of_request: Box<[Option<Arc<OfRequest>>]>,
    /// The compiled expressions of `header_up` and of `header_down`, one for each change.
    expressions: [Vec<Option<Regex>>; 2],
}

/// What all attempts of one request have in common.
struct Call<'a> {
    proxy: &'a Arc<Proxy>,
    pools: &'a Rc<Pools>,
    /// Whether the configuration still has this directive.
    is_loaded: &'a dyn Fn(&Arc<Proxy>) -> bool,
    /// How far its peer is believed.
    trust: Trust<'a>,
    opening: Opening,
    /// Why there was no connection, for logs.
    reason: RefCell<Option<String>>,
}

impl Proxy {
    /// A directive whose upstreams are all known before the first request.
    pub fn new(settings: Arc<checked::Proxy>, members: Box<[Arc<Member>]>) -> Arc<Self> {
        Self::with_placeholders(settings, members, Box::default())
    }

    /// The same where some are only known with the request: of those `of_request` has a table, by number.
    pub(crate) fn with_placeholders(
        settings: Arc<checked::Proxy>,
        members: Box<[Arc<Member>]>,
        of_request: Box<[Option<Arc<OfRequest>>]>,
    ) -> Arc<Self> {
        let policy = Policy::new(&settings.balance.policy, &members);
        let expressions = [&settings.request_fields, &settings.answer_fields].map(|ops| header::compile(ops));
        Arc::new(Self { settings, members, policy, of_request, expressions })
    }

    /// The upstream that a request goes to; `None` where none is available. Those in `tried` have failed this request:
    /// they are chosen again only where no other is available.
    pub(crate) fn choose(&self, context: &RequestContext<'_>, tried: &[usize]) -> Option<Chosen> {
        let filled;
        let members = if self.of_request.iter().all(Option::is_none) {
            &*self.members
        } else {
            filled = self.filled_in(context);
            &*filled
        };
        let checked::Proxy { passive_health, trusted_proxies, .. } = &*self.settings;
        self.policy.choose(members, passive_health, tried, &context.request, trusted_proxies)
    }

    /// Every upstream with its placeholders filled in, without those that are no address then. Where a health check of
    /// what stands for them fails, none of them is.
    fn filled_in(&self, context: &RequestContext<'_>) -> Vec<Arc<Member>> {
        let tables = self.of_request.iter().map(Option::as_ref).chain(std::iter::repeat(None));
        let members = self.members.iter().zip(tables);
        let filled = members.filter_map(|(member, table)| match table {
            Some(_) if member.health.active.as_ref().is_some_and(|active| active.is_down()) => None,
            Some(table) => table.of(context),
            None => Some(Arc::clone(member)),
        });
        filled.collect()
    }
}

/// Passes a request on. An error means that nothing final was sent. `is_loaded` says whether the configuration still has the
/// directive.
pub(crate) async fn call(
    context: &mut RequestContext<'_>,
    proxy: &Arc<Proxy>,
    pools: &Rc<Pools>,
    is_loaded: &dyn Fn(&Arc<Proxy>) -> bool,
    request_body: &mut RequestBody<'_, '_>,
    writer: &mut ResponseWriter<'_, '_>,
    response: &mut Response,
) -> Result<Ended, HttpError> {
    let trust = Trust::of(&proxy.settings.trusted_proxies, &context.request.origin);
    let mut begun = Instant::now();
    if let Some(timing) = &context.timing {
        timing.admitted(begun);
    }
    let waits_for_body = !request_body.has_arrived();
    let opening = Opening::take(request_body, writer, proxy.settings.request_buffer_bytes).await?;
    if let Some(timing) = context.timing.as_ref().filter(|_| waits_for_body) {
        timing.body_arrived();
    }
    let call = Call { proxy, pools, is_loaded, trust, opening, reason: RefCell::default() };
    if waits_for_body {
        begun = Instant::now();
    }
    let mut attempts = Attempts::new(&proxy.settings.balance, begun);
    loop {
        let failed = match proxy.choose(context, attempts.tried()) {
            Some(chosen) => {
                let member = Arc::clone(&chosen.member);
                // Leads later requests to the same upstream.
                context.own_cookie = chosen.cookie;
                context.upstream = Some(chosen.member);
                let client = ClientSide {
                    request_body: &mut *request_body,
                    writer: &mut *writer,
                    response: &mut *response,
                };
                match forward::send(&call, context, &member, begun, client).await {
                    Ok(ended) => return Ok(ended),
                    Err(failed) => attempts.note(member.number, failed),
                }
            }
            // What was met before says more than that there is nobody left.
            None => attempts.last().unwrap_or(Failed::Unsent(HttpError::UpstreamNone)),
        };
        response.clear();
        if !attempts.may_go_on(failed, &call, context, writer) {
            context.reason = call.reason.take();
            return Err(failed.fault());
        }
        if let Some(member) = &context.upstream {
            member.count_retry();
        }
        attempts.pause(request_body).await?;
        if let Some(timing) = &context.timing {
            timing.attempt_failed();
        }
        begun = Instant::now();
    }
}
