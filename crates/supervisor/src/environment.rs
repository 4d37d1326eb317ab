//! What a worker sees of the environment: a short list of our own, what the settings pass on, files, and
//! what the settings set, in this order.
//!
//! Owns the rules and the reading of environment files. Never changes the server's own environment.

use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use onehop_config::checked::AppEnvironment;

use crate::limits::ENVIRONMENT_FILE_BYTES_MAX;

/// Name and value, each name once.
pub(crate) type Variables = Vec<(OsString, OsString)>;

/// The environment of a worker; `own` is ours. An error is for a person.
pub(crate) fn of_worker(
    settings: &AppEnvironment,
    own: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<Variables, String> {
    let mut all = Variables::new();
    for (name, value) in own {
        if is_passed_on(&name, &settings.pass) {
            all.push((name, value));
        }
    }
    for path in &settings.files {
        for (name, value) in read_file(path)? {
            set(&mut all, name, value);
        }
    }
    for (name, value) in &settings.set {
        set(&mut all, name, value);
    }
    Ok(all)
}

/// Sets a variable, whether it was there or not.
pub(crate) fn set(all: &mut Variables, name: impl Into<OsString>, value: impl Into<OsString>) {
    let (name, value) = (name.into(), value.into());
    match all.iter_mut().find(|(known, _)| *known == name) {
        Some((_, place)) => *place = value,
        None => all.push((name, value)),
    }
}

/// The value of a variable.
pub(crate) fn get<'a>(all: &'a Variables, name: &str) -> Option<&'a OsStr> {
    all.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
}

/// Lets programs of this folder be found before others of the same name.
pub(crate) fn put_in_front_of_path(all: &mut Variables, folder: &Path) -> Result<(), String> {
    let before = get(all, "PATH").map(OsStr::to_owned).unwrap_or_default();
    let others = std::env::split_paths(&before).filter(|path| !path.as_os_str().is_empty());
    let path = std::env::join_paths(std::iter::once(folder.to_path_buf()).chain(others));
    let path = path.map_err(|_| format!("{} cannot stand in PATH, for its colon", folder.display()))?;
    set(all, "PATH", path);
    Ok(())
}

/// What every program may expect to find, and nothing that could hold a secret.
const PASSED_ON: [&str; 9] = ["PATH", "HOME", "LANG", "LC_*", "TZ", "TMPDIR", "USER", "LOGNAME", "SHELL"];

fn is_passed_on(name: &OsStr, pass: &[String]) -> bool {
    let fits = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => name.as_bytes().starts_with(start.as_bytes()),
        None => name == pattern,
    };
    PASSED_ON.iter().any(|pattern| fits(pattern)) || pass.iter().any(|pattern| fits(pattern))
}

fn read_file(path: &Path) -> Result<Vec<(String, String)>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = std::fs::File::open(path).map_err(|error| failed(&error))?;
    let mut text = String::new();
    file.take(ENVIRONMENT_FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(|error| failed(&error))?;
    if text.len() as u64 > ENVIRONMENT_FILE_BYTES_MAX {
        return Err(failed(&"an environment file has at most 1 MiB"));
    }
    parse(&text).map_err(|(line, reason)| format!("{}:{line}: {reason}", path.display()))
}

/// Names and values, or the line of a mistake and what it is.
fn parse(text: &str) -> Result<Vec<(String, String)>, (usize, &'static str)> {
    let mut all = Vec::new();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let failed = |reason| (number + 1, reason);
        let line = line.strip_prefix("export ").unwrap_or(line).trim_start();
        let (name, value) = line.split_once('=').ok_or_else(|| failed("write NAME=value"))?;
        let name = name.trim_end();
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte));
        if name.is_empty() || !is_name {
            return Err(failed("a name has letters, digits and underscores only"));
        }
        if value.contains('\0') {
            return Err(failed("a value cannot hold a NUL byte"));
        }
        all.push((name.to_owned(), parse_value(value.trim_start()).map_err(failed)?));
    }
    Ok(all)
}

