//! Manual pages and completions, which the program writes itself.
//!
//! They are the same on every architecture, so any program that runs on this machine may be asked.

use std::path::Path;

use crate::{Outcome, workspace};

/// A program that names commands without end is not ours.
const MANUALS_MAX: usize = 200;

/// What the program says about itself.
#[derive(Default)]
pub(super) struct HelpFiles {
    /// `onehop-bench-max` and its page.
    pub(super) manuals: Vec<(String, Vec<u8>)>,
    pub(super) bash: Vec<u8>,
    pub(super) zsh: Vec<u8>,
    pub(super) fish: Vec<u8>,
}

impl HelpFiles {
    /// Asks the first program that runs here.
    pub(super) fn ask<'a>(mut programs: impl Iterator<Item = &'a Path>) -> Outcome<HelpFiles> {
        let program =
            programs.find(|program| workspace::output_of(program, &["--version"]).is_some()).ok_or(
                "none of the programs runs on this machine, and manual pages are written by the program: \
             build for this architecture as well, or install qemu-user-static",
            )?;
        let said = |words: &[&str]| -> Outcome<Vec<u8>> {
            let text = workspace::output_of(program, words)
                .ok_or_else(|| format!("`{} {}` failed", program.display(), words.join(" ")))?;
            Ok(format!("{text}\n").into_bytes())
        };
        let mut manuals = Vec::new();
        let mut open = vec![Vec::new()];
        while let Some(path) = open.pop() {
            let mut words = vec!["man"];
            words.extend(path.iter().map(String::as_str));
            let page = said(&words)?;
            let name = [vec!["onehop".to_owned()], path.clone()].concat().join("-");
            for command in subcommands(&name, &String::from_utf8_lossy(&page)) {
                open.push([path.as_slice(), &[command]].concat());
            }
            manuals.push((name, page));
            if manuals.len() > MANUALS_MAX {
                return Err(format!("the manual has more than {MANUALS_MAX} pages").into());
            }
        }
        manuals.sort();
        let [bash, zsh, fish] = ["bash", "zsh", "fish"].map(|shell| said(&["completions", shell]));
        Ok(HelpFiles { manuals, bash: bash?, zsh: zsh?, fish: fish? })
    }
}

/// The commands that a page refers to, as `onehop\-bench\-max(1)` on a line of its own.
fn subcommands(name: &str, page: &str) -> Vec<String> {
    let start = format!("{name}-");
    let found = page.lines().filter_map(|line| {
        let reference = line.strip_suffix("(1)")?.replace("\\-", "-");
        reference.strip_prefix(&start).map(str::to_owned)
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_names_the_pages_below_it() {
        let page =
            ".SH SUBCOMMANDS\n.TP\nonehop\\-bench\\-compare(1)\nSide by side\n.TP\nonehop\\-bench\\-max(1)\n";
        assert_eq!(subcommands("onehop-bench", page), ["compare", "max"]);
        assert!(subcommands("onehop-run", page).is_empty());
    }
}
