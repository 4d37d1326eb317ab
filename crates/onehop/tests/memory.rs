//! The memory of the real program: within `memory` however slow its clients are, within the control group that it runs
//! in, and free for others after a burst. Some tests need Node.js, others a control group (version 1) that may be written.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use onehop_testkit::{Folder, Onehop, Program, TIMEOUT, wait_for};
use rustix::net::{AddressFamily, SocketType, connect, socket, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

const MIB: u64 = 1024 * 1024;

/// Hundreds of clients are in this process.
fn raise_descriptor_limit() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Memory of its own that the process has resident: not the program's pages, which the kernel can read again.
fn resident_bytes(onehop: &Onehop) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", onehop.process.pid())).expect("its status");
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("its resident size");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
}

fn site(globals: &str, directives: &str) -> Folder {
    let folder = Folder::new();
    let text = format!(
        "{{\n\tadmin 127.0.0.1:0\n\tthreads 2\n\t{globals}\n}}\nhttp://127.0.0.1:0 {{\n{directives}\n}}\n"
    );
    folder.write("Onehopfile", text);
    folder
}

/// A file without content takes no room on disk, and as much memory as any other.
fn sparse(folder: &Folder, name: &str, mebibytes: u64) {
    folder.write(name, "");
    let file = std::fs::File::options().write(true).open(folder.join(name)).expect("the file");
    file.set_len(mebibytes * MIB).expect("its length");
}

/// A client with a small window that has asked, taken the first bytes of the answer, and takes no more.
fn slow_reader(onehop: &Onehop, path: &str) -> (TcpStream, String) {
    let address: std::net::SocketAddr = onehop.address.parse().expect("an address");
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    sockopt::set_socket_recv_buffer_size(&socket, 4096).expect("its buffer");
    connect(&socket, &address).expect("connected");
    let mut stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(TIMEOUT)).expect("a bound");
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).expect("sent");
    let mut begin = [0; 12];
    stream.read_exact(&mut begin).expect("an answer begins");
    (stream, String::from_utf8_lossy(&begin).into_owned())
}

/// The largest size in a second in which nothing else is done.
fn largest(onehop: &Onehop) -> u64 {
    let look = |_| {
        std::thread::sleep(Duration::from_millis(100));
        resident_bytes(onehop)
    };
    (0..10).map(look).max().expect("ten looks")
}

/// Answers that never end.
const ENDLESS: &str = "const piece = new Uint8Array(65536);\n\
                       export default { fetch: () => new Response(new ReadableStream({\n\
                       pull(controller) { controller.enqueue(piece); } })) };\n";

#[test]
fn slow_readers_of_a_file_on_disk_stay_within_memory() {
    raise_descriptor_limit();
    let folder = site("memory 48MiB files 1MiB", "\troot files\n\tfile_server");
    sparse(&folder, "files/large.bin", 64);
    let onehop = Onehop::start_in(folder.path());
    let clients: Vec<_> = (0..1_000).map(|_| slow_reader(&onehop, "/large.bin")).collect();
    assert!(clients.iter().all(|(_, begin)| begin == "HTTP/1.1 200"));
    let most = largest(&onehop);
    assert!(most <= 48 * MIB, "{} KiB for 1,000 slow readers", most / 1024);
}

#[test]
fn slow_readers_of_an_application_stay_within_memory() {
    raise_descriptor_limit();
    let folder = site("memory 64MiB files 1MiB", "\tapp ./server.mjs {\n\t\tlimit off\n\t}");
    folder.write("server.mjs", ENDLESS);
    let onehop = Onehop::start_in(folder.path());
    onehop.process.wait_for_event("app_ready");
    let clients: Vec<_> = (0..200).map(|_| slow_reader(&onehop, "/")).collect();
    assert!(clients.iter().all(|(_, begin)| begin == "HTTP/1.1 200"));
    let most = largest(&onehop);
    assert!(most <= 64 * MIB, "{} KiB for 200 slow readers", most / 1024);
    // What comes whole needs no window.
    drop(clients);
    let after = wait_for("a normal client", || {
        let mut client = onehop.connect();
        client.try_send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").ok()?;
        client.read_some().ok()
    });
    assert!(after.starts_with(b"HTTP/1.1 200"));
}

