//! Copies certificates, ACME accounts and the local authority from Caddy's storage folder.
//!
//! Nothing that exists is replaced by something older, and nothing in Caddy's folder is changed. What is skipped is
//! reported with the reason.

use std::path::{Path, PathBuf};

use crate::error::StoreError;
use crate::file_store::FileStore;
use crate::loaded::Loaded;
use crate::local::{INTERMEDIATE, ROOT};
use crate::store::{CertificateKeys, Storage, load_pair, safe};

/// What was copied.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Imported {
    /// Certificates with their keys.
    pub certificates: usize,
    /// ACME accounts.
    pub accounts: usize,
    /// Whether the local authority was copied, so that clients that trust Caddy's root go on doing so.
    pub has_authority: bool,
    /// What was not copied.
    pub skipped: Vec<Skipped>,
}

/// Something that was not copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its place in Caddy's folder.
    pub key: String,
    /// Why.
    pub reason: String,
}

/// Why nothing more was copied.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The folder is not Caddy's.
    #[error(
        "{} is no storage folder of Caddy's, which holds `certificates`, `acme` or `pki`: give the folder that `caddy \
         environ` names as caddy.AppDataDir", .0.display()
    )]
    NotCaddy(PathBuf),
    /// A folder or a file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Copies what Caddy keeps in the folder `from` to the store `to`.
pub fn import_caddy(from: &Path, to: &dyn Storage) -> Result<Imported, ImportError> {
    if !["certificates", "acme", "pki"].iter().any(|name| from.join(name).is_dir()) {
        return Err(ImportError::NotCaddy(from.to_owned()));
    }
    let (from, mut imported) = (FileStore::foreign(from), Imported::default());
    for issuer in from.list("certificates")? {
        for name in from.list(&format!("certificates/{issuer}"))? {
            let result = import_certificate(&from, to, &issuer, &name)?;
            let key = format!("certificates/{issuer}/{name}");
            imported.note(key, result, |imported| imported.certificates += 1);
        }
    }
    for issuer in from.list("acme")? {
        for user in from.list(&format!("acme/{issuer}/users"))? {
            let key = format!("acme/{issuer}/users/{user}");
            let result = import_account(&from, to, &key)?;
            imported.note(key, result, |imported| imported.accounts += 1);
        }
    }
    if let Some(result) = import_authority(&from, to)? {
        imported.note(ROOT.0.to_owned(), result, |imported| imported.has_authority = true);
    }
    Ok(imported)
}

impl Imported {
    fn note(&mut self, key: String, result: Result<(), String>, count: impl FnOnce(&mut Self)) {
        match result {
            Ok(()) => count(self),
            Err(reason) => self.skipped.push(Skipped { key, reason }),
        }
    }
}

