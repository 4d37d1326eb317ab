//! TLS of all sites: policies, certificates from files, and those that are obtained and renewed.
//!
//! Owns what of TLS outlives a reload: session tickets, the store of certificates, and the keeper that renews them. The data
//! plane sees policies in its snapshot, and certificates by name in a table that is replaced as a whole.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use onehop_acme::limits::DNS_RECORD_SECONDS;
use onehop_acme::{
    AccountStore, AcmeIssuer, AskUrl, ChallengeKind, Challenges, ExecHook, ExternalAccount, MemoryChallenges,
    Propagation, Rfc2136, Settings, Solvers, ZEROSSL, ZEROSSL_KEYS,
};
use onehop_certificates::Clock;
use onehop_certificates::error::StoreError;
use onehop_certificates::file_store::FileStore;
use onehop_certificates::issuer::{Issuer, RevocationReason};
use onehop_certificates::keeper::{Event as CertificateEvent, Keeper, Permission, Wanted};
use onehop_certificates::loaded::Loaded;
use onehop_certificates::local::{AuthorityFiles, AuthoritySettings, LocalAuthority};
use onehop_certificates::store::{Storage, safe};
use onehop_config::checked::tls::{
    self as checked, CertificateIssuer, DnsProvider, DnsRecords, SiteTls as Settled,
};
use onehop_config::checked::{CERTIFICATES_FOLDER, Checked, ListenAddress, Listener, Site};
use onehop_supervisor::data;
use onehop_tls::{Chain, ChainTable, Tickets};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

use super::certificate_report::{self, FileCertificate, RevokedCertificate};
use super::events::{Event, EventSink};
use crate::limits::{ACME_ORDER_DEADLINE, DNS_HOOK_DEADLINE, DNS_PROPAGATION_DELAY, DNS_PROPAGATION_TIMEOUT};
use crate::request::route::{FileChain, SiteTls};

/// Let's Encrypt's directory.
const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";

/// TLS of all sites.
pub(super) struct Certificates {
    chains: Arc<ArcSwap<ChainTable>>,
    challenges: Arc<MemoryChallenges>,
    state: Mutex<State>,
    events: EventSink,
}

#[derive(Default)]
struct State {
    tickets: Tickets,
    /// Once a site wants a certificate that is obtained.
    kept: Option<Kept>,
    /// Those that sites load themselves.
    files: Vec<FileCertificate>,
}

/// The store that is in use, and what looks after it.
#[derive(Clone)]
struct Kept {
    folder: PathBuf,
    storage: Arc<dyn Storage>,
    keeper: Arc<Keeper>,
    ports: Ports,
    /// Those of before, so that an account is looked up once.
    issuers: Vec<KnownIssuer>,
}

#[derive(Clone)]
struct KnownIssuer {
    settings: CertificateIssuer,
    ports: Ports,
    issuer: Arc<dyn Issuer>,
}

/// What a configuration asks for. Dropped, nothing has happened.
pub(super) struct Prepared {
    tickets: Tickets,
    kept: Option<Kept>,
    wanted: Vec<Wanted>,
    /// By number of the site.
    pub(super) sites: Vec<Option<Arc<SiteTls>>>,
    files: Vec<FileCertificate>,
    warnings: Vec<String>,
}

impl Certificates {
    /// Without any certificate.
    pub(super) fn new(events: EventSink) -> Self {
        Self { chains: Arc::default(), challenges: Arc::default(), state: Mutex::default(), events }
    }

    /// The table that handshakes look into.
    pub(super) fn chains(&self) -> Arc<ArcSwap<ChainTable>> {
        Arc::clone(&self.chains)
    }

    /// Challenges that issuers may ask for now.
    pub(super) fn challenges(&self) -> Arc<MemoryChallenges> {
        Arc::clone(&self.challenges)
    }

