//! The encodings that requests of a collection need: URLs and forms.

/// A URL's path and query with what may not stand there percent-encoded, as Postman does it: the rest, `%` too,
/// stays as it is. A backslash in the path is a slash, as in browsers.
pub(super) fn url(text: &str) -> String {
    let (text, fragment) = match text.find('#') {
        Some(at) => text.split_at(at),
        None => (text, ""),
    };
    let query = text.find('?').unwrap_or(text.len());
    let mut out = String::with_capacity(text.len());
    for (at, letter) in text.char_indices() {
        let is_unsafe = if at < query { " \"<>`{}" } else { " \"'<>" };
        if letter == '\\' && at < query {
            out.push('/');
        } else if letter.is_ascii_graphic() && !is_unsafe.contains(letter) {
            out.push(letter);
        } else {
            percent(letter, &mut out);
        }
    }
    out.push_str(fragment);
    out
}

/// A name or a value of a form (`application/x-www-form-urlencoded`), a space as `%20`.
pub(super) fn form(text: &str, out: &mut String) {
    for letter in text.chars() {
        if letter.is_ascii_alphanumeric() || "-_.~".contains(letter) {
            out.push(letter);
        } else {
            percent(letter, out);
        }
    }
}

fn percent(letter: char, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    for byte in letter.encode_utf8(&mut [0; 4]).bytes() {
        out.push('%');
        for digit in [byte >> 4, byte & 15] {
            out.push(DIGITS.get(usize::from(digit)).copied().map_or('0', char::from));
        }
    }
}
