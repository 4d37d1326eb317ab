//! `onehop inspect`: what is in a pack, as text or JSON, and the proof of it. A pack shows itself by the same code.
//!
//! Never runs or unpacks what it shows.

mod json;
mod text;

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use onehop_archive::index::{BlobNumber, SourceKind};
use onehop_archive::{Index, Pack, PackError};

use crate::arguments::{Inspect, InspectView};
use crate::failure::Failure;

/// Pieces that are named where a proof fails; whoever has more needs another copy.
const CHANGED_LISTED_MAX: usize = 20;

pub(crate) fn inspect(arguments: &Inspect) -> Result<(), Failure> {
    let file = &arguments.file;
    let (pack, index) = Pack::open(file).map_err(|error| refused(file, &error))?;
    show(file, &pack, &index, &arguments.view)
}

/// Shows a pack that is open.
pub(crate) fn show(file: &Path, pack: &Pack, index: &Index, view: &InspectView) -> Result<(), Failure> {
    // Before anything is shown: what was changed is not told as if it were so.
    if view.verify {
        verify(file, pack, index)?;
    }
    let page = if view.json { json::page(pack, index, view) } else { text::page(file, pack, index, view) };
    super::standard_output::print(&page);
    Ok(())
}

/// Names of variables that have to be set where a pack runs, with commas between them.
pub(crate) fn to_be_set(index: &Index) -> String {
    let names: BTreeSet<&str> = index.variables.iter().chain(&index.asks_for).map(String::as_str).collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Why a file is no pack that can be used, behind its name.
pub(crate) fn refused(file: &Path, error: &PackError) -> Failure {
    Failure::failed(format!("{} {error}", file.display()).replace(" cannot be read: ", ": cannot be read: "))
}

fn verify(file: &Path, pack: &Pack, index: &Index) -> Result<(), Failure> {
    let names = names(index);
    let mut changed: Vec<&str> = Vec::new();
    let mut more = 0;
    for (number, blob) in index.blobs.iter().enumerate() {
        let number = BlobNumber::try_from(number).unwrap_or(BlobNumber::MAX);
        let name = names.get(&number).map_or("a piece that nothing names", String::as_str);
        match pack.verify(blob, name) {
            Ok(()) => {}
            Err(PackError::Changed { .. }) if changed.len() < CHANGED_LISTED_MAX => changed.push(name),
            Err(PackError::Changed { .. }) => more += 1,
            Err(error) => return Err(refused(file, &error)),
        }
    }
    if changed.is_empty() {
        return Ok(());
    }
    let more = if more > 0 { format!("\n  and {more} more") } else { String::new() };
    Err(Failure::failed(format!(
        "{} was changed after it was packed; copy it again, or pack it again. These are not what they were:\n  {}{more}",
        file.display(),
        changed.join("\n  ")
    )))
}

/// What each piece is, by the first that names it.
fn names(index: &Index) -> HashMap<BlobNumber, String> {
    let mut names = HashMap::new();
    for tree in &index.trees {
        for file in &tree.files {
            let path = below(&tree.root, &String::from_utf8_lossy(&file.path));
            names.entry(file.identity).or_insert_with(|| path.clone());
            for (form, coding) in [(file.gzip, "gzip"), (file.brotli, "br"), (file.zstd, "zstd")] {
                if let Some(number) = form {
                    names.entry(number).or_insert_with(|| format!("{path} ({coding})"));
                }
            }
        }
    }
    for source in &index.sources {
        if let SourceKind::File { content, .. } = source.kind {
            names.entry(content).or_insert_with(|| source.path.clone());
        }
    }
    for source in index.runtime.iter().flat_map(|runtime| &runtime.files) {
        if let SourceKind::File { content, .. } = source.kind {
            names.entry(content).or_insert_with(|| format!("runtime: {}", source.path));
        }
    }
    names
}

fn below(root: &str, path: &str) -> String {
    if root.is_empty() { path.to_owned() } else { format!("{root}/{path}") }
}

/// Bytes of these pieces, each once.
fn stored(index: &Index, numbers: impl IntoIterator<Item = BlobNumber>) -> u64 {
    let mut numbers: Vec<BlobNumber> = numbers.into_iter().collect();
    numbers.sort_unstable();
    numbers.dedup();
    let blobs = numbers.iter().filter_map(|number| index.blobs.get(*number as usize));
    blobs.map(|blob| blob.stored).sum()
}

/// Bytes of a piece as it is once unpacked.
fn length(index: &Index, number: BlobNumber) -> u64 {
    index.blobs.get(number as usize).map_or(0, |blob| blob.length)
}
