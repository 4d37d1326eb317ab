//! A file of JavaScript or TypeScript: a server that listens, or a handler that needs one around it.
//!
//! Tells them apart by their text. A handler that only onehop could run has no today, which is said and not made up.

use std::path::{Path, PathBuf};

use super::environment::Environment;
use super::files::{TEXT_BYTES_MAX, read_bounded, upwards};
use super::launch::{Launch, Program};
use super::manifest;
use super::rivals;
use super::routes::{tell, without_comments};
use super::write::site;
use crate::{AppPort, Found, Front, Setup, SideBySideError};

/// What a file does when it is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It listens, or what it imports does.
    Server,
    /// It exports an object with `fetch` and does not listen.
    Handler,
    /// It exports a function that takes a request, and does not listen.
    Function,
    /// It exports its application, and nothing listens.
    Unlistened,
}

/// A file that was named.
pub(super) fn detect(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let parent = path.parent().unwrap_or(path);
    let project = upwards(parent).find(|folder| folder.join("package.json").is_file());
    let framework = project.and_then(|folder| manifest::framework(&folder.join("package.json")));
    if let Some(folder) = project {
        manifest::require_installed(&folder.join("package.json"))?;
    }
    let directory = project.unwrap_or(parent);
    let runtime = runtime_for(path, environment)?;
    let mut launch = Launch::script(runtime, path.to_owned(), directory.to_owned());
    let mut notes = Vec::new();
    around(&mut launch, environment, &mut notes)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let description = match framework {
        Some((framework, version)) => format!("{framework} ({version}, {name})"),
        None if launch.words_today.is_some() || kind_of(path)? == Kind::Handler => {
            format!("a handler ({name})")
        }
        None => format!("a server of JavaScript ({name})"),
    };
    Ok(setup(path, directory, launch, description, notes, environment))
}

/// The setup of an application that runs alone today.
pub(super) fn setup(
    path: &Path,
    folder: &Path,
    mut launch: Launch,
    description: String,
    mut notes: Vec<String>,
    environment: &Environment,
) -> Setup {
    let workers = launch.workers.iter().map(|_| "workers {workers}".to_owned());
    let more: Vec<String> = workers.chain(launch.recycle.clone()).collect();
    let reported = tell(folder, launch.file());
    launch.pass(&reported.variables, environment);
    if !launch.passed.is_empty() {
        notes.push(format!(
            "The sources read variables that are set here: {}. onehop passes on only what it is told to, so the \
             Onehopfile names them.",
            launch.passed.join(", ")
        ));
    }
    let mut today = vec![Front::None];
    today.extend(rivals::proxy(environment));
    let application = launch.application(AppPort::Assigned, environment);
    if application.environment.iter().any(|(name, value)| name == "NODE_ENV" && value == "production") {
        notes.push("Both sides run with NODE_ENV=production.".to_owned());
    }
    Setup {
        found: Found { path: path.to_owned(), description },
        folder: folder.to_owned(),
        onehopfile: site(&launch.app(None, folder, &more, environment)),
        addresses: Vec::new(),
        workers: launch.workers.clone(),
        application: Some(application),
        today,
        routes: Vec::new(),
        guessed: reported.routes,
        skipped: Vec::new(),
        has_links: false,
        notes,
    }
}

/// Puts a server around a handler, since today somebody has to listen.
pub(super) fn around(
    launch: &mut Launch,
    environment: &Environment,
    notes: &mut Vec<String>,
) -> Result<(), SideBySideError> {
    let Program::Script { file, runtime, .. } = &launch.program else { return Ok(()) };
    let kind = kind_of(file)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match kind {
        Kind::Server => Ok(()),
        Kind::Unlistened => Err(SideBySideError::found(
            file.display(),
            "it makes an application and does not listen, so that nothing serves it today",
            "name the file that starts it, or run it by onehop alone: onehop app FILE",
        )),
        Kind::Handler if *runtime == "bun" => Ok(()),
        Kind::Handler | Kind::Function => {
            let server = node_server(&launch.directory);
            let shown = file.display().to_string();
            launch.words_today = Some(match (server, &environment.bun) {
                (true, _) => {
                    notes.push(format!(
                        "{name} exports a handler and does not listen. Today it is served by @hono/node-server, \
                         which is installed beside it."
                    ));
                    ["node", "--input-type=module", "-e", &hono(&shown)].map(str::to_owned).to_vec()
                }
                (false, Some(_)) => {
                    notes.push(format!(
                        "{name} exports a handler and does not listen. Today it is served by Bun; onehop runs it \
                         with Node.js, so that the runtimes differ too."
                    ));
                    if kind == Kind::Handler {
                        vec!["bun".to_owned(), shown]
                    } else {
                        ["bun", "-e", &bun(&shown)].map(str::to_owned).to_vec()
                    }
                }
                (false, None) => {
                    return Err(SideBySideError::found(
                        file.display(),
                        "it exports a handler and does not listen, and neither Bun nor @hono/node-server is \
                         installed: nothing serves it today that onehop could be compared with",
                        "npm install --no-save @hono/node-server, or run it by onehop alone: onehop app FILE",
                    ));
                }
            });
            Ok(())
        }
    }
}

