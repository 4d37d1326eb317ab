//! `--watch`: looks whether a file has changed that the configuration was read from, or that an application has loaded.
//! Of an application that does not run, any source in its folder may be what it waits for.
//!
//! Looks at files a few times a second instead of asking the kernel for events: that sees a rename over
//! the file, a link that was turned and a network file system alike. Never reads a file.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use onehop_config::checked::{AppRun, Checked, Step};
use onehop_server::control::AppFiles;
use onehop_server::control::loaded::{FileState, Files, sources};

use crate::signals::Action;

/// How often the files are looked at. A change must look the same twice before it counts, so that a
/// file that is still being written is not read: 250 to 500 ms after the last write.
const LOOK_PERIOD: Duration = Duration::from_millis(250);

/// Where looking takes long, it is done less often: it may take this part of a core's time.
const LOOK_SHARE: u32 = 20;

/// What a process was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Watched {
    /// Files of the configuration; one that appears here has been read already.
    files: Vec<PathBuf>,
    apps: Vec<WatchedApp>,
    /// Folders that are served, not run.
    served: Vec<PathBuf>,
}

/// What an application is made of, as far as its settings say.
#[derive(Debug, Clone, PartialEq, Eq)]
struct WatchedApp {
    name: String,
    /// Environments, its file or program.
    files: Vec<PathBuf>,
    /// Where its sources are.
    folder: Option<PathBuf>,
}

/// What is watched at present.
pub(crate) type Watching = Arc<Mutex<Watched>>;

/// What applications have loaded, once there is a server.
pub(crate) type Apps = Arc<OnceLock<AppFiles>>;

impl Watched {
    /// These files alone.
    pub(crate) fn only(files: Vec<PathBuf>) -> Self {
        Self { files, ..Self::default() }
    }

    /// These files of a configuration, and what its applications are made of.
    pub(crate) fn of(files: Vec<PathBuf>, checked: &Checked) -> Self {
        let mut watched = Self { files, ..Self::default() };
        for app in checked.apps() {
            let mut files = app.environment.files.clone();
            let folder = match &app.run {
                AppRun::Handler { file, .. } => {
                    files.push(file.clone());
                    let own = file.parent().map(Path::to_path_buf);
                    // A working directory elsewhere says nothing about sources.
                    if file.starts_with(&app.directory) { Some(app.directory.clone()) } else { own }
                }
                // What it is made of is not known; many of them watch that themselves.
                AppRun::Command { line } => {
                    files.extend(line.iter().map(PathBuf::from).filter(|word| word.is_absolute()).take(1));
                    None
                }
                AppRun::Elsewhere { .. } => None,
            };
            watched.apps.push(WatchedApp { name: app.name.clone(), files, folder });
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
        let Self { served, apps, .. } = &mut watched;
        let folders = || apps.iter().filter_map(|app| app.folder.as_ref());
        served.retain(|served| !folders().any(|folder| folder.starts_with(served)));
        watched
    }
}

/// Sends a wish to reload after every change, for as long as the other end is there.
pub(crate) fn start(watching: Watching, apps: Apps, actions: Sender<Action>) -> io::Result<()> {
    let look_now = move || {
        let watched = watching.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let loaded = |name: &str| apps.get().and_then(|files| files(name));
        look(&watched, loaded)
    };
    let mut read = look_now();
    thread::Builder::new().name("watch".into()).spawn(move || {
        let mut before = read.clone();
        let mut pause = LOOK_PERIOD;
        loop {
            thread::sleep(pause);
            let begun = Instant::now();
            let now = look_now();
            pause = LOOK_PERIOD.max(begun.elapsed() * LOOK_SHARE);
            read.adopt(&now);
            if read.differs(&now) && now == before {
                if actions.send(Action::Reload).is_err() {
                    return;
                }
                read = now.clone();
            }
            before = now;
        }
    })?;
    Ok(())
}

/// What was seen, by path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Seen {
    /// Single files, and in which state each is known to have been read, where it is.
    files: HashMap<PathBuf, (FileState, Option<FileState>)>,
    /// Folders with sources.
    folders: HashMap<PathBuf, Files>,
}

