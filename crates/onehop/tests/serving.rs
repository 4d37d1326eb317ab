//! A server's life: start, reload, signals, stop, seen through its sockets.

use std::fs;

use onehop_testkit::{Client, Folder, Onehop, Program, wait_for};
use rustix::process::Signal;

fn configuration(answer: &str) -> String {
    format!("{{\n\tadmin 127.0.0.1:0\n}}\nhttp://127.0.0.1:0 {{\n\trespond {answer}\n}}\n")
}

#[test]
fn port_0_takes_a_free_port_and_tells_it_in_one_json_line() {
    let onehop = Onehop::start("http://127.0.0.1:0 {\n\trespond hello\n}\n");
    let event = onehop.process.wait_for_event("listening");
    let port = onehop.address.rsplit(':').next().expect("a port");
    assert_ne!(port, "0");
    for field in ["url", "address"] {
        assert!(event[field].as_str().expect("text").ends_with(&format!(":{port}")), "{event}");
    }
    assert_eq!(onehop.connect().get("/").text(), "hello");
}

#[test]
fn the_start_names_an_address_that_is_answered() {
    for (sites, host) in [
        ("http://127.0.0.1:0", "127.0.0.1"),
        ("http://[::1]:0", "[::1]"),
        ("http://shop.example.com:0", "shop.example.com"),
        ("http://*.example.com:0, http://shop.example.com:0", "shop.example.com"),
        (":0", "localhost"),
    ] {
        let onehop = Onehop::start(&format!("{sites} {{\n\trespond hello\n}}\n"));
        let port = onehop.address.rsplit(':').next().expect("a port");
        let url = &onehop.process.wait_for_event("listening")["url"];
        assert_eq!(*url, format!("http://{host}:{port}"), "{sites}");
    }
}

#[test]
fn serve_answers_files_and_spa_answers_navigations() {
    let folder = Folder::with_app();
    let onehop = Onehop::serve(&folder.join("dist"), &["--spa"]);
    let mut client = onehop.connect();
    let page = client.ask("GET", "/deep/link", "Accept: text/html\r\n");
    assert_eq!((page.status, page.field("Cache-Control")), (200, Some("no-cache")));
    assert!(page.text().contains("<title>app</title>"));
    let asset = client.get("/assets/index-B3kq9zXw.js");
    assert_eq!(asset.status, 200);
    assert_eq!(asset.field("Cache-Control"), Some("public, max-age=31536000, immutable"));
    let missing = client.ask("GET", "/assets/gone-00000000.js", "Accept: */*\r\n");
    assert_eq!((missing.status, missing.field("Cache-Control")), (404, Some("no-store")));
}

#[test]
fn a_missing_asset_is_never_immutable_whatever_the_file_sets() {
    let folder = Folder::with_app();
    for (site, missing) in [
        ("header Cache-Control \"public, max-age=31536000, immutable\"\n\tspa ./dist", Some("no-store")),
        ("header +Cache-Control Immutable\n\troot * ./dist\n\tfile_server", None),
        ("header >Cache-Control \"max-age=1, immutable\"\n\troot * ./dist\n\tfile_server", None),
        (
            "header ?Cache-Control immutable\n\thandle /assets/gone* {\n\t\trespond 404\n\t}\n\tspa ./dist",
            None,
        ),
    ] {
        folder.write("Onehopfile", format!("{{\n\tadmin off\n}}\nhttp://127.0.0.1:0 {{\n\t{site}\n}}\n"));
        let onehop = Onehop::start_in(folder.path());
        let mut client = onehop.connect();
        let asset = client.get("/assets/index-B3kq9zXw.js");
        let kept = asset.field("Cache-Control").unwrap_or_default().to_ascii_lowercase();
        assert!(asset.status == 200 && kept.contains("immutable"), "{site}: {kept}");
        let answer = client.get("/assets/gone-00000000.js");
        assert_eq!((answer.status, answer.field("Cache-Control")), (404, missing), "{site}");
    }
}

