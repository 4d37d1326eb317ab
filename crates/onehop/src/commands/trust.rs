//! `onehop trust` and `onehop untrust`: the root of the local authority among what this machine trusts.
//!
//! `system` is the system's own store, `browsers` that of Chrome and Chromium. Asks for nothing; says what was done and
//! what was not.

mod browsers;
mod system;

use std::path::{Path, PathBuf};

use onehop_archive::private_folder::own_user;

use self::browsers::{Browsers, User};
use self::system::{Installed, Removed, SystemStore};
use super::certificate_store::{folder, quoted, root, root_or_new};
use super::standard_output::{print, print_all};
use crate::arguments::{Trust, Untrust};
use crate::failure::Failure;
use crate::own_program;

/// Where sudo looks for programs on every system that onehop knows (`secure_path` of sudoers(5)).
const SUDO_PLACES: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Firefox trusts neither the system nor ~/.pki/nssdb, but a database in each of its profiles.
const FIREFOX: &str = "Firefox has a store of its own, which was not changed: Settings, Privacy & Security, View \
                       Certificates, Authorities, Import";

pub(crate) fn trust(arguments: &Trust) -> Result<(), Failure> {
    let folder = folder(&arguments.store)?;
    let is_new = root(&folder).is_ok_and(|root| root.is_none());
    let certificate = root_or_new(&folder)?;
    if arguments.print {
        return print_all(certificate.as_bytes())
            .map_err(|error| Failure::failed(format!("cannot write to standard output: {error}")));
    }
    let machine = Machine::this(&folder)?;
    must_be_root("trust", &folder)?;
    let made = if is_new { "created the local authority" } else { "found the local authority" };
    print(&format!("{made} in {}\n", folder.display()));
    machine.trust(&certificate).map(|lines| print(&lines)).map_err(Failure::failed)
}

pub(crate) fn untrust(arguments: &Untrust) -> Result<(), Failure> {
    let folder = folder(&arguments.store)?;
    let Some(certificate) = root(&folder)? else {
        return Err(Failure::failed(format!(
            "there is no local authority in {}, so there is nothing to remove\n  \
             name the store whose root was installed:  onehop untrust --storage DIR",
            folder.display()
        )));
    };
    let machine = Machine::this(&folder)?;
    must_be_root("untrust", &folder)?;
    machine.untrust(&certificate).map(|lines| print(&lines)).map_err(Failure::failed)
}

/// What of a machine trusts certificates.
struct Machine {
    system: SystemStore,
    browsers: Browsers,
}

impl Machine {
    fn this(folder: &Path) -> Result<Self, Failure> {
        let system = SystemStore::find(Path::new("/")).ok_or_else(|| {
            Failure::failed(format!(
                "this system keeps its certificates in no place that onehop knows\n  \
                 install its package `ca-certificates`, or export the root and install it by hand:\n  \
                 onehop trust --print --storage {} > root.pem",
                quoted(folder)
            ))
        })?;
        Ok(Self { system, browsers: Browsers::find(Path::new("/"), User::who_asks(Path::new("/"))) })
    }

    /// What was done, line by line. The error is for a person.
    fn trust(&self, certificate: &str) -> Result<String, String> {
        let path = self.system.path();
        let done = match self.system.install(certificate)? {
            Installed::New => format!("installed its root as {}", path.display()),
            Installed::Already => format!("its root was installed already, as {}", path.display()),
        };
        let command = self.system.command_line();
        let browsers = self.browsers.install(certificate, path);
        Ok(format!(
            "{done}\nran {command}: programs that use the system's certificates trust it\n{browsers}\n{FIREFOX} {}\n",
            path.display()
        ))
    }

    /// What was undone, line by line. The error is for a person.
    fn untrust(&self, certificate: &str) -> Result<String, String> {
        // The browsers' first: if the system's fails, it is tried again as a whole.
        let browsers = self.browsers.remove(certificate);
        let path = self.system.path().display();
        let system = match self.system.remove(certificate)? {
            Removed::Done => format!("removed {path}\nran {}", self.system.command_line()),
            Removed::Missing => {
                format!("there is no {path}: nothing was removed from the system's certificates")
            }
            Removed::Foreign => {
                format!("left {path} alone: it is not the root of this local authority")
            }
        };
        Ok(format!("{system}\n{browsers}\nif Firefox has imported it, remove it there as well\n"))
    }
}

/// The line to type where this user may not do it. With the store itself: root's data directory is another one.
fn must_be_root(command: &str, folder: &Path) -> Result<(), Failure> {
    if own_user() == 0 {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "only root may change what this machine trusts\n  run: {}",
        sudo_line(own_program::name(), command, folder)
    )))
}

fn sudo_line(program: Option<&Path>, command: &str, folder: &Path) -> String {
    let is_found = |program: &&Path| {
        let folder = program.parent().unwrap_or(Path::new(""));
        !SUDO_PLACES.iter().any(|place| folder == Path::new(place))
    };
    let called = program.filter(is_found).map_or_else(|| "onehop".to_owned(), quoted);
    format!("sudo {called} {command} --storage {}", quoted(folder))
}

/// The program of this name in one of the places where a system has its own, whatever `PATH` says: it runs as root.
fn system_program(system: &Path, name: &str) -> Option<PathBuf> {
    let places = ["usr/sbin", "usr/bin", "sbin", "bin", "usr/local/bin"];
    places.iter().map(|place| system.join(place).join(name)).find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_with_sudo_finds_the_program_and_the_store() {
        let line = |program: &str| sudo_line(Some(Path::new(program)), "trust", Path::new("/home/a b/tls"));
        assert_eq!(line("/usr/bin/onehop"), "sudo onehop trust --storage '/home/a b/tls'");
        assert_eq!(line("/opt/onehop"), "sudo /opt/onehop trust --storage '/home/a b/tls'");
    }
}
