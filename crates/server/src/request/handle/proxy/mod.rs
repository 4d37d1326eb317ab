//! `reverse_proxy`: passes requests on to upstreams over connections that are already open.
//!
//! [`Proxy`] is one such directive as requests see it. [`balance`] chooses one of its upstreams, [`health`] knows which
//! of them are well.

pub(crate) mod balance;
pub(crate) mod health;

use std::rc::Rc;
use std::sync::Arc;

use onehop_config::checked::proxy as checked;

use crate::request::answer::Answer;
use crate::request::conn::exchange::{Download, Upload};
use crate::request::core::Core;
use crate::request::handle::Ended;
use crate::request::rescue::Fault;
use crate::request::trip::Trip;
use crate::request::upstream::peer::Peer;

/// One `reverse_proxy`, compiled.
pub struct Proxy {
    /// As configured.
    pub settings: Arc<checked::Proxy>,
    /// Its upstreams, in the order of the file.
    pub members: Box<[Arc<Member>]>,
}

/// One upstream of one `reverse_proxy`.
pub struct Member {
    /// Where it is; equal ones of several directives share theirs.
    pub peer: Arc<Peer>,
    /// Its place in the directive, from 0.
    pub number: usize,
    pub(crate) health: health::Health,
}

impl Member {
    /// One that counts as well.
    pub fn new(number: usize, peer: Arc<Peer>) -> Arc<Self> {
        Arc::new(Self { peer, number, health: health::Health::default() })
    }
}

/// Passes a request on. An error means that nothing final was sent.
pub(crate) async fn call(
    trip: &mut Trip<'_>,
    proxy: &Arc<Proxy>,
    core: &Rc<Core>,
    upload: &mut Upload<'_, '_>,
    download: &mut Download<'_, '_>,
    answer: &mut Answer,
) -> Result<Ended, Fault> {
    let _ = (trip, proxy, core, upload, download, answer);
    Err(Fault::UpstreamNone)
}
