//! Packs in a folder: what is unpacked is what was packed, each time.

use std::fs::{self, File, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use crate::Writer;
use crate::index::{AbsolutePath, Configuration, Runtime};
use crate::layout::{COMPLETE, RECORD, folder_name, key};
use tempfile::TempDir;

use super::directory::{Kind, Parent, choose_in, choose_named, is_taken, private};
use super::lock::{LOCK, STOPPED, Turn, fresh, lock_of};
use super::*;
use crate::limits::LIBRARY_KEPT_FOR;
use crate::private_folder::own_user;
use crate::tests::program;

/// A pack, and a place to unpack it.
struct Fixture {
    folder: TempDir,
    packed: Packed,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("myapp");
        let out = File::options().read(true).write(true).create_new(true).open(&path).expect("a file");
        let mut writer = Writer::begin(program().as_slice(), out).expect("a program");
        let mut file = |path: &str, content: &[u8], executable| Source {
            path: path.to_owned(),
            kind: SourceKind::File { content: writer.add_compressed(content, 3).expect("added"), executable },
        };
        let sources = vec![
            file("Onehopfile", b":80\n", false),
            file("bin/run.sh", b"#!/bin/sh\n", true),
            Source { path: "current.pem".into(), kind: SourceKind::Link { to: "lib/../lib/ca.pem".into() } },
            Source { path: "lib".into(), kind: SourceKind::Folder },
            file("lib/ca.pem", b"certificate", false),
            file("lib/server.js", &b"serve();\n".repeat(50_000), false),
        ];
        let mut program = b"program:".to_vec();
        program.resize(5000, 0);
        let files = vec![file("bin/node", &program, true), file("lib/ld.so", b"loader", true)];
        let room = AbsolutePath { file: "bin/node".into(), path: "lib/ld.so".into(), offset: 8, room: 4096 };
        let runtime = Runtime { name: "node".into(), version: "v1".into(), files, paths: vec![room] };
        let configuration = Configuration { path: "Onehopfile".to_owned(), caddyfile: false };
        let name = "myapp".to_owned();
        let index = Index { sources, runtime: Some(runtime), configuration, name, ..Index::default() };
        writer.finish(index).expect("sound");
        let (pack, index) = Pack::open(&path).expect("a pack");
        let place = folder.path().join("place");
        fs::create_dir(&place).expect("made");
        let chosen = choose(&place, &pack).expect("a place");
        let packed = Packed { pack: Arc::new(pack), index: Arc::new(index), folder: chosen };
        Self { folder, packed }
    }

    fn unpack(&self) -> Result<Unpacked, String> {
        self.packed.unpack(&AtomicBool::new(false))
    }

    /// Below the folder; empty: the folder itself.
    fn path(&self, path: &str) -> PathBuf {
        let folder = self.packed.folder.path();
        if path.is_empty() { folder.to_path_buf() } else { folder.join(path) }
    }

    fn read(&self, path: &str) -> Vec<u8> {
        fs::read(self.path(path)).expect(path)
    }

    /// What lies in the place, beside the lock.
    fn names(&self) -> Vec<String> {
        let place = self.packed.folder.path().parent().expect("a place");
        let entries = fs::read_dir(place).expect("listed");
        let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
        names.filter(|name| !name.ends_with(LOCK)).collect()
    }

    /// The packed file is back at its place, and what lay there lies beside it.
    fn assert_put_back(&self, path: &str) -> PathBuf {
        let unpacked = self.unpack().expect("unpacked");
        assert_eq!((unpacked.written, unpacked.repaired.aside.count), (0, 1), "{path}");
        let aside = self.path(&unpacked.repaired.aside.first[0]);
        assert!(
            aside.to_str().is_some_and(|aside| aside.contains(&format!("/{path}.changed-"))),
            "{aside:?}"
        );
        assert_eq!(self.read("app/lib/server.js"), b"serve();\n".repeat(50_000));
        let again = self.unpack().expect("found");
        assert_eq!((again.written, again.repaired.aside.count), (0, 0));
        assert!(fs::symlink_metadata(&aside).is_ok(), "it stays");
        aside
    }

    /// Writes into a file whatever its mode.
    fn change(&self, path: &str, content: &[u8]) {
        let path = self.path(path);
        let before = mode(&path);
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("set");
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(before)).expect("set");
    }
}

fn place(path: &Path) -> Parent {
    Parent { path: path.to_path_buf(), made_with: Some(0o700) }
}

