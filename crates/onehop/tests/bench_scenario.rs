//! `onehop bench run` and `bench init`, the real program, on scenarios whose servers are onehop too.

use onehop_testkit::{Finished, Folder, Program};
use serde_json::Value;

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", finished.stdout, finished.stderr))
}

fn bench(words: &[&str]) -> Finished {
    Program::new(words).finish()
}

/// Two onehops of the folder `www`, and one case of them.
const SCENARIO: &str = r#"about = "A page from a folder"
rounds = 3
time = "300ms"
warm_up = "50ms"
cores = "shared"

[[server]]
name = "one"
command = "onehop serve {folder}/www --listen 127.0.0.1:{port}"

[[server]]
name = "other"
command = "onehop run --config {other.Onehopfile} --control {work}/control"
files = ["other.Onehopfile"]

[[case]]
name = "page"
connections = 2
body_bytes = 5
request = [{ path = "/" }]

[[case]]
name = "unchanged"
connections = 2
conditional = true
request = [{ path = "/" }]
"#;

fn scenario(more: &str) -> Folder {
    let folder = Folder::new();
    folder.write("www/index.html", "hello");
    folder.write("other.Onehopfile", "http://127.0.0.1:{port} {\n\troot {$SITE}\n\tfile_server\n}\n");
    folder.write("scenario.toml", format!("{SCENARIO}{more}"));
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_onehop"), folder.path().join("onehop")).unwrap();
    folder
}

/// `onehop bench run` on the scenario, with this onehop in PATH.
fn run_scenario(folder: &Folder, words: &[&str]) -> Finished {
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let place = folder.path().display().to_string();
    let words: Vec<&str> = ["bench", "run", &place].into_iter().chain(words.iter().copied()).collect();
    Program::new(words).with_env("PATH", path).with_env("SITE", folder.join("www")).finish()
}

#[test]
fn a_scenario_compares_its_first_server_with_the_others_in_each_case() {
    let folder = scenario("");
    let finished = run_scenario(&folder, &["--quiet", "--json", "-"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    let report = json(&finished);
    let cases = report["scenario"]["cases"].as_array().unwrap();
    let names: Vec<&str> = cases.iter().filter_map(|case| case["name"].as_str()).collect();
    assert_eq!(names, ["page", "unchanged"]);
    let comparison = &cases[1]["comparison"];
    assert_eq!(comparison["arms"], serde_json::json!(["one", "other"]));
    let samples = comparison["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 6);
    let statuses = &samples[0]["run"]["total"]["statuses"];
    assert!(statuses["304"].as_u64().is_some_and(|count| count > 0), "asked with a validator: {statuses:#}");
    assert!(report["versions"].as_array().is_some_and(|versions| !versions.is_empty()), "{report:#}");
}

#[test]
fn a_missed_bound_ends_with_1_and_stands_before_the_table() {
    let bound = |most: &str| {
        format!(
            "[[bound]]\ncase = \"page\"\nagainst = \"other\"\nfigure = \"memory_median_bytes\"\nat_most = {most}\n"
        )
    };
    let choice = ["--quiet", "--cases", "page"];
    let missed = run_scenario(&scenario(&bound("0.01")), &choice);
    assert_eq!(missed.code, Some(1), "{}{}", missed.stdout, missed.stderr);
    assert!(missed.stdout.contains("Missed: case page: Memory, median of"), "{}", missed.stdout);
    let held = run_scenario(&scenario(&bound("100.0")), &choice);
    assert_eq!(held.code, Some(0), "{}{}", held.stdout, held.stderr);
}

#[test]
fn what_a_scenario_needs_is_looked_for_before_anything_starts() {
    let folder = scenario("");
    folder.write("scenario.toml", SCENARIO.replace("onehop serve", "no-such-server serve"));
    let finished = run_scenario(&folder, &[]);
    assert_eq!(finished.code, Some(2), "{}", finished.stdout);
    assert!(finished.stderr.contains("not found in PATH: no-such-server"), "{}", finished.stderr);
    let unknown = run_scenario(&scenario(""), &["--cases", "pages"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("there is no case `pages` in the scenario; there are page, unchanged"),
        "{}",
        unknown.stderr
    );
    let listed = run_scenario(&scenario(""), &["--list"]);
    assert_eq!(listed.stdout, "A page from a folder\n\nservers: one, other\ncases:   page, unchanged\n");
}

#[test]
fn a_server_that_answers_something_else_is_not_measured() {
    let folder = scenario("");
    folder.write("scenario.toml", SCENARIO.replace("body_bytes = 5", "body_bytes = 6"));
    let finished = run_scenario(&folder, &["--quiet"]);
    assert_eq!(finished.code, Some(1));
    assert!(
        finished.stderr.contains("case `page`") && finished.stderr.contains("5 bytes instead of 6"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_case_that_fails_ends_no_other_one() {
    let folder = scenario("");
    let missing = "[[case]]\nname = \"missing\"\nrequest = [{ path = \"/no-such-page\" }]\n";
    folder.write(
        "scenario.toml",
        format!("ready_within = \"2s\"\n{}", SCENARIO.replacen("[[case]]", &format!("{missing}[[case]]"), 1)),
    );
    let finished = run_scenario(&folder, &["--quiet", "--cases", "missing,page", "--json", "-"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("case `missing`") && finished.stderr.contains("404"),
        "{}",
        finished.stderr
    );
    let report = json(&finished);
    let cases = report["scenario"]["cases"].as_array().unwrap();
    assert_eq!(cases.iter().filter_map(|case| case["name"].as_str()).collect::<Vec<_>>(), ["page"]);
    assert!(report["scenario"]["failure"].as_str().is_some_and(|why| why.contains("404")), "{report:#}");
}

#[test]
fn a_case_that_the_chosen_servers_do_not_compare_is_left_out() {
    let folder = scenario("");
    folder.write(
        "scenario.toml",
        SCENARIO.replace("conditional = true", "conditional = true\nservers = [\"one\", \"other\"]"),
    );
    let only = run_scenario(&folder, &["--quiet", "--servers", "one"]);
    assert_eq!(only.code, Some(2), "{}", only.stdout);
    assert!(only.stderr.contains("no chosen case compares"), "{}", only.stderr);
}

#[test]
fn the_scenario_that_init_writes_can_be_run_and_is_never_written_over() {
    let folder = Folder::new();
    let place = folder.path().join("new").display().to_string();
    let written = bench(&["bench", "init", &place]);
    assert_eq!(written.code, Some(0), "{}", written.stderr);
    assert_eq!(bench(&["bench", "run", &place, "--list"]).code, Some(0));
    let again = bench(&["bench", "init", &place]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("is there already"), "{}", again.stderr);
}
