//! What the sources of an application suggest without being run: its routes, its variables.
//!
//! Text is searched and not parsed, so routes are guesses: they are listed, and asked only where a person wants that
//! (`route.rs`). Routes that are seen to answer without end are left out.

use std::path::{Path, PathBuf};

use super::files::{read_bounded, walk};

/// Files that are read.
const FILES_MAX: usize = 200;
/// Bytes of one of them: more is a bundle.
const FILE_BYTES_MAX: u64 = 512 * 1024;
/// Bytes of all of them.
const BYTES_MAX: usize = 8 * 1024 * 1024;
/// Routes that are listed.
const PATHS_MAX: usize = 24;
/// Letters of a route: more is no route.
const PATH_LETTERS_MAX: usize = 200;
/// Bytes behind a route's name that are searched for a sign of a stream.
const HANDLER_BYTES: usize = 1500;
/// Files of a folder of static files that are listed.
const STATIC_FILES_MAX: usize = 2;
/// Routers within routers.
const MOUNT_DEPTH_MAX: usize = 4;
/// Routers that are put under a path; the text of who does it is searched for each file.
const MOUNTS_MAX: usize = 100;

/// One source file.
#[derive(Debug)]
struct Source {
    path: PathBuf,
    text: String,
}

/// What the sources tell.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RoutesFound {
    /// Paths of GET routes beside `/`, the shallowest first; parameters stay as they are written.
    pub(super) routes: Vec<String>,
    /// Names of variables that they read.
    pub(super) variables: Vec<String>,
}

/// Reads the sources below a folder, the main file first.
pub(super) fn tell(folder: &Path, main: Option<&Path>) -> RoutesFound {
    let is_source = |path: &Path| {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        ["js", "mjs", "cjs", "ts", "mts", "cts"].contains(&ending.as_ref())
            && !path.to_string_lossy().ends_with(".d.ts")
    };
    let mut paths: Vec<PathBuf> = main.map(Path::to_owned).into_iter().collect();
    for path in walk(folder, FILES_MAX, is_source) {
        if Some(path.as_path()) != main {
            paths.push(path);
        }
    }
    let mut bytes = 0;
    let mut sources = Vec::new();
    for path in paths {
        let Ok(text) = read_bounded(&path, FILE_BYTES_MAX) else { continue };
        bytes += text.len();
        if bytes > BYTES_MAX {
            break;
        }
        sources.push(Source { path, text: without_comments(&text) });
    }
    let mut reported = RoutesFound::default();
    let mounted = all_mounts(&sources);
    for source in &sources {
        reported.variables.extend(variables(&source.text));
        for prefix in prefixes(source, &mounted) {
            for path in routes(&source.text).chain(static_paths(source, folder)) {
                let path = joined(&prefix, &path);
                if is_route(&path) && !reported.routes.contains(&path) {
                    reported.routes.push(path);
                }
            }
        }
    }
    reported.variables.sort();
    reported.variables.dedup();
    reported.routes.sort_by_key(|path| path.matches('/').count());
    reported.routes.truncate(PATHS_MAX);
    reported
}

/// The text with its comments blanked; strings stay, also those that hold `//`.
pub(super) fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    let mut quote: Option<char> = None;
    while let Some(character) = characters.next() {
        match (quote, character) {
            (Some(_), '\\') => {
                out.push(character);
                out.extend(characters.next());
            }
            (Some(open), _) => {
                out.push(character);
                // A quote left open at a line's end was an apostrophe in a regular expression.
                if character == open || (character == '\n' && open != '`') {
                    quote = None;
                }
            }
            (None, '"' | '\'' | '`') => {
                quote = Some(character);
                out.push(character);
            }
            (None, '/') if characters.peek() == Some(&'/') => {
                while characters.peek().is_some_and(|next| *next != '\n') {
                    characters.next();
                }
            }
            (None, '/') if characters.peek() == Some(&'*') => {
                let mut before = ' ';
                for next in characters.by_ref().skip(1) {
                    if before == '*' && next == '/' {
                        break;
                    }
                    before = next;
                }
                out.push(' ');
            }
            _ => out.push(character),
        }
    }
    out
}

/// Names behind `process.env.`, `process.env['…']` and `Bun.env.`, and of `const { A, B } = process.env`.
fn variables(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for marker in ["process.env.", "Bun.env.", "process.env['", "process.env[\"", "import.meta.env."] {
        for (at, _) in text.match_indices(marker) {
            let rest = text.get(at + marker.len()..).unwrap_or_default();
            let name: String =
                rest.chars().take_while(|next| next.is_ascii_alphanumeric() || *next == '_').collect();
            if super::shell::is_name(&name) {
                names.push(name);
            }
        }
    }
    for (at, _) in text.match_indices("} = process.env") {
        let before = text.get(..at).unwrap_or_default();
        let inside = before.rsplit_once('{').map_or("", |(_, inside)| inside);
        let listed = inside.split(',').filter_map(|name| name.split([':', '=']).next()).map(str::trim);
        names.extend(listed.filter(|name| super::shell::is_name(name)).map(str::to_owned));
    }
    names
}

