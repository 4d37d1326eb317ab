//! Folders and environment for tests, and the check that what comes out is sound.

use std::path::{Path, PathBuf};

use onehop_config::{FileKind, FileSource};

use super::{Environment, detect};
use crate::{Front, Setup, SideBySideError};

/// A folder with files, gone with the value.
pub(super) struct Folder(tempfile::TempDir);

impl Folder {
    pub(super) fn of(files: &[(&str, &str)]) -> Folder {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Folder(folder)
    }

    pub(super) fn path(&self) -> PathBuf {
        self.0.path().to_owned()
    }

    pub(super) fn detect(&self, name: &str, environment: &Environment) -> Result<Setup, SideBySideError> {
        let setup = detect(&self.0.path().join(name), environment)?;
        self.check(&setup);
        Ok(setup)
    }

    /// The text without the folder's name, which differs each time.
    pub(super) fn plain(&self, text: &str) -> String {
        text.replace(&self.0.path().display().to_string(), "FOLDER")
    }

    /// Everything that people and programs get, as one text.
    pub(super) fn show(&self, setup: &Setup) -> String {
        let mut text = format!("{}\n\n{}\n", setup.found.description, setup.onehopfile);
        if let Some(application) = &setup.application {
            text.push_str(&format!(
                "{} {:?} in {} at {:?}, by onehop: {}\n",
                application.words.join(" "),
                application.environment,
                application.directory.display(),
                application.port,
                application.is_run_by_onehop
            ));
        }
        let routes: Vec<&str> = setup.routes.iter().map(|route| route.path.as_str()).collect();
        text.push_str(&format!("asks {}\nguesses {}\n", routes.join(" "), setup.guessed.join(" ")));
        for note in &setup.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        for front in &setup.today {
            text.push_str(&match front {
                Front::None => "\n--- alone\n".to_owned(),
                Front::Nginx { conf } => format!("\n--- nginx\n{conf}"),
                Front::Caddy { file } => format!("\n--- Caddy\n{file}"),
            });
        }
        self.plain(&text)
    }

    /// The Onehopfile is one, and nginx takes its configurations.
    fn check(&self, setup: &Setup) {
        assert!(!setup.routes.is_empty() && !setup.today.is_empty());
        let file = setup.folder.join("Onehopfile-of-the-trial");
        std::fs::write(&file, filled(&setup.onehopfile, &self.path())).unwrap();
        let loaded = onehop_config::load(&file, FileKind::Onehopfile, &FileSource);
        std::fs::remove_file(&file).unwrap();
        if let Err(problems) = loaded {
            let shown: Vec<String> = problems.iter().map(ToString::to_string).collect();
            panic!("{}\n{}", setup.onehopfile, shown.join("\n"));
        }
        for front in &setup.today {
            match front {
                Front::None => {}
                Front::Nginx { conf } => check_nginx(conf),
                Front::Caddy { file } => check_caddy(file, &setup.folder),
            }
        }
    }
}

fn filled(text: &str, scratch: &Path) -> String {
    let text = text.replace("{port}", "18080").replace("{app_port}", "13000").replace("{workers}", "1");
    text.replace("{scratch}", &scratch.display().to_string())
}

/// Whether nginx and Caddy themselves read what is written for them, which `cargo xtask suites --ci` asks for.
fn requests_foreign_programs() -> bool {
    std::env::var_os("ONEHOP_FOREIGN").is_some()
}

fn check_nginx(conf: &str) {
    if !requests_foreign_programs() {
        return;
    }
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("nginx.conf");
    let conf = filled(conf, scratch.path());
    std::fs::write(&file, &conf).unwrap();
    let output =
        std::process::Command::new("/usr/sbin/nginx").arg("-t").arg("-c").arg(&file).output().unwrap();
    assert!(output.status.success(), "{conf}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn check_caddy(text: &str, folder: &Path) {
    if !requests_foreign_programs() {
        return;
    }
    let caddy = std::env::var_os("ONEHOP_CADDY").expect("ONEHOP_CADDY names Caddy");
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("Caddyfile");
    let text = filled(text, scratch.path());
    std::fs::write(&file, &text).unwrap();
    let arguments = ["adapt", "--adapter", "caddyfile", "--config"];
    let output = std::process::Command::new(caddy)
        .args(arguments)
        .arg(&file)
        .current_dir(folder)
        .env("HOME", scratch.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// A machine with everything, on which nobody listens.
pub(super) fn environment() -> Environment {
    let program = |name: &str| Some(PathBuf::from("/usr/bin").join(name));
    Environment {
        nginx: program("nginx"),
        caddy: program("caddy"),
        node: program("node"),
        bun: None,
        npm: program("npm"),
        occupied: Vec::new(),
        is_dry_run: false,
        variables: Vec::new(),
    }
}
