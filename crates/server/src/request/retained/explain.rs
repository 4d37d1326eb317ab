//! The sentence about a slow or failed request, and what can be done.

use super::request::RetainedRequest;

/// What takes less is not explained, in milliseconds.
const NOTHING_MS: f64 = 1.0;

/// Parts below this share of the time are not named in the sentence.
const SHARE_NAMED: f64 = 0.05;

/// "820 ms: 300 ms in the queue of app api, 520 ms until its first byte".
pub(super) fn sentence(request: &RetainedRequest) -> String {
    let mut out = String::new();
    if let Some(cause) = request.cause {
        let detail = request.detail.as_deref().map_or_else(String::new, |detail| format!(" ({detail})"));
        let by = match &request.limit {
            Some(limit) if limit.decision == "rejected" => format!(" by limit {}", limit.limit),
            _ => String::new(),
        };
        out.push_str(&format!("{} {}{by}{detail} after ", request.status, cause.replace('_', " ")));
    } else if request.status >= 500 {
        out.push_str(&format!("{} from {} after ", request.status, responder(request)));
    }
    out.push_str(&shown(request.total_ms));
    let mut parts: Vec<_> = phrases(request).into_iter().filter(|(ms, _)| *ms > 0.0).collect();
    let named = |(ms, _): &(f64, String)| *ms >= request.total_ms * SHARE_NAMED;
    parts.retain(named);
    if !parts.is_empty() && request.total_ms >= NOTHING_MS {
        let parts: Vec<_> = parts.into_iter().map(|(ms, text)| format!("{} {text}", shown(ms))).collect();
        out.push_str(&format!(": {}", parts.join(", ")));
    }
    if request.cold_start {
        out.push_str("; the worker had answered no request before");
    }
    if request.aborted {
        out.push_str("; the client left before the end");
    }
    out
}

/// Each part in the order of time, with what it was spent on.
fn phrases(request: &RetainedRequest) -> [(f64, String); 9] {
    let parts = &request.parts;
    let responder = responder(request);
    let worker = request
        .worker
        .as_ref()
        .map_or_else(|| "the worker".to_owned(), |worker| format!("worker {}", worker.index));
    [
        (parts.upload_ms, "for the client to send its body".to_owned()),
        (parts.queue_ms, format!("in the queue of {}", queue_owner(request))),
        (parts.password_ms, "for the check of its password".to_owned()),
        (parts.connect_ms, format!("to connect to {responder}")),
        (parts.retry_ms, "in attempts that failed".to_owned()),
        (parts.lag_ms, format!("while the event loop of {worker} was blocked")),
        (parts.first_byte_ms, format!("until the first byte of {responder}")),
        (parts.body_ms, format!("for the rest of the response of {responder}")),
        (parts.write_ms, "for the client to take the response".to_owned()),
    ]
}

fn queue_owner(request: &RetainedRequest) -> String {
    match &request.limit {
        // An application's own limit is called after it.
        Some(limit) if limit.limit.starts_with("app ") => limit.limit.clone(),
        Some(limit) => format!("limit {}", limit.limit),
        None => responder(request),
    }
}

fn responder(request: &RetainedRequest) -> String {
    match (&request.app, &request.upstream) {
        (Some(app), _) => format!("app {app}"),
        (None, Some(upstream)) => format!("upstream {upstream}"),
        (None, None) => format!("`{}`", request.handler),
    }
}

/// What a person can do about the longest part.
pub(super) fn next_step(request: &RetainedRequest) -> &'static str {
    if request.status == 500 && request.app.is_some() {
        return "`onehop logs --errors` shows what the application wrote then";
    }
    let longest = phrases(request)
        .into_iter()
        .enumerate()
        .max_by(|(_, (one, _)), (_, (other, _))| one.total_cmp(other))
        .filter(|(_, (ms, _))| *ms > 0.0)
        .map(|(number, _)| number);
    match longest {
        Some(0 | 8) => "nothing on this machine: the client or its network is slow",
        Some(1) if request.app.is_some() => {
            "more workers (`onehop workers APP N`), fewer requests at a time, or less work for each: the queue means that all were busy"
        }
        Some(1) => "more room at the upstream (`max`, `limit`), or more upstreams",
        Some(2) => {
            "only the first request of each user and password waits for this; a hash with a lower cost is checked sooner, and guessed sooner"
        }
        Some(3) => "look at the network to the upstream; keep connections open with `min` in its `transport`",
        Some(4) => "`onehop status` shows which upstreams or workers fail",
        Some(5) => {
            "a handler computes without a pause: profile it (node --cpu-prof), or move the work to a worker thread; more workers help the others"
        }
        Some(6 | 7) if request.handler == "file_server" || request.handler == "spa" => {
            "the disk is slow, or the file is beyond the memory bound: `onehop status` shows what is in memory"
        }
        Some(6 | 7) => {
            "look at what the application or upstream waits for itself (database, other services); its traces have the same trace id"
        }
        _ => "`onehop status` shows how the server is now",
    }
}

/// Three significant digits.
fn shown(ms: f64) -> String {
    match ms {
        ..1.0 => format!("{ms:.2} ms"),
        ..10.0 => format!("{ms:.1} ms"),
        // tidy: not a bound, because it is where seconds are shorter to read
        ..10_000.0 => format!("{ms:.0} ms"),
        _ => format!("{:.1} s", ms / 1_000.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::request::{LimitMet, Parts, WorkerSeen};
    use super::*;

    fn of_app() -> RetainedRequest {
        RetainedRequest {
            handler: "app",
            status: 200,
            app: Some("api".to_owned()),
            worker: Some(WorkerSeen { index: 1, ..WorkerSeen::default() }),
            ..RetainedRequest::default()
        }
    }

    #[test]
    fn the_sentence_names_each_part_that_matters_in_the_order_of_time() {
        let parts = Parts {
            queue_ms: 300.0,
            first_byte_ms: 455.25,
            lag_ms: 51.5,
            write_ms: 13.25,
            ..Parts::default()
        };
        let request = RetainedRequest { total_ms: 820.0, parts, ..of_app() };
        assert_eq!(
            sentence(&request),
            "820 ms: 300 ms in the queue of app api, 52 ms while the event loop of worker 1 was blocked, \
             455 ms until the first byte of app api"
        );
        assert!(next_step(&request).contains("trace id"));
    }

    #[test]
    fn the_sentence_about_a_failed_request_begins_with_its_cause() {
        let request = RetainedRequest {
            status: 503,
            cause: Some("limit_queue_full"),
            total_ms: 0.05,
            limit: Some(LimitMet { limit: "server".to_owned(), decision: "rejected" }),
            ..of_app()
        };
        assert_eq!(sentence(&request), "503 limit queue full by limit server after 0.05 ms");
        let request = RetainedRequest { status: 500, total_ms: 12.0, ..of_app() };
        assert_eq!(sentence(&request), "500 from app api after 12 ms");
        assert!(next_step(&request).contains("onehop logs --errors"));
    }
}
