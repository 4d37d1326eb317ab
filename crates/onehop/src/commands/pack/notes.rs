//! What has to be told of a pack besides what is in it.

use std::collections::{BTreeMap, BTreeSet};

use super::data::Reason;
use super::secrets::Secret;

/// Gathered on the way.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Left out, below the base, and why.
    pub(super) left_out: BTreeMap<String, String>,
    /// Left out as well, too many to be listed.
    pub(super) left_out_unlisted: usize,
    /// Databases and the like were left out.
    has_left_out_data: bool,
    /// Files that must not be packed.
    pub(super) secrets: Vec<Secret>,
    /// Names of variables whose files were left out.
    pub(super) variables: BTreeSet<String>,
    /// Paths that have to be on the machine.
    pub(super) outside: BTreeSet<String>,
    /// Sentences.
    pub(super) warnings: Vec<String>,
    /// Keys and the like of dependencies' own tests, which were left out.
    pub(super) fixtures: usize,
}

/// So many that were left out are listed, each a line; the rest is counted.
const LEFT_OUT_LISTED_MAX: usize = 50;

impl Notes {
    /// Something is not packed.
    pub(super) fn leave_out(&mut self, path: impl Into<String>, why: impl Into<String>) {
        if self.left_out.len() < LEFT_OUT_LISTED_MAX {
            self.left_out.insert(path.into(), why.into());
        } else {
            self.left_out_unlisted += 1;
        }
    }

    /// Data, or what may be data, is not packed.
    pub(super) fn leave_out_data(&mut self, path: &str, is_folder: bool, reason: Reason) {
        self.has_left_out_data = true;
        self.leave_out(format!("{path}{}", if is_folder { "/" } else { "" }), reason.text());
    }

    /// A secret, told once.
    pub(super) fn refuse(&mut self, secret: Secret) {
        if !self.secrets.iter().any(|known| known.path == secret.path) {
            self.secrets.push(secret);
        }
    }

    /// A path that a packed run looks for on the machine.
    pub(super) fn needs_outside(&mut self, path: impl Into<String>) {
        self.outside.insert(path.into());
    }

    /// Everything as warnings, in words.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut all: Vec<String> =
            self.left_out.iter().map(|(path, why)| format!("left out: {path}: {why}")).collect();
        if self.left_out_unlisted > 0 {
            all.push(format!("left out: {} more", self.left_out_unlisted));
        }
        if self.has_left_out_data {
            all.push(
                "--include PATH packs what is left out; what an application writes belongs in its data directory (`data \
                 NAME` in its block)"
                    .to_owned(),
            );
        }
        all.extend(self.outside.iter().map(|path| format!("not packed: {path} has to be on the machine")));
        all.extend(self.warnings.iter().cloned());
        all
    }
}
