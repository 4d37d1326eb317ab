//! What a reload does to those who are being served: nothing.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use onehop_testkit::upstream::Upstream;
use onehop_testkit::{Client, wait_at_most, wait_for};

use crate::streams::{expect_echo, tunnel, tunnels};
use crate::subject::{Subject, raise_descriptor_limit, scaled};

#[test]
fn a_thousand_tunnels_survive_a_reload() {
    raise_descriptor_limit();
    let count = usize::try_from(scaled("ONEHOP_PROXY_TUNNELS", 1_000)).expect("a number");
    let upstream = Upstream::start(tunnels);
    let directive = format!("\treverse_proxy {}", upstream.address());
    let subject = Subject::onehop("\tthreads 2", &directive);
    let mut clients: Vec<Client> = (0..count).map(|_| tunnel(&subject)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        // A masked text frame of four bytes, as browsers send them (RFC 6455 section 5.2); nobody looks into it.
        expect_echo(client, &format!("before-{number}"));
    }
    for round in 0..3 {
        subject.reload("\tthreads 2", &format!("\theader X-Round {round}\n{directive}"));
        assert_eq!(subject.get("/").0.field("X-Round"), Some(round.to_string().as_str()));
    }
    for (number, client) in clients.iter_mut().enumerate() {
        expect_echo(client, &format!("after-{number}"));
    }
    // Their route is gone, and still they are open.
    subject.reload("\tthreads 2", "\trespond gone");
    assert_eq!(subject.get("/").0.text(), "gone");
    for (number, client) in clients.iter_mut().enumerate() {
        expect_echo(client, &format!("still-{number}"));
    }
    drop(clients);
    let end = "all tunnels to be closed";
    wait_at_most(Duration::from_secs(60), end, || (upstream.used_and_open() == 0).then_some(()));
}

#[test]
fn stream_close_delay_bounds_tunnels_whose_route_is_gone() {
    let upstream = Upstream::start(tunnels);
    let directive = format!("\treverse_proxy {} {{\n\t\tstream_close_delay 500ms\n\t}}", upstream.address());
    let subject = Subject::onehop("", &directive);
    let mut client = tunnel(&subject);
    subject.reload("", "\trespond gone");
    expect_echo(&mut client, "still here");
    client.read_to_end();
    wait_for("the tunnel's end at the upstream", || (upstream.used_and_open() == 0).then_some(()));
}

#[test]
fn no_request_fails_over_twenty_reloads() {
    let reloads = scaled("ONEHOP_PROXY_RELOADS", 20);
    let upstream = Upstream::answering(|request| {
        let body = request.target();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into()
    });
    let other = Upstream::answering(|request| {
        let body = request.target();
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into()
    });
    let directive = format!("\treverse_proxy {}", upstream.address());
    let both = format!("\treverse_proxy {} {}", upstream.address(), other.address());
    let subject = Subject::onehop("\tthreads 2", &directive);
    let is_over = AtomicBool::new(false);
    let answered = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (address, is_over, answered) = (subject.address.as_str(), &is_over, &answered);
            scope.spawn(move || {
                let mut client = Client::connect(address);
                let mut round = 0;
                while !is_over.load(Ordering::SeqCst) {
                    round += 1;
                    let path = format!("/{number}/{round}");
                    let answer = match round % 50 {
                        // Some come over a connection of their own.
                        0 => Client::connect(address).get(&path),
                        _ => client.get(&path),
                    };
                    assert_eq!((answer.status, answer.text()), (200, path.as_str()));
                    answered.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        // A panic here must not leave the others running for ever.
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for round in 0..reloads {
                let before = answered.load(Ordering::SeqCst);
                subject.reload("\tthreads 2", if round % 2 == 0 { &both } else { &directive });
                wait_for("some answers", || (answered.load(Ordering::SeqCst) > before + 50).then_some(()));
            }
        }));
        is_over.store(true, Ordering::SeqCst);
        if let Err(panic) = ended {
            std::panic::resume_unwind(panic);
        }
    });
    println!("{} requests over {reloads} reloads", answered.load(Ordering::SeqCst));
    subject.expect_no_fault();
}