#[test]
fn serve_without_spa_has_no_fallback_and_browse_lists_a_folder() {
    let folder = Folder::with(&[("a/one.txt", "1"), ("a/two.txt", "2")]);
    let plain = Onehop::serve(folder.path(), &[]);
    assert_eq!(plain.connect().get("/nothing").status, 404);
    assert_eq!(plain.connect().get("/a/").status, 404);
    assert_eq!(plain.connect().get("/a/one.txt").text(), "1");
    let browsing = Onehop::serve(folder.path(), &["--browse"]);
    let page = browsing.connect().ask("GET", "/a/", "Accept: text/html\r\n");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("one.txt") && page.text().contains("two.txt"), "{}", page.text());
}

#[test]
fn serve_honours_port_unless_an_address_was_given() {
    let folder = Folder::with_app();
    // A free port, given back just before it is used: nothing else on this machine asks for it by number.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = free.local_addr().expect("an address").port().to_string();
    drop(free);
    let arguments = ["serve", "dist", "--log", "json", "--control", "off"];
    let onehop = Program::new(arguments).inside(folder.path()).with_env("PORT", &port).serve();
    assert_eq!(onehop.address, format!("127.0.0.1:{port}"));
    let event = onehop.process.wait_for_event("listening");
    assert!(!event["address"].as_str().expect("text").starts_with("127."), "every interface: {event}");
    assert_eq!(onehop.connect().get("/").status, 200);

    let arguments = ["serve", "dist", "--listen", "127.0.0.1:0", "--log", "json", "--control", "off"];
    let other = Program::new(arguments).inside(folder.path()).with_env("PORT", &port).serve();
    assert_ne!(other.address, onehop.address);

    let wrong = Program::new(["serve", "dist"]).inside(folder.path()).with_env("PORT", "http").finish();
    assert_eq!(wrong.code, Some(2));
    assert!(wrong.stderr.contains("$PORT"), "{}", wrong.stderr);
}

#[test]
fn serve_listens_on_a_unix_socket() {
    let folder = Folder::with_app();
    let socket = folder.join("site.sock");
    let listen = format!("unix/{}|0600", socket.display());
    let arguments = ["serve", "dist", "--listen", &listen, "--log", "json", "--control", "off"];
    let onehop = Program::new(arguments).inside(folder.path()).serve();
    assert_eq!(onehop.address, socket.display().to_string());
    assert_eq!(Client::connect_unix(&socket).get("/").status, 200);
}

#[test]
fn an_unknown_host_is_refused_and_learns_nothing() {
    let onehop = Onehop::start("http://known.example:0 {\n\trespond secret\n}\n");
    let mut client = onehop.connect();
    client.send("GET / HTTP/1.1\r\nHost: unknown.example\r\n\r\n");
    let answer = client.read();
    assert!([404, 421].contains(&answer.status), "{answer:?}");
    assert!(!answer.head.contains("known.example") && !answer.text().contains("secret"), "{answer:?}");
    let mut client = onehop.connect();
    client.send("GET / HTTP/1.1\r\nHost: known.example\r\n\r\n");
    assert_eq!(client.read().text(), "secret");
}

#[test]
fn status_shows_the_process_as_a_page_and_as_json() {
    let folder = Folder::with_app();
    folder.write("Onehopfile", "{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\tspa ./dist\n}\n");
    let onehop = Onehop::start_in(folder.path());
    assert_eq!(onehop.connect().get("/").status, 200);
    let ask =
        |arguments: &[&str]| Program::new(arguments).inside(folder.path()).control_in(folder.path()).finish();
    let status = wait_for("the request to be counted", || {
        let answer = ask(&["status", "--json"]);
        assert_eq!(answer.code, Some(0), "{}", answer.stderr);
        let status: serde_json::Value = serde_json::from_str(&answer.stdout).expect("JSON");
        (status["requests"] == 1).then_some(status)
    });
    assert_eq!(status["pid"], onehop.process.pid());
    let event = onehop.process.wait_for_event("listening");
    assert_eq!(status["listening"][0], event["address"]);
    assert_eq!(status["stores"][0]["files"], 2);
    assert_eq!(status["admin"].as_str(), onehop.admin.as_deref());
    let page = ask(&["status"]).stdout;
    assert!(page.contains(&format!("process {}", onehop.process.pid())), "{page}");
    assert!(page.contains("ROOT"), "{page}");
}

