//! What requests say, byte for byte.

use proptest::prelude::*;

use super::*;

#[test]
fn cookies_are_found_among_others_and_in_no_other_name() {
    let found = |field: &'static str| -> Vec<&[u8]> { cookie_values(field.as_bytes(), "w").collect() };
    assert_eq!(found("w=1"), [b"1"]);
    assert_eq!(found("a=w=1; w=2;w=3 ; ww=4; W=5; w"), [b"2", b"3"]);
    assert_eq!(found("x w=1"), Vec::<&[u8]>::new());
    assert_eq!(found(""), Vec::<&[u8]>::new());
}

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
    for (escaped, plain) in [
        ("a%2Bb", "a+b"),
        ("a%2", "a%2"),
        ("%", "%"),
        ("%zz%+1", "%zz% 1"),
        ("a+b%20c%2B", "a b c+"),
        ("ab", "ab"),
    ] {
        assert_eq!(&*decoded(escaped.as_bytes()), plain.as_bytes(), "{escaped}");
    }
}

#[test]
fn a_value_is_learned_from_the_beginning_of_an_answer() {
    let learned = |body: &str, value: &str| {
        let sticky = Stickiness::new(&Sticky::Query("sid".into()), "chat");
        sticky.learn(Seat(1), body.as_bytes(), 2);
        let Stickiness::Query(query) = &sticky else { panic!("another kind") };
        query.wish(value.as_bytes(), 2) == Wish::Seat(Seat(1))
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
        let sticky = Stickiness::new(&Sticky::Cookie("w".into()), app);
        [0, 1].map(|seat| String::from_utf8(sticky.set_cookie(Seat(seat), seat == 1).unwrap()).unwrap())
    };
    let ([first, second], [other, _]) = (of("shop"), of("chat"));
    assert!(first.ends_with("; Path=/; HttpOnly; SameSite=Lax"), "{first}");
    assert!(second.ends_with("; SameSite=Lax; Secure"), "{second}");
    assert_ne!(first[..34], second[..34]);
    assert_ne!(first, other);
    assert_eq!(of("shop")[0], first, "the same for the same application");
}

#[test]
fn clients_of_one_network_are_one_client() {
    let same = |one: &str, other: &str| network(one.parse().unwrap()) == network(other.parse().unwrap());
    assert!(same("2001:db8:0:1::1", "2001:db8:0:1:ffff::2"));
    assert!(!same("2001:db8:0:1::1", "2001:db8:0:2::1"));
    assert!(same("::ffff:192.0.2.1", "192.0.2.1"));
    assert!(!same("192.0.2.1", "192.0.2.2"));
}

proptest! {
    #[test]
    fn whatever_was_escaped_is_read_again(value: Vec<u8>, other: Vec<u8>) {
        let escaped: String = value.iter().map(|byte| format!("%{byte:02x}")).collect();
        prop_assert_eq!(&*decoded(escaped.as_bytes()), &value[..]);
        prop_assert!(decoded(&other).len() <= other.len());
        let query = [&other[..], b"&sid=", escaped.as_bytes(), b"&sid=x"].concat();
        let expected = if value.is_empty() { &b"x"[..] } else { escaped.as_bytes() };
        prop_assume!(parameter(&other, "sid").is_none());
        prop_assert_eq!(parameter(&query, "sid"), Some(expected));
    }

    #[test]
    fn no_bytes_of_an_answer_are_too_odd(body: Vec<u8>, value in "[ -~]{0,20}") {
        let sticky = Stickiness::new(&Sticky::Query("sid".into()), "chat");
        sticky.learn(Seat(0), &body, 2);
        sticky.learn(Seat(0), &[&body[..], b"\"sid\":\"", value.as_bytes()].concat(), 2);
        prop_assert_eq!(cookie_values(&body, "w").filter(|value| value.contains(&b';')).count(), 0);
    }
}
