//! Files that are not in memory: roots with placeholders, and files beyond the memory bound.
//!
//! The only part of the data plane that makes file system calls; it must run on a thread that may
//! block. Names are resolved by the kernel below the root, so that no symbolic link leads out of it,
//! whatever changes between a look and an open.

use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use onehop_config::checked::FileServer;
use onehop_http1::RequestHead;
use onehop_message::error::{HttpError, is_exhaustion};
use onehop_message::response::{Disk, Response};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::browse::{self, Entry, Listing};
use super::file_server::{absent, options, page_slash_to_add, slash_to_add, slash_to_remove};
use super::hidden::is_hidden;
use super::multipart;
use super::redirect;
use super::stored::{self, Representation, accepted_sidecars};
use super::{OnDisk, OwnedFileRequest, Served};
use crate::conditional::{Validators, seconds};
use crate::content_type::content_type;
use crate::path;
use crate::store::variant::{lines, sidecar_ending};

/// Answers a request below a root that is not in memory. Blocks.
pub fn from_disk(
    settings: &FileServer,
    root: &Path,
    request: OwnedFileRequest,
    answer: &mut Response,
) -> Result<Served, HttpError> {
    let parsed = path::parse(&request.path).map_err(|_| HttpError::BadPath)?;
    if parsed.dotfile && !settings.dotfiles {
        return absent(settings);
    }
    let name: &[u8] = &parsed.bytes;
    let hidden = |name: &[u8]| is_hidden(root, name, &settings.hide);
    let (file, metadata) = match open(root, name, settings.follow_outside) {
        Ok(opened) => opened,
        Err(HttpError::NotFound) => return absent(settings),
        Err(fault) => return Err(fault),
    };
    if !metadata.is_dir() {
        if hidden(name) {
            return absent(settings);
        }
        if let Some(to) = slash_to_remove(settings, &request.original_path, &request.path) {
            redirect::permanent(to, request.query.as_deref(), answer);
            return Ok(Served::Answered);
        }
        let on_disk = on_disk(settings, root, name.to_vec(), &request);
        return send(&on_disk, file, &metadata, &request, answer).map(|()| Served::Answered);
    }
    for index in &settings.index {
        let joined = join(name, index.as_bytes());
        if hidden(&joined) {
            continue;
        }
        let Ok((file, metadata)) = open(root, &joined, settings.follow_outside) else { continue };
        if metadata.is_dir() {
            continue;
        }
        if let Some(to) = slash_to_add(settings, &request.original_path, &request.path) {
            redirect::permanent(&to, request.query.as_deref(), answer);
            return Ok(Served::Answered);
        }
        let on_disk = on_disk(settings, root, joined, &request);
        return send(&on_disk, file, &metadata, &request, answer).map(|()| Served::Answered);
    }
    if !settings.browse || hidden(name) {
        return absent(settings);
    }
    if let Some(to) = page_slash_to_add(&request.original_path, &request.path) {
        redirect::permanent(&to, request.query.as_deref(), answer);
        return Ok(Served::Answered);
    }
    stored::only_get_and_head(&request.head)?;
    let listing = read_folder(settings, root, name, &file)?;
    browse::answer(listing, &request.head, name, request.query.as_deref(), answer);
    Ok(Served::Answered)
}

/// Completes an answer with a file that the store knows but does not hold. Blocks.
pub fn finish_on_disk(on_disk: OnDisk, head: &RequestHead, answer: &mut Response) -> Result<(), HttpError> {
    let (file, metadata) = open(&on_disk.root, &on_disk.path, on_disk.follow_outside)?;
    if metadata.is_dir() {
        return Err(HttpError::NotFound);
    }
    stored::only_get_and_head(head)?;
    send_open(&on_disk, file, &metadata, head, answer)
}

/// Completes an answer, to whatever method, with a file that the answer's maker named. Blocks.
pub fn finish_named_file(
    on_disk: OnDisk,
    head: &RequestHead,
    answer: &mut Response,
) -> Result<(), HttpError> {
    let (file, metadata) = open(&on_disk.root, &on_disk.path, on_disk.follow_outside)?;
    if metadata.is_dir() {
        return Err(HttpError::NotFound);
    }
    send_open(&on_disk, file, &metadata, head, answer)
}

