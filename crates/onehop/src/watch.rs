//! `--watch`: looks whether a file has changed that the configuration was read from, or that an
//! application is made of.
//!
//! Looks at files a few times a second instead of asking the kernel for events: that sees a rename over
//! the file, a link that was turned and a network file system alike. Never reads a file.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use onehop_config::checked::{AppRun, Checked, Step};

use crate::signals::Wish;

/// How often the files are looked at. A change must look the same twice before it counts, so that a
/// file that is still being written is not read: 250 to 500 ms after the last write.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// Where looking takes long, it is done less often: it may take this part of a core's time.
const LOOK_SHARE: u32 = 20;

/// Files of applications that are looked at. A project's own sources are a few hundred; whoever has
/// more has taken a folder that holds other things.
const FILES_MAX: usize = 5000;

/// Folders within folders that are looked into; bounds what links in a circle cost.
const DEPTH_MAX: usize = 16;

/// Endings of files that applications are made of. Data (JSON, databases, logs) is not among them: an
/// application that writes such a file would be restarted by itself for ever.
const ENDINGS: [&str; 8] = ["mjs", "js", "cjs", "mts", "ts", "cts", "jsx", "tsx"];

/// What a process was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Files of the configuration; one that appears here has been read already.
    files: Vec<PathBuf>,
    /// Single files of applications: environments, programs.
    app_files: Vec<PathBuf>,
    /// Folders with sources.
    folders: Vec<PathBuf>,
    /// Folders within them that are served, not run.
    served: Vec<PathBuf>,
}

/// What is watched at present.
pub(crate) type Watching = Arc<Mutex<Watched>>;

impl Watched {
    /// These files alone.
    pub(crate) fn only(files: Vec<PathBuf>) -> Self {
        Self { files, ..Self::default() }
    }

    /// These files of a configuration, and what its applications are made of.
    pub(crate) fn of(files: Vec<PathBuf>, checked: &Checked) -> Self {
        let mut watched = Self { files, ..Self::default() };
        for app in checked.apps() {
            watched.app_files.extend(app.environment.files.iter().cloned());
            match &app.run {
                AppRun::Handler { file, .. } => {
                    watched.app_files.push(file.clone());
                    let own = file.parent().map(Path::to_path_buf);
                    // A working directory elsewhere says nothing about sources.
                    let folder =
                        if file.starts_with(&app.directory) { Some(app.directory.clone()) } else { own };
                    watched.folders.extend(folder);
                }
                // What it is made of is not known; many of them watch that themselves.
                AppRun::Command { line } => watched
                    .app_files
                    .extend(line.iter().map(PathBuf::from).filter(|word| word.is_absolute()).take(1)),
                AppRun::Elsewhere { .. } => {}
            }
            watched.served.extend(app.files.clone());
        }
        checked.each_step(|step| match step {
            Step::Spa(spa) => watched.served.push(spa.root.clone()),
            Step::Root(root) => watched.served.extend(root.as_text().map(PathBuf::from)),
            Step::FileServer(files) => {
                watched.served.extend(files.root.as_ref().and_then(|root| root.as_text()).map(PathBuf::from));
            }
            _ => {}
        });
        // A folder that is served as a whole may be where the sources are, too.
        let Self { served, folders, .. } = &mut watched;
        served.retain(|served| !folders.iter().any(|folder| folder.starts_with(served)));
        watched
    }
}

/// Sends a wish to reload after every change, for as long as somebody listens.
pub(crate) fn start(watching: Watching, wishes: Sender<Wish>) -> io::Result<()> {
    let mut watched = watching.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut read = look(&watched);
    thread::Builder::new().name("watch".into()).spawn(move || {
        let mut before = read.clone();
        let mut pause = LOOK_PERIOD;
        loop {
            thread::sleep(pause);
            let wanted = watching.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let begun = Instant::now();
            let now = look(&wanted);
            pause = LOOK_PERIOD.max(begun.elapsed() * LOOK_SHARE);
            if wanted != watched {
                // A reload has just read this: what is new was read in this state.
                let known = std::mem::replace(&mut read, now.clone());
                read.extend(known.into_iter().filter(|(path, _)| now.contains_key(path)));
                watched = wanted;
            }
            if read != now && now == before {
                if wishes.send(Wish::Reload).is_err() {
                    return;
                }
                read.clone_from(&now);
            }
            before = now;
        }
    })?;
    Ok(())
}