/// The literal paths of GET routes.
fn routes(text: &str) -> impl Iterator<Item = String> + '_ {
    let called = text.match_indices(".get(").filter_map(|(at, marker)| {
        let receiver = identifier_before(text, at);
        if !is_router(receiver) {
            return None;
        }
        let (path, rest) = literal(text.get(at + marker.len()..)?)?;
        // `map.get('/x')` has no handler behind its name.
        (rest.trim_start().starts_with(',') && !is_stream(rest)).then(|| path.to_owned())
    });
    let compared = text.match_indices("=== ").filter_map(|(at, marker)| {
        let before = identifier_before(text, text.get(..at)?.trim_end().len()).to_ascii_lowercase();
        let (path, rest) = literal(text.get(at + marker.len()..)?)?;
        let is_path = before.ends_with("url") || before.ends_with("path") || before.ends_with("pathname");
        (is_path && !is_stream(rest)).then(|| path.to_owned())
    });
    let cases = text.match_indices("case ").filter_map(|(at, marker)| {
        let (path, rest) = literal(text.get(at + marker.len()..)?)?;
        (rest.trim_start().starts_with(':') && !is_stream(rest)).then(|| path.to_owned())
    });
    let declared = text.match_indices("@Get(").filter_map(|(at, marker)| {
        let rest = text.get(at + marker.len()..)?;
        let path = decorated(rest)?;
        let controller = text.get(..at)?.rfind("@Controller(").map(|at| at + "@Controller(".len());
        let prefix = controller.and_then(|at| decorated(text.get(at..)?)).unwrap_or_default();
        (!is_stream(rest)).then(|| format!("/{}", joined(&prefix, &path).trim_start_matches('/')))
    });
    called.chain(compared).chain(cases).chain(declared)
}

/// Whether what follows, up to the next route, answers with something that does not end.
fn is_stream(rest: &str) -> bool {
    let end = rest.char_indices().map(|(at, _)| at).nth(HANDLER_BYTES).unwrap_or(rest.len());
    let handler = rest.get(..end).unwrap_or_default();
    let handler = handler.split(".get(").next().unwrap_or_default();
    ["event-stream", "streamSSE", "setInterval(", "upgradeWebSocket("]
        .iter()
        .any(|sign| handler.contains(sign))
}

/// The word that ends at a place.
fn identifier_before(text: &str, at: usize) -> &str {
    let before = text.get(..at).unwrap_or_default();
    let start = before
        .char_indices()
        .rev()
        .take_while(|(_, character)| character.is_alphanumeric() || *character == '_' || *character == '$')
        .last()
        .map_or(at, |(start, _)| start);
    text.get(start..at).unwrap_or_default()
}

fn is_router(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["app", "router", "server", "fastify", "api", "routes"].iter().any(|word| name.ends_with(word))
        || name == "r"
}

/// A literal path at the beginning of a text, and what stands behind it.
fn literal(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|quote| ['"', '\'', '`'].contains(quote))?;
    let (path, rest) = text.get(1..)?.split_once(quote)?;
    path.starts_with('/').then_some((path, rest))
}

/// The path in a decorator's parentheses, which may be left out.
fn decorated(text: &str) -> Option<String> {
    let inside = text.split(')').next()?.trim();
    if inside.is_empty() {
        return Some(String::new());
    }
    let path = inside.trim_matches(['"', '\'', '`']);
    let is_literal = inside.len() == path.len() + 2;
    is_literal.then(|| format!("/{}", path.trim_matches('/')))
}

/// Under which paths a file's routes are mounted; `""` for a file that nobody mounts.
fn prefixes(source: &Source, all: &[Mount<'_>]) -> Vec<String> {
    let own = base_path(&source.text);
    let mut found = mounts(&source.path, all, 0);
    if found.is_empty() {
        found.push(String::new());
    }
    found
        .iter()
        .map(|prefix| joined(prefix, &own))
        .map(|path| path.trim_end_matches('/').to_owned())
        .collect()
}

/// Hono's `.basePath('/api')`.
fn base_path(text: &str) -> String {
    let at = text.find(".basePath(").map(|at| at + ".basePath(".len());
    at.and_then(|at| literal(text.get(at..)?)).map(|(path, _)| path.to_owned()).unwrap_or_default()
}

/// A router that is put under a path: `app.use('/api', routes)`.
struct Mount<'a> {
    from: &'a Source,
    prefix: &'a str,
    arguments: &'a str,
}

