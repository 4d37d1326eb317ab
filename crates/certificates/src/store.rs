//! Where certificates, accounts and the local authority are kept: values by key, in the layout of Caddy's
//! `file_system` storage, so that users migrate in both directions.
//!
//! Names come from the configuration and from clients: [`safe`] makes each a component of a key, and a key never
//! leaves the store. [`crate::file_store`] is the one store that exists.

use std::any::Any;
use std::time::{Duration, Instant};

use crate::error::StoreError;
use crate::issuer::Pem;
use crate::limits::{COMPONENT_BYTES_MAX, COMPONENTS_MAX, LOCK_WAIT_MAX};
use crate::loaded::Loaded;

/// A lock on a name, over threads and processes, until it is dropped.
pub struct Lock(#[expect(dead_code, reason = "held for its drop")] Box<dyn Any + Send + Sync>);

impl Lock {
    /// A lock that ends when `held` is dropped.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self(Box::new(held))
    }
}

/// Values by key. A key is `/`-separated components, each of which [`safe`] leaves as it is.
pub trait Storage: Send + Sync {
    /// Reads a value; `None` if the key does not exist.
    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError>;

    /// Writes values that belong together. Each is replaced as a whole and is durable on return; after an error in
    /// preparing them (a full disk) none is replaced. A kill may leave some replaced: readers verify what belongs together.
    fn write_together(&self, entries: &[(&str, &[u8])]) -> Result<(), StoreError>;

    /// Writes one value, as [`Storage::write_together`] does.
    fn write(&self, key: &str, value: &[u8]) -> Result<(), StoreError> {
        self.write_together(&[(key, value)])
    }

    /// Removes a value. It is no error if the key does not exist.
    fn remove(&self, key: &str) -> Result<(), StoreError>;

    /// Lists the components that follow `prefix` in the keys that exist, sorted.
    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError>;

    /// Locks a name, if nothing else holds it.
    fn try_lock(&self, name: &str) -> Result<Option<Lock>, StoreError>;
}

/// Waits for a lock that is held only while files are written, up to [`LOCK_WAIT_MAX`].
pub fn lock_briefly(storage: &dyn Storage, name: &str) -> Result<Lock, StoreError> {
    /// Time between two attempts: writing and syncing a few files takes about this long.
    const ATTEMPT_INTERVAL: Duration = Duration::from_millis(10);
    let started = Instant::now();
    loop {
        if let Some(lock) = storage.try_lock(name)? {
            return Ok(lock);
        }
        if started.elapsed() >= LOCK_WAIT_MAX {
            return Err(StoreError::Locked { name: name.to_owned() });
        }
        std::thread::sleep(ATTEMPT_INTERVAL);
    }
}

/// Makes a name a component of a key, as `Safe` of certmagic's `KeyBuilder` does: `*.example.com` becomes
/// `wildcard_.example.com`. What certmagic would remove from the name is an error here, so that two names do not
/// become one.
pub fn safe(name: &str) -> Result<String, StoreError> {
    let refuse = |why| StoreError::Name { name: name.chars().take(COMPONENT_BYTES_MAX).collect(), why };
    let mut component = String::with_capacity(name.len());
    for character in name.trim().chars() {
        match character.to_ascii_lowercase() {
            ' ' => component.push('_'),
            '+' => component.push_str("_plus_"),
            '*' => component.push_str("wildcard_"),
            ':' => component.push('-'),
            other => component.push(other),
        }
    }
    check_component(&component).map_err(refuse)?;
    Ok(component)
}

/// Checks that a key stays within the store.
pub fn check_key(key: &str) -> Result<(), StoreError> {
    let refuse = |why| StoreError::Name { name: key.chars().take(COMPONENT_BYTES_MAX).collect(), why };
    if key.split('/').count() > COMPONENTS_MAX {
        return Err(refuse("it has too many components"));
    }
    key.split('/').try_for_each(check_component).map_err(refuse)
}

fn check_component(component: &str) -> Result<(), &'static str> {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_@.-".contains(&byte);
    match component {
        "" => Err("it is empty"),
        _ if component.starts_with('.') => Err("it begins with a dot"),
        _ if component.contains("..") => Err("it contains two dots in a row"),
        _ if component.len() > COMPONENT_BYTES_MAX + ".json".len() => Err("it is too long"),
        _ if !component.bytes().all(is_safe) => Err("only letters, digits and `_@.-` are possible"),
        _ => Ok(()),
    }
}

