//! The real program with few open descriptors (RLIMIT_NOFILE): it serves with what there is and says so, or does not
//! start. Needs Node.js.

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, Folder, Onehop, Program};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

const HANDLER: &str = "export default { fetch: () => new Response('handler') };\n";
const PROGRAM: &str =
    "require('node:http').createServer((_, out) => out.end('program')).listen(process.env.PORT);\n";

/// A folder with something of each kind, and these directives on two cores.
fn site(globals: &str, directives: &str) -> Folder {
    let folder =
        Folder::with(&[("files/small.txt", "small"), ("server.mjs", HANDLER), ("program.cjs", PROGRAM)]);
    folder.write("files/large.bin", vec![b'x'; 2 << 20]);
    let text = format!(
        "{{\n\tadmin 127.0.0.1:0\n\tthreads 2\n\t{globals}\n}}\nhttp://127.0.0.1:0 {{\n{directives}\n}}\n"
    );
    folder.write("Onehopfile", text);
    folder
}

fn program(folder: &Folder, descriptors: u32) -> Program {
    let program = Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path());
    program.with_descriptors(descriptors, descriptors)
}

fn ok_upstream() -> Upstream {
    Upstream::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nupstream".to_vec())
}

#[test]
fn with_few_descriptors_no_request_of_a_browser_or_of_a_row_is_refused() {
    let upstream = ok_upstream();
    let proxy = format!("reverse_proxy {}", upstream.address());
    let everything = format!(
        "\thandle /handler {{\n\t\tapp ./server.mjs\n\t}}\n\thandle /upstream {{\n\t\t{proxy}\n\t}}\n\troot files\n\t\
         file_server"
    );
    let command = "\tapp {\n\t\tcommand node program.cjs\n\t}".to_owned();
    for (descriptors, globals, directives, path) in [
        (64, "", "\troot files\n\tfile_server", "/small.txt"),
        (64, "memory 16MiB files 1MiB", "\troot files\n\tfile_server", "/large.bin"),
        (64, "", &format!("\t{proxy}"), "/upstream"),
        (64, "", "\tapp ./server.mjs", "/handler"),
        (256, "", &command, "/program"),
        (256, "", &everything, "/small.txt"),
        (256, "", &everything, "/upstream"),
        (256, "", &everything, "/handler"),
    ] {
        let folder = site(globals, directives);
        let onehop = program(&folder, descriptors).serve();
        let refused = |answer: &onehop_testkit::Response| answer.status != 200;
        let mut statuses = Vec::new();
        // One behind the other, each on a connection of its own.
        for _ in 0..100 {
            let answer = onehop.connect().get(path);
            statuses.extend(refused(&answer).then_some(answer.status));
        }
        // As many at a time as a browser has.
        let mut clients: Vec<Client> = (0..6).map(|_| onehop.connect()).collect();
        for _ in 0..10 {
            for client in &mut clients {
                client.send(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
            }
            for client in &mut clients {
                let answer = client.read();
                statuses.extend(refused(&answer).then_some(answer.status));
            }
        }
        let reported = onehop.process.stderr();
        assert!(statuses.is_empty(), "{descriptors} descriptors, {path}: {statuses:?}\n{reported}");
        let status = Program::new(["status"]).inside(folder.path()).control_in(folder.path()).finish();
        assert_eq!(status.code, Some(0), "{descriptors}, {path}: {}", status.stderr);
    }
}

#[test]
fn few_descriptors_are_a_warning_that_says_how_many_connections_they_leave() {
    let folder = site("", "\troot files\n\tfile_server");
    for (descriptors, warns) in [(256, true), (1023, true), (1024, false)] {
        let onehop = program(&folder, descriptors).serve();
        let text = onehop.metrics();
        let most =
            text.lines().find_map(|line| line.strip_prefix("onehop_connections_max ")).expect("the bound");
        let events = onehop.process.events();
        let reported: Vec<&str> = events
            .iter()
            .filter(|event| event["event"] == "warning")
            .filter_map(|event| event["message"].as_str())
            .filter(|message| message.contains("open files"))
            .collect();
        assert_eq!(reported.len(), usize::from(warns), "{descriptors}: {events:?}");
        for message in reported {
            assert!(message.contains(&format!("{descriptors} open files")), "{message}");
            assert!(message.contains(&format!("{most} connections")), "{message}");
            assert!(message.contains("ulimit -n") && message.contains("LimitNOFILE"), "{message}");
        }
    }
}

#[test]
fn without_descriptors_for_eight_connections_it_does_not_start_and_says_what_takes_them() {
    let upstream = ok_upstream();
    let directives = format!("\tapp /api/* ./server.mjs\n\treverse_proxy {}", upstream.address());
    let folder = site("", &directives);
    for descriptors in [20, 48, 60] {
        let finished = program(&folder, descriptors).finish();
        assert_eq!(finished.code, Some(1), "{descriptors}: {}", finished.stderr);
        for part in ["open files", "2 cores", "workers", "ulimit -n", "LimitNOFILE"] {
            assert!(finished.stderr.contains(part), "{descriptors}: no {part:?} in {}", finished.stderr);
        }
        // What it says is enough is enough.
        let enough =
            finished.stderr.split("allow ").nth(1).and_then(|rest| rest.split(' ').next()).expect("a number");
        let enough: u32 = enough.parse().expect("a number");
        let onehop = program(&folder, enough).serve();
        assert_eq!(onehop.connect().get("/x").text(), "upstream", "{enough}");
        let status = program(&folder, enough - 1).finish();
        assert_eq!(status.code, Some(1), "{}", status.stderr);
    }
}

/// From now on the process may have no descriptor beyond those that are open.
fn allow_no_more(onehop: &Onehop) {
    let folder = format!("/proc/{}/fd", onehop.process.pid());
    let entries = std::fs::read_dir(folder).expect("its descriptors").map_while(Result::ok);
    let open: Vec<u64> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    let lowest = (0..).find(|number| !open.contains(number)).expect("a number");
    let pid = i32::try_from(onehop.process.pid()).ok().and_then(Pid::from_raw).expect("a process id");
    let limit = Rlimit { current: Some(lowest), maximum: getrlimit(Resource::Nofile).maximum };
    prlimit(Some(pid), Resource::Nofile, limit).expect("its bound is changed");
}

#[test]
fn an_idle_connection_to_one_upstream_makes_room_for_one_to_another() {
    let (first, second) = (ok_upstream(), ok_upstream());
    let pool = "{\n\t\t\tpool min 0\n\t\t}";
    let directives = format!(
        "\thandle /first {{\n\t\treverse_proxy {} {pool}\n\t}}\n\thandle /second {{\n\t\treverse_proxy {} {pool}\n\t}}",
        first.address(),
        second.address()
    );
    let folder = site("", &directives);
    let text =
        std::fs::read_to_string(folder.join("Onehopfile")).expect("text").replace("threads 2", "threads 1");
    folder.write("Onehopfile", text);
    let onehop = Onehop::start_in(folder.path());
    let mut client = onehop.connect();
    assert_eq!(client.get("/first").status, 200);
    allow_no_more(&onehop);
    for path in ["/second", "/first", "/second"] {
        let answer = client.get(path);
        assert_eq!((answer.status, answer.text()), (200, "upstream"), "{path}\n{}", onehop.process.stderr());
    }
}
