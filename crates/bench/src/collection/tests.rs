//! Collections as a person meets them: what is read, what is refused and how that is said, what a run tells.

use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};

use onehop_load::plan::{Expect, Timeouts};
use onehop_load::progress::{Observer, Progress, Unobserved};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn given(variables: &[(&str, &str)]) -> ReadOptions {
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    ReadOptions { variables, environment: None }
}

fn read_text(text: &str, variables: &[(&str, &str)]) -> Result<Collection, String> {
    read_bytes(text.as_bytes(), "a.json", Path::new("/nowhere"), &given(variables))
        .map_err(|error| error.to_string())
}

fn collection_of(items: &Value) -> String {
    json!({
        "info": { "name": "C", "schema": "https://schema.getpostman.com/json/collection/v2.1.0/collection.json" },
        "variable": [{ "key": "URL", "value": "http://127.0.0.1:1" }, { "key": "BLOG_ID", "value": 1 }],
        "item": items,
    })
    .to_string()
}

fn one(request: &Value) -> String {
    collection_of(&json!([{ "name": "one", "request": request }]))
}

#[test]
fn what_cannot_be_run_says_where_why_and_what_to_do() {
    let deep = (0..51).fold(json!([]), |inner, _| json!([{ "name": "f", "item": inner }]));
    let cases: [(&str, String); 25] = [
        ("v2.0", r#"{"info":{"schema":"https://schema.getpostman.com/json/collection/v2.0.0/collection.json"},"item":[]}"#.into()),
        ("v1", r#"{"id":"x","name":"y","order":[],"requests":[]}"#.into()),
        ("environment", r#"{"name":"e","values":[]}"#.into()),
        ("openapi", r#"{"openapi":"3.1.0","paths":{}}"#.into()),
        ("other JSON", r#"{"a":1}"#.into()),
        ("an array", "[1]".into()),
        ("broken JSON", "{\n\"item\": [,]}".into()),
        ("no JSON at all", "<html>".into()),
        ("nothing", "\n# only a comment\n".into()),
        ("a list", "http://localhost/a\nGET http://localhost/a b\n".into()),
        ("a tunnel", "CONNECT http://localhost/\n".into()),
        ("no items", collection_of(&json!([]))),
        ("deep folders", collection_of(&deep)),
        ("neither", collection_of(&json!([{ "name": "f", "item": [{ "name": "i" }] }]))),
        ("no URL", one(&json!({ "method": "GET" }))),
        ("a misspelled variable", one(&json!("{{URI}}/blogs"))),
        ("an unknown variable", one(&json!("{{URL}}/{{something else}}"))),
        ("an unknown dynamic one", one(&json!("{{URL}}/{{$randomCity}}"))),
        ("a password in the URL", one(&json!("http://me:secret@localhost/"))),
        ("a broken field", one(&json!({ "url": "{{URL}}", "header": [{ "key": "a b", "value": "c" }] }))),
        ("a line break in a field", one(&json!({ "url": "{{URL}}", "header": [{ "key": "a", "value": "c\r\nd" }] }))),
        ("a control character in a field", one(&json!({ "url": "{{URL}}", "header": [{ "key": "a", "value": "c\u{1}" }] }))),
        ("set by a script", json!({
            "item": [{ "name": "log in", "event": [{ "listen": "test", "script": { "exec": "pm.environment.set('token', 1)" } }],
                "request": "localhost/{{token}}" }] }).to_string()),
        ("a circle", json!({
            "variable": [{ "key": "a", "value": "{{b}}" }, { "key": "b", "value": "x{{a}}" }],
            "item": [{ "name": "round", "request": "localhost/{{a}}" }] }).to_string()),
        ("a HAR of numbers", "{\"log\":{\"entries\":[\n{\"request\":{\"method\":1,\"url\":\"http://a/\"}}]}}".into()),
    ];
    let mut reported = String::new();
    for (name, text) in cases {
        let error = read_text(&text, &[]).expect_err(name);
        writeln!(reported, "{name}:\n    {error}").unwrap();
    }
    insta::assert_snapshot!(reported);
}

#[test]
fn values_that_multiply_end_in_an_error_and_not_in_memory() {
    let variables: Vec<Value> = (0..18)
        .map(|n| json!({ "key": format!("v{n}"), "value": format!("{{{{v{}}}}}", n + 1).repeat(40) }))
        .chain([json!({ "key": "v18", "value": "x" })])
        .collect();
    let text = json!({ "variable": variables, "item": [{ "name": "bomb", "request": "localhost/{{v0}}" }] });
    let error = read_text(&text.to_string(), &[]).unwrap_err();
    assert!(error.contains("grow to more than 256 MiB"), "{error}");
}

#[test]
fn values_of_the_command_line_win_over_the_environment_and_that_over_the_collection() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.json");
    let environment = folder.path().join("e.json");
    std::fs::write(
        &path,
        json!({
            "variable": [
                { "key": "A", "value": "collection" }, { "key": "B", "value": "collection" },
                { "key": "C", "value": "collection" }, { "key": "C", "value": "off", "disabled": true },
                { "id": "D", "value": 7 },
            ],
            "item": [{ "name": "all", "request": "localhost/{{A}}/{{B}}/{{C}}/{{D}}" }],
        })
        .to_string(),
    )
    .unwrap();
    std::fs::write(
        &environment,
        json!({ "values": [
        { "key": "A", "value": "environment", "enabled": true }, { "key": "B", "value": "environment" },
        { "key": "C", "value": "off", "enabled": false },
    ] })
        .to_string(),
    )
    .unwrap();
    let options = ReadOptions { environment: Some(environment.clone()), ..given(&[("A", "typed")]) };
    let collection = read(&path, &options).unwrap();
    assert_eq!(collection.requests[0].url.path, "/typed/environment/collection/7");
    // Without a name of its own it has the file's.
    assert_eq!(collection.name, "c");

    std::fs::write(&environment, "{}").unwrap();
    let error = read(&path, &options).unwrap_err().to_string();
    assert!(
        error.starts_with(&environment.display().to_string()) && error.contains("no Postman environment"),
        "{error}"
    );
    let error = read(Path::new("/nowhere.json"), &options).unwrap_err().to_string();
    assert_eq!(
        error,
        "/nowhere.json: it cannot be read: no such file or directory. Is its name spelled right?"
    );
}

#[test]
fn what_is_expected_comes_from_tests_then_from_saved_answers_then_from_the_folders() {
    let test = |source: &str| json!([{ "listen": "test", "script": { "exec": [source] } }]);
    let text = collection_of(&json!([
        { "name": "nothing said", "request": "{{URL}}/" },
        { "name": "a test", "request": "{{URL}}/", "event": test("pm.response.to.have.status(404);"),
          "response": [{ "code": 200 }] },
        { "name": "a saved answer", "request": "{{URL}}/", "response": [{ "code": 201 }, { "code": 400 }] },
        { "name": "one of two", "request": "{{URL}}/", "event": test("pm.expect(pm.response.code).to.be.oneOf([200,204])") },
        { "name": "a disabled test", "request": "{{URL}}/",
          "event": [{ "listen": "test", "disabled": true, "script": { "exec": ["pm.response.to.have.status(500)"] } }] },
        { "name": "folder", "event": test("pm.response.to.have.status(418)"), "item": [
            { "name": "as the folder", "request": "{{URL}}/" },
            { "name": "own", "request": "{{URL}}/", "event": test("pm.response.to.have.status(202); setTimeout(f, 1)") },
        ] },
    ]));
    let collection = read_text(&text, &[]).unwrap();
    let expected: Vec<_> =
        collection.requests.iter().map(|request| (request.name.as_str(), request.expect.clone())).collect();
    let exactly = |statuses: &[u16]| Expect::Exactly(statuses.to_vec());
    assert_eq!(
        expected,
        [
            ("nothing said", Expect::Success),
            ("a test", exactly(&[404])),
            ("a saved answer", exactly(&[201])),
            ("one of two", exactly(&[200, 204])),
            ("a disabled test", Expect::Success),
            ("folder / as the folder", exactly(&[418])),
            ("folder / own", exactly(&[202])),
        ]
    );
    insta::assert_snapshot!(collection.notes.join("\n"));
}

#[test]
fn what_is_not_done_is_noted() {
    let text = collection_of(&json!([
        { "name": "signed", "request": { "url": "{{URL}}", "auth": { "type": "awsv4", "awsv4": [] } } },
        { "name": "upload", "request": { "url": "{{URL}}", "method": "POST",
          "body": { "mode": "formdata", "formdata": [{ "key": "f", "type": "file", "src": "gone.png" }, { "key": "t", "value": "x" }] } } },
        { "name": "chosen", "request": { "url": "{{URL}}", "method": "POST", "body": { "mode": "file", "file": {} } } },
        { "name": "device", "request": { "url": "{{URL}}", "method": "POST", "body": { "mode": "file", "file": { "src": "/dev/zero" } } } },
        { "name": "scripted", "request": "{{URL}}", "event": [{ "listen": "prerequest", "script": { "exec": ["pm.sendRequest('x')"] } }] },
        { "name": "one by one", "request": { "url": { "host": "{{URL}}", "path": [":id"], "variable": [] } } },
    ]));
    insta::assert_snapshot!(read_text(&text, &[]).unwrap().notes.join("\n"));
}

#[test]
fn a_list_has_urls_methods_comments_and_variables() {
    let text = "\u{feff}# all pages\r\nhttp://localhost:1/a#top\n\n  DELETE localhost:1/b   # gone\n:1/c\nhttp://{{HOST}}/d\n";
    let collection = read_text(text, &[("HOST", "example.com")]).unwrap();
    let lines: Vec<_> =
        collection.requests.iter().map(|request| format!("{} {}", request.method, request.url)).collect();
    assert_eq!(
        lines,
        [
            "GET http://localhost:1/a",
            "DELETE http://localhost:1/b",
            "GET http://localhost:1/c",
            "GET http://example.com/d"
        ]
    );
    assert_eq!(collection.name, "a.json");
}

#[test]
fn a_recording_is_asked_again_without_what_belonged_to_its_connection() {
    let entry = |request: Value, status: u16| json!({ "request": request, "response": { "status": status } });
    let pair = |name: &str, value: &str| json!({ "name": name, "value": value });
    let text = json!({ "log": { "version": "1.2", "pages": [{ "title": "Front page" }], "entries": [
        entry(json!({ "method": "GET", "url": "http://localhost:1/a b?q=\u{fc}#x", "headers": [
            pair(":authority", "localhost:1"), pair(":path", "/"), pair("Host", "other"), pair("accept", "*/*"),
            pair("cookie", "a=1"), pair("Cookie", "b=2"), pair("Connection", "keep-alive"), pair("Content-Length", "9"),
        ] }), 200),
        entry(json!({ "method": "POST", "url": "http://localhost:1/json", "postData": { "mimeType": "application/json", "text": "{\"a\":1}" } }), 201),
        entry(json!({ "method": "POST", "url": "http://localhost:1/form", "postData": { "mimeType": "application/x-www-form-urlencoded",
            "params": [pair("a b", "1&2"), { "name": "c" }] } }), 302),
        entry(json!({ "method": "POST", "url": "http://localhost:1/parts", "postData": { "mimeType": "multipart/form-data; boundary=x",
            "params": [pair("a", "1")] } }), 200),
        entry(json!({ "method": "GET", "url": "http://localhost:1/cached", "bodySize": -1 }), 304),
        entry(json!({ "method": "GET", "url": "http://localhost:1/never" }), 0),
        entry(json!({ "method": "GET", "url": "https://fonts.example/x" }), 200),
        entry(json!({ "method": "GET", "url": "ws://localhost:1/socket" }), 101),
        entry(json!({ "method": "GET", "url": "data:image/png;base64,AA" }), 200),
    ] } });
    let collection = read_text(&text.to_string(), &[]).unwrap();
    let mut reported = format!("{}\n", collection.name);
    for request in &collection.requests {
        let body = request.body.as_deref().map(String::from_utf8_lossy);
        writeln!(
            reported,
            "{} {} {:?} {:?} {:?}",
            request.method, request.url, request.fields, body, request.expect
        )
        .unwrap();
    }
    reported.push_str(&collection.notes.join("\n"));
    insta::assert_snapshot!(reported);
}

/// Answers requests without bodies over any number of connections, with what this makes of their paths.
fn server(response: impl Fn(&str) -> String + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let response = std::sync::Arc::new(response);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let response = std::sync::Arc::clone(&response);
            std::thread::spawn(move || {
                let mut held = Vec::new();
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = stream.read(&mut bytes) {
                    held.extend_from_slice(&bytes[..count]);
                    while let Some(end) = held.windows(4).position(|window| window == b"\r\n\r\n") {
                        let head: Vec<u8> = held.drain(..end + 4).collect();
                        let head = String::from_utf8_lossy(&head).into_owned();
                        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                        let text = response(&path);
                        stream.write_all(text.as_bytes()).unwrap();
                        if text.ends_with("BREAK") {
                            return;
                        }
                    }
                }
            });
        }
    });
    address
}

fn run_list(
    paths: &[&str],
    address: SocketAddr,
    iterations: u64,
    observer: &mut dyn Observer,
) -> CollectionRun {
    let text: String = paths.iter().map(|path| format!("http://{address}{path}\n")).collect();
    let mut collection = read_text(&text, &[]).unwrap();
    reach(&mut collection, &tls::Client::default(), Duration::from_secs(5)).unwrap();
    run(&collection, iterations, Timeouts::default(), observer)
}

#[test]
fn a_run_tells_each_kind_of_failure_with_its_count() {
    let address = server(|path| match path {
        "/moved" => "HTTP/1.1 301 Moved\r\nLocation: /\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nBREAK".to_owned(),
        "/login" => "HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nContent-Length: 0\r\n\r\n".to_owned(),
        _ => "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n".to_owned(),
    });
    let run = run_list(&["/moved", "/cut", "/login", "/broken"], address, 3, &mut Unobserved);
    let mut reported = String::new();
    for figures in &run.requests {
        let path = figures.line.rsplit('/').next().unwrap();
        let counts = (figures.passed, figures.failed, figures.latency.count());
        writeln!(reported, "{path}: {counts:?} {:?}", figures.complaints).unwrap();
    }
    reported.push_str(&run.caveats.join("\n"));
    insta::assert_snapshot!(reported);
    assert_eq!((run.iterations, run.latency.count(), run.is_interrupted), (3, 3, false));
}

#[test]
fn a_server_that_is_gone_ends_the_run() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut collection = read_text(&format!("http://{address}/\n"), &[]).unwrap();
    reach(&mut collection, &tls::Client::default(), Duration::from_secs(5)).unwrap();
    drop(listener);
    let run = run(&collection, 1_000_000, Timeouts::default(), &mut Unobserved);
    assert_eq!((run.requests[0].failed, run.is_interrupted), (limits::HOPELESS_FAILURES, true));
    assert!(run.caveats[0].contains("no connection"), "{:?}", run.caveats);
    let error =
        reach(&mut collection, &tls::Client::default(), Duration::from_secs(5)).unwrap_err().to_string();
    assert!(error.contains(&address.to_string()), "{error}");
}

