//! Where a pack is unpacked: one folder for each pack and user, chosen once at the start.
//!
//! A folder is used only where it is our own, or root's and closed to us, nobody else may write in it, and its place
//! does not let others rename what is ours. Chooses without unpacking: a start is not to wait for it.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use onehop_archive::layout::{APP, COMPLETE, RUNTIME, SYSTEM_PLACE, folder_name};
use rustix::fs::{Access, StatVfsMountFlags};

use crate::control::supervise::folder::{is_ours, keeps_what_is_ours, own_user};

/// The folder of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnpackFolder {
    path: PathBuf,
    kind: Kind,
}

/// What is known of it at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ours, there or not: it is proved or made.
    Own,
    /// Root's, and we may not write in it: an image brought it along, or root.
    Given,
    /// There is no place for one; nothing has to be unpacked.
    Nowhere,
}

impl UnpackFolder {
    /// Chooses the folder of the pack with this key. `needs_exec`: programs of it will be started; `needs_unpacking`:
    /// without a folder it cannot run.
    ///
    /// # Errors
    ///
    /// There is no place for it, with what stands against each; for a person.
    pub fn choose(key: &str, needs_exec: bool, needs_unpacking: bool) -> Result<Self, String> {
        choose_in(&places(), key, needs_exec, needs_unpacking)
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
}

/// A place where folders of packs may be.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    /// It is ours to make where it is missing, with this mode.
    pub(super) made_with: Option<u32>,
}

pub(super) fn choose_in(
    places: &[Place],
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
            let path = place.path.join(name);
            let Some(kind) = complete(&path, key, kind).filter(|_| keeps_what_is_ours(&place.path)) else {
                continue;
            };
            match runs_programs(&path) {
                true => return Ok(UnpackFolder { path, kind }),
                false if !needs_exec => return Ok(UnpackFolder { path, kind }),
                false => note(&mut reasons, &path, "is mounted noexec"),
            }
        }
    }
    for place in places.iter().filter(|_| needs_unpacking) {
        match usable(place, needs_exec) {
            Ok(()) => {
                let path = place.path.join(folder_name(key, Some(user)));
                return Ok(UnpackFolder { path, kind: Kind::Own });
            }
            Err(reason) => note(&mut reasons, &place.path, &reason),
        }
    }
    if needs_unpacking {
        return Err(format!(
            "there is no folder into which the applications can be unpacked ({reasons}): set ONEHOP_CACHE to one that \
             this user may write in, and that is not mounted noexec"
        ));
    }
    let path = Path::new(SYSTEM_PLACE).join(folder_name(key, Some(user)));
    Ok(UnpackFolder { path, kind: Kind::Nowhere })
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
    places().into_iter().map(|place| place.path).collect()
}

/// Where a folder may be, the best place first.
fn places() -> Vec<Place> {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let private = |path: PathBuf| Place { path, made_with: Some(0o700) };
    let shared = |path: PathBuf| Place { path, made_with: None };
    // Where root runs applications as other users, these have to come by.
    let system = Place { path: SYSTEM_PLACE.into(), made_with: (own_user() == 0).then_some(0o755) };
    let own_folder = || std::env::current_exe().ok()?.parent().map(Path::to_path_buf);
    let all = [
        named("ONEHOP_CACHE").map(private),
        Some(system),
        named("XDG_CACHE_HOME").map(|path| private(path.join("onehop"))),
        named("HOME").map(|path| private(path.join(".cache/onehop"))),
        named("TMPDIR").map(shared),
        Some(shared("/tmp".into())),
        own_folder().map(shared),
    ];
    all.into_iter().flatten().filter(|place| place.path.is_absolute()).collect()
}

/// Whether a folder may be made there; makes the place itself where that is ours to do.
fn usable(place: &Place, needs_exec: bool) -> Result<(), String> {
    if !place.path.is_dir() {
        let mode = place.made_with.ok_or("is not there")?;
        let made = fs::DirBuilder::new().recursive(true).mode(mode).create(&place.path);
        made.map_err(|error| format!("cannot be made ({error})"))?;
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
    Ok(())
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

fn runs_programs(path: &Path) -> bool {
    rustix::fs::statvfs(path).is_ok_and(|found| !found.f_flag.contains(StatVfsMountFlags::NOEXEC))
}
