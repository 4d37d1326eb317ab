//! The cookies of a request (RFC 6265 section 5.4).

use onehop_http1::{Known, RequestHead};

/// The values of all cookies of this name, in the order in which the client sends them. A name without `=` has an empty
/// value, as Go reads it.
pub fn values<'h>(head: &'h RequestHead, name: &'h str) -> impl Iterator<Item = &'h [u8]> {
    head.get_all(Known::Cookie).flat_map(move |field| in_field(field, name))
}

fn in_field<'f>(field: &'f [u8], name: &'f str) -> impl Iterator<Item = &'f [u8]> {
    field.split(|byte| *byte == b';').filter_map(move |pair| {
        match pair.trim_ascii().strip_prefix(name.as_bytes())? {
            b"" => Some(b"".as_slice()),
            value => value.strip_prefix(b"="),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cookies_are_found_among_others_and_in_no_other_name() {
        let found = |field: &'static str| -> Vec<&[u8]> { in_field(field.as_bytes(), "w").collect() };
        assert_eq!(found("w=1"), [b"1"]);
        assert_eq!(found("a=w=1; w=2;w=3 ; ww=4; W=5; w"), [b"2".as_slice(), b"3", b""]);
        assert_eq!(found("x w=1"), Vec::<&[u8]>::new());
        assert_eq!(found(""), Vec::<&[u8]>::new());
    }
}
