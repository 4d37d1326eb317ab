//! A pack that runs: it serves what the folder serves, and whoever runs it changes what differs from place to place.
//!
//! Packs are made by the real program, once for each kind, and linked into the folder of each test.

use std::fs::{self, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use onehop_testkit::{Client, Finished, Folder, Onehop, Program, wait_for};
use rustix::process::Signal;

const SITE: &str = "\
{
	admin off
}
http://localhost:8080 {
	handle /who {
		respond \"{$WHO:nobody} at {host}\"
	}
	handle {
		encode zstd br gzip
		spa dist
	}
}
";

const INDEX: &str = "<!doctype html><title>shop</title><script src=/assets/app-B3kq9zXw.js></script>\n";

/// A pack of a site without an application.
fn site() -> &'static Path {
    static MADE: OnceLock<Folder> = OnceLock::new();
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let folder = MADE.get_or_init(|| {
        let script = "document.title = 'onehop'\n".repeat(400);
        let folder = Folder::with(&[
            ("site/Onehopfile", SITE),
            ("site/dist/index.html", INDEX),
            ("site/dist/assets/app-B3kq9zXw.js", &script),
            ("site/dist/robots.txt", "User-agent: *\n"),
        ]);
        pack(&folder, "site", "shop");
        folder
    });
    PATH.get_or_init(|| folder.join("shop"))
}

/// A pack of a site with an application.
fn with_app() -> &'static Path {
    static MADE: OnceLock<Folder> = OnceLock::new();
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    let folder = MADE.get_or_init(|| {
        let folder = Folder::with(&[
            (
                "site/Onehopfile",
                "{\n\tadmin off\n}\nhttp://localhost:8080 {\n\tapp /api/* api/server.mjs {\n\t\tenv MODE packed\n\t}\n\tspa dist\n}\n",
            ),
            ("site/package.json", "{\"name\": \"shop\", \"type\": \"module\"}\n"),
            (
                "site/api/server.mjs",
                "import { word } from './word.mjs';\nconst { MODE, A, PATH } = process.env;\n\
                 export default { fetch: () => Response.json({ word, MODE, A, file: import.meta.url, pid: process.pid }) };\n",
            ),
            ("site/api/word.mjs", "export const word = 'unpacked';\n"),
            ("site/dist/index.html", INDEX),
        ]);
        pack(&folder, "site", "shop");
        folder
    });
    PATH.get_or_init(|| folder.join("shop"))
}

fn pack(folder: &Folder, site: &str, name: &str) {
    let output = folder.join(name);
    let packed = Program::new(["pack".as_ref(), "-o".as_ref(), output.as_os_str()])
        .inside(&folder.join(site))
        .finish();
    assert_eq!(packed.code, Some(0), "{}", packed.stderr);
}

/// The pack in a folder of its own, so that each test has its own control socket and override file.
fn placed(pack: &Path) -> (Folder, PathBuf) {
    let folder = Folder::new();
    let path = folder.join("shop");
    // The same file where that works: packs are as large as onehop.
    if fs::hard_link(pack, &path).is_err() {
        fs::copy(pack, &path).expect("copied");
    }
    (folder, path)
}

fn program(folder: &Folder, path: &Path, arguments: &[&str]) -> Program {
    Program::of(path, arguments)
        .inside(folder.path())
        .with_env("ONEHOP_CACHE", folder.path())
        .with_env("XDG_RUNTIME_DIR", folder.path())
}

/// Started at a free port of this machine.
fn start(folder: &Folder, path: &Path, arguments: &[&str]) -> Onehop {
    let usual = ["--listen", "127.0.0.1:0", "--log", "json"];
    program(folder, path, &[&usual, arguments].concat()).serve()
}

fn finish(folder: &Folder, path: &Path, arguments: &[&str]) -> Finished {
    program(folder, path, arguments).finish()
}

/// What is told, without what differs from run to run.
fn plain(text: &str, folder: &Folder) -> String {
    text.replace(&folder.path().display().to_string(), "/srv")
}

fn get(address: &str, path: &str) -> String {
    Client::connect(address).get(path).text().to_owned()
}

fn has_node() -> bool {
    let found = Command::new("node").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: node is not installed");
    }
    found
}