/// Device, inode, length and time of the last change of one file; `None` where it is missing.
type Seen = Option<(u64, u64, u64, i64, i64)>;

fn look(watched: &Watched) -> HashMap<PathBuf, Seen> {
    let named = watched.files.iter().chain(&watched.app_files);
    let mut seen: HashMap<PathBuf, Seen> =
        named.map(|path| (path.clone(), fs::metadata(path).ok().map(|file| state(&file)))).collect();
    let bound = seen.len() + FILES_MAX;
    for folder in &watched.folders {
        look_into(folder, &watched.served, 0, bound, &mut seen);
    }
    seen
}

/// Sources in a folder; what cannot be read is not there.
fn look_into(
    folder: &Path,
    served: &[PathBuf],
    depth: usize,
    bound: usize,
    seen: &mut HashMap<PathBuf, Seen>,
) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        // Packages are installed, not written; tools keep their own things under names with a dot.
        if seen.len() >= bound || name.starts_with('.') || name == "node_modules" || served.contains(&path) {
            continue;
        }
        let is_source = name == "package.json"
            || name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending));
        let kind = entry.file_type().ok();
        let may_be_folder = kind.is_some_and(|kind| kind.is_dir() || kind.is_symlink());
        if !is_source && !may_be_folder {
            continue;
        }
        match fs::metadata(&path) {
            Ok(file) if file.is_dir() && depth < DEPTH_MAX => {
                look_into(&path, served, depth + 1, bound, seen)
            }
            Ok(file) if file.is_file() && is_source => {
                seen.insert(path, Some(state(&file)));
            }
            _ => {}
        }
    }
}

fn state(file: &fs::Metadata) -> (u64, u64, u64, i64, i64) {
    (file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use onehop_config::{FileKind, FileSource, load};

    use super::*;

    /// A project in a folder that goes away with it.
    struct Project(PathBuf);

    impl Project {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("onehop-watch-{name}-{}", std::process::id()));
            let project = Self(folder);
            project.write(
                "Onehopfile",
                ":0 {\n\tapp /api/* api/server.mjs {\n\t\tenv_file .env\n\t}\n\tspa dist\n}\n",
            );
            for path in
                ["package.json", "api/server.mjs", "lib/orders.ts", ".env", "dist/index.html", "dist/app.js"]
            {
                project.write(path, "{}");
            }
            for path in ["node_modules/a/index.js", ".git/hook.js", "data.json", "api/log.txt"] {
                project.write(path, "{}");
            }
            project
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }

        fn watched(&self) -> Watched {
            let loaded = load(&self.0.join("Onehopfile"), FileKind::Onehopfile, &FileSource).expect("sound");
            Watched::of(loaded.files, &loaded.checked)
        }
    }

    impl Drop for Project {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn sources_are_looked_at_and_packages_data_and_served_files_are_not() {
        let project = Project::new("sources");
        let mut seen: Vec<String> = look(&project.watched())
            .into_keys()
            .map(|path| path.strip_prefix(&project.0).expect("inside").display().to_string())
            .collect();
        seen.sort();
        assert_eq!(seen, [".env", "Onehopfile", "api/server.mjs", "lib/orders.ts", "package.json"]);
    }

    #[test]
    fn a_changed_a_new_and_a_lost_file_are_each_told_once() {
        let project = Project::new("changes");
        let (send, wishes) = mpsc::channel();
        let watching: Watching = Arc::new(Mutex::new(project.watched()));
        start(Arc::clone(&watching), send).expect("a thread");
        let patience = Duration::from_secs(20);
        for change in ["Onehopfile", ".env", "lib/orders.ts", "lib/new.mjs"] {
            project.write(
                change,
                ":0 {\n\tapp /api/* api/server.mjs {\n\t\tenv_file .env\n\t}\n\tspa dist\n}\n\n",
            );
            assert!(matches!(wishes.recv_timeout(patience), Ok(Wish::Reload)), "{change}");
        }
        fs::remove_file(project.0.join("lib/new.mjs")).expect("it was there");
        assert!(matches!(wishes.recv_timeout(patience), Ok(Wish::Reload)));
        // What a reload reads for the first time is no change.
        let mut more = project.watched();
        more.files.push(project.0.join("data.json"));
        *watching.lock().expect("nobody failed") = more;
        assert!(wishes.recv_timeout(4 * LOOK_PERIOD).is_err());
    }
}
