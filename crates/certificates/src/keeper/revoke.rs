//! Revokes a certificate at its issuer, and has the next one ordered.

use std::sync::Arc;
use std::sync::mpsc::channel;

use super::attempt::within;
use super::entry::Entry;
use super::{Event, Keeper, lock};
use crate::issuer::RevocationReason;
use crate::limits::REVOCATION_TIME_MAX;
use crate::loaded::canonical;

impl Keeper {
    /// Revokes the certificate for a name, and orders another one at once. The revoked certificate is served until the new
    /// one is there. Waits for the issuer, and returns its folder. Call it from any thread but the keeper's own.
    ///
    /// # Errors
    /// Why nothing was revoked and what to do, for a person.
    pub fn revoke(&self, name: &str, reason: RevocationReason) -> Result<String, String> {
        let name = canonical(name);
        let (found, issuer) = {
            let state = lock(&self.shared.state);
            let served = state.entries.get(&name).and_then(Entry::served);
            served.ok_or_else(|| {
                format!(
                    "onehop has obtained no certificate for {name}: `onehop certs` lists the names; the certificate of a \
                     file is revoked at its own issuer"
                )
            })?
        };
        let issuer = issuer.ok_or_else(|| {
            let folder = &found.folder;
            format!("{folder} has issued the certificate for {name}, but is no issuer of it any more: add it to `tls` again")
        })?;
        let chain = found.loaded.chain_pem().to_owned();
        let (sender, revoked) = channel();
        let (asked, of) = (Arc::clone(&issuer), chain.clone());
        self.runtime.spawn(async move {
            let _ = sender.send(within(REVOCATION_TIME_MAX, asked.revoke(&of, reason)).await);
        });
        let revoked =
            revoked.recv().map_err(|_| "the server is stopping: start it and try again".to_owned())?;
        revoked.map_err(|error| error.message)?;
        let issuer = issuer.folder().to_owned();
        (self.shared.events)(Event::Revoked { name: name.clone(), issuer: issuer.clone() });
        let now = (self.shared.clock)();
        if let Some(entry) = lock(&self.shared.state).entries.get_mut(&name) {
            entry.revoked(&chain, now);
        }
        self.shared.wake.notify_one();
        Ok(issuer)
    }
}
