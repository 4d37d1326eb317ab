//! What a target's first answers are like, before it is measured.
//!
//! Owns the refusal: a server that answers something else is not compared. Never judges how fast an answer came.

use std::thread;
use std::time::{Duration, Instant};

use onehop_load::client::{RequestError, Response};
use onehop_load::plan::{Expect, Request};

use super::CompareError;
use super::target::Turn;

/// How long a content coding is waited for that is made after the start: the best level takes a second per mebibyte.
const ENCODING_WITHIN: Duration = Duration::from_secs(10);
/// Between two looks whether it is there.
const ENCODING_POLL: Duration = Duration::from_millis(20);

impl Turn<'_> {
    /// Sends every request once and gives the requests that the target is then measured with; `None` on an interrupt.
    pub(super) fn checked(&self, requests: &[Request]) -> Result<Option<Vec<Request>>, CompareError> {
        let mut checked = Vec::new();
        for request in requests {
            let Some(response) = self.settled(request)? else { return Ok(None) };
            let request = match self.target.check.is_conditional {
                false => request.clone(),
                true => {
                    let conditional = self.conditional(request, &response)?;
                    if self.settled_once(&conditional)?.is_none() {
                        return Ok(None);
                    }
                    conditional
                }
            };
            checked.push(request);
        }
        Ok(Some(checked))
    }

    /// The first answer that is as expected, which may take as long as compressing it does.
    fn settled(&self, request: &Request) -> Result<Option<Response>, CompareError> {
        let begun = Instant::now();
        loop {
            let Some(response) = self.settled_once(request)? else { return Ok(None) };
            let Some(why) = self.complaint(&response) else { return Ok(Some(response)) };
            let is_awaited = self.target.check.encoding.is_some() && begun.elapsed() < ENCODING_WITHIN;
            if !is_awaited {
                return Err(self.not_as_expected(request, why));
            }
            thread::sleep(ENCODING_POLL);
        }
    }

    fn settled_once(&self, request: &Request) -> Result<Option<Response>, CompareError> {
        let why = match self.request(request) {
            Ok(response) if request.expect.accepts(response.status) => return Ok(Some(response)),
            Err(RequestError::BrokenOff) => return Ok(None),
            Ok(response) => format!("was answered with status {}", response.status),
            Err(error) => format!("was not answered: {error}"),
        };
        Err(self.not_as_expected(request, why))
    }

    /// What is wrong with an answer of the right status.
    fn complaint(&self, response: &Response) -> Option<String> {
        let check = &self.target.check;
        let (found, wanted) = (response.field("content-encoding"), check.encoding.as_deref());
        if wanted.is_some() && found != wanted {
            let found = found.unwrap_or("none");
            return Some(format!(
                "came with the content coding {found} instead of {}",
                wanted.unwrap_or_default()
            ));
        }
        let bytes = response.body.len() as u64;
        let is_other = |wanted: &u64| *wanted != bytes;
        check.body_bytes.filter(is_other).map(|wanted| format!("came with {bytes} bytes instead of {wanted}"))
    }

    /// The same, with the strongest validator of this answer (RFC 9110 section 13.2.2).
    fn conditional(&self, request: &Request, response: &Response) -> Result<Request, CompareError> {
        let of = |field: &str, name: &str| Some((name.to_owned(), response.field(field)?.to_owned()));
        let condition = of("etag", "If-None-Match").or_else(|| of("last-modified", "If-Modified-Since"));
        let condition = condition
            .ok_or_else(|| self.not_as_expected(request, "came with no validator to ask with".to_owned()))?;
        let mut conditional = request.clone();
        conditional.fields.push(condition);
        conditional.expect = Expect::Exactly(vec![304]);
        Ok(conditional)
    }

    fn not_as_expected(&self, request: &Request, why: String) -> CompareError {
        CompareError::NotAsExpected { target: self.target.name.clone(), request: request.name.clone(), why }
    }
}
