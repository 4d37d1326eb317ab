//! Today's side: the application alone, or behind nginx or Caddy.

use std::path::{Path, PathBuf};

use onehop_bench::compare::Source;
use onehop_load::measure;
use onehop_load::measure::Start;

use super::{
    READY_WITHIN, Runs, Stack, StackBuilder, Tells, fill, is_root, loopback, scratch, starter, write,
};
use crate::SideBySideError;
use crate::setup::{AppPort, Application, Front};

/// Where nginx is asked for its own figures.
const STUB_STATUS_PATH: &str = "/onehop-stub-status";

/// A front's command before the starter is put around it.
struct Command {
    words: Vec<String>,
    environment: Vec<(String, String)>,
}

impl StackBuilder<'_> {
    /// The stack with this front.
    pub(crate) fn today(&mut self, front: &Front) -> Result<Stack, SideBySideError> {
        match front {
            Front::None => self.application_itself(),
            Front::Nginx { conf } => self.behind_nginx(conf),
            Front::Caddy { file } => self.behind_caddy(file),
        }
    }

    fn application_itself(&mut self) -> Result<Stack, SideBySideError> {
        let Some(application) = &self.setup.application else {
            return Err(SideBySideError::Measurement(
                "there is nothing that serves these files today: install nginx or Caddy to compare with"
                    .to_owned(),
            ));
        };
        let (source, address) = match self.application {
            Runs::Apart(address) => (Source::Running, address),
            Runs::WithEach => {
                let port = match application.port {
                    AppPort::Fixed(port) => port,
                    _ => self.port()?,
                };
                let start = Start {
                    words: application.words.clone(),
                    environment: application.environment.clone(),
                    directory: Some(application.directory.clone()),
                    port: Some(port),
                    behind: Vec::new(),
                    ready_within: READY_WITHIN,
                };
                (Source::Command(start), loopback(port))
            }
        };
        Ok(Stack {
            name: short(application),
            words: format!("{} alone", application_words(application)),
            telling: source.clone(),
            source,
            tells: Tells::Nothing("it counts nothing by itself"),
            address,
            app_port: None,
            _scratch: None,
        })
    }

    fn behind_nginx(&mut self, conf: &str) -> Result<Stack, SideBySideError> {
        let program = installed(self.environment.nginx.clone(), "nginx")?;
        let folder = scratch()?;
        let (port, app_port) = (self.port()?, self.app_port()?);
        let status = loopback(self.port()?);
        let conf = fill(conf, port, app_port, folder.path());
        let telling = match has_stub_status(&program) {
            true => {
                with_stub_status(&conf, status.port()).ok_or("its configuration has no place for stub_status")
            }
            false => Err("this nginx is built without stub_status"),
        };
        let command = |name: &str, conf: &str| -> Result<Command, SideBySideError> {
            let file = write(folder.path().join(name), conf)?;
            let mut words = vec![text_of(&program), "-p".to_owned(), text_of(folder.path())];
            words.extend(["-c".to_owned(), text_of(&file)]);
            let more = main_directives(conf, is_root());
            if !more.is_empty() {
                words.extend(["-g".to_owned(), more]);
            }
            Ok(Command { words, environment: Vec::new() })
        };
        let start = |this: &Self, name: &str, conf: &str| {
            this.start(
                command(&format!("{name}.conf"), conf)?,
                &format!("{name}.sh"),
                folder.path(),
                port,
                app_port,
            )
        };
        let source = start(self, "nginx", &conf)?;
        let (telling, tells) = match telling {
            Ok(conf) => (start(self, "nginx-telling", &conf)?, Tells::StubStatus(status)),
            Err(why) => (source.clone(), Tells::Nothing(why)),
        };
        let version = measure::version_of(&text_of(&program)).unwrap_or_else(|| "nginx".to_owned());
        Ok(self.with_front("nginx", &version, source, telling, tells, (port, app_port), folder))
    }

    fn behind_caddy(&mut self, file: &str) -> Result<Stack, SideBySideError> {
        let program = installed(self.environment.caddy.clone(), "caddy")?;
        let folder = scratch()?;
        let (port, app_port) = (self.port()?, self.app_port()?);
        let text = fill(file, port, app_port, folder.path());
        let path = write(folder.path().join("Caddyfile"), &text)?;
        let words = ["run", "--adapter", "caddyfile", "--config"].map(str::to_owned);
        let mut words = [vec![text_of(&program)], words.to_vec()].concat();
        words.push(text_of(&path));
        // Caddy keeps certificates and its last configuration in these.
        let home = text_of(folder.path());
        let environment =
            ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"].map(|name| (name.to_owned(), home.clone()));
        let command = Command { words, environment: environment.to_vec() };
        let source = self.start(command, "start.sh", folder.path(), port, app_port)?;
        let version = measure::version_of(&text_of(&program)).unwrap_or_else(|| "Caddy".to_owned());
        let tells = Tells::Nothing("Caddy counts requests only where its configuration asks for metrics");
        Ok(self.with_front("caddy", &version, source.clone(), source, tells, (port, app_port), folder))
    }

    /// The front's command, with the application's before it where that is to be started.
    fn start(
        &self,
        front: Command,
        script: &str,
        folder: &Path,
        port: u16,
        app_port: Option<u16>,
    ) -> Result<Source, SideBySideError> {
        let (mut words, mut environment) = (front.words, front.environment);
        if let (Some(application), Some(app_port)) = (self.application_to_start(), app_port) {
            // The application gets its usual home.
            let mut front = vec!["env".to_owned()];
            front.extend(environment.drain(..).map(|(name, value)| format!("{name}={value}")));
            front.extend(words);
            let text = starter::script(application, app_port, &self.setup.folder, &front);
            let file = write(folder.join(script), &text)?;
            words = vec!["/bin/sh".to_owned(), text_of(&file)];
        }
        Ok(Source::Command(Start {
            words,
            environment,
            directory: Some(self.setup.folder.clone()),
            port: Some(port),
            behind: self.behind(),
            ready_within: READY_WITHIN,
        }))
    }

    #[expect(clippy::too_many_arguments, reason = "each is one field of what is made")]
    fn with_front(
        &self,
        name: &str,
        version: &str,
        source: Source,
        telling: Source,
        tells: Tells,
        (port, app_port): (u16, Option<u16>),
        folder: tempfile::TempDir,
    ) -> Stack {
        let application = self.setup.application.as_ref();
        let behind = application.map(|application| {
            let running = matches!(application.port, AppPort::Running(_));
            let words = application_words(application);
            if running {
                format!(" in front of {words}, which runs already")
            } else {
                format!(" in front of {words}")
            }
        });
        Stack {
            name: application
                .map_or_else(|| name.to_owned(), |application| format!("{name} + {}", short(application))),
            words: format!("{version}{}", behind.unwrap_or_default()),
            source,
            telling,
            tells,
            address: loopback(port),
            app_port: self.application_to_start().and(app_port),
            _scratch: Some(folder),
        }
    }
}