#[test]
fn metrics_count_by_site_and_are_no_ones_but_this_machines() {
    let onehop = Onehop::start("http://127.0.0.1:0 {\n\trespond hello\n}\n");
    assert_eq!(onehop.connect().get("/").status, 200);
    wait_for("the request in the metrics", || {
        onehop.metrics().contains("onehop_requests_total").then_some(())
    });
    let admin = onehop.admin.as_deref().expect("an admin endpoint");
    let mut client = Client::connect(admin);
    client.send("GET /metrics HTTP/1.1\r\nHost: rebound.example\r\n\r\n");
    assert_eq!(client.read().status, 421);
    assert_eq!(Client::connect(admin).ask("POST", "/stop", "").status, 404);
}

#[test]
fn a_reload_publishes_the_new_file_and_a_broken_one_changes_nothing() {
    let folder = Folder::with(&[("Onehopfile", &configuration("one"))]);
    let onehop = Onehop::start_in(folder.path());
    let mut client = onehop.connect();
    assert_eq!(client.get("/").text(), "one");
    let reload = || Program::new(["reload"]).inside(folder.path()).control_in(folder.path()).finish();

    folder.write("Onehopfile", configuration("two"));
    let reloaded = reload();
    assert_eq!(reloaded.code, Some(0), "{}", reloaded.stderr);
    assert!(reloaded.stdout.starts_with("reloaded: 1 site in "), "{}", reloaded.stdout);
    // The port is the same and the connection was kept.
    assert_eq!(client.get("/").text(), "two");

    folder.write("Onehopfile", configuration("\"two\"\n\trespnd"));
    let refused = reload();
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("nothing was changed\nOnehopfile:6:2: error"), "{}", refused.stderr);
    let event = onehop.process.wait_for_event("reload_failed");
    assert!(event["reason"].as_str().expect("text").contains("Onehopfile:6:2"), "{event}");
    assert_eq!(client.get("/").text(), "two");
}

#[test]
fn sighup_reads_the_file_again() {
    let folder = Folder::with(&[("Onehopfile", &configuration("one"))]);
    let onehop = Onehop::start_in(folder.path());
    folder.write("Onehopfile", configuration("two"));
    onehop.process.signal(Signal::HUP);
    onehop.process.wait_for_event("reloaded");
    assert_eq!(onehop.connect().get("/").text(), "two");
}

#[test]
fn watch_reads_the_file_again_after_each_change_and_survives_a_broken_one() {
    let folder = Folder::with(&[
        ("Onehopfile", "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\timport answer.conf\n}\n"),
        ("answer.conf", "respond one\n"),
    ]);
    let onehop = Program::new(["run", "--watch", "--log", "json"])
        .inside(folder.path())
        .control_in(folder.path())
        .serve();
    folder.write("answer.conf", "respond two\n");
    onehop.process.wait_for_event("reloaded");
    assert_eq!(onehop.connect().get("/").text(), "two");
    folder.write("answer.conf", "respnd three\n");
    onehop.process.wait_for_event("reload_failed");
    assert_eq!(onehop.connect().get("/").text(), "two");
    // As editors save: beside it, then over it.
    folder.write("answer.conf~", "respond four\n");
    std::fs::rename(folder.join("answer.conf~"), folder.join("answer.conf")).expect("renamed");
    onehop.process.wait_for_events("reloaded", 2);
    assert_eq!(onehop.connect().get("/").text(), "four");
}