/// What runs a file, by its ending and what is installed.
pub(super) fn runtime_for(path: &Path, environment: &Environment) -> Result<&'static str, SideBySideError> {
    let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
    let wants_bun = ["jsx", "tsx"].contains(&ending.as_str());
    let text = read_bounded(path, TEXT_BYTES_MAX).unwrap_or_default();
    if wants_bun || text.contains("Bun.serve(") {
        return match environment.bun {
            Some(_) => Ok("bun"),
            None => Err(SideBySideError::found(
                path.display(),
                "it is written for Bun, which is not installed",
                "install Bun, or name what runs with Node.js",
            )),
        };
    }
    match (&environment.node, &environment.bun) {
        (Some(_), _) => Ok("node"),
        (None, Some(_)) => Ok("bun"),
        (None, None) => Err(SideBySideError::found(
            path.display(),
            "neither Node.js nor Bun is installed, so that it does not run today",
            "install Node.js 20 or later",
        )),
    }
}

/// What a file does when it is started, as far as its text tells.
pub(super) fn kind_of(path: &Path) -> Result<Kind, SideBySideError> {
    let text =
        read_bounded(path, TEXT_BYTES_MAX).map_err(|error| SideBySideError::unreadable(path, &error))?;
    Ok(kind(&without_comments(&text)))
}

fn kind(text: &str) -> Kind {
    let listens = [
        "listen(",
        "serve(",
        "createServer(",
        "bootstrap(",
        ".start(",
        "startServer",
        "startStandaloneServer",
    ];
    if listens.iter().any(|sign| text.contains(sign)) {
        return Kind::Server;
    }
    let exported = ["export default", "export { ", "module.exports"]
        .iter()
        .filter_map(|marker| text.rfind(marker).and_then(|at| text.get(at + marker.len()..)))
        .min_by_key(|rest| rest.len());
    let Some(exported) = exported else { return Kind::Server };
    let exported = exported.trim_start().trim_start_matches('=').trim_start();
    let makes = |names: &[&str]| names.iter().any(|name| text.contains(name));
    if exported.starts_with("async function")
        || exported.starts_with("function")
        || exported.starts_with("async (")
    {
        return Kind::Function;
    }
    if (exported.starts_with('{') && has_fetch(exported))
        || makes(&["new Hono", "new Elysia", "AutoRouter(", "Router()"]) && !makes(&["express"])
    {
        return Kind::Handler;
    }
    if makes(&["express()", "fastify(", "Fastify(", "new Koa("]) {
        return Kind::Unlistened;
    }
    // An exported name: a handler if it is an object with `fetch`.
    let name: String = exported.chars().take_while(|next| next.is_alphanumeric() || *next == '_').collect();
    let is_object = !name.is_empty()
        && [format!("{name} = {{"), format!("{name} ={{")]
            .iter()
            .any(|start| text.find(start.as_str()).and_then(|at| text.get(at..)).is_some_and(has_fetch));
    if is_object { Kind::Handler } else { Kind::Server }
}

/// Whether a member called `fetch` stands in a text: `fetch(…) {`, `fetch: …`, `async fetch`, `fetch,`.
fn has_fetch(text: &str) -> bool {
    text.match_indices("fetch").any(|(at, marker)| {
        let before = text.get(..at).unwrap_or_default().trim_end();
        let after = text.get(at + marker.len()..).unwrap_or_default().trim_start();
        (before.ends_with(['{', ',', '}']) || before.ends_with("async") || before.ends_with('*'))
            && after.starts_with(['(', ':', ',', '}'])
    })
}

/// Whether `@hono/node-server` can be imported from a folder.
fn node_server(folder: &Path) -> bool {
    upwards(folder).any(|folder| folder.join("node_modules/@hono/node-server/package.json").is_file())
}

fn hono(file: &str) -> String {
    format!(
        "import {{ pathToFileURL }} from 'node:url'; import {{ serve }} from '@hono/node-server'; \
         const {{ default: app }} = await import(pathToFileURL({})); \
         serve({{ fetch: (request) => (app.fetch ?? app).call(app, request, process.env, {{ waitUntil() {{}} }}), \
         port: Number(process.env.PORT) }});",
        serde_json::Value::from(file)
    )
}

fn bun(file: &str) -> String {
    format!(
        "const {{ default: fetch }} = await import({}); \
         Bun.serve({{ fetch: (request) => fetch(request, process.env, {{ waitUntil() {{}} }}), \
         port: Number(process.env.PORT) }});",
        serde_json::Value::from(file)
    )
}

/// A file that Node would find under a name: `dist/main` is `dist/main.js`.
pub(super) fn resolve(directory: &Path, name: &str) -> Option<PathBuf> {
    let plain = super::files::normal(&directory.join(name));
    if plain.is_file() {
        return Some(plain);
    }
    let text = plain.to_string_lossy().into_owned();
    let endings = [".js", ".mjs", ".cjs", "/index.js", "/index.mjs", "/index.cjs"];
    let inside = plain.join("package.json");
    let main = manifest::main(&inside).and_then(|main| {
        let file = super::files::normal(&plain.join(main));
        file.is_file().then_some(file)
    });
    main.or_else(|| {
        endings.iter().map(|ending| PathBuf::from(format!("{text}{ending}"))).find(|file| file.is_file())
    })
}
