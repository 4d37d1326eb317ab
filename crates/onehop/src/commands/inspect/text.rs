//! A pack as text: sizes, then what is in it, folders summed unless every file is wanted.

use std::collections::BTreeMap;
use std::path::Path;

use onehop_archive::index::{Source, SourceKind, Tree};
use onehop_archive::{Index, Pack};

use crate::arguments::InspectView;
use crate::table::{Column, table};
use crate::units::{bytes, counted};

pub(super) fn page(file: &Path, pack: &Pack, index: &Index, view: &InspectView) -> String {
    let mut text = head(file, pack, index, view);
    for tree in &index.trees {
        let root = if tree.root.is_empty() { "." } else { &tree.root };
        let also = match (tree.dotfiles, tree.follow_outside) {
            (false, false) => "",
            (true, false) => ", with dotfiles",
            (false, true) => ", links followed",
            (true, true) => ", with dotfiles, links followed",
        };
        text.push_str(&format!("\nserved: {root}, {}{also}\n", counted(tree.files.len() as u64, "file")));
        text.push_str(table(&TREE, &tree_rows(index, tree, view.files)).trim_start_matches('\n'));
    }
    if !index.sources.is_empty() {
        text.push_str("\nsources, unpacked where it runs\n");
        text.push_str(
            table(&SOURCES, &source_rows(index, &index.sources, view.files)).trim_start_matches('\n'),
        );
    }
    if let Some(runtime) = &index.runtime {
        text.push_str(&format!("\nruntime: {} {}\n", runtime.name, runtime.version));
        text.push_str(
            table(&SOURCES, &source_rows(index, &runtime.files, view.files)).trim_start_matches('\n'),
        );
    }
    text
}

const TREE: [Column; 6] = [
    Column::Left("  path"),
    Column::Right("files"),
    Column::Right("size"),
    Column::Right("gzip"),
    Column::Right("br"),
    Column::Right("zstd"),
];

const SOURCES: [Column; 4] =
    [Column::Left("  path"), Column::Right("files"), Column::Right("size"), Column::Right("stored")];

fn head(file: &Path, pack: &Pack, index: &Index, view: &InspectView) -> String {
    let location = pack.location();
    let of_trees = index
        .trees
        .iter()
        .flat_map(|tree| &tree.files)
        .flat_map(|file| [Some(file.identity), file.gzip, file.brotli, file.zstd].into_iter().flatten());
    let content = |source: &Source| match source.kind {
        SourceKind::File { content, .. } => Some(content),
        _ => None,
    };
    let trees: Vec<u32> = of_trees.collect();
    // What is served and unpacked is stored once, and counts among what is served.
    let sources = index.sources.iter().filter_map(content).filter(|number| !trees.contains(number));
    let sources: Vec<u32> = if trees.len() > SHARED_LOOKED_FOR_MAX {
        index.sources.iter().filter_map(content).collect()
    } else {
        sources.collect()
    };
    let runtime = index.runtime.iter().flat_map(|runtime| &runtime.files).filter_map(content);
    let mut sizes = vec![
        format!("program {}", bytes(location.program)),
        format!("served {}", bytes(super::stored(index, trees))),
        format!("sources {}", bytes(super::stored(index, sources))),
    ];
    if index.runtime.is_some() {
        sizes.push(format!("runtime {}", bytes(super::stored(index, runtime))));
    }
    sizes.push(format!("index {}", bytes(location.index_length)));
    let kind = if index.configuration.caddyfile { " as a Caddyfile" } else { "" };
    let mut lines = vec![
        ("name", index.name.clone()),
        ("made by", format!("{}, for {}", index.made_by, index.target)),
        ("size", format!("{}: {}", bytes(location.total), sizes.join(", "))),
        ("digest", location.digest.to_string()),
        ("configured", format!("{}{kind}", index.configuration.path)),
        ("listens", index.listens.join(", ")),
    ];
    let to_be_set = super::to_be_set(index);
    if !to_be_set.is_empty() {
        lines.push(("to be set", to_be_set));
    }
    if !index.outside.is_empty() {
        lines.push(("outside", index.outside.join(", ")));
    }
    if view.verify {
        lines.push((
            "verified",
            format!("all {} are what was packed", counted(index.blobs.len() as u64, "piece")),
        ));
    }
    let mut text = format!("{}\n", file.display());
    for (what, said) in lines {
        text.push_str(&format!("  {what:<10} {said}\n"));
    }
    text
}

/// With more pieces than that it is not looked for which of them are sources, too: it only makes a sum smaller.
const SHARED_LOOKED_FOR_MAX: usize = 2000;

fn tree_rows(index: &Index, tree: &Tree, every: bool) -> Vec<Vec<String>> {
    let mut sums: BTreeMap<String, [u64; 5]> = BTreeMap::new();
    for file in &tree.files {
        let path = String::from_utf8_lossy(&file.path);
        let form = |number: Option<u32>| number.map_or(0, |number| super::length(index, number));
        let sum = sums.entry(group(&path, every)).or_default();
        let add =
            [1, super::length(index, file.identity), form(file.gzip), form(file.brotli), form(file.zstd)];
        sum.iter_mut().zip(add).for_each(|(sum, add)| *sum += add);
    }
    let size = |count: u64| if count == 0 { "-".to_owned() } else { bytes(count) };
    let rows = sums.into_iter().map(|(path, [files, identity, gzip, brotli, zstd])| {
        vec![format!("  {path}"), files.to_string(), bytes(identity), size(gzip), size(brotli), size(zstd)]
    });
    rows.collect()
}

fn source_rows(index: &Index, sources: &[Source], every: bool) -> Vec<Vec<String>> {
    let mut sums: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    for source in sources {
        let (name, add) = match &source.kind {
            SourceKind::Folder => continue,
            SourceKind::Link { to } if every => (format!("{} -> {to}", source.path), [1, 0, 0]),
            SourceKind::Link { .. } => (group(&source.path, every), [1, 0, 0]),
            SourceKind::File { content, .. } => {
                let stored = super::stored(index, [*content]);
                (group(&source.path, every), [1, super::length(index, *content), stored])
            }
        };
        let sum = sums.entry(name).or_default();
        sum.iter_mut().zip(add).for_each(|(sum, add)| *sum += add);
    }
    let rows = sums.into_iter().map(|(path, [files, length, stored])| {
        vec![format!("  {path}"), files.to_string(), bytes(length), bytes(stored)]
    });
    rows.collect()
}

/// The file, or the folder of the first level that it lies in; of `node_modules`, the package.
fn group(path: &str, every: bool) -> String {
    if every {
        return path.to_owned();
    }
    let names: Vec<&str> = path.split('/').collect();
    let take = match names.as_slice() {
        [_] => return path.to_owned(),
        ["node_modules", scope, _, ..] if scope.starts_with('@') => 3,
        ["node_modules", _, ..] => 2,
        _ => 1,
    };
    let folder: Vec<&str> = names.iter().take(take.min(names.len())).copied().collect();
    if take >= names.len() { folder.join("/") } else { format!("{}/", folder.join("/")) }
}
