//! Text in HTML pages that the server writes itself.

/// Escapes text for HTML, between tags or in a quoted attribute. Control characters, which HTML may not hold, become the
/// replacement character.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            plain => escaped.push(plain),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_ends_no_tag_and_no_attribute() {
        assert_eq!(escape("<a href='x' id=\"y\">&"), "&lt;a href=&#39;x&#39; id=&quot;y&quot;&gt;&amp;");
        assert_eq!(escape("caf\u{e9}\n\u{1b}\u{7f}\u{9b}"), "caf\u{e9}\u{fffd}\u{fffd}\u{fffd}\u{fffd}");
    }
}
