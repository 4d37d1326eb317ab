//! `basic_auth`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::harness::{TestServer, Wishes, application};

/// The least work that bcrypt allows.
const COST: u32 = 4;

fn hash(password: &str, cost: u32) -> String {
    bcrypt::hash(password, cost).expect("a hash")
}

fn server(accounts: &str) -> TestServer {
    let text = format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\thandle /admin/* {{\n\t\tbasic_auth bcrypt \"the \\\"inner\\\" part\" {{\n\t\t\t{accounts}\n\t\t}}\n\
         \t\trespond \"hello {{http.auth.user.id}}\"\n\t}}\n\trespond open\n\thandle_errors 401 {{\n\t\trespond \"who are you?\"\n\t}}\n}}\n"
    );
    TestServer::start(application(), &text, Wishes::default())
}

fn ask(server: &TestServer, path: &str, fields: &str) -> (u16, String, Option<String>) {
    let mut client = server.connect();
    client.send(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n"));
    let answer = client.answer();
    (answer.status, answer.text(), answer.field("www-authenticate").map(str::to_owned))
}

fn basic(credentials: &str) -> String {
    format!("Authorization: Basic {}\r\n", BASE64_STANDARD.encode(credentials))
}

#[test]
fn only_who_knows_the_password_of_a_user_passes() {
    let accounts = format!("bob {}\n\t\t\tann {}", hash("pass:word", COST), hash("other", COST));
    let server = server(&accounts);
    let challenge = Some("Basic realm=\"the \\\"inner\\\" part\"".to_owned());
    let refused = (401, "who are you?".to_owned(), challenge);
    for _ in 0..2 {
        assert_eq!(ask(&server, "/admin/", &basic("bob:pass:word")), (200, "hello bob".to_owned(), None));
        assert_eq!(ask(&server, "/admin/", &basic("ann:other")), (200, "hello ann".to_owned(), None));
        let lower = basic("ann:other").replace("Basic", "bAsIc  ");
        assert_eq!(ask(&server, "/admin/", &lower).0, 200);
        for fields in [
            String::new(),
            basic("bob:other"),
            basic("ann:pass:word"),
            basic("nobody:other"),
            basic("bob:"),
            basic("bob"),
            basic(":pass:word"),
            "Authorization: Basic !!!\r\n".to_owned(),
            "Authorization: Bearer abc\r\n".to_owned(),
            "Authorization: Basic\r\n".to_owned(),
            basic("bob:pass:word") + &basic("ann:other"),
        ] {
            assert_eq!(ask(&server, "/admin/", &fields), refused, "{fields}");
        }
    }
    for path in ["/%61dmin/", "//admin/", "/x/../admin/", "/ADMIN/"] {
        assert_eq!(ask(&server, path, "").0, 401, "{path} is the same path");
    }
    assert_eq!(ask(&server, "/", "").1, "open");
    assert!(server.metric("onehop_refused_total{cause=\"unauthorized\",status=\"401\"}") > 20);
}

#[test]
fn other_requests_are_answered_while_passwords_are_checked() {
    // Guesses that take a multiple of what the other requests do, however busy the machine is.
    let server = server(&format!("bob {}", hash("slow", 11)));
    std::thread::scope(|scope| {
        let guess = |number: u32| ask(&server, "/admin/", &basic(&format!("bob:{number}"))).0;
        let guesses: Vec<_> = (0..8).map(|number| scope.spawn(move || guess(number))).collect();
        for _ in 0..20 {
            assert_eq!(ask(&server, "/", "").0, 200);
        }
        assert!(guesses.iter().any(|guess| !guess.is_finished()), "nobody waits for passwords of others");
        assert!(guesses.into_iter().all(|guess| guess.join().expect("a thread") == 401));
    });
}
