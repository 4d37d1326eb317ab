//! Access logs: a disk without room, a reader that is slow, rotation, and what stands in a line.

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use onehop_testkit::{Client, Folder, Onehop, Program, wait_for};
use rustix::fs::OFlags;
use rustix::process::Signal;
use serde_json::Value;

fn site(output: &str) -> String {
    format!(
        "{{\n\tadmin 127.0.0.1:0\n}}\nhttp://127.0.0.1:0 {{\n\tlog {{\n\t\toutput {output}\n\t}}\n\trespond hello\n}}\n"
    )
}

/// A folder, a log in it, and a server that writes there; `options` is what the block of `output file` holds.
fn logging(log: &str, options: &str) -> (Folder, PathBuf, Onehop) {
    let folder = Folder::new();
    let log = folder.join(log);
    let onehop = serve(&folder, &log, options);
    (folder, log, onehop)
}

fn serve(folder: &Folder, log: &Path, options: &str) -> Onehop {
    let block = if options.is_empty() { String::new() } else { format!(" {{\n\t\t\t{options}\n\t\t}}") };
    folder.write("Onehopfile", site(&format!("file {}{block}", log.display())));
    Onehop::start_in(folder.path())
}

/// The same with a pipe as its log, and the end of it that is read.
fn logging_into_a_pipe() -> (Folder, PathBuf, Onehop, File) {
    let folder = Folder::new();
    let log = folder.join("log.fifo");
    assert!(std::process::Command::new("mkfifo").arg(&log).status().expect("mkfifo").success());
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).expect("a flag");
    let reader = File::options().read(true).custom_flags(flags).open(&log).expect("the reader's end");
    let onehop = serve(&folder, &log, "");
    (folder, log, onehop, reader)
}

fn ask(client: &mut Client, path: &str) {
    assert_eq!(client.get(path).status, 200);
}

/// A target so long that a few hundred lines fill what there is to fill.
fn long(number: usize) -> String {
    format!("/{number:07}{}", "x".repeat(6000))
}

