//! The edge of the real program: descriptors that are used up, and thousands of slow clients.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use onehop_testkit::{Client, Folder, Onehop, Program, wait_for};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// Bytes that a slow connection may take: what the sum of `memory` counts for one.
const CONNECTION_BYTES: u64 = 32 * 1024;

/// Descriptors that the process has open, by number.
fn descriptors(onehop: &Onehop) -> Vec<u64> {
    let folder = format!("/proc/{}/fd", onehop.process.pid());
    let entries = std::fs::read_dir(folder).expect("the process's descriptors").map_while(Result::ok);
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// From now on it may have no descriptor above the lowest free ones, of which it gets so many; gives its old bound and
/// the new one.
fn allow_more(onehop: &Onehop, more: u64) -> (Rlimit, u64) {
    let open = descriptors(onehop);
    let mut limit = 0;
    let mut free = 0;
    while free < more || open.contains(&limit) {
        free += u64::from(!open.contains(&limit));
        limit += 1;
    }
    let maximum = getrlimit(Resource::Nofile).maximum;
    (set_limit(onehop, Rlimit { current: Some(limit), maximum }), limit)
}

fn set_limit(onehop: &Onehop, limit: Rlimit) -> Rlimit {
    let pid = i32::try_from(onehop.process.pid()).ok().and_then(Pid::from_raw).expect("a process id");
    prlimit(Some(pid), Resource::Nofile, limit).expect("its bound is changed")
}

/// CPU time of all its threads (/proc/PID/task/TID/schedstat: nanoseconds first).
fn cpu_time(onehop: &Onehop) -> Duration {
    let folder = format!("/proc/{}/task", onehop.process.pid());
    let tasks = std::fs::read_dir(folder).expect("threads").map_while(Result::ok);
    let nanos = tasks.filter_map(|task| {
        let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(nanos.sum())
}

fn resident_bytes(onehop: &Onehop) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/status", onehop.process.pid())).expect("its status");
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its resident size");
    line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).expect("a number") * 1024
}

fn metric(admin: &mut Client, begin: &str) -> u64 {
    let text = admin.get("/metrics").text().to_owned();
    let line = text.lines().find(|line| line.starts_with(begin)).unwrap_or_default();
    line.rsplit(' ').next().and_then(|value| value.parse().ok()).unwrap_or(0)
}

/// A connection that has sent these bytes and gets no more attention.
fn silent(address: &str, bytes: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).expect("the kernel takes it");
    stream.write_all(bytes.as_bytes()).expect("sent");
    stream
}

const GET: &str = "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";

#[test]
fn without_descriptors_it_rests_and_serves_everybody_as_soon_as_there_are_some() {
    let onehop = Onehop::start("http://127.0.0.1:0 {\n\trespond hello\n}\n");
    let (before, most) = allow_more(&onehop, 20);
    let clients: Vec<Client> = (0..200).map(|_| onehop.connect()).collect();
    // Those that were accepted hold all there is, and say nothing; the others wait in the kernel's queues.
    wait_for("no descriptor to be left", || {
        let reported = onehop.process.stderr();
        assert!(!reported.contains("panicked") && !reported.contains("fail"), "{reported}");
        (descriptors(&onehop).iter().filter(|number| **number < most).count() as u64 == most).then_some(())
    });
    let (spent, over) = (cpu_time(&onehop), Duration::from_secs(3));
    std::thread::sleep(over);
    let spent = cpu_time(&onehop).saturating_sub(spent);
    assert!(spent < over / 20, "{spent:?} of CPU time in {over:?}, in which nothing could be done");
    println!("{spent:?} of CPU time in {over:?} without descriptors");
    // Each one that goes makes room for the next.
    let answers: Vec<_> = std::thread::scope(|scope| {
        let ask = |mut client: Client| {
            move || {
                client.try_send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")?;
                client.try_read_for("GET").map(|answer| answer.status)
            }
        };
        let asking: Vec<_> = clients.into_iter().map(|client| scope.spawn(ask(client))).collect();
        asking.into_iter().map(|asking| asking.join().expect("no panic")).collect()
    });
    let failed: Vec<_> = answers.iter().filter(|answer| !matches!(answer, Ok(200))).collect();
    assert!(failed.is_empty(), "{failed:?}\n{}", onehop.process.stderr());
    set_limit(&onehop, before);
    assert!(
        metric(
            &mut Client::connect(onehop.admin.as_deref().expect("an admin endpoint")),
            "onehop_accept_failures_total"
        ) > 0
    );
    assert_eq!(onehop.connect().get("/").text(), "hello");
}

