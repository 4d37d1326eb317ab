//! What is at a path, how it runs today, and the same with onehop.
//!
//! `package.rs` reads a package.json, `ecosystem.rs` what pm2 is told, `command.rs` a Procfile or Dockerfile, `script.rs` a file of JavaScript, `site.rs` a
//! folder of files, `caddyfile/` (with an Onehopfile) and `nginx/` the configurations of those servers;
//! `behind.rs` finds the application that they pass requests to. Reads files and starts nothing, but that Node.js
//! evaluates a configuration of pm2, which is a program, unless it is a dry run; never changes a file, never shows a variable's value.

mod behind;
mod caddyfile;
mod command;
mod ecosystem;
mod environment;
mod files;
mod launch;
mod manifest;
mod nginx;
mod package;
mod rivals;
mod routes;
mod script;
mod shell;
mod site;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod write;

use std::path::{Path, PathBuf};

use super::{Origin, Route, Setup, SideBySideError};

pub use environment::Environment;

/// Folders in which builds leave a site, the likeliest first.
const SITE_FOLDERS: [&str; 5] = ["dist", "build", "public", "out", "_site"];
/// Files of a server without a package.json.
const SERVER_FILES: [&str; 9] = [
    "server.mjs",
    "server.js",
    "server.ts",
    "server.cjs",
    "index.mjs",
    "index.js",
    "app.mjs",
    "app.js",
    "index.ts",
];

/// Works out what is at a path and how it can be run both ways.
///
/// # Errors
///
/// What is missing or cannot be carried over, with its place and the next step.
pub fn detect(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let path = absolute(path);
    let metadata = std::fs::metadata(&path).map_err(|error| SideBySideError::unreadable(&path, &error))?;
    let mut setup = if metadata.is_dir() { folder(&path, environment) } else { file(&path, environment) }?;
    if metadata.is_dir() && path.join("Onehopfile").is_file() && !setup.found.path.ends_with("Onehopfile") {
        setup.notes.push(format!(
            "The Onehopfile of this folder was not used: `onehop try {}` measures it.",
            path.join("Onehopfile").display()
        ));
    }
    if setup.routes.is_empty() {
        setup.routes.push(Route { path: "/".to_owned(), origin: Origin::StartPage });
    }
    setup.guessed.retain(|path| path != "/");
    let mut seen = std::collections::HashSet::new();
    setup.notes.retain(|note| seen.insert(note.clone()));
    Ok(setup)
}

/// What says most about how it runs today comes first: a server's configuration beside a package.json is the
/// front of that application.
fn folder(folder: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    for (name, detect) in [
        ("nginx.conf", nginx::detect as fn(&Path, &Environment) -> Result<Setup, SideBySideError>),
        ("Caddyfile", caddyfile::detect),
    ] {
        let path = folder.join(name);
        if path.is_file() {
            return detect(&path, environment);
        }
    }
    if let Some(path) = ecosystem::FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
        return ecosystem::detect(&path, environment);
    }
    let package = folder.join("package.json");
    if package.is_file() && package::is_application(&package)? {
        return package::detect(&package, environment);
    }
    if let Some(site) = built_site(folder) {
        return site::detect(&folder.join(site), environment);
    }
    if package.is_file() {
        // An unbuilt application, or one whose start is not found: its own error says which.
        return package::detect(&package, environment);
    }
    if folder.join("index.html").is_file() {
        return site::detect(folder, environment);
    }
    let procfile = folder.join("Procfile");
    if procfile.is_file() {
        return command::detect(&procfile, environment);
    }
    if let Some(server) = SERVER_FILES.iter().map(|name| folder.join(name)).find(|path| path.is_file()) {
        return script::detect(&server, environment);
    }
    let own = folder.join("Onehopfile");
    if own.is_file() {
        return caddyfile::own::detect(&own, environment);
    }
    let dockerfile = folder.join("Dockerfile");
    if dockerfile.is_file() {
        return command::detect(&dockerfile, environment);
    }
    Err(SideBySideError::found(
        folder.display(),
        "nothing here says what it serves",
        "name what you run: onehop try server.mjs | package.json | Caddyfile | nginx.conf | dist/",
    ))
}

/// The folder in which a build left a site with a page, if there is one.
pub fn built_site(folder: &Path) -> Option<&'static str> {
    SITE_FOLDERS.into_iter().find(|name| folder.join(name).join("index.html").is_file())
}

fn file(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let ending = path.extension().unwrap_or_default().to_string_lossy();
    match ending.as_ref() {
        _ if ecosystem::FILES.contains(&&*name)
            || name.contains(".config.") && name.starts_with("ecosystem") =>
        {
            ecosystem::detect(path, environment)
        }
        _ if name == "Procfile" || name == "Dockerfile" => command::detect(path, environment),
        _ if name == "package.json" => package::detect(path, environment),
        _ if name.ends_with("Onehopfile") => caddyfile::own::detect(path, environment),
        _ if name.contains("Caddyfile") || ending == "caddy" => caddyfile::detect(path, environment),
        "conf" | "nginx" => nginx::detect(path, environment),
        "mjs" | "js" | "cjs" | "mts" | "ts" | "cts" | "jsx" | "tsx" => script::detect(path, environment),
        "html" => site::detect(path.parent().unwrap_or(path), environment),
        _ if nginx::looks_like(path) => nginx::detect(path, environment),
        _ => Err(SideBySideError::found(
            path.display(),
            "this is no file that says how something is served",
            "name one of these: server.mjs, package.json, Caddyfile, nginx.conf, a folder with index.html",
        )),
    }
}

/// The path from the root, without `.` in it, so that it means the same wherever programs are started.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).components().collect()
}
