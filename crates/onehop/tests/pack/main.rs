//! What goes into a pack, what stays out, and what is reported of it; run as the real program.
//!
//! A few bytes stand for the program in front, so that packs are small and their sizes in snapshots stay what they are.

mod large;

use std::fs::{self, File, FileTimes};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, SystemTime};

use onehop_testkit::{Finished, Folder, Program};
use serde_json::Value;

/// What `--target` takes in these tests: the head of an ELF file, and the place that packing fills in.
fn stub(folder: &Folder) -> String {
    let mark = b"\x89onehop\r\n\x1a\npack-slot:";
    let real = fs::read(env!("CARGO_BIN_EXE_onehop")).expect("the program");
    let at = real.windows(mark.len()).position(|window| window == mark).expect("its place");
    let mut stub = real[..64].to_vec();
    stub.extend_from_slice(&real[at..at + 104]);
    stub.resize(4096, 0);
    let path = folder.write("stub", stub);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("executable");
    path.display().to_string()
}

/// A folder beside the project: the stub, and where packs go.
struct Bench {
    out: Folder,
    project: Folder,
    stub: String,
}

impl Bench {
    fn with(files: &[(&str, &str)]) -> Bench {
        let out = Folder::new();
        let stub = stub(&out);
        Bench { project: Folder::with(files), stub, out }
    }

    /// `onehop pack` within the project, beside which the pack is written.
    fn pack(&self, arguments: &[&str]) -> Finished {
        let out = self.out.join("shop");
        let out = out.to_str().expect("UTF-8");
        let usual = ["pack", "-o", out, "--target", &self.stub];
        Program::new(usual.iter().copied().chain(arguments.iter().copied()))
            .inside(self.project.path())
            .finish()
    }

    fn packed(&self, arguments: &[&str]) -> Finished {
        let done = self.pack(arguments);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        done
    }

    fn inspect(&self, arguments: &[&str]) -> Finished {
        let all = ["inspect", "shop"].iter().copied().chain(arguments.iter().copied());
        Program::new(all).inside(self.out.path()).finish()
    }

    fn index(&self) -> Value {
        let shown = self.inspect(&["--json", "--verify"]);
        assert_eq!(shown.code, Some(0), "{}", shown.stderr);
        serde_json::from_str(&shown.stdout).expect("JSON")
    }

    fn sources(&self) -> Vec<String> {
        paths(&self.index()["sources"])
    }

    /// Names of temporary folders do not belong in snapshots.
    fn reported(&self, text: &str) -> String {
        let text = text.replace(&self.out.path().display().to_string(), "[out]");
        text.replace(&self.project.path().display().to_string(), "[project]")
    }
}

/// Everything but folders.
fn paths(files: &Value) -> Vec<String> {
    let files = files.as_array().expect("a list").iter().filter(|file| file["kind"] != "folder");
    files.map(|file| file["path"].as_str().expect("a path").to_owned()).collect()
}

const SITE: &str = "{\n\tadmin off\n}\nhttp://127.0.0.1:8080 {\n\tspa ./dist\n}\n";
const APP: &str = "{\n\tadmin off\n}\nhttp://127.0.0.1:8080 {\n\tapp ./server.mjs\n}\n";
const SERVER: &str = "export default { fetch() { return new Response('hello') } }\n";
const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDJ\n\
                   MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n-----END PRIVATE KEY-----\n";

fn page() -> String {
    format!(
        "<!doctype html>\n<title>shop</title>\n{}",
        "<p>What is sold here is made here.</p>\n".repeat(100)
    )
}

