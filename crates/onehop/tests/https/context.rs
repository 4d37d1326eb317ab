//! What handlers learn of an encrypted connection. One of them needs Node.js.

use onehop_testkit::Folder;
use onehop_testkit::upstream::Upstream;

use crate::subject::Subject;

fn site(directives: &str) -> String {
    format!("https://localhost:0 {{\n\tbind 127.0.0.1\n{directives}\n}}\n")
}

#[test]
fn placeholders_and_upstreams_learn_that_the_scheme_is_https() {
    let upstream = Upstream::answering(|_| b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_vec());
    let proxy = format!("\thandle /proxied {{\n\t\treverse_proxy {}\n\t}}", upstream.address());
    let subject = Subject::start(&site(&format!("\trespond /scheme \"{{scheme}}\"\n{proxy}")));
    let mut client = subject.connect();
    assert_eq!(client.get("/scheme").text(), "https");
    assert_eq!(client.get("/proxied").text(), "ok");
    // A client that nobody trusts cannot say otherwise.
    assert_eq!(client.ask("GET", "/proxied", "X-Forwarded-Proto: http\r\n").text(), "ok");
    for seen in upstream.seen() {
        assert_eq!(seen.all("X-Forwarded-Proto"), ["https"], "{}", seen.head);
    }
}

#[test]
fn a_handler_sees_an_https_url() {
    let folder = Folder::with(&[(
        "server.mjs",
        "export default { fetch: (request) => new Response(request.url) };\n",
    )]);
    let subject = Subject::start_in(folder, "", &site("\tapp ./server.mjs"));
    subject.onehop.process.wait_for_event("app_ready");
    let url = subject.connect().get("/a?b=c").text().to_owned();
    assert!(url.starts_with("https://localhost") && url.ends_with("/a?b=c"), "{url}");
}
