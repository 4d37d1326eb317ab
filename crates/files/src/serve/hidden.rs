//! What `file_server` treats as absent: `hide`, and names that begin with a dot.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use onehop_message::glob;

/// Whether a path below a root is hidden. A pattern without a slash hides every file and folder of that
/// name at any depth below the root; one with a slash is absolute and hides what it matches and all
/// below it.
pub(crate) fn is_hidden(root: &Path, path: &[u8], patterns: &[String]) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let root = root.as_os_str().as_bytes();
    let root = root.strip_suffix(b"/").unwrap_or(root);
    patterns.iter().any(|pattern| {
        let pattern = pattern.as_bytes();
        if !pattern.contains(&b'/') {
            path.split(|b| *b == b'/').any(|name| glob::matches(pattern, name))
        } else {
            is_at_or_below(root, path, pattern) || (is_glob(pattern) && matches_absolute(root, path, pattern))
        }
    })
}

/// Whether `root/path` is this absolute path or lies below it. Compared in two pieces: the file of the
/// configuration is hidden in every site, so this runs for nearly every request.
fn is_at_or_below(root: &[u8], path: &[u8], pattern: &[u8]) -> bool {
    match pattern.strip_prefix(root) {
        Some([]) => true,
        Some([b'/', hidden @ ..]) => is_below(path, hidden),
        _ => is_below(root, pattern),
    }
}

fn is_below(path: &[u8], folder: &[u8]) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

fn is_glob(pattern: &[u8]) -> bool {
    memchr::memchr3(b'*', b'?', b'[', pattern).is_some() || memchr::memchr(b'\\', pattern).is_some()
}

fn matches_absolute(root: &[u8], path: &[u8], pattern: &[u8]) -> bool {
    if path.is_empty() {
        return glob::matches(pattern, root);
    }
    glob::matches(pattern, &[root, b"/", path].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_hide_as_they_do_in_caddy() {
        for (pattern, path, hidden) in [
            ("bar", "bar", true),
            ("bar", "foo/bar/baz", true),
            ("bar", "barstool", false),
            ("*.txt", "a/b.txt", true),
            ("*.txt", "a.txt/b", true),
            ("*.txt", "a.txtx", false),
            ("?.js", "a.js", true),
            ("[ab].js", "b.js", true),
            ("srv", "index.html", false),
            ("/srv/www/secret", "secret", true),
            ("/srv/www/secret", "secret/a/b", true),
            ("/srv/www/secret", "secrets", false),
            ("/srv/www/*.txt", "a.txt", true),
            ("/srv/www/*.txt", "a/b.txt", false),
            ("/srv/*/private", "private", true),
            ("/srv/www", "anything", true),
            ("/srv/www", "", true),
            ("/srv", "anything", true),
            ("/sr", "anything", false),
            ("/srv/www/a", "", false),
            ("/srv/wwww", "", false),
            ("/other/secret", "secret", false),
            ("/srv/www/[s]ecret", "secret", true),
        ] {
            let patterns = [pattern.to_owned()];
            assert_eq!(
                is_hidden(Path::new("/srv/www"), path.as_bytes(), &patterns),
                hidden,
                "{pattern} {path}"
            );
        }
    }
}
