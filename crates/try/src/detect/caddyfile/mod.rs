//! A Caddyfile: the same file for both on another port, but that onehop runs the application itself where it can.
//!
//! `text.rs` knows its grammar, `proxy.rs` the one directive that may become an `app`, `global.rs` the options before
//! the first site. onehop-config says what else onehop cannot do, and its words are passed on with the line of the
//! user's file.

mod global;
mod imports;
pub(super) mod own;
mod proxy;
#[cfg(test)]
mod tests;
mod text;

use std::io;
use std::path::{Path, PathBuf};

use onehop_adapt::onehopfile::{indented, indented_by, word};
use onehop_config::{Entry, FileKind, FileSource, Source};

use super::behind::Behind;
use super::environment::Environment;
use super::files::{TEXT_BYTES_MAX, below, read_bounded};
use super::rivals::CADDY_HEAD;
use crate::{Found, Front, Setup, SideBySideError};
use proxy::{Proxy, proxies};
use text::{Edits, TextLine};

/// Paths that are suggested.
const PATHS_MAX: usize = 12;
/// What of the text a side-by-side run looks at.
struct File<'a> {
    path: &'a Path,
    text: &'a str,
    global: Option<&'a TextLine>,
    snippets: Vec<&'a TextLine>,
    /// Those of them that the site imports. The others are not looked at.
    imported: Vec<&'a TextLine>,
    /// The site's head and its directives.
    head: &'a TextLine,
    site: &'a [TextLine],
    others: Vec<&'a TextLine>,
    is_braced: bool,
}

/// A Caddyfile.
pub(super) fn detect(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let text =
        read_bounded(path, TEXT_BYTES_MAX).map_err(|error| SideBySideError::unreadable(path, &error))?;
    if environment.caddy.is_none() {
        return Err(SideBySideError::found(
            path.display(),
            "Caddy is not installed, so this does not run here today",
            "install it: apt-get install caddy",
        ));
    }
    let at = |line: usize| format!("{}:{line}", path.display());
    let lines = text::read(&text).map_err(|(line, cause)| {
        SideBySideError::found(at(line), cause, "caddy validate tells whether Caddy can read it")
    })?;
    let folder = path.parent().unwrap_or(path);
    let mut notes = Vec::new();
    let file = choose(path, &text, &lines, &mut notes)?;
    let proxies = proxies(&file, environment)?;
    let upstreams: Vec<_> = proxies.iter().flat_map(|proxy| proxy.upstreams.iter().cloned()).collect();
    let behind = Behind::find(&upstreams, folder, environment, &mut notes)?;
    let edits = shared_edits(&file, &mut notes);
    let caddy = for_caddy(&file, edits.clone());
    let global = global::for_onehop(&file, environment, &mut notes);
    for proxy in proxies.iter().filter(|proxy| proxy.app(&behind, folder, environment).is_some()) {
        notes.extend_from_slice(&proxy.notes);
    }
    let onehopfile = global + &for_onehop(&file, edits, &proxies, &behind, environment)?;
    let name = below(folder, path);
    let description = match upstreams.first() {
        Some(upstream) => format!(
            "a Caddy in front of {}:{} ({})",
            upstream.host,
            upstream.port,
            name.trim_start_matches("./")
        ),
        None => format!("a site of Caddy ({})", name.trim_start_matches("./")),
    };
    let guessed = guessed(&proxies, &behind);
    Ok(Setup {
        found: Found { path: path.to_owned(), description },
        folder: folder.to_owned(),
        application: behind.application,
        today: vec![Front::Caddy { file: caddy }],
        onehopfile,
        addresses: hosts(file.head),
        workers: None,
        routes: Vec::new(),
        guessed,
        skipped: Vec::new(),
        has_links: false,
        notes,
    })
}

