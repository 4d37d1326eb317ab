//! The system's own store of root certificates: a folder, and a program that reads it.

use std::fs;
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::system_program;

/// The name of the root in the folder, without its ending.
const NAME: &str = "onehop-local-authority.crt";

/// A family of systems.
struct Family {
    /// Where roots are put, below `/`. It has to exist.
    folder: &'static str,
    /// What reads them, and its arguments.
    program: &'static str,
    arguments: &'static [&'static str],
}

/// The first whose folder and program there are.
const FAMILIES: [Family; 3] = [
    // Fedora, RHEL: update-ca-trust(8).
    Family { folder: "etc/pki/ca-trust/source/anchors", program: "update-ca-trust", arguments: &["extract"] },
    // Debian, Ubuntu, Alpine: update-ca-certificates(8).
    Family { folder: "usr/local/share/ca-certificates", program: "update-ca-certificates", arguments: &[] },
    // Arch: what `trust anchor --store` does, with a name that is known afterwards (trust(1)).
    Family {
        folder: "etc/ca-certificates/trust-source/anchors",
        program: "trust",
        arguments: &["extract-compat"],
    },
];

/// The store of a system.
pub(super) struct SystemStore {
    /// The root's file.
    path: PathBuf,
    program: PathBuf,
    arguments: &'static [&'static str],
}

/// Whether a root had to be installed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Installed {
    /// It had.
    New,
    /// The same one is there.
    Already,
}

/// Whether a root was removed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Removed {
    /// It was.
    Done,
    /// There is none.
    Missing,
    /// There is another one.
    Foreign,
}

impl SystemStore {
    /// The store of the system whose files lie below `system`, if it is one that is known.
    pub(super) fn find(system: &Path) -> Option<Self> {
        FAMILIES.iter().find_map(|family| {
            let folder = system.join(family.folder);
            let program = system_program(system, family.program).filter(|_| folder.is_dir())?;
            Some(Self { path: folder.join(NAME), program, arguments: family.arguments })
        })
    }

    /// The root's file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// What is run, for a person.
    pub(super) fn command_line(&self) -> String {
        let name = self.program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        [name.as_str()].iter().chain(self.arguments).copied().collect::<Vec<_>>().join(" ")
    }

    /// Installs a root, and lets the system read it, also where it is there: the last time may have failed halfway.
    pub(super) fn install(&self, certificate: &str) -> Result<Installed, String> {
        let installed = match self.content()? {
            Some(content) if content == certificate.as_bytes() => Installed::Already,
            Some(_) => {
                let path = self.path.display();
                return Err(format!(
                    "{path} is the root of another local authority, which is left alone\n  \
                     remove it with `onehop untrust --storage DIR`, DIR being the store of that one\n  \
                     or with:  rm {path} && {}",
                    self.command_line()
                ));
            }
            None => {
                self.write(certificate)
                    .map_err(|error| format!("cannot write {}: {error}", self.path.display()))?;
                Installed::New
            }
        };
        self.update().map(|()| installed)
    }

    /// Removes this root and no other one.
    pub(super) fn remove(&self, certificate: &str) -> Result<Removed, String> {
        match self.content()? {
            None => Ok(Removed::Missing),
            Some(content) if content != certificate.as_bytes() => Ok(Removed::Foreign),
            Some(_) => {
                fs::remove_file(&self.path)
                    .map_err(|error| format!("cannot remove {}: {error}", self.path.display()))?;
                self.update().map(|()| Removed::Done)
            }
        }
    }