/// Opens a regular file below a root. Blocks.
pub fn open_named_file(root: &Path, path: &[u8]) -> Result<(File, Metadata), HttpError> {
    let (file, metadata) = open(root, path, false)?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(HttpError::NotFound) }
}

/// What the policies of `try_files` compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) folder: bool,
    pub(super) length: u64,
    pub(super) modified: SystemTime,
}

/// What stands at a path below a root.
pub(super) fn look(root: &Path, path: &[u8], follow_outside: bool) -> Option<Found> {
    let (_, metadata) = open(root, path, follow_outside).ok()?;
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    Some(Found { folder: metadata.is_dir(), length: metadata.len(), modified })
}

fn on_disk(settings: &FileServer, root: &Path, path: Vec<u8>, request: &OwnedFileRequest) -> OnDisk {
    let options = options(settings, request.error_status);
    OnDisk {
        root: root.to_owned(),
        content_type: content_type(&path).into_owned(),
        path,
        sidecars: accepted_sidecars(&request.head, options.precompressed),
        varies: !options.precompressed.is_empty(),
        cache_control: options.cache_control,
        status: options.status,
        follow_outside: options.follow_outside,
        varies_by_accept: false,
    }
}

/// Sends an open file, or its sidecar.
fn send(
    on_disk: &OnDisk,
    file: File,
    metadata: &Metadata,
    request: &OwnedFileRequest,
    answer: &mut Response,
) -> Result<(), HttpError> {
    if request.error_status.is_none() {
        stored::only_get_and_head(&request.head)?;
    }
    send_open(on_disk, file, metadata, &request.head, answer)
}

fn send_open(
    on_disk: &OnDisk,
    file: File,
    metadata: &Metadata,
    head: &RequestHead,
    answer: &mut Response,
) -> Result<(), HttpError> {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    let sidecar = on_disk.sidecars.iter().find_map(|encoding| {
        let name = [on_disk.path.as_slice(), sidecar_ending(*encoding).as_bytes()].concat();
        let (file, metadata) = open(&on_disk.root, &name, on_disk.follow_outside).ok()?;
        metadata.is_file().then_some((file, metadata, *encoding))
    });
    let (file, etag, length, encoding) = match sidecar {
        Some((file, metadata, encoding)) => (file, entity_tag(&metadata), metadata.len(), Some(encoding)),
        None => (file, entity_tag(metadata), metadata.len(), None),
    };
    let lines = lines(&etag, encoding, &on_disk.content_type, modified);
    let representation = Representation {
        validators: Validators { etag: etag.as_bytes(), modified: seconds(modified) },
        length,
        lines: &lines,
        coded: on_disk.varies,
        varies: on_disk.varies,
    };
    let options = stored::ResponseOptions {
        cache_control: on_disk.cache_control,
        status: on_disk.status,
        varies_by_accept: on_disk.varies_by_accept,
        ..stored::ResponseOptions::default()
    };
    let content = stored::begin(head, representation, options, answer)?;
    let disk = Disk { file: Arc::new(file), offset: 0, length };
    stored::fill_from_disk(disk, content, &on_disk.content_type, multipart::boundary_by_chance, answer);
    Ok(())
}

/// A tag from what the file system says, to the nanosecond, as the content has not been read. Without
/// the inode number: the same file on another machine has the same tag.
fn entity_tag(metadata: &Metadata) -> String {
    format!("\"{:x}.{:x}-{:x}\"", metadata.mtime(), metadata.mtime_nsec(), metadata.len())
}

fn join(folder: &[u8], name: &[u8]) -> Vec<u8> {
    if folder.is_empty() { name.to_vec() } else { [folder, b"/", name].concat() }
}

/// Opens a regular file or a folder below a root. Nothing else is opened in earnest: a named pipe would
/// wait for its writer (hence NONBLOCK), a device is not a file.
fn open(root: &Path, path: &[u8], follow_outside: bool) -> Result<(File, Metadata), HttpError> {
    let file = open_below(root, path, follow_outside).map_err(fault)?;
    let metadata = file.metadata().map_err(|_| HttpError::FileUnreadable)?;
    if !metadata.is_file() && !metadata.is_dir() {
        return Err(HttpError::NotFound);
    }
    Ok((file, metadata))
}

