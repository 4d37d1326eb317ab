//! One order from its account to its certificate.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::SystemTime;

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, Error, Identifier, NewOrder, Order as AcmeOrder,
    OrderStatus, RetryPolicy, RevocationReason as AcmeReason, RevocationRequest,
};
use onehop_certificates::issuer::{
    CertificateOrder, IssueError, Issuer, Issuing, Pem, RenewalWindow, RevocationReason,
};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::account;
use crate::certificate::{leaf, new_key, signing_request, verify};
use crate::challenge::{Challenge, ChallengeKind, Challenges};
use crate::client::Client;
use crate::explain::{explain, failed, is_problem};
use crate::limits::{POLL_DELAY, REMOVAL_TIMEOUT, RENEWAL_LOOK_MAX, RENEWAL_LOOK_MIN};
use crate::nonce::with_nonces;
use crate::settings::{AccountStore, Settings};

/// Issues certificates from one ACME server.
pub struct AcmeIssuer {
    settings: Settings,
    folder: String,
    store: Arc<dyn AccountStore>,
    challenges: Arc<dyn Challenges>,
    /// The error is reported by each order.
    client: Result<Client, String>,
    /// Held while the account is looked up, so that orders at the same time do not each create one. Holds the
    /// credentials of an account that was created and could not be saved yet.
    account: Mutex<Option<String>>,
    /// DNS records of orders that are under way, each with the name of its certificate.
    records: std::sync::Mutex<Vec<(String, Challenge)>>,
}

/// The account and the client of one operation.
struct Session {
    account: Account,
    client: Client,
}

/// The challenges and failures of an order, for the clean-up and the error message.
#[derive(Default)]
struct Traces {
    /// Challenges to remove.
    presented: Vec<Challenge>,
    /// Why the kinds of challenges failed that were tried.
    failures: Vec<String>,
}

/// A failed attempt. If a challenge failed, `kind` is its kind, and another kind may succeed.
struct Failure {
    kind: Option<ChallengeKind>,
    error: IssueError,
}

impl From<IssueError> for Failure {
    fn from(error: IssueError) -> Self {
        Self { kind: None, error }
    }
}

impl AcmeIssuer {
    /// An issuer. Reads the system's roots if it needs them; nothing is sent before the first order.
    pub fn new(settings: Settings, store: Arc<dyn AccountStore>, challenges: Arc<dyn Challenges>) -> Self {
        let directory = &settings.directory;
        let client = match directory.starts_with("https://") {
            true => Client::new(&settings.trusted_roots),
            false => Err(format!("{directory} is no URL of an ACME directory: it starts with https://")),
        };
        let folder = folder(directory);
        Self {
            settings,
            folder,
            store,
            challenges,
            client,
            account: Mutex::default(),
            records: std::sync::Mutex::default(),
        }
    }

    /// Tries each kind of challenge that can prove the name and that the server offers. A failed challenge invalidates
    /// its order (RFC 8555 section 7.1.6), so each attempt is another order.
    async fn obtain(&self, wanted: &CertificateOrder, traces: &mut Traces) -> Result<Pem, IssueError> {
        let mut kinds = self.settings.challenges.clone();
        kinds.retain(|kind| kind.can_prove(&wanted.name));
        if kinds.is_empty() {
            let reasons: String =
                self.settings.not_tried.iter().map(|reason| format!("; {reason}")).collect();
            return Err(failed(format!(
                "none of the configured challenges can prove {}: wildcards take dns-01, and IP addresses http-01 or \
                 tls-alpn-01{reasons}",
                wanted.name
            )));
        }
        loop {
            let Failure { kind, error } = match self.attempt(wanted, &kinds, &mut traces.presented).await {
                Ok(pem) => return Ok(pem),
                Err(failure) => failure,
            };
            kinds.retain(|other| kind != Some(*other));
            if kind.is_none() || kinds.is_empty() {
                return Err(error);
            }
            traces.failures.push(error.message);
        }
    }