/// The application in words: `Node v20.20.2 (server.js)`.
pub(super) fn application_words(application: &Application) -> String {
    if let AppPort::Running(address) = application.port {
        return format!("the server at {address}");
    }
    let Some((program, arguments)) = application.words.split_first() else {
        return "the application".to_owned();
    };
    let version = measure::version_of(program);
    let version = version.map(|version| match version.strip_prefix("node ") {
        Some(number) => format!("Node {number}"),
        None => version.clone(),
    });
    match version {
        Some(version) if arguments.is_empty() => version,
        Some(version) => format!("{version} ({})", shown(arguments, &application.directory)),
        None => shown(&application.words, &application.directory),
    }
}

/// Its program's name.
fn short(application: &Application) -> String {
    if matches!(application.port, AppPort::Running(_)) {
        return "the running server".to_owned();
    }
    let program = application.words.first().map_or("application", String::as_str);
    match Path::new(program).file_name().unwrap_or_default().to_string_lossy().as_ref() {
        "sh" | "bash" | "env" => "application".to_owned(),
        name => name.to_owned(),
    }
}

/// Words of a command; paths below the folder without it.
fn shown(words: &[String], folder: &Path) -> String {
    let below = |word: &String| match Path::new(word).strip_prefix(folder) {
        Ok(rest) => rest.to_string_lossy().into_owned(),
        Err(_) => word.clone(),
    };
    words.iter().map(below).collect::<Vec<_>>().join(" ")
}