fn choose(path: &Path, pack: &Pack) -> Result<UnpackFolder, String> {
    choose_in(&[place(path)], &key(pack.location()), true, true)
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("there").mode() & 0o777
}

#[test]
fn what_was_packed_is_unpacked_once_and_found_again() {
    let site = Fixture::new();
    let first = site.unpack().expect("unpacked");
    assert_eq!((first.written, first.kept.count), (6, 0));
    assert_eq!(site.read("app/current.pem"), b"certificate");
    assert_eq!(fs::read_link(site.path("app/current.pem")).expect("a link"), Path::new("lib/../lib/ca.pem"));
    let modes = ["app/bin/run.sh", "app/lib/server.js", "app/lib/ca.pem"].map(|path| mode(&site.path(path)));
    assert_eq!(modes, [0o555, 0o444, 0o644], "an application may change its data, not its code");
    assert_eq!((mode(site.packed.folder.path()), mode(&site.path("app/lib"))), (0o700, 0o755));
    let inode = || site.path("app/bin/run.sh").metadata().expect("there").ino();
    let before = inode();
    let again = site.unpack().expect("found");
    assert_eq!((again.written, again.kept.count, inode()), (0, 0, before));
    assert_eq!(site.names().len(), 1);
    let chosen = choose(&site.folder.path().join("place"), &site.packed.pack);
    assert_eq!(chosen.as_ref(), Ok(&site.packed.folder));
}

#[test]
fn the_absolute_path_of_the_loader_is_written_where_the_runtime_has_room_for_it() {
    let site = Fixture::new();
    site.unpack().expect("unpacked");
    let program = site.read("runtime/bin/node");
    let loader = site.path("runtime/lib/ld.so");
    let written = loader.as_os_str().as_encoded_bytes();
    assert_eq!(&program[..8], b"program:");
    assert_eq!(&program[8..8 + written.len()], written);
    assert!(program[8 + written.len()..].iter().all(|byte| *byte == 0));
    assert_eq!(site.unpack().expect("found").written, 0, "the proof knows of it");
    assert_eq!(site.packed.runtime_programs(), Some(site.path("runtime/bin")));
}

#[test]
fn data_that_the_application_changed_is_kept_at_every_start() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    site.change("app/lib/ca.pem", b"rows of the application");
    for _ in 0..2 {
        let unpacked = site.unpack().expect("found");
        assert_eq!(unpacked.kept.first, ["app/lib/ca.pem"]);
        assert_eq!(
            (unpacked.written, unpacked.repaired.aside.count, unpacked.repaired.missing.count),
            (0, 0, 0)
        );
        assert_eq!(site.read("app/lib/ca.pem"), b"rows of the application");
    }
    // In its place another kind of thing, as a folder elsewhere that an operator linked.
    fs::rename(site.path("app/lib/ca.pem"), site.path("app/rows")).expect("moved");
    symlink("../rows", site.path("app/lib/ca.pem")).expect("linked");
    assert_eq!(site.unpack().expect("found").kept.first, ["app/rows", "app/lib/ca.pem"]);
    assert_eq!(fs::read_link(site.path("app/lib/ca.pem")).expect("a link"), Path::new("../rows"));
}

#[test]
fn code_that_was_changed_is_put_back_and_the_changed_one_stays_beside_it() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    site.change("app/lib/server.js", &b"Serve();\n".repeat(50_000));
    let first = site.assert_put_back("app/lib/server.js");
    assert_eq!(fs::read(first).expect("kept"), b"Serve();\n".repeat(50_000));
    site.change("app/lib/server.js", b"shorter");
    let second = site.assert_put_back("app/lib/server.js");
    assert!(second.ends_with("server.js.changed-2"), "{second:?}");
    site.change("runtime/bin/node", b"another");
    site.assert_put_back("runtime/bin/node");
    fs::set_permissions(site.path("app/bin/run.sh"), Permissions::from_mode(0o777)).expect("set");
    let unpacked = site.unpack().expect("found");
    assert_eq!((unpacked.repaired.aside.count, mode(&site.path("app/bin/run.sh"))), (0, 0o555));
}

