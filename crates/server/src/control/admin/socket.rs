//! Making the control socket so that nobody else can ever connect to it, and taking away only our own.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::fs::{FlockOperation, flock};
use rustix::net::sockopt::socket_peercred;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::limits::{
    CONTROL_CONNECTIONS_MAX, CONTROL_LOCK_DEADLINE, CONTROL_LOCK_PAUSE, CONTROL_SOCKETS_SWEPT_MAX,
};

/// Only the user, and root.
const MODE: u32 = 0o600;

/// Binds the control socket with mode 0600. One that a dead process left is replaced.
///
/// # Errors
/// `AddrInUse` with the process id where somebody listens there already; `AlreadyExists` where something
/// stands there that is no socket.
pub fn bind_control_socket(path: &Path) -> io::Result<UnixListener> {
    let path = std::path::absolute(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Looking whether a socket is dead, removing it and binding must be one step, or two processes that
    // start together both find it dead and one removes the other's.
    let _lock = lock(folder)?;
    remove_dead(&path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket: OwnedFd = net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    net::bind(&socket, &SocketAddrUnix::new(&path).map_err(|error| too_long(&path, error))?)?;
    // Between these two steps nobody can connect: the kernel refuses until listen() was called.
    fs::set_permissions(&path, Permissions::from_mode(MODE))?;
    net::listen(&socket, i32::try_from(CONTROL_CONNECTIONS_MAX).unwrap_or(i32::MAX))?;
    Ok(UnixListener::from(socket))
}

/// Removes the control sockets (`*.sock`) in a folder of ours that nobody listens on any more: a process
/// that is killed leaves its own behind.
///
/// # Errors
/// Where the folder cannot be locked or read.
pub fn remove_dead_control_sockets(folder: &Path) -> io::Result<()> {
    let _lock = lock(folder)?;
    for entry in fs::read_dir(folder)?.flatten().take(CONTROL_SOCKETS_SWEPT_MAX) {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "sock") {
            // An error means that somebody lives there, or that it is no socket.
            let _ = remove_dead(&path);
        }
    }
    Ok(())
}

/// The file of a bound socket. Removed when this is dropped, if it is still the same file.
pub(super) struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl SocketFile {
    /// The file of a listener; none for one without a name.
    pub(super) fn of(listener: &UnixListener) -> Option<SocketFile> {
        let path = listener.local_addr().ok()?.as_pathname()?.to_path_buf();
        let metadata = fs::symlink_metadata(&path).ok()?;
        Some(SocketFile { path, device: metadata.dev(), inode: metadata.ino() })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let Some(_lock) = self.path.parent().and_then(|folder| lock(folder).ok()) else { return };
        let still_ours = fs::symlink_metadata(&self.path)
            .is_ok_and(|metadata| metadata.dev() == self.device && metadata.ino() == self.inode);
        if still_ours {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A lock on the folder itself: it leaves no file behind, and ends with the process.
fn lock(folder: &Path) -> io::Result<File> {
    let handle = File::open(folder).map_err(|error| {
        io::Error::new(
            error.kind(),
            format!("the folder of the control socket, {}: {error}", folder.display()),
        )
    })?;
    let begun = Instant::now();
    loop {
        match flock(&handle, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(handle),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR)
                if begun.elapsed() < CONTROL_LOCK_DEADLINE =>
            {
                std::thread::sleep(CONTROL_LOCK_PAUSE);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn remove_dead(path: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.file_type().is_socket() {
        let reason = format!("{} is no socket; name another path for the control socket", path.display());
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, reason));
    }
    match UnixStream::connect(path) {
        Ok(stream) => {
            let pid =
                socket_peercred(&stream).map(|peer| peer.pid.as_raw_nonzero().get()).unwrap_or_default();
            let reason =
                format!("already running with process id {pid}, which listens at {}", path.display());
            Err(io::Error::new(io::ErrorKind::AddrInUse, reason))
        }
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => fs::remove_file(path),
        // A full queue or missing rights: somebody lives there.
        Err(error) => Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{}: {error}", path.display()))),
    }
}

fn too_long(path: &Path, error: rustix::io::Errno) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(
        error.kind(),
        format!("{} cannot name a socket (a path has at most 107 bytes there): {error}", path.display()),
    )
}
