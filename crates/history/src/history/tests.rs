//! A history over restarts, broken files and a wrong clock.

use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::sample::Figures;
use crate::view::{self, Range};

const START: u64 = 1_700_006_400;

fn settings(folder: Option<PathBuf>) -> Settings {
    Settings { folder, keep_seconds: 90 * 86_400, bytes_max: 1 << 28 }
}

fn sample(at: u64, requests: u64) -> Sample {
    let figures = Figures { requests, bytes: requests * 100, ..Figures::default() };
    let sites = [(Arc::from("http://a.test"), figures)].into();
    Sample { at, covered_ms: 10_000, sites, ..Sample::default() }
}

fn event(at: u64, name: &str) -> Event {
    Event { at, event: name.to_owned(), text: format!("{name} at {at}"), subject: None }
}

/// Requests of all sites in a range.
fn requests(history: &mut History, from: u64, to: u64) -> u64 {
    view::curves(history, None, Range { from, to }, to).total.requests
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_it_had_appended() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = || Some(folder.path().join("a/b"));
    let (mut at, mut appended) = (START, 0);
    for run in 0..5 {
        // Nothing is written when it is dropped, as when it is killed.
        let mut history = History::open(settings(path()), at);
        assert_eq!(history.take_notices(), []);
        for _ in 0..(run * 97 + 31) {
            history.append(sample(at, 3));
            (at, appended) = (at + 10, appended + 3);
        }
        history.append_event(event(at, "start"));
        for from in [START, START - 86_400 * 20] {
            assert_eq!(requests(&mut history, from, at + 10), appended, "{run}");
        }
    }
    let mut history = History::open(settings(path()), at);
    let range = Range { from: START - 86_400 * 20, to: at + 10 };
    let curves = view::curves(&mut history, Some("http://a.test"), range, at);
    let of_curve: f64 = curves.series.bytes.iter().flatten().sum();
    assert_eq!((curves.total.requests, of_curve > 0.0), (appended, true));
    assert_eq!(view::events(&mut history, range).len(), 5);
}

#[test]
fn another_process_with_the_same_folder_holds_its_history_in_memory() {
    let folder = tempfile::tempdir().expect("a folder");
    let first = History::open(settings(Some(folder.path().to_owned())), START);
    let mut second = History::open(settings(Some(folder.path().to_owned())), START);
    let notices = second.take_notices();
    assert!(notices.len() == 1 && notices[0].text.contains("another onehop writes there"), "{notices:?}");
    second.append(sample(START, 7));
    assert_eq!((requests(&mut second, START, START + 10), second.file_bytes()), (7, 0));
    assert_eq!(second.take_notices(), []);
    drop(first);
    second.append(sample(START + RETRY_SECONDS, 7));
    let notices = second.take_notices();
    assert!(notices.len() == 1 && notices[0].event == "history_recovered", "{notices:?}");
    assert!(second.file_bytes() > 0);
    drop(second);
    let mut third = History::open(settings(Some(folder.path().to_owned())), START);
    assert_eq!(requests(&mut third, START, START + 100), 14);
}

#[test]
fn a_folder_that_cannot_be_made_or_written_is_one_notice_and_no_loss() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("history");
    std::fs::write(&path, "a file").expect("written");
    let mut history = History::open(settings(Some(path.clone())), START);
    for number in 0..30 {
        history.append(sample(START + number * 10, 1));
    }
    let notices = history.take_notices();
    assert!(notices.len() == 1 && notices[0].event == "history_failed", "{notices:?}");
    assert_eq!(requests(&mut history, START, START + 1_000), 30);
    std::fs::remove_file(&path).expect("removed");
    history.append(sample(START + 400, 1));
    assert_eq!(history.take_notices().len(), 1);
    // It goes away while it is used.
    std::fs::remove_dir_all(&path).expect("removed");
    std::fs::write(&path, "a file").expect("written");
    history.append(sample(START + 410, 1));
    assert_eq!(history.take_notices().len(), 1);
    std::fs::remove_file(&path).expect("removed");
    history.append(sample(START + 500, 1));
    assert_eq!(history.take_notices().len(), 1);
    assert!(history.file_bytes() > 0);
}

