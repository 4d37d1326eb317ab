//! Makes the response of an error. No other place turns errors into responses.
//!
//! Nothing internal reaches a body: only the sender of a malformed request learns which check refused it.

use crate::error::HttpError;
use crate::limits::RETRY_AFTER_SECONDS_MAX;
use crate::response::{Body, Response};

/// Fills a response with the status, fields and body of an error. Whatever the response held before is dropped.
pub fn fill(error: HttpError, response: &mut Response) {
    response.clear();
    response.status = error.status();
    match error {
        // The sender of broken bytes is told which check failed; that is public knowledge.
        HttpError::Malformed(refusal) => {
            let text = format!("{} ({})\n", refusal.name().replace('_', " "), refusal.section());
            response.fields.add("Content-Type", b"text/plain; charset=utf-8");
            response.body = Body::Bytes(text.into_bytes());
            response.close = true;
        }
        HttpError::MissingAsset => response.fields.add("Cache-Control", b"no-store"),
        HttpError::MethodNotAllowed(methods) => response.fields.add("Allow", methods.allow()),
        // RFC 9110 section 15.5.17: say how long it is.
        HttpError::RangeNotSatisfiable { length } => {
            response.fields.add("Content-Range", format!("bytes */{length}").as_bytes());
        }
        HttpError::HeadTimeout
        | HttpError::BodyTimeout
        | HttpError::BodyTooLarge
        | HttpError::TooManyConnections => response.close = true,
        HttpError::RateLimited { retry_after }
        | HttpError::AppFailing { retry_after }
        | HttpError::AppQueueFull { retry_after }
        | HttpError::AppQueueTimeout { retry_after } => {
            response.fields.add("Retry-After", retry_after.to_string().as_bytes());
        }
        HttpError::WorkerRefused | HttpError::NoDescriptors => response.fields.add("Retry-After", b"1"),
        HttpError::Shed { retry_after, .. } => add_retry_after(response, retry_after),
        HttpError::UnknownHost
        | HttpError::NotFound
        | HttpError::Unauthorized
        | HttpError::Forbidden
        | HttpError::BadPath
        | HttpError::PreconditionFailed
        | HttpError::NotImplemented
        | HttpError::EncodingFailed
        | HttpError::Configured(_)
        | HttpError::FileUnreadable
        | HttpError::ClientGone
        | HttpError::ClientStalled
        | HttpError::WorkerDied
        | HttpError::WorkerBroken
        | HttpError::AnswerRefused(_)
        | HttpError::WorkerTimeout
        | HttpError::HandlerFailed
        | HttpError::HungUp
        | HttpError::UpstreamNone
        | HttpError::UpstreamUnreachable
        | HttpError::UpstreamDialTimeout
        | HttpError::UpstreamTls
        | HttpError::UpstreamQueueFull
        | HttpError::UpstreamQueueTimeout
        | HttpError::UpstreamTimeout
        | HttpError::UpstreamDied
        | HttpError::UpstreamBroken(_)
        | HttpError::FilesNotConfigured => {}
    }
}

/// Adds the header fields of an error (Retry-After, Allow, Cache-Control) to a custom error response.
pub fn add_fields(error: HttpError, response: &mut Response) {
    let mut plain = Response::default();
    fill(error, &mut plain);
    for (name, value) in plain.fields.iter() {
        // Who is sent elsewhere would wait before he goes there (RFC 9110 section 10.2.3).
        let is_of_redirection = matches!(response.status, 300..=303 | 305..=399);
        if let Ok(name) = std::str::from_utf8(name)
            && !(is_of_redirection && name.eq_ignore_ascii_case("retry-after"))
        {
            response.fields.set(name, value);
        }
    }
    response.close |= plain.close;
}

/// Says after how many seconds the client may try again (RFC 9110 section 10.2.3). Allocates nothing, because a flood of
/// rejected requests must cost little.
fn add_retry_after(response: &mut Response, seconds: u32) {
    let number = seconds.clamp(1, RETRY_AFTER_SECONDS_MAX) as usize - 1;
    response.fields.add("Retry-After", SECONDS.get(number).copied().unwrap_or("1").as_bytes());
}

const SECONDS: [&str; RETRY_AFTER_SECONDS_MAX as usize] = [
    "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16", "17", "18", "19",
    "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_is_written_as_such() {
        for seconds in 1..=RETRY_AFTER_SECONDS_MAX {
            let mut response = Response::default();
            add_retry_after(&mut response, seconds);
            assert_eq!(response.fields.get("retry-after"), Some(seconds.to_string().as_bytes()));
        }
        let mut response = Response::default();
        add_retry_after(&mut response, 0);
        assert_eq!(response.fields.get("retry-after"), Some(&b"1"[..]));
    }
}