#[test]
fn a_pack_answers_with_the_bytes_of_the_folder() {
    let (folder, path) = placed(site());
    let packed = start(&folder, &path, &[]);
    let source = site().with_file_name("site");
    let served = Program::new(["run", "--log", "json", "--control", "off"]).inside(&{
        // The folder at a free port.
        let copy = folder.join("copy");
        fs::create_dir_all(&copy).expect("a folder");
        fs::write(copy.join("Onehopfile"), SITE.replace("http://localhost:8080", ":0")).expect("written");
        std::os::unix::fs::symlink(source.join("dist"), copy.join("dist")).expect("linked");
        copy
    });
    let served = served.serve();
    let comparable = |head: &str| {
        let fields = head.lines().filter(|line| {
            let line = line.to_ascii_lowercase();
            !line.starts_with("date:") && !line.starts_with("last-modified:")
        });
        fields.collect::<Vec<_>>().join("\n")
    };
    for (method, target, fields) in [
        ("GET", "/", ""),
        ("GET", "/robots.txt", ""),
        ("HEAD", "/assets/app-B3kq9zXw.js", ""),
        ("GET", "/assets/app-B3kq9zXw.js", "Accept-Encoding: br\r\n"),
        ("GET", "/assets/app-B3kq9zXw.js", "Accept-Encoding: gzip\r\n"),
        ("GET", "/assets/app-B3kq9zXw.js", "Range: bytes=5-20\r\n"),
        ("GET", "/some/page", "Accept: text/html\r\n"),
        ("GET", "/assets/missing.js", ""),
        ("POST", "/", ""),
    ] {
        let ask = |address: &str| {
            // The same host for both: it is no part of what is compared.
            let request =
                format!("{method} {target} HTTP/1.1\r\nHost: shop\r\n{fields}Content-Length: 0\r\n\r\n");
            let mut client = Client::connect(address);
            client.send(request);
            client.read_for(method)
        };
        let (from_pack, from_folder) = (ask(&packed.address), ask(&served.address));
        let same = wait_for("the folder's forms are made", || {
            let from_folder = ask(&served.address);
            (comparable(&from_pack.head) == comparable(&from_folder.head))
                .then_some(from_folder.body == from_pack.body)
        });
        assert!(same, "{method} {target}: {} against {}", from_pack.head, from_folder.head);
    }
}

#[test]
fn a_pack_says_who_it_is_and_helps_under_its_own_name() {
    let (folder, path) = placed(site());
    let version = finish(&folder, &path, &["--version"]);
    let words: Vec<&str> = version.stdout.trim_end().split(' ').collect();
    let [name, own, "(packed", "by", "onehop", _, "sha256", digest] = words.as_slice() else {
        panic!("{}", version.stdout)
    };
    assert_eq!((*name, *own, digest.len()), ("shop", env!("CARGO_PKG_VERSION"), 13));
    let help = finish(&folder, &path, &["--help"]);
    assert!(help.stdout.contains("./shop --listen :80"), "{}", help.stdout);
    let inspected = finish(&folder, &path, &["inspect"]);
    assert_eq!(inspected.code, Some(0), "{}", inspected.stderr);
    assert!(inspected.stdout.contains("shop"), "{}", inspected.stdout);
    assert_eq!(finish(&folder, &path, &["run"]).code, Some(2), "it has no other configuration");
    assert_eq!(finish(&folder, &path, &["--no-such-option"]).code, Some(2));
}

#[test]
fn where_to_listen_is_said_by_flags_variables_a_file_or_the_platform() {
    let (folder, path) = placed(site());
    let listening = |program: Program| {
        let server = program.serve();
        assert_eq!(
            get(&server.address, "/who"),
            format!("nobody at {}", "127.0.0.1"),
            "any host is answered"
        );
        server.address.clone()
    };
    let json = ["--log", "json"];
    let by = |name: &str, value: &str| program(&folder, &path, &json).with_env(name, value);
    listening(by("PORT", "0"));
    listening(by("ONEHOP_LISTEN", "127.0.0.1:0"));
    // More explicit words count more: what counts less could not be listened on.
    listening(by("PORT", "1").with_env("ONEHOP_LISTEN", "127.0.0.1:0"));
    folder.write("shop.override", "listen 127.0.0.1:0\n");
    listening(by("PORT", "1"));
    folder.write("shop.override", "listen 192.0.2.1:1\n");
    folder.write("other", "listen 127.0.0.1:0\n");
    listening(by("ONEHOP_OVERRIDE", "other"));
    listening(by("ONEHOP_LISTEN", "127.0.0.1:0"));
    listening(program(&folder, &path, &["--log", "json", "--override", "other"]));
    listening(
        program(&folder, &path, &["--log", "json", "-l", "127.0.0.1:0"])
            .with_env("ONEHOP_LISTEN", "192.0.2.1:1"),
    );
}

