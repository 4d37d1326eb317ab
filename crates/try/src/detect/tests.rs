//! Packages, files and folders as people have them, and what is made of each.

use super::testing::{Folder, environment};
use super::*;

const SERVER: &str =
    "require('http').createServer((q, s) => s.end('ok')).listen(process.env.PORT || 3000);\n";

/// Names and texts.
type Files = &'static [(&'static str, &'static str)];

fn fails(files: &[(&str, &str)], name: &str, environment: &Environment) -> String {
    let folder = Folder::of(files);
    let error = folder.detect(name, environment).expect_err("it cannot be tried");
    folder.plain(&error.to_string())
}

#[test]
fn an_express_application_is_measured_alone_and_behind_a_tuned_nginx() {
    let folder = Folder::of(&[
        (
            "package.json",
            r#"{"scripts": {"start": "NODE_ENV=staging node --enable-source-maps server.js --quick"},
                "dependencies": {"express": "^5.0.0"}}"#,
        ),
        ("node_modules/express/package.json", r#"{"version": "5.1.0"}"#),
        (
            "server.js",
            "const express = require('express');\nconst app = express();\n\
             const items = require('./routes/items');\napp.use(express.static('public'));\n\
             app.get('/version', (q, s) => s.json(process.env.DATABASE_URL));\n\
             app.get('/users/:id', (q, s) => s.end());\n// app.get('/old', x);\n\
             app.get('/logout', (q, s) => s.end());\napp.get('/ticks', (q, s) => { s.type('text/event-stream'); });\n\
             app.use('/api/items', items);\nconst cache = new Map(); cache.get('/nothing');\n\
             app.listen(process.env.PORT ?? 3000);\n",
        ),
        (
            "routes/items.js",
            "const router = express.Router();\nrouter.get('/', list);\nrouter.get('/new', add);\n",
        ),
        ("public/style.css", "a {}"),
    ]);
    let mut environment = environment();
    environment.variables.push(("DATABASE_URL".to_owned(), "secret".to_owned()));
    let setup = folder.detect("package.json", &environment).unwrap();
    let shown = folder.show(&setup);
    assert!(!shown.contains("secret"));
    insta::assert_snapshot!(shown);
}

