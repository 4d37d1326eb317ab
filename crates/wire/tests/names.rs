//! The table of interned names: the page and the code agree, and every spelling is told apart.

use onehop_wire::{Interned, NAMES};

const PAGE: &str = include_str!("../../../docs/worker-protocol.md");

fn all() -> impl Iterator<Item = Interned> {
    (0x80..=0xff).filter_map(Interned::from_byte)
}

#[test]
fn the_protocols_page_lists_the_same_names_in_the_same_order() {
    let list = PAGE.split_once("Numbers of names, from 0: ").unwrap().1.split_once(".\n").unwrap().0;
    let page: Vec<&str> = list.split(',').map(str::trim).collect();
    let table: Vec<&str> =
        all().take(NAMES).map(|interned| std::str::from_utf8(interned.name()).unwrap()).collect();
    assert_eq!(page, table);
}

#[test]
fn both_spellings_of_every_name_are_found_and_no_other() {
    for interned in all() {
        let (name, lower) = (interned.name(), interned.lower_name());
        assert_eq!(Interned::of(interned.spelling()), Some(interned));
        assert_eq!(lower, name.to_ascii_lowercase());
        assert_eq!(interned.spelling(), if interned.is_lower() { lower } else { name });
        assert_eq!(interned.line_start(), [interned.spelling(), b": "].concat());
        assert_eq!(interned.byte() & 0x3f, interned.number());
        assert!(interned.lower().is(interned));
        assert_eq!(interned.lower().spelling(), lower);
        let upper = name.to_ascii_uppercase();
        assert_eq!(Interned::of(&upper), None);
        assert!(Interned::is_known_in_any_case(&upper));
    }
    assert_eq!(Interned::CONTENT_TYPE.name(), b"Content-Type");
    assert_eq!(Interned::X_REQUESTED_WITH.byte(), 0xbf);
    assert_eq!(Interned::from_byte(0x7f), None);
}

#[test]
fn names_that_are_nearly_in_the_table_are_not() {
    for interned in all() {
        let name = interned.spelling();
        for at in 0..name.len() {
            for byte in 0..=u8::MAX {
                let mut other = name.to_vec();
                other[at] = byte;
                let same = other.eq_ignore_ascii_case(name);
                assert_eq!(Interned::is_known_in_any_case(&other), same, "{}", other.escape_ascii());
                assert_eq!(Interned::of(&other) == Some(interned), other == name);
            }
        }
        for other in [[name, b"s"].concat(), [name, b":"].concat(), [name, b": "].concat()] {
            assert!(!Interned::is_known_in_any_case(&other), "{}", other.escape_ascii());
        }
    }
    for other in [&b""[..], b"X", b"TE", b":", b"Connection", &[b'a'; 300]] {
        assert!(!Interned::is_known_in_any_case(other));
    }
}
