//! What the server itself writes, so that no site serves it where it lies below a root.

use std::path::Path;

use super::{Checked, LogOutput};

/// The folder of certificates below `data_dir`.
pub const CERTIFICATES_FOLDER: &str = "tls";

/// The folder of the history below `data_dir`.
pub const HISTORY_FOLDER: &str = "history";

/// The time in the name of a rotated log; a 0 is any digit.
pub const ROTATED_LOG_TIME: &str = "0000-00-00T00-00-00.000";

impl Checked {
    /// Its logs, with those that were rotated, its certificates and its history: patterns as `hide` has them.
    #[must_use]
    pub fn own_files(&self) -> Vec<String> {
        let global = &self.global;
        let of_data = global.data_directory.iter().flat_map(|folder| {
            // The folders of applications are theirs to serve.
            [CERTIFICATES_FOLDER, HISTORY_FOLDER].map(|name| folder.join(name))
        });
        let folders = of_data.chain(global.tls.storage.clone());
        let mut patterns: Vec<String> = folders.map(|folder| folder.to_string_lossy().into_owned()).collect();
        let outputs = self.sites.iter().flat_map(|site| &site.logs).map(|log| &log.output);
        for output in outputs.chain(global.log.iter().map(|log| &log.output)) {
            if let LogOutput::File(path) = output {
                patterns.extend(of_log(path));
            }
        }
        patterns.sort_unstable();
        patterns.dedup();
        patterns
    }
}

/// A log, and what it is called after a rotation, compressed or not.
fn of_log(path: &Path) -> [String; 2] {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension =
        path.extension().map_or_else(String::new, |extension| format!(".{}", extension.to_string_lossy()));
    let before = escaped(&path.with_file_name(format!("{stem}-")).to_string_lossy());
    let time = ROTATED_LOG_TIME.replace('0', "?");
    [path.to_string_lossy().into_owned(), format!("{before}{time}{}*", escaped(&extension))]
}

/// A text as a pattern that only this text fits.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if ['*', '?', '[', '\\'].contains(&character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_known_before_and_after_its_rotation() {
        let [now, rotated] = of_log(Path::new("/srv/a[1]/access.log"));
        assert_eq!(now, "/srv/a[1]/access.log");
        assert_eq!(rotated, r"/srv/a\[1]/access-????-??-??T??-??-??.???.log*");
    }
}
