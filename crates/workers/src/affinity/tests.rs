//! What requests say, byte for byte.

use proptest::prelude::*;

use super::*;

#[test]
fn a_parameter_is_found_where_its_whole_name_stands() {
    for (query, value) in [
        ("sid=abc", Some("abc")),
        ("EIO=4&transport=polling&sid=a-b_C&t=1", Some("a-b_C")),
        ("xsid=1&sid2=2&sid", None),
        ("sid=&sid=b", Some("b")),
        ("", None),
    ] {
        assert_eq!(parameter(query.as_bytes(), "sid"), value.map(str::as_bytes), "{query}");
    }
}

#[test]
fn a_value_is_learned_from_the_beginning_of_an_answer() {
    let learned = |body: &str, value: &str| {
        let sticky = AffinityPolicy::new(&Sticky::Query("sid".into()), "chat");
        sticky.learn(WorkerIndex(1), body.as_bytes(), 2);
        let AffinityPolicy::Query(query) = &sticky else { panic!("another kind") };
        query.affinity(value.as_bytes(), 2) == Affinity::Worker(WorkerIndex(1))
    };
    assert!(learned(
        "0{\"sid\":\"lv_VI97HAXpY6yYWAAAC\",\"upgrades\":[\"websocket\"]}",
        "lv_VI97HAXpY6yYWAAAC"
    ));
    assert!(learned("{\"sid\":\"x\"}", "x"));
    assert!(!learned("{\"xsid\":\"x\"}", "x"));
    assert!(!learned("{\"sid\":\"x", "x"), "cut off");
    assert!(!learned("{\"sid\":\"\"}", ""));
    assert!(!learned("{\"sid\":\"a\\n\"}", "a\\n"));
    assert!(!learned(&format!("{{\"sid\":\"{}\"}}", "x".repeat(STICKY_VALUE_BYTES_MAX + 1)), "x"));
    assert!(!learned(&format!("{}\"sid\":\"x\"", " ".repeat(STICKY_ANSWER_BYTES_MAX)), "x"));
}

#[test]
fn a_cookie_tells_nothing_and_is_of_no_use_to_another_application() {
    let of = |app: &str| {
        let sticky = AffinityPolicy::new(&Sticky::Cookie("w".into()), app);
        [0, 1].map(|index| {
            String::from_utf8(sticky.set_cookie(WorkerIndex(index), index == 1).unwrap()).unwrap()
        })
    };
    let ([first, second], [other, _]) = (of("shop"), of("chat"));
    assert!(first.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{first}");
    assert!(second.ends_with("; SameSite=Lax; Secure"), "{second}");
    assert_ne!(first[..34], second[..34]);
    assert_ne!(first, other);
    assert_eq!(of("shop")[0], first, "the same for the same application");
}

proptest! {
    #[test]
    fn whatever_was_escaped_is_read_again(value: Vec<u8>, other: Vec<u8>) {
        let escaped: String = value.iter().map(|byte| format!("%{byte:02x}")).collect();
        prop_assert_eq!(&*decode_query(escaped.as_bytes()), &value[..]);
        prop_assert!(decode_query(&other).len() <= other.len());
        let query = [&other[..], b"&sid=", escaped.as_bytes(), b"&sid=x"].concat();
        let expected = if value.is_empty() { &b"x"[..] } else { escaped.as_bytes() };
        prop_assume!(parameter(&other, "sid").is_none());
        prop_assert_eq!(parameter(&query, "sid"), Some(expected));
    }

    #[test]
    fn no_bytes_of_an_answer_are_too_odd(body: Vec<u8>, value in "[ -~]{0,20}") {
        let sticky = AffinityPolicy::new(&Sticky::Query("sid".into()), "chat");
        sticky.learn(WorkerIndex(0), &body, 2);
        sticky.learn(WorkerIndex(0), &[&body[..], b"\"sid\":\"", value.as_bytes()].concat(), 2);
    }
}