/// Finds the site to try: the first without TLS, and none that only leads elsewhere.
fn choose<'a>(
    path: &'a Path,
    text: &'a str,
    lines: &'a [TextLine],
    notes: &mut Vec<String>,
) -> Result<File<'a>, SideBySideError> {
    let global = lines.first().filter(|line| line.words.is_empty() && line.block.is_some());
    let rest = lines.get(usize::from(global.is_some())..).unwrap_or_default();
    let is_snippet = |line: &&TextLine| line.word(0).starts_with('(') && line.block.is_some();
    let snippets: Vec<&TextLine> = rest.iter().filter(is_snippet).collect();
    let sites: Vec<&TextLine> =
        rest.iter().filter(|line| !is_snippet(line) && line.word(0) != "import").collect();
    let Some(first) = sites.first().copied() else {
        return Err(SideBySideError::found(path.display(), "it has no site", "name the file with the site"));
    };
    if first.block.is_none() {
        // A file with a single site needs no braces: the first line is its address.
        let from = rest.iter().position(|line| std::ptr::eq(line, first)).map_or(0, |at| at + 1);
        let site = rest.get(from..).unwrap_or_default();
        note_tls(first, global, notes);
        return Ok(File {
            path,
            text,
            global,
            imported: imports::imported(site, &snippets, path),
            snippets,
            head: first,
            site,
            others: Vec::new(),
            is_braced: false,
        });
    }
    let leads_away = |site: &&&TextLine| {
        !site.inner().is_empty() && site.inner().iter().all(|line| line.word(0) == "redir")
    };
    let serving: Vec<&TextLine> = sites.iter().filter(|site| !leads_away(site)).copied().collect();
    let plain = serving.iter().find(|site| !has_tls(site, global));
    let head = plain.or(serving.first()).copied().unwrap_or(first);
    let others: Vec<&TextLine> = sites.into_iter().filter(|site| !std::ptr::eq(*site, head)).collect();
    if !others.is_empty() {
        let lines: Vec<String> = others.iter().map(|other| other.line.to_string()).collect();
        notes.push(format!(
            "Only the site `{}` on line {} is tried; those on line {} are left out.",
            addresses(head),
            head.line,
            lines.join(", ")
        ));
    }
    note_tls(head, global, notes);
    let imported = imports::imported(head.inner(), &snippets, path);
    Ok(File { path, text, global, snippets, imported, head, site: head.inner(), others, is_braced: true })
}

fn addresses(head: &TextLine) -> String {
    head.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

/// The addresses of a site that names a host, without TLS; none where it answers any host.
fn hosts(head: &TextLine) -> Vec<String> {
    let host = |word: &str| -> Option<String> {
        let address = word.trim_end_matches(',');
        let (scheme, address) = address.split_once("://").unwrap_or(("", address));
        let address = address.split('/').next().unwrap_or_default();
        let (host, port) = match address.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (host, port),
            _ => (address, ""),
        };
        let is_usual = matches!((scheme, port), (_, "" | "80") | ("" | "https", "443"));
        let port = if is_usual { String::new() } else { format!(":{port}") };
        (!host.is_empty() && !host.contains(['{', '$'])).then(|| format!("http://{host}{port}"))
    };
    let hosts: Option<Vec<String>> = head.words.iter().map(|word| host(&word.text)).collect();
    hosts.unwrap_or_default()
}

/// Whether Caddy would answer it over TLS.
fn has_tls(head: &TextLine, global: Option<&TextLine>) -> bool {
    let is_off = global.is_some_and(|global| {
        global.inner().iter().any(|line| line.word(0) == "auto_https" && line.word(1) == "off")
    });
    head.words.iter().all(|word| {
        let address = word.text.trim_end_matches(',');
        let port = address.rsplit_once(':').map(|(_, port)| port);
        match address {
            _ if address.starts_with("http://") => false,
            _ if address.starts_with("https://") || port == Some("443") => true,
            _ if address.starts_with(':') || port == Some("80") => false,
            _ => !is_off,
        }
    })
}

