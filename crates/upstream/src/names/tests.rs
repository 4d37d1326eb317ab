//! A small server of names on loopback, and what is made of its answers.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::*;
use crate::peer::PeerSettings;

/// A server that knows a few names, each with its address and the seconds for which that counts.
struct Server {
    address: SocketAddr,
    known: Arc<Mutex<HashMap<String, (Ipv4Addr, u32)>>>,
    asked: Arc<AtomicUsize>,
    is_silent: Arc<AtomicBool>,
}

impl Server {
    fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let known: Arc<Mutex<HashMap<String, (Ipv4Addr, u32)>>> = Arc::default();
        let (asked, is_silent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let server = Self {
            address,
            known: Arc::clone(&known),
            asked: Arc::clone(&asked),
            is_silent: Arc::clone(&is_silent),
        };
        // Ends with the test's process.
        std::thread::spawn(move || {
            let mut question = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut question) {
                if is_silent.load(Ordering::SeqCst) {
                    continue;
                }
                if let Some(answer) = answer(&question[..length], &known.lock().unwrap(), &asked) {
                    socket.send_to(&answer, from).unwrap();
                }
            }
        });
        server
    }

    fn set(&self, name: &str, address: [u8; 4], seconds: u32) {
        self.known.lock().unwrap().insert(name.to_owned(), (address.into(), seconds));
    }
}

