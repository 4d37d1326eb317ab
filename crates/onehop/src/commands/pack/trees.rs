//! The trees that sites serve: which, and what is served of each.
//!
//! What is served, and in which forms, is decided by the files crate (`onehop_files::tree::prepare`); what of it may be
//! packed, by the archive crate.

use onehop_archive::contents::{
    Base, Choice, Named, Notes, ServedFile, ServedTree, below, join, refuse_placeholders,
};
use onehop_config::checked::{Checked, Encoding};
use onehop_files::store::{SkipReason, Variant};
use onehop_files::tree::{Prepared, Progress, StoreError, StoreSpec, prepare};
use onehop_server::request::route::store_specs;

use super::progress::{self, OfTree};
use crate::failure::Failure;

/// A tree that is to be packed.
#[derive(Debug)]
pub(super) struct Wanted {
    /// Below the base; empty: the base itself.
    pub(super) root: String,
    /// How it is served.
    pub(super) spec: StoreSpec,
}

/// Every tree that the settings name, each once.
pub(super) fn wanted(base: &Base, checked: &Checked, notes: &mut Notes) -> Result<Vec<Wanted>, Failure> {
    refuse_placeholders(base, checked)?;
    let mut all = Vec::new();
    for spec in store_specs(checked) {
        if let Some(root) = below(base, &spec.root, Named::Root, notes)? {
            all.push(Wanted { root, spec });
        }
    }
    Ok(all)
}

/// Looks through a tree for what must not be packed, and notes what the server would not serve. Nothing is compressed
/// yet: a refusal should not have to wait for that.
pub(super) fn look_through(
    wanted: &Wanted,
    base: &Base,
    choice: Choice<'_>,
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
        choice.look_at(&path, file.length, file.identity.as_ref().map(|form| &*form.bytes), notes);
    }
    Ok(())
}

/// A tree with all its forms.
pub(super) fn ready(
    wanted: &Wanted,
    base: &Base,
    progress: &progress::Progress,
) -> Result<Prepared, Failure> {
    let prepared = read(wanted, base, &wanted.spec.compress, &OfTree::new(progress))?;
    if !prepared.settled {
        return Err(Failure::failed(format!(
            "{} changed all the while it was read: pack it when the build has ended",
            base.folder().join(&wanted.root).display()
        )));
    }
    Ok(prepared)
}

/// A tree as the archive crate takes it.
pub(super) fn served<'a>(wanted: &'a Wanted, prepared: &'a Prepared) -> ServedTree<'a> {
    let bytes = |form: &'a Option<Variant>| form.as_ref().map(|form| &*form.bytes);
    let files = prepared.store.files.iter().map(|file| ServedFile {
        path: &file.path,
        hash: file.hash,
        length: file.length,
        place: prepared.place(file),
        identity: bytes(&file.identity),
        gzip: bytes(&file.gzip),
        brotli: bytes(&file.brotli),
        zstd: bytes(&file.zstd),
    });
    ServedTree {
        root: &wanted.root,
        dotfiles: wanted.spec.dotfiles,
        follow_outside: wanted.spec.follow_outside,
        files: files.collect(),
        folders: prepared.store.folders.iter().map(|folder| folder.path.to_vec()).collect(),
    }
}

fn read(
    wanted: &Wanted,
    base: &Base,
    encodings: &[Encoding],
    progress: &dyn Progress,
) -> Result<Prepared, Failure> {
    let spec = &wanted.spec;
    // As it was named: a root may be a link.
    let root = base.at(&wanted.root);
    prepare(&root, spec.dotfiles, spec.follow_outside, encodings, progress).map_err(|error: StoreError| {
        Failure::failed(match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        })
    })
}
