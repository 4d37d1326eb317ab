//! `onehop proxy` as a person types it, and the example as it stands: the same file for Caddy and for onehop.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use onehop_testkit::{Finished, Folder, Onehop, Program, wait_for};

/// An upstream that answers each request with its target, and tells the lines of its head.
struct Upstream {
    address: String,
    heads: Receiver<Vec<String>>,
    /// A number for each connection that was opened.
    opened: Receiver<usize>,
}

impl Upstream {
    fn start() -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let (reported, heads) = channel();
        let (count, opened) = channel();
        thread::spawn(move || {
            for (number, stream) in listener.incoming().map_while(Result::ok).enumerate() {
                let reported = reported.clone();
                let _ = count.send(number + 1);
                thread::spawn(move || answer(&stream, |head| reported.send(head).is_ok()));
            }
        });
        Upstream { address, heads, opened }
    }

    /// The head of the next request.
    fn head(&self) -> Vec<String> {
        self.heads.recv_timeout(onehop_testkit::TIMEOUT).expect("a request")
    }

    /// Waits until so many connections were opened.
    fn wait_for_connections(&self, count: usize) {
        while self.opened.recv_timeout(onehop_testkit::TIMEOUT).expect("a connection") < count {}
    }
}

/// One connection: every request is told, and answered with its first line.
fn answer(stream: &TcpStream, tell: impl Fn(Vec<String>) -> bool) {
    let mut lines = BufReader::new(stream).lines();
    loop {
        let head: Vec<String> =
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let Some(first) = head.first().cloned() else { return };
        let answer =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nX-From: upstream\r\n\r\n{first}", first.len());
        if !tell(head) || (&mut &*stream).write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn proxy(folder: &Folder, words: &[&str]) -> Program {
    Program::new(["proxy"].iter().chain(words)).inside(folder.path()).control_in(folder.path())
}

fn finished(words: &[&str]) -> Finished {
    let folder = Folder::new();
    proxy(&folder, words).finish()
}

/// A proxy on a free port of this machine.
fn serving(folder: &Folder, words: &[&str]) -> Onehop {
    let usual = ["--from", "127.0.0.1:0", "--log", "json"];
    proxy(folder, &usual.iter().chain(words).copied().collect::<Vec<_>>()).serve()
}

#[test]
fn requests_are_passed_on_with_the_fields_that_were_asked_for() {
    let (upstream, folder) = (Upstream::start(), Folder::new());
    let to = ["--to", &upstream.address];
    let words = ["-H", "X-Key: {env.KEY}", "-H", "X-Say: say \"hello\"", "-d", "X-From: onehop", "-c"];
    let usual = ["--from", "127.0.0.1:0", "--log", "json"];
    let words: Vec<&str> = usual.iter().chain(&to).chain(&words).copied().collect();
    let onehop = proxy(&folder, &words).with_env("KEY", "from the environment").serve();
    let answer = onehop.connect().get("/a?b");
    assert_eq!(
        (answer.status, answer.text(), answer.field("X-From")),
        (200, "GET /a?b HTTP/1.1", Some("onehop"))
    );
    let head = upstream.head();
    for line in
        ["X-Key: from the environment", "X-Say: say \"hello\"", &format!("Host: {}", upstream.address)]
    {
        assert!(head.iter().any(|found| found.eq_ignore_ascii_case(line)), "{line}: {head:?}");
    }
}

#[test]
fn connections_are_open_before_the_first_request() {
    let (upstream, folder) = (Upstream::start(), Folder::new());
    let onehop = serving(&folder, &["--to", &upstream.address, "--min", "3"]);
    upstream.wait_for_connections(3);
    assert_eq!(onehop.connect().get("/").status, 200);
    assert!(upstream.opened.try_recv().is_err(), "a connection was opened for the request");
}

#[test]
fn what_is_printed_is_a_file_that_does_the_same() {
    let (upstream, folder) = (Upstream::start(), Folder::new());
    let words =
        ["--from", "127.0.0.1:0", "--to", &upstream.address, "--min", "2", "--admin", "off", "--print"];
    let printed = proxy(&folder, &words).finish();
    assert_eq!((printed.code, printed.stderr.as_str()), (Some(0), ""));
    folder.write("Onehopfile", &printed.stdout);
    let onehop = Onehop::start_in(folder.path());
    upstream.wait_for_connections(2);
    assert_eq!(onehop.connect().get("/").text(), "GET / HTTP/1.1");
}

#[test]
fn a_mistake_is_reported_with_the_next_step() {
    let cases: [&[&str]; 7] = [
        &["--to", "http://a:1,https://b:2"],
        &["--to", "localhost:1", "--min", "5", "--max", "2"],
        &["--to", "localhost:1", "--header-up", "X-A"],
        &["--to", "localhost:1", "--header-up", "X-A: {no.such}"],
        &["--to", "localhost:1", "--from", "7718"],
        &["--to", "localhost:1", "--insecure"],
        &["--to", "srv+http://localhost:1"],
    ];
    let reported = cases.map(|words| {
        let finished = finished(words);
        assert_eq!(finished.code, Some(2), "{words:?}: {}", finished.stderr);
        assert!(!finished.stderr.contains("Onehopfile:"), "it points into a text that nobody wrote");
        format!("onehop proxy {}\n{}", words.join(" "), finished.stderr)
    });
    insta::assert_snapshot!(reported.join("\n"));
}

#[test]
fn a_reload_and_a_stop_find_the_proxy_of_the_folder() {
    let (upstream, folder) = (Upstream::start(), Folder::new());
    let mut onehop = serving(&folder, &["--to", &upstream.address]);
    let reported =
        |command: &str| Program::new([command]).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!(reported("reload").code, Some(0));
    assert_eq!(onehop.connect().get("/").status, 200);
    assert_eq!(reported("stop").code, Some(0));
    wait_for("the end", || onehop.process.has_ended());
}

#[test]
fn the_example_is_sound_as_it_stands_and_serves() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/proxy/Caddyfile");
    let text = std::fs::read_to_string(&source).expect("the example");
    let path = source.display().to_string();
    let validated = Program::new(["validate", &path]).finish();
    assert_eq!((validated.code, validated.stderr.as_str()), (Some(0), ""));

    // The same with addresses that are here.
    let (upstream, folder) = (Upstream::start(), Folder::new());
    assert!(text.contains("127.0.0.1:7718 {") && text.contains("100.2.3.4:7718"));
    let text = text.replace("127.0.0.1:7718 {", "127.0.0.1:0 {").replace("100.2.3.4:7718", &upstream.address);
    folder.write("Caddyfile", format!("{{\n\tadmin off\n}}\n{text}"));
    let onehop = Onehop::start_in(folder.path());
    upstream.wait_for_connections(1);
    assert_eq!(onehop.connect().get("/search").text(), "GET /search HTTP/1.1");
}

#[test]
fn the_files_of_the_guide_are_sound_and_the_first_is_what_its_command_prints() {
    let guide = include_str!("../../../docs/guide/proxy.md");
    let files: Vec<&str> =
        guide.split("```caddyfile\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(files.len(), 2);
    for file in &files {
        let folder = Folder::with(&[("Onehopfile", file)]);
        let validated = Program::new(["validate"]).inside(folder.path()).finish();
        assert_eq!((validated.code, validated.stderr.as_str()), (Some(0), ""), "{file}");
    }
    let command = guide.lines().find_map(|line| line.strip_prefix("onehop proxy ")).expect("a command");
    let words: Vec<&str> = command.split(' ').chain(["--print"]).collect();
    assert_eq!(proxy(&Folder::new(), &words).finish().stdout, files[0]);
}
