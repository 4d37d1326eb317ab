//! The control socket and the admin endpoint: who is trusted, who is found, and what is open unless asked for.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use onehop_testkit::{Client, Finished, Folder, Onehop, Program, wait_for};

const HELLO: &str = "{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\trespond hello\n}\n";

/// A user with a session folder, so that no other onehop of this machine is found. Where the tests run as root, a user
/// of its own; else this one.
struct User {
    uid: Option<u32>,
    session: Folder,
}

impl User {
    fn new() -> User {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = std::process::id() % 100_000 * 16 + NEXT.fetch_add(1, Ordering::Relaxed);
        let uid = is_root().then_some(1_000_000 + number);
        let user = User { uid, session: Folder::new() };
        user.owns(user.session.path());
        user
    }

    /// Gives a folder and all that lies in it to this user.
    fn owns(&self, path: &Path) {
        let Some(uid) = self.uid else { return };
        chown(path, Some(uid), Some(uid)).expect("root may");
        for entry in path.read_dir().into_iter().flatten().flatten() {
            self.owns(&entry.path());
        }
    }

    fn folder(&self, files: &[(&str, &str)]) -> Folder {
        let folder = Folder::with(files);
        self.owns(folder.path());
        folder
    }

    fn program(&self, words: &[&str], folder: &Path) -> Program {
        let program = Program::new(words)
            .inside(folder)
            .with_env("XDG_RUNTIME_DIR", self.session.path())
            .with_env("HOME", self.session.path());
        match self.uid {
            Some(uid) => as_uid(program, uid),
            None => program,
        }
    }

