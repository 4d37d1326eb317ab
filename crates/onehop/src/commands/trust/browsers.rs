//! The store of Chrome and Chromium on Linux: an NSS database in the user's home, which `certutil` changes.
//!
//! Whatever fails here is told and is no error: the system's store is what counts, and many machines have no browser.

use std::env;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use onehop_archive::private_folder::own_user;

use super::super::certificate_store::quoted;
use super::system_program;

/// Characters of a certificate that tell its nickname from that of another root: 72 bits of its signature.
const NICKNAME_CHARACTERS: usize = 12;

/// Whose browsers are meant: the user who asks, through sudo or directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct User {
    home: PathBuf,
    /// Another user and group than this process has.
    runs_as: Option<(u32, u32)>,
}

/// The browsers of a user.
pub(super) struct Browsers {
    certutil: Option<PathBuf>,
    user: Option<User>,
}

impl User {
    /// The user behind sudo (sudo(8) sets `SUDO_UID` and `SUDO_GID`), else this process's.
    pub(super) fn who_asks(system: &Path) -> Option<Self> {
        let number = |name| env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
        match (own_user(), number("SUDO_UID"), number("SUDO_GID")) {
            (0, Some(user), Some(group)) if user != 0 => {
                let passwd = fs::read_to_string(system.join("etc/passwd")).ok()?;
                Some(Self { home: home_of(user, &passwd)?, runs_as: Some((user, group)) })
            }
            _ => env::var_os("HOME")
                .map(PathBuf::from)
                .filter(|home| home.is_absolute())
                .map(|home| Self { home, runs_as: None }),
        }
    }
}

/// The home of a user in passwd(5).
fn home_of(user: u32, passwd: &str) -> Option<PathBuf> {
    let fields = passwd.lines().map(|line| line.split(':').collect::<Vec<_>>());
    let mut of_user = fields.filter(|fields| fields.get(2).and_then(|id| id.parse().ok()) == Some(user));
    of_user.next()?.get(5).map(PathBuf::from).filter(|home| home.is_absolute())
}

impl Browsers {
    /// The browsers of this user on the system whose files lie below `system`.
    pub(super) fn find(system: &Path, user: Option<User>) -> Self {
        Self { certutil: system_program(system, "certutil"), user }
    }

    /// Adds a root, which the file `path` holds as well; what was done or is to be done, for a person.
    pub(super) fn install(&self, certificate: &str, path: &Path) -> String {
        let Some(user) = &self.user else {
            return "no user is known whose browsers could trust it".to_owned();
        };
        let database = user.home.join(".pki/nssdb");
        let name = nickname(certificate);
        let line = format!("certutil -d sql:{} -A -t C,, -n '{name}' -i {}", quoted(&database), quoted(path));
        let Some(certutil) = self.certutil.as_ref().filter(|_| database.is_dir()) else {
            let why = if database.is_dir() {
                "certutil is not installed (Debian, Ubuntu: libnss3-tools, Fedora, Alpine: nss-tools, Arch: nss)"
            } else {
                "they have no store yet, which their first start makes"
            };
            return format!("Chrome and Chromium do not trust it yet: {why}; then run\n  {line}");
        };
        let database = format!("sql:{}", database.display());
        if self.holds(certutil, user, &database, certificate) {
            return "Chrome and Chromium trust it already".to_owned();
        }
        let file = path.display().to_string();
        let arguments = ["-d", &database, "-A", "-t", "C,,", "-n", &name, "-i", &file];
        match run(certutil, user, &arguments) {
            Ok(_) => format!("added it to {database}, for Chrome and Chromium"),
            Err(why) => format!("Chrome and Chromium do not trust it yet: {why}; run\n  {line}"),
        }
    }

    /// Removes a root; what was done or is to be done, for a person.
    pub(super) fn remove(&self, certificate: &str) -> String {
        let unchanged = "the store of Chrome and Chromium does not have it".to_owned();
        let Some(user) = &self.user else { return unchanged };
        let folder = user.home.join(".pki/nssdb");
        if !folder.is_dir() {
            return unchanged;
        }
        let (database, name) = (format!("sql:{}", folder.display()), nickname(certificate));
        let line = format!("certutil -d sql:{} -D -n '{name}'", quoted(&folder));
        let Some(certutil) = &self.certutil else {
            return format!(
                "if Chrome and Chromium trust it, remove it there, once certutil is installed:\n  {line}"
            );
        };
        if !self.holds(certutil, user, &database, certificate) {
            return unchanged;
        }
        match run(certutil, user, &["-d", &database, "-D", "-n", &name]) {
            Ok(_) => format!("removed it from {database}"),
            Err(why) => format!("Chrome and Chromium still trust it: {why}; run\n  {line}"),
        }
    }

