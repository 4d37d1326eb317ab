//! One request over frames: hands it to a worker, sends its body, and takes the response.

use std::rc::Rc;

use onehop_connection::{Ended, RequestBody, ResponseWriter, Sent};
use onehop_message::error::HttpError;
use onehop_message::response::Response;
use onehop_wire::limits::FREE_BODY_BYTES;
use onehop_wire::{self as wire, ResetCode};
use tokio::sync::Notify;

use crate::call::{Call, HeldSlot};
use crate::connection::WorkerConnection;
use crate::limits::APP_RETRY_AFTER_SECONDS;
use crate::request_body::{self, Remaining};
use crate::response::{self, Received};
use crate::stream::Stream;
use crate::{head, tunnel};

/// Hands a request to a worker and takes its response. An error means that nothing final was sent.
pub async fn run(
    call: &Call<'_>,
    slot: HeldSlot<'_>,
    connection: &Rc<WorkerConnection>,
    body: &mut RequestBody<'_, '_>,
    writer: &mut ResponseWriter<'_, '_>,
    response: &mut Response,
) -> Result<Ended, HttpError> {
    let worker = slot.worker.id;
    let Some(stream) = Stream::open(connection) else {
        return Err(HttpError::AppQueueFull { retry_after: APP_RETRY_AFTER_SECONDS });
    };
    let sent = send_head(call, &stream, body)?;
    let remaining = Remaining {
        piece: call.opening.get(sent..).unwrap_or_default(),
        is_last: call.is_complete,
        is_sent: call.is_complete && sent == call.opening.len() && !call.has_trailers,
    };
    let continued = Notify::new();
    let received = {
        let sending = request_body::send(body, &stream, remaining, &continued);
        let receiving = response::receive(call, &stream, writer, response, &continued, slot);
        tokio::select! {
            biased;
            received = receiving => received,
            error = sending => Err(error),
        }
    };
    match received {
        Ok(Received::Ended(ended)) => Ok(ended),
        Ok(Received::Upgraded) => {
            tunnel::run(&stream, body, writer, call.core.timeouts().body_progress).await;
            Ok(Ended::Tunnelled)
        }
        Err(error) => {
            stream.reason.set(match error {
                HttpError::WorkerTimeout => ResetCode::Timeout,
                HttpError::WorkerBroken => ResetCode::Broken,
                _ => ResetCode::ClientGone,
            });
            if error == HttpError::WorkerRefused {
                // It has few requests because it refuses them: no other should go there.
                call.refused_by(worker);
                call.pool.withdraw(worker);
            }
            // After the head an error can only break the response off.
            if writer.state() == Sent::Nothing { Err(error) } else { Ok(Ended::Broken(error)) }
        }
    }
}

/// Sends the request's head, and of the body that has arrived as many bytes as credit allows; returns their number.
fn send_head(call: &Call<'_>, stream: &Stream, body: &RequestBody<'_, '_>) -> Result<usize, HttpError> {
    let parts = head::parts(call.request, body.length(), body.expects_continue(), call.id);
    let length = call.opening.len();
    let is_free = call.is_complete && length <= FREE_BODY_BYTES && !call.has_trailers;
    let room = if is_free { length } else { stream.take_room(length) };
    let now = call.opening.get(..room).unwrap_or_default();
    let end = call.is_complete && room == length && !call.has_trailers;
    let written = stream.write(end, |out, slot, generation| {
        let write = |writer: &mut wire::HeadWriter<'_>| head::write_request(call.request, call.trust, writer);
        wire::encode::request(out, slot, generation, end, &parts, write, now).or_else(|broken| {
            // Only routes that make a head very long get here. The slot's generation is spent, so the worker
            // has to see it: a request that is over at once.
            let nothing = |_: &mut wire::HeadWriter<'_>| {};
            wire::encode::request(out, slot, generation, true, &parts, nothing, &[])?;
            wire::encode::reset(out, slot, generation, ResetCode::ClientGone);
            Err(broken)
        })
    });
    written.map_err(|_| HttpError::Malformed(onehop_http1::Refusal::HeadTooLarge)).map(|()| room)
}
