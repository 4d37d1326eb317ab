//! Fills a folder with 90 simulated days of 50 busy sites, then measures its size, a start, and every view.
//!
//! ```sh
//! cargo run --release -p onehop-history --example fill -- /tmp/history [SITES] [DAYS]
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use onehop_history::view::{self, Range};
use onehop_history::{AppFigures, Figures, History, ProcessFigures, Sample, Settings};
use onehop_metrics::histogram::Snapshot;

/// What the configuration has by default.
const BYTES: u64 = 512 << 20;

/// Midnight.
const END: u64 = 1_790_035_200;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().expect("a folder"));
    let mut number = |default: u64| arguments.next().map_or(default, |text| text.parse().expect("a number"));
    let (sites, days) = (number(50), number(90));
    let settings = Settings { folder: Some(folder), keep_seconds: 90 * 86_400, bytes_max: BYTES };
    let begun = Instant::now();
    let mut history = History::open(settings.clone(), END - days * 86_400);
    let names: Vec<Arc<str>> = (0..sites).map(|site| format!("https://site-{site}.example").into()).collect();
    let mut random = fastrand::Rng::with_seed(7);
    // The finest level keeps a day: before that, a sample of five minutes leaves what thirty of ten seconds do.
    let older = (0..(days - 1) * 288).map(|number| (END - days * 86_400 + number * 300, 30));
    for (at, tens) in older.chain((0..8_640).map(|number| (END - 86_400 + number * 10, 1))) {
        history.append(sample(at, tens, &names, &mut random));
    }
    println!("filled in {:.1?}: {} notices", begun.elapsed(), history.take_notices().len());
    println!("size {:.1} MiB of {} MiB", history.file_bytes() as f64 / 1_048_576.0, BYTES / 1_048_576);
    drop(history);
    let begun = Instant::now();
    let mut history = History::open(settings, END);
    println!("start {:.1?}", begun.elapsed());
    for (name, seconds) in [
        ("hour", 3_600),
        ("8 hours", 28_800),
        ("day", 86_400),
        ("week", 604_800),
        ("30 days", 2_592_000),
        ("90 days", 7_776_000),
    ] {
        let range = Range { from: END - seconds, to: END };
        measure(&format!("{name}, all sites"), || {
            view::curves(&mut history, None, range, END).total.requests
        });
        measure(&format!("{name}, one site"), || {
            view::curves(&mut history, Some(&names[0]), range, END).total.requests
        });
        measure(&format!("{name}, list of sites"), || {
            view::sites(&mut history, range, END).sites.len() as u64
        });
        measure(&format!("{name}, applications"), || view::apps(&mut history, range, END).apps.len() as u64);
        measure(&format!("{name}, events"), || view::events(&mut history, range).len() as u64);
    }
}

fn measure(name: &str, mut view: impl FnMut() -> u64) {
    let mut times: Vec<_> =
        (0..5).map(|_| (Instant::now(), view())).map(|(begun, value)| (begun.elapsed(), value)).collect();
    times.sort();
    println!("{name}: median {:.1?}, longest {:.1?} ({})", times[2].0, times[4].0, times[2].1);
}

/// Some 300 requests of each site in ten seconds, around a few milliseconds, and half of them from memory.
fn sample(at: u64, tens: u64, names: &[Arc<str>], random: &mut fastrand::Rng) -> Sample {
    let mut sites = std::collections::BTreeMap::new();
    for name in names {
        // Of five minutes a tenth is drawn, as far as its spread goes.
        let weight = tens.div_ceil(3);
        let requests = random.u64(200..400) * tens / weight;
        let near = |random: &mut fastrand::Rng, middle: u16, width: u16| {
            middle + (random.u16(0..width) + random.u16(0..width) + random.u16(0..width)) / 3
        };
        let buckets = (0..requests).map(|number| match number % 20 {
            0 => (near(random, 480, 90), weight),
            1..10 => (near(random, 360, 60), weight),
            _ => (near(random, 120, 30), weight),
        });
        let requests = requests * weight;
        let durations = Snapshot::new(buckets.collect::<Vec<_>>(), requests * 2_000_000);
        sites.insert(
            Arc::clone(name),
            Figures {
                requests,
                errors: requests / 100,
                bytes: requests * 8_000,
                durations,
                ..Figures::default()
            },
        );
    }
    let app = AppFigures {
        cpu_micros: 1_000_000,
        resident_bytes: 90 << 20,
        lag_micros: 900,
        in_flight: 3,
        queued: 0,
    };
    let process = ProcessFigures { cpu_micros: 2_000_000, resident_bytes: 40 << 20, connections: 500 };
    Sample { at, covered_ms: tens * 10_000, process, sites, apps: [(Arc::from("api"), app)].into() }
}