#[test]
fn a_unix_socket_and_a_log_lie_where_the_pack_was_started() {
    let (folder, path) = placed(site());
    folder.write(
        "shop.override",
        "listen unix/shop.sock\nsite http://localhost:8080 {\n\tlog {\n\t\toutput file access.log\n\t}\n}\n",
    );
    let server = program(&folder, &path, &["--log", "json"]).start();
    server.wait_for_event("ready");
    let answer = Client::connect_unix(&folder.join("shop.sock")).get("/robots.txt");
    assert_eq!(answer.text(), "User-agent: *\n");
    wait_for("a line of the log", || {
        fs::read_to_string(folder.join("access.log")).ok().filter(|text| text.contains("robots"))
    });
}

#[test]
fn the_environment_of_the_start_fills_in_the_packed_file() {
    let (folder, path) = placed(site());
    let usual = ["--listen", "127.0.0.1:0", "--log", "json"];
    let server = program(&folder, &path, &usual).with_env("WHO", "somebody").serve();
    assert_eq!(get(&server.address, "/who"), "somebody at 127.0.0.1");
}

#[test]
fn what_is_wrong_with_a_change_is_said_before_anything_starts() {
    let (folder, path) = placed(with_app());
    folder.write("wrong", "app ap {\n\tworkers 2\n}\nlisten 8080\n");
    let mut reported = Vec::new();
    for arguments in [
        &["--listen", "8080"][..],
        &["--listen", "http://other=:80"],
        &["--workers", "shop=2"],
        &["--workers", "none"],
        &["--env", "=x"],
        &["--override", "wrong"],
        &["--override", "nowhere"],
        &["validate", "--listen", ":x"],
    ] {
        let finished = finish(&folder, &path, arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}: {}", finished.stderr);
        reported.push(format!("$ ./shop {}\n{}", arguments.join(" "), plain(&finished.stderr, &folder)));
    }
    insta::assert_snapshot!(reported.join("\n"));
}

#[test]
fn changes_are_shown_before_they_are_made() {
    let (folder, path) = placed(with_app());
    let sound = finish(&folder, &path, &["validate", "--listen", "127.0.0.1:80"]);
    assert_eq!(
        (sound.code, sound.stdout.as_str()),
        (Some(0), "shop is sound: 1 site, listening on 127.0.0.1:80, running api\n")
    );
    let routes = finish(&folder, &path, &["routes", "--listen", ":81", "--workers", "api=3"]);
    assert!(routes.stdout.starts_with(":81 at :81\n"), "{}", routes.stdout);
    assert!(routes.stdout.contains("/api/*"), "{}", routes.stdout);
}

#[test]
fn a_reload_reads_the_override_file_again_and_a_wrong_one_changes_nothing() {
    let (folder, path) = placed(site());
    folder.write("shop.override", "{\n\tgrace_period 1s\n}\n");
    let server = start(&folder, &path, &[]);
    let log = |name: &str| {
        folder.write(
            "shop.override",
            format!("site http://localhost:8080 {{\n\tlog {{\n\t\toutput file {name}\n\t}}\n}}\n"),
        );
    };
    log("one.log");
    let reloaded = finish(&folder, &path, &["reload"]);
    assert_eq!(reloaded.code, Some(0), "{}", reloaded.stderr);
    get(&server.address, "/robots.txt");
    wait_for("the log", || {
        fs::read_to_string(folder.join("one.log")).ok().filter(|text| text.contains("robots"))
    });
    folder.write("shop.override", "lisen :80\n");
    let refused = finish(&folder, &path, &["reload"]);
    assert_eq!(refused.code, Some(1));
    insta::assert_snapshot!(plain(&refused.stderr, &folder));
    assert_eq!(get(&server.address, "/robots.txt"), "User-agent: *\n");
    log("two.log");
    server.process.signal(Signal::HUP);
    server.process.wait_for_events("reloaded", 2);
    get(&server.address, "/robots.txt");
    wait_for("the log", || {
        fs::read_to_string(folder.join("two.log")).ok().filter(|text| text.contains("robots"))
    });
}

#[test]
fn watching_a_pack_watches_its_override_file() {
    let (folder, path) = placed(site());
    let server = start(&folder, &path, &["--watch"]);
    folder.write("shop.override", "{\n\tgrace_period 1s\n}\n");
    server.process.wait_for_event("reloaded");
}