/// RFC 1035 section 4.1: the header, the question as it was asked, and at most one record.
fn answer(question: &[u8], known: &HashMap<String, (Ipv4Addr, u32)>, asked: &AtomicUsize) -> Option<Vec<u8>> {
    let mut labels = Vec::new();
    let mut at = 12;
    while let Some(length @ 1..) = question.get(at).copied().map(usize::from) {
        labels.push(String::from_utf8(question.get(at + 1..at + 1 + length)?.to_vec()).ok()?);
        at += 1 + length;
    }
    let end = at + 5;
    let is_four = question.get(at + 1..at + 3)? == [0, 1];
    let found = known.get(&labels.join("."));
    let record = found.filter(|_| is_four);
    if is_four {
        asked.fetch_add(1, Ordering::SeqCst);
    }
    let status = if found.is_some() { 0x80 } else { 0x83 };
    let mut answer = question.get(..2)?.to_vec();
    answer.extend([0x81, status, 0, 1, 0, u8::from(record.is_some()), 0, 0, 0, 0]);
    answer.extend(question.get(12..end)?);
    if let Some((address, seconds)) = record {
        answer.extend([0xc0, 12, 0, 1, 0, 1]);
        answer.extend(seconds.to_be_bytes());
        answer.extend([0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}

fn peer(name: &str) -> Arc<Peer> {
    let settings = PeerSettings {
        dial_timeout: Duration::from_secs(1),
        idle_timeout: Duration::from_secs(1),
        idle_max: 1,
        ..PeerSettings::default()
    };
    Peer::new(name.to_owned(), Endpoint::Name(name.to_owned(), 80), settings)
}

#[track_caller]
fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn leads_to(peer: &Peer, address: &str) -> bool {
    *peer.addresses() == [address.parse::<SocketAddr>().unwrap()]
}

#[test]
fn a_name_is_resolved_again_when_its_answer_has_run_out() {
    let server = Server::start();
    server.set("a.test", [127, 0, 0, 1], 1);
    let (names, peer) = (Names::default(), peer("a.test"));
    names.follow(&peer, &[server.address]);
    wait_until("resolved", || leads_to(&peer, "127.0.0.1:80"));
    server.set("a.test", [127, 0, 0, 2], 1);
    wait_until("resolved again", || leads_to(&peer, "127.0.0.2:80"));
}

#[test]
fn an_answer_without_addresses_and_a_silent_server_change_nothing() {
    let server = Server::start();
    server.set("a.test", [127, 0, 0, 1], 0);
    let (names, peer) = (Names::default(), peer("a.test"));
    names.follow(&peer, &[server.address]);
    wait_until("resolved", || leads_to(&peer, "127.0.0.1:80"));
    server.known.lock().unwrap().clear();
    let asked = server.asked.load(Ordering::SeqCst);
    wait_until("asked again", || server.asked.load(Ordering::SeqCst) >= asked + 2);
    assert!(leads_to(&peer, "127.0.0.1:80"));
    server.is_silent.store(true, Ordering::SeqCst);
    server.set("a.test", [127, 0, 0, 3], 1);
    assert!(leads_to(&peer, "127.0.0.1:80"));
    server.is_silent.store(false, Ordering::SeqCst);
    wait_until("resolved again", || leads_to(&peer, "127.0.0.3:80"));
}

#[test]
fn a_failed_dial_asks_anew_and_no_more_than_once_a_second() {
    let server = Server::start();
    server.set("a.test", [127, 0, 0, 1], 3_600);
    let (names, peer) = (Names::default(), peer("a.test"));
    names.follow(&peer, &[server.address]);
    wait_until("resolved", || leads_to(&peer, "127.0.0.1:80"));
    server.set("a.test", [127, 0, 0, 2], 3_600);
    let begun = Instant::now();
    while !leads_to(&peer, "127.0.0.2:80") {
        assert!(begun.elapsed() < Duration::from_secs(20));
        peer.doubt();
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(server.asked.load(Ordering::SeqCst) as u64 <= 2 + begun.elapsed().as_secs());
}

#[test]
fn a_family_of_which_nothing_is_heard_in_time_keeps_what_is_known_of_it() {
    let question = Question { host: "a.test".to_owned(), port: 80, resolvers: Vec::new() };
    let six: SocketAddr = "[2001:db8::1]:80".parse().unwrap();
    let known = [six, "10.0.0.1:80".parse().unwrap()];
    let four = || Some(Family::There(vec![[10, 0, 0, 2].into()], Duration::from_secs(60)));
    let put = |known: &[SocketAddr], six| put_together(&question, known, six, four()).unwrap();
    let newer: SocketAddr = "10.0.0.2:80".parse().unwrap();
    for (known, answer, expected, time) in [
        (&known[..], None, vec![six, newer], NAME_TTL_MIN),
        (&known[..], Some(Family::Failed("late".to_owned())), vec![six, newer], NAME_TTL_MIN * 2),
        (&known[..], Some(Family::None), vec![newer], Duration::from_secs(60)),
        (&[], None, vec![newer], NAME_TTL_MIN),
    ] {
        assert_eq!(put(known, answer), (expected, time));
    }
}

#[test]
fn a_name_that_leads_nowhere_says_so() {
    let server = Server::start();
    let (names, peer) = (Names::default(), peer("nobody.test"));
    names.follow(&peer, &[server.address]);
    wait_until("reported", || peer.resolution_failure().is_some());
    assert_eq!(peer.resolution_failure().unwrap().as_ref(), "nobody.test has no addresses");
    server.set("nobody.test", [127, 0, 0, 1], 1);
    wait_until("there after all", || leads_to(&peer, "127.0.0.1:80"));
}

#[test]
fn the_machine_itself_and_plain_addresses_need_no_question() {
    let rows: [(&str, &[&str]); 4] = [
        ("localhost", &["[::1]:80", "127.0.0.1:80"]),
        ("App.LocalHost.", &["[::1]:80", "127.0.0.1:80"]),
        ("192.0.2.1", &["192.0.2.1:80"]),
        ("2001:db8::1", &["[2001:db8::1]:80"]),
    ];
    for (name, addresses) in rows {
        let (names, peer) = (Names::default(), peer(name));
        names.follow(&peer, &[]);
        let addresses: Vec<SocketAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(*peer.addresses(), addresses[..], "{name}");
    }
    assert_eq!(without_asking("localhost.example", 80), None);
}
