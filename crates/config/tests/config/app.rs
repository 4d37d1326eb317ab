//! `app`: what its lines mean, and what a person reads where they mean nothing.

use std::num::NonZeroU16;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::memory::Memory;
use crate::outline::outline;
use onehop_config::checked::limit::{Bound, Limit};
use onehop_config::checked::{
    App, AppAddress, AppData, AppEnvironment, AppProtocol, AppResources, AppRun, Network, Recycle, Step,
    Sticky, WorkerCount,
};

const HANDLER: &str = "export default { fetch() { return new Response('hi') } }\n";

/// A site with these lines, beside files that an application may have.
fn site(lines: &str) -> Memory {
    Memory::main(&format!(":8080 {{\n{lines}\n}}\n"))
        .file("api/server.mjs", HANDLER)
        .file("api/routes.ts", HANDLER)
        .file("shop/package.json", "{ \"name\": \"shop\", \"main\" : \"./src/start.js\" }")
        .file("shop/src/start.js", HANDLER)
        .file("shop/src/page.tsx", HANDLER)
        .file("shop/server.py", "")
        .file("shop/bin/serve", "")
        .file("shop/bin/www", "#!/usr/bin/env node\n")
        .file("shop/.env", "A=b\n")
}

/// In the order in which they act, as often as they are named.
#[track_caller]
fn apps(lines: &str) -> Vec<Arc<App>> {
    let mut apps = Vec::new();
    site(lines).sound().checked.each_step(|step| {
        if let Step::App(app) = step {
            apps.push(Arc::clone(app));
        }
    });
    apps
}

#[track_caller]
fn app(lines: &str) -> App {
    let apps = apps(lines);
    assert_eq!(apps.len(), 1, "{apps:?}");
    App::clone(&apps[0])
}

