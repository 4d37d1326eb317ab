//! What whoever runs a configuration may change of it, and what is said where that is wrong.

use std::num::NonZeroU16;
use std::time::Duration;

use onehop_config::checked::{Admin, App, HostPattern, ListenAddress, LogOutput, WorkerCount};
use onehop_config::{Loaded, Overrides, Said, Word};

use crate::memory::{Memory, text_of};

const TEXT: &str = "\
{
	admin off
	grace_period 5s
}
http://localhost:8080 {
	app /api/* api/server.mjs {
		workers 2
		env MODE packed
		env {
			A 1
			B 2
		}
	}
	handle /jobs/* {
		app {
			command npx jobs
			name jobs
		}
	}
	respond /health ok
	log
}
";

fn packed() -> Memory {
    Memory::main(TEXT).file("api/server.mjs", "").file("package.json", "{}")
}

fn words(from: &str, texts: &[&str]) -> Vec<Word> {
    texts.iter().map(|text| Word { from: from.to_owned(), text: (*text).to_owned() }).collect()
}

fn flags(listen: &[&str], workers: &[&str], env: &[&str]) -> Overrides {
    let flags = Said {
        listen: words("--listen", listen),
        workers: words("--workers", workers),
        env: words("--env", env),
    };
    Overrides { flags, ..Overrides::default() }
}

fn with_file(memory: Memory, text: &str) -> (Memory, Overrides) {
    let overrides = Overrides { file: Some("/work/etc/override".into()), ..Overrides::default() };
    (memory.file("etc/override", text), overrides)
}

#[track_caller]
fn sound(memory: &Memory, overrides: &Overrides) -> Loaded {
    memory.load_with(overrides).unwrap_or_else(|problems| panic!("{}", text_of(&problems)))
}

#[track_caller]
fn errors(memory: &Memory, overrides: &Overrides) -> String {
    text_of(&memory.load_with(overrides).expect_err("something is wrong"))
}

fn places(loaded: &Loaded) -> Vec<String> {
    let listeners = loaded.checked.listeners.iter();
    listeners
        .map(|listener| match &listener.address {
            ListenAddress::Tcp { host, port } => {
                format!("{}:{port}", host.map_or_else(String::new, |host| host.to_string()))
            }
            ListenAddress::Unix { path, .. } => path.display().to_string(),
        })
        .collect()
}

#[track_caller]
fn app(loaded: &Loaded, name: &str) -> App {
    let apps = loaded.checked.apps();
    let found = apps.iter().find(|app| app.name == name);
    App::clone(found.unwrap_or_else(|| panic!("no {name} in {apps:?}")))
}

fn count(workers: u16) -> WorkerCount {
    WorkerCount::Exactly(NonZeroU16::new(workers).expect("not zero"))
}

#[test]
fn nothing_changes_where_nothing_is_said() {
    let memory = packed();
    assert_eq!(sound(&memory, &Overrides::default()), memory.sound());
}

#[test]
fn a_place_answers_any_host_and_a_url_names_its_own() {
    for (listen, places_now, hosts) in [
        (&[":80"][..], &[":80"][..], 0),
        (&["127.0.0.1:3000"], &["127.0.0.1:3000"], 0),
        (&["localhost:3000", "unix//run/a.sock|0660"], &["127.0.0.1:3000", "/run/a.sock"], 0),
        (&["[::1]:3000", ":0"], &["::1:3000", ":0"], 0),
        (&["http://app.example.com"], &[":80"], 1),
        (&["http://192.0.2.7:3000"], &[":3000"], 1),
        (&["http://127.0.0.1:3000"], &["127.0.0.1:3000"], 1),
        (&["http://localhost:3000"], &["127.0.0.1:3000"], 1),
        (&["http://[::1]:3000"], &["::1:3000"], 1),
        (&["http://localhost:8080=:9000"], &[":9000"], 0),
    ] {
        let loaded = sound(&packed(), &flags(listen, &[], &[]));
        assert_eq!(places(&loaded), places_now, "{listen:?}");
        assert_eq!(loaded.checked.sites[0].hosts.len(), hosts, "{listen:?}");
        assert!(loaded.checked.listeners.iter().all(|listener| !listener.tls));
    }
}

#[test]
fn several_sites_in_one_place_move_together_and_keep_their_hosts() {
    let memory =
        Memory::main("http://a.example:8080 {\n\trespond a\n}\nhttp://b.example:8080 {\n\trespond b\n}\n");
    let loaded = sound(&memory, &flags(&["127.0.0.1:80"], &[], &[]));
    assert_eq!(places(&loaded), ["127.0.0.1:80"]);
    let hosts: Vec<_> = loaded.checked.sites.iter().map(|site| site.hosts.clone()).collect();
    let exactly = |host: &str| vec![HostPattern::Exact(host.to_owned())];
    assert_eq!(hosts, [exactly("a.example"), exactly("b.example")]);
    let port = Overrides { port: Some("5000".to_owned()), ..Overrides::default() };
    assert_eq!(places(&sound(&memory, &port)), [":5000"]);
}

#[test]
fn one_of_several_sites_moves_alone() {
    let memory = Memory::main(":8080 {\n\trespond a\n}\n:8081 {\n\trespond b\n}\n");
    let loaded = sound(&memory, &flags(&[":8081=127.0.0.1:9000", ":8081=:9001"], &[], &[]));
    assert_eq!(places(&loaded), [":8080", "127.0.0.1:9000", ":9001"]);
    let (memory, overrides) = with_file(memory, "site :8080 {\n\tlisten :80\n}\n");
    assert_eq!(places(&sound(&memory, &overrides)), [":80", ":8081"]);
}

#[test]
fn a_platforms_port_takes_the_place_of_the_one_address() {
    let port = |text: &str| Overrides { port: Some(text.to_owned()), ..Overrides::default() };
    let loaded = sound(&packed(), &port("5000"));
    assert_eq!(places(&loaded), [":5000"]);
    assert!(loaded.checked.sites[0].hosts.is_empty());
    assert_eq!(places(&sound(&packed(), &port(""))), [":8080"], "an empty one is none");
    let more_explicit = Overrides { port: Some("5000".to_owned()), ..flags(&[":80"], &[], &[]) };
    assert_eq!(places(&sound(&packed(), &more_explicit)), [":80"]);
    let reads_it =
        Memory::main(":{$PORT:1} {\n\trespond a\n}\n:8081 {\n\trespond b\n}\n").variable("PORT", "5000");
    assert_eq!(places(&sound(&reads_it, &port("5000"))), [":5000", ":8081"]);
    let unix = Memory::main(":80 {\n\tbind unix//run/a.sock\n\trespond a\n}\n");
    assert_eq!(places(&sound(&unix, &port("5000"))), ["/run/a.sock"]);
}

#[test]
fn an_override_file_replaces_options_and_what_applications_have() {
    let (memory, overrides) = with_file(
        packed().file("etc/prod.env", ""),
        "\
{
	grace_period 1s
	memory 64MiB
}
listen :80
app server {
	workers 4
	env MODE {$WHERE:production}
	env_file prod.env
	env_pass B
}
app jobs {
	timeout 5m
}
env REGION eu
site http://localhost:8080 {
	log {
		output stderr
	}
}
",
    );
    let plain = app(&packed().sound(), "api");
    let text = memory.load_with(&overrides);
    assert!(text_of(&text.expect_err("its name is api")).contains("there is no application `server`"));
    let (memory, overrides) = with_file(
        packed().file("etc/prod.env", ""),
        "{\n\tgrace_period 1s\n}\nlisten :80\napp api {\n\tworkers 4\n\tenv MODE {$WHERE:production}\n\tenv_file prod.env\n\tenv_pass B\n}\n\
         app jobs {\n\ttimeout 5m\n}\nenv REGION eu\nsite http://localhost:8080 {\n\tlog {\n\t\toutput stderr\n\t}\n}\n",
    );
    let loaded = sound(&memory, &overrides);
    assert_eq!(loaded.checked.global.grace_period, Duration::from_secs(1));
    assert_eq!(loaded.checked.global.admin, Admin::Off, "other options stay");
    let api = app(&loaded, "api");
    assert_eq!(api.workers, count(4));
    let set: Vec<_> = api.environment.set.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(set, ["A=1", "MODE=production", "REGION=eu"]);
    assert_eq!(api.environment.pass, ["B"]);
    assert_eq!(api.environment.files, [std::path::PathBuf::from("/work/etc/prod.env")]);
    assert_eq!((api.run, api.directory), (plain.run, plain.directory));
    assert_eq!(app(&loaded, "jobs").timeout, Duration::from_secs(300));
    assert_eq!(loaded.checked.sites[0].logs.len(), 1);
    assert_eq!(loaded.files.len(), 2);
}

#[test]
fn flags_count_more_than_the_environment_and_that_more_than_the_file() {
    let (memory, mut overrides) =
        with_file(packed(), "listen :1\napp api {\n\tworkers 3\n\tenv WHO file\n\tenv MODE file\n}\n");
    overrides.port = Some("9".to_owned());
    let now = |overrides: &Overrides| {
        let loaded = sound(&memory, overrides);
        let api = app(&loaded, "api");
        let who = api.environment.set.iter().find(|(name, _)| name == "WHO").map(|(_, value)| value.clone());
        (places(&loaded), api.workers, who)
    };
    let file = |text: &str| Some(text.to_owned());
    assert_eq!(now(&overrides), (vec![":1".to_owned()], count(3), file("file")));
    overrides.environment = Said {
        listen: words("ONEHOP_LISTEN", &[":2"]),
        workers: words("ONEHOP_WORKERS", &["api=5"]),
        env: vec![],
    };
    assert_eq!(now(&overrides), (vec![":2".to_owned()], count(5), file("file")));
    overrides.flags = flags(&[":3"], &["api=7"], &["WHO={flag} \\{x}"]).flags;
    assert_eq!(now(&overrides), (vec![":3".to_owned()], count(7), file("{flag} \\{x}")));
}

#[test]
fn every_application_gets_the_variables_and_none_gets_another_name() {
    let twice = Memory::main(
        ":80 {\n\tapp /a/* api/server.mjs\n\tapp /b/* api/server.mjs {\n\t\tworkers 2\n\t}\n}\n",
    )
    .file("api/server.mjs", "");
    let names = |loaded: &Loaded| {
        loaded.checked.apps().iter().map(|app| (app.name.clone(), app.workers)).collect::<Vec<_>>()
    };
    let before = names(&twice.sound());
    assert_eq!(before.len(), 2);
    let mut changes = flags(&[], &["api=2"], &["X=1"]);
    changes.pass = vec!["SECRET".to_owned()];
    let loaded = sound(&twice, &changes);
    let after: Vec<String> = names(&loaded).into_iter().map(|(name, _)| name).collect();
    assert_eq!(after, before.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>());
    for app in loaded.checked.apps() {
        assert_eq!(app.environment.pass, ["SECRET"]);
        assert_eq!(app.environment.set, [("X".to_owned(), "1".to_owned())]);
        assert_eq!(app.workers, count(2));
    }
}

#[test]
fn logs_and_sockets_of_a_pack_are_not_written_into_it() {
    let memory = Memory::main(
        ":80 {\n\tbind unix/run/a.sock\n\tlog {\n\t\toutput file access.log\n\t}\n\tspa dist\n}\n",
    );
    let overrides = Overrides { written_below: Some("/var".into()), ..Overrides::default() };
    let loaded = sound(&memory, &overrides);
    assert_eq!(places(&loaded), ["/var/run/a.sock"]);
    assert_eq!(loaded.checked.sites[0].logs[0].output, LogOutput::File("/var/access.log".into()));
    assert_eq!(places(&memory.sound()), ["/work/run/a.sock"]);
}

#[test]
fn what_is_wrong_with_an_override_file_is_said_where_it_stands() {
    let (memory, overrides) = with_file(
        packed(),
        "\
{
	memry 64MiB
	memory lots
}
lisen :80
listen
app ap {
	workers 4
}
app api {
	worker 4
	name other
}
app jobs {
	workers none
	runtime bun
}
site http://localhost {
	log
}
site http://localhost:8080 {
	respond hi
	listen 8080 nowhere:1 :x
}
timeout 5s
env A=1
",
    );
    insta::assert_snapshot!(errors(&memory, &overrides));
}

#[test]
fn what_is_wrong_with_flags_is_said_of_the_flag() {
    let several = Memory::main(
        ":8080 {\n\tapp /a/* api/server.mjs\n\tapp /b/* {\n\t\tcommand npx jobs\n\t}\n}\n:8081 {\n\trespond b\n}\n",
    )
    .file("api/server.mjs", "");
    let mut reported = Vec::new();
    for overrides in [
        flags(&[":80"], &[], &[]),
        flags(&["http://a.example"], &[], &[]),
        flags(&[":8082=:80"], &[], &[]),
        flags(&[":8080=80"], &[], &[]),
        flags(&[":8080=:8081"], &[], &[]),
        flags(&[], &["4"], &[]),
        flags(&[], &["ap=4"], &[]),
        flags(&[], &["api=many"], &[]),
        flags(&[], &[], &["1A=much-secret"]),
        flags(&[], &[], &["ONEHOP_X=much-secret"]),
        Overrides { port: Some("5000".to_owned()), ..Overrides::default() },
        Overrides { file: Some("/work/nowhere".into()), ..Overrides::default() },
    ] {
        reported.push(errors(&several, &overrides));
    }
    let port = Overrides { port: Some("http".to_owned()), ..Overrides::default() };
    reported.push(errors(&packed(), &port));
    reported.push(errors(&Memory::main(":80\nrespond a\n"), &flags(&[], &["4"], &[])));
    let reported = reported.join("\n----\n");
    assert!(!reported.contains("much-secret"));
    insta::assert_snapshot!(reported);
}

#[test]
fn what_is_wrong_in_the_configuration_itself_is_said_alone() {
    let memory = Memory::main(":80 {\n\tapp api/nowhere.mjs\n}\n");
    insta::assert_snapshot!(errors(&memory, &flags(&[], &["api=4"], &[])));
}

#[test]
fn no_override_file_panics() {
    for text in [
        "",
        "{",
        "}",
        "{}",
        "{ {",
        "app",
        "app {",
        "app a {\n\tenv {\n}",
        "site {\n}\n",
        "listen {\n}\n",
        "(a) {\n}\n",
        "import nothing",
        "{\n\tmemory\n",
        "env {\n\tA\n}\n",
        "app api {\n\tenv\n\tenv_pass {\n\t}\n}\n",
        "\u{feff}listen é",
    ] {
        let (memory, overrides) = with_file(packed(), text);
        let _ = memory.load_with(&overrides);
    }
}