    async fn attempt(
        &self,
        wanted: &CertificateOrder,
        kinds: &[ChallengeKind],
        presented: &mut Vec<Challenge>,
    ) -> Result<Pem, Failure> {
        let mut session = self.session().await?;
        let mut ordered = self.order(&session, wanted).await;
        if ordered.as_ref().is_err_and(|error| is_problem(error, "accountDoesNotExist")) {
            // The server has lost the account, or another one serves the same URL.
            session = self.new_session().await?;
            ordered = self.order(&session, wanted).await;
        }
        let mut order = ordered.map_err(|error| self.explain(&session, &error, None))?;
        self.prove(&session, &mut order, (&wanted.name, kinds), presented).await?;

        let explained = |error| Failure::from(self.explain(&session, &error, None));
        let key = new_key(wanted.key_type).map_err(failed)?;
        let request = signing_request(&wanted.name, &key).map_err(failed)?;
        with_nonces!(order.finalize_csr(&request).await).map_err(explained)?;
        let policy = self.policy();
        let chain = with_nonces!(order.poll_certificate(&policy).await).map_err(explained)?;
        let verified = verify(&chain, &wanted.name, &key);
        verified.map_err(|cause| {
            failed(format!("{} issued a wrong certificate: {cause}", self.settings.directory))
        })?;
        Ok(Pem { chain, key: key.serialize_pem() })
    }

    /// Orders the certificate, as a replacement if it is one and the server takes that.
    async fn order(&self, session: &Session, wanted: &CertificateOrder) -> Result<AcmeOrder, Error> {
        let identifiers = [match wanted.name.parse::<IpAddr>() {
            Ok(address) => Identifier::Ip(address),
            Err(_) => Identifier::Dns(wanted.name.clone()),
        }];
        let new_order = || {
            let order = NewOrder::new(&identifiers);
            self.settings.profile.iter().fold(order, |order, profile| order.profile(profile))
        };
        // A certificate without the identifiers that RFC 9773 section 4.1 needs is replaced all the same.
        let replaced = wanted.replaces.as_deref().and_then(|chain| leaf(chain).ok());
        if let Some(replaced) = replaced.as_ref().and_then(|leaf| CertificateIdentifier::try_from(leaf).ok())
        {
            let replacement = new_order().replaces(replaced);
            match with_nonces!(session.account.new_order(&replacement).await) {
                // Another order has replaced it, another account ordered it, or the server does not know it. Only a
                // preference is lost (RFC 9773 section 5).
                Err(error) if !is_problem(&error, "rateLimited") => {}
                ordered => return ordered,
            }
        }
        let order = new_order();
        with_nonces!(session.account.new_order(&order).await)
    }

    /// Completes the authorizations that are still pending, each by the first of the kinds that the server offers.
    async fn prove(
        &self,
        session: &Session,
        order: &mut AcmeOrder,
        (certificate, kinds): (&str, &[ChallengeKind]),
        presented: &mut Vec<Challenge>,
    ) -> Result<(), Failure> {
        if order.state().status != OrderStatus::Pending {
            return Ok(());
        }
        let explained = |error: Error, kind| Failure { kind, error: self.explain(session, &error, kind) };
        with_nonces!(fetch_authorizations(order).await).map_err(|error| explained(error, None))?;
        let mut tried = None;
        let mut authorizations = order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization.map_err(|error| explained(error, None))?;
            if authorization.status == AuthorizationStatus::Valid {
                continue;
            }
            let name = authorization.identifier().to_string();
            let is_offered = |kind: &&ChallengeKind| {
                authorization.challenges.iter().any(|other| other.r#type == kind.as_type())
            };
            let Some(&kind) = kinds.iter().find(is_offered) else {
                return Err(failed(self.nothing_offered(&name, kinds)).into());
            };
            tried = Some(kind);
            let Some(mut handle) = authorization.challenge(kind.as_type()) else { continue };
            let challenge = Challenge::new(kind, &name, &handle.token, &handle.key_authorization());
            let challenge = challenge.map_err(|cause| Failure { kind: tried, error: failed(cause) })?;
            // Noted before it is presented, so that it is also removed if presenting it fails half-way.
            presented.push(challenge.clone());
            if let Challenge::Dns01 { name, value } = &challenge {
                // The next order for this certificate removes what a kill leaves.
                self.store.note_record(certificate, Some((name, value)));
                self.records().push((certificate.to_owned(), challenge.clone()));
            }
            let shown = self.challenges.present(&challenge).await;
            shown.map_err(|cause| {
                let message = format!("the {kind} challenge for {name} cannot be presented: {cause}");
                Failure { kind: tried, error: failed(message) }
            })?;
            with_nonces!(handle.set_ready().await).map_err(|error| explained(error, tried))?;
        }
        let policy = self.policy();
        match with_nonces!(order.poll_ready(&policy).await) {
            Ok(OrderStatus::Ready) => Ok(()),
            Ok(_) => {
                let reason = Error::Str("a reason why the order is invalid");
                Err(explained(refusal(order).await.unwrap_or(reason), tried))
            }
            Err(error) => match refusal(order).await {
                Some(refusal) => Err(explained(refusal, tried)),
                None => Err(explained(error, None)),
            },
        }
    }