#[test]
fn a_start_script_is_followed_to_what_runs() {
    for (package, expected, onehopfile) in [
        (r#"{"scripts": {"start": "node server"}}"#, "node server.js", "\tapp ./server.js\n"),
        (
            r#"{"scripts": {"start": "node ."}, "main": "src/main.js"}"#,
            "node src/main.js",
            "\tapp ./src/main.js\n",
        ),
        (
            r#"{"scripts": {"start": "npm run serve", "serve": "node dist/main"}}"#,
            "node dist/main.js",
            "\tapp ./dist/main.js\n",
        ),
        (
            r#"{"scripts": {"start": "npm run build && node ./server.js", "build": "tsc"}}"#,
            "node server.js",
            "\tapp ./server.js\n",
        ),
        (r#"{"scripts": {"start": "nodemon server.js"}}"#, "node server.js", "\tapp ./server.js\n"),
        (
            r#"{"scripts": {"start": "cross-env A=1 PORT=80 node -r ./src/main.js --watch server.js"}}"#,
            "node -r ./src/main.js server.js",
            "\tapp ./server.js {\n\t\truntime node -r ./src/main.js\n\t\tenv A 1\n\t}\n",
        ),
        (
            r#"{"scripts": {"start": "npx tool serve --fast"}}"#,
            "./node_modules/.bin/tool serve --fast",
            "\tapp {\n\t\tcommand ./node_modules/.bin/tool serve --fast\n\t\tenv NODE_ENV production\n\t}\n",
        ),
        (
            r#"{"scripts": {"start": "tool serve -p ${PORT:-80}"}}"#,
            "sh -c PATH=\"$PWD/node_modules/.bin:$PATH\"; tool serve -p ${PORT:-80}",
            "\tapp {\n\t\tcommand sh -c `PATH=\"$PWD/node_modules/.bin:$PATH\"; tool serve -p $\\{PORT:-80\\}`\n\t\tenv NODE_ENV production\n\t}\n",
        ),
        (r#"{"main": "src/main.js"}"#, "node server.js", "\tapp ./server.js\n"),
        (r#"{"scripts": {"start": "node bin/www"}}"#, "node bin/www", "\tapp ./bin/www\n"),
    ] {
        let folder = Folder::of(&[
            ("package.json", package),
            ("server.js", SERVER),
            ("src/main.js", SERVER),
            ("dist/main.js", SERVER),
            ("node_modules/.bin/tool", "#!/bin/sh\n"),
            ("bin/www", "#!/usr/bin/env node\nrequire('../server');\n"),
        ]);
        let setup = folder.detect("package.json", &environment()).unwrap();
        assert_eq!(setup.application.as_ref().unwrap().words.join(" "), expected, "{package}");
        assert_eq!(setup.onehopfile, format!(":{{port}} {{\n{onehopfile}}}\n"), "{package}");
    }
}

#[test]
fn what_keeps_a_package_from_being_tried_is_said_with_the_next_step() {
    let plain = environment();
    let without_node = Environment { node: None, ..environment() };
    let cases: [(&str, &str, &Environment); 8] = [
        (r#"{"dependencies": {"express": "5"}, "scripts": {"start": "node server.js"}}"#, SERVER, &plain),
        (r#"{"scripts": {"start": "node dist/x.js", "build": "tsc"}}"#, SERVER, &plain),
        (r#"{"scripts": {"start": "node x.js"}}"#, SERVER, &plain),
        (r#"{"scripts": {"start": "npm run a", "a": "npm run start"}}"#, SERVER, &plain),
        (r#"{"scripts": {"start": "pm2 start all"}}"#, SERVER, &plain),
        ("{\n\"scripts\": }", SERVER, &plain),
        (r#"{"scripts": {"start": "node server.js"}}"#, SERVER, &without_node),
        (r#"{"scripts": {"start": "node server.js"}}"#, "module.exports = express();", &plain),
    ];
    let shown: Vec<String> = cases
        .iter()
        .map(|(package, server, environment)| {
            let text =
                fails(&[("package.json", package), ("server.js", server)], "package.json", environment);
            format!("{package}\n{text}\n")
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn a_handler_has_no_today_unless_something_serves_it() {
    let handler = "export default { async fetch(request) { return new Response('x'); } };\n";
    let text = fails(&[("server.mjs", handler)], "server.mjs", &environment());
    assert!(text.contains("neither Bun nor @hono/node-server"), "{text}");
    let folder = Folder::of(&[
        ("server.mjs", handler),
        ("package.json", "{}"),
        ("node_modules/@hono/node-server/package.json", "{}"),
    ]);
    let setup = folder.detect("server.mjs", &environment()).unwrap();
    assert_eq!(setup.onehopfile, ":{port} {\n\tapp ./server.mjs\n}\n");
    assert_eq!(setup.application.unwrap().words[..3], ["node", "--input-type=module", "-e"]);
    let with_bun = Environment { bun: Some("/usr/bin/bun".into()), ..environment() };
    let folder = Folder::of(&[("server.mjs", handler)]);
    let setup = folder.detect("server.mjs", &with_bun).unwrap();
    assert_eq!(setup.application.unwrap().words[0], "bun");
}

#[test]
fn a_built_application_is_served_by_nginx_today() {
    let folder = Folder::of(&[
        (
            "dist/index.html",
            "<!doctype html><script type=\"module\" crossorigin src=\"/assets/a.js\"></script>\
             <link rel=stylesheet href=./assets/a.css><link rel=icon href=\"https://example.com/x.png\">\
             <link href='/missing.css'><img data-src='/assets/no.png' src='../up.png'><div id=\"root\">",
        ),
        ("dist/assets/a.js", "1"),
        ("dist/assets/a.css", "a {}"),
        (
            "package.json",
            r#"{"scripts": {"build": "vite build", "dev": "vite"}, "devDependencies": {"vite": "7"}}"#,
        ),
    ]);
    let setup = folder.detect("", &environment()).unwrap();
    insta::assert_snapshot!(folder.show(&setup));
    assert_eq!(folder.detect("dist", &environment()).unwrap().onehopfile, setup.onehopfile);
    let without = Environment { nginx: None, ..environment() };
    insta::assert_snapshot!(folder.show(&folder.detect("dist", &without).unwrap()));
    let bare = Environment::default();
    let text = fails(&[("dist/index.html", "")], "dist", &bare);
    assert!(text.contains("neither nginx nor Caddy"), "{text}");
}

#[test]
fn a_folder_of_pages_is_no_application() {
    let folder =
        Folder::of(&[("public/index.html", "<p>"), ("public/about.html", "<p>"), ("public/404.html", "")]);
    let setup = folder.detect("", &environment()).unwrap();
    assert_eq!(setup.onehopfile, ":{port} {\n\troot ./public\n\tfile_server\n}\n");
}

#[test]
fn a_folder_is_what_runs_today_and_a_file_what_its_name_says() {
    let cases: [(Files, &str, &str); 5] = [
        (&[("a.txt", "")], "", "FOLDER: nothing here says what it serves"),
        (&[("Onehopfile", "")], "Onehopfile", "FOLDER/Onehopfile: it has no site"),
        (&[("a.txt", "")], "a.txt", "FOLDER/a.txt: this is no file that says"),
        (&[], "nowhere", "FOLDER/nowhere: there is no such file"),
        (
            &[("package.json", r#"{"scripts": {"build": "vite build"}}"#)],
            "",
            "FOLDER/package.json: it has no start script and no server, and what it builds",
        ),
    ];
    for (files, name, expected) in cases {
        let text = fails(files, name, &environment());
        assert!(text.starts_with(expected), "{text}");
    }
    let folder = Folder::of(&[("package.json", "{}"), ("server.js", SERVER), ("public/index.html", "")]);
    assert_eq!(folder.detect("", &environment()).unwrap().onehopfile, ":{port} {\n\tapp ./server.js\n}\n");
    let folder = Folder::of(&[("app.mjs", "import('x'); createServer().listen(1)")]);
    assert_eq!(folder.detect("", &environment()).unwrap().onehopfile, ":{port} {\n\tapp ./app.mjs\n}\n");
}

#[test]
fn a_configuration_of_pm2_is_the_application_that_it_starts() {
    if std::process::Command::new("node").arg("--version").output().is_err() {
        eprintln!("skipped: Node.js is not installed: it evaluates these files");
        return;
    }
    let mut environment = environment();
    environment.node = Some("node".into());
    let config = "const instances = 2 * 2;\nmodule.exports = { apps: [{ name: 'shop', script: 'src/main.js', cwd: '.', \
                  args: '--quick', node_args: ['--enable-source-maps'], instances, exec_mode: 'cluster', \
                  max_memory_restart: '300M', kill_timeout: 3000, env: { PORT: 3000, MODE: 'demo' }, env_production: { LEVEL: 2 } }, { script: 'other.js' }] };\n";
    let json = r#"[{"script": "src/main.js", "instances": "max"}]"#;
    for (name, text, words, onehopfile, workers) in [
        (
            "ecosystem.config.cjs",
            config,
            "node --enable-source-maps src/main.js --quick",
            "\tapp * ./src/main.js --quick {\n\t\truntime node --enable-source-maps\n\t\tcwd .\n\t\tenv LEVEL 2\n\t\tenv MODE demo\n\t\tworkers {workers}\n\t\trecycle rss 300MiB\n\t}\n",
            "4",
        ),
        (
            "ecosystem.json",
            json,
            "node src/main.js",
            "\tapp ./src/main.js {\n\t\tcwd .\n\t\tworkers {workers}\n\t}\n",
            "auto",
        ),
    ] {
        let folder = Folder::of(&[(name, text), ("src/main.js", SERVER)]);
        let setup = folder.detect("", &environment).unwrap();
        assert_eq!(setup.application.as_ref().unwrap().words.join(" "), words, "{name}");
        assert_eq!(setup.onehopfile, format!(":{{port}} {{\n{onehopfile}}}\n"), "{name}");
        assert_eq!(setup.workers.as_deref(), Some(workers), "{name}");
        let left_out = "Settings of pm2 without an equal in the Onehopfile: `kill_timeout`, `PORT`.";
        assert_eq!(setup.notes.iter().any(|note| note == left_out), text == config, "{:?}", setup.notes);
    }
    let broken = fails(&[("ecosystem.config.js", "module.exports = missing;\n")], "", &environment);
    assert!(
        broken.contains("Node.js cannot evaluate it: ReferenceError: missing is not defined"),
        "{broken}"
    );
    let missing = fails(&[("ecosystem.json", r#"{"apps": [{"script": "dist/a.js"}]}"#)], "", &environment);
    assert!(missing.contains("it starts `dist/a.js`, which is not there"), "{missing}");
}

#[test]
fn an_onehopfile_is_compared_with_what_it_replaces() {
    let app = "http://shop.example {\n\theader X-A b\n\tapp ./server.js {\n\t\tenv MODE demo\n\t}\n}\n";
    let files: Files = &[
        ("server.js", SERVER),
        ("dist/index.html", "<script type=\"module\" src=\"/a.js\">"),
        ("dist/a.js", ""),
    ];
    let of = |text: &str| {
        let folder = Folder::of(&[&[("Onehopfile", text)], files].concat());
        folder.detect("Onehopfile", &environment()).map_err(|error| folder.plain(&error.to_string()))
    };
    let setup = of(app).unwrap();
    assert_eq!(setup.application.as_ref().unwrap().words.join(" "), "node server.js");
    assert!(setup.application.unwrap().environment.contains(&("MODE".to_owned(), "demo".to_owned())));
    assert_eq!(setup.onehopfile, app.replace("http://shop.example", ":{port}"));
    assert_eq!(setup.addresses, ["http://shop.example"]);
    assert!(matches!(setup.today.as_slice(), [super::super::Front::None, super::super::Front::Nginx { .. }]));

    let setup = of(":8080\nspa ./dist\n").unwrap();
    assert!(
        setup.application.is_none()
            && setup.routes.iter().map(|route| route.path.as_str()).eq(["/", "/a.js"]),
        "{setup:?}"
    );
    assert_eq!(setup.onehopfile, ":{port} {\n\tspa ./dist\n}\n");

    let both = of(":8080 {\n\tapp /api/* ./server.js\n\tspa ./dist\n}\n").unwrap_err();
    assert!(both.contains("its site does several things"), "{both}");
    let wrong = of(":8080 {\n\tsp ./dist\n}\n").unwrap_err();
    assert!(wrong.contains("FOLDER/Onehopfile:2") && wrong.contains("there is no directive `sp`"), "{wrong}");
}

#[test]
fn the_configuration_that_a_distribution_installs_is_read() {
    let path = Path::new("/etc/nginx/nginx.conf");
    if !path.is_file() {
        eprintln!("nginx is not installed: its own configuration is not read");
        return;
    }
    match detect(path, &environment()) {
        Ok(setup) => {
            assert!(setup.onehopfile.contains("file_server") || setup.application.is_some(), "{setup:?}")
        }
        // A root that was taken away, or a server of somebody's own.
        Err(error) => assert!(!error.to_string().contains("nginx -t tells"), "{error}"),
    }
}

proptest::proptest! {
    #[test]
    fn no_source_and_no_script_makes_it_panic(text in "[a-z/'\"`.,:;(){}=@$*é\n -]{0,120}", start in "[a-z./='\"&$ -]{0,60}") {
        let text = format!("app.get('/a', x);\nrouter.use('/b', require('./c'));\n{text}");
        let package = serde_json::json!({ "scripts": { "start": start } }).to_string();
        let folder = Folder::of(&[("package.json", &package), ("server.js", &text), ("c.js", &text), ("index.html", &text)]);
        let reported = routes::tell(&folder.path(), None);
        proptest::prop_assert!(reported.routes.iter().all(|path| path.starts_with('/')));
        let _ = detect(&folder.path().join("package.json"), &environment());
        let _ = script::kind_of(&folder.path().join("server.js"));
    }
}
