//! The data directory: what must survive restarts and upgrades.
//!
//! Owns where it is, and the folder in it that `data` gives an application. Makes folders that are missing; never
//! removes anything, and never changes the owner or the mode of what it did not make.

use std::env;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, chown};
use std::path::{Path, PathBuf};

use onehop_archive::private_folder::{make, own_user};
use onehop_config::checked::AppData;
use rustix::fs::Access;

use crate::account::Account;

/// The variable that names an application's own folder.
pub(crate) const VARIABLE: &str = "APP_DATA_DIR";

/// Root's data directory, where no other is set (Filesystem Hierarchy Standard 3.0, section 5.8).
const SYSTEM_DIRECTORY: &str = "/var/lib/onehop";

/// The folder in the data directory that holds the folders of applications: others are the server's.
const APPS: &str = "apps";

/// The application's folder, which belongs to `account` (else to the server's own user) and is closed to others. It is
/// made where it is missing. An error is for a person.
pub(crate) fn make_folder(data: &AppData, account: Option<&Account>) -> Result<PathBuf, String> {
    let directory = match &data.directory {
        Some(directory) => directory.clone(),
        None => default_directory(own_user(), |name| env::var_os(name)).ok_or(
            "there is no data directory for `data`: neither $STATE_DIRECTORY nor $XDG_DATA_HOME nor $HOME is set; set \
             `data_dir` in the global block",
        )?,
    };
    let above = directory.join(APPS);
    let folder = above.join(&data.name);
    let failed = |path: &Path, error: &io::Error| {
        let path = path.display();
        format!(
            "its data folder {path} cannot be made ({error}): set `data_dir` to a folder that this user may write in"
        )
    };
    // Users that root runs applications as have to come by.
    let mode = if own_user() == 0 { 0o711 } else { 0o700 };
    make_missing(&directory, mode).map_err(|error| failed(&directory, &error))?;
    make_missing(&above, mode).map_err(|error| failed(&above, &error))?;
    let is_new = make_missing(&folder, 0o700).map_err(|error| failed(&folder, &error))?;
    if let (true, Some(account)) = (is_new, account) {
        chown(&folder, Some(account.uid), Some(account.gid)).map_err(|error| failed(&folder, &error))?;
    }
    must_be_usable(&folder, account.map_or_else(own_user, |account| account.uid))?;
    Ok(folder)
}

/// A folder of the server itself in the data directory, which is made where it is missing; the folder is not. An error is
/// for a person.
pub fn folder_of_server(configured: Option<&Path>, name: &str) -> Result<PathBuf, String> {
    let directory = match configured {
        Some(directory) => directory.to_owned(),
        None => default_directory(own_user(), |name| env::var_os(name)).ok_or(
            "there is no data directory for certificates: neither $STATE_DIRECTORY nor $XDG_DATA_HOME nor $HOME is set; \
             set `data_dir` in the global block",
        )?,
    };
    let mode = if own_user() == 0 { 0o711 } else { 0o700 };
    make_missing(&directory, mode).map_err(|error| {
        let shown = directory.display();
        format!("the data directory {shown} cannot be made ({error}): set `data_dir` to a folder that this user may write in")
    })?;
    Ok(directory.join(name))
}

/// The same where the data directory is configured or exists already; else nothing is made, and there is none.
pub fn existing_folder_of_server(configured: Option<&Path>, name: &str) -> Option<PathBuf> {
    let usual = || default_directory(own_user(), |name| env::var_os(name)).filter(|usual| usual.is_dir());
    let directory = configured.map(Path::to_owned).or_else(usual)?;
    // Where it cannot be made, its user is told as soon as a file is written there.
    Some(folder_of_server(Some(&directory), name).unwrap_or_else(|_| directory.join(name)))
}

/// systemd's state directory (systemd.exec(5): several have colons between them), else the user's (XDG Base Directory
/// Specification 0.8), else the system's for root.
fn default_directory(user: u32, variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let absolute = |path: PathBuf| Some(path).filter(|path| path.is_absolute());
    let state = variable("STATE_DIRECTORY").and_then(|all| env::split_paths(&all).next()).and_then(absolute);
    let named =
        variable("XDG_DATA_HOME").map(PathBuf::from).and_then(absolute).map(|home| home.join("onehop"));
    let system = (user == 0).then(|| PathBuf::from(SYSTEM_DIRECTORY));
    let home = variable("HOME").map(PathBuf::from).and_then(absolute);
    state.or(named).or(system).or_else(|| home.map(|home| home.join(".local/share/onehop")))
}

