//! A lane to a worker, as one core has it.

use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;

use super::pool::{LaneReport, Worker};
use crate::request::core::Core;

/// Serves a lane of a worker from now on.
pub(crate) fn attach(core: &Rc<Core>, worker: Arc<Worker>, _socket: UnixStream) {
    worker.report(LaneReport::Attached { core: core.number });
}
