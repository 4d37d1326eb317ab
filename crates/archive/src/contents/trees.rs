//! The trees that sites serve: what of each goes in.
//!
//! How a tree is read and compressed is the server's; it hands its files in. Owns what may be packed of it: only what
//! lies below the base, and no private keys.

use std::path::{Path, PathBuf};

use onehop_config::checked::{Checked, Condition, Matcher, Part, Step, Template};

use super::base::{Base, PathLocation, join};
use super::data::DataRules;
use super::error::ContentsError;
use super::notes::Notes;
use super::patterns::Patterns;
use super::secrets::{self, LOOKED_AT_BYTES_MAX, Secret};

/// A tree as it is served, for [`super::Writing::tree`].
#[derive(Debug)]
pub struct ServedTree<'a> {
    /// Below the base; empty: the base itself.
    pub root: &'a str,
    /// Names that begin with a dot are served.
    pub dotfiles: bool,
    /// Links that leave the root are followed.
    pub follow_outside: bool,
    /// Its files, in any order.
    pub files: Vec<ServedFile<'a>>,
    /// Its folders below the root, in any order.
    pub folders: Vec<Vec<u8>>,
}

/// A file of a tree.
#[derive(Debug)]
pub struct ServedFile<'a> {
    /// Below the root.
    pub path: &'a [u8],
    /// See [`crate::index::Served::hash`].
    pub hash: u128,
    /// Bytes.
    pub length: u64,
    /// Where it lies.
    pub place: PathBuf,
    /// Its bytes, where they are in memory.
    pub identity: Option<&'a [u8]>,
    /// Compressed forms, those that are smaller.
    pub gzip: Option<&'a [u8]>,
    /// See `gzip`.
    pub brotli: Option<&'a [u8]>,
    /// See `gzip`.
    pub zstd: Option<&'a [u8]>,
}

/// Which files of trees go in.
#[derive(Clone, Copy)]
pub struct Choice<'a> {
    /// Left out because they were named.
    pub excluded: &'a Patterns,
    /// Left out because they are data.
    pub rules: &'a DataRules,
}

impl Choice<'_> {
    /// Looks at a served file: notes that it is left out, or that it is a secret.
    pub fn look_at(self, path: &str, length: u64, content: Option<&[u8]>, notes: &mut Notes) {
        if self.excluded.holds(path) {
            return;
        }
        if let Some(reason) = self.rules.reason_served(path) {
            notes.leave_out_data(path, false, reason);
            return;
        }
        let content = content.filter(|_| length <= LOOKED_AT_BYTES_MAX);
        if let Some(kind) = secrets::kind_of(path, content) {
            notes.refuse(Secret { path: path.to_owned(), kind });
        }
    }

    /// Whether a file below a root goes in.
    pub(super) fn takes(self, root: &str, path: &[u8]) -> bool {
        let path = join(root, &String::from_utf8_lossy(path));
        !self.excluded.holds(&path) && self.rules.reason_served(&path).is_none()
    }

    /// Whether a folder below a root goes in.
    pub(super) fn takes_folder(self, root: &str, path: &[u8]) -> bool {
        !path.is_empty() && !self.excluded.holds(&join(root, &String::from_utf8_lossy(path)))
    }
}

/// Refuses a root that depends on the request: it is not known when packing.
///
/// # Errors
///
/// There is one below the base.
pub fn refuse_placeholders(base: &Base, checked: &Checked) -> Result<(), ContentsError> {
    let mut found: Option<String> = None;
    let mut look = |template: &Template| {
        if let (None, Some(Part::Text(first))) = (template.as_text(), template.parts.first())
            && let PathLocation::Within(below) = base.locate(Path::new(first))
        {
            found.get_or_insert(below);
        }
    };
    checked.each_step(|step| match step {
        Step::Root(template) => look(template),
        Step::FileServer(settings) => {
            if let Some(root) = &settings.root {
                look(root);
            }
        }
        _ => {}
    });
    for site in &checked.sites {
        for route in &site.routes {
            if let Some(matcher) = &route.matcher {
                each_file_root(matcher, &mut look);
            }
        }
    }
    match found {
        None => Ok(()),
        Some(below) => Err(ContentsError::RootWithPlaceholders(below)),
    }
}

fn each_file_root(matcher: &Matcher, look: &mut impl FnMut(&Template)) {
    for condition in &matcher.all {
        match condition {
            Condition::File(wanted) => wanted.root.iter().for_each(&mut *look),
            Condition::Not(matchers) => {
                for matcher in matchers {
                    // One level: a matcher within `not` cannot hold another `not`'s root that is not looked at here.
                    for condition in &matcher.all {
                        if let Condition::File(wanted) = condition {
                            wanted.root.iter().for_each(&mut *look);
                        }
                    }
                }
            }
            _ => {}
        }
    }
}