fn import_certificate(
    from: &FileStore,
    to: &dyn Storage,
    issuer: &str,
    name: &str,
) -> Result<Result<(), String>, StoreError> {
    let keys = CertificateKeys::new(issuer, name)?;
    let (Some(chain), Some(key)) = (from.read(&keys.chain)?, from.read(&keys.key)?) else {
        return Ok(Err("the certificate or its key is missing".to_owned()));
    };
    let loaded = match Loaded::from_pem((&chain, &keys.chain), (&key, &keys.key)) {
        Ok(loaded) => loaded,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if !loaded.names.iter().any(|known| safe(known).is_ok_and(|known| known == name)) {
        return Ok(Err(format!("the certificate is for other names: {}", loaded.names.join(", "))));
    }
    let existing = load_pair(to, &keys.chain, &keys.key)?;
    if existing.is_some_and(|existing| existing.not_after >= loaded.not_after) {
        return Ok(Err("the store has it, or a newer one".to_owned()));
    }
    let metadata = from.read(&keys.metadata)?;
    let mut entries = vec![(&*keys.key, &*key), (&*keys.chain, &*chain)];
    entries.extend(metadata.as_deref().map(|metadata| (&*keys.metadata, metadata)));
    to.write_together(&entries).map(Ok)
}

/// Copies an account as a whole: its key and its address at the ACME server belong together.
fn import_account(
    from: &FileStore,
    to: &dyn Storage,
    folder: &str,
) -> Result<Result<(), String>, StoreError> {
    if !to.list(folder)?.is_empty() {
        return Ok(Err("the store has an account for this issuer and email address".to_owned()));
    }
    let mut entries = Vec::new();
    for file in from.list(folder)? {
        let key = format!("{folder}/{file}");
        if let Some(value) = from.read(&key)? {
            entries.push((key, value));
        }
    }
    if !entries.iter().any(|(key, _)| key.ends_with(".key")) {
        return Ok(Err("the account's key is missing".to_owned()));
    }
    let entries: Vec<_> = entries.iter().map(|(key, value)| (&**key, &**value)).collect();
    to.write_together(&entries).map(Ok)
}

/// Copies the local authority; `None` if Caddy has none.
fn import_authority(from: &FileStore, to: &dyn Storage) -> Result<Option<Result<(), String>>, StoreError> {
    let (Some(chain), Some(key)) = (from.read(ROOT.0)?, from.read(ROOT.1)?) else {
        return Ok(None);
    };
    if let Err(error) = Loaded::from_pem((&chain, ROOT.0), (&key, ROOT.1)) {
        return Ok(Some(Err(error.to_string())));
    }
    if to.read(ROOT.0)?.is_some() {
        return Ok(Some(Err("the store has a local authority, which clients may trust".to_owned())));
    }
    // The intermediate is renewed within a week anyway: one that does not belong to the root is replaced at once.
    let mut entries = vec![(ROOT.1, key), (ROOT.0, chain)];
    if load_pair(from, INTERMEDIATE.0, INTERMEDIATE.1)?.is_some() {
        for name in [INTERMEDIATE.1, INTERMEDIATE.0] {
            entries.extend(from.read(name)?.map(|value| (name, value)));
        }
    }
    let entries: Vec<_> = entries.iter().map(|(name, value)| (*name, &**value)).collect();
    to.write_together(&entries).map(|()| Some(Ok(())))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use super::*;
    use crate::loaded::tests::{self_signed, valid_for};
    use crate::local::LocalAuthority;
    use crate::store::{load_certificate, save_certificate};

    const CA: &str = "acme-v02.api.letsencrypt.org-directory";

    fn stores() -> (tempfile::TempDir, Arc<FileStore>, FileStore) {
        let folder = tempfile::tempdir().unwrap();
        let caddy = FileStore::open(&folder.path().join("caddy")).unwrap();
        let store = FileStore::open(&folder.path().join("onehop")).unwrap();
        (folder, Arc::new(caddy), store)
    }

    #[test]
    fn what_caddy_kept_is_copied_once() {
        let (folder, caddy, store) = stores();
        let pem = self_signed("*.example.com");
        save_certificate(&*caddy, CA, "*.example.com", &pem).unwrap();
        caddy.write(&format!("acme/{CA}/users/me@example.com/me.json"), b"{}").unwrap();
        caddy.write(&format!("acme/{CA}/users/me@example.com/me.key"), b"key").unwrap();
        let clock: crate::Clock = Arc::new(SystemTime::now);
        let root = LocalAuthority::new(caddy.clone(), Arc::clone(&clock)).root_pem().unwrap();
        let from = folder.path().join("caddy");

        let imported = import_caddy(&from, &store).unwrap();
        let expected = Imported { certificates: 1, accounts: 1, has_authority: true, skipped: Vec::new() };
        assert_eq!(imported, expected);
        let loaded = load_certificate(&store, CA, "*.example.com").unwrap().unwrap();
        assert_eq!(loaded.chain_pem(), pem.chain);
        let key = store.read(&format!("acme/{CA}/users/me@example.com/me.key")).unwrap();
        assert_eq!(key.unwrap(), b"key");

        let again = import_caddy(&from, &store).unwrap();
        assert_eq!((again.certificates, again.accounts, again.has_authority), (0, 0, false));
        assert_eq!(again.skipped.len(), 3);
        assert_eq!(LocalAuthority::new(Arc::new(store), clock).root_pem().unwrap(), root);
    }

    #[test]
    fn what_cannot_be_used_is_skipped_with_the_reason() {
        let (folder, caddy, store) = stores();
        let (one, mut other) = (self_signed("a.example"), self_signed("a.example"));
        other.key.clone_from(&one.key);
        save_certificate(&*caddy, CA, "a.example", &other).unwrap();
        save_certificate(&*caddy, CA, "b.example", &one).unwrap();
        caddy.write(&format!("certificates/{CA}/c.example/c.example.crt"), b"").unwrap();
        caddy.write(&format!("acme/{CA}/users/default/default.json"), b"{}").unwrap();
        let imported = import_caddy(&folder.path().join("caddy"), &store).unwrap();
        assert_eq!((imported.certificates, imported.accounts), (0, 0));
        let reasons: Vec<_> = imported.skipped.iter().map(|skipped| skipped.reason.as_str()).collect();
        for (reason, expected) in reasons.iter().zip([
            "does not belong to the first certificate",
            "is for other names: a.example",
            "the certificate or its key is missing",
            "the account's key is missing",
        ]) {
            assert!(reason.contains(expected), "{reason}");
        }
        assert_eq!(reasons.len(), 4);
    }

    #[test]
    fn a_newer_certificate_stays_and_an_older_one_is_replaced() {
        let (folder, caddy, store) = stores();
        let day = Duration::from_secs(86_400);
        let start = SystemTime::UNIX_EPOCH + 20_000 * day;
        let [oldest, middle, newest] = [1, 2, 3].map(|days| valid_for("a.example", start, days * day));
        save_certificate(&*caddy, CA, "a.example", &middle).unwrap();
        for (existing, expected) in [(&newest, &newest), (&oldest, &middle)] {
            save_certificate(&store, CA, "a.example", existing).unwrap();
            import_caddy(&folder.path().join("caddy"), &store).unwrap();
            let loaded = load_certificate(&store, CA, "a.example").unwrap().unwrap();
            assert_eq!(loaded.chain_pem(), expected.chain);
        }
    }

    #[test]
    fn a_folder_that_is_not_caddys_is_refused() {
        let (folder, _, store) = stores();
        let message = import_caddy(folder.path(), &store).unwrap_err().to_string();
        assert!(message.contains("caddy.AppDataDir"), "{message}");
    }
}
