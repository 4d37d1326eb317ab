//! The store of certificates that a command works on: where the server has it, and the root of its local authority.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use onehop_archive::private_folder::own_user;
use onehop_certificates::file_store::FileStore;
use onehop_certificates::limits::FILE_BYTES_MAX;
use onehop_certificates::local::LocalAuthority;
use onehop_server::control::certificate_folder;

use crate::arguments::CertificateStore;
use crate::configuration;
use crate::failure::Failure;

/// The root of the local authority in its store, where Caddy has it, too.
const ROOT: &str = "pki/authorities/local/root.crt";

/// The folder of the store: the one that was named, else the server's with the configuration file that was named or is
/// found, else the server's without one.
pub(super) fn folder(named: &CertificateStore) -> Result<PathBuf, Failure> {
    if let Some(storage) = &named.storage {
        return configuration::absolute(storage);
    }
    let of_server = |storage: Option<&Path>, data: Option<&Path>| {
        certificate_folder(storage, data).map_err(Failure::failed)
    };
    if let Some(data) = &named.data_dir {
        return of_server(None, Some(&configuration::absolute(data)?));
    }
    let file = match &named.file {
        Some(_) => Some(configuration::find(named.file.as_ref(), "--file FILE")?),
        // Root follows no file of another user's that happens to be here.
        None => configuration::find_here().filter(|file| own_user() != 0 || owner(&file.path) == 0),
    };
    match file {
        Some(file) => {
            let global = configuration::load(&file)?.checked.global;
            of_server(global.tls.storage.as_deref(), global.data_directory.as_deref())
        }
        None => of_server(None, None),
    }
}

/// Opens the store, which is made where it is missing.
pub(super) fn open(folder: &Path) -> Result<FileStore, Failure> {
    let owner = owner(folder);
    if own_user() == 0 && owner != 0 {
        return Err(Failure::failed(format!(
            "{} is for the user {owner}, whose server could not use what root writes there\n  run this as that user",
            folder.display()
        )));
    }
    FileStore::open(folder).map_err(|error| Failure::failed(error.to_string()))
}

/// The root certificate (PEM) of the local authority, which is made where it is missing. Root only reads in the folder of
/// another user: the server of that user could not use what root makes there.
pub(super) fn root_or_new(folder: &Path) -> Result<String, Failure> {
    let owner = owner(folder);
    if own_user() == 0 && owner != 0 {
        return root(folder)?.ok_or_else(|| {
            Failure::failed(format!(
                "there is no local authority in {} yet, which is for the user {owner}\n  \
                 run this as that user first, who makes it:  onehop trust --storage {}",
                folder.display(),
                quoted(folder)
            ))
        });
    }
    let authority = LocalAuthority::new(Arc::new(open(folder)?), Arc::new(SystemTime::now));
    authority.root_pem().map_err(|error| Failure::failed(error.message))
}

/// The root certificate (PEM) of the local authority, if there is one.
pub(super) fn root(folder: &Path) -> Result<Option<String>, Failure> {
    let path = folder.join(ROOT);
    let failed = |error: &dyn std::fmt::Display| {
        Failure::failed(format!("cannot read the root certificate {}: {error}", path.display()))
    };
    let file = match File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| failed(&error))?,
    };
    let mut content = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut content).map_err(|error| failed(&error))?;
    let begin = content.find(BEGIN).ok_or_else(|| failed(&"it holds no certificate in PEM form"))?;
    let certificate = content.get(begin..).unwrap_or_default();
    let end = certificate.find(END).ok_or_else(|| failed(&"its certificate has no end"))?;
    Ok(Some(format!("{}{END}\n", certificate.get(..end).unwrap_or_default())))
}

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The user that the folder belongs to, or the one that would have to make it.
fn owner(folder: &Path) -> u32 {
    let existing = folder.ancestors().find_map(|path| fs::metadata(path).ok());
    existing.map_or(0, |metadata| metadata.uid())
}

/// A path as a shell reads it.
pub(super) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,=".contains(&byte);
    if text.bytes().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        for (path, expected) in [("/srv/a-b.c", "/srv/a-b.c"), ("/a b", "'/a b'"), ("/it's", r"'/it'\''s'")] {
            assert_eq!(quoted(Path::new(path)), expected);
        }
    }

    #[test]
    fn a_root_is_made_once_and_read_without_what_stands_around_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = folder.path().join("store");
        assert_eq!(root(&store).expect("readable"), None);
        let made = root_or_new(&store).expect("made");
        assert_eq!(root(&store).expect("readable").as_ref(), Some(&made));
        assert_eq!(root_or_new(&store).expect("known"), made);
        fs::write(store.join(ROOT), format!("a comment\n{made}more")).expect("written");
        assert_eq!(root(&store).expect("readable"), Some(made));
        fs::write(store.join(ROOT), "nothing").expect("written");
        assert!(root(&store).is_err());
    }
}