#[test]
fn a_damaged_pack_says_what_is_wrong_and_does_nothing_else() {
    let (folder, _) = placed(site());
    let whole = fs::read(site()).expect("the pack");
    let length = whole.len();
    let changed = folder.join("changed");
    let mut reported = Vec::new();
    let mut run = |name: &str, make: &dyn Fn(&Path)| {
        let _ = fs::remove_file(&changed);
        fs::copy(site(), &changed).expect("copied");
        make(&changed);
        for arguments in [&["--listen", "127.0.0.1:0"][..], &["--version"], &["inspect"]] {
            let finished = finish(&folder, &changed, arguments);
            assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{name} {arguments:?}");
            let text = plain(&finished.stderr, &folder).replace(&length.to_string(), "ALL");
            if arguments == ["inspect"] {
                reported.push(format!("{name}: {text}"));
            }
        }
    };
    let open = |path: &Path| OpenOptions::new().read(true).write(true).open(path).expect("opened");
    run("cut off", &|path| open(path).set_len(length as u64 - 100_000).expect("cut"));
    run("a byte short", &|path| open(path).set_len(length as u64 - 1).expect("cut"));
    run("longer", &|path| {
        let mut file = open(path);
        file.seek(SeekFrom::End(0)).expect("its end");
        file.write_all(b"more").expect("written");
    });
    run("its index", &|path| {
        let mut file = open(path);
        // Before the place at its end, which has 104 bytes.
        file.seek(SeekFrom::Start(length as u64 - 150)).expect("there");
        file.write_all(b"\xff\xff\xff\xff").expect("written");
    });
    let reported = with_names(&reported.join(""), length);
    insta::assert_snapshot!(reported);
}

/// Lengths differ from build to build.
fn with_names(text: &str, length: usize) -> String {
    [(100_000, "LESS"), (1, "ALL-1")]
        .into_iter()
        .fold(text.to_owned(), |text, (less, name)| text.replace(&(length - less).to_string(), name))
        .replace(&(length + 4).to_string(), "ALL+4")
}

#[test]
fn a_pack_is_found_by_its_file_also_when_that_was_replaced() {
    let (folder, path) = placed(site());
    let mut server = start(&folder, &path, &[]);
    let status = finish(&folder, &path, &["status"]);
    assert!(
        status.stdout.contains(&format!("process {}", server.process.pid())),
        "{}{}",
        status.stdout,
        status.stderr
    );
    let newer = folder.join("shop.new");
    fs::copy(with_app(), &newer).expect("copied");
    fs::rename(&newer, &path).expect("replaced");
    assert_eq!(finish(&folder, &path, &["reload"]).code, Some(0));
    assert_eq!(
        get(&server.address, "/robots.txt"),
        "User-agent: *\n",
        "it goes on with what it was started from"
    );
    assert_eq!(get(&server.address, "/"), INDEX);
    let stopped = finish(&folder, &path, &["stop"]);
    assert_eq!((stopped.code, stopped.stdout.as_str()), (Some(0), "stopped\n"), "{}", stopped.stderr);
    assert!(server.process.wait().is_some_and(|status| status.success()));
    let nobody = finish(&folder, &path, &["status"]);
    assert_eq!(nobody.code, Some(1));
    // Others of this user may run.
    assert!(
        plain(&nobody.stderr, &folder).starts_with("error: no onehop runs with /srv/shop\n"),
        "{}",
        nobody.stderr
    );
}

#[test]
fn two_packs_run_side_by_side() {
    let (folder, first) = placed(site());
    let second = folder.join("second");
    fs::copy(with_app(), &second).expect("copied");
    let one = start(&folder, &first, &[]);
    let two = program(&folder, &second, &["--listen", "127.0.0.1:0", "--log", "json"]).serve();
    let pid = |path: &Path| finish(&folder, path, &["status"]).stdout;
    assert!(pid(&first).contains(&format!("process {}", one.process.pid())));
    assert!(pid(&second).contains(&format!("process {}", two.process.pid())));
    let again = finish(&folder, &first, &["--listen", "127.0.0.1:0"]);
    assert_eq!(again.code, Some(1));
    assert!(again.stderr.contains("already running"), "{}", again.stderr);
    assert!(again.stderr.contains(&format!("{} stop --control", first.display())), "{}", again.stderr);
}

