//! `onehop bench --http2`, the real program, against servers of Node.js.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use onehop_testkit::{Finished, Folder, Program};
use serde_json::Value;

/// Over HTTP/2 `/` is answered with a page, `/large` with 8 MiB, `/reset` with RST_STREAM, `/count` with the bytes of the
/// request. A second argument `http1` has it speak HTTP/1.1 only.
const SERVER: &str = r"
const http2 = require('node:http2'), http = require('node:http'), https = require('node:https'), fs = require('node:fs');
const [scheme, version, folder] = process.argv.slice(2);
const pem = scheme === 'https' ? { key: fs.readFileSync(folder + '/key.pem'), cert: fs.readFileSync(folder + '/own.pem') } : {};
// Node resets streams of a connection that holds more than 10 MB.
const settings = { maxConcurrentStreams: 10 }, maxSessionMemory = 100;
const large = Buffer.alloc(8 * 1024 * 1024, 'a');
const server = version === 'http1'
  ? (scheme === 'https' ? https : http).createServer(pem, (_, response) => response.end('hello'))
  : scheme === 'https' ? http2.createSecureServer({ ...pem, settings, maxSessionMemory }) : http2.createServer({ settings, maxSessionMemory });
server.on('stream', (stream, headers) => {
  stream.on('error', () => {});
  const path = headers[':path'];
  if (path === '/reset') return stream.close(http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
  if (path === '/large') { stream.respond({ ':status': 200, 'content-length': large.length }); return stream.end(large); }
  if (path === '/count') {
    let count = 0;
    stream.on('data', (piece) => { count += piece.length; });
    return stream.on('end', () => { stream.respond({ ':status': count === 1000000 ? 200 : 500 }); stream.end(); });
  }
  stream.respond({ ':status': 200, 'content-type': 'text/html' });
  stream.end('hello');
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
";

/// A server of Node.js that ends with its test.
struct Node {
    process: Child,
    folder: Folder,
    url: String,
}

impl Node {
    fn start(scheme: &str, version: &str) -> Node {
        let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let folder = Folder::new();
        folder.write("own.pem", own.cert.pem());
        folder.write("key.pem", own.signing_key.serialize_pem());
        folder.write("server.cjs", SERVER);
        let mut process = Command::new("node")
            .arg(folder.join("server.cjs"))
            .args([scheme, version])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let url = format!("{scheme}://localhost:{}", port.trim());
        Node { process, folder, url }
    }

    fn bench(&self, arguments: &[&str]) -> Finished {
        let certificate = self.folder.join("own.pem");
        let always = ["--cacert", certificate.to_str().unwrap(), "--json", "-", "--quiet"];
        Program::new(std::iter::once(&"bench").chain(arguments).chain(&always)).finish()
    }

    /// The only run of a load that went well.
    fn run(&self, arguments: &[&str]) -> Value {
        let finished = self.bench(&[arguments, &["--runs", "1"]].concat());
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{}", finished.stdout);
        json(&finished)["loads"][0]["runs"][0].take()
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}\n{}", finished.stdout, finished.stderr))
}

#[test]
fn answers_over_http_2_count_in_the_clear_and_over_tls() {
    for scheme in ["http", "https"] {
        let node = Node::start(scheme, "http2");
        let run = node.run(&[&node.url, "--http2", "-n", "500", "-c", "2", "--streams", "8"]);
        assert_eq!((&run["total"]["good"], &run["protocol"]), (&500.into(), &"HTTP/2".into()), "{run:#}");
        assert_eq!(run["generator"]["connections_opened"], 2, "{run:#}");
        let streams = &run["http2"];
        assert_eq!((&streams["streams"], &streams["streams_opened"]), (&8.into(), &500.into()), "{run:#}");
        assert_eq!(run["tls"]["full"].as_u64(), (scheme == "https").then_some(2), "{run:#}");
        let run =
            node.run(&[&node.url, "--http2", "-r", "200", "-d", "1s", "--arrivals", "constant", "-c", "1"]);
        assert_eq!((&run["total"]["good"], &run["total"]["requests"]), (&200.into(), &200.into()), "{run:#}");
    }
}

#[test]
fn large_bodies_come_and_go_whole() {
    let node = Node::start("https", "http2");
    let large = format!("{}/large", node.url);
    let run = node.run(&[&large, "--http2", "-n", "12", "-c", "1", "--streams", "4"]);
    assert_eq!(run["total"]["good"], 12, "{run:#}");
    assert!(run["total"]["bytes_read"].as_u64().unwrap() > 12 * 8 * 1024 * 1024, "{run:#}");
    node.folder.write("body", "b".repeat(1_000_000));
    let (count, body) = (format!("{}/count", node.url), format!("@{}", node.folder.join("body").display()));
    let run = node.run(&[&count, "--http2", "-n", "20", "-c", "1", "--streams", "4", "-b", &body]);
    assert_eq!(run["total"]["good"], 20, "{run:#}");
    assert!(run["total"]["bytes_written"].as_u64().unwrap() > 20_000_000, "{run:#}");
}

#[test]
fn what_a_server_allows_and_resets_is_reported() {
    let node = Node::start("http", "http2");
    let run = node.run(&[&node.url, "--http2", "-n", "200", "-c", "1", "--streams", "20"]);
    assert_eq!(
        (&run["total"]["good"], &run["http2"]["streams_allowed"]),
        (&200.into(), &10.into()),
        "{run:#}"
    );
    let caveats = run["caveats"].as_array().unwrap();
    assert!(caveats.iter().any(|caveat| caveat["code"] == "streams_limited"), "{caveats:#?}");
    // Half of them, so that there are good ones too.
    let reset = format!("{}/reset", node.url);
    let run = node.run(&[&node.url, &reset, "--http2", "-n", "40", "-c", "1", "--streams", "2"]);
    let total = &run["total"];
    assert_eq!((&total["good"], &total["faults"]["reset"]), (&20.into(), &20.into()), "{run:#}");
    assert_eq!(run["http2"]["resets"]["ENHANCE_YOUR_CALM"], 20, "{run:#}");
}

#[test]
fn a_server_without_http_2_is_named_before_the_load() {
    for (scheme, part) in [("https", "did not choose HTTP/2"), ("http", "speaks no HTTP/2")] {
        let node = Node::start(scheme, "http1");
        let finished = node.bench(&[&node.url, "--http2"]);
        assert_eq!((finished.code, finished.stdout.as_str()), (Some(1), ""), "{}", finished.stderr);
        for part in ["no HTTP/2 with", part, "leave --http2 out"] {
            assert!(finished.stderr.contains(part), "{scheme}: {}", finished.stderr);
        }
    }
}

#[test]
fn servers_are_compared_and_other_tools_are_understood() {
    let node = Node::start("http", "http2");
    let arguments = ["--rounds", "1", "-d", "200ms", "--warm-up", "100ms", "-c", "1", "--streams", "4"];
    let servers = [format!("one={}", node.url), format!("other={}", node.url)];
    let finished = node.bench(&[&["compare", &servers[0], &servers[1], "--http2"][..], &arguments].concat());
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    for sample in json(&finished)["comparison"]["samples"].as_array().unwrap() {
        let run = &sample["run"];
        assert_eq!((&run["protocol"], &run["http2"]["streams"]), (&"HTTP/2".into(), &4.into()), "{sample:#}");
        assert!(run["total"]["good"].as_u64().unwrap() > 0, "{sample:#}");
    }
    let run = node.run(&["h2load", "-n", "100", "-c", "2", "-m", "5", &node.url]);
    assert_eq!((&run["total"]["good"], &run["http2"]["streams"]), (&100.into(), &5.into()), "{run:#}");
}

#[test]
fn streams_without_http_2_are_wrong_usage() {
    for arguments in [&["--streams", "4"][..], &["--http2", "--streams", "0"]] {
        let words = ["bench", "127.0.0.1:1"].into_iter().chain(arguments.iter().copied());
        let finished = Program::new(words).finish();
        assert_eq!(finished.code, Some(2), "{arguments:?}: {}", finished.stderr);
    }
}
