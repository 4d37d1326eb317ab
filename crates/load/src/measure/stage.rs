//! What has to be there before a server can start: files with its port in them, and servers behind it.
//!
//! Owns the names in braces and what they stand for. Everything it makes is gone when [`Staged`] is dropped: servers
//! behind are ended, the work folder is removed.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::{Server, Start, StartError, port, ready};
use crate::plan::{Expect, Protocol, Request, Timeouts};
use crate::url::{Address, Url};

/// A file that is larger is no configuration; it would be read for each start.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// A server and its surroundings. Words, variables and files may name, in braces, `port` (its own), `work` (a new folder
/// for each start), `folder` (that in which it runs), each server behind it (that one's port), and each of the files (where it was written to).
#[derive(Debug, Clone)]
pub struct Stage {
    /// The server itself.
    pub start: Start,
    /// Files that are filled in and written into the work folder for each start.
    pub files: Vec<PathBuf>,
    /// Servers that start before it, in this order, and end after it.
    pub behind: Vec<Behind>,
}

/// A server behind another one.
#[derive(Debug, Clone)]
pub struct Behind {
    /// The placeholder of its port.
    pub name: String,
    /// How it is started.
    pub start: Start,
    /// What it uses counts as used by the server before it.
    pub is_weighed: bool,
}

/// A stage that was set: the server may start now.
#[derive(Debug)]
pub struct Staged {
    /// How it is started.
    pub start: Start,
    behind: Vec<Server>,
    _work: TempDir,
}

impl Staged {
    /// Ends what is behind; what is still there 300 ms after `is_hurried` says so is killed.
    pub fn stop_hurried_by(&self, is_hurried: &dyn Fn() -> bool) {
        for server in &self.behind {
            server.stop_hurried_by(is_hurried);
        }
    }
}

/// Placeholders and their values.
struct Names(BTreeMap<String, String>);

impl Stage {
    /// Starts what is behind on these cores, waits until each answers, and fills the files in; `None` where somebody broke
    /// it off.
    ///
    /// # Errors
    /// Where a server behind does not start or answer, or a file cannot be read or written.
    pub fn set(
        &self,
        cores: &[usize],
        timeouts: Timeouts,
        is_broken_off: &dyn Fn() -> bool,
    ) -> Result<Option<Staged>, StartError> {
        let work = TempDir::with_prefix("onehop-bench-").map_err(|source| StartError::File {
            file: std::env::temp_dir().display().to_string(),
            source,
        })?;
        let mut names = Names(BTreeMap::new());
        names.set("work", work.path().display().to_string());
        if let Some(folder) = &self.start.directory {
            names.set("folder", folder.display().to_string());
        }
        let mut behind = Vec::new();
        let mut weighed = self.start.behind.clone();
        for one in &self.behind {
            let server = Server::start(&names.filled_start(&one.start, one.start.port), cores)?;
            let (request, within) = (any_answer(server.port()), one.start.ready_within);
            if ready::wait_until_ready_unless(&server, &request, timeouts, within, is_broken_off)?.is_none() {
                return Ok(None);
            }
            names.set(&one.name, server.port().to_string());
            if one.is_weighed {
                weighed.push(Address::Tcp((Ipv4Addr::LOCALHOST, server.port()).into()));
            }
            behind.push(server);
        }
        let program = || self.start.words.first().cloned().unwrap_or_default();
        let own = self.start.port.or_else(port::free_port);
        let own = own.ok_or_else(|| StartError::NoPort { program: program() })?;
        names.set("port", own.to_string());
        for file in &self.files {
            names.fill_in(file, work.path())?;
        }
        let start = Start { behind: weighed, ..names.filled_start(&self.start, Some(own)) };
        Ok(Some(Staged { start, behind, _work: work }))
    }
}

impl Names {
    fn set(&mut self, name: &str, value: String) {
        self.0.insert(format!("{{{name}}}"), value);
    }