#[test]
fn an_application_runs_from_what_is_unpacked_and_sees_what_was_changed() {
    if !has_node() {
        return;
    }
    let (folder, path) = placed(with_app());
    let server = start(&folder, &path, &["--workers", "api=2", "--env", "A={x}", "--env", "MODE=changed"]);
    let answer: serde_json::Value = serde_json::from_str(&get(&server.address, "/api/")).expect("JSON");
    assert_eq!(
        (&answer["word"], &answer["MODE"], &answer["A"]),
        (&"unpacked".into(), &"changed".into(), &"{x}".into())
    );
    let file = answer["file"].as_str().expect("a URL");
    assert!(file.contains("/onehop-pack-") && file.ends_with("/app/api/server.mjs"), "{file}");
    let workers = finish(&folder, &path, &["workers", "--json"]);
    let workers: serde_json::Value = serde_json::from_str(&workers.stdout).expect("JSON");
    assert_eq!(workers[0]["wanted"], 2, "{workers}");
    // A newer file in its place: the old process still starts workers, with what it is.
    fs::remove_file(&path).expect("removed");
    fs::copy(site(), &path).expect("copied");
    let pid = i32::try_from(answer["pid"].as_i64().expect("a number")).expect("small");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("killed");
    wait_for("another worker", || {
        let answer: serde_json::Value = serde_json::from_str(&get(&server.address, "/api/")).ok()?;
        let workers = finish(&folder, &path, &["workers"]).stdout;
        (answer["word"] == "unpacked" && workers.contains("2 of 2 workers")).then_some(())
    });
}

#[test]
fn a_worker_comes_back_after_what_was_unpacked_was_removed() {
    if !has_node() {
        return;
    }
    let (folder, path) = placed(with_app());
    let server = start(&folder, &path, &[]);
    let answer = || serde_json::from_str::<serde_json::Value>(&get(&server.address, "/api/")).ok();
    let first = wait_for("the application", answer);
    let file = first["file"].as_str().and_then(|file| file.strip_prefix("file://")).expect("a URL");
    let unpacked = Path::new(file).ancestors().nth(3).expect("the folder of the pack");
    fs::remove_dir_all(unpacked).expect("removed");
    let pid = i32::try_from(first["pid"].as_i64().expect("a number")).expect("small");
    let pid = rustix::process::Pid::from_raw(pid).expect("a process");
    rustix::process::kill_process(pid, Signal::KILL).expect("killed");
    let second = wait_for("another worker", || answer().filter(|answer| answer["word"] == "unpacked"));
    assert_ne!(first["pid"], second["pid"]);
    assert_eq!(first["file"], second["file"]);
    fs::remove_dir_all(unpacked).expect("removed");
    let reloaded = finish(&folder, &path, &["reload"]);
    assert_eq!(reloaded.code, Some(0), "{}", reloaded.stderr);
}

#[test]
fn a_named_cache_begins_in_the_working_directory_and_one_that_cannot_be_used_is_an_error() {
    let (folder, path) = placed(with_app());
    fs::write(folder.join("file"), "").expect("written");
    let arguments = ["--listen", "127.0.0.1:0", "--log", "json"];
    let refused = program(&folder, &path, &arguments).with_env("ONEHOP_CACHE", "file").finish();
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    let expected =
        "the applications cannot be unpacked where ONEHOP_CACHE says (/srv/file is no folder): name a folder";
    assert!(plain(&refused.stderr, &folder).contains(expected), "{}", refused.stderr);
    let _server = program(&folder, &path, &arguments).with_env("ONEHOP_CACHE", "new/cache").serve();
    let unpacked = wait_for("the folder of the pack", || {
        let mut names = fs::read_dir(folder.join("new/cache")).ok()?.flatten().map(|entry| entry.path());
        names.find(|path| path.join(".complete").exists())
    });
    assert!(unpacked.join("app/api/server.mjs").exists());
}

const HANDLER: &str = "export default { fetch: () => new Response(process.env.TOKEN ?? 'none') };\n";

#[test]
fn an_application_without_a_name_is_called_the_same_in_the_folder_in_packs_and_after_an_upgrade() {
    let named = "{\n\tadmin off\n}\nhttp://localhost:0 {\n\tapp /api/* server.mjs\n}\n";
    let folder = Folder::with(&[("orders/src/Onehopfile", named), ("orders/src/server.mjs", HANDLER)]);
    let source = folder.join("orders/src");
    let running = ", running orders\n";
    let run = Program::new(["validate"]).inside(&source).finish();
    assert!(run.stdout.ends_with(running), "{}{}", run.stdout, run.stderr);
    pack(&folder, "orders/src", "first");
    folder.write("orders/src/server.mjs", format!("// Another version.\n{HANDLER}"));
    pack(&folder, "orders/src", "second");
    folder.write("override", "app orders {\n\tworkers 2\n}\n");
    let path = folder.join("shop");
    for version in ["first", "second"] {
        fs::rename(folder.join(version), &path).expect("put in its place");
        let sound = finish(&folder, &path, &["validate", "--override", "override"]);
        assert!(sound.stdout.ends_with(running), "{version}: {}{}", sound.stdout, sound.stderr);
        // A pack that serves finds the name in the folder into which it is unpacked.
        let mut server = start(&folder, &path, &["--override", "override", "--workers", "orders=1"]);
        let reloaded = finish(&folder, &path, &["reload"]);
        assert_eq!(reloaded.code, Some(0), "{version}: {}", reloaded.stderr);
        let workers = finish(&folder, &path, &["workers", "--json"]).stdout;
        let workers: serde_json::Value = serde_json::from_str(&workers).expect("JSON");
        assert_eq!((&workers[0]["app"], &workers[0]["wanted"]), (&"orders".into(), &1.into()), "{workers}");
        assert_eq!(finish(&folder, &path, &["stop"]).code, Some(0));
        assert!(server.process.wait().is_some_and(|status| status.success()));
    }
}