/// Whether the folder was made.
fn make_missing(path: &Path, mode: u32) -> io::Result<bool> {
    if path.is_dir() {
        return Ok(false);
    }
    if let Some(above) = path.parent() {
        DirBuilder::new().recursive(true).mode(mode).create(above)?;
    }
    match make(path, mode) {
        // Another worker was quicker.
        Err(error) if error.kind() == ErrorKind::AlreadyExists && path.is_dir() => Ok(false),
        made => made.map(|()| true),
    }
}

/// Refuses a folder that its application could not write in, with what to do.
fn must_be_usable(folder: &Path, user: u32) -> Result<(), String> {
    let shown = folder.display();
    let found = fs::metadata(folder).map_err(|error| format!("its data folder {shown}: {error}"))?;
    if found.uid() != user && user != 0 {
        return Err(format!(
            "its data folder {shown} belongs to the user {}, and the application runs as {user}: `chown -R {user} {shown}`",
            found.uid()
        ));
    }
    if user == own_user() && rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Err(format!("its data folder {shown} is not writable for this user: `chmod u+rwx {shown}`"));
    }
    for above in folder.ancestors().skip(1).filter(|_| user != own_user()) {
        let Ok(found) = above.metadata() else { continue };
        // Whether the user is of a group that may enter is not known here.
        if found.uid() != user && found.mode() & 0o011 == 0 {
            let above = above.display();
            return Err(format!(
                "its user cannot come by {above}, which holds its data folder: `chmod a+x {above}`, or set `data_dir` to a \
                 folder that others may enter"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_directory_is_systemds_else_the_users_else_the_systems() {
        for (user, variables, expected) in [
            (
                1000,
                &[("STATE_DIRECTORY", "/var/lib/shop:/var/lib/more"), ("HOME", "/home/me")][..],
                Some("/var/lib/shop"),
            ),
            (1000, &[("XDG_DATA_HOME", "/data"), ("HOME", "/home/me")], Some("/data/onehop")),
            (
                1000,
                &[("XDG_DATA_HOME", "relative"), ("HOME", "/home/me")],
                Some("/home/me/.local/share/onehop"),
            ),
            (1000, &[("STATE_DIRECTORY", ""), ("HOME", "/home/me")], Some("/home/me/.local/share/onehop")),
            (1000, &[], None),
            (0, &[("HOME", "/root")], Some("/var/lib/onehop")),
            (0, &[("XDG_DATA_HOME", "/data")], Some("/data/onehop")),
        ] {
            let variable = |name: &str| {
                variables
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(_, value)| std::ffi::OsString::from(value))
            };
            assert_eq!(
                default_directory(user, variable),
                expected.map(PathBuf::from),
                "{user} {variables:?}"
            );
        }
    }

    #[test]
    fn a_data_folder_is_made_closed_to_others_and_found_again_with_what_is_in_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = AppData { name: "shop".into(), directory: Some(folder.path().join("new/data")) };
        let made = make_folder(&data, None).expect("made");
        assert_eq!(made, folder.path().join("new/data/apps/shop"));
        assert_eq!(made.metadata().expect("there").mode() & 0o777, 0o700);
        fs::write(made.join("rows"), "1").expect("written");
        assert_eq!(make_folder(&data, None), Ok(made.clone()));
        assert!(made.join("rows").exists());
        let file = AppData { name: "shop".into(), directory: Some(made.join("rows")) };
        let error = make_folder(&file, None).expect_err("a file");
        assert!(error.contains("cannot be made") && error.contains("set `data_dir`"), "{error}");
    }

    #[test]
    fn a_data_folder_of_another_user_is_an_error_that_names_the_way_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = own_user() + 1;
        let error = must_be_usable(folder.path(), other).expect_err("another's");
        assert!(error.contains(&format!("`chown -R {other} ")), "{error}");
    }
}
