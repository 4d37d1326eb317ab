//! What each command prints and how it ends, run as the real program.

use std::path::Path;

use onehop_testkit::{Finished, Folder, Onehop, Program};

fn onehop(arguments: &[&str]) -> Finished {
    Program::new(arguments).with_env("ONEHOP_CONTROL", "/nonexistent/onehop.sock").finish()
}

fn finish_in(folder: &Folder, arguments: &[&str]) -> Finished {
    Program::new(arguments).inside(folder.path()).control_in(folder.path()).finish()
}

#[test]
fn every_help_teaches_with_an_example() {
    for command in [
        "",
        "init",
        "run",
        "serve",
        "app",
        "proxy",
        "pack",
        "inspect",
        "validate",
        "fmt",
        "hash-password",
        "adapt",
        "routes",
        "reload",
        "stop",
        "status",
        "logs",
        "dashboard",
        "workers",
        "top",
        "why",
        "bench",
        "bench compare",
        "bench max",
        "bench collection",
        "bench wrk",
        "try",
        "completions",
        "man",
        "help",
    ] {
        let arguments: Vec<&str> =
            command.split(' ').chain(["--help"]).filter(|part| !part.is_empty()).collect();
        // The environment would show in the help.
        let help = Program::new(&arguments).finish();
        assert_eq!(help.code, Some(0), "{command}");
        assert!(help.stdout.contains("Examples:\n"), "{command}: {}", help.stdout);
        let name = if command.is_empty() { "onehop".to_owned() } else { command.replace(' ', "_") };
        insta::assert_snapshot!(format!("help_{name}"), help.stdout);
    }
}

