//! What the routes have decided about a response, done to it once its head is there: compression, header fields.

use std::sync::Arc;

use onehop_connection::ResponseEdits;
use onehop_connection::compressor::{CompressorMemory, StreamCoding};
use onehop_message::error_response;
use onehop_message::response::Response;

use super::context::RequestContext;
use super::early_hints;
use super::handle::{encode, header};

impl RequestContext<'_> {
    /// Compresses the body and changes the header fields as the routes say. A handler's response passes here once.
    pub(crate) fn finish(&self, response: &mut Response) {
        if let Some(cookie) = &self.own_cookie {
            response.fields.add("Set-Cookie", cookie);
        }
        if let Some(failure) = &self.failure {
            error_response::add_fields(failure.error, response);
        }
        encode::apply(self, response);
        self.rate_checks.announce(response);
        header::apply(self, response);
        if response.status == 304 {
            // What the client holds has a type already (RFC 9110 section 15.4.5).
            response.fields.remove("content-type");
        }
        early_hints::learn(self, response);
    }

    /// The same for an error: as in Caddy, fields that were set before the handler ran stay on its response.
    pub(crate) fn finish_error(&self, response: &mut Response) {
        self.rate_checks.announce(response);
        header::apply_to_error(self, response);
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
