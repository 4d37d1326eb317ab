//! Stand-in until the files handler's own tables are there.

pub(super) fn content_type(path: &[u8]) -> Box<str> {
    let path = String::from_utf8_lossy(path);
    let guess = mime_guess::from_path(&*path).first_or_octet_stream();
    let text = guess.type_() == "text" || guess.subtype() == "javascript" || guess.subtype() == "json";
    if text { format!("{guess}; charset=utf-8").into() } else { guess.to_string().into() }
}

pub(super) fn is_compressible(content_type: &str) -> bool {
    content_type.starts_with("text/")
        || content_type.starts_with("image/svg")
        || content_type.starts_with("application/json")
        || content_type.starts_with("application/wasm")
        || content_type.starts_with("application/javascript")
}

pub(super) fn is_hashed_name(_path: &[u8]) -> bool {
    false
}