fn all_mounts(sources: &[Source]) -> Vec<Mount<'_>> {
    let mut found = Vec::new();
    for from in sources {
        for marker in [".use(", ".route("] {
            for (at, _) in from.text.match_indices(marker) {
                let Some(rest) = from.text.get(at + marker.len()..) else { continue };
                let Some((prefix, rest)) = literal(rest) else { continue };
                let Some(rest) = rest.trim_start().strip_prefix(',') else { continue };
                let end = rest.find([';', '\n']).unwrap_or(rest.len());
                let arguments = rest.get(..end).unwrap_or_default();
                if found.len() < MOUNTS_MAX {
                    found.push(Mount { from, prefix, arguments });
                }
            }
        }
    }
    found
}

fn mounts(path: &Path, all: &[Mount<'_>], depth: usize) -> Vec<String> {
    if depth >= MOUNT_DEPTH_MAX {
        return Vec::new();
    }
    let mut found = Vec::new();
    for mount in all.iter().filter(|mount| mount.from.path != path) {
        if found.len() >= PATHS_MAX || !leads_to(mount.arguments, mount.from, path) {
            continue;
        }
        let above = mounts(&mount.from.path, all, depth + 1);
        if above.is_empty() {
            found.push(mount.prefix.to_owned());
        }
        found.extend(above.iter().map(|above| joined(above, mount.prefix)));
    }
    found.dedup();
    found
}

/// Whether the arguments of a `use` are what another file exports.
fn leads_to(arguments: &str, from: &Source, path: &Path) -> bool {
    let names = |text: &str| {
        let at = text.find(['"', '\''])?;
        let quote = text.get(at..)?.chars().next()?;
        let module = text.get(at + 1..)?.split(quote).next()?;
        module.starts_with('.').then(|| module.to_owned())
    };
    let is_it = |module: &str| {
        let plain = from.path.parent().unwrap_or(&from.path).join(module);
        let plain: PathBuf = super::files::normal(&plain);
        let stem = path.with_extension("");
        plain == path || plain == stem || plain.with_extension("") == stem || plain.join("index") == stem
    };
    if arguments.contains("require(") {
        return names(arguments).is_some_and(|module| is_it(&module));
    }
    let last = arguments.rsplit(',').next().unwrap_or_default();
    let name: String = last
        .trim()
        .chars()
        .take_while(|next| next.is_alphanumeric() || *next == '_' || *next == '$')
        .collect();
    if name.is_empty() {
        return false;
    }
    from.text.lines().any(|line| {
        let is_import = line.contains("import") || line.contains("require(");
        is_import
            && line
                .split(|next: char| !(next.is_alphanumeric() || next == '_' || next == '$'))
                .any(|word| word == name)
            && names(line).is_some_and(|module| is_it(&module))
    })
}

/// Some files of a folder that is served as it is: `express.static('public')`.
fn static_paths(source: &Source, folder: &Path) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    for (at, marker) in source.text.match_indices("express.static(") {
        let rest = source.text.get(at + marker.len()..).unwrap_or_default();
        let inside = rest.split([';', '\n']).next().unwrap_or_default();
        let Some(name) = inside.split(['"', '\'', '`']).skip(1).step_by(2).last() else { continue };
        let before = source.text.get(..at).unwrap_or_default();
        let call = before.rfind(".use(").and_then(|at| before.get(at + ".use(".len()..)).unwrap_or_default();
        let prefix = literal(call).map(|(path, _)| path).unwrap_or_default();
        let root = source.path.parent().into_iter().chain([folder]).map(|folder| folder.join(name));
        let Some(root) = root.map(|root| super::files::normal(&root)).find(|root| root.is_dir()) else {
            continue;
        };
        if !root.starts_with(folder) {
            continue;
        }
        for file in walk(&root, STATIC_FILES_MAX, |path| !path.ends_with("index.html")) {
            if let Some(path) = file.strip_prefix(&root).ok().and_then(Path::to_str) {
                found.push(joined(prefix, &format!("/{path}")));
            }
        }
    }
    found.into_iter()
}

fn joined(prefix: &str, path: &str) -> String {
    match (prefix.trim_end_matches('/'), path) {
        ("", path) => path.to_owned(),
        (prefix, "" | "/") => prefix.to_owned(),
        (prefix, path) => format!("{prefix}/{}", path.trim_start_matches('/')),
    }
}

/// Whether a text may be the path of a route.
fn is_route(path: &str) -> bool {
    path.len() <= PATH_LETTERS_MAX
        && path.starts_with('/')
        && path != "/"
        && path.bytes().all(|byte| byte.is_ascii_graphic())
}