/// Breaks off when it is told of progress.
#[derive(Default)]
struct Impatient(bool);

impl Observer for Impatient {
    fn progress(&mut self, _: &Progress) {
        self.0 = true;
    }

    fn is_interrupted(&self) -> bool {
        self.0
    }
}

#[test]
fn a_run_that_is_broken_off_tells_what_it_saw_and_that_it_was() {
    let address = server(|_| "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned());
    let run = run_list(&["/"], address, u64::MAX, &mut Impatient::default());
    assert!(run.is_interrupted && run.iterations > 0);
    assert_eq!((run.requests[0].passed, run.requests[0].failed), (run.iterations, 0));
}

#[test]
fn made_up_values_differ_in_each_iteration_and_at_each_place() {
    let (sender, paths) = std::sync::mpsc::channel();
    let address = server(move |path| {
        sender.send(path.to_owned()).unwrap();
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned()
    });
    let text = json!({
        "variable": [{ "key": "ID", "value": "{{$guid}}" }, { "key": "URL", "value": format!("http://{address}") }],
        "item": [{ "name": "new", "request": "{{URL}}/{{ID}}/{{$guid}}?at={{$timestamp}}&n={{$randomInt}}" }],
    });
    let mut collection = read_text(&text.to_string(), &[]).unwrap();
    reach(&mut collection, &tls::Client::default(), Duration::from_secs(5)).unwrap();
    run(&collection, 20, Timeouts::default(), &mut Unobserved);
    let mut seen = std::collections::BTreeSet::new();
    for path in paths.try_iter() {
        let (ids, query) = path.split_once('?').unwrap();
        for id in ids.split('/').skip(1) {
            // RFC 9562 section 5.4.
            assert!(id.len() == 36 && id.get(14..15) == Some("4") && id.matches('-').count() == 4, "{id}");
            assert!("89ab".contains(id.get(19..20).unwrap()), "{id}");
            assert!(seen.insert(id.to_owned()), "{id} came twice");
        }
        let numbers: Vec<u64> =
            query.split('&').map(|pair| pair.split('=').nth(1).unwrap().parse().unwrap()).collect();
        assert!(numbers[0] > 1_700_000_000 && numbers[1] <= 1000, "{query}");
    }
    assert_eq!(seen.len(), 40);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", wrapped in "[\\PC\\n]{0,60}") {
        let _ = read_text(&text, &[]);
        let _ = read_text(&one(&json!(wrapped)), &[]);
        let body = json!({ "mode": "raw", "raw": wrapped, "options": { "raw": { "language": "json" } } });
        let _ = read_text(&one(&json!({ "method": "POST", "url": "{{URL}}", "body": body, "header": wrapped })), &[]);
        let event = json!([{ "listen": "test", "script": { "exec": wrapped } }]);
        let _ = read_text(&collection_of(&json!([{ "name": wrapped, "request": "{{URL}}", "event": event }])), &[]);
    }

    #[test]
    fn a_value_arrives_as_it_was_given(name in "[A-Za-z][A-Za-z0-9_.-]{0,20}", value in "[^{}]{1,40}") {
        let body = json!({ "mode": "raw", "raw": format!("<{{{{{name}}}}}>") });
        let text = one(&json!({ "method": "POST", "url": "{{URL}}", "body": body }));
        let collection = read_text(&text, &[(&name, &value), ("URL", "localhost")]);
        // A name that is the address's would change where it goes.
        prop_assume!(name != "URL");
        let requests = collection.unwrap().requests;
        prop_assert_eq!(requests[0].body.clone().unwrap(), format!("<{value}>").into_bytes());
    }

    #[test]
    fn a_form_is_read_back_as_it_was(pairs in prop::collection::btree_map(".{0,20}", ".{0,20}", 1..5)) {
        let list: Vec<Value> = pairs.iter().map(|(key, value)| json!({ "key": key, "value": value })).collect();
        let body = json!({ "mode": "urlencoded", "urlencoded": list });
        // Braces are variables; those have a test of their own.
        prop_assume!(!pairs.iter().any(|(key, value)| key.contains('{') || value.contains('{')));
        let requests = read_text(&one(&json!({ "method": "POST", "url": "{{URL}}", "body": body })), &[]).unwrap().requests;
        let sent = String::from_utf8(requests[0].body.clone().unwrap()).unwrap();
        let back: BTreeMap<String, String> = sent
            .split('&')
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(key, value)| (decoded(key), decoded(value)))
            .collect();
        prop_assert_eq!(back, pairs);
    }
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits: Vec<u8> = rest.by_ref().take(2).collect();
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).unwrap()
}