fn parse_value(text: &str) -> Result<String, &'static str> {
    let Some(quote) = text.chars().next().filter(|first| matches!(first, '"' | '\'')) else {
        // As in a shell, a comment begins at a `#` that nothing but white space precedes.
        let end = text.find(" #").or_else(|| text.find("\t#")).unwrap_or(text.len());
        let value = text.get(..end).unwrap_or(text).trim_end();
        return Ok(if value.starts_with('#') { String::new() } else { value.to_owned() });
    };
    let mut value = String::new();
    let mut rest = text.chars();
    rest.next();
    loop {
        match rest.next().ok_or("a quote that is opened and not closed on this line")? {
            end if end == quote => break,
            '\\' if quote == '"' => match rest.next() {
                Some('n') => value.push('\n'),
                Some('r') => value.push('\r'),
                Some('t') => value.push('\t'),
                Some(other @ ('"' | '\\' | '$')) => value.push(other),
                Some(other) => value.extend(['\\', other]),
                None => return Err("a quote that is opened and not closed on this line"),
            },
            other => value.push(other),
        }
    }
    let rest = rest.as_str().trim();
    if rest.is_empty() || rest.starts_with('#') {
        Ok(value)
    } else {
        Err("something follows the closing quote")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> Variables {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    }

    #[test]
    fn nothing_of_our_own_environment_passes_that_was_not_allowed() {
        let own = [
            ("PATH", "/bin"),
            ("LC_ALL", "C"),
            ("SECRET", "1"),
            ("AWS_KEY", "2"),
            ("DB_HOST", "3"),
            ("ONEHOP_CONTROL", "4"),
            ("NODE_OPTIONS", "5"),
            ("PATHOLOGY", "6"),
        ];
        let settings = AppEnvironment { pass: vec!["DB_*".into()], ..AppEnvironment::default() };
        let seen = of_worker(&settings, variables(&own)).expect("sound");
        assert_eq!(seen, variables(&[("PATH", "/bin"), ("LC_ALL", "C"), ("DB_HOST", "3")]));
    }

    #[test]
    fn what_is_set_wins_over_files_and_later_files_over_earlier_ones() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("written");
            path
        };
        let settings = AppEnvironment {
            files: vec![file("a", "A=1\nB=1\nC=1\n"), file("b", "B=2\nC=2\n")],
            set: vec![("C".into(), "3".into())],
            pass: vec![],
        };
        let seen = of_worker(&settings, variables(&[("PATH", "/bin")])).expect("sound");
        assert_eq!(seen, variables(&[("PATH", "/bin"), ("A", "1"), ("B", "2"), ("C", "3")]));
    }

    #[test]
    fn programs_of_a_pack_are_found_before_those_of_the_machine() {
        for (before, expected) in
            [(Some("/bin:/usr/bin"), "/pack/bin:/bin:/usr/bin"), (Some(""), "/pack/bin"), (None, "/pack/bin")]
        {
            let mut all: Variables = before.map(|path| ("PATH".into(), path.into())).into_iter().collect();
            put_in_front_of_path(&mut all, Path::new("/pack/bin")).expect("no colon");
            assert_eq!(get(&all, "PATH"), Some(OsStr::new(expected)));
        }
    }

    #[test]
    fn an_environment_file_is_read_as_people_write_it() {
        for (line, expected) in [
            ("A=1", "1"),
            ("export A=1", "1"),
            ("  A = 1  ", "1"),
            ("A=", ""),
            ("A=a b", "a b"),
            ("A=a # why", "a"),
            ("A=a#b", "a#b"),
            ("A=#b", ""),
            ("A='a # $b \\n'", "a # $b \\n"),
            ("A=\"a\\nb \\\"c\\\"\" # why", "a\nb \"c\""),
            ("A=postgres://u:p=w@h/d?x=y", "postgres://u:p=w@h/d?x=y"),
        ] {
            assert_eq!(parse(line), Ok(vec![("A".to_owned(), expected.to_owned())]), "{line}");
        }
        assert_eq!(parse("# nothing\n\n"), Ok(vec![]));
    }

    #[test]
    fn a_mistake_in_an_environment_file_names_its_line() {
        for (text, line) in
            [("A=1\nnothing\n", 2), ("A='open\n", 1), ("\n\nA B=1", 3), ("A=\"x\" y", 1), ("=1", 1)]
        {
            assert_eq!(parse(text).expect_err(text).0, line, "{text}");
        }
        let settings = AppEnvironment { files: vec!["/nowhere/.env".into()], ..AppEnvironment::default() };
        let error = of_worker(&settings, []).expect_err("missing");
        assert!(error.starts_with("/nowhere/.env: "), "{error}");
    }
}