#[test]
fn a_variable_that_is_set_only_where_the_pack_runs_is_reported_and_not_needed_to_pack() {
    let text = "{\n\tadmin off\n}\nhttp://:{$AT} {\n\tapp /api/* api/server.mjs {\n\t\tenv TOKEN {$TOKEN}\n\t\t\
                workers {$COUNT}\n\t}\n\trespond /note \"note {$NOTE}\" {$CODE:200}\n}\n";
    let folder = Folder::with(&[("site/Onehopfile", text), ("site/api/server.mjs", HANDLER)]);
    let path = folder.join("shop");
    let packing = |name: &str, value: &str| {
        Program::new(["pack", "-o", "../shop"]).inside(&folder.join("site")).with_env(name, value).finish()
    };
    for packed in [packing("UNUSED", ""), packing("TOKEN", "hush-12345")] {
        assert_eq!(packed.code, Some(0), "{}", packed.stderr);
        assert_eq!(packed.stderr, "", "what is to be set is told with the rest");
        assert!(packed.stdout.contains("to be set  AT, COUNT, NOTE, TOKEN\n"), "{}", packed.stdout);
        let bytes = fs::read(&path).expect("the pack");
        assert!(!bytes.windows(10).any(|part| part == b"hush-12345"));
        let inspected = finish(&folder, &path, &["inspect"]);
        assert!(inspected.stdout.contains("to be set  AT, COUNT, NOTE, TOKEN\n"), "{}", inspected.stdout);
        assert!(!inspected.stdout.contains(":1\n"), "no address was made up: {}", inspected.stdout);
    }
    let unset = finish(&folder, &path, &["validate"]);
    assert_eq!(unset.code, Some(2));
    insta::assert_snapshot!("a_variable_that_is_not_set_is_named", plain(&unset.stderr, &folder));
    let partly = program(&folder, &path, &["validate"])
        .with_env("TOKEN", "a")
        .with_env("AT", "8080")
        .with_env("COUNT", "1")
        .finish();
    assert_eq!(partly.code, Some(0), "{}", partly.stderr);
    assert!(partly.stderr.contains("the environment variable `NOTE` is not set"), "{}", partly.stderr);
    if has_node() {
        let server = program(&folder, &path, &["--log", "json", "--listen", "127.0.0.1:0"]);
        let server =
            server.with_env("TOKEN", "of-this-machine").with_env("AT", "8080").with_env("COUNT", "1").serve();
        assert_eq!(get(&server.address, "/api/"), "of-this-machine");
    }
    // What packing itself has to know cannot be made up, and the error is that of the file as it is.
    folder.write("site/Onehopfile", "http://localhost:8080 {\n\tapp {$FILE}\n}\n");
    let refused = packing("UNUSED", "");
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(refused.stderr.contains("`FILE` is not set"), "{}", refused.stderr);
}

#[test]
fn an_empty_variable_for_the_override_file_is_one_that_is_not_set() {
    let (folder, path) = placed(site());
    let empty = |name: &str| program(&folder, &path, &["validate"]).with_env(name, "").finish();
    for name in ["ONEHOP_OVERRIDE", "ONEHOP_LISTEN", "ONEHOP_WORKERS", "PORT"] {
        let reported = empty(name);
        assert_eq!((reported.code, reported.stderr.as_str()), (Some(0), ""), "{name}");
    }
    folder.write("shop.override", "listen :x\n");
    assert_eq!(empty("ONEHOP_OVERRIDE").code, Some(2), "the file beside the program counts as ever");
}

#[test]
fn a_pack_may_be_asked_to_serve_https() {
    let (folder, path) = placed(site());
    let checked = finish(&folder, &path, &["validate", "--listen", "https://localhost:8443"]);
    assert_eq!(checked.code, Some(0), "{}", checked.stderr);
}

