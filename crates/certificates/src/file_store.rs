//! A store in a folder. Its folders have mode 0700, its files 0600.
//!
//! Each write is a list of [`Step`]s that a kill may end anywhere: files are written beside their final names, synced,
//! renamed over them, and the folder is synced. All files of one write are complete before the first is renamed, so that
//! a full disk replaces none. Leftovers of a kill begin with a dot, which no key does.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::bounded_file::{io, read_bounded, too_large};
use crate::error::StoreError;
use crate::limits::{FILE_BYTES_MAX, LIST_ENTRIES_MAX};
use crate::store::{Lock, Storage, check_key, safe};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// A [`Storage`] in a folder that only this user can read.
#[derive(Debug)]
pub struct FileStore {
    root: PathBuf,
}

/// One step of a write.
#[derive(Debug)]
enum Step<'a> {
    CreateFolder(PathBuf),
    WriteTemporary(PathBuf, &'a [u8]),
    Rename(PathBuf, PathBuf),
    SyncFolder(PathBuf),
}

impl FileStore {
    /// Opens the folder, creating it if it does not exist. A folder that belongs to another user or that others may
    /// access is refused.
    pub fn open(root: &Path) -> Result<Self, StoreError> {
        let mut builder = DirBuilder::new();
        let created = builder.recursive(true).mode(FOLDER_MODE).create(root);
        created.map_err(io("create", root))?;
        check_owner(root)?;
        Ok(Self { root: root.to_owned() })
    }

    /// Opens a folder for reading only, whatever its owner: Caddy's storage.
    pub(crate) fn foreign(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    fn path(&self, key: &str) -> Result<PathBuf, StoreError> {
        check_key(key)?;
        Ok(self.root.join(key))
    }

    /// What a write does, in order.
    fn steps<'a>(&self, entries: &[(&str, &'a [u8])]) -> Result<Vec<Step<'a>>, StoreError> {
        let (mut folders, mut temporaries, mut renames) = (Vec::new(), Vec::new(), Vec::new());
        let mut synced: Vec<PathBuf> = Vec::new();
        for (key, value) in entries {
            let path = self.path(key)?;
            let folder = path.parent().unwrap_or(&self.root).to_owned();
            let temporary = folder.join(format!(".{:032x}.tmp", fastrand::u128(..)));
            // A new folder is durable once its parent is synced.
            let within = |folder: &&Path| folder.starts_with(&self.root) && **folder != self.root;
            let mut missing: Vec<_> =
                folder.ancestors().take_while(within).filter(|folder| !folder.exists()).collect();
            missing.reverse();
            for new in missing {
                folders.push(Step::CreateFolder(new.to_owned()));
                folders.push(Step::SyncFolder(new.parent().unwrap_or(&self.root).to_owned()));
            }
            temporaries.push(Step::WriteTemporary(temporary.clone(), value));
            renames.push(Step::Rename(temporary, path));
            if !synced.contains(&folder) {
                synced.push(folder);
            }
        }
        let syncs = synced.into_iter().map(Step::SyncFolder);
        Ok(folders.into_iter().chain(temporaries).chain(renames).chain(syncs).collect())
    }
}

impl Storage for FileStore {
    fn read(&self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        read_bounded(&self.path(key)?)
    }

    fn write_together(&self, entries: &[(&str, &[u8])]) -> Result<(), StoreError> {
        for (key, value) in entries {
            if value.len() as u64 > FILE_BYTES_MAX {
                return Err(too_large(&self.path(key)?));
            }
        }
        let steps = self.steps(entries)?;
        let result = steps.iter().try_for_each(run);
        if result.is_err() {
            for step in &steps {
                if let Step::WriteTemporary(path, _) = step {
                    // A temporary file that was renamed is gone; the others are of no use. The first error is reported.
                    let _ = std::fs::remove_file(path);
                }
            }
        }
        result
    }

