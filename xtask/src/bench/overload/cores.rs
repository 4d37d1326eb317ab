//! On which cores the three sides of the measurement run: the server that limits, the application, the load.
//!
//! Owns the choice, and the small script through which every target starts the application, so that all of them start it in
//! the same place. Server and load always have a core each. The application has one of its own where there is a third one;
//! else it shares one, and takes only what the other side of it leaves (SCHED_IDLE): whoever answers, refuses or measures
//! there does it when it has to, and all that this costs is missing from the application's answers.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use onehop_load::measure;

use crate::{Outcome, workspace};

/// Whose core the application shares where there is none for itself.
pub(super) const BESIDE: &[&str] = &["server", "load"];

/// The application's place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Home {
    /// `None` on a machine with one core.
    core: Option<usize>,
    /// Whose core it is as well.
    shared_with: Option<&'static str>,
}

impl Home {
    /// Of the cores that there are; `beside` is one of [`BESIDE`].
    pub(super) fn choose(beside: &str) -> Home {
        let (servers, loads) = measure::split_cores();
        Home::of(&servers, &loads, beside)
    }

    fn of(servers: &[usize], loads: &[usize], beside: &str) -> Home {
        match (servers, loads) {
            // The server has the first one.
            ([_, own, ..], _) => Home { core: Some(*own), shared_with: None },
            (_, [load, ..]) if beside == "load" => Home { core: Some(*load), shared_with: Some("load") },
            (servers, _) => Home { core: servers.first().copied(), shared_with: Some("server") },
        }
    }

    /// For the record and for people.
    pub(super) fn in_words(&self) -> String {
        match self.shared_with {
            None => "server, application and load have a core each".to_owned(),
            Some(other) => format!(
                "server and load have a core each; the application shares that of the {other} and takes what it leaves"
            ),
        }
    }

    /// Writes the script that starts `runtime` there. Its name is the runtime's, which tells how to speak to it.
    pub(super) fn write_script(&self, folder: &Path, runtime: &str) -> Outcome<PathBuf> {
        let found = workspace::output_of("sh", &["-c", &format!("command -v '{runtime}'")]);
        let runtime = found.ok_or_else(|| format!("there is no `{runtime}` to run the application"))?;
        let script = folder.join(Path::new(&runtime).file_name().unwrap_or("node".as_ref()));
        std::fs::write(&script, self.script(&runtime))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
        Ok(script)
    }

    fn script(&self, runtime: &str) -> String {
        let core = self.core.map(|core| format!("taskset --cpu-list {core} ")).unwrap_or_default();
        let idle = if self.shared_with.is_some() { "chrt --idle 0 " } else { "" };
        format!("#!/bin/sh\nexec {core}{idle}'{runtime}' \"$@\"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_application_has_a_core_of_its_own_where_there_are_three() {
        let home = Home::of(&[0, 1, 2], &[3], "server");
        assert_eq!(home, Home { core: Some(1), shared_with: None });
        assert_eq!(
            home.script("/usr/bin/node"),
            "#!/bin/sh\nexec taskset --cpu-list 1 '/usr/bin/node' \"$@\"\n"
        );
    }

    #[test]
    fn on_two_cores_it_takes_what_another_side_leaves() {
        assert_eq!(Home::of(&[4], &[5], "load"), Home { core: Some(5), shared_with: Some("load") });
        let home = Home::of(&[4], &[5], "server");
        let script = home.script("node");
        assert!(script.contains("exec taskset --cpu-list 4 chrt --idle 0 'node' "), "{script}");
        assert_eq!(Home::of(&[], &[], "server").core, None, "one core has no places");
    }
}
