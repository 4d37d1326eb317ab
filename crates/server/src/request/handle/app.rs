//! `app`: calls an application in its worker processes.
//!
//! Names the pool and the connections of this core; the call itself is `onehop_workers`. A request that was handed over
//! counts as started: it is given to another worker only where the first one reports that it did not start it, or where the
//! settings allow that for requests that change nothing. Programs that speak HTTP are called over connections of `onehop_upstream`.

use std::rc::Rc;
use std::sync::Arc;

use onehop_connection::{Ended, RequestBody, ResponseWriter};
use onehop_message::error::HttpError;
use onehop_message::response::Response;
use onehop_workers::call::Call;
use onehop_workers::limits::APP_ATTEMPTS_MAX;
use onehop_workers::{Affinity, Pool, Transport, exchange, failure_page, program};

use crate::request::context::RequestContext;
use crate::request::core::Core;

/// The worker that this request should go to.
pub(crate) fn affinity(context: &RequestContext<'_>, pool: &Pool) -> Affinity {
    onehop_workers::call::affinity(&context.request, pool)
}

/// Calls the application. An error means that nothing final was sent.
pub(crate) async fn call(
    context: &RequestContext<'_>,
    pool: &Arc<Pool>,
    core: &Rc<Core>,
    body: &mut RequestBody<'_, '_>,
    writer: &mut ResponseWriter<'_, '_>,
    response: &mut Response,
) -> Result<Ended, HttpError> {
    if let Some(failure) = &**pool.failure()
        && failure_page::is_navigation(&context.request.head)
    {
        failure_page::fill(&pool.app.name, failure, response);
        return Ok(Ended::Complete);
    }
    let id = context.timing.as_ref().map_or_else(|| core.connection.next_request_id(), |timing| timing.id);
    let call = Call::start(&context.request, id, context, pool, &core.connection, body)?;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let slot = call.take_slot(body, writer).await?;
        let id = slot.worker.id;
        if let Some(timing) = &context.timing {
            timing.handed_over(None);
            timing.worker.set(Some(id));
        }
        context.is_cold.set(slot.worker.is_cold_for(context.request.received));
        let ended = if matches!(slot.worker.transport, Transport::Http { .. }) {
            match program::exchange(&call, &core.upstreams, slot, body, writer, response).await {
                // Nothing of the request has left.
                Err(program::Failed::Unreachable) if attempts < APP_ATTEMPTS_MAX => {
                    // It has few requests because it takes none; that it has ended is known soon.
                    call.refused_by(id);
                    note_retry(context);
                    continue;
                }
                Err(program::Failed::Unreachable) => return Err(HttpError::WorkerDied),
                Err(program::Failed::HttpError(error)) => Err(error),
                Ok(ended) => Ok(ended),
            }
        } else if let Some(connection) = core.workers.find(id) {
            exchange::run(&call, slot, &connection, body, writer, response).await
        } else {
            // Its loss is known here and not yet to all. The request was handed to no worker, so this is no attempt;
            // each such worker is met once.
            pool.withdraw(id);
            attempts -= 1;
            continue;
        };
        match ended {
            Err(error) if attempts < APP_ATTEMPTS_MAX && call.may_go_elsewhere(error, writer) => {
                note_retry(context);
                response.clear();
            }
            ended => return ended,
        }
    }
}

fn note_retry(context: &RequestContext<'_>) {
    if let Some(timing) = &context.timing {
        timing.attempt_failed();
    }
}