    /// Reads every file that the sites name, and opens the store. The error is for a person.
    pub(super) fn prepare(&self, settings: &Checked) -> Result<Prepared, String> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut tickets, mut kept) = (state.tickets.clone(), state.kept.clone());
        drop(state);
        let (mut sites, files, warnings) = sites(settings, &mut tickets)?;
        let mut wanted: Vec<Wanted> = Vec::new();
        let is_kept = |tls: &Settled| !tls.managed.is_empty() || tls.on_demand.is_some();
        if settings.sites.iter().flat_map(|site| &site.tls).any(|tls| is_kept(tls)) {
            let global = &settings.global;
            let folder = certificate_folder(global.tls.storage.as_deref(), global.data_directory.as_deref())?;
            let mut opened = match kept.take().filter(|kept| kept.folder == folder) {
                Some(known) => known,
                None => self.open(folder, Ports::of(settings))?,
            };
            opened.ports = Ports::of(settings);
            let ask = global.tls.ask.clone();
            let permission = ask.map(|url| Arc::new(AskUrl::new(url)) as Arc<dyn Permission>);
            for (site, made) in settings.sites.iter().zip(&mut sites) {
                let (Some(tls), Some(made)) = (site.tls.as_deref(), made) else { continue };
                for managed in &tls.managed {
                    self.want(&mut opened, managed, made, &mut wanted)?;
                }
                if let Some(on_demand) = &tls.on_demand {
                    let issuers = self.issuers(&mut opened, &on_demand.issuers)?;
                    made.on_demand = Some(opened.keeper.on_demand(Wanted {
                        name: String::new(),
                        issuers,
                        key_type: on_demand.key_type,
                        renewal_ratio: on_demand.renewal_ratio,
                        permission: permission.clone(),
                    }));
                }
            }
            kept = Some(opened);
        }
        let sites = sites.into_iter().map(|made| made.map(Arc::new)).collect();
        Ok(Prepared { tickets, kept, wanted, sites, files, warnings })
    }

    /// Adds the certificates of one site.
    fn want(
        &self,
        kept: &mut Kept,
        managed: &checked::Managed,
        made: &SiteTls,
        wanted: &mut Vec<Wanted>,
    ) -> Result<(), String> {
        let issuers = self.issuers(kept, &managed.issuers)?;
        for name in &managed.names {
            let is_loaded =
                managed.unless_loaded && made.files.iter().any(|file| file.loaded.matches_name(name));
            // Two ports of one name have one certificate.
            if is_loaded || wanted.iter().any(|known| known.name == *name) {
                continue;
            }
            wanted.push(Wanted {
                name: name.clone(),
                issuers: issuers.clone(),
                key_type: managed.key_type,
                renewal_ratio: managed.renewal_ratio,
                permission: None,
            });
        }
        Ok(())
    }

    /// Obtains what was asked for: from the local authority at once, from others in the background.
    pub(super) fn carry_out(&self, prepared: Prepared) {
        let Prepared { tickets, kept, wanted, sites: _, files, warnings } = prepared;
        warnings.into_iter().for_each(|message| (self.events)(Event::Warning { message }));
        if let Some(kept) = &kept {
            kept.keeper.set(wanted);
        }
        let before = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.tickets, state.files) = (tickets, files);
            std::mem::replace(&mut state.kept, kept)
        };
        // A keeper of another folder ends here, without the lock.
        drop(before);
    }

    /// What is known of each certificate now.
    pub(super) fn report(&self, now: SystemTime) -> certificate_report::Certificates {
        let (kept, files) = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            (state.kept.clone(), state.files.clone())
        };
        let kept = kept.map(|kept| kept.keeper.status()).unwrap_or_default();
        certificate_report::Certificates::of(kept, &files, now)
    }

    /// Revokes a certificate that was obtained, and orders another one.
    pub(super) fn revoke(&self, name: &str, reason: RevocationReason) -> Result<RevokedCertificate, String> {
        let keeper = {
            let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            state.kept.as_ref().map(|kept| Arc::clone(&kept.keeper))
        };
        let keeper =
            keeper.ok_or("this server obtains no certificates: `onehop certs` lists those that it has")?;
        let issuer = keeper.revoke(name, reason)?;
        Ok(RevokedCertificate { name: name.to_owned(), issuer })
    }

    fn open(&self, folder: PathBuf, ports: Ports) -> Result<Kept, String> {
        let storage: Arc<dyn Storage> =
            Arc::new(FileStore::open(&folder).map_err(|error| error.to_string())?);
        let chains = Arc::clone(&self.chains);
        let publish = move |loaded: Vec<Arc<Loaded>>| chains.store(Arc::new(table(&loaded)));
        let events = Arc::clone(&self.events);
        let report = move |event: CertificateEvent| events(Event::Certificate(event));
        let keeper = Keeper::new(Arc::clone(&storage), clock(), Arc::new(publish), Arc::new(report))
            .map_err(|error| format!("no thread that renews certificates: {error}"))?;
        Ok(Kept { folder, storage, keeper: Arc::new(keeper), ports, issuers: Vec::new() })
    }

    fn issuers(&self, kept: &mut Kept, all: &[CertificateIssuer]) -> Result<Vec<Arc<dyn Issuer>>, String> {
        all.iter().map(|issuer| self.issuer(kept, issuer)).collect()
    }

    /// The issuer with these settings: the same one as before where nothing has changed.
    fn issuer(&self, kept: &mut Kept, settings: &CertificateIssuer) -> Result<Arc<dyn Issuer>, String> {
        let is_known = |known: &KnownIssuer| known.settings == *settings && known.ports == kept.ports;
        if let Some(known) = kept.issuers.iter().find(|known| is_known(known)) {
            return Ok(Arc::clone(&known.issuer));
        }
        let issuer: Arc<dyn Issuer> = match settings {
            CertificateIssuer::Local(local) => {
                let storage = Arc::clone(&kept.storage);
                Arc::new(LocalAuthority::with_settings(authority(local), storage, clock()))
            }
            CertificateIssuer::Acme(acme) => Arc::new(self.acme(kept, acme)?),
        };
        let (settings, ports) = (settings.clone(), kept.ports);
        kept.issuers.push(KnownIssuer { settings, ports, issuer: Arc::clone(&issuer) });
        Ok(issuer)
    }

    fn acme(&self, kept: &Kept, acme: &checked::AcmeIssuer) -> Result<AcmeIssuer, String> {
        let directory = acme.directory.clone().unwrap_or_else(|| LETS_ENCRYPT.to_owned());
        let trusted_roots = match &acme.trusted_root {
            Some(path) => roots(path)?,
            None => Vec::new(),
        };
        let (challenges, not_tried) = kept.ports.challenges(acme);
        let records = &acme.records;
        let delay = if records.resolvers.is_empty() { DNS_PROPAGATION_DELAY } else { Duration::ZERO };
        let solvers = Solvers {
            memory: Arc::clone(&self.challenges),
            dns: acme.dns.as_ref().map(|provider| dns_solver(provider, records)),
            propagation: Propagation {
                delay: records.delay.unwrap_or(delay),
                resolvers: records.resolvers.clone(),
                timeout: records.timeout.unwrap_or(DNS_PROPAGATION_TIMEOUT),
            },
            dns_name: records.name.clone(),
        };
        let account = Account {
            storage: Arc::clone(&kept.storage),
            folder: format!(
                "acme/{}/users/{}",
                onehop_acme::folder(&directory),
                safe(acme.email.as_deref().unwrap_or("default")).map_err(|error| error.to_string())?,
            ),
            directory: directory.clone(),
            email: acme.email.clone(),
        };
        let external_account = acme.external_account.clone();
        let settings = Settings {
            external_account_from: (directory == ZEROSSL).then(|| ZEROSSL_KEYS.to_owned()),
            directory,
            trusted_roots,
            email: acme.email.clone(),
            external_account: external_account.map(|(key_id, hmac_key)| ExternalAccount { key_id, hmac_key }),
            profile: acme.profile.clone(),
            accept_terms: true,
            challenges,
            not_tried,
            deadline: ACME_ORDER_DEADLINE,
        };
        Ok(AcmeIssuer::new(settings, Arc::new(account), Arc::new(solvers)))
    }
}