const FLAGS: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

fn open_below(root: &Path, path: &[u8], follow_outside: bool) -> Result<File, Errno> {
    let relative: &[u8] = if path.is_empty() { b"." } else { path };
    let root_flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::openat(CWD, root, root_flags, Mode::empty())?;
    let resolve = if follow_outside {
        ResolveFlags::NO_MAGICLINKS
    } else {
        ResolveFlags::NO_MAGICLINKS | ResolveFlags::BENEATH
    };
    match rustix::fs::openat2(&folder, relative, FLAGS, Mode::empty(), resolve) {
        // An absolute link counts as leaving the root even where it comes back, and old kernels or
        // sandboxes lack the call.
        Err(Errno::XDEV | Errno::NOSYS | Errno::PERM) => open_resolved(root, relative, follow_outside),
        Err(Errno::AGAIN) => {
            rustix::fs::openat2(&folder, relative, FLAGS, Mode::empty(), resolve).map(File::from)
        }
        opened => opened.map(File::from),
    }
}

/// Resolves every link first and opens what has none left.
fn open_resolved(root: &Path, relative: &[u8], follow_outside: bool) -> Result<File, Errno> {
    let errno = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let root = root.canonicalize().map_err(errno)?;
    let target: PathBuf = root.join(std::ffi::OsStr::from_bytes(relative)).canonicalize().map_err(errno)?;
    if !follow_outside && !target.starts_with(&root) {
        return Err(Errno::XDEV);
    }
    let from = if follow_outside { Path::new("/") } else { &root };
    let below = target.strip_prefix(from).map_err(|_| Errno::XDEV)?;
    open_without_links(from, below)
}

/// Opens what lies below a folder, name by name, following no link: one that was put in a folder's place since the path
/// was resolved leads nowhere. The same as openat2(2) with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`, which not every
/// kernel and sandbox has.
fn open_without_links(root: &Path, resolved: &Path) -> Result<File, Errno> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut folder = rustix::fs::openat(CWD, root, flags, Mode::empty())?;
    let mut names = resolved.components().peekable();
    while let Some(name) = names.next() {
        let Component::Normal(name) = name else { return Err(Errno::XDEV) };
        if names.peek().is_none() {
            return rustix::fs::openat(&folder, name, FLAGS | OFlags::NOFOLLOW, Mode::empty())
                .map(File::from);
        }
        folder = rustix::fs::openat(&folder, name, flags, Mode::empty())?;
    }
    rustix::fs::openat(&folder, ".", FLAGS, Mode::empty()).map(File::from)
}

/// What a failed open means to the client. A link that leaves the root is absent, so that nothing can
/// be learned from it.
fn fault(errno: Errno) -> HttpError {
    match errno {
        Errno::ACCESS | Errno::PERM => HttpError::Forbidden,
        Errno::NOENT
        | Errno::NOTDIR
        | Errno::NAMETOOLONG
        | Errno::LOOP
        | Errno::XDEV
        | Errno::INVAL
        | Errno::NXIO => HttpError::NotFound,
        _ if is_exhaustion(errno) => HttpError::NoDescriptors,
        _ => HttpError::FileUnreadable,
    }
}

fn read_folder(settings: &FileServer, root: &Path, path: &[u8], folder: &File) -> Result<Listing, HttpError> {
    let unreadable = |error: Errno| match error {
        Errno::ACCESS => HttpError::Forbidden,
        _ => HttpError::FileUnreadable,
    };
    let mut listing = Listing::default();
    for entry in rustix::fs::Dir::read_from(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name().to_bytes();
        let dotfile = name.starts_with(b".") && !settings.dotfiles;
        let joined = join(path, name);
        let is_left_out =
            dotfile || is_hidden(root, &joined, &settings.hide) || !path::can_be_asked_for(&joined);
        if matches!(name, b"." | b"..") || is_left_out {
            continue;
        }
        // What cannot be opened (a link out of the root, a file without permission) is not listed:
        // it would not be served either.
        let Ok((_, metadata)) = open(root, &joined, settings.follow_outside) else { continue };
        let link = entry.file_type() == rustix::fs::FileType::Symlink;
        if !listing.push(Entry::from_metadata(name, &metadata, link)) {
            break;
        }
    }
    Ok(listing)
}
