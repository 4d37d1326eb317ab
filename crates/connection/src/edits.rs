//! What the routes have decided about a response that a handler makes.

use std::sync::Arc;

use onehop_message::response::Response;

use crate::compressor::{CompressorMemory, StreamCoding};

/// What the routes of a request do to its response. Handlers that call an application or an upstream apply it when the head
/// of the response is there.
pub trait ResponseEdits {
    /// Whether the routes compress bodies.
    fn compresses(&self) -> bool;
    /// Chooses the coding of a body that comes piece by piece, and changes the response's fields accordingly. `length` is that
    /// of the body, where it is known. Without room in `memory` the body is sent as it is.
    fn encode(
        &self,
        response: &mut Response,
        length: Option<u64>,
        memory: &Arc<CompressorMemory>,
    ) -> StreamCoding;
    /// Changes the head, after [`ResponseEdits::encode`] where the body comes piece by piece. Compresses a body that is
    /// complete in memory.
    fn finish(&self, response: &mut Response);
}
