//! What has to be told of a pack besides what is in it.

use std::collections::{BTreeMap, BTreeSet};

use super::data::Reason;
use super::secrets::Secret;

/// Gathered on the way.
#[derive(Debug, Default)]
pub struct Notes {
    /// Left out, below the base, and why.
    pub left_out: BTreeMap<String, String>,
    /// Left out as well, too many to be listed.
    pub left_out_unlisted: usize,
    /// Databases and the like were left out.
    pub has_left_out_data: bool,
    /// Files that must not be packed.
    pub secrets: Vec<Secret>,
    /// Names of variables whose files were left out.
    pub variables: BTreeSet<String>,
    /// Paths that have to be on the machine.
    pub outside: BTreeSet<String>,
    /// Sentences.
    pub warnings: Vec<String>,
    /// Keys and the like of dependencies' own tests, which were left out.
    pub fixtures: usize,
}

/// So many that were left out are listed, each a line; the rest is counted.
const LEFT_OUT_LISTED_MAX: usize = 50;

impl Notes {
    /// Something is not packed.
    pub fn leave_out(&mut self, path: impl Into<String>, why: impl Into<String>) {
        if self.left_out.len() < LEFT_OUT_LISTED_MAX {
            self.left_out.insert(path.into(), why.into());
        } else {
            self.left_out_unlisted += 1;
        }
    }

    /// Data, or what may be data, is not packed.
    pub fn leave_out_data(&mut self, path: &str, is_folder: bool, reason: Reason) {
        self.has_left_out_data = true;
        self.leave_out(format!("{path}{}", if is_folder { "/" } else { "" }), reason.text());
    }

    /// A secret, told once.
    pub fn refuse(&mut self, secret: Secret) {
        if !self.secrets.iter().any(|known| known.path == secret.path) {
            self.secrets.push(secret);
        }
    }

    /// A path that a packed run looks for on the machine.
    pub fn needs_outside(&mut self, path: impl Into<String>) {
        self.outside.insert(path.into());
    }
}
