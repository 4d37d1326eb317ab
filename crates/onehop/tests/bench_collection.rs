//! The example's collection, asked of the example as the real program serves it. Needs Node.js.

use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_bench::collection::{self, Collection, CollectionRun, ReadOptions};
use onehop_load::plan::Timeouts;
use onehop_load::tls;
use onehop_load::{Observer, Progress};
use onehop_testkit::{Folder, Onehop, Program};

/// Rounds, as in the example's README.
const ITERATIONS: u64 = 1000;

fn example(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/blog").join(path)
}

/// The example's files, in a folder of its own and at a free port.
fn site() -> Folder {
    let read = |path: &str| std::fs::read_to_string(example(path)).expect("a file of the example");
    let folder = Folder::new();
    for path in ["server.mjs", "dist/index.html"] {
        folder.write(path, read(path));
    }
    let text = read("Onehopfile");
    assert!(text.contains("http://localhost:8080 {"));
    let text = text.replace("http://localhost:8080 {", "http://127.0.0.1:0 {");
    folder.write("Onehopfile", format!("{{\n\tadmin off\n}}\n{text}"));
    folder
}

/// The example's collection with these variables, its server found.
fn collection_of(onehop: &Onehop, more: &[(&str, &str)]) -> Collection {
    let mut variables = vec![("URL".to_owned(), format!("http://{}", onehop.address))];
    variables.extend(more.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    let options = ReadOptions { variables, environment: None };
    let mut collection =
        collection::read(&example("blog.postman_collection.json"), &options).expect("a collection");
    collection::reach(&mut collection, &tls::Client::default(), Duration::from_secs(5)).expect("a server");
    collection
}

/// Remembers how far it was told that the run is.
#[derive(Default)]
struct Watching {
    stages: Vec<String>,
    last: Progress,
}

impl Observer for Watching {
    fn stage(&mut self, words: &str) {
        self.stages.push(words.to_owned());
    }

    fn progress(&mut self, progress: &Progress) {
        assert!(progress.share >= self.last.share && progress.good >= self.last.good);
        self.last = *progress;
    }
}

fn complaints(run: &CollectionRun) -> Vec<(&str, u64)> {
    let complaints = run.requests.iter().flat_map(|request| &request.complaints);
    complaints.map(|(text, count)| (text.as_str(), *count)).collect()
}

#[test]
fn five_routes_a_thousand_times_are_all_as_expected() {
    let folder = site();
    let onehop = Onehop::start_in(folder.path());
    let collection = collection_of(&onehop, &[]);
    assert_eq!(collection.notes, [""; 0]);
    let mut watching = Watching::default();
    let run = collection::run(&collection, ITERATIONS, Timeouts::default(), &mut watching);

    assert_eq!(complaints(&run), []);
    assert_eq!((run.iterations, run.is_interrupted), (ITERATIONS, false));
    assert_eq!(run.caveats, [""; 0]);
    let names: Vec<&str> = run.requests.iter().map(|request| request.name.as_str()).collect();
    assert_eq!(names, ["Front page", "Blogs / All", "Blogs / One", "Version", "Not found"]);
    let paths = ["/", "/blogs", "/blogs/001", "/version", "/not-found"];
    for (request, path) in run.requests.iter().zip(paths) {
        assert_eq!(request.line, format!("GET http://{}{path}", onehop.address));
        assert_eq!((request.passed, request.failed), (ITERATIONS, 0), "{}", request.name);
        assert_eq!(request.latency.count(), ITERATIONS);
        let shares = [0.0, 0.5, 0.9, 0.95, 0.99, 1.0].map(|share| request.latency.at(share));
        assert!(shares.is_sorted() && shares[0] > Duration::ZERO, "{shares:?}");
        assert!(
            request.latency.min() <= request.latency.mean()
                && request.latency.mean() <= request.latency.max()
        );
    }
    // One request is under way at a time: together they cannot have taken longer than the run. The histogram
    // may be off by a thousandth.
    assert_eq!(run.latency.count(), 5 * ITERATIONS);
    let sum = run.latency.mean().as_secs_f64() * run.latency.count() as f64;
    assert!(run.elapsed.as_secs_f64() >= sum * 0.999, "{:?} is less than {sum} s", run.elapsed);
    assert_eq!((watching.last.share, watching.last.good, watching.last.bad), (Some(1.0), 5 * ITERATIONS, 0));
    assert_eq!(watching.stages, ["A small blog: 5 requests, 1000 times"]);
}

#[test]
fn an_answer_with_another_status_is_no_success_and_says_what_came() {
    let folder = site();
    let onehop = Onehop::start_in(folder.path());
    let collection = collection_of(&onehop, &[("BLOG_ID", "999")]);
    let run = collection::run(&collection, 10, Timeouts::default(), &mut Watching::default());
    assert_eq!(complaints(&run), [("status 404 instead of 200", 10)]);
    let one = &run.requests[2];
    assert_eq!((one.passed, one.failed, one.latency.count()), (0, 10, 0));
    assert_eq!(run.latency.count(), 40);
}

#[test]
fn the_command_says_by_its_exit_code_whether_every_answer_was_expected() {
    let folder = site();
    let onehop = Onehop::start_in(folder.path());
    let file = example("blog.postman_collection.json").to_string_lossy().into_owned();
    let url = format!("URL=http://{}", onehop.address);
    let bench = |more: &[&str]| {
        let usual = ["bench", "collection", &file, "-n", "20", "--var", &url, "--quiet"];
        Program::new(usual.iter().chain(more)).finish()
    };
    let good = bench(&[]);
    assert_eq!(good.code, Some(0), "{}", good.stderr);
    assert!(good.stdout.contains("100 passed, 0 failed"), "{}", good.stdout);
    let other = bench(&["--var", "BLOG_ID=999"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stdout.contains("status 404 instead of 200"), "{}", other.stdout);
    let unknown = bench(&["--environment", "/nowhere.json"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.stderr.contains("/nowhere.json: it cannot be read"), "{}", unknown.stderr);
}
