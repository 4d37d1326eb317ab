//! Tells when a tree may have changed.
//!
//! Owns the inotify watches of one tree: its folders, the links on the way to it and within it, and the
//! folders above its root; or the second looks where the file system reports nothing. Says only that
//! something happened, never what: the tree is then listed anew. Does not use the `notify` crate,
//! because that subscribes to opened files, and so to our own reading and to every request for a file
//! on disk.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::StoreSpec;
use super::scan::{Tree, is_shown};

/// The watches of one tree.
#[derive(Debug)]
pub(super) struct Watch {
    inotify: OwnedFd,
    wants: HashMap<i32, Want>,
}

/// What was seen since the last look.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Something that matters may have changed.
    pub(super) change: bool,
    /// Events were lost.
    pub(super) overflow: bool,
}

/// What matters in a watched folder.
#[derive(Debug, Default)]
struct Want {
    /// Every name that is served, of this folder.
    all: Option<PathBuf>,
    /// These names too.
    names: Vec<OsString>,
    /// These names, but only whether they come and go.
    folders: Vec<OsString>,
}

type Wants = HashMap<PathBuf, Want>;

impl Watch {
    /// Watches nothing yet.
    pub(super) fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
        Ok(Self { inotify, wants: HashMap::new() })
    }

    /// Watches what a listing shows, and nothing else. An error means that watching is not possible;
    /// folders that went away meanwhile are none.
    pub(super) fn follow(&mut self, tree: &Tree) -> io::Result<()> {
        let mut wants = Wants::new();
        for folder in &tree.folders {
            want(&mut wants, &folder.place).all = Some(folder.place.clone());
        }
        for (folder, name) in &tree.ways {
            want(&mut wants, folder).names.push(name.clone());
        }
        above(&mut wants, &tree.root);
        self.set(wants)
    }

    /// Watches for a root that is missing: where it would appear, and the links on the way there.
    pub(super) fn expect(
        &mut self,
        nearest: &Path,
        missing: &OsStr,
        links: &[(PathBuf, OsString)],
    ) -> io::Result<()> {
        let mut wants = Wants::new();
        for (folder, name) in links {
            want(&mut wants, folder).names.push(name.clone());
        }
        above(&mut wants, &nearest.join(missing));
        self.set(wants)
    }

    /// Takes the events that are there, without waiting.
    pub(super) fn look(&mut self, spec: &StoreSpec) -> io::Result<Seen> {
        let mut seen = Seen::default();
        let mut space = [MaybeUninit::<u8>::uninit(); EVENT_BYTES];
        let mut reader = inotify::Reader::new(&self.inotify, &mut space);
        for number in 0_usize.. {
            // What is in the buffer would be lost.
            if number >= EVENTS_PER_LOOK_MAX && reader.is_buffer_empty() {
                break;
            }
            let event = match reader.next() {
                Ok(event) => event,
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => continue,
                Err(error) => return Err(error.into()),
            };
            let kind = event.events();
            if kind.contains(ReadFlags::QUEUE_OVERFLOW) {
                seen = Seen { change: true, overflow: true };
            } else if kind.contains(ReadFlags::IGNORED) {
                self.wants.remove(&event.wd());
            } else if kind.intersects(ReadFlags::MOVE_SELF | ReadFlags::DELETE_SELF | ReadFlags::UNMOUNT) {
                seen.change = true;
            } else if let Some(want) = self.wants.get(&event.wd()) {
                seen.change |= match event.file_name() {
                    Some(name) => matters(spec, want, name.to_bytes()),
                    None => want.all.is_some(),
                };
            }
        }
        Ok(seen)
    }

    fn set(&mut self, wants: Wants) -> io::Result<()> {
        let mut next: HashMap<i32, Want> = HashMap::with_capacity(wants.len());
        for (folder, want) in wants {
            let mut flags = WatchFlags::MOVE_SELF | WatchFlags::DELETE_SELF;
            flags |= WatchFlags::ONLYDIR | WatchFlags::MASK_ADD;
            if want.all.is_some() || !want.names.is_empty() {
                flags |= CONTENT;
            }
            if !want.folders.is_empty() {
                flags |= NAMES;
            }
            match inotify::add_watch(&self.inotify, &folder, flags) {
                Ok(watch) => {
                    // Two paths may lead to one folder (bind mounts).
                    let known = next.entry(watch).or_default();
                    known.all = known.all.take().or(want.all);
                    known.names.extend(want.names);
                    known.folders.extend(want.folders);
                }
                Err(error @ (Errno::NOSPC | Errno::NOMEM | Errno::MFILE | Errno::NFILE)) => {
                    return Err(error.into());
                }
                // It went away, which the second listing notices; or it is a folder above the root that
                // we may pass but not read.
                Err(_) => {}
            }
        }
        for watch in self.wants.keys().filter(|watch| !next.contains_key(watch)) {
            let _ = inotify::remove_watch(&self.inotify, *watch);
        }
        self.wants = next;
        Ok(())
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

/// Why a file system does not report changes that others make, by its magic number (statfs(2)).
pub(super) fn deaf(root: &Path) -> Option<&'static str> {
    let kind = rustix::fs::statfs(root).ok()?.f_type;
    // The width and sign of the field differ between platforms, the lower 32 bits do not.
    let magic = (kind & 0xffff_ffff) as u32;
    DEAF.iter().find(|(known, _)| *known == magic).map(|(_, name)| *name)
}

