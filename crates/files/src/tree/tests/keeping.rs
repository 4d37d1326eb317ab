use std::os::unix::fs::symlink;

use super::super::releases::Releases;
use super::super::watcher::TreeWatcher;
use super::*;
use crate::limits::{CHURN_WAIT_MAX, HOLD_BACK_MAX, RELEASE_KEPT_FOR};

#[test]
fn a_burst_of_changes_is_published_once() {
    let site = Site::new();
    site.write("0.js", "0");
    let kept = site.keep();
    for number in 0..100 {
        site.write(&format!("new/{number}.js"), "x");
    }
    let event = kept.event(|event| matches!(event, KeeperEvent::Published { .. }));
    let KeeperEvent::Published { files, changed, .. } = event else { unreachable!("just matched") };
    assert_eq!((files, changed), (101, 100));
    fs::remove_file(site.path("0.js")).expect("remove");
    let event = kept.event(|event| matches!(event, KeeperEvent::Published { .. }));
    assert!(matches!(event, KeeperEvent::Published { files: 100, changed: 1, .. }), "{event:?}");
}

#[test]
fn changes_between_the_first_read_and_the_first_watch_are_seen() {
    let site = Site::new();
    site.write("a.js", "old");
    let first = Arc::new(site.read().expect("a store"));
    site.write("a.js", "new");
    let kept = site.keep_from(first);
    kept.store(|store| content(store, "a.js") == Some(b"new"));
}

#[test]
fn changes_in_new_and_in_moved_folders_are_seen() {
    let site = Site::new();
    site.write("a/b/c.js", "1");
    let kept = site.keep();
    site.write("new/deep/d.js", "1");
    kept.store(|store| content(store, "new/deep/d.js") == Some(b"1"));
    site.write("new/deep/d.js", "2");
    kept.store(|store| content(store, "new/deep/d.js") == Some(b"2"));
    fs::rename(site.path("a"), site.path("z")).expect("move");
    kept.store(|store| content(store, "z/b/c.js") == Some(b"1") && file(store, "a/b/c.js").is_none());
    site.write("z/b/c.js", "2");
    kept.store(|store| content(store, "z/b/c.js") == Some(b"2"));
}

#[test]
fn a_tree_that_is_never_quiet_is_published_all_the_same() {
    let site = Site::new();
    site.write("log.txt", "");
    let kept = site.keep();
    site.write("page.html", "page");
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < 4 * CHURN_WAIT_MAX);
        site.write("log.txt", format!("{:?}", begun.elapsed()));
        if let Ok(store) = kept.published.recv_timeout(Duration::from_millis(20))
            && file(&store, "page.html").is_some()
        {
            break;
        }
    }
    assert!(begun.elapsed() >= CHURN_WAIT_MAX, "it waits for quiet first");
}

