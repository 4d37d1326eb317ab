//! The trees that sites serve: which, and what is served of each.
//!
//! What is served, and in which forms, is decided by the server's own code (`control::store::prepare`). Owns what may be
//! packed of it: only what lies below the base, and no private keys.

use std::path::Path;

use onehop_config::checked::{Checked, Condition, Encoding, Matcher, Part, Step, Template};
use onehop_files::store::{File, SkipReason};
use onehop_files::tree::{Prepared, Progress, StoreError, prepare};
use onehop_server::request::route::{StoreWish, store_wishes};

use super::base::{Base, Place, join};
use super::data::DataRules;
use super::glob::Patterns;
use super::notes::Notes;
use super::progress::{self, OfTree};
use super::secrets::{self, LOOKED_AT_BYTES_MAX, Secret};
use crate::failure::Failure;

/// A tree that is to be packed.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Below the base; empty: the base itself.
    pub(super) root: String,
    /// How it is served.
    pub(super) wish: StoreWish,
}

/// Every tree that the settings name, each once.
pub(super) fn wanted(base: &Base, checked: &Checked, notes: &mut Notes) -> Result<Vec<Wanted>, Failure> {
    refuse_placeholders(base, checked)?;
    let mut all = Vec::new();
    for wish in store_wishes(checked) {
        let place = base.place(&wish.root);
        match place {
            Place::Within(root) => all.push(Wanted { root, wish }),
            Place::Outside(path) => notes.needs_outside(path.display().to_string()),
            Place::LeadsOut(path) => {
                return Err(Failure::wrong(format!(
                    "the root {path} leads out of {}, the folder of the configuration\n  \
                     move the Onehopfile to a folder that holds both, or write the root as an absolute path: it is \
                     then looked for on the machine",
                    base.folder().display()
                )));
            }
            Place::WrittenAbsolute(below) => {
                let written = base.shown(&Place::WrittenAbsolute(below.clone()));
                let relative = if below.is_empty() { ".".to_owned() } else { format!("./{below}") };
                return Err(Failure::wrong(format!(
                    "the root {written} is written as an absolute path, which a pack would look for on the machine\n  \
                     write it below the Onehopfile, and it is packed:  {relative}"
                )));
            }
        }
    }
    Ok(all)
}

/// A root that depends on the request is not known when packing.
fn refuse_placeholders(base: &Base, checked: &Checked) -> Result<(), Failure> {
    let mut found: Option<String> = None;
    let mut look = |template: &Template| {
        if let (None, Some(Part::Text(first))) = (template.as_text(), template.parts.first())
            && let Place::Within(below) = base.place(Path::new(first))
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
        Some(below) => Err(Failure::wrong(format!(
            "a root below ./{below} has placeholders: which folders are served shows only with a request, so they \
             cannot be packed\n  write a site or a route for each folder, or an absolute root on the machine"
        ))),
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

/// Looks through a tree for what must not be packed, and notes what the server would not serve. Nothing is compressed
/// yet: a refusal should not have to wait for that.
pub(super) fn look_through(
    wanted: &Wanted,
    base: &Base,
    excluded: &Patterns,
    rules: &DataRules,
    notes: &mut Notes,
) -> Result<(), Failure> {
    let prepared = read(wanted, base, &[], &onehop_files::tree::Silent)?;
    let skipped = &prepared.skipped;
    for (path, reason) in &skipped.listed {
        let why = match reason {
            SkipReason::LeavesRoot => {
                "a link that leaves the root is not served (`symlinks follow` allows it)"
            }
            SkipReason::BrokenLink => "a link to nothing",
            SkipReason::LinkLoop => "a link to a folder that holds it",
            SkipReason::Special => "no file, but a socket, pipe or device",
            SkipReason::Unreadable => "not readable for this user",
        };
        notes.leave_out(join(&wanted.root, &path.display().to_string()), why);
    }
    notes.left_out_unlisted += skipped.count.saturating_sub(skipped.listed.len());
    for file in &prepared.store.files {
        let path = join(&wanted.root, &String::from_utf8_lossy(&file.path));
        if excluded.holds(&path) {
            continue;
        }
        if let Some(reason) = rules.reason_served(&path) {
            notes.leave_out_data(&path, false, reason);
            continue;
        }
        let content = file.identity.as_ref().filter(|_| file.length <= LOOKED_AT_BYTES_MAX);
        if let Some(kind) = secrets::kind_of(&path, content.map(|form| &*form.bytes)) {
            notes.refuse(Secret { path, kind });
        }
    }
    Ok(())
}

/// A tree with all its forms.
pub(super) fn ready(
    wanted: &Wanted,
    base: &Base,
    progress: &progress::Progress,
) -> Result<Prepared, Failure> {
    let prepared = read(wanted, base, &wanted.wish.compress, &OfTree::new(progress))?;
    if !prepared.settled {
        return Err(Failure::failed(format!(
            "{} changed all the while it was read: pack it when the build has ended",
            base.folder().join(&wanted.root).display()
        )));
    }
    Ok(prepared)
}

/// Files that go in, sorted.
pub(super) fn packed<'a>(
    wanted: &Wanted,
    prepared: &'a Prepared,
    excluded: &Patterns,
    rules: &DataRules,
) -> Vec<&'a std::sync::Arc<File>> {
    let is_in = |path: &[u8]| {
        let path = join(&wanted.root, &String::from_utf8_lossy(path));
        !excluded.holds(&path) && rules.reason_served(&path).is_none()
    };
    let mut files: Vec<_> = prepared.store.files.iter().filter(|file| is_in(&file.path)).collect();
    files.sort_by(|one, other| one.path.cmp(&other.path));
    files
}

fn read(
    wanted: &Wanted,
    base: &Base,
    encodings: &[Encoding],
    progress: &dyn Progress,
) -> Result<Prepared, Failure> {
    let wish = &wanted.wish;
    // As it was named: a root may be a link.
    let root = base.at(&wanted.root);
    prepare(&root, wish.dotfiles, wish.follow_outside, encodings, progress).map_err(|error: StoreError| {
        Failure::failed(match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        })
    })
}
