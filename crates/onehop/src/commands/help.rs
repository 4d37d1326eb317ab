//! `onehop help`: the help of a command, and the reference of directives, which is built into the program.

use clap::CommandFactory;

use super::standard_output::print;
use crate::arguments::{Arguments, Help};
use crate::failure::Failure;

/// The pages that describe directives, each in a chapter of its name.
const PAGES: [&str; 3] = [
    include_str!("../../../../docs/onehopfile.md"),
    include_str!("../../../../docs/limits.md"),
    include_str!("../../../../docs/https.md"),
];

/// The chapters with the tables of global options.
const GLOBAL_BLOCK: [&str; 2] = ["The global block", "In the global block"];
/// The end of the help for a global option: its place in the file.
const IN_GLOBAL_BLOCK: &str = "Global options belong in the first block of the file, which has no address:\n\n\
    {\n\temail me@example.com\n}\n";

/// The page that describes one directive as a whole.
const PROXY: &str = include_str!("../../../../docs/proxy.md");

pub(crate) fn help(help: &Help) -> Result<(), Failure> {
    let words: Vec<&str> = help.words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["directive"] => print(&format!("{}\n", names().join("\n"))),
        ["directive", name] => print(&reference(name)?),
        ["directive", ..] => return Err(Failure::wrong("`onehop help directive` takes one name")),
        words => command(words)?,
    }
    Ok(())
}

/// Prints the help of a command.
fn command(words: &[&str]) -> Result<(), Failure> {
    let mut command = Arguments::command();
    command.build();
    if let [word] = words
        && command.find_subcommand(word).is_none()
        && let Ok(text) = reference(word)
    {
        print(&text);
        return Ok(());
    }
    for word in words {
        command = command.find_subcommand(word).cloned().ok_or_else(|| {
            Failure::wrong(format!(
                "there is no command or directive `{word}`; `onehop help` and `onehop help directive` list them"
            ))
        })?;
    }
    print(&command.render_long_help().to_string());
    Ok(())
}

/// The directives, sorted.
fn names() -> Vec<&'static str> {
    let chapter = |page: &'static str| page.split("\n## Directives\n").nth(1).unwrap_or_default();
    let mut names: Vec<&str> = chapter(PAGES[0]).lines().filter_map(heading).flat_map(items).collect();
    names.push("tls");
    names.sort_unstable();
    names
}

/// All that the pages have of a directive.
fn reference(name: &str) -> Result<String, Failure> {
    if !names().contains(&name) {
        return global_option(name).or_else(|| option(name)).ok_or_else(|| {
            let names = names().join(", ");
            Failure::wrong(format!(
                "there is no directive or option `{name}`; there are the directives {names}"
            ))
        });
    }
    let mut text = String::new();
    for page in PAGES {
        text.push_str(&chapter(page, name));
    }
    if name == "reverse_proxy" {
        text.push_str(PROXY);
    }
    Ok(text)
}

/// What the tables of the global block say of an option.
fn global_option(name: &str) -> Option<String> {
    let mut text = String::new();
    let chapters = PAGES.iter().flat_map(|page| GLOBAL_BLOCK.map(|title| chapter(page, title)));
    let tables: String =
        chapters.filter_map(|chapter| chapter.split("\n### ").next().map(str::to_owned)).collect();
    for row in tables.lines() {
        let Some((option, means)) = row.strip_prefix("| ").and_then(|row| row.split_once(" | ")) else {
            continue;
        };
        let mut names = option.split('`').skip(1).step_by(2).filter_map(|part| part.split(' ').next());
        if names.any(|found| found == name) {
            let means = means.trim_end_matches('|').trim_end().replace(" | ", "; without it: ");
            text.push_str(&format!("{}\n    {means}\n\n", option.replace("\\|", "|")));
        }
    }
    (!text.is_empty()).then(|| format!("{text}{IN_GLOBAL_BLOCK}"))
}

/// What the chapters of directives have in their lines about an option of this name.
fn option(name: &str) -> Option<String> {
    let mut text = String::new();
    for owner in names() {
        let chapter = reference(owner).unwrap_or_default();
        let is_about = |line: &&str| {
            let cell = line.strip_prefix("| ").and_then(|row| row.split(" | ").next());
            let begin = cell.or_else(|| line.strip_prefix("- ").and_then(|item| item.split(':').next()));
            let mut named = begin.unwrap_or_default().split('`').skip(1).step_by(2);
            named.any(|part| part.split(' ').next() == Some(name))
        };
        let lines: Vec<&str> = chapter.lines().filter(is_about).collect();
        if !lines.is_empty() {
            let lines = lines.join("\n").replace("\\|", "|");
            text.push_str(&format!(
                "`{name}` is an option of `{owner}` (onehop help directive {owner}):\n{lines}\n\n"
            ));
        }
    }
    (!text.is_empty()).then_some(text)
}

/// The chapter of this name, up to the next heading of its level or above.
fn chapter(page: &str, name: &str) -> String {
    let (mut text, mut level, mut is_fenced) = (String::new(), 0, false);
    for line in page.lines() {
        is_fenced ^= line.starts_with("```");
        if let (false, Some(title)) = (is_fenced, heading(line)) {
            let found = line.len() - title.len();
            if level == 0 && items(title).any(|item| item == name) {
                level = found;
            } else if found <= level {
                level = 0;
            }
        }
        if level > 0 {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// The title of a heading.
fn heading(line: &str) -> Option<&str> {
    line.strip_prefix("### ").or_else(|| line.strip_prefix("## "))
}

/// The names in a title.
fn items(title: &str) -> impl Iterator<Item = &str> {
    title.split(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directive_has_a_reference_with_an_example() {
        for name in names() {
            let text = reference(name).expect("it is a directive");
            assert!(text.contains("```caddyfile\n"), "{name}: {text}");
        }
    }

    #[test]
    fn a_global_option_is_described_with_its_place() {
        for (name, expected) in
            [("acme_ca_root", "as in `tls`, for all sites"), ("data_dir", "survive upgrades")]
        {
            let text = reference(name).expect("it is a global option");
            assert!(text.contains(expected) && text.ends_with(IN_GLOBAL_BLOCK), "{name}: {text}");
        }
        assert!(reference("acme_ca_rot").is_err());
    }

    #[test]
    fn an_option_is_described_with_its_directive() {
        let text = reference("recycle").expect("it is an option");
        assert!(
            text.starts_with("`recycle` is an option of `app` (onehop help directive app):\n| `recycle "),
            "{text}"
        );
        assert!(reference("recycles").is_err());
    }

    #[test]
    fn a_chapter_ends_at_the_next_one() {
        let page = "## a\none\n### b, c\ntwo\n```\n## d\n```\n## e\nthree\n";
        assert_eq!(chapter(page, "c"), "### b, c\ntwo\n```\n## d\n```\n");
        assert_eq!(chapter(page, "a"), "## a\none\n### b, c\ntwo\n```\n## d\n```\n");
        assert_eq!(chapter(page, "d"), "");
    }
}