#[test]
fn help_has_the_reference_of_every_directive() {
    let shown = onehop(&["help", "directive", "reverse_proxy"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    for part in ["### reverse_proxy", "lb_policy", "transport http"] {
        assert!(shown.stdout.contains(part), "{part}: {}", shown.stdout);
    }
    let shown = onehop(&["help", "directive"]);
    assert!(shown.stdout.lines().any(|line| line == "rate_limit"), "{}", shown.stdout);
    let unknown = onehop(&["help", "directive", "proxy_pass"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown
            .stderr
            .contains("directive or option `proxy_pass`; there are the directives app, basic_auth,"),
        "{}",
        unknown.stderr
    );
    assert_eq!(onehop(&["help", "bench", "max"]).stdout, onehop(&["bench", "max", "--help"]).stdout);
}

#[test]
fn a_dry_run_shows_what_would_be_started_and_asked_and_starts_nothing() {
    let folder = Folder::new();
    let start = "MODE=demo API_KEY=s3cr3t node server.js --token=s3cr3t";
    folder.write("package.json", format!(r#"{{"scripts": {{"start": "{start}"}}}}"#));
    folder.write(
        "server.js",
        "require('fs').writeFileSync('started', '');\nconst app = express();\n\
         app.get('/api/items', list(process.env.DATABASE_URL));\napp.get('/purge', purge);\n\
         app.get('/unsubscribe/:id', leave);\napp.listen(process.env.PORT);\n",
    );
    folder.write("urls.txt", "http://localhost/about\nPOST http://localhost/orders\n");
    let mut shown = Vec::new();
    for more in [&[][..], &["--probe-routes"], &["--path", "/", "--collection", "urls.txt"]] {
        let arguments = [&["try", "--dry-run"], more].concat();
        let program = Program::new(&arguments).inside(folder.path()).with_env("DATABASE_URL", "s3cr3t");
        let finished = program.finish();
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert!(!finished.stdout.contains("s3cr3t"), "{}", finished.stdout);
        let place = folder.path().display().to_string();
        // nginx and Caddy are shown where they are installed.
        let lines = finished
            .stdout
            .lines()
            .filter(|line| !line.contains("with a configuration in a temporary folder in front"));
        shown.push(lines.collect::<Vec<_>>().join("\n").replace(&place, "FOLDER"));
    }
    assert!(!folder.path().join("started").exists());
    insta::assert_snapshot!(shown.join("\n\n----\n\n"));
    for (arguments, expected) in [
        (&["try", "--path", "api"][..], "a path begins with /"),
        (&["try", "--dry-run", "--json", "-"], "cannot be used with"),
        (&["try", "--collection", "missing.har"], "missing.har: there is no such file"),
    ] {
        let finished = finish_in(&folder, arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}");
        assert!(finished.stderr.contains(expected), "{}", finished.stderr);
    }
}

#[test]
fn the_version_is_one_line() {
    let version = onehop(&["--version"]);
    assert_eq!((version.code, version.stdout), (Some(0), format!("onehop {}\n", env!("CARGO_PKG_VERSION"))));
}

#[test]
fn help_and_version_are_commands_too() {
    for (words, option) in [
        (&["help"][..], &["--help"][..]),
        (&["help", "run"], &["run", "--help"]),
        (&["help", "bench", "compare"], &["bench", "compare", "--help"]),
        (&["version"], &["--version"]),
    ] {
        let [command, option] = [words, option].map(|arguments| Program::new(arguments).finish());
        assert_eq!((command.code, command.stdout), (Some(0), option.stdout), "{words:?}");
    }
}

#[test]
fn words_of_other_servers_get_the_next_step() {
    for (arguments, next_step) in [
        (&["serve", ".", "--port", "80"][..], "`--listen :PORT`"),
        (&["serve", ".", "--port=80"], "`--listen :PORT`"),
        (&["app", "server.js", "-p", "80"], "`--listen :PORT`"),
        (&["listen", "80"], "write it into an Onehopfile"),
        (&["start"], "`onehop run`"),
        (&["file-server"], "`onehop serve DIR --browse`"),
        (&["-t"], "`onehop validate`"),
        (&["-s", "reload"], "`onehop reload`"),
    ] {
        let finished = onehop(arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}");
        assert!(finished.stderr.contains(next_step), "{arguments:?}: {}", finished.stderr);
        assert_eq!(finished.stderr.matches("tip:").count(), 1, "{arguments:?}: {}", finished.stderr);
    }
    // The parser's own guess stays where the word is a slip.
    assert!(onehop(&["stat"]).stderr.contains("'status'"));
}

#[test]
fn what_a_file_of_another_server_says_gets_the_next_step() {
    for (written, next_step) in [
        ("server {\n\tlisten 80;\n}\n", "this looks like nginx"),
        (":8080 {\n\tapp /api/* /ws ./server.js\n}\n", "`@paths path /api/* /ws`"),
    ] {
        let folder = Folder::with(&[("Onehopfile", written), ("server.js", "")]);
        let finished = Program::new(["validate"]).inside(folder.path()).finish();
        assert_eq!(finished.code, Some(2), "{written}: {}", finished.stderr);
        assert!(finished.stderr.contains(next_step), "{written}: {}", finished.stderr);
    }
}

#[test]
fn wrong_usage_ends_with_2() {
    for arguments in [
        &["fly"][..],
        &["run", "--no-such-option"],
        &["run", "a", "--config", "b"],
        &["run", "--threads", "0"],
        &["serve", "--threads", "5000"],
        &["run", "no-such-file"],
        &["serve", "--listen", "8080"],
        &["serve", "--spa", "--browse"],
        &["serve", "no-such-folder"],
        &["app"],
        &["app", "no-such-file.mjs"],
        &["app", "a", "b"],
        &["app", "a", "--workers", "0"],
        &["app", "--watch", "--"],
        &["proxy"],
        &["proxy", "--to", "localhost:1", "--min", "many"],
        &["proxy", "--to", "localhost:1", "--from", ":99999"],
        &["workers", "api", "many"],
        &["workers", "a", "1", "2"],
        &["completions", "no-such-shell"],
        &["man", "no-such-command"],
    ] {
        let finished = onehop(arguments);
        assert_eq!(finished.code, Some(2), "{arguments:?}: {}", finished.stderr);
        assert!(!finished.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_folder_without_a_configuration_says_what_to_do() {
    if ["/etc/onehop/Onehopfile", "/etc/caddy/Caddyfile"].iter().any(|path| Path::new(path).exists()) {
        eprintln!("this machine has a configuration of its own, which would be served");
        return;
    }
    let folder = Folder::new();
    let finished = finish_in(&folder, &["run"]);
    assert_eq!(finished.code, Some(2));
    insta::assert_snapshot!(finished.stderr);
}

#[test]
fn a_missing_folder_asks_whether_the_application_was_built() {
    let folder = Folder::new();
    let finished = finish_in(&folder, &["serve", "dist"]);
    assert_eq!(finished.code, Some(2));
    assert!(
        finished.stderr.contains("there is no folder dist\n  has the application been built?"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_missing_root_names_the_folder_and_fails() {
    let folder =
        Folder::with(&[("Onehopfile", "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\tspa ./dist\n}\n")]);
    let finished = finish_in(&folder, &["run"]);
    assert_eq!(finished.code, Some(1), "{}", finished.stderr);
    let root = folder.join("dist").display().to_string();
    assert!(finished.stderr.contains(&root), "{}", finished.stderr);
    assert!(finished.stderr.contains("buil"), "asks whether it was built: {}", finished.stderr);
}

#[test]
fn validate_finds_what_run_refuses() {
    let site = |block: &str| format!("{{\n\tadmin off\n}}\nhttp://127.0.0.1:0 {{\n{block}\n}}\n");
    for (block, place, reason) in [
        ("\tspa ./dist", "Onehopfile:5: ", "there is no folder"),
        ("\troot * ./site\n\tfile_server", "Onehopfile:5: ", "there is no folder"),
        ("\thandle {\n\t\tspa ./Onehopfile\n\t}", "Onehopfile:6: ", "is not a folder"),
        (
            "\thandle_errors {\n\t\troot * ./errors\n\t\tfile_server\n\t}",
            "Onehopfile:6: ",
            "there is no folder",
        ),
        ("\trespond hi\n\tlog {\n\t\toutput file ./folder\n\t}", "Onehopfile: ", "it is a folder"),
        ("\trespond hi\n\tlog {\n\t\toutput file ./Onehopfile/log\n\t}", "Onehopfile: ", "is not a folder"),
        (
            "\treverse_proxy https://127.0.0.1:9 {\n\t\ttransport http {\n\t\t\ttls_trust_pool file ./ca.pem\n\t\t}\n\t}",
            "Onehopfile: ",
            "ca.pem",
        ),
    ] {
        let folder =
            Folder::with(&[("Onehopfile", &*site(block)), ("folder/file", ""), ("ca.pem", "no certificate")]);
        let run = finish_in(&folder, &["run"]);
        assert_ne!(run.code, Some(0), "{block}: {}", run.stderr);
        let validated = finish_in(&folder, &["validate"]);
        assert_eq!(validated.code, Some(2), "{block}: {}", validated.stderr);
        assert!(validated.stderr.contains(&format!("{place}error: ")), "{block}: {}", validated.stderr);
        assert!(validated.stderr.contains(reason), "{block}: {}", validated.stderr);
        assert_eq!(validated.stdout, "", "{block}");
    }
    let both = site("\tspa ./dist\n\thandle_errors {\n\t\troot * ./errors\n\t\tfile_server\n\t}");
    let validated = finish_in(&Folder::with(&[("Onehopfile", &*both)]), &["validate"]);
    assert_eq!(
        validated.stderr.matches("there is no folder").count(),
        2,
        "all at once: {}",
        validated.stderr
    );
}

const BROKEN: &str =
    "http://localhost:8080 {\n\trooot ./dist\n\tfile_servr\n\tencode gzipp\n\tphp_fastcgi :9000\n}\n";

#[test]
fn all_errors_of_a_file_are_shown_at_once_with_their_places() {
    let folder = Folder::with(&[("Onehopfile", BROKEN)]);
    for command in ["validate", "run"] {
        let finished = finish_in(&folder, &[command]);
        assert_eq!(finished.code, Some(2), "{command}");
        for line in 2..=5 {
            assert!(
                finished.stderr.contains(&format!("Onehopfile:{line}:")),
                "line {line}: {}",
                finished.stderr
            );
        }
        assert!(finished.stdout.is_empty());
    }
    insta::assert_snapshot!(finish_in(&folder, &["validate"]).stderr);
}

#[test]
fn a_broken_file_is_one_json_line_where_json_was_asked_for() {
    let folder = Folder::with(&[("Onehopfile", BROKEN)]);
    let finished = finish_in(&folder, &["run", "--log", "json"]);
    assert_eq!(finished.code, Some(2));
    let last = finished.stderr.lines().last().expect("a line");
    let event: serde_json::Value = serde_json::from_str(last).expect("JSON");
    assert_eq!(event["event"], "failed");
    assert!(event["reason"].as_str().expect("text").contains("Onehopfile:2:"), "{event}");
}

#[test]
fn a_sound_file_is_validated_by_either_spelling() {
    let folder = Folder::with_app();
    folder.write("Onehopfile", "http://localhost:8080 {\n\tspa ./dist\n}\n");
    for arguments in
        [&["validate"][..], &["validate", "Onehopfile"], &["validate", "--config", "./Onehopfile"]]
    {
        let finished = finish_in(&folder, arguments);
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        assert!(finished.stdout.contains("is sound: 1 site, listening on :8080"), "{}", finished.stdout);
    }
}

#[test]
fn a_caddyfile_is_taken_where_there_is_no_onehopfile_and_its_paths_start_where_one_stands() {
    let folder = Folder::with(&[
        ("conf/Caddyfile", "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\troot * site\n\tfile_server\n}\n"),
        ("site/index.html", "from the working directory"),
    ]);
    let onehop = Program::new(["run", "conf/Caddyfile", "--log", "json"])
        .inside(folder.path())
        .control_in(folder.path())
        .serve();
    assert_eq!(onehop.connect().get("/").text(), "from the working directory");
    let what = onehop.process.wait_for_event("starting")["what"].to_string();
    assert!(what.contains("conf/Caddyfile as a Caddyfile"), "{what}");
}

#[test]
fn completions_and_the_manual_are_generated() {
    for (shell, sign) in
        [("bash", "complete -F _onehop"), ("zsh", "#compdef onehop"), ("fish", "complete -c onehop")]
    {
        let finished = onehop(&["completions", shell]);
        assert_eq!(finished.code, Some(0));
        assert!(finished.stdout.contains(sign), "{shell}");
    }
    let finished = onehop(&["man"]);
    assert!(finished.stdout.contains(".TH onehop 1"), "{}", finished.stdout);
    let finished = onehop(&["man", "serve"]);
    assert!(finished.stdout.contains(".TH onehop-serve 1"), "{}", finished.stdout);
}

#[test]
fn nobody_there_is_a_failure_that_says_so() {
    let folder = Folder::new();
    for command in ["reload", "stop", "status"] {
        let finished =
            // Named: without a name it would be whichever one runs on this machine.
            Program::new([command, "--config", "."]).inside(folder.path()).with_env("XDG_RUNTIME_DIR", folder.path()).finish();
        assert_eq!(finished.code, Some(1), "{command}");
        assert!(finished.stderr.starts_with("error: no onehop runs with .\n"), "{}", finished.stderr);
    }
}

#[test]
fn the_start_is_reported_line_by_line() {
    let folder = Folder::with_app();
    folder.write("Onehopfile", "{\n\tadmin 127.0.0.1:0\n}\nhttp://127.0.0.1:0 {\n\tspa ./dist\n}\n");
    let started = Program::new(["run"]).inside(folder.path()).control_in(folder.path()).start();
    started.wait_for_text("  ready ");
    let text = started.stderr().replace(&folder.path().display().to_string(), "[folder]");
    insta::assert_snapshot!(without_figures(&text));
}

#[test]
fn running_it_twice_with_one_file_is_an_error_that_names_the_process() {
    let folder =
        Folder::with(&[("Onehopfile", "{\n\tadmin off\n}\nhttp://127.0.0.1:0 {\n\trespond one\n}\n")]);
    let first = Onehop::start_in(folder.path());
    let second = finish_in(&folder, &["run"]);
    assert_eq!(second.code, Some(1));
    let expected = format!("error: already running with process id {}", first.process.pid());
    assert!(second.stderr.contains(&expected), "{}", second.stderr);
    assert_eq!(first.connect().get("/").text(), "one");
}

#[test]
fn an_address_that_is_taken_says_how_to_find_who_has_it() {
    let first = Onehop::start("http://127.0.0.1:0 {\n\trespond one\n}\n");
    let port = first.address.rsplit(':').next().expect("a port");
    let configuration = format!("{{\n\tadmin off\n}}\nhttp://127.0.0.1:{port} {{\n\trespond two\n}}\n");
    let folder = Folder::with(&[("Onehopfile", &configuration)]);
    let second = finish_in(&folder, &["run"]);
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(second.stderr.contains(&format!("ss -ltnp 'sport = :{port}'")), "{}", second.stderr);
    assert_eq!(first.connect().get("/").text(), "one");
}

/// The lines without what differs from run to run: ports and times. Compression goes on behind and tells
/// its end whenever it comes.
/// Events begin with the time, `2026-11-22T18:00:00Z`.
fn without_time_of_line(line: &str) -> &str {
    line.split_once("Z ").filter(|(time, _)| time.len() == 19).map_or(line, |(_, line)| line)
}

fn without_figures(text: &str) -> String {
    let lines =
        text.lines().map(without_time_of_line).filter(|line| !line.starts_with("  compressed")).map(|line| {
            let line = line
                .split_once("(read in")
                .map_or(line.to_owned(), |(line, _)| format!("{line}(read in [time])"));
            let line =
                line.split_once(" after ").map_or(line.clone(), |(line, _)| format!("{line} after [time]"));
            ["127.0.0.1:", "localhost:"].iter().fold(line, |line, host| match line.split_once(host) {
                Some((before, after)) => {
                    let after = after.trim_start_matches(|c: char| c.is_ascii_digit());
                    format!("{before}{host}[port]{after}")
                }
                None => line,
            })
        });
    lines.collect::<Vec<_>>().join("\n")
}