    fn nothing_offered(&self, name: &str, kinds: &[ChallengeKind]) -> String {
        let kinds = kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        format!(
            "{} does not offer {kinds} for {name}: configure another kind of challenge",
            self.settings.directory
        )
    }

    /// The account that is kept, or a new one.
    async fn session(&self) -> Result<Session, IssueError> {
        let client = self.client()?;
        let mut unsaved = self.account.lock().await;
        account::save(&*self.store, &mut unsaved)?;
        let account = match account::load(&client, &*self.store, &self.settings).await? {
            Some(account) => account,
            None => account::create(&client, &*self.store, &self.settings, &mut unsaved).await?,
        };
        Ok(Session { account, client })
    }

    async fn new_session(&self) -> Result<Session, IssueError> {
        let client = self.client()?;
        let mut unsaved = self.account.lock().await;
        let account = account::create(&client, &*self.store, &self.settings, &mut unsaved).await?;
        Ok(Session { account, client })
    }

    /// Removes a challenge. A removal that fails leaves what no later order uses: each has its own token.
    async fn remove(&self, certificate: &str, challenge: &Challenge) {
        let _ = timeout(REMOVAL_TIMEOUT, self.challenges.remove(challenge)).await;
        if matches!(challenge, Challenge::Dns01 { .. }) {
            self.records().retain(|(_, other)| !is_same_record(other, challenge));
            self.store.note_record(certificate, None);
        }
    }

    fn records(&self) -> std::sync::MutexGuard<'_, Vec<(String, Challenge)>> {
        self.records.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn client(&self) -> Result<Client, IssueError> {
        match &self.client {
            Ok(client) => Ok(client.for_another_order()),
            Err(cause) => Err(failed(cause.clone())),
        }
    }

    /// The order's deadline ends polling; this only says how often.
    fn policy(&self) -> RetryPolicy {
        RetryPolicy::new().initial_delay(POLL_DELAY).backoff(1.5).timeout(self.settings.deadline)
    }

    fn explain(&self, session: &Session, error: &Error, kind: Option<ChallengeKind>) -> IssueError {
        explain(error, &self.settings.directory, session.client.retry_after(), kind)
    }

    async fn in_time<T>(&self, work: impl Future<Output = Result<T, IssueError>>) -> Result<T, IssueError> {
        let deadline = self.settings.deadline;
        timeout(deadline, work).await.unwrap_or_else(|_| {
            let directory = &self.settings.directory;
            Err(failed(format!(
                "{directory} was not done within {} s: check that it is reachable, or raise the deadline",
                deadline.as_secs_f32()
            )))
        })
    }
}

impl Issuer for AcmeIssuer {
    fn folder(&self) -> &str {
        &self.folder
    }

    fn issue<'a>(&'a self, order: &'a CertificateOrder) -> Issuing<'a, Pem> {
        Box::pin(async {
            let mut traces = Traces::default();
            // A server that was killed during an order has left this record.
            if let Some((name, value)) = self.store.noted_record(&order.name) {
                self.remove(&order.name, &Challenge::Dns01 { name, value }).await;
            }
            let mut outcome = self.in_time(self.obtain(order, &mut traces)).await;
            for challenge in &traces.presented {
                self.remove(&order.name, challenge).await;
            }
            if let Err(error) = &mut outcome {
                traces.failures.push(std::mem::take(&mut error.message));
                error.message =
                    format!("no certificate for {}: {}", order.name, traces.failures.join("; then "));
            }
            outcome
        })
    }