/// Every line of a log, each of them whole.
fn lines(text: &str) -> Vec<Value> {
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is cut off");
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

fn dropped(onehop: &Onehop) -> usize {
    let metrics = onehop.metrics();
    let line = metrics
        .lines()
        .find(|line| line.starts_with("onehop_log_lines_dropped_total "))
        .expect("the counter");
    line.rsplit(' ').next().and_then(|count| count.parse().ok()).expect("a number")
}

/// The warnings about a log, and the lines that they report as lost in the end.
fn warnings(onehop: &Onehop, log: &Path) -> (Vec<String>, usize) {
    let events = onehop.process.events();
    let messages = events.iter().filter(|event| event["event"] == "warning");
    let messages = messages.filter_map(|event| event["message"].as_str());
    let messages: Vec<String> =
        messages.filter(|message| message.contains(&log.display().to_string())).map(str::to_owned).collect();
    let count = |message: &String| {
        let (before, _) = message.split_once(" lines were lost")?;
        before.rsplit(' ').next()?.parse::<usize>().ok()
    };
    let lost = messages.iter().filter_map(count).sum();
    (messages, lost)
}

/// A folder with two logs of three requests, complete.
fn logged_as_apache() -> Folder {
    let folder = Folder::new();
    folder.write(
        "Onehopfile",
        "http://127.0.0.1:0 {\n\tlog {\n\t\toutput file common.log\n\t\tformat common\n\t}\n\
         \tlog {\n\t\toutput file combined.log\n\t\tformat combined\n\t}\n\trespond /empty 204\n\trespond hello\n}\n",
    );
    let mut onehop = Onehop::start_in(folder.path());
    let mut client = onehop.connect();
    for request in [
        "GET /a?b=%22c HTTP/1.1\r\nHost: 127.0.0.1\r\nReferer: http://a/\"x\r\nUser-Agent: curl/8 \\ \u{e9}\r\n\r\n",
        "DELETE /empty HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: secret=1\r\nAuthorization: Basic secret\r\n\r\n",
        "nonsense\r\n\r\n",
    ] {
        client.send(request.as_bytes());
        client.read();
    }
    onehop.process.signal(Signal::TERM);
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
    folder
}

#[test]
fn lines_may_have_the_common_and_the_combined_format() {
    let folder = logged_as_apache();
    let read = |name: &str| {
        let text = std::fs::read_to_string(folder.join(name)).expect("the log");
        let without_time = |line: &str| {
            let (before, rest) = line.split_once('[').expect("a time");
            let (time, after) = rest.split_once(']').expect("its end");
            assert!(time.len() == 26 && time.ends_with(" +0000"), "{time}");
            format!("{before}[TIME]{after}")
        };
        text.lines().map(without_time).collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(format!("{}\n\n{}", read("common.log"), read("combined.log")), @r#"
    127.0.0.1 - - [TIME] "GET /a?b=%22c HTTP/1.1" 200 5
    127.0.0.1 - - [TIME] "DELETE /empty HTTP/1.1" 204 -
    127.0.0.1 - - [TIME] "-" 400 38

    127.0.0.1 - - [TIME] "GET /a?b=%22c HTTP/1.1" 200 5 "http://a/\x22x" "curl/8 \x5C \xC3\xA9"
    127.0.0.1 - - [TIME] "DELETE /empty HTTP/1.1" 204 - "-" "-"
    127.0.0.1 - - [TIME] "-" 400 38 "-" "-"
    "#);
}

#[test]
#[ignore = "needs GoAccess: cargo xtask suites --ci runs it"]
fn goaccess_reads_every_line_of_the_combined_format() {
    let folder = logged_as_apache();
    let report = folder.join("report.json");
    let done = std::process::Command::new("goaccess")
        .arg(folder.join("combined.log"))
        .args(["--log-format=COMBINED", "--no-global-config", "--no-progress", "--no-parsing-spinner", "-o"])
        .arg(&report)
        .output()
        .expect("goaccess");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let report: Value = serde_json::from_slice(&std::fs::read(report).expect("its report")).expect("JSON");
    let general = &report["general"];
    assert_eq!(
        (&general["valid_requests"], &general["failed_requests"]),
        (&3.into(), &0.into()),
        "{general}"
    );
}

#[test]
fn a_full_log_disk_costs_whole_lines_that_are_counted_and_reported_once() {
    let mounts = std::process::Command::new("unshare").args(["-rm", "true"]).status();
    if !mounts.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may make no namespaces (unshare -rm)");
        return;
    }
    let folder = Folder::new();
    folder.write("small/placeholder", "");
    let log = folder.join("small/access.log");
    folder.write("Onehopfile", site(&format!("file {}", log.display())));
    let mount = "mount -t tmpfs -o size=1m none small && dd if=/dev/zero of=small/filler bs=1k count=900 2>/dev/null && exec \"$0\" \"$@\"";
    let onehop = Program::new(["run", "--log", "json"])
        .inside(folder.path())
        .control_in(folder.path())
        .through(&["unshare", "-rm", "sh", "-c", mount])
        .serve();
    // The disk as the server sees it.
    let inside =
        |path: &Path| PathBuf::from(format!("/proc/{}/root{}", onehop.process.pid(), path.display()));
    let mut client = onehop.connect();
    let mut asked = 0;
    wait_for("lines that are dropped", || {
        ask(&mut client, &long(asked));
        asked += 1;
        (asked >= 100 && dropped(&onehop) > 0).then_some(())
    });
    let (messages, _) = warnings(&onehop, &log);
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains("No space left on device"), "{messages:?}");
    let text = std::fs::read_to_string(inside(&log)).expect("the log");
    assert!(!lines(&text).is_empty());

    std::fs::remove_file(inside(&folder.join("small/filler"))).expect("removed");
    wait_for("the report that it is written again", || {
        ask(&mut client, "/again");
        asked += 1;
        (warnings(&onehop, &log).0.len() == 2).then_some(())
    });
    let count = || lines(&std::fs::read_to_string(inside(&log)).expect("the log")).len();
    wait_for("every line, written or counted", || (count() + dropped(&onehop) == asked).then_some(()));
    let (messages, lost) = warnings(&onehop, &log);
    assert_eq!((messages.len(), lost), (2, dropped(&onehop)), "{messages:?}");
}

#[test]
fn a_log_that_is_slow_at_a_stop_is_waited_for_and_what_is_lost_is_counted() {
    let (_folder, log, mut onehop, mut reader) = logging_into_a_pipe();
    rustix::fs::fcntl_setfl(&reader, OFlags::empty()).expect("blocking from now on");
    let mut client = onehop.connect();
    let mut asked = 0;
    // Until pipe and queue are full.
    wait_for("lines that are dropped", || {
        for _ in 0..20 {
            ask(&mut client, &long(asked));
            asked += 1;
        }
        (dropped(&onehop) > 0).then_some(())
    });
    onehop.process.signal(Signal::TERM);
    onehop.process.wait_for_event("stopping");
    let mut text = String::new();
    reader.read_to_string(&mut text).expect("UTF-8");
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
    onehop.process.wait_for_event("stopped");
    let (messages, lost) = warnings(&onehop, &log);
    assert!(lost > 0, "{messages:?}");
    assert_eq!(lines(&text).len() + lost, asked, "{messages:?}");
}

#[test]
fn a_log_that_nothing_reads_holds_up_a_stop_for_a_bounded_time_and_its_lines_are_counted() {
    let (_folder, log, mut onehop, mut reader) = logging_into_a_pipe();
    let mut client = onehop.connect();
    (0..100).for_each(|number| ask(&mut client, &long(number)));
    onehop.process.signal(Signal::TERM);
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
    onehop.process.wait_for_event("stopped");
    let mut text = Vec::new();
    // All that the pipe took; the last line of it may be cut, and is counted as lost.
    reader.read_to_end(&mut text).expect("what is in the pipe");
    let whole = text.iter().filter(|byte| **byte == b'\n').count();
    let (messages, lost) = warnings(&onehop, &log);
    assert!(whole < 100 && whole + lost >= 100, "{whole} lines were written: {messages:?}");
}

/// The rotated files of `access.log` in a folder, oldest first.
fn rotated(folder: &Path) -> Vec<PathBuf> {
    let entries = folder.read_dir().expect("a folder").flatten().map(|entry| entry.path());
    let is_rotated =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("access-2"));
    let mut all: Vec<PathBuf> = entries.filter(is_rotated).collect();
    all.sort();
    all
}

