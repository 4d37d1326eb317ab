//! Those who wait: in which order, for how long, and who makes room.

use super::*;

#[test]
fn as_many_are_in_flight_as_may_be_some_wait_and_the_rest_is_refused_at_once() {
    let holding = Holding::start();
    let server = serve(&holding, "limit in_flight 2 queue 1 wait 20s\napp APP");
    let mut clients = vec![ask(&server, "/1"), ask(&server, "/2")];
    wait_until(&server, 2, 0);
    clients.push(ask(&server, "/3"));
    wait_until(&server, 2, 1);
    let mut refused_one = server.connect();
    let answer = refused_one.get("/4");
    assert_eq!((answer.status, answer.field("Retry-After")), (503, Some("1")));
    assert_eq!(refused(&server, "queue_full"), (1, 1));
    holding.let_go(4);
    for (number, client) in clients.iter_mut().enumerate() {
        assert_eq!(client.answer().text(), format!("/{}", number + 1));
    }
    // The connection of the one that was refused was kept.
    assert_eq!(refused_one.get("/5").text(), "/5");
    wait_until(&server, 0, 0);
    assert_eq!(limit(&server).let_in, 4);
    assert_eq!(server.metric("onehop_limit_let_in_total{limit=\"http://localhost:0\"}"), 4);
    assert_eq!(
        server.metric("onehop_limit_shed_total{limit=\"http://localhost:0\",cause=\"queue_full\"}"),
        1
    );
    assert_eq!(server.metric("onehop_limit_bound"), 2);
}

#[test]
fn without_a_queue_nobody_waits() {
    let (holding, server, mut first) = busy("limit in_flight 1 shed 529\napp APP");
    let answer = server.connect().get("/2");
    assert_eq!((answer.status, answer.field("Retry-After")), (529, Some("1")));
    assert_eq!(refused(&server, "in_flight"), (1, 1));
    holding.let_go(1);
    assert_eq!(first.answer().text(), "/1");
}

#[test]
fn who_waits_for_too_long_is_refused() {
    let (_holding, server, _first) = busy("limit in_flight 1 queue 4 wait 50ms\napp APP");
    let begun = Instant::now();
    assert_eq!(server.connect().get("/2").status, 503);
    assert!(begun.elapsed() >= Duration::from_millis(50), "{:?}", begun.elapsed());
    assert_eq!(refused(&server, "wait"), (1, 1));
    wait_until(&server, 1, 0);
}

#[test]
fn a_waiting_client_that_goes_away_leaves_the_queue() {
    let (holding, server, mut first) = busy("limit in_flight 1 queue 1 wait 20s\napp APP");
    let second = ask(&server, "/2");
    wait_until(&server, 1, 1);
    second.reset();
    wait_until(&server, 1, 0);
    let mut third = ask(&server, "/3");
    wait_until(&server, 1, 1);
    holding.let_go(2);
    assert_eq!(first.answer().text(), "/1");
    assert_eq!(third.answer().text(), "/3");
    assert_eq!(holding.paths(), ["/1", "/3"]);
}

#[test]
fn of_a_full_queue_one_whose_client_has_half_closed_makes_room() {
    let (holding, server, mut first) = busy("limit in_flight 1 queue 2 wait 20s\napp APP");
    let mut half = ask(&server, "/half");
    wait_until(&server, 1, 1);
    half.finish_sending();
    let mut third = ask(&server, "/3");
    wait_until(&server, 1, 2);
    // The end of its sending may be seen later than the next request, which is refused then.
    let mut last = loop {
        let last = ask(&server, "/last");
        if answered_first(&half, &last) == 0 {
            break last;
        }
    };
    assert_eq!(half.answer().status, 503);
    holding.let_go(3);
    for (client, path) in [(&mut first, "/1"), (&mut third, "/3"), (&mut last, "/last")] {
        assert_eq!(client.answer().text(), path);
    }
    assert_eq!(holding.paths(), ["/1", "/3", "/last"]);
}

