//! One command that starts two programs: the application behind, the front before it.

use std::path::Path;

use crate::setup::Application;

/// A POSIX shell's script: the application in the background, the front in the shell's own place. Both are in the
/// shell's process group and end with it.
pub(super) fn script(application: &Application, app_port: u16, directory: &Path, front: &[String]) -> String {
    let mut app = vec!["env".to_owned()];
    app.extend(application.environment.iter().map(|(name, value)| format!("{name}={value}")));
    app.push(format!("PORT={app_port}"));
    app.extend(application.words.iter().cloned());
    format!(
        "#!/bin/sh\n(\n\tcd {} || exit 1\n\texec {}\n) &\ncd {} || exit 1\nexec {}\n",
        quote(&application.directory.to_string_lossy()),
        words(&app),
        quote(&directory.to_string_lossy()),
        words(front),
    )
}

fn words(words: &[String]) -> String {
    words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" ")
}

/// In single quotes nothing is special but the quote itself.
fn quote(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::setup::AppPort;

    #[test]
    fn both_programs_are_started_with_their_words_folders_and_variables() {
        let folder = tempfile::tempdir().unwrap();
        let behind = folder.path().join("it's here");
        std::fs::create_dir(&behind).unwrap();
        let application = Application {
            words: ["sh", "-c", "echo \"$PORT $GREETING $0\" > app.txt", "one 'two' $three"]
                .map(str::to_owned)
                .into(),
            passed: Vec::new(),
            environment: vec![("GREETING".to_owned(), "good day".to_owned())],
            directory: behind.clone(),
            port: AppPort::Assigned,
            is_run_by_onehop: true,
        };
        // The front ends when the application has written.
        let front = "while ! [ -s \"it's here/app.txt\" ]; do sleep 0.01; done; echo $0 > front.txt";
        let front = ["sh", "-c", front, "a b"].map(str::to_owned);
        let text = script(&application, 4711, folder.path(), &front);
        let file = folder.path().join("start.sh");
        std::fs::write(&file, text).unwrap();
        assert!(Command::new("sh").arg(&file).status().unwrap().success());
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&behind.join("app.txt")), "4711 good day one 'two' $three\n");
        assert_eq!(read(&folder.path().join("front.txt")), "a b\n");
    }
}