#[test]
fn what_is_missing_is_put_back_and_what_was_damaged_before_an_application_ran_too() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    fs::remove_file(site.path("app/Onehopfile")).expect("removed");
    fs::remove_file(site.path("app/current.pem")).expect("removed");
    let unpacked = site.unpack().expect("found");
    assert_eq!(unpacked.repaired.missing.first, ["app/Onehopfile", "app/current.pem"]);
    assert_eq!(site.read("app/Onehopfile"), b":80\n");
    // A machine that lost power: the content is gone, and the time is that of the unpacking.
    let path = site.path("app/lib/ca.pem");
    let before = fs::metadata(&path).and_then(|found| found.modified()).expect("a time");
    let file = File::options().write(true).truncate(true).open(&path).expect("opened");
    let old = before - Duration::from_secs(1);
    file.set_times(FileTimes::new().set_modified(old)).expect("set");
    site.assert_put_back("app/lib/ca.pem");
    assert_eq!(site.read("app/lib/ca.pem"), b"certificate");
}

#[test]
fn links_in_the_place_of_folders_and_files_are_not_followed() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    let elsewhere = site.folder.path().join("elsewhere");
    let swap = |path: &str| {
        let path = site.path(path);
        fs::rename(&path, &elsewhere).expect("moved");
        symlink(&elsewhere, &path).expect("linked");
    };
    for path in ["app/lib", "runtime"] {
        swap(path);
        let aside = site.assert_put_back(path);
        assert_eq!(fs::read_link(aside).expect("a link"), elsewhere);
        fs::remove_dir_all(&elsewhere).expect("what a link led to is left alone");
    }
    swap("");
    let unpacked = site.unpack().expect("unpacked");
    assert_eq!(unpacked.written, 6);
    assert_eq!(fs::read_link(unpacked.aside.expect("kept")).expect("a link"), elsewhere);
    assert!(elsewhere.join("app/Onehopfile").exists(), "what a link led to is left alone");
}

#[test]
fn a_folder_in_which_others_could_write_is_put_aside_and_never_removed() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    fs::write(site.path("app/notes.db"), "rows").expect("written");
    fs::set_permissions(site.path(""), Permissions::from_mode(0o777)).expect("set");
    let unpacked = site.unpack().expect("unpacked");
    let aside = unpacked.aside.expect("kept");
    site.packed.sweep();
    assert_eq!(fs::read(aside.join("app/notes.db")).expect("kept"), b"rows");
}

#[test]
fn an_unpacking_that_ended_early_leaves_nothing_that_is_used() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    fs::remove_file(site.path(COMPLETE)).expect("removed");
    fs::write(site.path("app/notes.db"), "rows").expect("written");
    let unpacked = site.unpack().expect("unpacked");
    assert!(unpacked.lies_in(site.packed.folder.path()), "it is finished now");
    assert_eq!((unpacked.written, unpacked.kept.first.as_slice()), (0, &["app/notes.db".to_owned()][..]));
    drop(unpacked);
    fs::remove_dir_all(site.packed.folder.path()).expect("removed");
    let pack = File::options().write(true).open(site.folder.path().join("myapp")).expect("opened");
    let large = site.packed.index.blobs.iter().max_by_key(|blob| blob.length).expect("blobs");
    pack.write_all_at(b"\0\0\0\0", large.offset + large.stored - 4).expect("changed");
    let error = site.unpack().expect_err("it was changed");
    assert!(error.starts_with("myapp was changed after it was packed: app/lib/server.js is not"), "{error}");
    assert_eq!(site.names(), Vec::<String>::new());
}

#[test]
fn others_are_let_in_where_applications_run_as_them_and_a_closed_folder_above_is_named() {
    let site = Fixture::new();
    let _held = site.unpack().expect("unpacked");
    let other = own_user() + 1;
    let place = site.folder.path().join("place");
    let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).expect("set");
    set(site.folder.path(), 0o755);
    set(&place, 0o700);
    let error = site.packed.open_to(other).expect_err("closed");
    let expected = format!(
        "its user cannot come by {0}, in which the pack is unpacked: open that with `chmod a+x {0}`, or set ONEHOP_CACHE \
         to a folder that others may enter",
        place.display()
    );
    assert_eq!(error, expected);
    site.packed.open_to(own_user()).expect("it may enter what is its own");
    set(&place, 0o711);
    site.packed.open_to(other).expect("set");
    assert_eq!(mode(site.packed.folder.path()), 0o755);
    assert_eq!(site.unpack().expect("found").written, 0);
}

#[test]
fn a_place_that_root_makes_lets_others_come_by() {
    let expected = if own_user() == 0 { 0o711 } else { 0o700 };
    assert_eq!(private("/x".into()).made_with, Some(expected));
}