#[test]
fn sigterm_finishes_the_request_in_flight_and_ends_with_0() {
    let mut onehop = Onehop::start("http://127.0.0.1:0 {\n\trespond hello\n}\n");
    let mut client = onehop.connect();
    // The first answer proves that the connection was accepted; the second request is in flight.
    assert_eq!(client.get("/").text(), "hello");
    client.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n\r\nab");
    onehop.process.signal(Signal::TERM);
    onehop.process.wait_for_event("stopping");
    wait_for("the listener to close", || Client::try_connect(&onehop.address).err());
    client.send("cd");
    assert_eq!(client.read().status, 200);
    let status = onehop.process.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
    assert_eq!(onehop.process.wait_for_event("stopped")["cut_off"], 0);
}

#[test]
fn an_idle_connection_does_not_hold_up_a_stop() {
    let mut onehop =
        Onehop::start("{\n\tadmin off\n\tgrace_period 60s\n}\nhttp://127.0.0.1:0 {\n\trespond hello\n}\n");
    let mut client = onehop.connect();
    assert_eq!(client.get("/").text(), "hello");
    onehop.process.signal(Signal::INT);
    assert_eq!(onehop.process.wait().expect("it ends long before the grace period").code(), Some(0));
    assert!(client.read_to_end().is_empty());
}

#[test]
fn a_second_interrupt_ends_at_once() {
    let mut onehop =
        Onehop::start("{\n\tadmin off\n\tgrace_period 600s\n}\nhttp://127.0.0.1:0 {\n\trespond hello\n}\n");
    let mut client = onehop.connect();
    client.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n\r\nab");
    assert_eq!(onehop.connect().get("/").text(), "hello");
    onehop.process.signal(Signal::INT);
    onehop.process.wait_for_event("stopping");
    // One that comes in the same moment is the same one, passed on by a wrapper.
    let status = wait_for("the end", || {
        onehop.process.signal(Signal::INT);
        onehop.process.has_ended()
    });
    assert_eq!(status.code(), Some(1));
}

#[test]
fn stop_returns_when_the_process_is_gone_and_its_socket_with_it() {
    let folder = Folder::with(&[("Onehopfile", &configuration("one"))]);
    let mut onehop = Onehop::start_in(folder.path());
    let stopped = Program::new(["stop"]).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(0), "stopped\n"), "{}", stopped.stderr);
    assert_eq!(onehop.process.wait().expect("gone").code(), Some(0));
    assert!(!folder.join("onehop.sock").exists());
}

#[test]
fn each_folder_finds_its_own_server_through_the_usual_place() {
    let session = Folder::new();
    let folders = [Folder::with_app(), Folder::with_app()];
    let servers: Vec<Onehop> = folders
        .iter()
        .map(|folder| {
            Program::new(["serve", ".", "--listen", "127.0.0.1:0", "--log", "json"])
                .inside(folder.path())
                .with_env("XDG_RUNTIME_DIR", session.path())
                .serve()
        })
        .collect();
    for (folder, server) in folders.iter().zip(&servers) {
        let status = Program::new(["status", "--json"])
            .inside(folder.path())
            .with_env("XDG_RUNTIME_DIR", session.path())
            .finish();
        let status: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
        assert_eq!(status["pid"], server.process.pid());
    }
    // A file that came later does not hide the folder that is served.
    folders[0].write("Onehopfile", configuration("one"));
    let status = Program::new(["status"])
        .inside(folders[0].path())
        .with_env("XDG_RUNTIME_DIR", session.path())
        .finish();
    assert!(status.stdout.contains(&format!("process {}", servers[0].process.pid())), "{}", status.stderr);
    // Elsewhere, the ones that run are named.
    let elsewhere =
        Program::new(["status"]).inside(session.path()).with_env("XDG_RUNTIME_DIR", session.path()).finish();
    assert_eq!(elsewhere.code, Some(1));
    for server in &servers {
        assert!(
            elsewhere.stderr.contains(&format!("process {}:", server.process.pid())),
            "{}",
            elsewhere.stderr
        );
    }
}

#[test]
fn an_access_log_on_standard_output_has_it_for_itself() {
    let onehop = Onehop::start("http://127.0.0.1:0 {\n\tlog {\n\t\toutput stdout\n\t}\n\trespond hello\n}\n");
    assert_eq!(onehop.connect().get("/logged").status, 200);
    let line = wait_for("the log line", || {
        onehop.process.stdout().lines().find(|line| line.contains("/logged")).map(str::to_owned)
    });
    serde_json::from_str::<serde_json::Value>(&line).expect("a JSON line");
    assert!(!onehop.process.stdout().contains("\"event\""));
}