fn dns_solver(provider: &DnsProvider, records: &DnsRecords) -> Arc<dyn Challenges> {
    match provider {
        DnsProvider::Exec(words) => {
            let mut words = words.iter();
            let program = words.next().map(PathBuf::from).unwrap_or_default();
            Arc::new(ExecHook { program, arguments: words.cloned().collect(), deadline: DNS_HOOK_DEADLINE })
        }
        DnsProvider::Rfc2136 { server, key_name, algorithm, key } => Arc::new(Rfc2136 {
            server: server.clone(),
            zone: None,
            key_name: key_name.clone(),
            algorithm: algorithm.clone(),
            secret: key.clone(),
            ttl_seconds: records.ttl_seconds.unwrap_or(DNS_RECORD_SECONDS),
        }),
    }
}

/// Where issuers can reach this server: the ports that they know, or what stands for them here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ports {
    http: Option<u16>,
    https: Option<u16>,
    /// What should be there.
    expected: (u16, u16),
}

impl Ports {
    fn of(settings: &Checked) -> Self {
        let expected = (settings.global.http_port, settings.global.https_port);
        let has = |wanted: u16, encrypted: bool| {
            let is_it = |listener: &Listener| {
                let port = match listener.address {
                    ListenAddress::Tcp { port, .. } => port,
                    _ => return false,
                };
                port == wanted && listener.tls == encrypted
            };
            settings.listeners.iter().any(is_it).then_some(wanted)
        };
        Self { http: has(expected.0, false), https: has(expected.1, true), expected }
    }