#[test]
fn of_two_flags_for_the_same_thing_none_counts_in_silence() {
    let (folder, path) = placed(with_app());
    for (arguments, reported) in [
        (&["--workers", "api=2", "--workers", "api=3"][..], "`--workers` is given twice for `api`"),
        (&["--workers", "2", "--workers", "3"], "`--workers` is given twice"),
        (&["--env", "A=hush", "--env", "A=hush"], "`--env` is given twice for `A`"),
    ] {
        let refused = finish(&folder, &path, &[&["validate"], arguments].concat());
        assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.stdout);
        assert!(refused.stderr.contains(reported) && !refused.stderr.contains("hush"), "{}", refused.stderr);
    }
    let reported = finish(&folder, &path, &["validate", "--env", "PORT=99", "--env", "A=1"]);
    assert_eq!(reported.code, Some(0), "{}", reported.stderr);
    assert!(reported.stderr.contains("not where the pack listens"), "{}", reported.stderr);
}

#[test]
fn in_an_empty_root_a_running_pack_is_found_by_its_control_socket() {
    let tried = Command::new("unshare").args(["--mount", "true"]).status();
    if !tried.is_ok_and(|status| status.success()) {
        eprintln!("skipped: this user may make no namespaces (unshare --mount)");
        return;
    }
    // Statically linked programs only: the program of ordinary tests finds its loader and libraries bound into the root.
    let bound = "for at in lib lib64 usr; do if [ -e /$at ]; then mkdir -p root/$at && mount --bind /$at root/$at; fi; done; \
                 exec chroot root /shop \"$@\"";
    let (folder, path) = placed(site());
    fs::create_dir_all(folder.join("root")).expect("a folder");
    fs::copy(&path, folder.join("root/shop")).expect("copied");
    let within = |arguments: &[&str]| {
        Program::of(Path::new("sh"), arguments)
            .inside(folder.path())
            .with_env("ONEHOP_CACHE", "/cache")
            .through(&["unshare", "--mount", "sh", "-c", bound])
    };
    for expected in ["run/onehop", "cache/onehop-0"] {
        let server = within(&["--listen", "127.0.0.1:0", "--log", "json"]).serve();
        let reported = server.process.stderr();
        assert!(!reported.contains("there is no control socket"), "{reported}");
        assert!(
            fs::read_dir(folder.join("root").join(expected)).is_ok_and(|found| found.count() > 0),
            "{expected}"
        );
        for arguments in [&["reload"][..], &["status", "--healthy"], &["stop"]] {
            let reported = within(arguments).finish();
            assert_eq!(reported.code, Some(0), "{arguments:?}: {}", reported.stderr);
        }
        // Once more where not even /run can be made.
        let _ = fs::remove_dir_all(folder.join("root/run"));
        folder.write("root/run", "");
        let _ = fs::create_dir(folder.join("root/cache"));
    }
}

/// Adds a row to two databases at each request: one in its own folder, and one in its data folder where it has that.
const WRITES: &str = "\
import { appendFileSync, readFileSync } from 'node:fs';
const VERSION = 'first';
const add = (file) => (appendFileSync(file, 'row\\n'), readFileSync(file, 'utf8').trim().split('\\n').length);
const { APP_DATA_DIR } = process.env;
export default {
  fetch: () => Response.json({
    VERSION, APP_DATA_DIR, pid: process.pid, folder: process.cwd(),
    new: add('data/new.db'), packed: add('data/notes.db'), kept: APP_DATA_DIR && add(`${APP_DATA_DIR}/rows.db`),
  }),
};
";

/// Two versions of a pack whose application writes, beside their project.
fn that_writes() -> (Folder, PathBuf) {
    let site = "{\n\tadmin off\n}\nhttp://localhost:8080 {\n\tapp /api/* server.mjs {\n\t\tname shop\n\t\tdata shop\n\t}\n}\n";
    let folder = Folder::with(&[
        ("site/Onehopfile", site),
        ("site/package.json", "{\"type\": \"module\"}\n"),
        ("site/server.mjs", WRITES),
        ("site/data/notes.db", "packed\n"),
    ]);
    for version in ["first", "second"] {
        folder.write("site/server.mjs", WRITES.replace("'first'", &format!("'{version}'")));
        let output = folder.join(version).join("shop");
        fs::create_dir(folder.join(version)).expect("made");
        let words = [
            "pack".as_ref(),
            "-o".as_ref(),
            output.as_os_str(),
            "--include".as_ref(),
            "data/notes.db".as_ref(),
        ];
        let packed = Program::new(words).inside(&folder.join("site")).finish();
        assert_eq!(packed.code, Some(0), "{}", packed.stderr);
    }
    let path = folder.join("shop");
    fs::copy(folder.join("first/shop"), &path).expect("copied");
    (folder, path)
}