#[test]
fn files_that_were_added_are_kept_and_reported_wherever_they_lie() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    for (count, added) in
        ["app/.env.extra", "app/lib/more.js", "runtime/bin/other", "beside"].iter().enumerate()
    {
        fs::write(site.path(added), "X=1").expect("written");
        let unpacked = site.unpack().expect("found");
        assert_eq!((unpacked.written, unpacked.kept.count), (0, count + 1));
        assert!(unpacked.kept.first.iter().any(|kept| kept == added), "{:?}", unpacked.kept);
    }
    fs::create_dir(site.path("app/node_modules")).expect("made");
    fs::write(site.path("app/more"), "").expect("written");
    let kept = site.unpack().expect("found").kept;
    assert_eq!((kept.count, kept.first.len()), (6, 5));
    assert!(kept.text().ends_with(" and 1 more"), "{}", kept.text());
    assert_eq!(site.names().len(), 1);
}

#[test]
fn a_pack_that_was_changed_itself_does_not_put_a_sound_folder_aside() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    let inode = site.path("").metadata().expect("there").ino();
    let pack = File::options().write(true).open(site.folder.path().join("myapp")).expect("opened");
    for blob in &site.packed.index.blobs {
        pack.write_all_at(b"\0", blob.offset + blob.stored / 2).expect("changed");
    }
    let error = site.unpack().expect_err("it was changed");
    assert!(error.starts_with("myapp was changed after it was packed: app/"), "{error}");
    assert_eq!((site.path("").metadata().expect("there").ino(), site.names().len()), (inode, 1));
}

#[test]
fn what_was_removed_since_is_seen_and_unpacked_again_with_its_place() {
    let site = Fixture::new();
    let unpacked = site.unpack().expect("unpacked");
    let folder = site.packed.folder.path();
    assert!(unpacked.lies_in(folder));
    fs::remove_file(site.path(COMPLETE)).expect("removed");
    assert!(!unpacked.lies_in(folder));
    fs::remove_dir_all(folder.parent().expect("a place")).expect("removed");
    assert!(!unpacked.lies_in(folder));
    let again = site.unpack().expect("unpacked");
    assert_eq!(again.written, 6);
    assert!(again.lies_in(folder) && !unpacked.lies_in(folder), "another folder of the same name");
}

#[test]
fn an_unpacking_that_is_stopped_leaves_nothing() {
    let site = Fixture::new();
    let stopped = site.packed.unpack(&AtomicBool::new(true)).expect_err("stopped");
    assert_eq!((stopped.as_str(), site.names().len()), (STOPPED, 0));
    drop(site.unpack().expect("unpacked"));
    let stopped = site.packed.unpack(&AtomicBool::new(true)).expect_err("stopped");
    assert_eq!((stopped.as_str(), site.names().len()), (STOPPED, 1));
    assert_eq!(site.unpack().expect("found").written, 0, "what was sound stays");
}

#[test]
fn a_new_folder_never_takes_and_never_removes_one_of_another() {
    let folder = tempfile::tempdir().expect("a folder");
    let (taken, free) = (folder.path().join("taken"), folder.path().join("free"));
    fs::create_dir(&taken).expect("made");
    fs::write(taken.join("theirs"), "").expect("written");
    let mut names = [taken.clone(), taken.clone(), free.clone()].into_iter();
    let (path, lock) = fresh(|| names.next().expect("a name")).expect("made");
    assert_eq!(path, free);
    assert!(File::open(&free).expect("opened").try_lock().is_err(), "it is locked from the beginning");
    drop(lock);
    let (path, error) = fresh(|| taken.clone()).expect_err("none is free");
    assert_eq!((path, error.kind()), (taken.clone(), std::io::ErrorKind::AlreadyExists));
    assert!(taken.join("theirs").exists());
}

#[test]
fn servers_that_find_a_changed_folder_at_once_repair_it_once() {
    let site = Fixture::new();
    drop(site.unpack().expect("unpacked"));
    fs::remove_file(site.path("app/Onehopfile")).expect("removed");
    let unpacked: Vec<Unpacked> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| site.unpack().expect("unpacked"))).collect();
        threads.into_iter().map(|thread| thread.join().expect("ended")).collect()
    });
    let repaired = |unpacked: &&Unpacked| unpacked.repaired.missing.count > 0;
    assert_eq!(unpacked.iter().filter(repaired).count(), 1);
    assert!(unpacked.iter().all(|unpacked| unpacked.lies_in(site.packed.folder.path())));
}