fn installed(found: Option<PathBuf>, program: &str) -> Result<PathBuf, SideBySideError> {
    found.ok_or_else(|| SideBySideError::Side {
        side: program.to_owned(),
        cause: "it is not installed, or not in PATH".to_owned(),
        next: format!("install {program}, or name what runs without it"),
    })
}

/// Whether this nginx can tell of itself; it says so with what it was built with.
fn has_stub_status(program: &Path) -> bool {
    let output = std::process::Command::new(program).arg("-V").output();
    output.is_ok_and(|output| {
        let text = [output.stderr, output.stdout].concat();
        String::from_utf8_lossy(&text).contains("http_stub_status_module")
    })
}

/// What the command adds where the configuration is silent. Started by root, nginx reads files as `nobody`, who cannot
/// see into a home folder; onehop, started by the same user, can.
fn main_directives(conf: &str, is_root: bool) -> String {
    let has = |name: &str| conf.lines().any(|line| line.split_whitespace().next() == Some(name));
    let wanted = [("daemon", "daemon off;", true), ("user", "user root;", is_root)];
    let missing = wanted.iter().filter(|(name, _, is_wanted)| *is_wanted && !has(name));
    missing.map(|(_, directive, _)| *directive).collect::<Vec<_>>().join(" ")
}

/// The configuration with one more server, which answers from nginx's own counters.
fn with_stub_status(conf: &str, port: u16) -> Option<String> {
    let server = format!(
        "\nserver {{ listen 127.0.0.1:{port}; access_log off; location = {STUB_STATUS_PATH} {{ stub_status; }} }}\n"
    );
    let mut at = 0;
    for line in conf.split_inclusive('\n') {
        let is_http =
            line.trim_start().strip_prefix("http").is_some_and(|rest| rest.trim_start().starts_with('{'));
        if is_http {
            let brace = at + line.find('{')? + 1;
            let (before, after) = conf.split_at_checked(brace)?;
            return Some(format!("{before}{server}{after}"));
        }
        at += line.len();
    }
    None
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// Where nginx is asked for its own figures.
pub(crate) fn stub_status_path() -> &'static str {
    STUB_STATUS_PATH
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_says_what_the_configuration_does_not() {
        assert_eq!(main_directives("events {}\n", false), "daemon off;");
        assert_eq!(main_directives("events {}\n", true), "daemon off; user root;");
        assert_eq!(main_directives("\tdaemon off;\nuser www-data;\n", true), "");
        assert_eq!(main_directives("daemon off;\nproxy_set_header user x;\n", true), "user root;");
    }

    #[test]
    fn nginx_gets_one_more_server_that_tells_of_it() {
        let conf = "events {}\nhttp {\n\tserver { listen 1; }\n}\n";
        let text = with_stub_status(conf, 9).unwrap();
        assert!(text.starts_with("events {}\nhttp {\nserver { listen 127.0.0.1:9; "), "{text}");
        assert!(text.ends_with("\n\tserver { listen 1; }\n}\n"), "{text}");
        assert_eq!(with_stub_status("stream {\n}\n", 9), None);
    }
}