#[test]
fn four_threads_answer_as_one_does() {
    let folder = Folder::with_app();
    let onehop = Onehop::serve(&folder.join("dist"), &["--threads", "4"]);
    let mut clients: Vec<Client> = (0..32).map(|_| onehop.connect()).collect();
    for _ in 0..4 {
        for client in &mut clients {
            assert_eq!(client.get("/").status, 200);
        }
    }
    drop(clients);
    wait_for("the connections to be gone", || {
        let metrics = onehop.metrics();
        let open = metrics.lines().find(|line| line.starts_with("onehop_connections_open"))?;
        open.ends_with(" 0").then_some(())
    });
}

#[test]
fn of_several_that_start_at_once_with_one_file_exactly_one_serves() {
    let folder =
        Folder::with(&[("Onehopfile", "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\trespond one\n}\n")]);
    // What a process that was killed has left behind.
    drop(std::os::unix::net::UnixListener::bind(folder.join("onehop.sock")).expect("a socket"));
    let started: Vec<_> = (0..6)
        .map(|_| {
            Program::new(["run", "--log", "json"]).inside(folder.path()).control_in(folder.path()).start()
        })
        .collect();
    let mut ready = 0;
    for process in &started {
        let verdict = wait_for("ready or failed", || {
            let events = process.events();
            let verdict = events.iter().find(|event| event["event"] == "ready" || event["event"] == "failed");
            verdict.cloned()
        });
        if verdict["event"] == "ready" {
            ready += 1;
        } else {
            assert!(verdict["reason"].as_str().expect("text").contains("already running"), "{verdict}");
        }
    }
    assert_eq!(ready, 1);
    let status = Program::new(["status"]).inside(folder.path()).control_in(folder.path()).finish();
    assert_eq!(status.code, Some(0), "{}", status.stderr);
}

fn free_port() -> u16 {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    free.local_addr().expect("an address").port()
}

fn reload_in(folder: &Folder) -> onehop_testkit::Finished {
    Program::new(["reload"]).inside(folder.path()).control_in(folder.path()).finish()
}

#[test]
fn a_reload_opens_new_addresses_and_closes_those_that_are_gone() {
    let folder = Folder::new();
    let (first, second) = (free_port(), free_port());
    let site = |port: u16, answer: &str| format!("http://127.0.0.1:{port} {{\n\trespond {answer}\n}}\n");
    let global = "{\n\tadmin off\n}\n";
    folder.write("Onehopfile", format!("{global}{}", site(first, "one")));
    let onehop = Onehop::start_in(folder.path());
    let mut kept = onehop.connect();
    assert_eq!(kept.get("/").text(), "one");

    folder.write("Onehopfile", format!("{global}{}{}", site(first, "one"), site(second, "two")));
    assert_eq!(reload_in(&folder).code, Some(0));
    assert_eq!(Client::connect(&format!("127.0.0.1:{second}")).get("/").text(), "two");
    assert_eq!(kept.get("/").text(), "one");

    folder.write("Onehopfile", format!("{global}{}", site(second, "three")));
    assert_eq!(reload_in(&folder).code, Some(0));
    wait_for("the first address to close", || Client::try_connect(&format!("127.0.0.1:{first}")).err());
    assert_eq!(Client::connect(&format!("127.0.0.1:{second}")).get("/").text(), "three");
}