#[test]
fn a_queue_with_room_keeps_those_whose_clients_have_half_closed() {
    let (holding, server, mut first) = busy("limit in_flight 1 queue 2 wait 20s\napp APP");
    let mut half = ask(&server, "/half");
    wait_until(&server, 1, 1);
    half.finish_sending();
    holding.let_go(2);
    assert_eq!((first.answer().text(), half.answer().text()), ("/1".to_owned(), "/half".to_owned()));
}

/// Which of two clients has its answer first.
fn answered_first(one: &Client, other: &Client) -> usize {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut polled = [one, other].map(|client| PollFd::new(&client.stream, PollFlags::IN));
    poll(&mut polled, None).unwrap();
    polled.iter().position(|polled| !polled.revents().is_empty()).unwrap()
}

#[test]
fn a_queue_full_of_departed_clients_is_an_empty_one() {
    let (holding, server, mut first) = busy("limit in_flight 1 queue 200 wait 20s\napp APP");
    let waiting: Vec<_> = (0..200).map(|_| ask(&server, "/gone")).collect();
    wait_until(&server, 1, 200);
    assert_eq!(server.connect().get("/refused").status, 503);
    waiting.into_iter().for_each(Client::reset);
    wait_until(&server, 1, 0);
    let mut last = ask(&server, "/last");
    wait_until(&server, 1, 1);
    holding.let_go(2);
    assert_eq!((first.answer().text(), last.answer().text()), ("/1".to_owned(), "/last".to_owned()));
    wait_until(&server, 0, 0);
    assert_eq!(holding.paths(), ["/1", "/last"], "nobody was asked for those who had gone");
}

#[test]
fn a_high_priority_goes_first_and_takes_the_place_of_a_lower_one() {
    let holding = Holding::start();
    let server = serve(
        &holding,
        "limit in_flight 1 queue 2 wait 20s\nlimit /high/* priority high\nlimit /low/* priority low\napp APP",
    );
    let mut first = ask(&server, "/first");
    wait_until(&server, 1, 0);
    let mut low = ask(&server, "/low/1");
    wait_until(&server, 1, 1);
    let mut normal = ask(&server, "/normal");
    wait_until(&server, 1, 2);
    // A low one has nobody to outrank.
    assert_eq!(server.connect().get("/low/2").status, 503);
    let mut high = ask(&server, "/high/1");
    assert_eq!(low.answer().status, 503);
    wait_until(&server, 1, 2);
    assert_eq!((refused(&server, "queue_full"), refused(&server, "outranked")), ((1, 1), (1, 1)));
    holding.let_go(3);
    for client in [&mut first, &mut high, &mut normal] {
        assert_eq!(client.answer().status, 200);
    }
    assert_eq!(holding.paths(), ["/first", "/high/1", "/normal"]);
}

#[test]
fn a_refusal_reads_no_body() {
    let (_holding, server, _first) = busy("limit in_flight 1\napp APP");
    // It is small enough that others would wait for it, and does not come.
    let mut client = server.connect();
    client.send("POST /2 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\nbegun");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("Connection")), (503, Some("close")));
    // One that is not asked for its body sends none.
    let mut client = server.connect();
    client.send("POST /3 HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n");
    assert_eq!(client.answer().status, 503);
    // One whose body is there keeps its connection.
    let mut client = server.connect();
    client.send("POST /4 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbody");
    let answer = client.answer();
    assert_eq!((answer.status, answer.field("Connection")), (503, None));
    assert_eq!(client.get("/5").status, 503);
}

#[test]
fn who_waited_sends_its_body_as_any_other() {
    let program = Program::start(|talk, head| {
        let body = talk.body(head).unwrap_or_default();
        talk.answer(body)
    });
    let server = serve_with("", &program, "limit in_flight 1 queue 4 wait 20s\napp APP");
    let mut clients: Vec<_> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\nbo");
    }
    for client in &mut clients {
        client.send("dy");
    }
    for client in &mut clients {
        assert_eq!(client.answer().text(), "body");
    }
    wait_until(&server, 0, 0);
    assert_eq!(limit(&server).let_in, 4);
}
