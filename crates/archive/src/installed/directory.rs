//! Where a pack is unpacked: one folder for each pack and user, chosen once at the start.
//!
//! A folder is used only where it is our own, or root's and closed to us, nobody else may write in it, and its place
//! does not let others rename what is ours. Chooses without unpacking: a start is not to wait for it.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::Index;
use crate::index::SourceKind;
use crate::layout::{APP, COMPLETE, RUNTIME, SYSTEM_PLACE, folder_name};
use rustix::fs::{Access, StatVfsMountFlags};

use super::lock::lock_of;
use crate::private_folder::{is_ours, keeps_what_is_ours, make, named_place, own_user};

/// The folder of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackFolder {
    path: PathBuf,
    kind: Kind,
    /// Its place is ours to make, with this mode.
    made_with: Option<u32>,
}

/// What is known of it at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ours, there or not: it is verified or made.
    Own,
    /// Root's, and we may not write in it: an image brought it along, or root.
    Given,
    /// There is no place for one; nothing has to be unpacked.
    Nowhere,
}

impl UnpackFolder {
    /// Chooses the folder of the pack with this key. `needs_exec`: programs of it will be started; `needs_unpacking`:
    /// without a folder it cannot run. Where ONEHOP_CACHE names a place, it is the only one.
    ///
    /// # Errors
    ///
    /// There is no place for it, with what stands against each; for a person.
    pub fn choose(key: &str, needs_exec: bool, needs_unpacking: bool) -> Result<Self, String> {
        match named_place() {
            Some(path) => choose_named(&private(path), key, needs_exec, needs_unpacking),
            None => choose_in(&places(), key, needs_exec, needs_unpacking),
        }
    }

    /// Whether its applications need a place from which programs may be started. `only_handlers`: they are run by a
    /// runtime, which also runs scripts that somebody marked as executable.
    pub fn needs_exec(index: &Index, only_handlers: bool) -> bool {
        let is_program = |path: &str, executable: bool| {
            let name = path.rsplit('/').next().unwrap_or(path);
            let ends_with = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
            // Code for the machine is also loaded without being executable.
            let is_library = ends_with(&[".node", ".so"]) || name.contains(".so.");
            let is_script = only_handlers && ends_with(&[".js", ".mjs", ".cjs", ".ts", ".mts", ".cts"]);
            is_library || executable && !is_script
        };
        index.runtime.is_some()
            || index.sources.iter().any(|source| match &source.kind {
                SourceKind::File { executable, .. } => is_program(&source.path, *executable),
                SourceKind::Folder | SourceKind::Link { .. } => false,
            })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the base of the configuration is when it runs.
    pub fn base(&self) -> PathBuf {
        self.path.join(APP)
    }

    /// Where the runtime's files are.
    pub fn runtime(&self) -> PathBuf {
        self.path.join(RUNTIME)
    }

    pub(super) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Makes the place anew, should it have been removed since. An error is for a person.
    pub(super) fn make_place(&self) -> Result<(), String> {
        let (Some(place), Some(mode)) = (self.path.parent(), self.made_with) else { return Ok(()) };
        if place.is_dir() {
            return Ok(());
        }
        make_place(place, mode).map_err(|error| {
            format!("{} cannot be made ({error}): set ONEHOP_CACHE to another folder", place.display())
        })
    }
}

/// A place where folders of packs may be.
#[derive(Debug, Clone)]
pub(super) struct Parent {
    pub(super) path: PathBuf,
    /// It is ours to make where it is missing, with this mode.
    pub(super) made_with: Option<u32>,
}

pub(super) fn choose_in(
    places: &[Parent],
    key: &str,
    needs_exec: bool,
    needs_unpacking: bool,
) -> Result<UnpackFolder, String> {
    search(places, key, needs_exec, needs_unpacking).map_err(|reasons| {
        format!(
            "there is no folder into which the applications can be unpacked ({reasons}): set ONEHOP_CACHE to one that \
             this user may write in, and that is not mounted noexec"
        )
    })
}

/// Whoever names a place means no other.
pub(super) fn choose_named(
    place: &Parent,
    key: &str,
    needs_exec: bool,
    needs_unpacking: bool,
) -> Result<UnpackFolder, String> {
    search(std::slice::from_ref(place), key, needs_exec, needs_unpacking).map_err(|reason| {
        let noexec = if needs_exec { ", and that is not mounted noexec" } else { "" };
        format!(
            "the applications cannot be unpacked where ONEHOP_CACHE says ({reason}): name a folder that this user may \
             write in{noexec}"
        )
    })
}

/// Finds the folder; else what stands against each place.
fn search(
    places: &[Parent],
    key: &str,
    needs_exec: bool,
    needs_unpacking: bool,
) -> Result<UnpackFolder, String> {
    let user = own_user();
    let mut reasons = String::new();
    for place in places {
        let own = (folder_name(key, Some(user)), Kind::Own);
        let given = (folder_name(key, None), Kind::Given);
        for (name, kind) in [own, given] {
            let path = real(&place.path).join(name);
            let Some(kind) = complete(&path, key, kind).filter(|_| keeps_what_is_ours(&place.path)) else {
                continue;
            };
            if !needs_exec || runs_programs(&path) {
                return Ok(UnpackFolder { path, kind, made_with: place.made_with });
            }
            // One of our own is told below.
            if kind == Kind::Given {
                note(&mut reasons, &path, "is mounted noexec");
            }
        }
    }
    for place in places.iter().filter(|_| needs_unpacking) {
        let name = folder_name(key, Some(user));
        match usable(place, &name, needs_exec) {
            Ok(()) => {
                let path = real(&place.path).join(name);
                return Ok(UnpackFolder { path, kind: Kind::Own, made_with: place.made_with });
            }
            Err(reason) => note(&mut reasons, &place.path, &reason),
        }
    }
    if needs_unpacking {
        return Err(reasons);
    }
    let path = Path::new(SYSTEM_PLACE).join(folder_name(key, Some(user)));
    Ok(UnpackFolder { path, kind: Kind::Nowhere, made_with: None })
}

/// Without links: so a runtime names the files that it loads, and a place that is exchanged later is not followed.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

fn note(reasons: &mut String, path: &Path, reason: &str) {
    let separator = if reasons.is_empty() { "" } else { "; " };
    let _ = write!(reasons, "{separator}{} {reason}", path.display());
}

/// What such a folder is, if it was finished and nobody else may have changed it.
fn complete(path: &Path, key: &str, kind: Kind) -> Option<Kind> {
    let found = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir)?;
    let is_closed = found.mode() & 0o022 == 0;
    let kind = match kind {
        _ if is_ours(path, true) && is_writable(path) => Kind::Own,
        Kind::Given if found.uid() == 0 && is_closed => Kind::Given,
        _ => return None,
    };
    let said = fs::read_to_string(path.join(COMPLETE)).ok()?;
    said.starts_with(key).then_some(kind)
}