const DEAF: [(u32, &str); 11] = [
    (0x0000_6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0102_1997, "9p"),
    (0x6573_5546, "FUSE"),
    (0x786f_4256, "VirtualBox shared folder"),
    (0xbacb_acbc, "VMware shared folder"),
    (0x00c3_6400, "Ceph"),
    (0x0bd0_0bd0, "Lustre"),
    (0x5346_414f, "AFS"),
    (0x7375_7245, "Coda"),
];

/// Bytes of one read of events: a few hundred of them.
const EVENT_BYTES: usize = 8 * 1024;

/// Events after which a look ends: twice as many as the kernel queues by default. A folder that changes without end would keep the
/// look for ever.
const EVENTS_PER_LOOK_MAX: usize = 32_768;

/// Names of a folder that are created, moved or deleted. Writes to files beside the root, such as an application's database or log,
/// are not reported.
const NAMES: WatchFlags = WatchFlags::ATTRIB
    .union(WatchFlags::CREATE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::EXCL_UNLINK);

/// Changes of a folder's content. Not that files are opened or read: we do that ourselves.
const CONTENT: WatchFlags = NAMES.union(WatchFlags::CLOSE_WRITE).union(WatchFlags::MODIFY);

fn want<'a>(wants: &'a mut Wants, folder: &Path) -> &'a mut Want {
    wants.entry(folder.to_path_buf()).or_default()
}

/// The name of a root in its parent, and the folders above it: whether one is moved away.
fn above(wants: &mut Wants, root: &Path) {
    if let (Some(parent), Some(name)) = (root.parent(), root.file_name()) {
        want(wants, parent).folders.push(name.to_os_string());
    }
    for folder in root.ancestors().skip(1) {
        want(wants, folder);
    }
}

