use std::sync::atomic::{AtomicBool, Ordering};

use super::super::compress::{Compression, compress};
use super::super::worker::Crew;
use super::*;

fn compressed(site: &Site, store: &Arc<Store>) -> Vec<Arc<Store>> {
    let mut published = Vec::new();
    let never = AtomicBool::new(false);
    compress_until(site, store, &never, &mut |store| published.push(store));
    published
}

fn compress_until(
    site: &Site,
    store: &Arc<Store>,
    cancelled: &AtomicBool,
    publish: &mut dyn FnMut(Arc<Store>),
) {
    let crew = Crew::new(None, Arc::new(|event| panic!("{event:?}")));
    let (spec, budget) = (&site.spec, &site.budget);
    compress(&Compression { store, spec, budget, crew: &crew, threads: 2, cancelled }, publish);
}

fn site() -> Site {
    let mut site = Site::new();
    site.spec.compress = EVERY_ENCODING.to_vec();
    site
}

#[test]
fn every_file_that_shrinks_gets_every_form() {
    let site = site();
    site.write("index.html", text(3_000, 1));
    site.write("app.js", text(30_000, 2));
    site.write("tiny.js", "let x;");
    site.write("photo.png", text(30_000, 3));
    let first = Arc::new(site.read().expect("a store"));
    let last = compressed(&site, &first).pop().expect("published");
    let forms = |path| {
        let file = file(&last, path).expect("listed");
        EVERY_ENCODING.map(|encoding| file.form(Some(encoding)).map(|form| form.etag.clone()))
    };
    for path in ["index.html", "app.js"] {
        let mut tags: Vec<_> = forms(path).into_iter().map(|tag| tag.expect("a form")).collect();
        tags.push(file(&last, path).and_then(|file| file.form(None)).expect("bytes").etag.clone());
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), 4, "each form has a tag of its own: {tags:?}");
    }
    assert_eq!(forms("tiny.js"), [None, None, None]);
    assert_eq!(forms("photo.png"), [None, None, None]);
    assert!(last.files.iter().all(|file| file.settled));
    let sum: usize = last
        .files
        .iter()
        .flat_map(|file| {
            EVERY_ENCODING.map(|encoding| file.form(Some(encoding)).map(|form| form.bytes.len()))
        })
        .flatten()
        .sum();
    assert_eq!(last.totals.compressed_bytes, sum as u64);
    assert_eq!(site.budget.left(), (1 << 30) - last.totals.stored_bytes - sum as u64);
    assert!(compressed(&site, &last).is_empty(), "nothing is left to do");
}

#[test]
fn forms_that_are_not_asked_for_are_not_made() {
    let mut site = site();
    site.spec.compress = vec![Encoding::Gzip];
    site.write("app.js", text(30_000, 2));
    let first = Arc::new(site.read().expect("a store"));
    let last = compressed(&site, &first).pop().expect("published");
    let file = file(&last, "app.js").expect("listed");
    assert!(file.gzip.is_some() && file.brotli.is_none() && file.zstd.is_none());
}

#[test]
fn nothing_is_published_once_it_is_cancelled() {
    let site = site();
    site.write("app.js", text(30_000, 2));
    let first = Arc::new(site.read().expect("a store"));
    let cancelled = AtomicBool::new(true);
    compress_until(&site, &first, &cancelled, &mut |_| panic!("published"));
    for number in 0..100 {
        site.write(&format!("{number}.js"), text(200_000, number));
    }
    let many = Arc::new(site.read().expect("a store"));
    let cancelled = AtomicBool::new(false);
    let mut published = 0;
    compress_until(&site, &many, &cancelled, &mut |_| {
        published += 1;
        cancelled.store(true, Ordering::Relaxed);
    });
    assert_eq!(published, 1);
}

#[test]
fn what_a_first_visit_needs_comes_first() {
    let mut site = site();
    site.spec.index = Some("start.html".into());
    site.write("a.txt", text(300, 1));
    site.write("b.html", text(2_000, 1));
    site.write("c.css", text(900, 1));
    site.write("d.js", text(800, 1));
    site.write("start.html", text(9_000, 1));
    let store = site.read().expect("a store");
    let order: Vec<_> = super::super::compress::in_order(&store, &site.spec)
        .into_iter()
        .map(|number| String::from_utf8_lossy(&store.files[number as usize].path).into_owned())
        .collect();
    assert_eq!(order, ["start.html", "b.html", "d.js", "c.css", "a.txt"]);
}

#[test]
fn forms_beyond_the_budget_are_dropped_and_not_tried_again() {
    let mut site = site();
    site.budget = MemoryBudget::new(30_100);
    site.write("app.js", text(30_000, 2));
    let first = Arc::new(site.read().expect("a store"));
    let last = compressed(&site, &first).pop().expect("published");
    let file = file(&last, "app.js").expect("listed");
    assert!(file.settled && file.gzip.is_none() && file.brotli.is_none() && file.zstd.is_none());
    assert_eq!(site.budget.left(), 100);
}