    /// The challenges that can be tried, and why others cannot.
    fn challenges(self, acme: &checked::AcmeIssuer) -> (Vec<ChallengeKind>, Vec<String>) {
        // As in Caddy: where DNS can be changed, nothing else is needed.
        if acme.dns.is_some() {
            return (vec![ChallengeKind::Dns01], Vec::new());
        }
        let (mut kinds, mut not_tried) = (Vec::new(), Vec::new());
        for (kind, is_disabled, port, expected) in [
            (ChallengeKind::Http01, acme.disable_http, self.http, self.expected.0),
            (ChallengeKind::TlsAlpn01, acme.disable_tls_alpn, self.https, self.expected.1),
        ] {
            match port {
                _ if is_disabled => not_tried.push(format!("{kind} is disabled")),
                Some(_) => kinds.push(kind),
                None => not_tried.push(format!("for {kind} a site has to listen on port {expected}")),
            }
        }
        (kinds, not_tried)
    }
}

/// The name of an account's credentials in the store. Caddy's have another form, and other names.
const ACCOUNT: &str = "credentials.json";

/// The account at one ACME server.
struct Account {
    storage: Arc<dyn Storage>,
    folder: String,
    directory: String,
    email: Option<String>,
}

impl Account {
    fn read(&self, name: &str) -> Result<Option<String>, String> {
        let content = self.storage.read(&format!("{}/{name}", self.folder));
        let content = content.map_err(|error| error.to_string())?;
        content.map(|bytes| String::from_utf8(bytes).map_err(|error| error.to_string())).transpose()
    }

    /// Where the DNS record of an order for this certificate is noted.
    fn record_key(&self, certificate: &str) -> Result<String, StoreError> {
        Ok(format!("{}/records/{}.json", self.folder, safe(certificate)?))
    }

    /// What `onehop certs import` has copied: Caddy names the files by what stands before the address's `@`.
    fn imported(&self) -> Result<Option<String>, String> {
        let user = self.email.as_deref().map_or("default", |email| email.split('@').next().unwrap_or(email));
        let Ok(user) = safe(user) else { return Ok(None) };
        let (account, key) = (self.read(&format!("{user}.json"))?, self.read(&format!("{user}.key"))?);
        Ok(account
            .zip(key)
            .and_then(|(account, key)| onehop_acme::credentials_from_caddy(&account, &key, &self.directory)))
    }
}

impl AccountStore for Account {
    fn load(&self) -> Result<Option<String>, String> {
        match self.read(ACCOUNT)? {
            Some(credentials) => Ok(Some(credentials)),
            None => self.imported(),
        }
    }

    fn save(&self, credentials: &str) -> Result<(), String> {
        let key = format!("{}/{ACCOUNT}", self.folder);
        self.storage.write(&key, credentials.as_bytes()).map_err(|error| error.to_string())
    }

    fn note_record(&self, certificate: &str, record: Option<(&str, &str)>) {
        let Ok(key) = self.record_key(certificate) else { return };
        // On a full disk the order goes on: its certificate is worth more than this note.
        let _ = match record {
            Some(record) => self.storage.write(&key, serde_json::json!(record).to_string().as_bytes()),
            None => self.storage.remove(&key),
        };
    }

    fn noted_record(&self, certificate: &str) -> Option<(String, String)> {
        let content = self.storage.read(&self.record_key(certificate).ok()?).ok()??;
        serde_json::from_slice(&content).ok()
    }
}