/// A bound as it is where nothing else is said, with this much of it.
fn limit_of(app: &str, bound: Bound, queue: u32) -> Arc<Limit> {
    let wait = if queue > 0 { Duration::from_secs(3) } else { Duration::ZERO };
    let label = format!("app {app}");
    Arc::new(Limit { label, bound, queue, wait, lag: None, shed_status: 503 })
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn a_file_alone_is_an_application_with_every_default() {
    let run = AppRun::Handler {
        file: "/work/api/server.mjs".into(),
        runtime: None,
        runtime_arguments: Vec::new(),
        arguments: Vec::new(),
    };
    let expected = App {
        name: "api".into(),
        run,
        workers: WorkerCount::Exactly(NonZeroU16::MIN),
        directory: "/work/api".into(),
        environment: AppEnvironment::default(),
        user: None,
        resources: AppResources::default(),
        recycle: Recycle::default(),
        concurrency: None,
        queue: 1024,
        queue_wait: Duration::from_secs(30),
        request_buffers: None,
        limit: Some(limit_of("api", Bound::Adaptive { min: 1, max: 4096 }, 4096)),
        timeout: Duration::from_secs(60),
        start_timeout: Duration::from_secs(30),
        stop_timeout: Duration::from_secs(10),
        stuck_after: Duration::from_secs(5),
        retry: false,
        files: None,
        platform_response: false,
        protocol: AppProtocol::Frames,
        port: None,
        sticky: None,
        trusted_proxies: Vec::new(),
        data: None,
    };
    for line in [
        "app ./api/server.mjs",
        "app * api/server.mjs",
        "app /api/* ./api/server.mjs",
        "app /work/api/server.mjs",
    ] {
        assert_eq!(app(line), expected, "{line}");
    }
}

#[test]
fn a_data_folder_lies_in_the_data_directory_of_the_server() {
    let text = "{\n\tdata_dir data\n}\n:8080 {\n\tapp ./api/server.mjs {\n\t\tdata orders\n\t}\n}\n";
    let checked = Memory::main(text).file("api/server.mjs", HANDLER).sound().checked;
    assert_eq!(checked.global.data_directory.as_deref(), Some(Path::new("/work/data")));
    let expected = AppData { name: "orders".into(), directory: Some("/work/data".into()) };
    assert_eq!(checked.apps()[0].data.as_ref(), Some(&expected));
}

#[test]
fn a_script_without_an_ending_is_run_by_the_runtime_that_its_first_line_names() {
    assert!(matches!(app("app shop/bin/www").run, AppRun::Handler { .. }));
    assert!(site("app shop/bin/serve").errors().contains("no file of JavaScript"));
}

#[test]
fn every_setting_of_a_handler_has_its_place() {
    let app = app("app /api/* ./shop/src/start.js --port 1 {
        name orders
        runtime bun --smol
        workers 4
        concurrency 64
        queue 100 2s
        limit in_flight 64 queue 10 lag 70ms
        timeout 90s
        start_timeout 1m
        stop_timeout 5s
        stuck_after 500ms
        recycle rss 512MiB requests 10000 age 1d
        retry
        cwd shop/src
        user www-data www
        resources {
            memory 16GiB
            open_files 1024
            processes 64
            cpu 1h
        }
        env MODE production
        env {
            GREETING \"good day\"
            EMPTY \"\"
        }
        env_file shop/.env
        env_pass DATABASE_URL AWS_*
        files shop
        response platform
        protocol http
        port 3000
        sticky query sid
        trusted_proxies 192.0.2.7 2001:db8::/32
        data orders
    }");
    let expected = App {
        name: "orders".into(),
        run: AppRun::Handler {
            file: "/work/shop/src/start.js".into(),
            runtime: Some("bun".into()),
            runtime_arguments: words("--smol"),
            arguments: words("--port 1"),
        },
        workers: WorkerCount::Exactly(NonZeroU16::new(4).unwrap()),
        directory: "/work/shop/src".into(),
        environment: AppEnvironment {
            files: vec!["/work/shop/.env".into()],
            set: vec![
                ("MODE".into(), "production".into()),
                ("GREETING".into(), "good day".into()),
                ("EMPTY".into(), String::new()),
            ],
            pass: words("DATABASE_URL AWS_*"),
        },
        user: Some(("www-data".into(), Some("www".into()))),
        resources: AppResources {
            memory_bytes: Some(16 << 30),
            open_files: Some(1024),
            processes: Some(64),
            cpu_seconds: Some(3600),
        },
        recycle: Recycle {
            resident_bytes: Some(512 << 20),
            requests: Some(10_000),
            age: Some(Duration::from_secs(86_400)),
        },
        concurrency: Some(64),
        queue: 100,
        queue_wait: Duration::from_secs(2),
        request_buffers: None,
        limit: Some(Arc::new(Limit {
            lag: Some(Duration::from_millis(70)),
            ..Limit::clone(&limit_of("orders", Bound::Fixed(64), 10))
        })),
        timeout: Duration::from_secs(90),
        start_timeout: Duration::from_secs(60),
        stop_timeout: Duration::from_secs(5),
        stuck_after: Duration::from_millis(500),
        retry: true,
        files: Some("/work/shop".into()),
        platform_response: true,
        protocol: AppProtocol::Http,
        port: NonZeroU16::new(3000),
        sticky: Some(Sticky::Query("sid".into())),
        trusted_proxies: vec![network("192.0.2.7", 32), network("2001:db8::", 32)],
        data: Some(AppData { name: "orders".into(), directory: None }),
    };
    assert_eq!(app, expected);
}

fn network(address: &str, bits: u8) -> Network {
    Network::new(address.parse().unwrap(), bits).unwrap()
}

#[test]
fn proxies_are_trusted_by_address_network_or_as_private_ones() {
    let shown = |list: &str| {
        let app = app(&format!("app api/server.mjs {{\ntrusted_proxies {list}\n}}"));
        app.trusted_proxies.iter().map(Network::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(
        shown("private_ranges"),
        "192.168.0.0/16 172.16.0.0/12 10.0.0.0/8 127.0.0.0/8 fd00::/8 ::1/128"
    );
    assert_eq!(
        shown("10.0.0.0/8 private_ranges 203.0.113.4"),
        "10.0.0.0/8 192.168.0.0/16 172.16.0.0/12 127.0.0.0/8 fd00::/8 ::1/128 203.0.113.4/32"
    );
    assert_eq!(shown("::1 ::ffff:192.0.2.0/120"), "::1/128 192.0.2.0/24");
    for lines in ["command shop/bin/serve", "supervise off 127.0.0.1:3000"] {
        let program = app(&format!("app {{\n{lines}\ntrusted_proxies private_ranges\n}}"));
        assert_eq!(program.trusted_proxies.len(), 6);
    }
}

#[test]
fn to_trust_everybody_is_a_warning() {
    for (network, warnings) in [("0.0.0.0/0", 1), ("::/0", 1), ("10.0.0.0/8", 0)] {
        let lines = format!("app api/server.mjs {{\ntrusted_proxies {network}\n}}");
        assert_eq!(site(&lines).sound().warnings.len(), warnings, "{network}");
    }
}

#[test]
fn requests_stay_together_by_a_cookie_a_parameter_or_an_address() {
    for (line, sticky) in [
        ("sticky cookie", Sticky::Cookie("onehop_worker".into())),
        ("sticky cookie __Host-w", Sticky::Cookie("__Host-w".into())),
        ("sticky query sid", Sticky::Query("sid".into())),
        ("sticky ip", Sticky::ClientAddress),
    ] {
        assert_eq!(app(&format!("app api/server.mjs {{\n{line}\n}}")).sticky, Some(sticky.clone()), "{line}");
        let command = app(&format!("app {{\ncommand npx next start\n{line}\n}}"));
        assert_eq!(command.sticky, Some(sticky), "{line}");
    }
}

#[test]
fn a_cookie_that_browsers_drop_over_http_is_a_warning() {
    let app = |cookie: &str| format!("app api/server.mjs {{\nworkers 2\nsticky cookie {cookie}\n}}");
    for (address, cookie, warnings) in [
        (":8080", "__Host-w", 1),
        ("http://shop.example", "__Secure-w", 1),
        ("http://shop.example", "__host-w", 1),
        ("shop.example", "__Host-w", 0),
        ("https://shop.example", "__Secure-w", 0),
        ("https://shop.example, http://shop.example", "__Host-w", 1),
        (":8080", "__Host-w\ntrusted_proxies private_ranges", 0),
        (":8080", "_Host-w", 0),
        (":8080", "", 0),
    ] {
        let file = Memory::main(&format!("{address} {{\n{}\n}}\n", app(cookie)));
        let found = file.file("api/server.mjs", HANDLER).sound().warnings;
        assert_eq!(found.len(), warnings, "{address} {cookie}: {found:?}");
    }
}

#[test]
fn sticky_of_an_application_that_nobody_gave_several_workers_is_a_warning() {
    for (lines, warnings) in
        [("sticky ip", 1), ("sticky cookie", 1), ("workers 1\nsticky ip", 0), ("workers auto\nsticky ip", 0)]
    {
        let found = site(&format!("app api/server.mjs {{\n{lines}\n}}")).sound().warnings;
        assert_eq!(found.len(), warnings, "{lines}: {found:?}");
    }
}

#[test]
fn two_applications_of_a_site_that_share_a_cookie_are_a_warning() {
    let app = |path: &str, port: u16, sticky: &str| {
        format!("app {path} {{\ncommand npx next start {port}\nworkers 2\nsticky {sticky}\n}}\n")
    };
    for (lines, warnings) in [
        (app("/a/*", 1, "cookie") + &app("/b/*", 2, "cookie"), 1),
        (app("/a/*", 1, "cookie") + &app("/b/*", 1, "cookie"), 0),
        (app("/a/*", 1, "cookie") + &app("/b/*", 2, "cookie other"), 0),
        (app("/a/*", 1, "ip") + &app("/b/*", 2, "ip"), 0),
        (app("/a/*", 1, "cookie") + "}\n:8081 {\n" + &app("/b/*", 2, "cookie"), 0),
    ] {
        let found = site(&lines).sound().warnings;
        assert_eq!(found.len(), warnings, "{lines}: {found:?}");
    }
}

#[test]
fn a_command_runs_where_the_onehopfile_is() {
    for (lines, line, directory) in [
        ("command npx next start", "npx next start", "/work"),
        ("command npx next start\ncwd shop", "npx next start", "/work/shop"),
        ("command ./shop/bin/serve --flag", "/work/shop/bin/serve --flag", "/work"),
        ("command ./bin/serve\ncwd shop", "/work/shop/bin/serve", "/work/shop"),
    ] {
        let app = app(&format!("app /api/* {{\n{lines}\n}}"));
        assert_eq!(app.run, AppRun::Command { line: words(line) }, "{lines}");
        assert_eq!(app.directory, Path::new(directory), "{lines}");
        assert_eq!(app.workers, WorkerCount::Exactly(NonZeroU16::MIN));
    }
}

#[test]
fn an_unsupervised_program_is_an_address() {
    let tcp = |text: &str| AppAddress::Tcp(text.parse().unwrap());
    for (written, address) in [
        ("127.0.0.1:3000", tcp("127.0.0.1:3000")),
        ("10.0.0.7:3000", tcp("10.0.0.7:3000")),
        ("localhost:3000", tcp("127.0.0.1:3000")),
        (":3000", tcp("127.0.0.1:3000")),
        ("http://127.0.0.1:3000/", tcp("127.0.0.1:3000")),
        ("[::1]:3000", tcp("[::1]:3000")),
        ("unix//run/api.sock", AppAddress::Unix("/run/api.sock".into())),
        ("unix/api.sock", AppAddress::Unix("/work/api.sock".into())),
    ] {
        let app = app(&format!("app /api/* {{\nsupervise off {written}\n}}"));
        assert_eq!(app.run, AppRun::Elsewhere { address }, "{written}");
    }
}

#[test]
fn a_program_is_spoken_to_in_http2_where_that_is_written() {
    for run in ["command ./shop/bin/serve", "supervise off 127.0.0.1:3000"] {
        assert_eq!(app(&format!("app {{\n{run}\nprotocol h2c\n}}")).protocol, AppProtocol::Http2, "{run}");
    }
}

#[test]
fn the_folder_of_the_nearest_package_is_the_working_directory() {
    assert_eq!(app("app shop/src/start.js").directory, Path::new("/work/shop"));
    assert_eq!(app("app api/server.mjs").directory, Path::new("/work/api"));
}

#[test]
fn an_application_is_called_the_same_wherever_its_folder_is_put() {
    for (line, stands_for, name) in [
        ("app server.mjs", "shop", "shop"),
        ("app dist/index.mjs", "shop", "shop"),
        ("app api/server.mjs", "shop", "api"),
        ("app {\ncommand node server.mjs\n}", "shop", "shop"),
        ("app {\nsupervise off unix/server.sock\n}", "shop", "shop"),
        ("app {\nsupervise off unix//run/orders/server.sock\n}", "shop", "orders"),
        // As with /app/server.mjs: no folder says anything.
        ("app server.mjs", "", "server"),
        ("app server.mjs", "12", "app-12"),
    ] {
        let text = format!(":80\n{line}\n");
        let memory = ["server.mjs", "dist/index.mjs", "api/server.mjs"]
            .into_iter()
            .fold(Memory::main(&text), |memory, file| memory.file(file, ""));
        let loaded = memory.standing_for(stands_for).sound();
        let names: Vec<String> = loaded.checked.apps().iter().map(|app| app.name.clone()).collect();
        assert_eq!(names, [name], "{line}");
    }
}

#[test]
fn a_name_says_what_is_run() {
    for (line, name) in [
        ("app api/server.mjs", "api"),
        ("app api/routes.ts", "routes"),
        ("app shop/src/start.js", "start"),
        ("app {\ncommand npx next start\n}", "next"),
        ("app {\ncommand node --enable-source-maps shop/src/start.js\n}", "start"),
        ("app {\ncommand shop/bin/serve\n}", "serve"),
        ("app {\nsupervise off unix//run/orders.sock\n}", "orders"),
        ("app {\nsupervise off 127.0.0.1:3000\n}", "127.0.0.1:3000"),
        ("app {\nsupervise off [::1]:3000\n}", "port-3000"),
        ("app api/server.mjs {\nname a.b_c-d:1\n}", "a.b_c-d:1"),
    ] {
        assert_eq!(app(line).name, name, "{line}");
    }
}

#[test]
fn an_application_has_a_bound_unless_its_file_says_otherwise() {
    for (lines, expected) in [
        ("", Some(limit_of("api", Bound::Adaptive { min: 1, max: 4096 }, 4096))),
        ("limit off", None),
        ("limit in_flight 8", Some(limit_of("api", Bound::Fixed(8), 4096))),
        ("limit in_flight 8 queue 0", Some(limit_of("api", Bound::Fixed(8), 0))),
        ("limit {\nin_flight 8\nqueue 4\n}", Some(limit_of("api", Bound::Fixed(8), 4))),
        ("limit adaptive max 64", Some(limit_of("api", Bound::Adaptive { min: 1, max: 64 }, 4096))),
        ("limit queue 16", Some(limit_of("api", Bound::Adaptive { min: 1, max: 4096 }, 16))),
        ("limit wait 3s", Some(limit_of("api", Bound::Adaptive { min: 1, max: 4096 }, 4096))),
        ("limit shed 503", Some(limit_of("api", Bound::Adaptive { min: 1, max: 4096 }, 4096))),
        (
            "limit lag 70ms",
            Some(Arc::new(Limit {
                lag: Some(Duration::from_millis(70)),
                ..Limit::clone(&limit_of("api", Bound::Unbounded, 0))
            })),
        ),
    ] {
        assert_eq!(app(&format!("app api/server.mjs {{\n{lines}\n}}")).limit, expected, "{lines}");
    }
    for lines in ["command shop/bin/serve", "supervise off 127.0.0.1:3000"] {
        let limit = app(&format!("app {{\nname other\n{lines}\n}}")).limit;
        assert_eq!(limit, Some(limit_of("other", Bound::Adaptive { min: 1, max: 4096 }, 4096)), "{lines}");
    }
}

#[test]
fn the_bounds_that_applications_have_by_themselves_can_be_taken_away_in_one_place() {
    let text = "{\n\tlimit off\n}\n:80 {\n\tapp /a/* a.mjs\n\tapp a.mjs {\n\t\tlimit in_flight 3\n\t}\n}\n";
    let loaded = Memory::main(text).file("a.mjs", HANDLER).sound();
    let bounds: Vec<_> =
        loaded.checked.apps().iter().map(|app| app.limit.as_ref().map(|limit| limit.bound)).collect();
    assert_eq!(bounds, [None, Some(Bound::Fixed(3))]);
    assert_eq!(loaded.checked.global.limit, None);
}

#[test]
fn an_application_with_its_usual_bound_written_out_is_the_same_one() {
    let apps = apps(
        "app /a/* api/server.mjs\napp /b/* api/server.mjs {\nlimit adaptive\n}\napp /cc/* api/server.mjs {\nlimit off\n}",
    );
    assert_eq!(apps.iter().map(|app| app.name.as_str()).collect::<Vec<_>>(), ["api-2", "api", "api"]);
    assert_eq!(apps[0].limit, None);
    assert!(Arc::ptr_eq(&apps[1], &apps[2]));
}

#[test]
fn different_applications_have_different_names_and_equal_ones_are_one() {
    let apps = apps(
        "app /a/* api/server.mjs
        app /bb/* api/server.mjs --other
        app /ccc/* api/server.mjs
        app /dddd/* api/server.mjs {
            name both
        }
        app /eeeee/* api/server.mjs {
            name both
        }",
    );
    let names: Vec<&str> = apps.iter().map(|app| app.name.as_str()).collect();
    assert_eq!(names, ["both", "both", "api", "api-2", "api"]);
    assert!(Arc::ptr_eq(&apps[0], &apps[1]));
    assert!(Arc::ptr_eq(&apps[2], &apps[4]));
}

#[test]
fn a_configuration_names_each_of_its_applications_once() {
    let loaded =
        site("app /a/* api/server.mjs\nhandle_path /b/* {\n\tapp api/server.mjs\n\tapp /c api/routes.ts\n}")
            .sound();
    let names: Vec<&str> = loaded.checked.apps().iter().map(|app| app.name.as_str()).collect();
    assert_eq!(names, ["routes", "api"]);
}

#[test]
fn app_acts_behind_respond_and_before_files() {
    let loaded = site("file_server\nspa /app/* ./dist\napp api/server.mjs\napp /api/* api/routes.ts\nrespond /r hi\nencode\nhandle /h {\n\tapp api/server.mjs\n}").sound();
    assert_eq!(
        outline(&loaded.checked.sites[0].routes),
        "root /work
encode [Zstd, Gzip] from 512
handle path /h
  app api
respond 200 \"hi\" path /r
app routes path /api/*
app api
spa /work/dist path /app/*
file_server
"
    );
}

#[test]
fn values_of_the_environment_are_not_shown_for_debugging() {
    let app = app("app api/server.mjs {\nenv TOKEN much-secret\n}");
    let shown = format!("{app:?}");
    assert!(shown.contains("TOKEN") && !shown.contains("much-secret"), "{shown}");
}

#[test]
fn a_bound_on_addresses_that_node_cannot_live_with_is_a_warning() {
    for (lines, warnings) in [
        ("app api/server.mjs {\nresources memory 4GiB\n}", 1),
        ("app api/server.mjs {\nresources memory 16GiB\n}", 0),
        ("app api/server.mjs {\nruntime bun\nresources memory 4GiB\n}", 0),
        ("app {\ncommand shop/bin/serve\nresources memory 1GiB\n}", 0),
    ] {
        assert_eq!(site(lines).sound().warnings.len(), warnings, "{lines}");
    }
}

macro_rules! errors {
    ($name:ident, $text:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(site($text).errors());
        }
    };
}

errors!(app_without_anything_to_run, "app\napp /api/* {\n\tworkers 2\n}\napp @api\napp /api/*");
errors!(
    a_handler_that_is_not_there,
    "app api/sever.mjs\napp nowhere/server.mjs\napp /api/* api/other\napp /work/api/server.mjs --flag"
);
errors!(
    data_folders_that_cannot_be,
    "app api/server.mjs {
	data ../x
}
app /a/* api/server.mjs {
	name a
	data shop
}
app /b/* api/server.mjs {
	name b
	data shop
}
app /c/* {
	supervise off 127.0.0.1:1
	data c
}
app /d/* api/server.mjs {
	data d
	env APP_DATA_DIR /srv
}
app /e/* api/server.mjs {
	data_dir e
}"
);
errors!(a_folder_in_place_of_a_handler, "app ./api/\napp /x/* shop\napp /y/* shop/bin");
errors!(a_file_that_is_no_handler, "app shop/server.py\napp /x/* shop/src/page.tsx\napp /y/* shop/.env");
errors!(
    every_wrong_value_of_an_app_at_once,
    "app api/server.mjs {
	name \"a b\"
	runtime nod
	workers 0
	concurrency many
	queue 0
	timeout 0
	start_timeout 2d
	stop_timeout soon
	stuck_after 1ms
	recycle rss 1MiB
	retry twice
	cwd nowhere
	user a:b
	resources memry 1GiB
	env A=b
	env ONEHOP_LANES 3
	env_file nowhere
	env_pass A*B
	files api/server.mjs
	response fast
	protocol htpp
	port 0
	worker 3
	instances 4
}"
);
errors!(
    a_program_that_is_not_there,
    "app {\n\tcommand ./nowhere --flag\n}\napp /x/* api/server.mjs {\n\truntime ./nowhere\n}\napp /y/* api/server.mjs {\n\truntime deno\n}"
);
errors!(
    contradictions_of_an_app,
    "app /a/* api/server.mjs {\n\tcommand node api/server.mjs\n}
app /b/* {\n\tsupervise off :3000\n\tworkers 2\n\tsticky ip\n\tenv A b\n}
app /c/* {\n\tcommand node api/server.mjs\n\tstuck_after 1s\n\tresponse platform\n\tprotocol http\n\tport 3000\n\tenv PORT 3000\n}
app /d/* api/server.mjs {\n\tone_at_a_time\n\tconcurrency 3\n}
app /e/* api/server.mjs {\n\tworkers 2\n\tworkers 3\n\tenv A b\n\tenv A c\n}
app /f/* {\n\tcommand node api/server.mjs\n\tlimit lag 70ms\n}
app /g/* {\n\tsupervise off :3000\n\tlimit {\n\t\tadaptive\n\t\tlag 70ms\n\t}\n}
app /h/* api/server.mjs {\n\tprotocol h2c\n}"
);
errors!(
    a_wrong_address_of_a_program,
    "app {\n\tsupervise off\n}\napp /b {\n\tsupervise on\n}\napp /c {\n\tsupervise off example.com\n}\napp /d {\n\tsupervise off 127.0.0.1:0\n}"
);
errors!(
    what_sticky_cannot_be,
    "app /a/* api/server.mjs {\n\tsticky\n}
app /b/* api/server.mjs {\n\tsticky cokie\n}
app /c/* api/server.mjs {\n\tsticky ip_hash\n}
app /d/* api/server.mjs {\n\tsticky cookie a b\n}
app /e/* api/server.mjs {\n\tsticky cookie \"a;b\"\n}
app /f/* api/server.mjs {\n\tsticky query\n}
app /g/* api/server.mjs {\n\tsticky query a=b\n}
app /h/* api/server.mjs {\n\tsticky ip 10.0.0.1\n}
app /i/* api/server.mjs {\n\tlb_policy cookie\n}
app /j/* api/server.mjs {\n\tlb_policy client_ip_hash\n}
app /k/* api/server.mjs {\n\tlb_policy round_robin\n}
app /l/* api/server.mjs {\n\tstiky ip\n}"
);
errors!(
    who_cannot_be_a_trusted_proxy,
    "app /a/* api/server.mjs {\n\ttrusted_proxies\n}
app /b/* api/server.mjs {\n\ttrusted_proxies private_range\n}
app /c/* api/server.mjs {\n\ttrusted_proxies proxy.example.com\n}
app /d/* api/server.mjs {\n\ttrusted_proxies 10.0.0.0/33\n}
app /e/* api/server.mjs {\n\ttrusted_proxies fd00::/+8\n}
app /f/* api/server.mjs {\n\ttrusted_proxies 10.0.0.5/8\n}
app /g/* api/server.mjs {\n\ttrusted_proxies 10.0.0.5 10.0.0.5/32\n}
app /h/* api/server.mjs {\n\ttrusted_proxies private_ranges 10.0.0.0/8\n}
app /i/* api/server.mjs {\n\ttrusted_proxies private_ranges private_ranges\n}
app /j/* api/server.mjs {\n\ttrusted_proxies 10.0.0.5\n\ttrusted_proxies 10.0.0.6\n}
app /k/* api/server.mjs {\n\ttrusted_proxy 10.0.0.5\n}
app /l/* api/server.mjs {\n\tset_real_ip_from 10.0.0.5\n}
app /m/* api/server.mjs {\n\ttrusted_proxies 10.0.0.0/\n}"
);
errors!(what_app_is_going_to_have, "app api/server.mjs {\n\texec a\n}");
errors!(
    placeholders_have_no_meaning_before_a_request,
    "app api/server.mjs {path}\napp /b {\n\tcommand echo {uri}\n}\napp /c api/server.mjs {\n\tenv A {host}\n}"
);
errors!(
    two_applications_of_one_name,
    "app /a api/server.mjs {\n\tname one\n}\napp /b api/routes.ts {\n\tname one\n}\napp /c api/routes.ts {\n\tname 12\n}"
);
errors!(a_secret_is_not_repeated, "app api/server.mjs {\n\tenv \"TOKEN=secret\" x\n\tworkers 0\n}");
