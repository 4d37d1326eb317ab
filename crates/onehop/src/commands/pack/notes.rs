//! What is said of what a pack leaves out.

use onehop_archive::contents::Notes;

/// Everything as warnings, in words.
pub(super) fn sentences(notes: &Notes) -> Vec<String> {
    let mut all: Vec<String> =
        notes.left_out.iter().map(|(path, why)| format!("left out: {path}: {why}")).collect();
    if notes.left_out_unlisted > 0 {
        all.push(format!("left out: {} more", notes.left_out_unlisted));
    }
    if notes.has_left_out_data {
        all.push(
            "--include PATH packs what is left out; what an application writes belongs in its data directory (`data \
             NAME` in its block)"
                .to_owned(),
        );
    }
    all.extend(notes.outside.iter().map(|path| format!("not packed: {path} has to be on the machine")));
    if !notes.outside.is_empty() {
        all.push("a pack takes what lies in the Onehopfile's folder and below".to_owned());
    }
    all.extend(notes.warnings.iter().cloned());
    all
}
