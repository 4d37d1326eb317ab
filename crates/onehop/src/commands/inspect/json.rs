//! A pack as JSON; docs/pack.md says what each field is.

use onehop_archive::index::{BlobNumber, Source, SourceKind};
use onehop_archive::{Index, Pack};
use serde_json::{Value, json};

use crate::arguments::InspectView;

pub(super) fn page(pack: &Pack, index: &Index, view: &InspectView) -> String {
    let location = pack.location();
    let runtime = index.runtime.as_ref().map(|runtime| {
        json!({
            "name": runtime.name,
            "version": runtime.version,
            "files": sources(index, &runtime.files),
        })
    });
    let page = json!({
        "made_by": index.made_by,
        "name": index.name,
        "target": index.target,
        "digest": location.digest.to_string(),
        "verified": view.verify,
        "bytes": {
            "total": location.total,
            "program": location.program,
            "index": location.index_length,
        },
        "configuration": {
            "path": index.configuration.path,
            "caddyfile": index.configuration.caddyfile,
        },
        "listens": index.listens,
        "trees": trees(index),
        "sources": sources(index, &index.sources),
        "runtime": runtime,
        "variables": index.variables,
        "asks_for": index.asks_for,
        "folder": index.folder,
        "outside": index.outside,
    });
    format!("{page:#}\n")
}

fn trees(index: &Index) -> Vec<Value> {
    let trees = index.trees.iter().map(|tree| {
        let files = tree.files.iter().map(|file| {
            let form = |number: Option<BlobNumber>| number.map(|number| super::length(index, number));
            json!({
                "path": String::from_utf8_lossy(&file.path),
                "bytes": super::length(index, file.identity),
                "gzip": form(file.gzip),
                "br": form(file.brotli),
                "zstd": form(file.zstd),
                "sha256": index.blobs.get(file.identity as usize).map(|blob| blob.digest.to_string()),
            })
        });
        json!({
            "root": tree.root,
            "dotfiles": tree.dotfiles,
            "follow_outside": tree.follow_outside,
            "files": files.collect::<Vec<Value>>(),
        })
    });
    trees.collect()
}

fn sources(index: &Index, sources: &[Source]) -> Vec<Value> {
    let shown = sources.iter().map(|source| match &source.kind {
        SourceKind::Folder => json!({ "path": source.path, "kind": "folder" }),
        SourceKind::Link { to } => json!({ "path": source.path, "kind": "link", "to": to }),
        SourceKind::File { content, executable } => {
            let blob = index.blobs.get(*content as usize);
            json!({
                "path": source.path,
                "kind": "file",
                "executable": executable,
                "bytes": super::length(index, *content),
                "stored": blob.map(|blob| blob.stored),
                "stored_sha256": blob.map(|blob| blob.digest.to_string()),
            })
        }
    });
    shown.collect()
}