/// The keys of one certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateKeys {
    /// The chain, PEM.
    pub chain: String,
    /// The private key, PEM.
    pub key: String,
    /// What Caddy knows about it, JSON; without it Caddy does not load the certificate.
    pub metadata: String,
}

impl CertificateKeys {
    /// The keys of the certificate for `name` from the issuer with this folder.
    pub fn new(issuer_folder: &str, name: &str) -> Result<Self, StoreError> {
        let (folder, component) = (safe(issuer_folder)?, safe(name)?);
        if component.len() > COMPONENT_BYTES_MAX {
            return Err(StoreError::Name { name: component, why: "it is too long" });
        }
        let base = format!("certificates/{folder}/{component}/{component}");
        Ok(Self {
            chain: format!("{base}.crt"),
            key: format!("{base}.key"),
            metadata: format!("{base}.json"),
        })
    }
}

/// Loads the certificate for `name` from the issuer with this folder. A file that is missing or damaged, a key that
/// belongs to another certificate, and a certificate for another name all count as absent: a new one is obtained.
pub fn load_certificate(
    storage: &dyn Storage,
    issuer_folder: &str,
    name: &str,
) -> Result<Option<Loaded>, StoreError> {
    let keys = CertificateKeys::new(issuer_folder, name)?;
    let loaded = load_pair(storage, &keys.chain, &keys.key)?;
    Ok(loaded.filter(|loaded| loaded.matches_name(name)))
}

/// Loads a chain and its key; `None` if one is missing or damaged, or if they do not belong together.
pub fn load_pair(storage: &dyn Storage, chain: &str, key: &str) -> Result<Option<Loaded>, StoreError> {
    let (Some(chain_pem), Some(key_pem)) = (storage.read(chain)?, storage.read(key)?) else {
        return Ok(None);
    };
    Ok(Loaded::from_pem((&chain_pem, chain), (&key_pem, key)).ok())
}

/// Stores the certificate for `name` from the issuer with this folder.
pub fn save_certificate(
    storage: &dyn Storage,
    issuer_folder: &str,
    name: &str,
    pem: &Pem,
) -> Result<(), StoreError> {
    let keys = CertificateKeys::new(issuer_folder, name)?;
    let metadata = serde_json::json!({ "sans": [name] }).to_string();
    storage.write_together(&[
        (&keys.key, pem.key.as_bytes()),
        (&keys.chain, pem.chain.as_bytes()),
        (&keys.metadata, metadata.as_bytes()),
    ])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_become_the_components_that_caddy_writes() {
        for (name, expected) in [
            ("Example.com", "example.com"),
            ("*.example.com", "wildcard_.example.com"),
            ("::1", "--1"),
            ("me+test@example.com", "me_plus_test@example.com"),
            ("acme-v02.api.letsencrypt.org-directory", "acme-v02.api.letsencrypt.org-directory"),
        ] {
            assert_eq!(safe(name).unwrap(), expected);
        }
    }

    #[test]
    fn names_that_could_leave_the_folder_are_refused() {
        let long = "a".repeat(256);
        for name in ["", ".", "..", "a..b", "../a", "a/b", "a\\b", "a\0b", ".hidden", "ä.example", " ", &long]
        {
            assert!(matches!(safe(name), Err(StoreError::Name { .. })), "{name:?}");
        }
        assert!(CertificateKeys::new("local", &"a".repeat(251)).is_err());
        assert!(CertificateKeys::new("local", &"a".repeat(250)).is_ok());
    }

    #[test]
    fn keys_that_could_leave_the_folder_are_refused() {
        for key in ["", "/etc/passwd", "a/../../b", "a//b", "a/", "a/./b", "a/b\n", "a/b/c/d/e/f/g/h/i"] {
            assert!(check_key(key).is_err(), "{key:?}");
        }
        assert!(check_key("acme/ca/users/me@example.com/me.json").is_ok());
    }

    proptest! {
        #[test]
        fn a_safe_name_is_one_component_and_stays_as_it_is(name in "\\PC{0,300}|[a-z*.:/\\\\\0+ ]{0,20}") {
            if let Ok(component) = safe(&name) {
                prop_assert!(check_key(&component).is_ok());
                prop_assert!(!component.contains('/') && !component.contains(".."));
                prop_assert_eq!(safe(&component).unwrap(), component);
            }
        }
    }
}