#[test]
fn whoever_waits_for_another_server_stops_with_its_own() {
    let site = Fixture::new();
    let folder = site.packed.folder.path();
    let _held = Turn::take(folder, &AtomicBool::new(false)).expect("nobody has it");
    let stopped = site.packed.unpack(&AtomicBool::new(true)).expect_err("stopped");
    assert_eq!((stopped.as_str(), site.names().len()), (STOPPED, 0));
    assert_eq!(mode(&lock_of(folder)), 0o600, "nobody else can hold it");
}

#[test]
fn a_named_place_is_the_only_one_and_what_is_wrong_with_it_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("written");
    let error = choose_named(&place(&file), "k", true, true).expect_err("a file");
    let expected = format!(
        "the applications cannot be unpacked where ONEHOP_CACHE says ({} is no folder): name a folder that this user may \
         write in, and that is not mounted noexec",
        file.display()
    );
    assert_eq!(error, expected);
    assert!(choose_named(&place(&file), "k", false, false).is_ok(), "nothing has to be unpacked");
}

#[test]
fn a_place_that_is_a_link_is_named_by_where_it_leads() {
    let folder = tempfile::tempdir().expect("a folder");
    let (real, link) = (folder.path().join("private"), folder.path().join("link"));
    fs::create_dir(&real).expect("made");
    symlink(&real, &link).expect("linked");
    let chosen = choose_in(&[place(&link)], "k", true, true).expect("a place");
    assert_eq!(chosen.path().parent(), Some(real.canonicalize().expect("there").as_path()));
}

#[test]
fn a_name_that_another_user_has_is_taken_for_all_but_root() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = own_user();
    assert!(is_taken(folder.path(), user + 1), "a place with it is passed over");
    assert!(!is_taken(folder.path(), user) && !is_taken(folder.path(), 0));
    assert!(!is_taken(&folder.path().join("missing"), user + 1));
}

#[test]
fn only_programs_and_libraries_need_a_place_from_which_programs_start() {
    let needs = |path: &str, executable, only_handlers| {
        let kind = SourceKind::File { content: 0, executable };
        let index = Index { sources: vec![Source { path: path.into(), kind }], ..Index::default() };
        UnpackFolder::needs_exec(&index, only_handlers)
    };
    assert!(!needs("app/server.mjs", false, true));
    assert!(!needs("node_modules/mime/cli.js", true, true), "a runtime reads it");
    assert!(needs("node_modules/mime/cli.js", true, false), "a command may be it");
    assert!(needs("bin/esbuild", true, true));
    assert!(needs("build/Release/addon.node", false, true));
    assert!(needs("lib/libvips.so.42", false, true));
    let runtime = Runtime { name: "node".into(), version: "v1".into(), files: Vec::new(), paths: Vec::new() };
    assert!(UnpackFolder::needs_exec(&Index { runtime: Some(runtime), ..Index::default() }, true));
}

#[test]
fn a_file_of_the_configuration_is_read_from_the_pack_also_over_a_link() {
    let site = Fixture::new();
    let content = |path: &Path| site.packed.content(path).map(|read| read.expect("sound"));
    let base = site.packed.folder.base();
    assert_eq!(content(&base.join("lib/ca.pem")).as_deref(), Some(&b"certificate"[..]));
    assert_eq!(content(&base.join("current.pem")).as_deref(), Some(&b"certificate"[..]));
    assert_eq!(content(&base.join("lib")), None);
    assert_eq!(content(&base.join("lib/missing")), None);
    assert_eq!(content(Path::new("/etc/hosts")), None);
    assert!(!base.exists(), "nothing is unpacked for it");
}

#[test]
fn the_first_place_that_can_be_used_is_taken_and_what_is_wrong_with_each_is_reported() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("open")).expect("made");
    fs::set_permissions(path("open"), Permissions::from_mode(0o777)).expect("set");
    let missing = Parent { path: path("missing"), made_with: None };
    let bad = [missing, place(&path("open"))];
    let error = choose_in(&bad, "k", true, true).expect_err("none");
    let expected = format!(
        "there is no folder into which the applications can be unpacked ({} is not there; {} belongs to somebody else, \
         or others may rename there): set ONEHOP_CACHE to one that this user may write in, and that is not mounted \
         noexec",
        path("missing").display(),
        path("open").display()
    );
    assert_eq!(error, expected);
    let [missing, open] = bad;
    let chosen = choose_in(&[missing, open, place(&path("new/one"))], "k", true, true).expect("the last");
    assert_eq!(chosen.path(), path("new/one").join(folder_name("k", Some(own_user()))));
    assert_eq!((chosen.kind(), mode(&path("new/one"))), (&Kind::Own, 0o700));
    let nowhere = choose_in(&[], "k", true, false).expect("nothing has to be unpacked");
    assert_eq!(nowhere.kind(), &Kind::Nowhere);
}