fn note_tls(head: &TextLine, global: Option<&TextLine>, notes: &mut Vec<String>) {
    if has_tls(head, global) {
        notes.push(format!(
            "The site `{}` on line {} speaks TLS; it is measured without, on both sides.",
            addresses(head),
            head.line
        ));
    }
}

/// What is left out for both: other sites, certificates, interfaces; files are named from the root.
fn shared_edits(file: &File<'_>, notes: &mut Vec<String>) -> Edits {
    let mut edits = Edits::default();
    for other in &file.others {
        edits.replace(other.span.clone(), "");
    }
    if let Some(global) = file.global {
        edits.replace(global.span.clone(), "");
    }
    let names: Vec<&str> =
        file.snippets.iter().map(|snippet| snippet.word(0).trim_matches(['(', ')'])).collect();
    let mut pending: Vec<&TextLine> = file.site.iter().collect();
    pending.extend(file.imported.iter().flat_map(|snippet| snippet.inner()));
    while let Some(line) = pending.pop() {
        match line.word(0) {
            "tls" => {
                notes.push(format!("`tls` on line {} is left out on both sides.", line.line));
                edits.replace(line.span.clone(), "");
            }
            "bind" => edits.replace(line.span.clone(), ""),
            "import" => {
                if let Some(name) = line.words.get(1).filter(|name| !names.contains(&name.text.as_str())) {
                    let folder = file.path.parent().unwrap_or(file.path);
                    let path = super::files::normal(&folder.join(&name.text));
                    edits.replace(name.span.clone(), word(&path.display().to_string()));
                }
            }
            _ => pending.extend(line.inner()),
        }
    }
    // The names that a side-by-side run fills in are Caddy's short ones, too.
    for (at, written) in file.text.match_indices("{port}") {
        edits.replace(at..at + written.len(), "{http.request.port}");
    }
    edits
}

/// The span of the addresses.
fn head_span(head: &TextLine) -> std::ops::Range<usize> {
    let end = head.words.last().map_or(head.span.end, |word| word.span.end);
    head.span.start..end
}

fn for_caddy(file: &File<'_>, mut edits: Edits) -> String {
    let mut global = CADDY_HEAD.to_owned();
    for line in global::kept(file) {
        global.push_str(&global::written(file, line));
        global.push('\n');
    }
    let logs = logs(file);
    for line in &logs {
        edits.replace(line.span.clone(), "log {\n\t\toutput file {scratch}/access.log\n\t}");
    }
    edits.replace(head_span(file.head), "http://:{port}");
    let (text, _) = edits.apply(file.text);
    format!("{{\n{}}}\n\n{}", indented(&global), braced(file, &squeezed(&text), "http://:{port}"))
}

/// Without the empty lines that what was left out leaves behind.
fn squeezed(text: &str) -> String {
    let mut out = String::new();
    let mut was_empty = true;
    for line in text.lines() {
        let is_empty = line.trim().is_empty();
        if !(is_empty && was_empty) {
            out.push_str(if is_empty { "" } else { line.trim_end() });
            out.push('\n');
        }
        was_empty = is_empty;
    }
    out.trim_end().to_owned()
}

/// The access logs of the site.
fn logs<'a>(file: &File<'a>) -> Vec<&'a TextLine> {
    let snippets = file.imported.iter().flat_map(|snippet| snippet.inner());
    file.site.iter().chain(snippets).filter(|line| line.word(0) == "log").collect()
}