fn text_of(path: &Path) -> String {
    if path.extension().is_some_and(|extension| extension == "gz") {
        let unpacked = std::process::Command::new("gzip").arg("-dc").arg(path).output().expect("gzip");
        assert!(unpacked.status.success(), "{}", path.display());
        return String::from_utf8(unpacked.stdout).expect("UTF-8");
    }
    // Between its rotation and the next line there is none.
    std::fs::read_to_string(path).unwrap_or_default()
}

#[test]
fn a_log_is_rotated_at_its_size_and_no_line_is_lost() {
    let (folder, log, onehop) = logging("logs/access.log", "roll_size 1MiB");
    let mut client = onehop.connect();
    let asked = 600;
    (0..asked).for_each(|number| ask(&mut client, &long(number)));
    let count = wait_for("every line, in files of which the old ones are compressed", || {
        let old = rotated(&folder.join("logs"));
        let settled = old.iter().all(|path| path.extension().is_some_and(|extension| extension == "gz"));
        if old.len() < 3 || !settled {
            return None;
        }
        let texts = old.iter().chain([&log]).map(|path| text_of(path)).collect::<Vec<_>>();
        let all: Vec<Value> = texts.iter().flat_map(|text| lines(text)).collect();
        (all.len() == asked).then_some((texts, all))
    });
    let (texts, all) = count;
    assert!(texts.iter().all(|text| text.len() <= 1024 * 1024));
    for (number, line) in all.iter().enumerate() {
        assert_eq!(line["request"]["uri"], long(number), "lines stand in their order");
    }
    for path in rotated(&folder.join("logs")) {
        assert_eq!(path.metadata().expect("a file").mode() & 0o777, 0o600);
    }
}

