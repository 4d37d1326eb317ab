use std::collections::HashSet;

use super::super::index_assets::named_assets;
use super::*;

const REBUILDS: u32 = 50;

/// Writes a build as Vite does: the folder is emptied, then assets with new names and the index appear.
fn build(site: &Site, number: u32) {
    for entry in fs::read_dir(&site.spec.root).expect("the root").flatten() {
        if entry.path().is_dir() {
            fs::remove_dir_all(entry.path()).expect("remove");
        } else {
            fs::remove_file(entry.path()).expect("remove");
        }
    }
    let assets: Vec<String> = (0..12).map(|asset| format!("assets/chunk{asset}-{number:08}.js")).collect();
    let tags: String = assets.iter().map(|path| format!("<script src=\"/{path}\"></script>")).collect();
    let index = format!("<!doctype html><title>{number}</title>{tags}");
    let index_first = number.is_multiple_of(2);
    if index_first {
        site.write("index.html", &index);
    }
    for (place, path) in assets.iter().enumerate() {
        site.write(path, format!("/* build {number} */ import './chunk.js'"));
        // Some builds pause for longer than the quiet period while they write.
        if number % 10 == 3 && place == 6 {
            let paused = Instant::now();
            while paused.elapsed() < crate::limits::QUIET_PERIOD * 3 {
                std::thread::park_timeout(Duration::from_millis(50));
            }
        }
    }
    if !index_first {
        site.write("index.html", &index);
    }
}

/// Which build a store is; fails if it is a mix of two or lacks something.
fn check(store: &Store) -> u32 {
    let index = content(store, "index.html").expect("an index");
    let named = named_assets(index, b"index.html");
    assert_eq!(named.len(), 12);
    let mut builds = HashSet::new();
    for path in &named {
        let path = std::str::from_utf8(path).expect("UTF-8");
        let script = std::str::from_utf8(content(store, path).expect("an asset")).expect("UTF-8");
        builds.insert(script.split_whitespace().nth(2).expect("a number").to_owned());
    }
    assert_eq!(store.files.len(), 13, "nothing is left of another build: {:?}", paths(store));
    assert_eq!(builds.len(), 1, "one build: {builds:?}");
    let build = builds.into_iter().next().and_then(|build| build.parse().ok()).expect("a number");
    assert!(String::from_utf8_lossy(index).contains(&format!("<title>{build}</title>")));
    build
}

#[test]
fn fifty_rebuilds_never_publish_a_mix_of_two() {
    let mut site = Site::new();
    site.spec.index = Some("index.html".into());
    build(&site, 0);
    let kept = site.keep();
    std::thread::scope(|scope| {
        let site = &site;
        let (built, next) = channel::<()>();
        scope.spawn(move || {
            for number in 1..=REBUILDS {
                build(site, number);
                // Most builds are let through before the next one begins, some are overtaken by it.
                if number % 5 != 0 && next.recv_timeout(TIMEOUT).is_err() {
                    return;
                }
                while next.try_recv().is_ok() {}
            }
        });
        let mut latest = 0;
        let mut publications = 0;
        while latest < REBUILDS {
            let build = check(&kept.store(|_| true));
            assert!(build >= latest, "builds are published in their order");
            latest = build;
            publications += 1;
            let _ = built.send(());
        }
        assert!(publications > REBUILDS / 2, "{publications}");
    });
    assert!(!kept.events.try_iter().any(|event| {
        matches!(event, KeeperEvent::PublishedIncomplete { .. } | KeeperEvent::Failed { .. })
    }));
}
