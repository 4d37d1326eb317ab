//! What `file_server` treats as absent: `hide`, and names that begin with a dot.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::glob;

/// Whether a path below a root is hidden. A pattern without a slash hides every file and folder of that
/// name at any depth below the root; one with a slash is absolute and hides what it matches and all
/// below it.
pub(super) fn is_hidden(root: &Path, path: &[u8], patterns: &[String]) -> bool {
    if patterns.is_empty() {
        return false;
    }
    let mut absolute: Option<Vec<u8>> = None;
    patterns.iter().any(|pattern| {
        let pattern = pattern.as_bytes();
        if !pattern.contains(&b'/') {
            return path.split(|b| *b == b'/').any(|name| glob::matches(pattern, name));
        }
        let absolute = absolute.get_or_insert_with(|| {
            let root = root.as_os_str().as_bytes();
            let root = root.strip_suffix(b"/").unwrap_or(root);
            if path.is_empty() { root.to_vec() } else { [root, b"/", path].concat() }
        });
        let below = absolute.strip_prefix(pattern).is_some_and(|rest| rest.starts_with(b"/"));
        below || glob::matches(pattern, absolute)
    })
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