#[test]
fn files_and_upstreams_are_503_without_descriptors_and_there_again_with_some() {
    let folder = Folder::with(&[("files/small.txt", "small")]);
    folder.write("files/large.bin", vec![b'x'; 3 << 20]);
    let upstream = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = upstream.local_addr().expect("an address");
    std::thread::spawn(move || {
        for mut stream in upstream.incoming().map_while(Result::ok) {
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nup");
        }
    });
    folder.write(
        "Onehopfile",
        format!(
            "{{\n\tadmin 127.0.0.1:0\n\tmemory 64MiB files 1MiB\n}}\nhttp://127.0.0.1:0 {{\n\thandle /up {{\n\t\t\
             reverse_proxy {address} {{\n\t\t\tmax_fails 1\n\t\t\tfail_duration 60s\n\t\t}}\n\t}}\n\t\
             root files\n\tfile_server\n}}\n"
        ),
    );
    let onehop = Onehop::start_in(folder.path());
    let mut client = onehop.connect();
    assert_eq!(client.get("/small.txt").text(), "small");
    let (before, _) = allow_more(&onehop, 0);
    for path in ["/large.bin", "/up"] {
        // What its start has used may be given back only now.
        let refused = wait_for("a refusal", || {
            allow_more(&onehop, 0);
            client.send(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"));
            let answer = client.try_read_for("GET");
            let answer =
                answer.unwrap_or_else(|error| panic!("{path}: {error}\n{}", onehop.process.stderr()));
            Some(answer).filter(|answer| answer.status != 200)
        });
        assert_eq!((refused.status, refused.field("Retry-After")), (503, Some("1")), "{path}");
    }
    assert_eq!(client.get("/small.txt").text(), "small", "what is in memory needs none");
    set_limit(&onehop, before);
    assert_eq!(client.get("/large.bin").body.len(), 3 << 20);
    assert_eq!(client.get("/up").text(), "up", "a failure of ours is no failure of the upstream");
}

#[test]
fn as_many_connections_as_descriptors_allow_are_served_and_the_others_get_503() {
    let folder = Folder::with(&[(
        "Onehopfile",
        "{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\trespond hello\n}\n",
    )]);
    let start = |soft, hard| {
        let program = Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path());
        program.with_descriptors(soft, hard).serve()
    };
    let onehop = start(100, 200);
    let mut admin = Client::connect(onehop.admin.as_deref().expect("an admin endpoint"));
    let most = metric(&mut admin, "onehop_connections_max");
    assert!((100..200).contains(&most), "{most}: the hard bound counts, and some descriptors are kept free");
    let mut clients: Vec<Client> = (0..250).map(|_| onehop.connect()).collect();
    let mut served = 0;
    for client in &mut clients {
        // Who was refused may be gone by now.
        if client.try_send(GET).is_ok()
            && let Ok(answer) = client.try_read_for("GET")
        {
            assert!([200, 503].contains(&answer.status), "{}", answer.head);
            served += u64::from(answer.status == 200);
        }
    }
    assert_eq!(served, most);
    assert!(metric(&mut admin, "onehop_connections_refused_total{cause=\"in_all\"}") >= 250 - most);
    assert_eq!(metric(&mut admin, "onehop_accept_failures_total"), 0);
    drop(clients);
    wait_for("room", || {
        let mut client = onehop.connect();
        client.try_send(GET).ok()?;
        client.try_read_for("GET").ok().filter(|answer| answer.status == 200)
    });
}

#[test]
fn others_are_served_and_memory_is_bounded_beside_two_thousand_slow_clients() {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    let folder = Folder::with(&[("index.html", "hello")]);
    folder.write("large.bin", vec![b'x'; 8 << 20]);
    folder
        .write("Onehopfile", "{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\troot .\n\tfile_server\n}\n");
    let onehop = Onehop::start_in(folder.path());
    let mut admin = Client::connect(onehop.admin.as_deref().expect("an admin endpoint"));
    let mut client = onehop.connect();
    assert_eq!(client.get("/").text(), "hello");
    let at_rest = resident_bytes(&onehop);
    let ranges = (0..1_000).map(|number| format!("{number}-")).collect::<Vec<_>>().join(",");
    for (kind, bytes) in [
        ("heads", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-".to_owned()),
        ("bodies", "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9999\r\n\r\nx".to_owned()),
        ("reading", "GET /large.bin HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".to_owned()),
        ("ranges", format!("GET /large.bin HTTP/1.1\r\nHost: 127.0.0.1\r\nRange: bytes=0-,{ranges}\r\n\r\n")),
    ] {
        let before = metric(&mut admin, "onehop_connections_total");
        let slow: Vec<TcpStream> = (0..2_000).map(|_| silent(&onehop.address, &bytes)).collect();
        wait_for("all of them to be accepted", || {
            (metric(&mut admin, "onehop_connections_total") >= before + 2_000).then_some(())
        });
        for _ in 0..50 {
            assert_eq!(client.get("/").text(), "hello", "{kind}");
        }
        let grown = resident_bytes(&onehop).saturating_sub(at_rest);
        assert!(grown < 2_000 * CONNECTION_BYTES, "{kind}: {grown} bytes more, {} each", grown / 2_000);
        println!("{kind}: {} bytes each", grown / 2_000);
        drop(slow);
        wait_for("their ends", || (metric(&mut admin, "onehop_connections_open") <= 2).then_some(()));
    }
}
