//! Links in sources: noted as links, together with what they lead to; never followed out of the base.

use std::fs;
use std::path::Path;

use super::{Entry, Gathering};
use crate::contents::base::{join, parent};
use crate::contents::error::ContentsError;
use crate::limits::LINKS_MAX;

impl Gathering<'_> {
    /// Notes a link and gives what it leads to; `None` where that cannot be packed.
    pub(super) fn link(&mut self, path: String) -> Result<Option<String>, ContentsError> {
        let place = self.base.at(&path);
        let Ok(target) = fs::canonicalize(&place) else {
            self.notes.leave_out(path, "a link to nothing");
            return Ok(None);
        };
        let Some(below) = target.strip_prefix(self.base.resolved()).ok().and_then(Path::to_str) else {
            if !self.served.contains(&path) {
                self.links_out.push((path, target));
            }
            return Ok(None);
        };
        let below = below.to_owned();
        if self.excluded.holds(&below) {
            self.notes.leave_out(path, "a link to what --exclude leaves out");
            return Ok(None);
        }
        if let Some(reason) = self.rules.reason(&below, target.is_dir()) {
            self.notes.leave_out_data(&below, target.is_dir(), reason);
            return Ok(None);
        }
        let written = fs::read_link(&place).ok();
        let written = written.as_deref().and_then(Path::to_str);
        let folder = parent(&path).unwrap_or_default();
        // As it is written, where its words alone lead to where it leads.
        let to = match written {
            Some(written) if resolve(folder, written).as_deref() == Some(below.as_str()) => {
                written.to_owned()
            }
            _ => relative(folder, &below),
        };
        self.note(path, Entry::Link { to })?;
        Ok(Some(below))
    }

    /// Follows a path to where it really is, and notes the links on the way; `None` where that cannot be packed.
    pub(super) fn settle(&mut self, path: &str) -> Result<Option<String>, ContentsError> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_MAX {
            let mut at = String::new();
            let mut followed = None;
            for name in path.split('/').filter(|name| !name.is_empty()) {
                at = join(&at, name);
                let is_link =
                    fs::symlink_metadata(self.base.at(&at)).is_ok_and(|found| found.file_type().is_symlink());
                if is_link {
                    let rest = path.get(at.len()..).unwrap_or_default().trim_start_matches('/').to_owned();
                    let Some(target) = self.link(at)? else { return Ok(None) };
                    followed = Some(if rest.is_empty() { target } else { join(&target, &rest) });
                    break;
                }
            }
            match followed {
                Some(target) => path = target,
                None => return Ok(Some(path)),
            }
        }
        Err(ContentsError::TooManyLinks { path, max: LINKS_MAX })
    }

    pub(super) fn refuse_links(&self) -> Result<(), ContentsError> {
        if self.links_out.is_empty() {
            return Ok(());
        }
        let base = self.base.folder().to_owned();
        Err(ContentsError::LinksOut { links: self.links_out.clone(), base })
    }
}

/// Where the words of a link in this folder lead; `None`: out of the base.
fn resolve(folder: &str, written: &str) -> Option<String> {
    if written.starts_with('/') {
        return None;
    }
    let mut names: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    for name in written.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()?),
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

/// The way from a folder to something, both below the base.
fn relative(folder: &str, to: &str) -> String {
    let from: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    let to: Vec<&str> = to.split('/').filter(|name| !name.is_empty()).collect();
    let common = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = std::iter::repeat_n("..", from.len() - common);
    let way: Vec<&str> = up.chain(to.iter().skip(common).copied()).collect();
    if way.is_empty() { ".".to_owned() } else { way.join("/") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_followed_and_written_by_its_words() {
        for (folder, to, way) in [
            ("", "a", "a"),
            ("a", "a/b", "b"),
            ("a/b", "c", "../../c"),
            ("node_modules", "packages/lib", "../packages/lib"),
            ("a", "", ".."),
            ("a", "a", "."),
        ] {
            assert_eq!(relative(folder, to), way);
            assert_eq!(resolve(folder, way).as_deref(), Some(to), "{folder} {way}");
        }
        assert_eq!(resolve("a", "../../b"), None);
        assert_eq!(resolve("a", "/b"), None);
    }
}
