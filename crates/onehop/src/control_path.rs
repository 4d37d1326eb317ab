//! Where the control socket of an onehop lies, so that several run side by side and `onehop reload`
//! finds the one that was started with the same file.
//!
//! The folder belongs to the user alone (0700); the name is a hash of the absolute path of the
//! configuration file, or of the folder for `onehop serve`. Never removes a socket: the server does,
//! under a lock.
//!
//! A container may have no place for it where it usually lies: the file system is read-only, /run and /tmp too. Then
//! it lies in the first place that there is; /dev/shm is there in every container, and in an empty root the place where
//! packs are unpacked. No abstract socket: those have no
//! permissions, and a namespace of the network is easily shared.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use onehop_archive::installed::unpack_places;
use rustix::fs::Access;

/// Bytes of the path of a Unix socket, without the zero at its end (`sun_path` of Linux, unix(7)).
const SOCKET_PATH_BYTES_MAX: usize = 107;

/// Bytes of the longest name: sixteen digits, a process id of ten behind a hyphen, and the ending.
const NAME_BYTES_MAX: usize = 32;

/// The socket of the onehop that was started with `subject` (a file, or a folder): where there is one, else where it
/// usually lies.
///
/// # Errors
/// Where another user may have made what lies in the usual folder.
pub(crate) fn for_subject(subject: &Path) -> io::Result<PathBuf> {
    let (usual, others) = folders();
    let name = name_for(subject);
    let is_usual_safe = check_existing(&usual);
    let safe = others.into_iter().filter(|folder| check_folder(folder).is_ok());
    let usual_if_safe = is_usual_safe.is_ok().then(|| usual.clone());
    let found =
        usual_if_safe.into_iter().chain(safe).map(|folder| folder.join(&name)).find(|path| path.exists());
    match found {
        Some(found) => Ok(found),
        None => is_usual_safe.map(|()| usual.join(name)),
    }
}

/// Another socket in the same folder, for a process that serves a subject whose socket another process has.
pub(crate) fn beside(socket: &Path) -> PathBuf {
    let name = socket.file_stem().unwrap_or_default().to_string_lossy();
    socket.with_file_name(format!("{name}-{}.sock", std::process::id()))
}

/// Where the socket of an onehop that starts with `subject` is to lie: in the first place where its folder can be made,
/// or is safe to use.
///
/// # Errors
///
/// Why it cannot lie where it usually does, since it cannot lie elsewhere either.
pub(crate) fn prepare(subject: &Path) -> io::Result<PathBuf> {
    let (usual, others) = folders();
    let name = name_for(subject);
    if rustix::process::geteuid().is_root()
        && let Some(system) = usual.parent()
    {
        // In an empty root nobody has made /run; where it cannot be made, the next lines say so.
        let _ = DirBuilder::new().recursive(true).mode(0o755).create(system);
    }
    let refused = match prepare_folder(&usual) {
        Ok(()) => return Ok(usual.join(name)),
        Err(error) => io::Error::new(error.kind(), format!("{}: {error}", usual.display())),
    };
    let other = others.into_iter().find(|folder| prepare_folder(folder).is_ok());
    other.map(|folder| folder.join(name)).ok_or(refused)
}

fn prepare_folder(folder: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            check_folder(folder)?;
            Ok(rustix::fs::access(folder, Access::WRITE_OK)?)
        }
        Err(error) => Err(error),
    }
}

/// The name of what belongs to the onehop that is started with `subject`, the same at each start.
pub(crate) fn identity(subject: &Path) -> String {
    name_for(subject).trim_end_matches(".sock").to_owned()
}

/// The sockets in this user's folders, whether a server answers there or not.
pub(crate) fn all() -> Vec<PathBuf> {
    let (usual, others) = folders();
    let safe = others.into_iter().filter(|folder| check_folder(folder).is_ok());
    let usual = Some(usual).filter(|usual| check_existing(usual).is_ok());
    let mut paths: Vec<PathBuf> = usual
        .into_iter()
        .chain(safe)
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flat_map(Iterator::flatten)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "sock"))
        .collect();
    paths.sort();
    paths
}