fn for_onehop(
    file: &File<'_>,
    mut edits: Edits,
    proxies: &[Proxy<'_>],
    behind: &Behind,
    environment: &Environment,
) -> Result<String, SideBySideError> {
    let folder = file.path.parent().unwrap_or(file.path);
    for line in logs(file) {
        edits.replace(line.span.clone(), "log {\n\t\toutput file {scratch}/onehop-access.log\n\t}");
    }
    for proxy in proxies {
        let Some(app) = proxy.app(behind, folder, environment) else { continue };
        let indentation = indentation(file.text, proxy.line.span.start);
        let app = indented_by(indentation, &app);
        edits.replace(proxy.line.span.clone(), app.trim().to_owned());
    }
    edits.replace(head_span(file.head), ":{port}");
    let (text, origins) = edits.apply(file.text);
    check(file, folder, &text, &origins, environment)?;
    Ok(braced(file, &squeezed(&text), ":{port}"))
}

/// The text with braces around its site, also where that is the only one and had none.
fn braced(file: &File<'_>, text: &str, address: &str) -> String {
    match text.split_once(address) {
        Some((before, body)) if !file.is_braced => {
            format!("{before}{address} {{\n{}}}\n", indented(body.trim_start_matches('\n')))
        }
        _ => format!("{text}\n"),
    }
}

/// The white space before a place in its line.
fn indentation(text: &str, at: usize) -> &str {
    let start = text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1);
    let before = text.get(start..at).unwrap_or_default();
    if before.trim().is_empty() { before } else { "" }
}

/// The text in place of the file, everything else as it is.
struct InPlace<'a> {
    path: PathBuf,
    folder: &'a Path,
    text: &'a str,
    environment: &'a Environment,
}

impl Source for InPlace<'_> {
    fn read(&self, path: &Path) -> io::Result<String> {
        if path == self.path { Ok(self.text.to_owned()) } else { FileSource.read(path) }
    }
    fn entry(&self, path: &Path) -> Option<Entry> {
        FileSource.entry(path)
    }
    fn glob(&self, pattern: &Path) -> io::Result<Vec<PathBuf>> {
        FileSource.glob(pattern)
    }
    fn env(&self, name: &str) -> Option<String> {
        self.environment.variable(name).map(str::to_owned)
    }
    fn working_directory(&self) -> PathBuf {
        self.folder.to_owned()
    }
}

/// What onehop cannot do, in its own words and with the user's line.
fn check(
    file: &File<'_>,
    folder: &Path,
    text: &str,
    origins: &[usize],
    environment: &Environment,
) -> Result<(), SideBySideError> {
    // One line stays one line, so that the lines of the two texts can be told from each other.
    let text = text.replace("{port}", "8080").replace("{scratch}", "/tmp");
    let path = file.path.to_owned();
    let source = InPlace { path: path.clone(), folder, text: &text, environment };
    let Err(problems) = onehop_config::load(&path, FileKind::Caddyfile, &source) else { return Ok(()) };
    let more = problems.len().saturating_sub(1);
    let Some(first) = problems.into_iter().next() else { return Ok(()) };
    let own = first.file.name == path.display().to_string();
    let line = first.line as usize;
    let line = if own { origins.get(line.saturating_sub(1)).copied().unwrap_or(line) } else { line };
    let written =
        if own { file.text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim() } else { "" };
    let shown = if written.is_empty() { String::new() } else { format!("`{written}`: ") };
    let others = match more {
        0 => String::new(),
        1 => " (and one thing more)".to_owned(),
        more => format!(" (and {more} things more)"),
    };
    Err(SideBySideError::found(
        format!("{}:{line}", first.file.name),
        format!("{shown}onehop cannot do this: {}{others}", first.message),
        first.help.unwrap_or_else(|| "take it out of a copy of the file, and try that".to_owned()),
    ))
}

/// The prefixes that are passed on, and the application's routes behind them.
fn guessed(proxies: &[Proxy<'_>], behind: &Behind) -> Vec<String> {
    let mut paths = Vec::new();
    for proxy in proxies {
        let prefix = proxy.prefix.trim_end_matches('*').trim_end_matches('/');
        if prefix.starts_with('/') {
            paths.push(format!("{prefix}/"));
        }
        for path in &behind.guessed {
            if proxy.is_taken_off {
                paths.push(format!("{prefix}{path}"));
            } else if prefix.is_empty() || path.starts_with(&format!("{prefix}/")) || path == prefix {
                paths.push(path.clone());
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    paths.retain(|path| seen.insert(path.clone()));
    paths.truncate(PATHS_MAX);
    paths
}