impl Seen {
    /// Looks at what the other one looked at. What is new was read in the state in which it was loaded, else as it is.
    fn adopt(&mut self, now: &Seen) {
        for (folder, files) in &now.folders {
            if !self.folders.contains_key(folder) {
                let read =
                    |path: &PathBuf, state: FileState| self.files.get(path).map_or(state, |(read, _)| *read);
                let files = files.iter().map(|(path, state)| (path.clone(), read(path, *state))).collect();
                self.folders.insert(folder.clone(), files);
            }
        }
        self.files.retain(|path, _| now.files.contains_key(path));
        self.folders.retain(|path, _| now.folders.contains_key(path));
        for (path, (state, loaded)) in &now.files {
            let read = loaded.filter(|loaded| *loaded != FileState::Unsure).unwrap_or(*state);
            self.files.entry(path.clone()).or_insert((read, None));
        }
    }

    fn differs(&self, now: &Seen) -> bool {
        self.folders != now.folders
            || now
                .files
                .iter()
                .any(|(path, (state, _))| self.files.get(path).is_none_or(|(read, _)| read != state))
    }
}

fn look(watched: &Watched, loaded: impl Fn(&str) -> Option<Arc<Files>>) -> Seen {
    let mut seen = Seen::default();
    let mut see = |path: &PathBuf, loaded: Option<FileState>| {
        seen.files.entry(path.clone()).or_insert_with(|| (FileState::now(path), loaded));
    };
    watched.files.iter().for_each(|path| see(path, None));
    for app in &watched.apps {
        app.files.iter().for_each(|path| see(path, None));
    }
    for app in &watched.apps {
        let Some(folder) = &app.folder else { continue };
        match loaded(&app.name) {
            Some(files) => files.iter().for_each(|(path, state)| see(path, Some(*state))),
            None => {
                // Of a folder with too many of them only what is named counts.
                let found = sources(folder, &watched.served).unwrap_or_default();
                seen.folders.insert(folder.clone(), found);
            }
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use std::fs;
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
        let seen = look(&project.watched(), |_| None);
        let in_folders = seen.folders.into_values().flat_map(Files::into_keys);
        let mut seen: Vec<String> = seen
            .files
            .into_keys()
            .chain(in_folders)
            .map(|path| path.strip_prefix(&project.0).expect("inside").display().to_string())
            .collect();
        seen.sort();
        seen.dedup();
        assert_eq!(seen, [".env", "Onehopfile", "api/server.mjs", "lib/orders.ts", "package.json"]);
    }

    #[test]
    fn of_an_application_that_runs_only_what_it_has_loaded_is_looked_at() {
        let project = Project::new("loaded");
        let loaded = project.0.join("lib/orders.ts");
        let files: Files = [(loaded.clone(), FileState::now(&loaded))].into();
        let seen = look(&project.watched(), |_| Some(Arc::new(files.clone())));
        assert!(seen.folders.is_empty());
        let mut names: Vec<String> = seen
            .files
            .keys()
            .map(|path| path.strip_prefix(&project.0).expect("inside").display().to_string())
            .collect();
        names.sort();
        assert_eq!(names, [".env", "Onehopfile", "api/server.mjs", "lib/orders.ts"]);
        // It changed between being loaded and being looked at for the first time.
        project.write("lib/orders.ts", "// longer than before");
        let now = look(&project.watched(), |_| Some(Arc::new(files.clone())));
        let mut read = look(&project.watched(), |_| None);
        read.adopt(&now);
        assert!(read.differs(&now));
    }

    #[test]
    fn a_changed_a_new_and_a_lost_file_are_each_reported_once() {
        let project = Project::new("changes");
        let (send, actions) = mpsc::channel();
        let watching: Watching = Arc::new(Mutex::new(project.watched()));
        start(Arc::clone(&watching), Apps::default(), send).expect("a thread");
        let timeout = Duration::from_secs(20);
        for change in ["Onehopfile", ".env", "lib/orders.ts", "lib/new.mjs"] {
            project.write(
                change,
                ":0 {\n\tapp /api/* api/server.mjs {\n\t\tenv_file .env\n\t}\n\tspa dist\n}\n\n",
            );
            assert!(matches!(actions.recv_timeout(timeout), Ok(Action::Reload)), "{change}");
        }
        fs::remove_file(project.0.join("lib/new.mjs")).expect("it was there");
        assert!(matches!(actions.recv_timeout(timeout), Ok(Action::Reload)));
        // What a reload reads for the first time is no change.
        let mut more = project.watched();
        more.files.push(project.0.join("data.json"));
        *watching.lock().expect("nobody failed") = more;
        assert!(actions.recv_timeout(4 * LOOK_PERIOD).is_err());
    }
}