    /// Only this account can revoke what it has ordered. The error has the server's words and the next step.
    fn revoke<'a>(&'a self, chain: &'a str, reason: RevocationReason) -> Issuing<'a, ()> {
        let reason = match reason {
            RevocationReason::Unspecified => AcmeReason::Unspecified,
            RevocationReason::KeyCompromise => AcmeReason::KeyCompromise,
            RevocationReason::Superseded => AcmeReason::Superseded,
            RevocationReason::CessationOfOperation => AcmeReason::CessationOfOperation,
        };
        Box::pin(self.in_time(async move {
            let certificate = leaf(chain).map_err(failed)?;
            let session = self.session().await?;
            let request = RevocationRequest { certificate: &certificate, reason: Some(reason) };
            match with_nonces!(session.account.revoke(&request).await) {
                Err(error) if !is_problem(&error, "alreadyRevoked") => {
                    Err(self.explain(&session, &error, None))
                }
                _ => Ok(()),
            }
        }))
    }

    fn remove_leftovers<'a>(&'a self) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(async {
            // One after the other, so that a name server gets one request at a time.
            let records = std::mem::take(&mut *self.records());
            for (certificate, record) in &records {
                self.challenges.remove(record).await;
                self.store.note_record(certificate, None);
            }
        })
    }

    fn renewal_window<'a>(&'a self, chain: &'a str) -> Issuing<'a, Option<RenewalWindow>> {
        Box::pin(self.in_time(async {
            let leaf = leaf(chain).map_err(failed)?;
            let Ok(identifier) = CertificateIdentifier::try_from(&leaf) else { return Ok(None) };
            let session = self.session().await?;
            let (information, wait) = match session.account.renewal_info(&identifier).await {
                Ok(found) => found,
                Err(Error::Unsupported(_)) => return Ok(None),
                Err(error) => return Err(self.explain(&session, &error, None)),
            };
            let window = information.suggested_window;
            let (from, until) = (SystemTime::from(window.start), SystemTime::from(window.end));
            let look_again_in = wait.clamp(RENEWAL_LOOK_MIN, RENEWAL_LOOK_MAX);
            // RFC 9773 section 4.2: without a duration it is as if there were none.
            Ok((from < until).then_some(RenewalWindow { from, until, look_again_in }))
        }))
    }
}

fn is_same_record(one: &Challenge, other: &Challenge) -> bool {
    match (one, other) {
        (Challenge::Dns01 { value, .. }, Challenge::Dns01 { value: other, .. }) => value == other,
        _ => false,
    }
}

/// Fetches the authorizations, which the order then keeps.
async fn fetch_authorizations(order: &mut AcmeOrder) -> Result<(), Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        authorization?;
    }
    Ok(())
}

/// The problem that the server found with a challenge, from the authorization that failed.
async fn refusal(order: &mut AcmeOrder) -> Option<Error> {
    let mut authorizations = order.authorizations();
    while let Some(authorization) = authorizations.next().await {
        let mut authorization = authorization.ok()?;
        with_nonces!(authorization.refresh().await.map(drop)).ok()?;
        let problem = authorization.challenges.iter().find_map(|challenge| challenge.error.clone());
        if problem.is_some() {
            return problem.map(Error::Api);
        }
    }
    None
}

/// The folder of a directory's certificates, as certmagic names it: host and path, in characters that are safe there.
pub fn folder(directory: &str) -> String {
    let (host, path) = match directory.parse::<http::Uri>() {
        Ok(url) => (url.authority().map(ToString::to_string).unwrap_or_default(), url.path().to_owned()),
        Err(_) => (String::new(), directory.to_owned()),
    };
    let path = path.replace(['/', '\\'], "-");
    let name = [host.as_str(), path.trim_matches('-')].map(str::to_ascii_lowercase);
    let name = name.iter().filter(|part| !part.is_empty()).map(String::as_str).collect::<Vec<_>>().join("-");
    let replaced = name.replace("..", "").replace(':', "-").replace('+', "_plus_").replace('*', "wildcard_");
    replaced.chars().filter(|letter| letter.is_alphanumeric() || "_@.-".contains(*letter)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_names_its_folder_as_certmagic_does() {
        for (directory, expected) in [
            ("https://acme-v02.api.letsencrypt.org/directory", "acme-v02.api.letsencrypt.org-directory"),
            ("https://acme.zerossl.com/v2/DV90", "acme.zerossl.com-v2-dv90"),
            ("https://localhost:14000/dir/", "localhost-14000-dir"),
            ("https://example.com", "example.com"),
            ("https://example.com/../../etc?x=y", "example.com---etc"),
            ("no URL at all", "nourlatall"),
        ] {
            assert_eq!(folder(directory), expected, "{directory}");
        }
    }
}