#[test]
fn what_a_burst_of_slow_readers_took_is_there_for_the_next_one() {
    raise_descriptor_limit();
    let folder = site("memory 1GiB files 1MiB", "\tapp ./server.mjs {\n\t\tlimit off\n\t}");
    folder.write("server.mjs", ENDLESS);
    let onehop = Onehop::start_in(folder.path());
    onehop.process.wait_for_event("app_ready");
    let before = largest(&onehop);
    let burst = || {
        let clients: Vec<_> = (0..500).map(|_| slow_reader(&onehop, "/")).collect();
        let size = wait_for("a whole burst", || {
            let size = resident_bytes(&onehop);
            (largest(&onehop) < size + MIB).then_some(size)
        });
        drop(clients);
        wait_for("connections that are closed", || {
            onehop.metrics().contains("\nonehop_connections_open 0\n").then_some(())
        });
        size
    };
    // glibc, with which tests are built, keeps free pages that lie among others: the second burst does not find all of the
    // first one's. What leaks would come on top each time.
    let sizes: Vec<u64> = (0..5).map(|_| burst()).collect();
    assert!(sizes[1] > before + 32 * MIB, "500 slow readers took {} KiB", sizes[1] / 1024);
    assert!(sizes[4] < sizes[1] + sizes[1] / 2, "{before} bytes before, bursts of {sizes:?}");
}

/// A control group of version 1 with a limit on memory; removed when dropped.
struct Group(PathBuf);

impl Group {
    /// `None`, with the reason on standard error, where none can be made.
    fn new(name: &str, bytes: u64) -> Option<Group> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let own = groups.lines().find_map(|line| line.split_once(":memory:").map(|(_, own)| own.to_owned()));
        let mounted = Path::new("/sys/fs/cgroup/memory");
        let own = own.map(|own| mounted.join(own.trim_start_matches('/'))).filter(|own| own.exists());
        let place =
            own.unwrap_or_else(|| mounted.to_owned()).join(format!("onehop-{name}-{}", std::process::id()));
        let made = std::fs::create_dir(&place)
            .and_then(|()| std::fs::write(place.join("memory.limit_in_bytes"), bytes.to_string()));
        if let Err(error) = made {
            eprintln!("skipped: {} cannot be a control group of version 1: {error}", place.display());
            return None;
        }
        Some(Group(place))
    }

    /// Starts a server in it.
    fn serve(&self, folder: &Folder) -> Onehop {
        let line = format!("echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"", self.0.display());
        let program = Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path());
        program.through(&["/bin/sh", "-c", &line]).serve()
    }

    /// The server that ran in it has ended, and all of its processes with it.
    fn remove(self, onehop: Onehop) {
        drop(onehop);
        wait_for("an empty group", || std::fs::remove_dir(&self.0).ok());
    }
}

#[test]
fn a_tree_larger_than_the_control_group_is_served_from_disk() {
    let Some(group) = Group::new("tree", 96 * MIB) else { return };
    let folder = site("", "\troot files\n\tfile_server");
    for number in 0..15 {
        sparse(&folder, &format!("files/{number:02}.bin"), 10);
    }
    folder.write("files/small.txt", "small");
    let mut onehop = group.serve(&folder);
    let stored = onehop.process.wait_for_event("stored");
    assert!(stored["on_disk"].as_u64().is_some_and(|files| files >= 8), "{stored}");
    let mut client = onehop.connect();
    assert_eq!(client.get("/small.txt").text(), "small");
    for number in 0..15 {
        let answer = client.get(&format!("/{number:02}.bin"));
        assert_eq!((answer.status, answer.body.len() as u64), (200, 10 * MIB), "{number}");
    }
    assert_eq!(onehop.process.has_ended(), None);
    group.remove(onehop);
}