#[test]
fn a_reload_names_the_options_that_need_a_restart() {
    let folder = Folder::new();
    let site = |options: &str| format!("{{\n{options}\n}}\nhttp://127.0.0.1:0 {{\n\trespond hello\n}}\n");
    folder.write("Onehopfile", site("\tadmin off\n\tthreads 1"));
    let onehop = Onehop::start_in(folder.path());
    for (options, expected) in [
        ("\tadmin off\n\tthreads 2", &["threads"][..]),
        ("\tadmin 127.0.0.1:0\n\tthreads 1", &["admin"]),
        ("\tadmin off\n\tthreads 1", &[]),
    ] {
        folder.write("Onehopfile", site(options));
        let reloaded = reload_in(&folder);
        let named: Vec<_> = reloaded.stdout.lines().filter_map(|line| line.split('`').nth(1)).collect();
        assert_eq!((reloaded.code, named.as_slice()), (Some(0), expected), "{}", reloaded.stdout);
    }
    assert_eq!(onehop.process.wait_for_events("warning", 2).len(), 2);
}

#[test]
fn a_reload_that_cannot_have_an_address_or_a_root_changes_nothing() {
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = other.local_addr().expect("an address").port();
    let folder = Folder::with(&[("Onehopfile", &configuration("one"))]);
    let onehop = Onehop::start_in(folder.path());
    let taken_address = format!("{}http://127.0.0.1:{taken} {{\n\trespond x\n}}\n", configuration("two"));
    let missing_root = format!("{}http://127.0.0.2:0 {{\n\tspa ./dist\n}}\n", configuration("two"));
    for (text, reason) in [(taken_address, format!("sport = :{taken}")), (missing_root, "dist".to_owned())] {
        folder.write("Onehopfile", &text);
        let refused = reload_in(&folder);
        assert_eq!(refused.code, Some(1), "{text}: {}", refused.stdout);
        assert!(refused.stderr.contains(&reason), "{}", refused.stderr);
        assert_eq!(onehop.connect().get("/").text(), "one");
    }
    // And it is as able as before.
    folder.write("Onehopfile", configuration("three"));
    assert_eq!(reload_in(&folder).code, Some(0));
    assert_eq!(onehop.connect().get("/").text(), "three");
}

#[test]
fn a_new_build_is_served_without_a_reload_and_a_vanished_folder_keeps_its_last_one() {
    let folder = Folder::with_app();
    let onehop = Onehop::serve(&folder.join("dist"), &["--spa"]);
    let mut client = onehop.connect();
    let before = client.get("/");
    folder.write("dist/index.html", before.text().replace("<title>app", "<title>next"));
    let after = wait_for("the new build", || {
        let page = client.get("/");
        (page.body != before.body).then_some(page)
    });
    assert!(after.text().contains("<title>next"));
    assert_ne!(after.field("ETag"), before.field("ETag"));
    std::fs::remove_dir_all(folder.join("dist")).expect("removed");
    onehop.process.wait_for_event("warning");
    assert_eq!(client.get("/").body, after.body);
}

#[test]
fn a_download_in_flight_is_finished_before_the_end() {
    let folder = Folder::new();
    // More than the sockets of both ends hold.
    let large: Vec<u8> = (0..24 * 1024 * 1024_u32).map(|number| (number % 251) as u8).collect();
    folder.write("large.bin", &large);
    let mut onehop = Onehop::serve(folder.path(), &[]);
    let mut client = onehop.connect();
    client.send("GET /large.bin HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for("the request to be begun", || {
        onehop.metrics().contains("onehop_connections_open 1").then_some(())
    });
    onehop.process.signal(Signal::TERM);
    onehop.process.wait_for_event("stopping");
    let answer = client.read();
    assert_eq!((answer.status, answer.body.len()), (200, large.len()));
    assert_eq!(answer.body, large);
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
}