#[test]
fn a_build_is_held_back_until_the_index_and_its_assets_are_there() {
    let mut site = Site::new();
    site.spec.index = Some("index.html".into());
    site.write("index.html", r#"<script src="/assets/a-1.js"></script>"#);
    site.write("assets/a-1.js", "1");
    let kept = site.keep();
    fs::remove_dir_all(site.path("assets")).expect("remove");
    fs::remove_file(site.path("index.html")).expect("remove");
    // Between two steps of a busy machine the keeper may look, and name what is missing then.
    let held = |missing: &str| {
        kept.event(|event| matches!(event, KeeperEvent::HeldBack { missing: named } if *named == [missing]));
    };
    held("index.html");
    // Whole or not at all: an index that is still empty names no assets.
    write(&site.around.join("next.html"), r#"<script src="/assets/a-2.js"></script>"#);
    fs::rename(site.around.join("next.html"), site.path("index.html")).expect("move");
    held("assets/a-2.js");
    // A tree whose files were too young to be trusted may be read and published a second time.
    for store in kept.published.try_iter() {
        assert_eq!(paths(&store), ["assets/a-1.js", "index.html"], "a build that is not there as a whole");
    }
    site.write("assets/a-2.js", "2");
    let store = kept.store(|_| true);
    assert_eq!(paths(&store), ["assets/a-2.js", "index.html"]);
}

#[test]
fn time_with_an_incomplete_build_ends() {
    use super::super::hold::{Hold, Verdict};
    let site = Site::new();
    site.write("index.html", r#"<script src="/app/assets/a.js"></script><script src="/config.js"></script>"#);
    site.write("assets/a.js", "served below a prefix");
    let store = site.read().expect("a store");
    let (mut hold, now, index) = (Hold::default(), Instant::now(), Some("index.html"));
    let missing = vec!["config.js".to_owned()];
    let until = now + HOLD_BACK_MAX;
    let incomplete = Verdict::Incomplete { missing: missing.clone(), until };
    assert_eq!(hold.judge(&store, index, HOLD_BACK_MAX, now), incomplete);
    assert_eq!(hold.judge(&store, index, HOLD_BACK_MAX, until - Duration::from_millis(1)), incomplete);
    assert_eq!(hold.judge(&store, index, HOLD_BACK_MAX, until), Verdict::Overdue { missing });
    hold.published(&store, index);
    assert_eq!(
        hold.judge(&store, index, HOLD_BACK_MAX, until),
        Verdict::Complete,
        "it is known to be missing"
    );
    assert_eq!(hold.judge(&store, None, HOLD_BACK_MAX, until), Verdict::Complete);
}

#[test]
fn a_root_that_vanishes_leaves_the_last_store_and_may_come_back() {
    let site = Site::new();
    site.write("page.html", "old");
    let kept = site.keep();
    fs::remove_dir_all(&site.spec.root).expect("remove");
    kept.event(|event| matches!(event, KeeperEvent::RootVanished));
    write(&site.around.join("next/page.html"), "new");
    fs::rename(site.around.join("next"), &site.spec.root).expect("move");
    kept.event(|event| matches!(event, KeeperEvent::RootBack));
    kept.store(|store| content(store, "page.html") == Some(b"new"));
}

#[test]
fn a_root_whose_parents_vanish_too_is_seen_when_it_comes_back() {
    let mut site = Site::new();
    site.spec.root = site.path("app/dist");
    site.write("page.html", "old");
    let kept = site.keep();
    fs::remove_dir_all(site.around.join("root")).expect("remove");
    kept.event(|event| matches!(event, KeeperEvent::RootVanished));
    site.write("page.html", "new");
    kept.store(|store| content(store, "page.html") == Some(b"new"));
    fs::rename(site.around.join("root"), site.around.join("away")).expect("move");
    kept.event(|event| matches!(event, KeeperEvent::RootVanished));
}

#[test]
fn a_release_link_that_is_swapped_is_seen() {
    let mut site = Site::new();
    write(&site.around.join("releases/1/dist/v.txt"), "1");
    write(&site.around.join("releases/2/dist/v.txt"), "2");
    symlink("releases/1", site.around.join("current")).expect("link");
    site.spec.root = site.around.join("current/dist");
    let kept = site.keep();
    assert_eq!(content(&kept.first, "v.txt"), Some(&b"1"[..]));
    for release in [2, 1, 2] {
        symlink(format!("releases/{release}"), site.around.join("next")).expect("link");
        fs::rename(site.around.join("next"), site.around.join("current")).expect("swap");
        let store = kept.store(|store| content(store, "v.txt") == Some(release.to_string().as_bytes()));
        assert_eq!(store.resolved_root, site.around.join(format!("releases/{release}/dist")));
    }
}

#[test]
fn a_hidden_link_within_the_root_that_is_swapped_is_seen() {
    let site = Site::new();
    site.write("..1/page.html", "1");
    site.write("..2/page.html", "2");
    symlink("..1", site.path("..data")).expect("link");
    symlink("..data/page.html", site.path("page.html")).expect("link");
    let kept = site.keep();
    assert_eq!(paths(&kept.first), ["page.html"]);
    symlink("..2", site.path("..next")).expect("link");
    fs::rename(site.path("..next"), site.path("..data")).expect("swap");
    kept.store(|store| content(store, "page.html") == Some(b"2"));
    fs::write(site.path("..2/page.html"), "3").expect("write");
    kept.store(|store| content(store, "page.html") == Some(b"3"));
}

#[test]
fn a_file_system_that_reports_nothing_is_looked_at_from_time_to_time() {
    let site = Site::new();
    site.write("page.html", "old");
    let first = Arc::new(site.read().expect("a store"));
    let kept = site.keep_with(first, |stop, events| TreeWatcher::blind("a test", stop, events));
    let event = kept.event(|event| matches!(event, KeeperEvent::Polling { .. }));
    assert!(matches!(event, KeeperEvent::Polling { reason } if reason == "a test"));
    site.write("page.html", "new");
    kept.store(|store| content(store, "page.html") == Some(b"new"));
    fs::remove_dir_all(&site.spec.root).expect("remove");
    kept.event(|event| matches!(event, KeeperEvent::RootVanished));
    site.write("page.html", "back");
    kept.store(|store| content(store, "page.html") == Some(b"back"));
}

#[test]
fn unchanged_files_keep_their_forms_and_changed_ones_get_new_ones() {
    let mut site = Site::new();
    site.spec.compress = EVERY_ENCODING.to_vec();
    site.write("same.js", text(20_000, 1));
    site.write("changed.js", text(20_000, 2));
    let kept = site.keep();
    let settled = |store: &Store| store.files.len() == 2 && store.files.iter().all(|file| file.settled);
    let before = kept.store(settled);
    kept.event(|event| matches!(event, KeeperEvent::Compressed { .. }));
    site.write("changed.js", text(20_000, 3));
    let changed = |store: &Store| content(store, "changed.js") == Some(&*text(20_000, 3));
    let after = kept.store(changed);
    let brotli = |store: &Store, path| file(store, path).and_then(|file| file.brotli.clone());
    let (old, new) = (brotli(&before, "same.js").expect("form"), brotli(&after, "same.js").expect("form"));
    assert!(Arc::ptr_eq(&old.bytes, &new.bytes));
    assert!(brotli(&after, "changed.js").is_none(), "it is published before it is compressed");
    let last = kept.store(settled);
    let form = brotli(&last, "changed.js").expect("form");
    assert_ne!(form.etag, brotli(&before, "changed.js").expect("form").etag);
    drop((kept, before, after));
    assert_eq!(site.budget.left(), (1 << 30) - last.totals.stored_bytes - last.totals.compressed_bytes);
}

#[test]
fn a_look_that_finds_nothing_new_leaves_compression_running() {
    let mut site = Site::new();
    site.spec.compress = EVERY_ENCODING.to_vec();
    for number in 0..20 {
        site.write(&format!("{number}.js"), text(60_000, number));
    }
    // The first look of the keeper then finds the very same files.
    let kept = site.keep_from(Arc::new(site.read_aged()));
    site.write("removed.js", "");
    fs::remove_file(site.path("removed.js")).expect("remove");
    kept.event(|event| matches!(event, KeeperEvent::Compressed { .. }));
    let last = kept.published.try_iter().last().expect("published");
    assert!(last.files.iter().all(|file| file.settled && file.brotli.is_some()));
}

#[test]
fn stores_that_are_superseded_while_they_are_compressed_never_come_later() {
    let mut site = Site::new();
    site.spec.compress = EVERY_ENCODING.to_vec();
    for number in 0..30 {
        site.write(&format!("{number}.js"), text(60_000, number));
    }
    site.write("version.txt", "0");
    let kept = site.keep();
    let mut last = Arc::clone(&kept.first);
    for version in 1..=5 {
        site.write("version.txt", version.to_string());
        last = kept.store(|store| content(store, "version.txt") == Some(version.to_string().as_bytes()));
    }
    while !last.files.iter().all(|file| file.settled) {
        last = kept.store(|_| true);
        assert_eq!(content(&last, "version.txt"), Some(&b"5"[..]));
    }
    assert!(file(&last, "29.js").is_some_and(|file| file.brotli.is_some()));
}

#[test]
fn a_keeper_that_is_dropped_ends_promptly_in_the_midst_of_compressing() {
    let mut site = Site::new();
    site.spec.compress = EVERY_ENCODING.to_vec();
    for number in 0..6 {
        site.write(&format!("{number}.js"), text(3_000_000, number));
    }
    let kept = site.keep();
    // The thread is at work once its name is there.
    let working = || {
        fs::read_dir("/proc/self/task").is_ok_and(|tasks| {
            tasks.flatten().any(|task| {
                fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.starts_with("store-comp"))
            })
        })
    };
    let begun = Instant::now();
    while !working() {
        assert!(begun.elapsed() < TIMEOUT);
        std::thread::yield_now();
    }
    let begun = Instant::now();
    drop(kept.keeper);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    // What was compressed until then may have been published; nothing holds the other end any more.
    let ended = loop {
        if let Err(ended) = kept.published.recv_timeout(TIMEOUT) {
            break ended;
        }
    };
    assert_eq!(ended, std::sync::mpsc::RecvTimeoutError::Disconnected);
}

#[test]
fn hashed_assets_of_earlier_builds_are_kept_within_the_bounds_of_count_and_memory() {
    let mut site = Site::new();
    site.spec.keep_releases = 2;
    let asset = |number: u32| format!("assets/chunk-B3kq9zX{number}.js");
    let build = |site: &Site, number: u32, bytes: usize| {
        let _ = fs::remove_dir_all(site.path("assets"));
        site.write(&asset(number), vec![b'a'; bytes]);
        site.write("page.html", format!("{number}"));
    };
    build(&site, 0, 1000);
    let mut latest = site.read().expect("a store");
    let mut releases = Releases::default();
    let now = Instant::now();
    let mut replace = |site: &Site, latest: &mut Store, number: u32, bytes: usize, now: Instant| {
        build(site, number, bytes);
        let mut next = site.read_after(latest);
        releases.replace(latest, &mut next, site.spec.keep_releases, &site.budget, now);
        *latest = next;
        let mut kept: Vec<String> =
            latest.kept.iter().map(|file| String::from_utf8_lossy(&file.path).into_owned()).collect();
        kept.sort();
        kept
    };
    assert_eq!(replace(&site, &mut latest, 1, 1000, now), [asset(0)]);
    let number = latest.find(asset(0).as_bytes());
    assert!(
        matches!(number, Some(Node::File(number)) if latest.file(number).is_some_and(|file| file.length == 1000))
    );
    assert_eq!((latest.find(b"assets/never-B3kq9zX9.js"), latest.get(asset(0).as_bytes())), (None, None));
    assert_eq!(replace(&site, &mut latest, 2, 1000, now), [asset(0), asset(1)]);
    assert_eq!(replace(&site, &mut latest, 3, 1000, now), [asset(1), asset(2)], "two builds");
    // What is there again is the latest build's.
    assert_eq!(replace(&site, &mut latest, 2, 1000, now), [asset(1), asset(3)]);
    // Too old.
    let later = now + RELEASE_KEPT_FOR;
    assert_eq!(replace(&site, &mut latest, 4, 1000, later), [asset(2)]);
    // Half of what is free is for the next build.
    site.budget.resize(1 << 30, 8000);
    assert_eq!(replace(&site, &mut latest, 5, 5000, later), [asset(4)]);
    assert_eq!(replace(&site, &mut latest, 6, 1000, later), Vec::<String>::new());
    assert_eq!(latest.totals.on_disk, 0);
}
