//! What is said of files that look like secrets: all of them at once, each with what to do.

use onehop_archive::contents::{Kind, Secret};

use crate::failure::Failure;
use crate::units::counted;

/// Secrets that are listed; whoever has more begins with these.
const LISTED_MAX: usize = 50;

/// All of them at once, each with what to do.
pub(super) fn refuse(secrets: &mut [Secret]) -> Result<(), Failure> {
    if secrets.is_empty() {
        return Ok(());
    }
    secrets.sort_by(|one, other| one.path.cmp(&other.path));
    let width = secrets.iter().take(LISTED_MAX).map(|secret| secret.path.chars().count()).max().unwrap_or(0);
    let many = match secrets.len() {
        1 => "a file looks like one".to_owned(),
        many => format!("{} look like some", counted(many as u64, "file")),
    };
    let mut text = format!("a pack holds no secrets, and {many}:\n");
    for Secret { path, kind } in secrets.iter().take(LISTED_MAX) {
        let what = match kind {
            Kind::Environment(names) if names.is_empty() => {
                "variables: leave it out, and set them where it runs".to_owned()
            }
            Kind::Environment(names) => {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                format!("variables: leave it out, and set {} where it runs", names.join(", "))
            }
            Kind::Key => "a private key: leave it out, and put it on the machine where it runs".to_owned(),
            Kind::Credentials => "credentials: leave it out".to_owned(),
        };
        text.push_str(&format!("  {path:<width$}  {what}\n"));
    }
    if secrets.len() > LISTED_MAX {
        text.push_str(&format!("  and {} more\n", secrets.len() - LISTED_MAX));
    }
    let options = secrets.iter().take(LISTED_MAX).map(|secret| format!("--exclude {}", quoted(&secret.path)));
    let options: Vec<String> = options.collect();
    text.push_str(&format!("to leave them out:  onehop pack {}", options.join(" ")));
    Err(Failure::wrong(text))
}

/// As a shell wants it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', "'\\''")) }
}