    /// Whether this very certificate has its nickname in the database.
    fn holds(&self, certutil: &Path, user: &User, database: &str, certificate: &str) -> bool {
        let listed = run(certutil, user, &["-d", database, "-L", "-n", &nickname(certificate), "-a"]);
        listed.is_ok_and(|output| body(&String::from_utf8_lossy(&output.stdout)) == body(certificate))
    }
}

/// A nickname that no other root has.
fn nickname(certificate: &str) -> String {
    let body = body(certificate);
    let letters: Vec<char> = body.chars().filter(char::is_ascii_alphanumeric).collect();
    let from = letters.len().saturating_sub(NICKNAME_CHARACTERS);
    format!("onehop local authority {}", letters.iter().skip(from).collect::<String>())
}

/// The base64 of a certificate (PEM), without its line breaks.
fn body(certificate: &str) -> String {
    certificate.lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect()
}

/// Runs certutil as the user: root follows no link in another's home. Without input, so that it cannot ask.
fn run(certutil: &Path, user: &User, arguments: &[&str]) -> Result<Output, String> {
    let mut command = Command::new(certutil);
    command.args(arguments).stdin(Stdio::null()).env("HOME", &user.home).current_dir("/");
    if let Some((uid, gid)) = user.runs_as {
        command.uid(uid).gid(gid);
    } else if fs::metadata(&user.home).is_ok_and(|home| home.uid() != own_user()) {
        return Err(format!("{} belongs to another user", user.home.display()));
    }
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(output);
    }
    Err(format!("certutil: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

#[cfg(test)]
pub(super) mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    const ROOT: &str =
        "-----BEGIN CERTIFICATE-----\nMIIBabcdefgh\nIJKLMNOPQRSTUVWX+/==\n-----END CERTIFICATE-----\n";

    /// A shell script below `system`.
    pub(in super::super) fn make_program(system: &Path, path: &str, script: &str) {
        let path = system.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        // Beside it: a program that runs cannot be written.
        let new = path.with_extension("new");
        fs::write(&new, format!("#!/bin/sh\n{script}\n")).expect("written");
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).expect("executable");
        fs::rename(new, path).expect("renamed");
    }

    pub(in super::super) fn read(path: &Path) -> String {
        fs::read_to_string(path).expect("readable")
    }

    /// A certutil that keeps one certificate in the file `nssdb`, and a user with a browser.
    fn machine() -> (tempfile::TempDir, User) {
        let folder = tempfile::tempdir().expect("a folder");
        let kept = folder.path().join("kept");
        let script =
            format!("case \"$3\" in -A) cp \"$9\" {0} ;; -L) cat {0} ;; -D) rm {0} ;; esac", kept.display());
        make_program(folder.path(), "usr/bin/certutil", &script);
        fs::create_dir_all(folder.path().join("home/.pki/nssdb")).expect("a folder");
        let user = User { home: folder.path().join("home"), runs_as: None };
        (folder, user)
    }

    #[test]
    fn a_root_is_added_once_and_removed_again_and_no_other_one() {
        let (folder, user) = machine();
        let file = folder.path().join("root.crt");
        fs::write(&file, ROOT).expect("written");
        let browsers = Browsers::find(folder.path(), Some(user));
        assert!(browsers.install(ROOT, &file).starts_with("added it to sql:"));
        assert_eq!(browsers.install(ROOT, &file), "Chrome and Chromium trust it already");
        let other = ROOT.replace("abc", "xyz");
        assert!(browsers.remove(&other).ends_with("does not have it"));
        assert!(browsers.remove(ROOT).starts_with("removed it from sql:"));
        assert!(!folder.path().join("kept").exists());
    }

    #[test]
    fn what_could_not_be_done_comes_with_the_command_that_does_it() {
        let (folder, user) = machine();
        let file = Path::new("/etc/root.crt");
        let line = "certutil -d sql:HOME/.pki/nssdb -A -t C,, -n 'onehop local authority MNOPQRSTUVWX' -i /etc/root.crt";
        let line = line.replace("HOME", &user.home.display().to_string());
        let check = |browsers: Browsers, why: &str| {
            let text = browsers.install(ROOT, file);
            assert!(text.contains(why) && text.ends_with(&line), "{text}");
        };
        check(Browsers { certutil: None, user: Some(user.clone()) }, "certutil is not installed (Debian");
        make_program(folder.path(), "usr/bin/certutil", "echo 'a password is needed' >&2; exit 255");
        check(Browsers::find(folder.path(), Some(user.clone())), "certutil: a password is needed");
        fs::remove_dir(user.home.join(".pki/nssdb")).expect("empty");
        check(Browsers::find(folder.path(), Some(user)), "which their first start makes");
    }

    #[test]
    fn the_user_behind_sudo_has_a_home() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nbroken\nme:x:1000:1000::/home/me:/bin/sh\nno:x:7:7:::\n";
        assert_eq!(home_of(1000, passwd), Some(PathBuf::from("/home/me")));
        assert_eq!(home_of(7, passwd), None);
        assert_eq!(home_of(8, passwd), None);
    }
}