fn shop() -> Bench {
    let configuration = "{\n\tadmin off\n}\nhttp://127.0.0.1:8080 {\n\tapp /api/* ./server/main.mjs {\n\t\tname api\n\t}\n\tspa ./dist\n}\n";
    let bench = Bench::with(&[
        ("Onehopfile", configuration),
        ("package.json", r#"{"name": "@me/shop", "type": "module", "dependencies": {"a": "1"}}"#),
        ("server/main.mjs", SERVER),
        ("dist/index.html", &page()),
        ("dist/assets/app-B3kq9zXw.js", &"document.title = 'shop'\n".repeat(50)),
        ("dist/robots.txt", ""),
        ("node_modules/a/package.json", r#"{"name": "a", "version": "1.0.0"}"#),
        ("node_modules/a/index.js", "module.exports = 1\n"),
    ]);
    fs::set_permissions(bench.project.join("server/main.mjs"), fs::Permissions::from_mode(0o755))
        .expect("executable");
    bench
}

#[test]
fn a_pack_says_what_went_in_and_how_to_start_it() {
    let bench = shop();
    let done = bench.packed(&[]);
    assert_eq!(done.stderr, "");
    insta::assert_snapshot!("packed", digests_hidden(&bench.reported(&done.stdout)));
    let mode = fs::metadata(bench.out.join("shop")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    insta::assert_snapshot!("inspect", digests_hidden(&bench.inspect(&[]).stdout));
    insta::assert_snapshot!("inspect_files", digests_hidden(&bench.inspect(&["--files", "--verify"]).stdout));
    insta::assert_snapshot!("inspect_json", digests_hidden(&bench.inspect(&["--json"]).stdout));
}

/// The version stands in the index, so its digest changes with each release.
fn digests_hidden(text: &str) -> String {
    let word = |word: &str| {
        let is_digest = word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        if is_digest { "[digest]".to_owned() } else { word.to_owned() }
    };
    let mut shown = String::new();
    let mut run = String::new();
    for next in text.chars().chain(['\0']) {
        if next.is_ascii_alphanumeric() {
            run.push(next);
        } else {
            shown.push_str(&word(&std::mem::take(&mut run)));
            shown.push(next);
        }
    }
    shown.trim_end_matches('\0').replace(env!("CARGO_PKG_VERSION"), "[version]")
}

#[test]
fn two_packs_of_the_same_files_are_the_same_bytes() {
    let bench = shop();
    bench.packed(&[]);
    let first = fs::read(bench.out.join("shop")).expect("a pack");
    // Another folder, filled in another order, at another time, with other permissions for others.
    let other = shop();
    let names =
        ["dist/robots.txt", "dist/assets/app-B3kq9zXw.js", "dist/index.html", "node_modules/a/index.js"];
    for (number, name) in names.into_iter().enumerate() {
        let path = other.project.join(name);
        let content = fs::read(&path).expect("there");
        fs::remove_file(&path).expect("removed");
        fs::write(&path, content).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("changed");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 * number as u64);
        let file = File::options().write(true).open(&path).expect("opened");
        file.set_times(FileTimes::new().set_modified(time)).expect("set");
    }
    let out = other.out.join("shop");
    let program = ["pack", "-o", out.to_str().expect("UTF-8"), "--target", &other.stub];
    let done = Program::new(program).inside(other.project.path()).with_env("TZ", "Asia/Tokyo").finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(first == fs::read(out).expect("a pack"), "the two differ");
}

#[test]
fn secrets_are_refused_all_at_once_and_left_out_where_that_is_asked_for() {
    let bench = Bench::with(&[
        ("Onehopfile", &APP.replace("server.mjs", "server.mjs {\n\t\tenv_file ./settings\n\t}")),
        ("package.json", "{}"),
        ("server.mjs", SERVER),
        (".env", "DATABASE_URL=postgres://u:p@h/d\nexport API_KEY=hush\n"),
        (".env.example", "DATABASE_URL=\n"),
        ("settings", "SMTP_PASSWORD=hush\n"),
        (".npmrc", "//registry.example.com/:_authToken=hush\n"),
        ("tls/site.pem", KEY),
        ("tls/public.pem", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"),
        ("notes/deploy.txt", KEY),
        ("pem.mjs", "export const begin = '-----BEGIN PRIVATE KEY-----'\n"),
        ("node_modules/a/test/key.pem", KEY),
    ]);
    let refused = bench.pack(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    assert!(!refused.stderr.contains("hush"), "{}", refused.stderr);
    insta::assert_snapshot!("secrets", bench.reported(&refused.stderr));
    assert!(!bench.out.join("shop").exists(), "nothing is written");
    let excluded = [".env", ".npmrc", "settings", "tls/site.pem", "notes"];
    let arguments: Vec<&str> = excluded.iter().flat_map(|path| ["--exclude", path]).collect();
    bench.packed(&arguments);
    let expected =
        [".env.example", "Onehopfile", "package.json", "pem.mjs", "server.mjs", "settings", "tls/public.pem"];
    assert_eq!(bench.sources(), expected, "settings is a file that says what to set");
    assert_eq!(
        bench.index()["variables"],
        serde_json::json!(["API_KEY", "DATABASE_URL", "SMTP_PASSWORD"]),
        "they come from the environment"
    );
}

#[test]
fn settings_of_npm_without_a_token_and_the_like_are_packed() {
    let bench = Bench::with(&[
        ("Onehopfile", APP),
        ("package.json", "{}"),
        ("server.mjs", SERVER),
        (".npmrc", "omit-lockfile-registry-resolved=true\nfund=false\naudit=false\n"),
        (".yarnrc.yml", "nodeLinker: node-modules\nnpmAuthToken: ${NPM_TOKEN:-}\n"),
        ("example.env", "DATABASE_URL=\n"),
    ]);
    bench.packed(&[]);
    let expected = [".npmrc", ".yarnrc.yml", "Onehopfile", "example.env", "package.json", "server.mjs"];
    assert_eq!(bench.sources(), expected);
}

#[test]
fn variables_of_an_environment_file_with_another_name_come_from_the_environment_once_it_is_left_out() {
    let bench = Bench::with(&[
        ("Onehopfile", APP),
        ("package.json", "{}"),
        ("server.mjs", SERVER),
        ("prod.env", "DATABASE_URL=hush\n"),
        (".dev.vars", "API_KEY=hush\n"),
    ]);
    let refused = bench.pack(&[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stdout);
    for (path, name) in [("prod.env", "DATABASE_URL"), (".dev.vars", "API_KEY")] {
        let line = refused.stderr.lines().find(|line| line.trim_start().starts_with(path));
        assert!(line.is_some_and(|line| line.contains(name)), "{}", refused.stderr);
    }
    bench.packed(&["--exclude", "prod.env", "--exclude", ".dev.vars"]);
    assert_eq!(bench.index()["variables"], serde_json::json!(["API_KEY", "DATABASE_URL"]));
}

#[test]
fn without_a_configuration_packing_says_what_to_type() {
    let folder = Folder::new();
    let reported = Program::new(["pack"]).inside(folder.path()).finish();
    assert_eq!(reported.code, Some(2));
    assert!(reported.stderr.contains("name one:                 onehop pack FILE\n"), "{}", reported.stderr);
}

#[test]
fn a_pattern_of_exclude_that_leaves_nothing_out_is_reported_truthfully() {
    let bench = Bench::with(&[("Onehopfile", SITE), ("dist/index.html", "hello"), (".env", "A=b\n")]);
    let done = bench.packed(&["--exclude", ".env"]);
    assert!(done.stderr.contains("--exclude .env: nothing of what is packed fits"), "{}", done.stderr);
}

#[test]
fn a_private_key_in_a_served_tree_is_refused() {
    let bench = Bench::with(&[("Onehopfile", SITE), ("dist/index.html", "hello"), ("dist/site.key", KEY)]);
    let refused = bench.pack(&[]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("  dist/site.key  a private key"), "{}", refused.stderr);
    bench.packed(&["--exclude", "dist/*.key"]);
    let files = bench.index()["trees"][0]["files"].clone();
    assert_eq!(paths(&files), ["index.html"]);
}

#[test]
fn a_private_key_that_tls_names_is_never_packed() {
    let configuration = "{\n\tadmin off\n}\nlocalhost {\n\ttls site.pem site.key\n\trespond hello\n}\n";
    let bench =
        Bench::with(&[("Onehopfile", configuration), ("site.pem", "a certificate"), ("site.key", KEY)]);
    let refused = bench.pack(&[]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("site.key, and a pack holds no private keys"), "{}", refused.stderr);
    assert!(refused.stderr.contains("tls /etc/ssl/site.pem /etc/ssl/site.key"), "{}", refused.stderr);
}

#[test]
fn a_trusted_certificate_with_a_relative_path_is_refused() {
    const ROOT: &str = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let configuration = |root: &str| {
        format!(
            "{{\n\tadmin off\n\temail me@example.com\n\tacme_ca_root {root}\n}}\nshop.example.com {{\n\trespond hello\n}}\n"
        )
    };
    let bench = Bench::with(&[("Onehopfile", &configuration("./ca/root.pem")), ("ca/root.pem", ROOT)]);
    let refused = bench.pack(&[]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("ca/root.pem has a relative path"), "{}", refused.stderr);
    let absolute = bench.project.join("ca/root.pem");
    std::fs::write(bench.project.join("Onehopfile"), configuration(absolute.to_str().expect("UTF-8")))
        .expect("written");
    bench.packed(&[]);
}

#[test]
fn a_link_out_of_the_base_is_an_error_in_a_project_and_reported_in_a_tree() {
    let bench = Bench::with(&[("Onehopfile", APP), ("package.json", "{}"), ("server.mjs", SERVER)]);
    symlink("server.mjs", bench.project.join("main.mjs")).expect("a link");
    symlink("/etc/hostname", bench.project.join("name")).expect("a link");
    let refused = bench.pack(&[]);
    assert_eq!(refused.code, Some(2));
    insta::assert_snapshot!("link_out", bench.reported(&refused.stderr));
    bench.packed(&["--exclude", "name"]);
    let index = bench.index();
    assert_eq!(paths(&index["sources"]), ["Onehopfile", "main.mjs", "package.json", "server.mjs"]);

    let bench = Bench::with(&[("Onehopfile", SITE), ("dist/index.html", "hello")]);
    symlink("/etc/hostname", bench.project.join("dist/name")).expect("a link");
    symlink("nowhere", bench.project.join("dist/lost")).expect("a link");
    symlink("index.html", bench.project.join("dist/home.html")).expect("a link");
    let _socket = UnixListener::bind(bench.project.join("dist/socket")).expect("a socket");
    let done = bench.packed(&[]);
    insta::assert_snapshot!("left_out", bench.reported(&done.stderr));
    assert_eq!(paths(&bench.index()["trees"][0]["files"]), ["home.html", "index.html"]);
}

#[test]
fn a_socket_in_a_project_and_what_never_runs_stay_out() {
    let bench = Bench::with(&[
        ("Onehopfile", APP),
        ("package.json", "{}"),
        ("server.mjs", SERVER),
        (".git/config", ""),
        (".vscode/settings.json", ""),
        ("coverage/index.html", ""),
        ("src/coverage/index.mjs", ""),
        ("debug.log", ""),
        (".DS_Store", ""),
        (".onehop/x", ""),
        ("old/map.js.map", ""),
    ]);
    let _socket = UnixListener::bind(bench.project.join("run.sock")).expect("a socket");
    bench.packed(&["--exclude", "**/*.map", "--exclude", "no-such"]);
    // Once more into the project itself: neither the old pack nor the new one is packed.
    let within = bench.project.join("shop");
    let program = ["pack", "-o", "shop", "--target", &bench.stub, "--exclude", "old"];
    let done = Program::new(program).inside(bench.project.path()).finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stderr.contains("run.sock: no file, but a socket"), "{}", done.stderr);
    fs::copy(&within, bench.project.join("older")).expect("copied");
    let done = Program::new(program).inside(bench.project.path()).finish();
    assert!(done.stderr.contains("left out: older: a pack of onehop"), "{}", done.stderr);
    fs::rename(within, bench.out.join("shop")).expect("moved");
    assert_eq!(bench.sources(), ["Onehopfile", "package.json", "server.mjs", "src/coverage/index.mjs"]);
}

/// A project whose folder has been worked in: rows, uploads, and what git ignores.
fn worked_in() -> Bench {
    let bench = Bench::with(&[
        (
            "Onehopfile",
            "{\n\tadmin off\n}\nhttp://127.0.0.1:8080 {\n\tapp /api/* ./server.mjs\n\tspa ./dist\n}\n",
        ),
        ("package.json", r#"{"dependencies": {"a": "1"}}"#),
        ("server.mjs", SERVER),
        (".gitignore", "node_modules\n/dist/\ntmp/\n*.local\n/state\n.env\n!keep.local\n"),
        ("data/notes.db", "rows"),
        ("data/notes.db-wal", "rows"),
        ("data/shop.SQLITE3", "rows"),
        ("data/seed.json", "[]"),
        ("data/level/CURRENT", "MANIFEST-000002\n"),
        ("data/level/MANIFEST-000002", "rows"),
        ("data/level/000005.ldb", "rows"),
        ("data/lm/data.mdb", "rows"),
        ("data/lm/lock.mdb", ""),
        ("uploads/cat.jpg", "cat"),
        ("public/Upload/dog.jpg", "dog"),
        ("state/session.json", "{}"),
        ("src/tmp/scratch.mjs", ""),
        ("src/lib.mjs", ""),
        ("notes.local", ""),
        ("keep.local", ""),
        (".env", "TOKEN=secret\n"),
        ("dist/index.html", &page()),
        ("dist/stats.db", "rows"),
        ("node_modules/a/package.json", r#"{"name": "a", "version": "1.0.0"}"#),
        ("node_modules/a/words.db", "part of the package"),
        ("node_modules/a/dist/index.js", ""),
    ]);
    fs::create_dir(bench.project.join(".git")).expect("made");
    bench
}

#[test]
fn databases_upload_folders_and_what_git_ignores_stay_out_and_are_listed() {
    let bench = worked_in();
    let done = bench.packed(&[]);
    insta::assert_snapshot!("left_out_data", bench.reported(&done.stderr));
    let expected = [
        ".gitignore",
        "Onehopfile",
        "data/seed.json",
        "dist/index.html",
        "keep.local",
        "node_modules/a/dist/index.js",
        "node_modules/a/package.json",
        "node_modules/a/words.db",
        "package.json",
        "server.mjs",
        "src/lib.mjs",
    ];
    assert_eq!(bench.sources(), expected);
    let index = bench.index();
    assert_eq!(paths(&index["trees"][0]["files"]), ["index.html"]);
    let folders =
        index["sources"].as_array().expect("a list").iter().filter(|source| source["kind"] == "folder");
    let folders: Vec<&str> = folders.filter_map(|folder| folder["path"].as_str()).collect();
    assert!(
        folders.contains(&"uploads") && folders.contains(&"state"),
        "programs find them, empty: {folders:?}"
    );
    // Names of variables are known, values are not packed.
    assert_eq!(index["variables"][0], "TOKEN");
}

#[test]
fn what_include_names_is_packed_although_it_is_data_and_nothing_else_of_its_folder() {
    let bench = worked_in();
    let include = ["--include", "data/notes.db", "--include", "uploads", "--include", "state/session.json"];
    let done = bench.packed(&[&include[..], &["--include", "dist/*.db", "--include", "no-such"]].concat());
    assert!(done.stderr.contains("--include no-such: nothing of what is packed fits"), "{}", done.stderr);
    assert!(!done.stderr.contains("data/notes.db:") && !done.stderr.contains("uploads"), "{}", done.stderr);
    let sources = bench.sources();
    for path in ["data/notes.db", "uploads/cat.jpg", "state/session.json", "dist/stats.db"] {
        assert!(sources.iter().any(|source| source == path), "{path} in {sources:?}");
    }
    for path in ["data/notes.db-wal", "data/shop.SQLITE3", "src/tmp/scratch.mjs", "public/Upload/dog.jpg"] {
        assert!(!sources.iter().any(|source| source == path), "{path} in {sources:?}");
    }
    assert_eq!(paths(&bench.index()["trees"][0]["files"]), ["index.html", "stats.db"]);
    let both = bench.packed(&["--include", "uploads", "--exclude", "uploads/cat.jpg"]);
    assert!(!bench.sources().iter().any(|source| source == "uploads/cat.jpg"), "{}", both.stderr);
}

#[test]
fn build_output_that_git_ignores_is_packed_where_the_application_runs_it() {
    for (run, entry, lib) in [
        ("app ./target/server.mjs", "target/server.mjs", "target/lib.mjs"),
        ("app {\n\t\tcommand node target/server.mjs\n\t}", "target/server.mjs", "target/lib.mjs"),
        // Compiled beside its source.
        ("app ./src/server.mjs", "src/server.mjs", "src/lib.mjs"),
    ] {
        let site = format!("{{\n\tadmin off\n}}\nhttp://127.0.0.1:8080 {{\n\t{run}\n}}\n");
        let bench = Bench::with(&[
            ("Onehopfile", &site),
            ("package.json", "{}"),
            (".gitignore", "target\nsrc/*.mjs\nscratch\n"),
            (entry, SERVER),
            (lib, ""),
            ("packages/words/dist/index.js", ""),
            (".next/BUILD_ID", "1"),
            ("src/generated/client.js", ""),
            ("scratch/plan.txt", ""),
        ]);
        let done = bench.packed(&[]);
        let sources = bench.sources();
        for path in [entry, lib, "packages/words/dist/index.js", ".next/BUILD_ID", "src/generated/client.js"]
        {
            assert!(sources.iter().any(|source| source == path), "{path} in {sources:?}\n{}", done.stderr);
        }
        assert!(!sources.iter().any(|source| source == "scratch/plan.txt"), "{sources:?}");
    }
}

#[test]
fn of_node_modules_goes_in_what_runs() {
    let package = r#"{"name": "shop", "dependencies": {"a": "1", "@s/b": "1"}, "optionalDependencies": {"o": "1"},
        "peerDependencies": {"peer": "1"}, "devDependencies": {"dev": "1"}}"#;
    let bench = Bench::with(&[
        ("Onehopfile", APP),
        ("package.json", package),
        ("server.mjs", SERVER),
        ("node_modules/a/package.json", r#"{"dependencies": {"c": "1"}, "devDependencies": {"dev": "1"}}"#),
        ("node_modules/a/test/key.pem", KEY),
        ("node_modules/a/node_modules/c/package.json", "{}"),
        ("node_modules/a/node_modules/unused/package.json", "{}"),
        ("node_modules/@s/b/package.json", r#"{"dependencies": {"c": "2"}}"#),
        ("node_modules/c/package.json", r#"{"dependencies": {"a": "1"}}"#),
        ("node_modules/dev/package.json", "{}"),
        ("node_modules/.cache/x", ""),
        ("node_modules/.package-lock.json", "{}"),
    ]);
    symlink("../dev/cli.js", {
        fs::create_dir_all(bench.project.join("node_modules/.bin")).expect("a folder");
        bench.project.join("node_modules/.bin/dev")
    })
    .expect("a link");
    let done = bench.packed(&[]);
    assert!(done.stdout.contains("1 key of dependencies' own tests"), "{}", done.stdout);
    assert_eq!(
        bench.sources(),
        [
            "Onehopfile",
            "node_modules/@s/b/package.json",
            "node_modules/a/node_modules/c/package.json",
            "node_modules/a/package.json",
            "node_modules/c/package.json",
            "package.json",
            "server.mjs",
        ]
    );
    bench.project.write("package.json", r#"{"dependencies": {"a": "1", "lost": "1"}}"#);
    let refused = bench.pack(&[]);
    assert_eq!(refused.code, Some(1));
    insta::assert_snapshot!("not_installed", bench.reported(&refused.stderr));
}

#[test]
fn links_of_pnpm_and_of_workspaces_are_kept_with_what_they_lead_to() {
    let bench = Bench::with(&[
        ("Onehopfile", &APP.replace("./server.mjs", "./apps/api/server.mjs")),
        ("package.json", r#"{"private": true, "devDependencies": {"dev": "1"}}"#),
        ("apps/api/package.json", r#"{"dependencies": {"a": "1", "@me/lib": "workspace:*"}}"#),
        ("apps/api/server.mjs", SERVER),
        ("apps/web/package.json", "{}"),
        ("packages/lib/package.json", r#"{"dependencies": {"b": "1"}, "devDependencies": {"dev": "1"}}"#),
        ("node_modules/.pnpm/a@1/node_modules/a/package.json", r#"{"dependencies": {"b": "1"}}"#),
        ("node_modules/.pnpm/b@1/node_modules/b/package.json", "{}"),
        ("node_modules/.pnpm/dev@1/node_modules/dev/package.json", "{}"),
    ]);
    let link = |to: &str, at: &str| {
        let at = bench.project.join(at);
        fs::create_dir_all(at.parent().expect("a folder")).expect("folders");
        symlink(to, at).expect("a link");
    };
    link("../../../node_modules/.pnpm/a@1/node_modules/a", "apps/api/node_modules/a");
    link("../../../../packages/lib", "apps/api/node_modules/@me/lib");
    link("../../b@1/node_modules/b", "node_modules/.pnpm/a@1/node_modules/b");
    link("../../../node_modules/.pnpm/b@1/node_modules/b", "packages/lib/node_modules/b");
    link("../../../node_modules/.pnpm/dev@1/node_modules/dev", "packages/lib/node_modules/dev");
    bench.packed(&[]);
    assert_eq!(
        bench.sources(),
        [
            "Onehopfile",
            "apps/api/node_modules/@me/lib",
            "apps/api/node_modules/a",
            "apps/api/package.json",
            "apps/api/server.mjs",
            "node_modules/.pnpm/a@1/node_modules/a/package.json",
            "node_modules/.pnpm/a@1/node_modules/b",
            "node_modules/.pnpm/b@1/node_modules/b/package.json",
            "packages/lib/node_modules/b",
            "packages/lib/package.json",
        ]
    );
}

#[test]
fn what_lies_outside_is_reported_or_refused() {
    let reported = Bench::with(&[
        (
            "Onehopfile",
            &format!("{SITE}http://127.0.0.1:8081 {{\n\troot * /usr/share/doc/nowhere\n\tfile_server\n}}\n"),
        ),
        ("dist/index.html", "hello"),
    ]);
    let done = reported.packed(&[]);
    assert!(done.stderr.contains("/usr/share/doc/nowhere has to be on the machine"), "{}", done.stderr);
    assert_eq!(reported.index()["outside"], serde_json::json!(["/usr/share/doc/nowhere"]));
    for (name, site) in [
        ("leads_out", "root * ../dist\n\tfile_server"),
        ("placeholder", "root * ./sites/{host}\n\tfile_server"),
        ("absolute", "root * [project]/dist\n\tfile_server"),
    ] {
        let bench = Bench::with(&[("dist/index.html", "hello")]);
        let site = site.replace("[project]", &bench.project.path().display().to_string());
        bench
            .project
            .write("Onehopfile", format!("{{\n\tadmin off\n}}\nhttp://127.0.0.1:8080 {{\n\t{site}\n}}\n"));
        let refused = bench.pack(&[]);
        assert_eq!(refused.code, Some(2), "{name}: {}", refused.stderr);
        insta::assert_snapshot!(format!("refused_{name}"), bench.reported(&refused.stderr));
    }
}

#[test]
fn a_pack_never_replaces_what_onehop_did_not_make_nor_lies_in_a_served_folder() {
    let bench = Bench::with(&[("Onehopfile", SITE), ("dist/index.html", "hello")]);
    bench.out.write("shop", "precious");
    let refused = bench.pack(&[]);
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("onehop did not make it"), "{}", refused.stderr);
    assert_eq!(fs::read(bench.out.join("shop")).expect("there"), b"precious");
    fs::remove_file(bench.out.join("shop")).expect("removed");
    bench.packed(&[]);
    bench.packed(&[]);
    let pack = |arguments: &[&str]| {
        let all = ["pack", "--target", &bench.stub].into_iter().chain(arguments.iter().copied());
        Program::new(all).inside(bench.project.path()).finish()
    };
    for (arguments, expected) in [
        (&["-o", "dist/shop"][..], "which is served"),
        (&["-o", "dist"], "that is a folder"),
        (&["-o", "no/such/folder"], "there is no folder"),
        (&["--exclude", "../x"], "patterns begin at the folder"),
        (&["--exclude", "Onehopfile"], "which the configuration needs"),
    ] {
        let refused = pack(arguments);
        assert_eq!(refused.code, Some(2), "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{arguments:?}: {}", refused.stderr);
    }
    let target =
        Program::new(["pack", "-o", "x", "--target", "/bin/sh"]).inside(bench.project.path()).finish();
    assert_eq!(target.code, Some(2), "{}", target.stderr);
    assert!(target.stderr.contains("/bin/sh is no onehop"), "{}", target.stderr);
    assert!(!bench.project.join("x").exists());
    let left = fs::read_dir(bench.project.path()).expect("there").flatten();
    let left: Vec<_> =
        left.filter(|entry| entry.file_name().to_string_lossy().starts_with(".onehop")).collect();
    assert!(left.is_empty(), "nothing unfinished stays behind: {left:?}");
}

#[test]
fn without_a_name_it_is_called_as_the_project_is() {
    for (package, expected) in
        [(Some(r#"{"name": "@me/my-shop"}"#), Some("my-shop")), (Some("{}"), None), (None, None)]
    {
        let bench = Bench::with(&[("Onehopfile", SITE), ("dist/index.html", "hello")]);
        if let Some(package) = package {
            bench.project.write("package.json", package);
        }
        let done = Program::new(["pack", "--target", &bench.stub]).inside(bench.project.path()).finish();
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        let folder = bench.project.path().file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(bench.project.join(expected.unwrap_or(folder)).is_file());
    }
}

#[test]
fn files_that_are_no_packs_and_packs_that_were_changed_are_refused() {
    let bench = shop();
    bench.packed(&[]);
    let path = bench.out.join("shop");
    let whole = fs::read(&path).expect("a pack");
    let page = whole.windows(15).position(|window| window == b"<!doctype html>").expect("the page, as it is");
    let mut tampered = whole.clone();
    tampered[page + 2] ^= 1;
    let mut index = whole.clone();
    let end = whole.len();
    index[end - 200] ^= 1;
    let mut longer = whole.clone();
    longer.push(0);
    let stub = fs::read(&bench.stub).expect("the stub");
    let mut reported = String::new();
    for (what, content, arguments) in [
        ("cut off", &whole[..end - 1000], &[][..]),
        ("longer", &longer, &[]),
        ("its index changed", &index, &[]),
        ("a page changed", &tampered, &["--verify"]),
        ("nothing packed", &stub, &[]),
        ("foreign", b"#!/bin/sh\n", &[]),
        ("empty", b"", &[]),
    ] {
        fs::write(&path, content).expect("written");
        let shown = bench.inspect(arguments);
        assert_eq!((shown.code, shown.stdout.as_str()), (Some(1), ""), "{what}");
        reported.push_str(&format!("{what}:\n{}", shown.stderr));
    }
    let gone = bench.inspect_of("no-such");
    assert_eq!(gone.code, Some(1));
    reported.push_str(&format!("not there:\n{}", gone.stderr));
    insta::assert_snapshot!("no_packs", reported);
}

impl Bench {
    fn inspect_of(&self, name: &str) -> Finished {
        Program::new(["inspect", name]).inside(self.out.path()).finish()
    }
}

#[test]
fn a_served_root_that_is_a_link_out_of_the_base_is_packed_as_it_is_served() {
    let elsewhere = Folder::with(&[("index.html", "hello")]);
    let configuration =
        "{\n\tadmin off\n}\nhttp://127.0.0.1:8080 {\n\tapp /api/* ./server.mjs\n\tspa ./dist\n}\n";
    let bench = Bench::with(&[("Onehopfile", configuration), ("package.json", "{}"), ("server.mjs", SERVER)]);
    symlink(elsewhere.path(), bench.project.join("dist")).expect("a link");
    bench.packed(&[]);
    assert_eq!(paths(&bench.index()["trees"][0]["files"]), ["index.html"]);
    assert_eq!(bench.sources(), ["Onehopfile", "package.json", "server.mjs"]);
}

#[test]
fn a_caddyfile_is_packed_from_the_working_directory() {
    let bench = Bench::with(&[
        ("Caddyfile", "{\n\tadmin off\n}\nhttp://127.0.0.1:8080 {\n\timport sites/*\n\tfile_server\n}\n"),
        ("sites/one", "root * dist\n"),
        ("dist/index.html", "hello"),
    ]);
    bench.packed(&[]);
    let index = bench.index();
    assert_eq!(index["configuration"], serde_json::json!({"path": "Caddyfile", "caddyfile": true}));
    assert_eq!(paths(&index["sources"]), ["Caddyfile", "sites/one"]);
    assert_eq!(index["trees"][0]["root"], "dist");
    let elsewhere = Folder::new();
    let path = bench.project.join("Caddyfile");
    let program = ["pack", path.to_str().expect("UTF-8"), "--target", &bench.stub];
    let refused = Program::new(program).inside(elsewhere.path()).finish();
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("working directory"), "{}", refused.stderr);
}

#[test]
fn a_pack_can_be_packed_again_and_keeps_only_the_program() {
    let bench = shop();
    bench.packed(&[]);
    let first = fs::read(bench.out.join("shop")).expect("a pack");
    let as_target = bench.out.join("first");
    fs::write(&as_target, &first).expect("written");
    let target: &str = as_target.to_str().expect("UTF-8");
    let out = bench.out.join("shop");
    let program = ["pack", "-o", out.to_str().expect("UTF-8"), "--target", target];
    let done = Program::new(program).inside(bench.project.path()).finish();
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(first == fs::read(Path::new(&out)).expect("a pack"), "the two differ");
}