#[test]
fn a_damaged_file_is_moved_aside_and_what_was_whole_of_it_is_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut history = History::open(settings(Some(folder.path().to_owned())), START);
    (0..20).for_each(|number| history.append(sample(START + number * 10, 1)));
    drop(history);
    let file = folder.path().join(format!("10s-{START}.hist"));
    let mut bytes = std::fs::read(&file).expect("there");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&file, &bytes).expect("written");
    let mut history = History::open(settings(Some(folder.path().to_owned())), START);
    let notices = history.take_notices();
    assert!(notices.len() == 1 && notices[0].event == "history_damaged", "{notices:?}");
    let aside = folder.path().join(format!("10s-{START}.hist.damaged"));
    assert_eq!(std::fs::read(aside).expect("kept"), bytes);
    let left = requests(&mut history, START, START + 200);
    assert!((5..15).contains(&left), "{left}");
    // What is no history at all.
    drop(history);
    std::fs::write(&file, "nonsense that is long enough").expect("written");
    let mut history = History::open(settings(Some(folder.path().to_owned())), START);
    assert_eq!(history.take_notices().len(), 1);
    history.append(sample(START + 300, 4));
    assert_eq!(requests(&mut history, START, START + 310), 4);
}

#[test]
fn what_the_power_cut_off_is_cut_off_without_a_word() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut history = History::open(settings(Some(folder.path().to_owned())), START);
    (0..4).for_each(|number| history.append(sample(START + number * 10, 1)));
    drop(history);
    let file = folder.path().join(format!("10s-{START}.hist"));
    let bytes = std::fs::read(&file).expect("there");
    std::fs::write(&file, &bytes[..bytes.len() - 3]).expect("written");
    let mut history = History::open(settings(Some(folder.path().to_owned())), START);
    history.append(sample(START + 40, 1));
    assert_eq!(history.take_notices(), []);
    assert_eq!(requests(&mut history, START, START + 50), 4);
}

#[test]
fn a_clock_that_was_set_back_is_one_notice_and_nothing_is_lost() {
    let mut history = History::open(settings(None), START);
    (0..400).for_each(|number| history.append(sample(START + number * 10, 1)));
    (0..100).for_each(|number| history.append(sample(START + 2_000 + number * 10, 1)));
    let notices = history.take_notices();
    assert!(notices.len() == 1 && notices[0].event == "clock_set_back", "{notices:?}");
    for to in [START + 4_000, START + 86_400 * 3] {
        assert_eq!(requests(&mut history, START, to), 500);
    }
}

#[test]
fn the_oldest_goes_where_there_are_too_many_bytes() {
    let folder = tempfile::tempdir().expect("a folder");
    let bytes_max = 200_000;
    let mut history =
        History::open(Settings { bytes_max, ..settings(Some(folder.path().to_owned())) }, START);
    for number in 0..10_000 {
        history.append(sample(START + number * 10, number));
        assert!(history.file_bytes() <= bytes_max, "{}", history.file_bytes());
    }
    let on_disk: u64 = std::fs::read_dir(folder.path())
        .expect("a folder")
        .flatten()
        .map(|file| file.metadata().expect("there").len())
        .sum();
    assert_eq!(on_disk, history.file_bytes());
    let last = START + 99_990;
    assert_eq!(requests(&mut history, last - 3_600, last), (9_639..9_999).sum::<u64>());
}

#[test]
fn events_that_come_too_fast_are_dropped_and_long_texts_are_cut() {
    let mut history = History::open(settings(None), START);
    let text = "\u{e9}".repeat(EVENT_TEXT_BYTES_MAX);
    for number in 0..10_000 {
        history.append_event(Event { text: text.clone(), ..event(START + number, "worker_exited") });
    }
    let kept = history.kinds[EVENTS].memory_bytes();
    assert!(kept <= EVENT_SEGMENT_BYTES_MAX + 1_000, "{kept}");
    let shown = view::events(&mut history, Range { from: START, to: START + 20_000 });
    assert_eq!((shown.len(), shown[0].text.len()), (500, EVENT_TEXT_BYTES_MAX));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    /// Restarts, outages and gaps at any place.
    #[test]
    fn every_level_counts_the_same_over_restarts(steps in proptest::collection::vec((1_u64..200, 0_u64..3_000, any::<bool>()), 1..12)) {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |at| History::open(settings(Some(folder.path().to_owned())), at);
        let (mut at, mut appended) = (START, 0);
        let mut history = open(at);
        for (samples, pause, is_restarted) in steps {
            for _ in 0..samples {
                history.append(sample(at, 1));
                (at, appended) = (at + 10, appended + 1);
            }
            at += pause - pause % 10;
            if is_restarted {
                drop(history);
                history = open(at);
            }
        }
        for level in 0..LEVEL_SECONDS.len() {
            let mut counted = 0;
            history.scan(level, 0, u64::MAX, &mut |record, names| {
                counted += record.sample(names).expect("whole").sites.values().map(|site| site.requests).sum::<u64>();
            });
            prop_assert_eq!(counted, appended, "level {}", level);
        }
    }
}
