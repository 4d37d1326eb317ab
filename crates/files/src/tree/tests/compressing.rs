use std::sync::atomic::{AtomicBool, Ordering};

use super::super::compress::{Compression, compress};
use super::super::compressor_process::{CompressorPool, CompressorProgram};
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
    let compressors = CompressorPool::new(None, Arc::new(|event| panic!("{event:?}")));
    let (spec, budget) = (&site.spec, &site.budget);
    compress(&Compression { store, spec, budget, compressors: &compressors, threads: 2, cancelled }, publish);
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

/// Compresses with a program on one thread; what it published, and what was heard.
fn compressed_by(
    site: &Site,
    store: &Arc<Store>,
    program: &[&str],
    cancelled: &AtomicBool,
) -> (Arc<Store>, Vec<KeeperEvent>) {
    let program = CompressorProgram {
        path: program[0].into(),
        arguments: program[1..].iter().map(Into::into).collect(),
    };
    let (tell, events) = channel();
    let compressors = CompressorPool::new(Some(program), Arc::new(move |event| drop(tell.send(event))));
    let (spec, budget) = (&site.spec, &site.budget);
    let mut last = Arc::clone(store);
    let wanted = Compression { store, spec, budget, compressors: &compressors, threads: 1, cancelled };
    compress(&wanted, &mut |store| last = store);
    (last, events.try_iter().collect())
}

fn six_scripts() -> (Site, Arc<Store>) {
    let site = site();
    for number in 0..6 {
        site.write(&format!("{number}.js"), text(9_000 + number as usize, number));
    }
    let store = Arc::new(site.read().expect("a store"));
    (site, store)
}

#[test]
fn a_program_that_cannot_be_started_is_done_without_and_that_is_said_once() {
    let (site, first) = six_scripts();
    let (last, events) = compressed_by(&site, &first, &["/nonexistent/onehop"], &AtomicBool::new(false));
    assert!(matches!(&events[..], [KeeperEvent::CompressorMissing { .. }]), "{events:?}");
    assert!(
        last.files.iter().all(|file| file.gzip.is_some() && file.brotli.is_some() && file.zstd.is_some())
    );
}

#[test]
fn a_program_that_ends_or_answers_nonsense_costs_a_file_its_forms_and_is_given_up_in_the_end() {
    for (program, cause) in [("/bin/false", "exit status: 1"), ("/bin/cat", "not smaller")] {
        let (site, first) = six_scripts();
        let (last, events) = compressed_by(&site, &first, &[program], &AtomicBool::new(false));
        let lost: Vec<_> = events
            .iter()
            .map(|event| match event {
                KeeperEvent::CompressorLost { path, reason, goes_on } if reason.contains(cause) => {
                    (path.as_str(), *goes_on)
                }
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(lost, [("0.js", true), ("1.js", true), ("2.js", true), ("3.js", false)]);
        for (number, file) in last.files.iter().enumerate() {
            assert!(file.gzip.is_none() && file.brotli.is_none() && file.zstd.is_none());
            assert_eq!(file.settled, number < 4, "the rest may be tried again");
        }
    }
}

#[test]
fn a_program_that_takes_nothing_is_ended_when_the_work_is_cancelled() {
    let site = site();
    // More than a pipe holds.
    site.write("app.js", text(300_000, 1));
    let first = Arc::new(site.read().expect("a store"));
    let cancelled = AtomicBool::new(false);
    // By its argument it is found among the processes.
    let seconds = format!("100000.{}", std::process::id());
    let runs = || {
        fs::read_dir("/proc").expect("/proc").flatten().any(|entry| {
            let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
            line.split(|byte| *byte == 0).any(|argument| argument == seconds.as_bytes())
        })
    };
    std::thread::scope(|scope| {
        let work = scope.spawn(|| compressed_by(&site, &first, &["/bin/sleep", &seconds], &cancelled));
        let begun = Instant::now();
        while !runs() {
            assert!(begun.elapsed() < TIMEOUT, "it was never started");
            std::thread::yield_now();
        }
        cancelled.store(true, Ordering::Relaxed);
        let (last, events) = work.join().expect("no panic");
        assert!(events.is_empty() && Arc::ptr_eq(&last, &first), "{events:?}");
    });
    assert!(!runs());
}