/// The usual folder, and those that stand in for it, in this order.
fn folders() -> (PathBuf, Vec<PathBuf>) {
    let usual = folder();
    let name = format!("onehop-{}", rustix::process::geteuid().as_raw());
    let everywhere = ["/tmp", "/dev/shm"].map(PathBuf::from).into_iter();
    let others = everywhere.chain(unpack_places()).map(|place| place.join(&name));
    // A longer path names no socket.
    let fits = |folder: &PathBuf| folder.as_os_str().len() + 1 + NAME_BYTES_MAX <= SOCKET_PATH_BYTES_MAX;
    let others = others.filter(|folder| *folder != usual && fits(folder)).collect();
    (usual, others)
}

/// The usual folder. root has one place whoever asks (a service and a shell see different environments);
/// everyone else has the session's, as the XDG base directory specification has it.
fn folder() -> PathBuf {
    let user = rustix::process::geteuid();
    if user.is_root() {
        return PathBuf::from("/run/onehop");
    }
    if let Some(session) = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from)
        && session.is_absolute()
        && session.is_dir()
    {
        return session.join("onehop");
    }
    let session = PathBuf::from(format!("/run/user/{}", user.as_raw()));
    if session.is_dir() {
        return session.join("onehop");
    }
    PathBuf::from(format!("/tmp/onehop-{}", user.as_raw()))
}

/// The usual folder, which may be missing. systemd makes /run/onehop for a service of another user, and only root
/// can make anything in /run: there root trusts every folder that others cannot write to.
fn check_existing(usual: &Path) -> io::Result<()> {
    let is_of_service = || {
        rustix::process::geteuid().is_root()
            && usual.parent() == Some(Path::new("/run"))
            && fs::symlink_metadata(usual).is_ok_and(|folder| folder.is_dir() && folder.mode() & 0o022 == 0)
    };
    match check_folder(usual) {
        Err(error) if error.kind() == io::ErrorKind::NotFound || is_of_service() => Ok(()),
        checked => checked,
    }
}

/// In /tmp anybody may have made the folder first: it must be ours, no link, and closed to others.
fn check_folder(folder: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(folder)?;
    let ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_dir() && ours && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "{} is not a folder of this user alone (mode 0700); name another socket with --control",
            folder.display()
        ),
    ))
}

fn name_for(subject: &Path) -> String {
    let absolute = fs::canonicalize(subject)
        .or_else(|_| std::path::absolute(subject))
        .unwrap_or_else(|_| subject.to_path_buf());
    format!("{:016x}.sock", fnv1a(absolute.as_os_str().as_encoded_bytes()))
}

/// FNV-1a, 64 bits: the name must be the same in every version of the program, which the standard
/// library's hasher does not promise. Not a secret and no defence: the folder's mode is.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_published_one() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn one_file_has_one_name_however_it_is_spelled() {
        let here = std::env::current_dir().expect("a working directory");
        assert_eq!(name_for(Path::new("Cargo.toml")), name_for(&here.join("src/../Cargo.toml")));
        assert_ne!(name_for(Path::new("Cargo.toml")), name_for(Path::new("src")));
        assert_eq!(name_for(&here).len(), "0123456789abcdef.sock".len());
        assert!(
            beside(Path::new("/run/0123456789abcdef.sock")).as_os_str().len()
                <= "/run/".len() + NAME_BYTES_MAX
        );
    }

    #[test]
    fn where_packs_are_unpacked_is_the_last_place_and_no_path_is_too_long_for_a_socket() {
        let (usual, others) = folders();
        let last = others.last().expect("/tmp at least");
        assert!(unpack_places().iter().any(|place| last.starts_with(place)), "{last:?}");
        for folder in others {
            assert_ne!(folder, usual);
            assert!(folder.join(name_for(Path::new("x"))).as_os_str().len() <= SOCKET_PATH_BYTES_MAX);
        }
    }

    #[test]
    fn a_folder_that_others_may_enter_is_refused() {
        let folder = std::env::temp_dir().join(format!("onehop-control-{}", std::process::id()));
        DirBuilder::new().mode(0o755).create(&folder).expect("a folder");
        let refused = prepare_folder(&folder);
        fs::remove_dir(&folder).expect("removed");
        assert_eq!(refused.expect_err("refused").kind(), io::ErrorKind::PermissionDenied);
    }
}
