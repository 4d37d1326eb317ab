//! Both listeners over real sockets, with an API that only remembers what it was asked.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use onehop_metrics::families::Kind;

use super::*;
use crate::control::{AppStatus, SiteStatus, StoreStatus};
use crate::limits::LIVE_LISTENERS_MAX;

/// Long enough for any machine, short enough for a test that fails.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Remembering {
    reloads: AtomicUsize,
    stops: AtomicUsize,
    reload_fails: bool,
    recent: Arc<Recent>,
    /// A reload waits for this, if it is there.
    gate: Mutex<Option<mpsc::Receiver<()>>>,
}

impl Api for Remembering {
    fn status(&self) -> Status {
        Status {
            version: "0.1.0".into(),
            pid: 7,
            uptime_seconds: 3,
            threads: 2,
            listening: vec!["127.0.0.1:8080".into()],
            admin: None,
            reloads: self.reloads.load(Ordering::Relaxed) as u64,
            open_connections: 1,
            requests: 5,
            sites: vec![SiteStatus { site: "a \"quoted\" site".into(), ..SiteStatus::default() }],
            stores: vec![StoreStatus {
                root: PathBuf::from("/srv/dist"),
                files: 2,
                bytes: 10,
                stored_bytes: 10,
                compressed_bytes: 4,
                on_disk: 0,
            }],
            apps: Vec::new(),
            proxies: Vec::new(),
            limits: Vec::new(),
            rate_limits: Vec::new(),
            certificates: CertificatesStatus::default(),
        }
    }

    fn slow(&self) -> Vec<RetainedRequest> {
        vec![RetainedRequest { id: "00000000000000ff".into(), path: "/slow".into(), ..Default::default() }]
    }

    fn frequent(&self, site: &str) -> FrequentOfSite {
        FrequentOfSite { site: site.to_owned(), ..FrequentOfSite::default() }
    }

    fn certificates(&self) -> CertificatesStatus {
        CertificatesStatus { total: 3, failing: 1, certificates: Vec::new() }
    }

    fn revoke(&self, name: &str, _: RevocationReason) -> Result<RevokedCertificate, String> {
        match name {
            "a.example" => Ok(RevokedCertificate { name: name.to_owned(), issuer: "ca".to_owned() }),
            _ => Err(format!("onehop has obtained no certificate for {name}")),
        }
    }

    fn workers(&self, app: &str, wanted: Option<usize>) -> Result<AppStatus, String> {
        if app != "api" {
            return Err(format!("there is no application `{app}`"));
        }
        Ok(AppStatus {
            app: app.to_owned(),
            state: "serving",
            reason: None,
            wanted: wanted.unwrap_or(1),
            queued: 0,
            failures: 0,
            workers: Vec::new(),
        })
    }

    fn recent(&self) -> Arc<Recent> {
        Arc::clone(&self.recent)
    }

    fn mark_load(&self, _: bool) {}

    fn roll(&self, app: &str) -> Result<AppStatus, String> {
        self.workers(app, None)
    }

    fn history(&self, view: &View) -> Option<String> {
        (*view != View::Handlers("off".into())).then(|| format!("{{\"view\":\"{view:?}\"}}"))
    }

    fn live(&self, _: &mut Live) -> Option<String> {
        Some("{\"at\":1}".to_owned())
    }

    fn reload(&self, _: crate::control::Restart) -> Result<ReloadSummary, String> {
        if let Some(gate) = self.gate.lock().expect("no panic").take() {
            gate.recv_timeout(TIMEOUT).expect("the gate opens");
        }
        self.reloads.fetch_add(1, Ordering::Relaxed);
        if self.reload_fails {
            Err("line 3: no such word".into())
        } else {
            Ok(ReloadSummary { sites: 2, took_ms: 1, at_next_start: vec![] })
        }
    }

    fn stop(&self) {
        self.stops.fetch_add(1, Ordering::Relaxed);
    }

    fn metrics(&self) -> Families {
        let mut families = Families::default();
        families.single("onehop_requests_total", Kind::Counter, "Requests.", 5);
        families
    }
}

struct Running {
    api: Arc<Remembering>,
    admin: Option<Admin>,
    tcp: std::net::SocketAddr,
    folder: PathBuf,
    control: PathBuf,
}

