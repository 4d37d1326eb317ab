//! Clients that take their time on an upstream that does not.

use std::sync::Arc;
use std::time::{Duration, Instant};

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, Folder, wait_at_most};

use crate::subject::{Subject, raise_descriptor_limit, scaled};

const ANSWER_BYTES: usize = 1024 * 1024;

/// What a proxy may hold for one slow client, beside the kernel's own buffers: a piece of the answer on its way, not
/// the answer.
const HELD_BYTES_MAX: u64 = 160 * 1024;

#[test]
fn a_thousand_slow_clients_do_not_hold_a_thousand_answers_in_memory() {
    raise_descriptor_limit();
    let count = scaled("ONEHOP_PROXY_SLOW_CLIENTS", 1_000);
    let answer = Arc::new({
        let mut answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {ANSWER_BYTES}\r\n\r\n").into_bytes();
        answer.resize(answer.len() + ANSWER_BYTES, b'x');
        answer
    });
    // Unix sockets: what the kernel holds of each direction is bounded by 208 KiB. On loopback it takes whole answers
    // of this length for TCP, and the proxy nothing.
    let folder = Folder::new();
    let upstream = Upstream::start_unix(&folder.join("upstream.sock"), move |connection| {
        while connection.request().is_some() {
            if !connection.send(answer.as_slice()) {
                return;
            }
        }
    });
    let directive = format!("\treverse_proxy unix/{}", upstream.address());
    let listening = folder.join("site.sock");
    let subject = Subject::start(&format!(
        "{directive}\n}}\nhttp://slow.example {{\n\tbind unix/{}\n{directive}",
        listening.display()
    ));
    assert_eq!(subject.get("/").0.body.len(), ANSWER_BYTES);
    let before = subject.resident_bytes();

    let mut clients: Vec<Client> = (0..count).map(|_| Client::connect_unix(&listening)).collect();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: slow.example\r\n\r\n");
    }
    let wanted = usize::try_from(count).expect("a number") + 1;
    let timeout = Duration::from_secs(60);
    wait_at_most(timeout, "all requests at the upstream", || (upstream.requests() >= wanted).then_some(()));
    // Memory is settled when it has not grown for a while.
    let mut highest = subject.resident_bytes();
    let mut since = Instant::now();
    wait_at_most(timeout, "memory that grows no more", || {
        let now = subject.resident_bytes();
        if now > highest {
            (highest, since) = (now, Instant::now());
        }
        (since.elapsed() > Duration::from_millis(500)).then_some(())
    });
    let each = highest.saturating_sub(before) / count;
    println!("{count} slow clients: {} KiB each, {} MiB in all", each / 1024, highest / (1024 * 1024));
    assert!(each < HELD_BYTES_MAX, "{each} bytes for each of {count} clients");

    // They are slow, not dead: each gets its whole answer in the end.
    let (answer, took) = subject.get("/");
    assert_eq!(answer.body.len(), ANSWER_BYTES);
    assert!(took < Duration::from_secs(10), "others wait for the slow ones: {took:?}");
    for client in clients.iter_mut().take(50) {
        assert_eq!(client.read().body.len(), ANSWER_BYTES);
    }
    drop(clients);
    let end = "all connections to be closed";
    wait_at_most(timeout, end, || (upstream.open() <= 65).then_some(()));
    subject.expect_no_fault();
}