#[test]
fn connections_that_wait_to_be_accepted_are_answered_before_the_end() {
    for _ in 0..5 {
        let mut onehop = Onehop::start("{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\trespond hello\n}\n");
        let mut clients: Vec<Client> = (0..64).map(|_| onehop.connect()).collect();
        for client in &mut clients {
            client.send("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
        }
        onehop.process.signal(Signal::TERM);
        for client in &mut clients {
            assert_eq!(client.read().text(), "hello");
        }
        assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
    }
}

#[test]
fn a_grace_period_that_is_over_cuts_off_and_still_ends_with_0() {
    let mut onehop =
        Onehop::start("{\n\tadmin off\n\tgrace_period 1s\n}\nhttp://127.0.0.1:0 {\n\trespond hello\n}\n");
    let mut client = onehop.connect();
    client.send("POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 4\r\n\r\nab");
    assert_eq!(onehop.connect().get("/").text(), "hello");
    onehop.process.signal(Signal::TERM);
    assert_eq!(onehop.process.wait().expect("it ends").code(), Some(0));
    assert_eq!(onehop.process.wait_for_event("stopped")["cut_off"], 1);
}

/// The reload of a long-lived server under load: nobody notices.
#[test]
fn twenty_reloads_under_load_fail_no_request() {
    let folder = Folder::with(&[("Onehopfile", &configuration("hello"))]);
    let onehop = Onehop::start_in(folder.path());
    let stop = std::sync::atomic::AtomicBool::new(false);
    let answered = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut count = 0_u32;
                    let mut client = onehop.connect();
                    while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                        // New connections and kept ones alike.
                        if count.is_multiple_of(50) {
                            client = onehop.connect();
                        }
                        assert_eq!(client.get("/").text(), "hello");
                        count += 1;
                    }
                    count
                })
            })
            .collect();
        for number in 1..=20 {
            onehop.process.signal(Signal::HUP);
            onehop.process.wait_for_events("reloaded", number);
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        clients.into_iter().map(|client| client.join().expect("no failed request")).sum::<u32>()
    });
    assert!(answered > 20, "{answered}");
}

#[test]
fn a_page_of_an_earlier_build_finds_its_chunks_and_nothing_else_of_that_build() {
    let folder = Folder::new();
    let plain =
        "handle_path /plain/* {\n\t\troot ./dist\n\t\ttry_files {path} /index.html\n\t\tfile_server\n\t}";
    let site = format!(
        "{{\n\tadmin off\n}}\nhttp://127.0.0.1:0 {{\n\t{plain}\n\thandle {{\n\t\tspa ./dist\n\t}}\n}}\n"
    );
    folder.write("Onehopfile", site);
    let chunk = |number: u32| format!("assets/page-B3kq9zX{number}.js");
    let build = |number: u32| {
        let next = folder.join("next");
        fs::create_dir_all(next.join("assets")).expect("made");
        fs::write(next.join("index.html"), format!("build {number}<script src=/{}></script>", chunk(number)))
            .expect("written");
        fs::write(next.join(chunk(number)), format!("chunk {number}")).expect("written");
        fs::write(next.join(format!("about-{number}.html")), "a document").expect("written");
        fs::write(next.join(format!("data-{number}.json")), "without a hash").expect("written");
        let before = folder.join("dist");
        if before.exists() {
            fs::rename(&before, folder.join(&format!("old-{number}"))).expect("moved");
        }
        fs::rename(&next, before).expect("moved");
    };
    build(0);
    let server = Onehop::start_in(folder.path());
    let body = |target: &str| {
        let answer = server.connect().get(target);
        (answer.status, answer.text().to_owned())
    };
    for number in 1..=5 {
        build(number);
        wait_for("the new build", || body("/").1.starts_with(&format!("build {number}<")).then_some(()));
        for old in 0..=number {
            let expected =
                if number - old <= 3 { (200, format!("chunk {old}")) } else { (404, String::new()) };
            assert_eq!(body(&format!("/{}", chunk(old))), expected, "chunk {old} in build {number}");
        }
        assert_eq!(body("/assets/page-C4mq9zX0.js").0, 404, "one that never was");
        assert_eq!(body(&format!("/data-{}.json", number - 1)).0, 404, "a file without a hash");
        assert_eq!(body(&format!("/about-{}.html", number - 1)).0, 404, "a document");
    }
    // `try_files` finds them as well.
    let mut other = server.connect();
    assert_eq!(other.get(&format!("/plain/{}", chunk(3))).text(), "chunk 3");
    assert!(other.get(&format!("/plain/{}", chunk(0))).text().starts_with("build 5<"), "the fallback");
}