#[test]
fn rotated_logs_are_kept_in_the_number_and_for_the_time_that_the_file_says() {
    let folder = Folder::new();
    let log = folder.join("logs/access.log");
    let kept = folder.write("logs/access-notes.log", "not a rotated log");
    let old = folder.write("logs/access-2020-01-01T00-00-00.000.log", "of a former year");
    let long_ago = SystemTime::now() - Duration::from_secs(3 * 86_400);
    File::options().write(true).open(&old).expect("opened").set_modified(long_ago).expect("set");
    let options = "roll_size 1mb\n\t\t\troll_keep 2\n\t\t\troll_keep_for 48h\n\t\t\troll_uncompressed";
    let onehop = serve(&folder, &log, options);
    wait_for("the one that is too old to be removed", || (!old.exists()).then_some(()));
    let mut client = onehop.connect();
    (0..900).for_each(|number| ask(&mut client, &long(number)));
    wait_for("the last line", || text_of(&log).contains(&long(899)).then_some(()));
    wait_for("only two rotated logs", || (rotated(&folder.join("logs")).len() == 2).then_some(()));
    let oldest = text_of(&rotated(&folder.join("logs"))[0]);
    assert!(!oldest.contains(&long(0)), "the oldest ones go first");
    assert!(kept.exists());
}

#[test]
fn sigusr1_reopens_logs_and_touches_nothing_else() {
    let (folder, log, onehop) = logging("access.log", "");
    let mut client = onehop.connect();
    ask(&mut client, "/before");
    wait_for("the first line", || text_of(&log).contains("/before").then_some(()));
    let moved = folder.join("access.log.1");
    std::fs::rename(&log, &moved).expect("renamed");
    // A configuration that a reload would take, and would refuse.
    folder.write("Onehopfile", "this is no configuration {\n");
    onehop.process.signal(Signal::USR1);
    wait_for("the new file", || log.exists().then_some(()));
    // On the connection from before.
    ask(&mut client, "/after");
    wait_for("the line in the new file", || text_of(&log).contains("/after").then_some(()));
    assert!(text_of(&moved).contains("/before") && !text_of(&moved).contains("/after"));
    let quiet =
        |event: &Value| !["reloaded", "reload_failed", "stopping"].map(Value::from).contains(&event["event"]);
    assert!(onehop.process.events().iter().all(quiet));
    assert_eq!(log.metadata().expect("a file").mode() & 0o777, 0o600);
}

#[test]
fn a_reload_opens_a_log_anew_too_and_loses_no_line() {
    let (folder, log, onehop) = logging("access.log", "");
    let mut client = onehop.connect();
    ask(&mut client, "/before");
    wait_for("the first line", || text_of(&log).contains("/before").then_some(()));
    std::fs::rename(&log, folder.join("access.log.1")).expect("renamed");
    onehop.process.signal(Signal::HUP);
    onehop.process.wait_for_event("reloaded");
    ask(&mut client, "/after");
    wait_for("the line in the new file", || (log.exists() && text_of(&log).contains("/after")).then_some(()));
}