impl Running {
    fn start(api: Remembering) -> Running {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("onehop-admin-{}-{number}", std::process::id()));
        std::fs::create_dir(&folder).expect("a folder");
        let control = folder.join("control.sock");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = tcp.local_addr().expect("an address");
        let listener = bind_control_socket(&control).expect("a socket");
        let api = Arc::new(api);
        let admin = Admin::start(Some(tcp), Some(listener), api.clone()).expect("started");
        Running { api, admin: Some(admin), tcp: address, folder, control }
    }

    fn control(&self, request: &str) -> String {
        let stream = UnixStream::connect(&self.control).expect("connected");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        exchange(stream, request)
    }

    fn tcp(&self, request: &str) -> String {
        let stream = TcpStream::connect(self.tcp).expect("connected");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        exchange(stream, request)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.admin = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Sends and reads to the end; every request here asks for the close.
fn exchange(mut stream: impl Read + Write, request: &str) -> String {
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

fn ask(line: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
}

#[test]
fn the_control_socket_shows_the_status_as_json() {
    let running = Running::start(Remembering::default());
    let answer = running.control(&ask("GET /status"));
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("Content-Type: application/json\r\n"), "{answer}");
    let body = answer.split("\r\n\r\n").nth(1).expect("a body");
    let value: serde_json::Value = serde_json::from_str(body).expect("JSON");
    assert_eq!(value["pid"], 7);
    assert_eq!(value["sites"][0]["site"], "a \"quoted\" site");
    assert_eq!(value["stores"][0]["root"], "/srv/dist");
}

#[test]
fn both_endpoints_show_slow_requests_and_one_of_them_by_its_id() {
    let running = Running::start(Remembering::default());
    let shown = |answer: &str| answer.contains("\"id\":\"00000000000000ff\"");
    for answer in [running.control(&ask("GET /slow")), running.tcp(&ask("GET /slow"))] {
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && shown(&answer), "{answer}");
    }
    assert!(shown(&running.control(&ask("GET /why/00000000000000FF"))));
    let unknown = running.tcp(&ask("GET /why/1"));
    assert!(unknown.starts_with("HTTP/1.1 404 Not Found\r\n") && unknown.contains("quarter"), "{unknown}");
}

#[test]
fn the_control_socket_shows_the_certificates() {
    let running = Running::start(Remembering::default());
    let answer = running.control(&ask("GET /certificates"));
    assert!(answer.ends_with("{\"total\":3,\"failing\":1,\"certificates\":[]}"), "{answer}");
}

#[test]
fn workers_are_shown_and_changed_by_the_name_of_their_application() {
    let running = Running::start(Remembering::default());
    for (line, status, part) in [
        ("GET /workers/api", "200", "\"wanted\":1"),
        ("POST /workers/api/4", "200", "\"wanted\":4"),
        ("POST /workers/other/4", "422", "there is no application `other`"),
    ] {
        let answer = running.control(&ask(line));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{line}: {answer}");
        assert!(answer.contains(part), "{line}: {answer}");
    }
}

#[test]
fn a_certificate_is_revoked_by_its_name() {
    let running = Running::start(Remembering::default());
    for (name, status, part) in [
        ("a.example", "200", r#"{"name":"a.example","issuer":"ca"}"#),
        ("b.example", "422", "no certificate for b.example"),
    ] {
        let answer = running.control(&ask(&format!("POST /certificates/{name}/revoke/superseded")));
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{name}: {answer}");
        assert!(answer.contains(part), "{name}: {answer}");
    }
}

#[test]
fn a_reload_tells_what_it_did_or_why_it_did_nothing() {
    let running = Running::start(Remembering::default());
    let answer = running.control(&ask("POST /reload"));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.ends_with("{\"sites\":2,\"took_ms\":1,\"at_next_start\":[]}"), "{answer}");
    assert_eq!(running.api.reloads.load(Ordering::Relaxed), 1);

    let running = Running::start(Remembering { reload_fails: true, ..Remembering::default() });
    let answer = running.control(&ask("POST /reload"));
    assert!(answer.starts_with("HTTP/1.1 422"), "{answer}");
    assert!(answer.ends_with("{\"error\":\"line 3: no such word\"}"), "{answer}");
}

#[test]
fn a_stop_is_answered_before_it_begins_and_only_posted() {
    let running = Running::start(Remembering::default());
    let answer = running.control(&ask("GET /stop"));
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("Allow: POST\r\n"), "{answer}");
    assert_eq!(running.api.stops.load(Ordering::Relaxed), 0);
    let answer = running.control(&ask("POST /stop"));
    assert!(answer.starts_with("HTTP/1.1 202") && answer.ends_with("{\"stopping\":true}"), "{answer}");
    // The connection ends only after the call.
    assert_eq!(running.api.stops.load(Ordering::Relaxed), 1);
}