    fn remove(&self, key: &str) -> Result<(), StoreError> {
        let path = self.path(key)?;
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            Err(error) => Err(io("remove", &path)(error)),
            Ok(()) => run(&Step::SyncFolder(path.parent().unwrap_or(&self.root).to_owned())),
        }
    }

    fn list(&self, prefix: &str) -> Result<Vec<String>, StoreError> {
        let folder = self.path(prefix)?;
        let entries = match std::fs::read_dir(&folder) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            entries => entries.map_err(io("list", &folder))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(io("list", &folder))?;
            // Files with other names, as temporary files, are no keys.
            names.extend(entry.file_name().into_string().ok().filter(|name| check_key(name).is_ok()));
            if names.len() > LIST_ENTRIES_MAX {
                let bound = format!("{LIST_ENTRIES_MAX} entries");
                return Err(StoreError::TooLarge { path: folder, bound });
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    fn try_lock(&self, name: &str) -> Result<Option<Lock>, StoreError> {
        let path = self.path(&format!("locks/{}", safe(name)?))?;
        for step in self.steps(&[("locks/any", &[])])? {
            if let Step::CreateFolder(_) = step {
                run(&step)?;
            }
        }
        let opened = OpenOptions::new().write(true).create(true).truncate(false).mode(FILE_MODE).open(&path);
        let file = opened.map_err(io("open", &path))?;
        // The file stays when the lock ends: to remove it would let two processes lock two files of one name.
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Lock::new(file))),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(io("lock", &path)(error.into())),
        }
    }
}

fn check_owner(root: &Path) -> Result<(), StoreError> {
    let metadata = std::fs::metadata(root).map_err(io("read", root))?;
    let user = rustix::process::geteuid().as_raw();
    let exposed = |why, command| StoreError::Exposed { path: root.to_owned(), why, command };
    if metadata.uid() != user {
        let why = format!("it belongs to the user {}, not to the user {user} of this server", metadata.uid());
        let command = format!("chown -R {user} {0} && chmod 700 {0}", root.display());
        return Err(exposed(why, command));
    }
    if metadata.mode() & 0o077 != 0 {
        let why = format!("other users have access to it (mode {:03o})", metadata.mode() & 0o777);
        return Err(exposed(why, format!("chmod 700 {}", root.display())));
    }
    Ok(())
}

