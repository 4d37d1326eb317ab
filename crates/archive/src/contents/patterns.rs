//! Patterns of paths that go into a pack or stay out: `*` any text within a name, `?` one character, `**` any folders.
//!
//! The crate globset is not used: its `?` is one byte and not one character (it compiles to `(?-u)[^/]`), and none of
//! its options changes that. Names are compared by [`onehop_config::name_fits`], as in `import`.

use std::cell::Cell;

use onehop_config::name_fits;

use super::error::ContentsError;

/// Patterns that one command may have: each is tried on each file.
const PATTERNS_MAX: usize = 1000;

/// Patterns of paths below the base.
#[derive(Debug, Default)]
pub struct Patterns {
    patterns: Vec<Pattern>,
}

#[derive(Debug)]
struct Pattern {
    written: String,
    names: Vec<String>,
    was_met: Cell<bool>,
}

impl Patterns {
    /// Patterns as they were typed.
    ///
    /// # Errors
    ///
    /// There are too many, or one does not begin at the base.
    pub fn new(written: &[String]) -> Result<Self, ContentsError> {
        if written.len() > PATTERNS_MAX {
            return Err(ContentsError::TooManyPatterns { max: PATTERNS_MAX });
        }
        let mut patterns = Vec::new();
        for written in written {
            let path = written.strip_prefix("./").unwrap_or(written).trim_end_matches('/');
            let names: Vec<String> = path.split('/').map(str::to_owned).collect();
            if names.iter().any(|name| name.is_empty() || name == "..") {
                return Err(ContentsError::Pattern(written.clone()));
            }
            patterns.push(Pattern { written: written.clone(), names, was_met: Cell::new(false) });
        }
        Ok(Self { patterns })
    }

    /// Whether this path below the base, or a folder that it lies in, fits.
    pub fn holds(&self, path: &str) -> bool {
        let names: Vec<&str> = path.split('/').collect();
        let mut holds = false;
        for pattern in &self.patterns {
            if fits(&pattern.names, &names) {
                pattern.was_met.set(true);
                holds = true;
            }
        }
        holds
    }

    /// Whether a pattern may fit something in this folder.
    pub(super) fn reaches_below(&self, folder: &str) -> bool {
        let names: Vec<&str> = folder.split('/').collect();
        self.patterns.iter().any(|pattern| {
            // What follows a fitting beginning is for what lies deeper.
            let beginnings = (1..=pattern.names.len()).filter_map(|count| pattern.names.get(..count));
            beginnings.into_iter().any(|names_of_pattern| fits(names_of_pattern, &names))
        })
    }

    /// Patterns that nothing fitted.
    pub fn unmet(&self) -> impl Iterator<Item = &str> {
        self.patterns.iter().filter(|pattern| !pattern.was_met.get()).map(|pattern| pattern.written.as_str())
    }
}

/// Whether a pattern fits the path or a folder above it.
fn fits(pattern: &[String], path: &[&str]) -> bool {
    // Places in the pattern at which the rest of the path may begin.
    let mut places = vec![false; pattern.len() + 1];
    if let Some(first) = places.first_mut() {
        *first = true;
    }
    for name in path {
        skip_folders(pattern, &mut places);
        let mut next = vec![false; places.len()];
        for (at, pattern) in pattern.iter().enumerate() {
            if !places.get(at).copied().unwrap_or_default() {
                continue;
            }
            let to = match pattern.as_str() {
                "**" => at,
                pattern if name_fits(pattern, name) => at + 1,
                _ => continue,
            };
            if let Some(place) = next.get_mut(to) {
                *place = true;
            }
        }
        places = next;
        if places.last().copied().unwrap_or_default() {
            return true;
        }
    }
    skip_folders(pattern, &mut places);
    places.last().copied().unwrap_or_default()
}

/// `**` stands for no folder, too.
fn skip_folders(pattern: &[String], places: &mut [bool]) {
    for (at, name) in pattern.iter().enumerate() {
        if name == "**"
            && places.get(at).copied().unwrap_or_default()
            && let Some(next) = places.get_mut(at + 1)
        {
            *next = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_begin_at_the_base_and_take_what_lies_below_with_them() {
        for (pattern, path, expected) in [
            (".env", ".env", true),
            (".env", "api/.env", false),
            ("**/.env", ".env", true),
            ("**/.env", "a/b/.env", true),
            ("dist", "dist/assets/a.js", true),
            ("./dist/", "dist/assets/a.js", true),
            ("dist", "distant", false),
            ("dist/*.map", "dist/a.map", true),
            ("dist/*.map", "dist/assets/a.map", false),
            ("dist/**/*.map", "dist/a/b/c.map", true),
            ("dist/**/*.map", "dist/c.map", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("**", "anything/at/all", true),
            ("a/**", "b/c", false),
        ] {
            let excluded = Patterns::new(&[pattern.to_owned()]).expect("sound");
            assert_eq!(excluded.holds(path), expected, "{pattern} against {path}");
            assert_eq!(excluded.unmet().count(), usize::from(!expected));
        }
        for (pattern, folder, expected) in [
            ("data/notes.db", "data", true),
            ("data/notes.db", "other", false),
            ("**/*.db", "a/b", true),
            ("data/*/x", "data/a", true),
            ("data", "data/a", true),
            ("notes.db", "data", false),
        ] {
            let included = Patterns::new(&[pattern.to_owned()]).expect("sound");
            assert_eq!(included.reaches_below(folder), expected, "{pattern} below {folder}");
        }
        for wrong in ["/etc", "../x", ""] {
            assert!(Patterns::new(&[wrong.to_owned()]).is_err(), "{wrong:?}");
        }
    }
}