#[test]
fn control_characters_of_both_ranges_are_escaped_in_a_line() {
    let (_folder, log, onehop) = logging("access.log", "");
    let mut stream = std::net::TcpStream::connect(&onehop.address).expect("connected");
    // U+009B, which some terminals take for the beginning of a command, and U+0085, which ends a line for some readers.
    let request =
        "GET /c1 HTTP/1.1\r\nHost: a\r\nUser-Agent: a\u{9b}31mb\u{85}c\u{e4}\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).expect("sent");
    stream.read_to_end(&mut Vec::new()).expect("an answer");
    let text = wait_for("the line", || Some(text_of(&log)).filter(|text| text.contains("/c1")));
    assert!(text.contains("a\\u009b31mb\\u0085c\u{e4}"), "{text}");
    assert_eq!(lines(&text)[0]["request"]["headers"]["User-Agent"][0], "a\u{9b}31mb\u{85}c\u{e4}");
}

/// Serves a site, asks these paths one after the other, and stops: every line is written then.
fn served(site: &str, paths: &[&str]) -> Folder {
    let folder = Folder::new();
    folder.write("Onehopfile", format!("http://127.0.0.1:0 {{\n{site}\n}}\n"));
    let mut onehop = Onehop::start_in(folder.path());
    let mut client = onehop.connect();
    for path in paths {
        client.get(path);
    }
    onehop.process.signal(Signal::TERM);
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
    folder
}

#[test]
fn directives_decide_which_log_has_a_request_and_what_its_line_says() {
    let folder = served(
        "log {\n\toutput file access.log\n}\nlog health {\n\toutput file health.log\n\tno_hostname\n}\n\
         log_name /healthz health\nlog_skip /assets/*\nlog_append <asked {uri}\nlog_append final {uri}\nlog_append area static\n\
         log_append /api/* area api\nrewrite /old /new\nrespond ok",
        &["/", "/old?a=1", "/api/x", "/assets/app.js", "/healthz"],
    );
    let fields = |name: &str| {
        let text = text_of(&folder.join(name));
        let lines = lines(&text).into_iter();
        let shown = lines.map(|line| {
            let of = |name: &str| line[name].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} {} {}",
                line["request"]["uri"],
                of("logger"),
                of("asked"),
                of("final"),
                of("area")
            )
        });
        shown.collect::<Vec<_>>().join("\n")
    };
    insta::assert_snapshot!(format!("{}\n\n{}", fields("access.log"), fields("health.log")), @r#"
    "/" http.log.access / / static
    "/old?a=1" http.log.access /old?a=1 /new?a=1 static
    "/api/x" http.log.access /api/x /api/x static

    "/healthz" http.log.access.health /healthz /healthz static
    "#);
}

#[test]
fn secrets_of_a_request_are_filtered_out_of_its_line() {
    let folder = served(
        "log {\n\toutput file access.log\n\tformat filter {\n\t\trequest>uri query {\n\t\t\treplace token REDACTED\n\t\t}\n\
         \t\trequest>client_ip ip_mask 8 32\n\t\trequest>remote_ip delete\n\t\trequest>headers delete\n\t\tkey hash\n\t}\n}\n\
         log {\n\toutput file lines.log\n\tformat transform \"{request>method} {request>uri} {status} {key} {upstream}\"\n}\n\
         log_append key {query.token}\nrespond ok",
        &["/a?token=secret&b=1"],
    );
    let text = text_of(&folder.join("access.log"));
    let line = &lines(&text)[0];
    assert!(!text.contains("secret"), "{text}");
    assert_eq!(line["request"]["uri"], "/a?token=REDACTED&b=1");
    assert_eq!((&line["request"]["client_ip"], &line["key"]), (&"127.0.0.0".into(), &"2bb80d53".into()));
    assert!(line["request"].get("remote_ip").is_none() && line["request"].get("headers").is_none(), "{line}");
    assert_eq!(text_of(&folder.join("lines.log")), "GET /a?token=secret&b=1 200 secret -\n");
}