/// Whether every file can be used that the sites name. The error is for a person.
pub(super) fn check(settings: &Checked) -> Result<(), String> {
    sites(settings, &mut Tickets::default()).map(|_| ())
}

/// The folder of certificates, ACME accounts and the local authority: `storage file_system`, else `tls` in the data
/// directory, which is made where it is missing. The error is for a person.
pub fn certificate_folder(storage: Option<&Path>, data_directory: Option<&Path>) -> Result<PathBuf, String> {
    match storage {
        Some(folder) => Ok(folder.to_owned()),
        None => data::folder_of_server(data_directory, CERTIFICATES_FOLDER),
    }
}

/// TLS by number of the site, the certificates of files, and warnings.
type Sites = (Vec<Option<SiteTls>>, Vec<FileCertificate>, Vec<String>);

fn sites(settings: &Checked, tickets: &mut Tickets) -> Result<Sites, String> {
    let (mut from_files, mut warnings) = (Vec::new(), Vec::new());
    let sites = settings.sites.iter().map(|site| {
        let tls = site.tls.as_ref().map(|tls| site_tls(site, tls, tickets, (&mut from_files, &mut warnings)));
        tls.transpose()
    });
    let sites = sites.collect::<Result<Vec<_>, String>>()?;
    let used: Vec<u32> = sites.iter().flatten().map(|tls| tls.policy.number).collect();
    tickets.retain(&used);
    Ok((sites, from_files, warnings))
}

/// The policy and the certificates of one site.
fn site_tls(
    site: &Site,
    tls: &Settled,
    tickets: &mut Tickets,
    (from_files, warnings): (&mut Vec<FileCertificate>, &mut Vec<String>),
) -> Result<SiteTls, String> {
    let of_site = |reason: String| format!("tls of {}: {reason}", site.label);
    let policy = tickets.policy(&tls.policy).map_err(of_site)?;
    let mut files = Vec::new();
    for pair in &tls.files {
        let loaded =
            Loaded::from_files(&pair.certificate, &pair.key).map_err(|error| of_site(error.to_string()))?;
        warnings.extend(loaded.warning(SystemTime::now()).map(of_site));
        let loaded = Arc::new(loaded);
        files.push(FileChain {
            chain: Chain::new(Arc::clone(loaded.certified_key())),
            loaded: Arc::clone(&loaded),
        });
        // Sites that name the same file have one certificate.
        if !from_files.iter().any(|known| known.path == pair.certificate) {
            from_files.push(FileCertificate { path: pair.certificate.clone(), loaded });
        }
    }
    Ok(SiteTls { policy, files, prefers_managed: tls.prefers_managed, on_demand: None })
}

fn table(loaded: &[Arc<Loaded>]) -> ChainTable {
    ChainTable::new(loaded.iter().flat_map(|one| {
        let chain = Chain::new(Arc::clone(one.certified_key()));
        one.names.iter().map(move |name| (name.clone(), chain.clone()))
    }))
}

fn roots(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let failed =
        |error: String| format!("the root of an ACME server cannot be read from {}: {error}", path.display());
    let content = onehop_tls::read_pem(path, "a root certificate")?;
    let roots = CertificateDer::pem_slice_iter(&content).collect::<Result<Vec<_>, _>>();
    let roots = roots.map_err(|error| failed(error.to_string()))?;
    if roots.is_empty() { Err(failed("there is no certificate in PEM".to_owned())) } else { Ok(roots) }
}

fn authority(local: &checked::LocalIssuer) -> AuthoritySettings {
    let usual = AuthoritySettings::default();
    let files = |files: &checked::AuthorityFiles| AuthorityFiles {
        certificate: files.certificate.clone(),
        key: files.key.clone(),
    };
    let checked::Authority { id, name, root_name, intermediate_name, intermediate_lifetime, .. } =
        local.authority.clone();
    AuthoritySettings {
        id,
        name: name.unwrap_or(usual.name),
        root_name,
        intermediate_name,
        intermediate_life: intermediate_lifetime.unwrap_or(usual.intermediate_life),
        leaf_life: local.lifetime.unwrap_or(usual.leaf_life),
        signs_with_root: local.signs_with_root,
        root: local.authority.root.as_ref().map(files),
        intermediate: local.authority.intermediate.as_ref().map(files),
    }
}

fn clock() -> Clock {
    Arc::new(SystemTime::now)
}
