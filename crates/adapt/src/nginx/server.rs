//! A whole configuration, and the one server of it that is translated.

use std::path::Path;
use std::sync::Arc;

use onehop_config::{Entry, Source};

use super::directive::Directive;
use super::reader::{parse, read};
use crate::paths::normal;
use crate::position::Position;
use crate::refusal::Refusal;

/// The blocks that distributions put around a part of a configuration.
const AROUND: &str = "worker_processes auto;\nevents { worker_connections 4096; }\n\
    http { default_type application/octet-stream; sendfile on; tcp_nopush on; access_log off; }\n";
/// Tables of types, where nginx keeps them.
const TYPES: &str = "/etc/nginx/mime.types";

/// A configuration with everything that it includes.
pub struct Configuration<'a> {
    path: &'a Path,
    source: &'a dyn Source,
    main: Vec<Directive>,
}

impl<'a> Configuration<'a> {
    /// Reads a configuration, whole or a part of one: a file of conf.d, or the inside of a server.
    ///
    /// # Errors
    ///
    /// What is no configuration, or cannot be read.
    pub fn read(
        path: &'a Path,
        source: &'a dyn Source,
        notes: &mut Vec<String>,
    ) -> Result<Configuration<'a>, Refusal> {
        let main = whole(path, read(path, source)?, source, notes)?;
        Ok(Configuration { path, source, main })
    }

    /// The directives of the whole file.
    pub fn main(&self) -> &[Directive] {
        &self.main
    }

    /// Those of its `http`.
    pub fn http(&self) -> &[Directive] {
        let http = self.main.iter().find(|directive| directive.name == "http");
        http.map_or(&[][..], Directive::inner)
    }

    /// All servers, in their order.
    pub fn servers(&self) -> impl Iterator<Item = &Directive> {
        self.http().iter().filter(|directive| directive.name == "server")
    }

    /// A server within these directives of `http`.
    pub fn server_of<'b>(&'b self, http: &'b [Directive], directive: &'b Directive) -> Server<'b> {
        let folder = self.path.parent().unwrap_or(self.path);
        Server { main: &self.main, http, directive, folder, source: self.source }
    }

    /// The first server that does more than lead to TLS; one without TLS before those with it.
    ///
    /// # Errors
    ///
    /// A configuration without a server.
    pub fn server(&self, notes: &mut Vec<String>) -> Result<Server<'_>, Refusal> {
        Ok(self.server_of(self.http(), choose(self.path, self.http(), notes)?))
    }
}

/// The server block that is translated, with the blocks that enclose it.
pub struct Server<'a> {
    /// The directives of the whole file.
    pub main: &'a [Directive],
    /// Those of its `http`.
    pub http: &'a [Directive],
    /// The `server`.
    pub directive: &'a Directive,
    /// The configuration's folder.
    pub folder: &'a Path,
    source: &'a dyn Source,
}

impl<'a> Server<'a> {
    /// The folder that a `root` or `alias` names: relative ones start where nginx is installed, or here.
    pub fn folder_of(&self, directive: &Directive) -> String {
        let written = directive.arg(0);
        let here = normal(&self.folder.join(written));
        if !written.starts_with('/') && !self.is_folder(&here) {
            let installed = Path::new("/usr/share/nginx").join(written);
            if self.is_folder(&installed) {
                return installed.display().to_string();
            }
        }
        here.display().to_string()
    }

    /// Where files are read.
    pub(crate) fn source(&self) -> &'a dyn Source {
        self.source
    }

    /// Whether there is a folder at a path.
    pub(crate) fn is_folder(&self, path: &Path) -> bool {
        self.source.entry(path) == Some(Entry::Folder)
    }

    /// The `upstream` of a name.
    pub fn upstream(&self, name: &str) -> Option<&'a Directive> {
        self.http.iter().find(|directive| directive.name == "upstream" && directive.arg(0) == name)
    }
}

/// A whole configuration of what may be a part: a file of conf.d, or the inside of a server.
fn whole(
    path: &Path,
    read: Vec<Directive>,
    source: &dyn Source,
    notes: &mut Vec<String>,
) -> Result<Vec<Directive>, Refusal> {
    let has = |name: &str| read.iter().any(|directive| directive.name == name);
    if has("http") {
        return Ok(read);
    }
    if !has("server") && !has("location") && !has("root") {
        return Err(Refusal::of_file(
            path,
            "it has neither a server nor a location",
            "name the file with the server: onehop try nginx.conf",
        ));
    }
    notes.push(
        "This is a part of a configuration. Around it stand the settings of a distribution: one process for each \
         core, no access log."
            .to_owned(),
    );
    let place = Position { file: Arc::from(path), line: 1 };
    let mut main = parse(path, AROUND)?;
    let inside = if has("server") {
        read
    } else {
        vec![Directive { block: Some(read), ..Directive::new("server", &[], &place) }]
    };
    for directive in &mut main {
        if let ("http", Some(block)) = (directive.name.as_str(), &mut directive.block) {
            if source.entry(Path::new(TYPES)) == Some(Entry::File) {
                block.push(Directive::new("include", &[TYPES], &place));
            }
            block.extend(inside.iter().cloned());
        }
    }
    Ok(main)
}

fn choose<'a>(path: &Path, http: &'a [Directive], notes: &mut Vec<String>) -> Result<&'a Directive, Refusal> {
    let servers: Vec<&Directive> = http.iter().filter(|directive| directive.name == "server").collect();
    let is_tls = |server: &Directive| {
        let listens = server.inner().iter().filter(|directive| directive.name == "listen");
        let mut listens = listens.peekable();
        listens.peek().is_some() && listens.all(|listen| listen.args.iter().any(|word| word.text == "ssl"))
    };
    let leads_away = |server: &Directive| {
        server
            .inner()
            .iter()
            .any(|directive| directive.name == "return" && directive.shown().contains("https://"))
    };
    let serving: Vec<&Directive> = servers.iter().copied().filter(|server| !leads_away(server)).collect();
    let chosen = serving.iter().find(|server| !is_tls(server)).or_else(|| serving.first());
    let Some(server) = chosen.or(servers.first()).copied() else {
        return Err(Refusal::of_file(
            path,
            "it has no server",
            "name the file with the server, such as /etc/nginx/sites-enabled/default",
        ));
    };
    if is_tls(server) {
        notes.push(format!(
            "The server on {} speaks TLS; it is measured without, on both sides.",
            server.place.words()
        ));
    }
    let others: Vec<String> = servers
        .iter()
        .filter(|other| other.place != server.place)
        .map(|other| other.place.line.to_string())
        .collect();
    if !others.is_empty() {
        notes.push(format!(
            "Only the server on {} is tried; those on line {} are left out.",
            server.place.words(),
            others.join(", ")
        ));
    }
    Ok(server)
}