/// Where folders of packs may lie, the best place first; whether they can is not looked at.
pub fn unpack_places() -> Vec<PathBuf> {
    let named = named_place().into_iter();
    named.chain(places().into_iter().map(|place| place.path)).collect()
}

/// Where a folder may be if nobody names one, the best place first.
fn places() -> Vec<Parent> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let shared = |path: PathBuf| Parent { path, made_with: None };
    let system = Parent { path: SYSTEM_PLACE.into(), made_with: (own_user() == 0).then_some(0o755) };
    let own_folder = || std::env::current_exe().ok()?.parent().map(Path::to_path_buf);
    let all = [
        Some(system),
        named("XDG_CACHE_HOME").map(|path| private(path.join("onehop"))),
        named("HOME").map(|path| private(path.join(".cache/onehop"))),
        named("TMPDIR").map(shared),
        Some(shared("/tmp".into())),
        own_folder().map(shared),
    ];
    all.into_iter().flatten().filter(|place| place.path.is_absolute()).collect()
}

/// A place that only this user needs; where root runs applications as other users, these have to come by.
pub(super) fn private(path: PathBuf) -> Parent {
    Parent { path, made_with: Some(if own_user() == 0 { 0o711 } else { 0o700 }) }
}

/// Nobody can have put something else there before its mode is set: it is new.
fn make_place(path: &Path, mode: u32) -> io::Result<()> {
    if let Some(above) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(mode).create(above)?;
    }
    match make(path, mode) {
        // Another server was quicker.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Whether a folder of this name may be made there; makes the place itself where that is ours to do.
fn usable(place: &Parent, name: &str, needs_exec: bool) -> Result<(), String> {
    if !place.path.is_dir() {
        if place.path.exists() {
            return Err("is no folder".to_owned());
        }
        let mode = place.made_with.ok_or("is not there")?;
        make_place(&place.path, mode).map_err(|error| format!("cannot be made ({error})"))?;
    }
    if !keeps_what_is_ours(&place.path) {
        return Err("belongs to somebody else, or others may rename there".to_owned());
    }
    if !is_writable(&place.path) {
        return Err("is not writable".to_owned());
    }
    if needs_exec && !runs_programs(&place.path) {
        return Err("is mounted noexec".to_owned());
    }
    let (path, user) = (place.path.join(name), own_user());
    if is_taken(&lock_of(&path), user) || is_taken(&path, user) {
        return Err(format!("holds a {name} of another user"));
    }
    Ok(())
}

/// Where others may write, too, somebody may have taken the name of this user, who could not put it aside.
pub(super) fn is_taken(path: &Path, user: u32) -> bool {
    user != 0 && fs::symlink_metadata(path).is_ok_and(|found| found.uid() != user)
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

fn runs_programs(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}