#[test]
fn the_admin_address_shows_metrics_and_health_and_cannot_stop() {
    let running = Running::start(Remembering::default());
    let answer = running.tcp(&ask("GET /metrics"));
    assert!(answer.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"), "{answer}");
    assert!(answer.ends_with("onehop_requests_total 5\n"), "{answer}");
    let open = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: text/html, application/openmetrics-text;version=1.0.0;q=0.5\r\nConnection: close\r\n\r\n";
    let answer = running.tcp(open);
    assert!(
        answer.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"),
        "{answer}"
    );
    assert!(answer.ends_with("onehop_requests_total 5\n# EOF\n"), "{answer}");
    assert!(running.tcp(&ask("GET /healthz")).ends_with("\r\n\r\nok\n"));
    assert!(running.tcp(&ask("HEAD /metrics")).ends_with("\r\n\r\n"));
    for line in
        ["POST /stop", "POST /reload", "POST /restart/api", "POST /workers/api/4", "GET /token", "GET /"]
    {
        assert!(running.tcp(&ask(line)).starts_with("HTTP/1.1 404"), "{line}");
    }
    assert_eq!(running.api.stops.load(Ordering::Relaxed), 0);
}

#[test]
fn a_page_under_a_name_of_its_own_reads_nothing() {
    let running = Running::start(Remembering::default());
    for path in ["/metrics", "/dashboard/", "/history", "/status", "/live"] {
        let answer = running
            .tcp(&format!("GET {path} HTTP/1.1\r\nHost: rebound.example\r\nConnection: close\r\n\r\n"));
        assert!(answer.starts_with("HTTP/1.1 421"), "{answer}");
        assert!(!answer.contains("onehop_requests_total"), "{answer}");
    }
}

#[test]
fn a_page_reloads_with_the_token_of_the_control_socket_only() {
    let running = Running::start(Remembering::default());
    let answer = running.control(&ask("GET /token"));
    let token = answer.split('"').nth(3).expect("a token");
    assert_eq!(token.len(), 2 * CONTROL_TOKEN_BYTES, "{answer}");
    let post = |origin: &str, token: &str| {
        let fields = format!("Origin: {origin}\r\nOnehop-Token: {token}\r\nConnection: close\r\n");
        running.control(&format!("POST /reload HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"))
    };
    for (origin, token) in [("http://attacker.example", token), ("http://localhost", "0000")] {
        assert!(post(origin, token).starts_with("HTTP/1.1 403"), "{origin} {token}");
    }
    assert_eq!(running.api.reloads.load(Ordering::Relaxed), 0);
    assert!(post("http://localhost", token).starts_with("HTTP/1.1 200"));
    assert_eq!(running.api.reloads.load(Ordering::Relaxed), 1);
}

#[test]
fn the_page_runs_its_own_files_only() {
    let running = Running::start(Remembering::default());
    let answer = running.tcp(&ask("GET /dashboard/"));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("Content-Type: text/html"), "{answer}");
    assert!(answer.contains("Content-Security-Policy: default-src 'self'"), "{answer}");
    assert!(running.tcp(&ask("GET /dashboard")).contains("Location: /dashboard/\r\n"));
}

#[test]
fn a_view_is_json_and_a_history_that_is_off_is_missing() {
    let running = Running::start(Remembering::default());
    assert!(running.tcp(&ask("GET /history/sites?from=1&to=2")).contains("{\"view\":\"Sites("));
    assert!(running.tcp(&ask("GET /history/handlers?site=off")).starts_with("HTTP/1.1 404"));
    assert!(running.tcp(&ask("GET /events?from=x")).starts_with("HTTP/1.1 400"));
}

#[test]
fn live_figures_are_events_for_a_bounded_number_of_listeners() {
    let running = Running::start(Remembering::default());
    let listen = || {
        let mut stream = TcpStream::connect(running.tcp).expect("connected");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream.write_all(ask("GET /live").as_bytes()).expect("sent");
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).expect("an answer");
        (String::from_utf8_lossy(&begin).into_owned(), stream)
    };
    let mut listeners: Vec<_> = (0..LIVE_LISTENERS_MAX).map(|_| listen()).collect();
    assert!(listeners.iter().all(|(begin, _)| begin == "HTTP/1.1 200"));
    assert_eq!(listen().0, "HTTP/1.1 503");
    let mut text = String::new();
    while !text.contains("data: {\"at\":1}\n\n") {
        let mut piece = [0; 256];
        let read = listeners[0].1.read(&mut piece).expect("more");
        assert!(read > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&piece[..read]));
    }
    // Whoever leaves makes room.
    listeners.clear();
    let begun = std::time::Instant::now();
    while listen().0 != "HTTP/1.1 200" {
        assert!(begun.elapsed() < TIMEOUT);
    }
}