#[test]
fn in_a_small_control_group_it_refuses_connections_before_the_kernel_kills_it() {
    raise_descriptor_limit();
    let Some(group) = Group::new("clients", 64 * MIB) else { return };
    let folder = site("", "\troot files\n\tfile_server");
    sparse(&folder, "files/large.bin", 60);
    sparse(&folder, "files/middle.bin", 20);
    folder.write("files/small.txt", "small");
    let mut onehop = group.serve(&folder);
    let mut known = onehop.connect();
    assert_eq!(known.get("/small.txt").status, 200);
    let clients: Vec<_> = (0..2_000).map(|_| slow_reader(&onehop, "/large.bin")).collect();
    let served = clients.iter().filter(|(_, begin)| begin == "HTTP/1.1 200").count();
    let refused = clients.iter().filter(|(_, begin)| begin == "HTTP/1.1 503").count();
    assert_eq!(served + refused, 2_000);
    assert!(served >= 100 && refused >= 100, "{served} served, {refused} refused");
    let most = largest(&onehop);
    assert!(most <= 48 * MIB, "{} KiB of a group of 64 MiB", most / 1024);
    assert_eq!(onehop.process.has_ended(), None);
    assert_eq!(known.get("/small.txt").text(), "small", "whoever is connected is served");
    drop(clients);
    group.remove(onehop);
}

/// Asks once for each number, each time for another host and another path, behind one another on one connection.
fn ask_at_random(onehop: &Onehop, numbers: std::ops::Range<u64>) {
    let mut stream = TcpStream::connect(&onehop.address).expect("connected");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a bound");
    for first in numbers.step_by(PIPELINED) {
        let mut requests = String::new();
        for number in (first..).take(PIPELINED) {
            let random = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
            requests.push_str(&format!(
                "GET /{random:x} HTTP/1.1\r\nHost: {random:x}.example\r\nUser-Agent: agent/{random:x}\r\n\r\n"
            ));
        }
        stream.write_all(requests.as_bytes()).expect("sent");
        let (mut answered, mut last, mut piece) = (0, Vec::new(), vec![0; 64 * 1024]);
        while answered < PIPELINED {
            let read = stream.read(&mut piece).expect("an answer");
            assert!(read > 0, "the server closed the connection");
            last.extend_from_slice(&piece[..read]);
            let text = String::from_utf8_lossy(&last);
            answered += text.matches("HTTP/1.1 200").count();
            // What may be the beginning of the next head.
            let keep = last.len().min(11);
            last.drain(..last.len() - keep);
        }
    }
}

/// Requests that are sent before the first of them is answered.
const PIPELINED: usize = 100;

#[test]
fn a_hundred_thousand_random_hosts_paths_and_agents_add_no_series_and_no_memory() {
    let folder = Folder::new();
    folder.write(
        "Onehopfile",
        "{\n\tadmin 127.0.0.1:0\n\tthreads 1\n}\nhttp://:0 {\n\tlog {\n\t\toutput file access.log {\n\t\t\troll_size 1MiB\n\t\t\troll_keep 1\n\t\t}\n\t}\n\trespond hello\n}\n",
    );
    let onehop = Onehop::start_in(folder.path());
    // Buffers, and the lines in memory for `onehop logs`, have their size by then.
    ask_at_random(&onehop, 0..20_000);
    let series = |metrics: &str| metrics.lines().filter(|line| !line.starts_with('#')).count();
    let before = (series(&onehop.metrics()), largest(&onehop));
    ask_at_random(&onehop, 20_000..120_000);
    let after = (series(&onehop.metrics()), largest(&onehop));
    assert_eq!(before.0, after.0);
    assert!(after.1 <= before.1 + MIB, "{} KiB before, {} KiB after", before.1 / 1024, after.1 / 1024);
}