#[test]
fn of_many_lines_a_sample_is_written() {
    let paths = vec!["/"; 50];
    let folder = served(
        "log {\n\toutput file access.log\n\tsampling {\n\t\tinterval 1h\n\t\tfirst 5\n\t\tthereafter 20\n\t}\n}\n\
         log {\n\toutput file errors.log\n\tlevel ERROR\n}\nrespond ok",
        &paths,
    );
    // All come on one connection, and thus to one core.
    assert_eq!(lines(&text_of(&folder.join("access.log"))).len(), 5 + 2);
    assert_eq!(text_of(&folder.join("errors.log")), "");
}

/// A server of two sites, one of them with an application. Their access logs are kept in memory only.
fn with_recent_lines() -> (Folder, Onehop) {
    let folder = Folder::new();
    folder.write(
        "server.mjs",
        "export default { fetch() {\n  console.log('to stdout');\n  console.error('to stderr');\n  return new Response('ok');\n} };\n",
    );
    folder.write(
        "Onehopfile",
        "http://127.0.0.1:0 {\n\tbind 127.0.0.1\n\tlog {\n\t\toutput discard\n\t}\n\thandle /api {\n\t\tapp ./server.mjs {\n\t\t\tname api\n\t\t}\n\t}\n\thandle {\n\t\trespond ok\n\t}\n}\n\
         http://shop.example:0 {\n\tbind 127.0.0.1\n\tlog {\n\t\toutput discard\n\t\tformat common\n\t}\n\trespond /broken 503\n\trespond ok\n}\n",
    );
    let onehop =
        Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path()).serve();
    (folder, onehop)
}

fn shown(folder: &Folder, arguments: &[&str]) -> String {
    let command = ["logs"].into_iter().chain(arguments.iter().copied());
    let finished = Program::new(command).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    finished.stdout
}

#[test]
fn logs_shows_requests_output_and_events_together() {
    let (folder, onehop) = with_recent_lines();
    let mut client = onehop.connect();
    assert_eq!(client.get("/api").status, 200);
    client.send("GET /broken HTTP/1.1\r\nHost: shop.example\r\n\r\n");
    assert_eq!(client.read().status, 503);
    let all = wait_for("all of them", || {
        let all = shown(&folder, &[]);
        let parts = [
            "GET 127.0.0.1",
            "/api 200",
            "] | to stdout",
            "] ! to stderr",
            "\"GET /broken HTTP/1.1\" 503 -",
            "ready",
        ];
        parts.iter().all(|part| all.contains(part)).then_some(all)
    });
    let times: Vec<&str> = all.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(times.is_sorted(), "{all}");
    let of_app = shown(&folder, &["--app", "api"]);
    assert!(
        of_app.contains("runs       api") && of_app.contains("to stdout") && !of_app.contains("GET"),
        "{of_app}"
    );
    let errors = shown(&folder, &["--errors", "--since", "1h"]);
    assert!(
        errors.contains("to stderr") && errors.contains("/broken") && !errors.contains("to stdout"),
        "{errors}"
    );
    let of_site = shown(&folder, &["--site", "shop.example", "--json"]);
    let line: Value = serde_json::from_str(of_site.trim()).expect("one line of JSON");
    assert_eq!(
        (&line["kind"], &line["status"], &line["error"]),
        (&"request".into(), &503.into(), &true.into())
    );
    assert_eq!(shown(&folder, &["--site", "other.example"]), "");
}

#[test]
fn logs_follows_what_comes_until_the_server_stops() {
    let (folder, mut onehop) = with_recent_lines();
    let arguments = ["logs", "--follow", "--site", "127.0.0.1"];
    let follower = Program::new(arguments).inside(folder.path()).control_in(folder.path()).start();
    let mut client = onehop.connect();
    for path in ["/first", "/second"] {
        ask(&mut client, path);
        wait_for(path, || follower.stdout().contains(path).then_some(()));
    }
    onehop.process.signal(Signal::TERM);
    let ended = follower.wait_for_end();
    assert_eq!((ended.code, ended.stdout.lines().count()), (Some(0), 2), "{}", ended.stdout);
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
}

