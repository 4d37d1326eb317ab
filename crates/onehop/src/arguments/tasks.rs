//! The commands by what they are for: the first screen of `onehop help`.
//!
//! Owns the headings and the order below them. What a command is about comes from the command itself.

use std::fmt::Write as _;

use clap::Subcommand as _;
use clap::builder::{StyledStr, Styles};

use super::Command;

/// Each command once (`every_command_has_one_heading`).
const TASKS: [(&str, &[&str]); 7] = [
    ("Serve", &["serve", "app", "proxy", "run"]),
    ("Write a configuration", &["init", "adapt", "validate", "fmt", "routes", "hash-password"]),
    ("Change what runs", &["reload", "workers", "stop"]),
    ("See what happens", &["status", "top", "logs", "why", "dashboard"]),
    ("Measure", &["try", "bench"]),
    ("Deploy", &["pack", "inspect", "certs", "trust", "untrust"]),
    ("Help", &["help", "completions", "man", "version"]),
];

/// The page in the form of clap's templates, where `{…}` are its own parts.
pub(super) fn help_template() -> StyledStr {
    let all = Command::augment_subcommands(clap::Command::new("onehop"));
    let width = all.get_subcommands().map(|command| command.get_name().len()).max().unwrap_or(0);
    let styles = Styles::styled();
    let (heading, name) = (styles.get_header(), styles.get_literal());
    let mut page = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (task, commands) in TASKS {
        let _ = write!(page, "\n{heading}{task}:{heading:#}\n");
        for command in commands.iter().filter_map(|command| all.find_subcommand(command)) {
            let called = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let aliases: Vec<&str> = command.get_visible_aliases().collect();
            let alias =
                if aliases.is_empty() { String::new() } else { format!(" [alias: {}]", aliases.join(", ")) };
            let gap = width - called.len();
            let _ = writeln!(page, "  {name}{called}{name:#}{:gap$}  {about}{alias}", "");
        }
    }
    let _ = write!(page, "\n{heading}Options:{heading:#}\n{{options}}{{after-help}}");
    StyledStr::from(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_one_heading() {
        let all = Command::augment_subcommands(clap::Command::new("onehop"));
        let mut there: Vec<&str> = all.get_subcommands().map(clap::Command::get_name).collect();
        let mut listed: Vec<&str> = TASKS.iter().flat_map(|(_, commands)| commands.iter().copied()).collect();
        there.sort_unstable();
        listed.sort_unstable();
        assert_eq!(listed, there);
    }
}