    fn run(&self, words: &[&str], folder: &Path) -> Finished {
        self.program(words, folder).finish()
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn as_uid(program: Program, uid: u32) -> Program {
    let uid = uid.to_string();
    program.through(&["setpriv", "--reuid", &uid, "--regid", &uid, "--clear-groups"])
}

/// Other users need root, and a program that they may execute.
fn other_users() -> bool {
    let possible = is_root() && as_uid(Program::new(["--version"]), 1_000_000).finish().code == Some(0);
    if !possible {
        eprintln!("skipped: these tests need root, and a program that other users may execute");
    }
    possible
}

#[test]
fn idle_connections_to_the_admin_endpoint_leave_the_control_socket_free() {
    let folder = Folder::with(&[("Onehopfile", HELLO)]);
    let onehop = Onehop::start_in(folder.path());
    let admin = onehop.admin.as_deref().expect("an admin endpoint");
    let held: Vec<TcpStream> = (0..64).map(|_| TcpStream::connect(admin).expect("connected")).collect();
    let ask = |words: &[&str]| Program::new(words).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!(ask(&["status", "--healthy"]).code, Some(0));
    assert_eq!(ask(&["stop"]).code, Some(0));
    drop(held);
}

/// The name of a folder's control socket: FNV-1a of its path.
fn socket_name(folder: &Path) -> String {
    let path = folder.canonicalize().expect("a path");
    let hash = path.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    format!("{hash:016x}.sock")
}

#[test]
fn a_folder_for_control_sockets_that_another_user_made_is_not_trusted() {
    if !other_users() {
        return;
    }
    let user = User::new();
    let uid = user.uid.expect("root");
    let folder = user.folder(&[]);
    // What a stranger can make in /tmp before the user's first onehop: a folder, and a socket that plays a server.
    let foreign = std::path::PathBuf::from(format!("/tmp/onehop-{uid}"));
    std::fs::create_dir(&foreign).expect("a folder");
    std::fs::set_permissions(&foreign, PermissionsExt::from_mode(0o755)).expect("set");
    let socket = foreign.join(socket_name(folder.path()));
    let listener = UnixListener::bind(&socket).expect("a socket");
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777)).expect("set");
    let asked = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut request = [0; 1024];
            if stream.read(&mut request).is_ok_and(|length| length > 0) {
                counted.fetch_add(1, Ordering::Relaxed);
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 25\r\n\r\n{\"sites\":1,\"took_ms\":1.0}");
            }
        }
    });
    let finished: Vec<Finished> =
        [&["reload"][..], &["status"], &["stop", "--wait", "1"], &["reload", "--config", "."]]
            .into_iter()
            .map(|words| {
                as_uid(Program::new(words).inside(folder.path()).without_env("XDG_RUNTIME_DIR"), uid).finish()
            })
            .collect();
    std::fs::remove_dir_all(&foreign).expect("removed");
    for finished in finished {
        assert_eq!(finished.code, Some(1), "{}{}", finished.stdout, finished.stderr);
        assert!(finished.stderr.contains(&foreign.display().to_string()), "{}", finished.stderr);
        assert!(finished.stderr.contains("not a folder of this user alone"), "{}", finished.stderr);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn a_server_of_another_user_is_asked_for_nothing() {
    if !other_users() {
        return;
    }
    let (server, client) = (User::new(), User::new());
    let folder = server.folder(&[("Onehopfile", HELLO)]);
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("set");
    let socket = folder.join("open.sock");
    let path = socket.to_str().expect("UTF-8");
    let onehop = server.program(&["run", "--log", "json", "--control", path], folder.path()).serve();
    std::fs::set_permissions(&socket, PermissionsExt::from_mode(0o777)).expect("set");
    for words in
        [&["status", "--control", path][..], &["reload", "--control", path], &["stop", "--control", path]]
    {
        let refused = client.run(words, client.session.path());
        assert_eq!(refused.code, Some(1), "{words:?}: {}", refused.stdout);
        assert!(
            refused.stderr.contains(&format!("user {}", server.uid.expect("root"))),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(onehop.connect().get("/").text(), "hello");
    // Root may, and its own user.
    assert_eq!(Program::new(["status", "--control", path]).finish().code, Some(0));
    assert_eq!(server.run(&["stop", "--control", path], folder.path()).code, Some(0));
}

#[test]
fn a_second_onehop_takes_the_next_free_admin_address_and_reports_it() {
    let servers: Vec<(Folder, Onehop)> = (0..2)
        .map(|_| {
            let folder = Folder::with(&[("Onehopfile", "http://127.0.0.1:0 {\n\trespond hello\n}\n")]);
            let onehop = Onehop::start_in(folder.path());
            (folder, onehop)
        })
        .collect();
    let addresses: Vec<&str> =
        servers.iter().map(|(_, onehop)| onehop.admin.as_deref().expect("an admin endpoint")).collect();
    assert_ne!(addresses[0], addresses[1]);
    for (address, (_, onehop)) in addresses.iter().zip(&servers) {
        let port: u16 = address.rsplit(':').next().and_then(|port| port.parse().ok()).expect("a port");
        assert!((2020..2120).contains(&port), "{address}");
        assert!(onehop.metrics().contains("onehop_connections_total"));
    }
    let event = servers[1].1.process.wait_for_event("admin_listening");
    assert_eq!(event["instead_of"], "127.0.0.1:2020", "{event}");
}

#[test]
fn an_admin_address_that_was_written_and_is_taken_is_an_error() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    let folder = Folder::with(&[(
        "Onehopfile",
        &format!("{{\n\tadmin {address}\n}}\nhttp://127.0.0.1:0 {{\n\trespond hello\n}}\n"),
    )]);
    let failed = Program::new(["run"]).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!(failed.code, Some(1), "{}", failed.stderr);
    assert!(failed.stderr.contains(&format!("{address} (admin)")), "{}", failed.stderr);
}

#[test]
fn serve_app_and_proxy_open_no_admin_port_unless_asked_and_tell_metrics_over_the_control_socket() {
    let folder = Folder::with(&[("index.html", "hello")]);
    let socket = folder.join("onehop.sock");
    for words in [
        &["serve", ".", "--listen", "127.0.0.1:0"][..],
        &["app", "--listen", "127.0.0.1:0", "--", "sleep", "60"],
        &["proxy", "--to", "127.0.0.1:1", "--from", "127.0.0.1:0"],
    ] {
        let with = |more: &[&str]| {
            let (command, rest) = words.split_first().expect("a command");
            let all = [&[*command, "--log", "json"][..], more, rest].concat();
            Program::new(all).inside(folder.path()).control_in(folder.path())
        };
        let onehop = with(&[]).serve();
        assert_eq!(onehop.admin, None, "{words:?}");
        let status = Client::connect_unix(&socket).get("/status");
        let status: serde_json::Value = serde_json::from_str(status.text()).expect("JSON");
        assert_eq!(status["admin"], serde_json::Value::Null);
        let metrics = Client::connect_unix(&socket).get("/metrics");
        assert_eq!(metrics.status, 200);
        assert!(metrics.text().contains("onehop_connections_total"), "{}", metrics.text());
        assert_eq!(Client::connect_unix(&socket).get("/healthz").text(), "ok\n");
        drop(onehop);
        let asked = with(&["--admin", "127.0.0.1:0"]).serve();
        assert!(asked.metrics().contains("onehop_connections_total"));
    }
}

#[test]
fn the_only_running_instance_is_found_from_every_folder() {
    if is_root() && !other_users() {
        return;
    }
    let user = User::new();
    let folder = user.folder(&[
        (
            "sites/shop.conf",
            "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tapp /api/* ./api.mjs\n\trespond hello\n}\n",
        ),
        ("sites/api.mjs", "export default { fetch: () => new Response('api') }\n"),
    ]);
    let elsewhere = user.folder(&[("Onehopfile", HELLO)]);
    let mut onehop =
        user.program(&["run", "--config", "sites/shop.conf", "--log", "json"], folder.path()).serve();
    // A server that was killed leaves its socket behind.
    let mut killed = user.program(&["run", "--log", "json"], elsewhere.path()).serve();
    killed.process.signal(rustix::process::Signal::KILL);
    assert!(killed.process.wait().is_some());
    let status = user.run(&["status", "--json"], elsewhere.path());
    let status: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
    assert_eq!(status["pid"], onehop.process.pid());
    for words in [&["status"][..], &["reload"], &["workers"], &["status", "--healthy"]] {
        let finished = wait_for("the application", || {
            let finished = user.run(words, elsewhere.path());
            (finished.code == Some(0) || !finished.stderr.contains("starting")).then_some(finished)
        });
        assert_eq!(finished.code, Some(0), "{words:?}: {}", finished.stderr);
    }
    // What is named is not guessed.
    assert_eq!(user.run(&["stop", "--config", "."], elsewhere.path()).code, Some(1));
    assert_eq!(user.run(&["stop"], user.session.path()).code, Some(0));
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
    let none = user.run(&["status"], elsewhere.path());
    assert_eq!(none.code, Some(1));
    assert!(none.stderr.contains("no onehop runs"), "{}", none.stderr);
}

#[test]
fn with_several_instances_the_error_lists_them_and_how_to_choose() {
    if is_root() && !other_users() {
        return;
    }
    let user = User::new();
    let folder = user.folder(&[("index.html", "hello")]);
    // The second one serves the same folder.
    let serve =
        || user.program(&["serve", ".", "--listen", "127.0.0.1:0", "--log", "json"], folder.path()).serve();
    let servers = [serve(), serve()];
    for words in [&["stop"][..], &["reload"], &["status"], &["workers"]] {
        let refused = user.run(words, user.session.path());
        assert_eq!(refused.code, Some(1), "{words:?}");
        assert!(refused.stderr.contains("--control"), "{}", refused.stderr);
        for server in &servers {
            let pid = server.process.pid();
            assert!(refused.stderr.contains(&format!("process {pid}")), "{}", refused.stderr);
            assert!(refused.stderr.contains(&server.address), "{}", refused.stderr);
        }
    }
    for server in servers {
        let listed = user.run(&["status"], user.session.path());
        let control =
            listed.stderr.lines().find(|line| line.contains(&format!("process {}", server.process.pid())));
        // The last one is found without being named.
        let words: Vec<&str> = match &control {
            Some(line) => ["stop", "--control"].into_iter().chain(line.split("--control ").nth(1)).collect(),
            None => vec!["stop"],
        };
        assert_eq!(user.run(&words, user.session.path()).code, Some(0), "{}", listed.stderr);
    }
}

#[test]
fn a_server_that_is_measured_hears_when_the_load_begins_and_ends() {
    let folder = Folder::with(&[("index.html", "a page")]);
    let runtime = Folder::new();
    let start = |port: &str| {
        let words = ["serve", &folder.path().display().to_string(), "--listen", port, "--log", "json"]
            .map(str::to_owned);
        Program::new(words).with_env("XDG_RUNTIME_DIR", runtime.path()).serve()
    };
    let (measured, other) = (start("127.0.0.1:0"), start("127.0.0.2:0"));
    let url = format!("http://{}/", measured.address);
    let finished = Program::new(["bench", &url, "-n", "10", "-c", "1", "--quiet"])
        .with_env("XDG_RUNTIME_DIR", runtime.path())
        .finish();
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    measured.process.wait_for_event("load_began");
    measured.process.wait_for_event("load_ended");
    assert!(
        other.process.events().iter().all(|event| event["event"] != "load_began"),
        "{:?}",
        other.process.events()
    );
}
