//! The links of a `Link` field (RFC 8288 section 3).

/// One link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link<'f> {
    /// The URL as written, which may be relative.
    pub target: &'f [u8],
    parameters: &'f [u8],
}

/// The links of a field's value, in order. One that is not written as the grammar has it ends the list.
pub fn links(mut value: &[u8]) -> impl Iterator<Item = Link<'_>> {
    std::iter::from_fn(move || {
        let is_between = |byte: &u8| matches!(byte, b' ' | b'\t' | b',');
        let begin = value.iter().position(|byte| !is_between(byte))?;
        let rest = value.get(begin..)?.strip_prefix(b"<")?;
        let end = memchr::memchr(b'>', rest)?;
        let (target, rest) = (rest.get(..end)?, rest.get(end + 1..)?);
        let (parameters, rest) = until(rest, b',')?;
        value = rest;
        Some(Link { target, parameters })
    })
}

impl<'f> Link<'f> {
    /// Name and value of each parameter, the value as written, in quotes or not; empty where there is none.
    pub fn parameters(self) -> impl Iterator<Item = (&'f [u8], &'f [u8])> {
        let mut rest = self.parameters;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let (parameter, others) = until(rest, b';')?;
            rest = others;
            let equals = memchr::memchr(b'=', parameter);
            let (name, value) = match equals {
                Some(at) => (parameter.get(..at)?, parameter.get(at + 1..)?),
                None => (parameter, &[][..]),
            };
            Some((name.trim_ascii(), value.trim_ascii()))
        })
        .filter(|(name, _)| !name.is_empty())
    }

    /// Whether it has this relation type. Of several `rel` the first counts (section 3.3).
    pub fn has_relation(self, relation: &str) -> bool {
        let rel = self.parameters().find(|(name, _)| name.eq_ignore_ascii_case(b"rel"));
        let types = rel.map(|(_, value)| value).unwrap_or_default();
        let types = types.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")).unwrap_or(types);
        types.split(|byte| *byte == b' ').any(|word| word.eq_ignore_ascii_case(relation.as_bytes()))
    }
}

/// What stands before a delimiter that is in no quoted string (RFC 9110 section 5.6.4), and what stands behind it; `None` where
/// one is never closed.
fn until(text: &[u8], delimiter: u8) -> Option<(&[u8], &[u8])> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = text.iter().position(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if is_quoted => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            byte => return !is_quoted && *byte == delimiter,
        }
        false
    });
    match end {
        Some(end) => Some((&text[..end], &text[end + 1..])),
        None => (!is_quoted).then_some((text, &[])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each link as target and parameters.
    fn read(value: &str) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let line = |link: Link<'_>| {
            let parameters =
                link.parameters().map(|(name, value)| format!(" {}={}", text(name), text(value)));
            format!("{}{}", text(link.target), parameters.collect::<String>())
        };
        links(value.as_bytes()).map(line).collect()
    }

    #[test]
    fn links_are_apart_and_so_are_their_parameters() {
        for (value, expected) in [
            ("</a.css>; rel=preload; as=style", &["/a.css rel=preload as=style"][..]),
            (
                "</a>;rel=\"preload\" , <b?c,d;e>;rel=x;crossorigin",
                &["/a rel=\"preload\"", "b?c,d;e rel=x crossorigin="],
            ),
            (
                "</a>; title=\"x, <y>; \\\", z\"; rel=preload, </b>",
                &["/a title=\"x, <y>; \\\", z\" rel=preload", "/b"],
            ),
            (" ,, </a> ; ; rel = preload ;", &["/a rel=preload"]),
            ("</a>, oops, </b>", &["/a"]),
            ("</a", &[]),
            ("</a>, </b>; title=\"never closed, </c>", &["/a"]),
            ("", &[]),
        ] {
            assert_eq!(read(value), expected, "{value}");
        }
    }

    #[test]
    fn the_first_rel_says_what_a_link_is() {
        let is_preload = |value: &str| links(value.as_bytes()).any(|link| link.has_relation("preload"));
        for value in ["<a>; rel=preload", "<a>; REL=PreLoad", "<a>; as=x; rel=\"next preload\""] {
            assert!(is_preload(value), "{value}");
        }
        for value in ["<a>", "<a>; rel=preloads", "<a>; rel=next; rel=preload", "<a>; as=preload", "<a>; rel"]
        {
            assert!(!is_preload(value), "{value}");
        }
    }
}