fn run(step: &Step<'_>) -> Result<(), StoreError> {
    match step {
        Step::CreateFolder(path) => match DirBuilder::new().mode(FOLDER_MODE).create(path) {
            // Another process may have been faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
            result => result.map_err(io("create", path)),
        },
        Step::WriteTemporary(path, value) => {
            let opened = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path);
            let written = opened.and_then(|mut file| file.write_all(value).and_then(|()| file.sync_all()));
            written.map_err(io("write", path))
        }
        Step::Rename(from, to) => std::fs::rename(from, to).map_err(io("write", to)),
        Step::SyncFolder(path) => {
            File::open(path).and_then(|folder| folder.sync_all()).map_err(io("sync", path))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::loaded::tests::self_signed;
    use crate::store::{load_certificate, save_certificate};

    fn store() -> (tempfile::TempDir, FileStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = FileStore::open(&folder.path().join("certificates")).unwrap();
        (folder, store)
    }

    #[test]
    fn what_was_written_is_read_until_it_is_removed() {
        let (_folder, store) = store();
        assert!(store.read("acme/ca/users/default/default.json").unwrap().is_none());
        assert!(store.list("acme").unwrap().is_empty());
        store.write("acme/ca/users/default/default.json", b"one").unwrap();
        store.write("acme/ca/users/default/default.json", b"two").unwrap();
        assert_eq!(store.read("acme/ca/users/default/default.json").unwrap().unwrap(), b"two");
        assert_eq!(store.list("acme/ca/users/default").unwrap(), ["default.json"]);
        for _ in 0..2 {
            store.remove("acme/ca/users/default/default.json").unwrap();
        }
        assert!(store.read("acme/ca/users/default/default.json").unwrap().is_none());
        assert!(store.write("../outside", b"").is_err());
    }

    #[test]
    fn only_the_user_of_the_server_can_read_what_is_stored() {
        let (_folder, store) = store();
        store.write("pki/authorities/local/root.key", b"secret").unwrap();
        let _lock = store.try_lock("a").unwrap().unwrap();
        for (path, mode) in [
            ("", 0o700),
            ("pki", 0o700),
            ("pki/authorities/local", 0o700),
            ("pki/authorities/local/root.key", 0o600),
            ("locks", 0o700),
            ("locks/a", 0o600),
        ] {
            assert_eq!(store.root.join(path).metadata().unwrap().mode() & 0o777, mode, "{path}");
        }
    }

    #[test]
    fn a_folder_that_others_can_read_is_refused_with_the_command_that_fixes_it() {
        let (_folder, store) = store();
        std::fs::set_permissions(&store.root, Permissions::from_mode(0o750)).unwrap();
        let message = FileStore::open(&store.root).unwrap_err().to_string();
        assert!(message.contains("mode 750") && message.contains("run `chmod 700 /"), "{message}");
    }

    #[test]
    fn a_file_that_is_too_large_is_neither_read_nor_written() {
        let (_folder, store) = store();
        let large = vec![0; usize::try_from(FILE_BYTES_MAX).unwrap() + 1];
        assert!(matches!(store.write("large", &large), Err(StoreError::TooLarge { .. })));
        std::fs::write(store.root.join("large"), &large).unwrap();
        assert!(matches!(store.read("large"), Err(StoreError::TooLarge { .. })));
    }

    #[test]
    fn a_lock_excludes_until_it_is_dropped() {
        let (_folder, store) = store();
        let other = FileStore::open(&store.root).unwrap();
        let lock = store.try_lock("issue_cert_*.example.com").unwrap();
        assert!(lock.is_some());
        assert!(other.try_lock("issue_cert_*.example.com").unwrap().is_none());
        assert!(other.try_lock("issue_cert_example.com").unwrap().is_some());
        drop(lock);
        assert!(other.try_lock("issue_cert_*.example.com").unwrap().is_some());
    }

    #[test]
    fn a_kill_at_any_step_leaves_a_pair_that_belongs_together_or_none() {
        let (old, new) = (self_signed("a.example"), self_signed("a.example"));
        let mut seen = [false; 3];
        for with_old in [false, true] {
            for kill_after in 0.. {
                let (_folder, store) = store();
                if with_old {
                    save_certificate(&store, "local", "a.example", &old).unwrap();
                }
                let keys = crate::store::CertificateKeys::new("local", "a.example").unwrap();
                let entries = [(&*keys.key, new.key.as_bytes()), (&*keys.chain, new.chain.as_bytes())];
                let steps = store.steps(&entries).unwrap();
                steps.iter().take(kill_after).try_for_each(run).unwrap();
                let loaded = load_certificate(&store, "local", "a.example").unwrap();
                match loaded.as_ref().map(|loaded| loaded.chain_pem()) {
                    None => seen[0] = true,
                    Some(chain) if chain == old.chain => seen[1] = true,
                    Some(chain) => {
                        assert_eq!(chain, new.chain);
                        seen[2] = true;
                    }
                }
                // The next write succeeds, whatever is left over.
                save_certificate(&store, "local", "a.example", &new).unwrap();
                assert!(load_certificate(&store, "local", "a.example").unwrap().is_some());
                if kill_after > steps.len() {
                    break;
                }
            }
        }
        assert_eq!(seen, [true; 3]);
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_pair_and_nothing_else() {
        let (_folder, store) = store();
        let (old, new) = (self_signed("a.example"), self_signed("a.example"));
        save_certificate(&store, "local", "a.example", &old).unwrap();
        // Too much for the second file, as on a full disk: the first is prepared by then.
        let keys = crate::store::CertificateKeys::new("local", "a.example").unwrap();
        let mut steps =
            store.steps(&[(&keys.key, new.key.as_bytes()), (&keys.chain, new.chain.as_bytes())]).unwrap();
        let position = steps.iter().rposition(|step| matches!(step, Step::WriteTemporary(..))).unwrap();
        steps[position] = Step::WriteTemporary("/dev/full/none".into(), b"");
        assert!(steps.iter().try_for_each(run).is_err());
        let loaded = load_certificate(&store, "local", "a.example").unwrap().unwrap();
        assert_eq!(loaded.chain_pem(), old.chain);
        // The same through `write`: a key that is a folder cannot be replaced.
        std::fs::create_dir(store.root.join("folder")).unwrap();
        assert!(store.write("folder", b"value").is_err());
        let left: Vec<_> =
            std::fs::read_dir(&store.root).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".tmp")), "{left:?}");
    }
}
