//! What is told of a pack that was made.

use std::path::Path;

use onehop_archive::contents::{Bytes, Notes};
use onehop_archive::index::SourceKind;
use onehop_archive::{Digest, Index};

use super::oci::Image;
use super::output::Output;
use crate::commands::inspect::to_be_set;
use crate::units::{bytes, counted};

/// A pack that was made.
pub(super) struct Made<'a> {
    pub(super) output: &'a Output,
    pub(super) index: &'a Index,
    pub(super) bytes: Bytes,
    pub(super) digest: Digest,
    pub(super) length: u64,
    pub(super) notes: &'a Notes,
    /// Names of applications.
    pub(super) apps: &'a [String],
    pub(super) image: Option<&'a Image>,
}

impl Made<'_> {
    /// A few lines, the next step last.
    pub(super) fn text(&self, base: &Path) -> String {
        let index = self.index;
        let mut lines = Vec::new();
        if !index.trees.is_empty() {
            let files: usize = index.trees.iter().map(|tree| tree.files.len()).sum();
            lines.push((
                "sites",
                format!(
                    "{} of {}, {}; {} with compressed forms",
                    counted(files as u64, "file"),
                    counted(index.trees.len() as u64, "tree"),
                    bytes(self.bytes.served),
                    bytes(self.bytes.with_forms)
                ),
            ));
        }
        if !self.apps.is_empty() {
            lines.push(("apps", self.apps.join(", ")));
        }
        if let Some(runtime) = &index.runtime {
            lines.push(("runtime", format!("{} {}", runtime.name, runtime.version)));
        }
        let files =
            index.sources.iter().filter(|source| matches!(source.kind, SourceKind::File { .. })).count();
        lines.push(("sources", format!("{}, {}", counted(files as u64, "file"), bytes(self.bytes.sources))));
        if self.notes.fixtures > 0 {
            lines.push((
                "left out",
                format!("{} of dependencies' own tests", counted(self.notes.fixtures as u64, "key")),
            ));
        }
        let to_be_set = to_be_set(index);
        if !to_be_set.is_empty() {
            lines.push(("to be set", to_be_set));
        }
        let name = self.output.path.display();
        if !self.output.is_only_for_image {
            lines.push(("file", format!("{name}, {}, for {}", bytes(self.length), index.target)));
            lines.push(("sha256", self.digest.to_string()));
        }
        if let Some(image) = self.image {
            lines.push(("image", image.summary.clone()));
        }
        let start = if self.output.path.is_absolute() || self.output.path.components().count() > 1 {
            name.to_string()
        } else {
            format!("./{name}")
        };
        let mut text = format!("packed {}\n", base.display());
        for (what, said) in lines {
            text.push_str(&format!("  {what:<10} {said}\n"));
        }
        if !self.output.is_only_for_image {
            text.push_str(&format!("start it:    {start}\n"));
        }
        if let Some(image) = self.image {
            text.push_str(&format!(
                "load it:     podman load -i {0}, or docker load -i {0}\n",
                image.path.display()
            ));
        }
        text
    }
}