fn matters(spec: &StoreSpec, want: &Want, name: &[u8]) -> bool {
    let mut names = want.names.iter().chain(&want.folders);
    want.all.as_deref().is_some_and(|folder| is_shown(spec, folder, name))
        || names.any(|known| known.as_bytes() == name)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::super::absent_below;
    use super::super::scan::scan;
    use super::*;
    use crate::limits::HOLD_BACK_MAX;

    fn spec(root: &Path) -> StoreSpec {
        let root = root.to_path_buf();
        StoreSpec {
            root,
            dotfiles: false,
            follow_outside: false,
            absent: vec![],
            compress: vec![],
            index: None,
            keep_releases: 0,
            hold_back: HOLD_BACK_MAX,
        }
    }

    #[test]
    fn only_what_is_served_counts_as_a_change() {
        let folder = tempfile::tempdir().expect("folder");
        fs::create_dir(folder.path().join("sub")).expect("create");
        fs::write(folder.path().join("sub/a"), "a").expect("write");
        let spec = spec(folder.path());
        let mut watch = Watch::new().expect("inotify");
        watch.follow(&scan(&spec).expect("a tree")).expect("watches");
        let mut after = |what: &dyn Fn()| {
            what();
            watch.look(&spec).expect("events").change
        };
        assert!(!after(&|| drop(fs::read(folder.path().join("sub/a")))));
        assert!(!after(&|| drop(scan(&spec))));
        assert!(!after(&|| fs::write(folder.path().join(".swap"), "x").expect("write")));
        assert!(after(&|| fs::write(folder.path().join("sub/a"), "b").expect("write")));
        assert!(!after(&|| {}));
        assert!(after(&|| fs::remove_file(folder.path().join("sub/a")).expect("remove")));
        assert!(after(&|| fs::create_dir(folder.path().join(".well-known")).expect("create")));
    }

    #[test]
    fn what_the_server_writes_below_the_root_is_no_change_and_not_served() {
        let folder = tempfile::tempdir().expect("folder");
        fs::create_dir(folder.path().join("logs")).expect("create");
        symlink("logs", folder.path().join("public")).expect("a link");
        let log = folder.path().join("public/access.log");
        fs::write(&log, "a").expect("write");
        fs::write(folder.path().join("logs/index.html"), "a").expect("write");
        let absent = absent_below(folder.path(), &[log.to_string_lossy().into_owned()]);
        assert_eq!(absent.len(), 1, "{absent:?}");
        let spec = StoreSpec { absent, ..spec(folder.path()) };
        let mut watch = Watch::new().expect("inotify");
        let tree = scan(&spec).expect("a tree");
        let paths: Vec<_> = tree.files.iter().map(|file| String::from_utf8_lossy(&file.path)).collect();
        assert_eq!(paths, ["logs/index.html", "public/index.html"]);
        watch.follow(&tree).expect("watches");
        fs::write(&log, "b").expect("write");
        assert!(!watch.look(&spec).expect("events").change);
        fs::write(folder.path().join("logs/index.html"), "b").expect("write");
        assert!(watch.look(&spec).expect("events").change);
    }

    #[test]
    fn a_file_that_is_written_beside_the_root_wakes_nobody() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().join("dist");
        fs::create_dir(&root).expect("create");
        let log = folder.path().join("app.log");
        fs::write(&log, "a").expect("write");
        let spec = spec(&root);
        let mut watch = Watch::new().expect("inotify");
        watch.follow(&scan(&spec).expect("a tree")).expect("watches");
        let is_woken = |watch: &Watch| {
            let mut polled = [PollFd::new(watch, PollFlags::IN)];
            poll(&mut polled, Some(&Timespec::default())).expect("polled") > 0
        };
        fs::write(&log, "b").expect("write");
        assert!(!is_woken(&watch));
        fs::rename(&root, folder.path().join("old")).expect("rename");
        assert!(is_woken(&watch));
        assert!(watch.look(&spec).expect("events").change);
    }

    #[test]
    fn lost_events_are_noticed() {
        let folder = tempfile::tempdir().expect("folder");
        let spec = spec(folder.path());
        let mut watch = Watch::new().expect("inotify");
        watch.follow(&scan(&spec).expect("a tree")).expect("watches");
        let limit = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").expect("a limit");
        let limit: usize = limit.trim().parse().expect("a number");
        // Each rename is two events.
        for number in 0..=limit / 2 {
            let name = |number: usize| folder.path().join(format!("{}", number % 2));
            if number == 0 {
                fs::write(name(0), "x").expect("write");
            }
            fs::rename(name(number), name(number + 1)).expect("rename");
        }
        // Where the kernel queues more than by default, one look does not take all.
        let looks = std::iter::repeat_with(|| watch.look(&spec).expect("events"));
        let seen: Vec<Seen> = looks.take_while(|seen| seen.change).collect();
        assert_eq!(seen.last(), Some(&Seen { change: true, overflow: true }));
    }

    #[test]
    fn the_file_system_of_processes_is_not_called_deaf() {
        assert_eq!(deaf(Path::new("/proc")), None);
    }
}
