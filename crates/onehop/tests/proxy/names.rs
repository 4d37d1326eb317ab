//! Upstreams that are named: what happens when the name's addresses change.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use onehop_testkit::upstream::{Names, Upstream};
use onehop_testkit::wait_for;

use crate::subject::{SOON, Subject};

const FIRST: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const SECOND: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

fn saying(address: &str, text: &'static str) -> Upstream {
    Upstream::answering_at(address, move |_| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len()).into()
    })
}

fn proxy(names: &Names, port: u16, options: &str) -> Subject {
    Subject::start(&format!(
        "\treverse_proxy app.example:{port} {{\n{options}\n\t\ttransport http {{\n\t\t\tresolvers {}\n\t\t\tdial_timeout 2s\n\t\t}}\n\t}}",
        names.address()
    ))
}

fn text(subject: &Subject) -> String {
    let (answer, took) = subject.get("/");
    assert_eq!(answer.status, 200, "{}", answer.head);
    assert!(took < SOON, "{took:?}");
    answer.text().to_owned()
}

#[test]
fn a_name_whose_address_changes_leads_to_the_new_one_without_a_failed_request() {
    let first = saying("127.0.0.2:0", "first");
    let second = saying(&format!("127.0.0.3:{}", first.port()), "second");
    let names = Names::start(&[FIRST], 1);
    let subject = proxy(&names, first.port(), "");
    assert_eq!(text(&subject), "first");
    names.set(Some(&[SECOND]));
    if !subject.is_onehop() {
        return;
    }
    wait_for("the new address to be used", || (text(&subject) == "second").then_some(()));
    // Connections to the old address are used up, and nothing goes there any more.
    wait_for("ten in a row", || (0..10).all(|_| text(&subject) == "second").then_some(()));
    let before = first.requests();
    assert_eq!(text(&subject), "second");
    assert_eq!(first.requests(), before);
    assert!(second.requests() > 10);
    subject.expect_no_fault();
}

#[test]
fn a_name_that_is_gone_keeps_its_last_address() {
    let upstream = saying("127.0.0.2:0", "first");
    let names = Names::start(&[FIRST], 1);
    let subject = proxy(&names, upstream.port(), "");
    assert_eq!(text(&subject), "first");
    names.set(None);
    if !subject.is_onehop() {
        return;
    }
    let asked = names.asked();
    wait_for("the name to be asked for again", || (names.asked() > asked + 1).then_some(()));
    for _ in 0..5 {
        assert_eq!(text(&subject), "first");
    }
}

#[test]
fn a_name_that_is_not_there_is_502_and_comes_alive_with_its_address() {
    let upstream = saying("127.0.0.2:0", "first");
    let names = Names::start(&[], 1);
    names.set(None);
    let subject = proxy(&names, upstream.port(), "");
    let (answer, took) = subject.get("/");
    assert!([502, 504].contains(&answer.status), "{}", answer.status);
    assert!(took < SOON, "{took:?}");
    if subject.is_onehop() {
        wait_for("the cause in the metrics", || {
            (subject.refused("upstream_unreachable") + subject.refused("upstream_dial_timeout") == 1)
                .then_some(())
        });
    }
    names.set(Some(&[FIRST]));
    let begun = Instant::now();
    wait_for("the address to be found", || (subject.get("/").0.status == 200).then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn of_two_addresses_the_one_that_is_dead_is_passed_over() {
    let upstream = saying("127.0.0.3:0", "alive");
    let names = Names::start(&[FIRST, SECOND], 1);
    let subject = proxy(&names, upstream.port(), "");
    for _ in 0..10 {
        assert_eq!(text(&subject), "alive");
    }
    subject.expect_no_fault();
}
