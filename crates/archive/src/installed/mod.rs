//! The pack that this program is, and the folder into which it is unpacked.
//!
//! Owns what a running server needs of its pack: the content of a file that the configuration names, and the folder
//! that holds what applications need before the first of them starts. `directory.rs` chooses the folder, `unpack.rs` writes it or
//! uses what lies there, which `verify.rs` compares with the pack and `repair.rs` puts right; `lock.rs` lets one server at a
//! time do so; `record.rs` knows whether an application wrote in a folder, and `sweep.rs` removes folders in which none did. Never unpacks before it is asked
//! to, and never writes outside of that folder and the one above it.

mod directory;
mod lock;
mod named;
mod record;
mod repair;
mod sweep;
mod unpack;
mod verify;
mod work;

#[cfg(test)]
mod tests;

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use crate::index::{Source, SourceKind, path_order};
use crate::{Index, Pack};

pub use self::directory::{UnpackFolder, unpack_places};
pub use self::named::Named;
pub use self::repair::Repaired;
pub use self::sweep::Earlier;
pub use self::unpack::Unpacked;
use crate::limits::LINKS_MAX;

/// A pack that is served.
#[derive(Debug, Clone)]
pub struct Packed {
    /// It, open.
    pub pack: Arc<Pack>,
    /// What it holds.
    pub index: Arc<Index>,
    /// Where it is unpacked.
    pub folder: UnpackFolder,
}

impl Packed {
    /// The path below the base of what lies there; the base itself is empty.
    pub fn below_base(&self, path: &Path) -> Option<String> {
        let below = path.strip_prefix(self.folder.base()).ok()?;
        Some(below.to_str()?.trim_end_matches('/').to_owned())
    }

    /// The content of a file that was packed; `None` where the path does not name one. An error is for a person.
    pub fn content(&self, path: &Path) -> Option<Result<Vec<u8>, String>> {
        let mut path = self.below_base(path)?;
        for _ in 0..LINKS_MAX {
            let source = self.source(&path)?;
            match &source.kind {
                SourceKind::File { content, .. } => {
                    let blob = self.index.blobs.get(*content as usize)?;
                    let content = self.pack.content(blob, &path);
                    return Some(content.map_err(|error| format!("{} {error}", self.index.name)));
                }
                SourceKind::Link { to } => path = target(&path, to)?,
                SourceKind::Folder => return None,
            }
        }
        None
    }

    /// The folder of the runtime's programs, where one was packed.
    pub fn runtime_programs(&self) -> Option<PathBuf> {
        self.index.runtime.as_ref().map(|_| self.folder.runtime().join("bin"))
    }

    fn source(&self, path: &str) -> Option<&Source> {
        let sources = &self.index.sources;
        let place = sources.binary_search_by(|source| path_order(&source.path, path)).ok()?;
        sources.get(place)
    }
}

/// Where a link leads, below the base.
fn target(link: &str, to: &str) -> Option<String> {
    let mut parts: Vec<&str> = link.split('/').collect();
    parts.pop();
    for part in Path::new(to).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}