#[test]
fn the_client_is_whom_a_trusted_proxy_names_in_lines_and_placeholders() {
    for (trusted, client) in [("127.0.0.1", "192.0.2.7"), ("203.0.113.0/24", "127.0.0.1")] {
        let folder = Folder::new();
        folder.write(
            "Onehopfile",
            format!(
                "{{\n\tservers {{\n\t\ttrusted_proxies static {trusted}\n\t}}\n}}\nhttp://127.0.0.1:0 {{\n\
                 \tlog json {{\n\t\toutput file json.log\n\t}}\n\
                 \tlog combined {{\n\t\toutput file combined.log\n\t\tformat combined\n\t}}\n\
                 \trespond \"{{client_ip}} {{remote_host}}\"\n}}\n"
            ),
        );
        let mut onehop = Onehop::start_in(folder.path());
        let fields = "X-Forwarded-For: 198.51.100.9, 192.0.2.7\r\n";
        let answer = onehop.connect().ask("GET", "/", fields);
        assert_eq!(answer.text(), format!("{client} 127.0.0.1"));
        onehop.process.signal(Signal::TERM);
        assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
        let request = &lines(&text_of(&folder.join("json.log")))[0]["request"];
        assert_eq!((&request["client_ip"], &request["remote_ip"]), (&client.into(), &"127.0.0.1".into()));
        let line = text_of(&folder.join("combined.log"));
        assert!(line.starts_with(&format!("{client} - - [")), "{line}");
    }
}

#[test]
fn a_log_below_a_root_is_neither_served_nor_a_change_of_the_site() {
    let folder = Folder::new();
    let root = folder.join("sites/127.0.0.1");
    folder.write("sites/127.0.0.1/index.html", "the page");
    folder.write("sites/127.0.0.1/logs/access-2026-11-29T03-41-00.123.log", "an old line\n");
    folder.write("sites/127.0.0.1/logs/access-list.log", "not ours");
    folder.write("sites/127.0.0.1/data/tls/key.pem", "secret");
    let (shown, disk) = (root.display(), folder.join("sites"));
    let site = format!(
        "{{\n\tadmin 127.0.0.1:0\n\tdata_dir {shown}/data\n}}\n\
         http://127.0.0.1:0 {{\n\tlog {{\n\t\toutput file {shown}/logs/access.log\n\t}}\n\
         \thandle_path /disk/* {{\n\t\troot {}/{{host}}\n\t\tfile_server\n\t}}\n\
         \thandle {{\n\t\troot {shown}\n\t\tfile_server\n\t}}\n}}\n",
        disk.display()
    );
    folder.write("Onehopfile", site);
    let onehop = Onehop::start_in(folder.path());
    let mut client = onehop.connect();
    ask(&mut client, "/");
    let log = root.join("logs/access.log");
    wait_for("a line", || std::fs::read_to_string(&log).ok().filter(|text| !text.is_empty()));
    for prefix in ["", "/disk"] {
        ask(&mut client, &format!("{prefix}/logs/access-list.log"));
        for file in ["logs/access.log", "logs/access-2026-11-29T03-41-00.123.log", "data/tls/key.pem"] {
            assert_eq!(client.get(&format!("{prefix}/{file}")).status, 404, "{prefix}/{file}");
        }
    }
    // A change of the page is published, and none of the log before it was.
    folder.write("sites/127.0.0.1/index.html", "another page");
    wait_for("the change", || (client.get("/").text() == "another page").then_some(()));
    let published = onehop.process.wait_for_events("tree_published", 1);
    assert_eq!(published.len(), 1, "{published:?}");
}