    fn filled(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    /// The text that a shell gets has its values quoted: a folder with a blank in its name stays one word.
    fn filled_words(&self, words: &[String]) -> Vec<String> {
        let quoted = || Names(self.0.iter().map(|(name, value)| (name.clone(), quote(value))).collect());
        match words {
            [shell, option, text] if shell == "sh" && option == "-c" => {
                vec![shell.clone(), option.clone(), quoted().filled(text)]
            }
            words => words.iter().map(|word| self.filled(word)).collect(),
        }
    }

    fn filled_start(&self, start: &Start, port: Option<u16>) -> Start {
        let environment = start.environment.iter().map(|(name, value)| (name.clone(), self.filled(value)));
        Start {
            words: self.filled_words(&start.words),
            environment: environment.collect(),
            port,
            ..start.clone()
        }
    }

    /// Writes the file, with names filled in, into the folder, and has its own name stand for where it is.
    fn fill_in(&mut self, file: &Path, folder: &Path) -> Result<(), StartError> {
        let failed = |source| StartError::File { file: file.display().to_string(), source };
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.ok_or_else(|| failed(io::Error::other("it has no name")))?;
        if std::fs::metadata(file).map_err(failed)?.len() > FILE_BYTES_MAX {
            return Err(failed(io::Error::other("it is larger than 1 MiB, and no configuration")));
        }
        let text = std::fs::read_to_string(file).map_err(failed)?;
        let written = folder.join(&name);
        std::fs::write(&written, self.filled(&text)).map_err(failed)?;
        self.set(&name, written.display().to_string());
        Ok(())
    }
}

/// As one word of a shell (POSIX, Shell Command Language, section 2.2.2); plain words stay as they are.
fn quote(value: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-:".contains(letter);
    if value.chars().all(is_plain) { value.to_owned() } else { format!("'{}'", value.replace('\'', "'\\''")) }
}

/// What is asked until a server behind answers: it may not know `/`.
fn any_answer(port: u16) -> Request {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    Request {
        name: "/".to_owned(),
        url: Url::of(address),
        address: Address::Tcp(address),
        tls: None,
        protocol: Protocol::Http1,
        method: "GET".to_owned(),
        fields: Vec::new(),
        body: None,
        weight: 1,
        expect: Expect::Any,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn start(words: &[&str]) -> Start {
        Start {
            words: words.iter().map(|word| (*word).to_owned()).collect(),
            environment: vec![("AT".to_owned(), "{work}".to_owned())],
            directory: None,
            port: None,
            behind: Vec::new(),
            ready_within: Duration::from_secs(10),
        }
    }

    #[test]
    fn files_get_the_port_and_words_get_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("server.conf");
        std::fs::write(&file, "listen {port}; root {work}; { keep }").unwrap();
        let stage =
            Stage { start: start(&["server", "-c", "{server.conf}"]), files: vec![file], behind: Vec::new() };
        let staged = stage.set(&[], Timeouts::default(), &|| false).unwrap().unwrap();
        let (port, written) = (staged.start.port.unwrap(), &staged.start.words[2]);
        let work = &staged.start.environment[0].1;
        assert_eq!(
            std::fs::read_to_string(written).unwrap(),
            format!("listen {port}; root {work}; {{ keep }}")
        );
        let work = PathBuf::from(work);
        drop(staged);
        assert!(!work.exists(), "what is made for a start goes with it");
    }

    #[test]
    fn a_shell_gets_a_value_as_one_word() {
        let mut names = Names(BTreeMap::new());
        names.set("folder", "/srv/it's mine".to_owned());
        names.set("port", "8080".to_owned());
        let words = ["sh", "-c", "cd {folder} && ./serve {port}"].map(str::to_owned);
        assert_eq!(names.filled_words(&words)[2], r"cd '/srv/it'\''s mine' && ./serve 8080");
        assert_eq!(names.filled_words(&["{folder}/serve".to_owned()]), ["/srv/it's mine/serve"]);
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let stage = Stage {
            start: start(&["server"]),
            files: vec![PathBuf::from("/nowhere/server.conf")],
            behind: Vec::new(),
        };
        let error = stage.set(&[], Timeouts::default(), &|| false).unwrap_err().to_string();
        assert!(error.contains("/nowhere/server.conf"), "{error}");
    }
}