#[test]
fn requests_follow_each_other_on_one_connection() {
    let running = Running::start(Remembering::default());
    let kept = "POST /reload HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    let answer = running.control(&format!("{kept}{kept}{}", ask("GET /status")));
    assert_eq!(answer.matches("HTTP/1.1 200").count(), 3, "{answer}");
    assert_eq!(running.api.reloads.load(Ordering::Relaxed), 2);
}

#[test]
fn malformed_and_oversized_requests_are_refused_and_closed() {
    let running = Running::start(Remembering::default());
    let answer = running.tcp("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "a".repeat(9000));
    assert!(running.tcp(&long).starts_with("HTTP/1.1 414"));
}

#[test]
fn a_long_reload_does_not_hold_up_health_or_metrics() {
    let (open, gate) = mpsc::channel();
    let running = Running::start(Remembering { gate: Mutex::new(Some(gate)), ..Remembering::default() });
    let mut waiting = UnixStream::connect(&running.control).expect("connected");
    waiting.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    waiting.write_all(ask("POST /reload").as_bytes()).expect("sent");
    assert!(running.tcp(&ask("GET /healthz")).ends_with("ok\n"));
    assert!(running.tcp(&ask("GET /metrics")).starts_with("HTTP/1.1 200"));
    open.send(()).expect("the reload waits");
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn more_connections_than_the_bound_wait_their_turn() {
    let running = Running::start(Remembering::default());
    let silent: Vec<UnixStream> = (0..CONTROL_CONNECTIONS_MAX)
        .map(|_| UnixStream::connect(&running.control).expect("connected"))
        .collect();
    let mut late = UnixStream::connect(&running.control).expect("the kernel's queue has room");
    late.write_all(ask("GET /status").as_bytes()).expect("sent");
    late.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    assert!(late.read(&mut [0; 1]).is_err(), "nobody has left yet");
    drop(silent);
    late.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    let mut answer = String::new();
    late.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn the_socket_is_for_its_user_alone_and_goes_with_the_server() {
    let mut running = Running::start(Remembering::default());
    let mode = std::fs::metadata(&running.control).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    running.admin = None;
    assert!(!running.control.exists());
    assert!(TcpStream::connect(running.tcp).is_err());
}

#[test]
fn a_dead_socket_is_replaced_and_a_live_one_is_an_error_with_its_process() {
    let running = Running::start(Remembering::default());
    let error = bind_control_socket(&running.control).expect_err("somebody lives there");
    assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&std::process::id().to_string()), "{error}");

    let dead = running.folder.join("dead.sock");
    drop(UnixListener::bind(&dead).expect("bound"));
    assert!(dead.exists());
    let listener = bind_control_socket(&dead).expect("replaced");
    assert!(UnixStream::connect(&dead).is_ok());
    drop(listener);

    let file = running.folder.join("file");
    std::fs::write(&file, "mine").expect("written");
    assert_eq!(bind_control_socket(&file).expect_err("no socket").kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(std::fs::read_to_string(&file).expect("still there"), "mine");
}

#[test]
fn only_dead_sockets_are_swept_away() {
    let running = Running::start(Remembering::default());
    let dead = running.folder.join("dead.sock");
    drop(UnixListener::bind(&dead).expect("bound"));
    let file = running.folder.join("notes.sock");
    std::fs::write(&file, "mine").expect("written");
    remove_dead_control_sockets(&running.folder).expect("swept");
    assert!(!dead.exists());
    assert!(file.exists() && running.control.exists());
    assert!(running.control(&ask("GET /status")).starts_with("HTTP/1.1 200"));
}

#[test]
fn a_server_that_ends_leaves_its_successors_socket_alone() {
    let mut running = Running::start(Remembering::default());
    std::fs::remove_file(&running.control).expect("removed");
    let successor = bind_control_socket(&running.control).expect("bound");
    running.admin = None;
    assert!(running.control.exists());
    drop(successor);
}