#[test]
fn what_was_unpacked_before_is_found_in_a_later_place_too() {
    let folder = tempfile::tempdir().expect("a folder");
    let places = [place(&folder.path().join("one")), place(&folder.path().join("two"))];
    let own = places[1].path.join(folder_name("abc", Some(own_user())));
    fs::create_dir_all(&own).expect("made");
    fs::set_permissions(&places[1].path, Permissions::from_mode(0o755)).expect("set");
    fs::set_permissions(&own, Permissions::from_mode(0o700)).expect("set");
    let chosen = || choose_in(&places, "abc", true, true).expect("a place");
    assert_ne!(chosen().path(), own, "it was not finished");
    fs::write(own.join(COMPLETE), "abcdef\n").expect("written");
    assert_eq!(chosen().path(), own);
    fs::set_permissions(&own, Permissions::from_mode(0o770)).expect("set");
    assert_ne!(chosen().path(), own, "others may have changed it");
}

#[test]
fn packs_that_nobody_used_for_long_are_removed_and_no_others() {
    let site = Fixture::new();
    let _held = site.unpack().expect("unpacked");
    let place = site.folder.path().join("place");
    let old = SystemTime::now() - 2 * LIBRARY_KEPT_FOR;
    let set_old = |path: &Path| {
        let times = FileTimes::new().set_modified(old);
        File::open(path).and_then(|folder| folder.set_times(times)).expect("set");
    };
    let made = |name: String, is_old: bool| {
        let path = place.join(name);
        fs::create_dir(&path).expect("made");
        fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("set");
        let record = record::of(&path, "shop").expect("listed");
        fs::write(path.join(RECORD), record).expect("written");
        if is_old {
            set_old(&path);
        }
        path
    };
    let user = own_user();
    let gone = [
        made(folder_name("1", Some(user)), true),
        made(format!("onehop-pack-{user}-2-77-0"), true),
        made(format!("onehop-pack-{user}-4-77-0"), false),
    ];
    let written = made(format!("onehop-pack-{user}-7-77-0"), false);
    let writes = File::open(&written).expect("opened");
    writes.try_lock_shared().expect("locked");
    let wrote = made(folder_name("8", Some(user)), false);
    fs::write(wrote.join("notes.db"), "rows").expect("written");
    set_old(&wrote);
    let kept = [
        written,
        wrote,
        made(format!("onehop-pack-{user}-9-changed-77-0"), true),
        made(folder_name("3", Some(user)), false),
        made(folder_name("5", Some(user + 1)), true),
        made("somebody's".to_owned(), true),
    ];
    let used = made(folder_name("6", Some(user)), true);
    let lock = File::open(&used).expect("opened");
    lock.try_lock_shared().expect("locked");
    site.packed.sweep();
    assert!(gone.iter().all(|path| !path.exists()));
    assert!(kept.iter().all(|path| path.exists()) && used.exists());
    assert!(site.packed.folder.path().exists());
}

#[test]
fn a_folder_of_an_earlier_version_that_its_application_changed_is_reported_and_stays() {
    let site = Fixture::new();
    let place = site.folder.path().join("place");
    let made = |key: &str, pack: &str| {
        let path = place.join(folder_name(key, Some(own_user())));
        fs::create_dir(&path).expect("made");
        fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("set");
        for name in ["server.mjs", COMPLETE] {
            fs::write(path.join(name), "").expect("written");
        }
        fs::write(path.join(RECORD), record::of(&path, pack).expect("listed")).expect("written");
        path
    };
    let name = site.packed.index.name.clone();
    let (untouched, changed, others) = (made("1", &name), made("2", &name), made("3", "another"));
    for folder in [&changed, &others] {
        let file = File::create(folder.join("notes.db")).expect("written");
        let later = SystemTime::now() + Duration::from_secs(1);
        file.set_times(FileTimes::new().set_modified(later)).expect("set");
    }
    let earlier = site.packed.sweep();
    assert_eq!(earlier.iter().map(|earlier| &earlier.folder).collect::<Vec<_>>(), [&changed]);
    assert_eq!(earlier[0].files.first, ["notes.db"]);
    assert!(untouched.exists() && changed.join("notes.db").exists() && others.exists());
    let used = File::open(&changed).expect("opened");
    used.try_lock_shared().expect("locked");
    assert_eq!(site.packed.sweep(), [], "another server runs it");
}
