//! Standard error that takes nothing: a pipe that is full and that nothing reads.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use onehop_testkit::{Client, Folder, Program, Started, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// A pipe whose reader the test holds.
struct Pipe {
    reader: PipeReader,
    writer: PipeWriter,
}

impl Pipe {
    fn new() -> Pipe {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        Pipe { reader, writer }
    }

    /// Writes until the kernel takes no byte more. A file description of its own is not blocking; the one that the
    /// program has stays as it is.
    fn fill(&self) {
        let path = format!("/proc/self/fd/{}", self.writer.as_raw_fd());
        let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("a flag");
        let mut end = File::options().write(true).custom_flags(flags).open(path).expect("the same pipe");
        for size in [4096, 1] {
            while end.write(&vec![b'\n'; size]).is_ok() {}
        }
    }
}

/// A folder with a site that answers a word at a Unix socket, with an access log on standard error.
struct Site {
    folder: Folder,
}

impl Site {
    fn new(word: &str) -> Site {
        let site = Site { folder: Folder::new() };
        site.write(word);
        site
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("site.sock")
    }

    fn write(&self, word: &str) {
        let socket = self.socket().display().to_string();
        let text = format!(
            "{{\n\tadmin off\n}}\nhttp://localhost {{\n\tbind unix/{socket}\n\tlog\n\trespond {word}\n}}\n"
        );
        self.folder.write("Onehopfile", text);
    }

    fn start(&self, pipe: &Pipe) -> Started {
        let error = pipe.writer.try_clone().expect("a descriptor");
        let program = Program::new(["run", "--log", "json"]).with_stderr(error.into());
        program.inside(self.folder.path()).control_in(self.folder.path()).start()
    }

    fn command(&self, words: &[&str]) -> onehop_testkit::Finished {
        Program::new(words).inside(self.folder.path()).control_in(self.folder.path()).finish()
    }

    fn wait_until_it_answers(&self, word: &str) {
        wait_for(word, || (answer_at(&self.socket())? == word).then_some(()));
    }
}

fn answer_at(socket: &Path) -> Option<String> {
    socket.exists().then_some(())?;
    std::os::unix::net::UnixStream::connect(socket).ok()?;
    Some(Client::connect_unix(socket).get("/").text().to_owned())
}

#[test]
fn a_full_pipe_for_standard_error_stops_no_reload_and_no_stop() {
    for way in ["stop", "SIGTERM", "SIGINT"] {
        let site = Site::new("one");
        let pipe = Pipe::new();
        let mut process = site.start(&pipe);
        site.wait_until_it_answers("one");
        pipe.fill();
        site.write("two");
        let reloaded = site.command(&["reload"]);
        assert_eq!(reloaded.code, Some(0), "{way}: {}", reloaded.stderr);
        site.wait_until_it_answers("two");
        site.write("three");
        process.signal(Signal::HUP);
        site.wait_until_it_answers("three");
        assert_eq!(site.command(&["status"]).code, Some(0), "{way}");
        match way {
            "stop" => {
                let stopped = site.command(&["stop"]);
                assert_eq!(stopped.code, Some(0), "{}", stopped.stderr);
            }
            "SIGTERM" => process.signal(Signal::TERM),
            _ => process.signal(Signal::INT),
        }
        let status = process.wait().unwrap_or_else(|| panic!("it still runs after {way}"));
        assert_eq!(status.code(), Some(0), "{way}");
    }
}

#[test]
fn a_server_starts_and_stops_with_a_standard_error_that_is_full_from_the_beginning() {
    let site = Site::new("one");
    let pipe = Pipe::new();
    pipe.fill();
    let mut process = site.start(&pipe);
    site.wait_until_it_answers("one");
    assert_eq!(site.command(&["stop"]).code, Some(0));
    assert_eq!(process.wait().expect("it ends").code(), Some(0));
}

#[test]
fn a_start_that_fails_ends_with_a_standard_error_that_is_full() {
    let folder =
        Folder::with(&[("Onehopfile", "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tspa ./missing\n}\n")]);
    let pipe = Pipe::new();
    pipe.fill();
    let error = pipe.writer.try_clone().expect("a descriptor");
    let program = Program::new(["run", "--log", "json"]).with_stderr(error.into());
    let mut process = program.inside(folder.path()).control_in(folder.path()).start();
    assert!(matches!(process.wait().expect("it ends").code(), Some(1 | 2)));
}

/// Writes 1,500 lines of 8,000 bytes, which is more than waits for standard error, and then answers.
const FLOOD: &str = "import { writeSync } from 'node:fs'\n\
    export default { fetch() {\n\
    \tconst line = 'x'.repeat(8000) + '\\n'\n\
    \tfor (let number = 0; number < 1500; number++) writeSync(1, line)\n\
    \treturn new Response('written')\n\
    } }\n";

#[test]
fn lines_that_a_full_pipe_did_not_take_are_counted_and_reported_once_it_is_read() {
    let folder = Folder::with(&[("app.mjs", FLOOD)]);
    let socket = folder.join("site.sock");
    let text = format!(
        // A slow machine may take longer for the lines than a worker may block otherwise.
        "{{\n\tadmin off\n}}\nhttp://localhost {{\n\tbind unix/{}\n\tapp app.mjs {{\n\t\tstuck_after 60s\n\t}}\n}}\n",
        socket.display()
    );
    folder.write("Onehopfile", text);
    let Pipe { reader, writer } = Pipe::new();
    let program = Program::new(["run", "--log", "json"]).with_stderr(writer.into());
    let mut process = program.inside(folder.path()).control_in(folder.path()).start();
    wait_for("the listener", || socket.exists().then_some(()));
    // The application's lines alone fill the pipe.
    assert_eq!(Client::connect_unix(&socket).get("/").text(), "written");
    let events = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&events);
    let reading = std::thread::spawn(move || {
        for line in BufReader::new(reader).lines() {
            let line = line.expect("a line");
            seen.lock()
                .expect("no panic")
                .push(serde_json::from_str::<Value>(&line).expect("whole JSON lines"));
        }
    });
    let count = |events: &[Value]| {
        let shown = events.iter().filter(|event| event["event"] == "app_output").count();
        let lost = events.iter().filter_map(|event| {
            let (count, _) =
                event["message"].as_str()?.split_once(" lines of applications were not shown")?;
            count.parse::<usize>().ok()
        });
        (shown, lost.sum::<usize>())
    };
    let (shown, lost) = wait_for("all lines, shown or counted", || {
        let (shown, lost) = count(&events.lock().expect("no panic"));
        (shown + lost == 1500).then_some((shown, lost))
    });
    assert!(lost > 0, "{shown} were shown");
    // What happens afterwards is shown as ever.
    process.signal(Signal::HUP);
    wait_for("the reload", || {
        events.lock().expect("no panic").iter().any(|event| event["event"] == "reloaded").then_some(())
    });
    process.signal(Signal::TERM);
    assert_eq!(process.wait().expect("it ends").code(), Some(0));
    reading.join().expect("only whole lines");
    assert_eq!(count(&events.lock().expect("no panic")), (shown, lost));
}