    fn content(&self) -> Result<Option<Vec<u8>>, String> {
        match fs::read(&self.path) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", self.path.display())),
        }
    }

    /// Whole or not at all: the system may read the folder at any moment, and takes every file with the right ending.
    fn write(&self, certificate: &str) -> io::Result<()> {
        let temporary = self.path.with_extension(format!("{}.tmp", std::process::id()));
        let file = fs::OpenOptions::new().write(true).create_new(true).mode(0o644).open(&temporary);
        let written = file.and_then(|mut file| file.write_all(certificate.as_bytes()));
        let done = written.and_then(|()| fs::rename(&temporary, &self.path));
        if done.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_file(&temporary);
        }
        done
    }

    fn update(&self) -> Result<(), String> {
        let output = Command::new(&self.program).args(self.arguments).stdin(Stdio::null()).output();
        let command = self.command_line();
        let why = match output {
            Ok(output) if output.status.success() => return Ok(()),
            Ok(output) => {
                format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end())
            }
            Err(error) => error.to_string(),
        };
        Err(format!(
            "`{command}` failed, so the system does not know of the change yet: {why}\n  run it again:  {command}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::browsers::tests::{make_program, read};
    use super::*;

    /// A system whose program notes how it was called.
    fn system(family: &Family) -> (tempfile::TempDir, SystemStore) {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join(family.folder)).expect("a folder");
        let called = folder.path().join("called");
        let script = format!("echo \"$0 $*\" >> {}", called.display());
        make_program(folder.path(), &format!("usr/sbin/{}", family.program), &script);
        let store = SystemStore::find(folder.path()).expect("known");
        (folder, store)
    }

    #[test]
    fn each_family_of_systems_has_its_folder_and_its_program() {
        for (family, path, line) in [
            (0, "etc/pki/ca-trust/source/anchors/onehop-local-authority.crt", "update-ca-trust extract"),
            (1, "usr/local/share/ca-certificates/onehop-local-authority.crt", "update-ca-certificates"),
            (
                2,
                "etc/ca-certificates/trust-source/anchors/onehop-local-authority.crt",
                "trust extract-compat",
            ),
        ] {
            let (folder, store) = system(&FAMILIES[family]);
            assert_eq!((store.path(), store.command_line().as_str()), (&*folder.path().join(path), line));
            assert_eq!(store.install("a root"), Ok(Installed::New));
            assert_eq!(store.install("a root"), Ok(Installed::Already));
            assert_eq!(read(&folder.path().join(path)), "a root");
            assert_eq!(store.remove("a root"), Ok(Removed::Done));
            assert_eq!(store.remove("a root"), Ok(Removed::Missing));
            let calls = read(&folder.path().join("called"));
            assert_eq!(calls.matches(&format!("/usr/sbin/{line}")).count(), 3, "{calls}");
            let left = fs::read_dir(store.path().parent().expect("a folder")).expect("readable");
            assert_eq!(left.count(), 0);
        }
    }

    #[test]
    fn a_file_of_somebody_else_is_neither_replaced_nor_removed() {
        let (folder, store) = system(&FAMILIES[1]);
        fs::write(store.path(), "another root").expect("written");
        let error = store.install("a root").expect_err("another's");
        assert!(error.contains("is left alone\n") && error.contains("onehop untrust"), "{error}");
        assert_eq!(store.remove("a root"), Ok(Removed::Foreign));
        assert_eq!(read(store.path()), "another root");
        assert!(!folder.path().join("called").exists());
    }

    #[test]
    fn a_program_that_fails_is_reported_with_its_words_and_is_run_again() {
        let (folder, store) = system(&FAMILIES[1]);
        let program = "usr/sbin/update-ca-certificates";
        make_program(folder.path(), program, "echo 'no space left' >&2; exit 3");
        let error = store.install("a root").expect_err("it failed");
        assert!(error.contains("exit status: 3: no space left\n"), "{error}");
        assert!(error.ends_with("run it again:  update-ca-certificates"), "{error}");
        make_program(folder.path(), program, "exit 0");
        assert_eq!(store.install("a root"), Ok(Installed::Already));
    }

    #[test]
    fn a_system_without_the_folder_or_the_program_is_not_known() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(SystemStore::find(folder.path()).is_none());
        fs::create_dir_all(folder.path().join(FAMILIES[1].folder)).expect("a folder");
        assert!(SystemStore::find(folder.path()).is_none());
    }
}
