//! What packages need, gathered from one to the next; `prune.rs` knows where each is found.

use super::Gathering;
use crate::contents::base::join;
use crate::contents::data::is_in_modules;
use crate::contents::error::ContentsError;
use crate::contents::prune;

impl Gathering<'_> {
    /// Gathers what a package needs.
    pub(super) fn follow(&mut self, package: &str, is_apps_own: bool) -> Result<(), ContentsError> {
        let description = self.base.at(&join(package, "package.json"));
        let is_foreign = self.base.at(&join(package, ".pnp.cjs")).exists();
        if is_foreign || !description.is_file() || !self.followed.insert(package.to_owned()) {
            return Ok(());
        }
        let needed = match prune::dependencies(&description) {
            Ok(needed) => needed,
            Err(error) if is_in_modules(package) => {
                self.notes.warnings.push(format!("what it needs is not known: {error}"));
                return Ok(());
            }
            Err(error) => return Err(ContentsError::PackageJson(error)),
        };
        for dependency in needed {
            let name = &dependency.name;
            let Some(path) = prune::find(self.base.resolved(), package, name) else {
                self.not_there(package, &dependency, is_apps_own);
                continue;
            };
            if self.excluded.holds(&path) {
                continue;
            }
            if let Some(folder) = self.settle(&path)? {
                self.packages.push(folder.clone());
                self.walk(folder)?;
            }
        }
        Ok(())
    }

    fn not_there(&mut self, package: &str, dependency: &prune::Dependency, is_apps_own: bool) {
        let name = &dependency.name;
        if let Some(above) = prune::find_above(self.base.resolved(), name) {
            self.links_out.push((format!("{name} (for {})", shown(package)), above));
        } else if !dependency.is_required {
            // Optional and peer dependencies may be missing.
        } else if is_apps_own {
            self.missing.push(name.clone());
        } else {
            let sentence = format!("{} needs {name}, which is not installed", shown(package));
            self.notes.warnings.push(sentence);
        }
    }

    pub(super) fn refuse_missing(&self) -> Result<(), ContentsError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(ContentsError::NotInstalled(self.missing.clone()))
    }
}

fn shown(package: &str) -> &str {
    if package.is_empty() { "package.json" } else { package }
}