fn start_with_data(folder: &Folder, path: &Path) -> Onehop {
    program(folder, path, &["--listen", "127.0.0.1:0", "--log", "json"])
        .with_env("XDG_DATA_HOME", folder.join("data"))
        .with_env("STATE_DIRECTORY", "")
        .serve()
}

fn rows(server: &Onehop) -> serde_json::Value {
    wait_for("the application", || serde_json::from_str(&get(&server.address, "/api/")).ok())
}

fn stop(mut server: Onehop) -> String {
    server.process.signal(Signal::TERM);
    assert!(server.process.wait().expect("ended").success(), "{}", server.process.stderr());
    server.process.stderr()
}

#[test]
fn rows_that_an_application_wrote_survive_a_restart_and_an_upgrade() {
    if !has_node() {
        return;
    }
    let (folder, path) = that_writes();
    let server = start_with_data(&folder, &path);
    let first = rows(&server);
    let data_folder = folder.join("data/onehop/apps/shop");
    assert_eq!(first["APP_DATA_DIR"], data_folder.to_str().expect("UTF-8"), "{first}");
    assert_eq!((&first["new"], &first["packed"], &first["kept"]), (&1.into(), &2.into(), &1.into()));
    assert!(!stop(server).contains("changed or added"), "nothing is said before something was written");

    // A restart: everything is still there, and the start says what to do about what lies in the wrong place.
    let server = start_with_data(&folder, &path);
    let second = rows(&server);
    assert_eq!((&second["new"], &second["packed"], &second["kept"]), (&2.into(), &3.into(), &2.into()));
    assert_eq!(second["folder"], first["folder"]);
    let reported = stop(server);
    for text in ["app/data/new.db", "app/data/notes.db", "they are kept", "`data NAME`"] {
        assert!(reported.contains(text), "{text}: {reported}");
    }

    // An upgrade: the data folder goes on, and what was written beside the code is neither lost nor forgotten.
    fs::remove_file(&path).expect("removed");
    fs::copy(folder.join("second/shop"), &path).expect("copied");
    let server = start_with_data(&folder, &path);
    let third = rows(&server);
    assert_eq!((&third["VERSION"], &third["kept"]), (&"second".into(), &3.into()));
    assert_eq!(third["APP_DATA_DIR"], first["APP_DATA_DIR"]);
    let old = Path::new(first["folder"].as_str().expect("a path"));
    server.process.wait_for_text("the folder of an earlier version");
    let reported = stop(server);
    assert!(reported.contains(&old.parent().expect("a folder").display().to_string()), "{reported}");
    assert_eq!(fs::read_to_string(old.join("data/new.db")).expect("kept"), "row\n".repeat(2));

    // Back again: the first version finds its rows.
    fs::remove_file(&path).expect("removed");
    fs::copy(folder.join("first/shop"), &path).expect("copied");
    let fourth = rows(&start_with_data(&folder, &path));
    assert_eq!((&fourth["new"], &fourth["kept"]), (&3.into(), &4.into()));
}

#[test]
fn code_that_was_changed_where_it_is_unpacked_does_not_run_and_is_not_lost() {
    if !has_node() {
        return;
    }
    let (folder, path) = that_writes();
    let server = start_with_data(&folder, &path);
    let first = rows(&server);
    stop(server);
    let code = Path::new(first["folder"].as_str().expect("a path")).join("server.mjs");
    let mine = WRITES.replace("'first'", "'changed'");
    fs::remove_file(&code).expect("removed");
    fs::write(&code, &mine).expect("written");
    let server = start_with_data(&folder, &path);
    let second = rows(&server);
    assert_eq!((&second["VERSION"], &second["new"]), (&"first".into(), &2.into()));
    let reported = stop(server);
    assert!(reported.contains("app/server.mjs.changed-1"), "{reported}");
    let kept = code.with_file_name("server.mjs.changed-1");
    assert_eq!(fs::read_to_string(kept).expect("kept"), mine);
}

#[test]
fn a_data_folder_that_cannot_be_made_is_an_error_that_names_the_setting() {
    let (folder, path) = that_writes();
    folder.write("file", "");
    let server = program(&folder, &path, &["--listen", "127.0.0.1:0", "--log", "json"])
        .with_env("STATE_DIRECTORY", folder.join("file"))
        .serve();
    server.process.wait_for_text("set `data_dir` to a folder that this user may write in");
}
