//! Where results are kept, and what never stands in them.

use std::path::PathBuf;

use serde_json::Value;

use crate::{Outcome, workspace};

/// Writes a result where it belongs and says where that is.
pub(crate) fn write_result(name: &str, smoke: bool, value: &Value) -> Outcome<PathBuf> {
    let folder = if smoke {
        workspace::target_folder("bench/smoke")?
    } else {
        workspace::root().join("benchmarks/results").join(format!(
            "{}-{}",
            workspace::date(),
            workspace::machine_name()
        ))
    };
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("{name}.json"));
    std::fs::write(&path, without_places(&format!("{value:#}\n")))?;
    Ok(path)
}

/// A text without where this machine keeps things: paths in the project are relative to it, others below the home
/// directory begin with `~`.
pub(crate) fn without_places(text: &str) -> String {
    let project = format!("{}/", workspace::root().display());
    let text = text.replace(&project, "");
    match std::env::var("HOME") {
        Ok(home) if home.len() > 1 => text.replace(&format!("{home}/"), "~/"),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_say_nothing_of_where_a_machine_keeps_its_things() {
        let path = workspace::root().join("target/release/onehop");
        assert_eq!(without_places(&format!("`{}` ran", path.display())), "`target/release/onehop` ran");
        let mut folders = vec![workspace::root().join("benchmarks/results")];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                // Where people and build machines keep what is theirs.
                for place in ["/home/", "/root/", "/Users/", "/tmp/", "/work/", "/build/", "/workspace/"] {
                    assert!(!text.contains(place), "{} holds a path below {place}", path.display());
                }
            }
        }
    }
}
