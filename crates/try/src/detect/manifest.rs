//! What a package.json says of its package: the framework, the dependencies, the main file.

use std::path::Path;

use serde_json::Value;

use super::files::{TEXT_BYTES_MAX, read_bounded, upwards};
use crate::SideBySideError;

/// What makes a package a server, the one that says most first, with the name that people know.
pub(super) const FRAMEWORKS: [(&str, &str); 14] = [
    ("next", "a Next.js application"),
    ("nuxt", "a Nuxt application"),
    ("@nestjs/core", "a NestJS application"),
    ("@remix-run/serve", "a Remix application"),
    ("@sveltejs/adapter-node", "a SvelteKit application"),
    ("@adonisjs/core", "an AdonisJS application"),
    ("@hapi/hapi", "a hapi application"),
    ("express", "an Express application"),
    ("fastify", "a Fastify application"),
    ("koa", "a Koa application"),
    ("hono", "a Hono application"),
    ("elysia", "an Elysia application"),
    ("polka", "a Polka application"),
    ("restify", "a restify application"),
];

/// The framework of a package in words, with its version: that which is installed, else that which is asked for.
pub(super) fn framework(path: &Path) -> Option<(&'static str, String)> {
    let package = read(path).ok()?;
    let folder = path.parent()?;
    let (name, words, range) =
        FRAMEWORKS.iter().find_map(|(name, words)| Some((*name, *words, range(&package, name)?)))?;
    let installed = upwards(folder)
        .map(|folder| folder.join("node_modules").join(name).join("package.json"))
        .find_map(|path| read(&path).ok())
        .and_then(|package| package.get("version")?.as_str().map(str::to_owned));
    Some((words, format!("{name} {}", installed.unwrap_or(range))))
}

/// The file that a package names as its own.
pub(super) fn main(path: &Path) -> Option<String> {
    read(path).ok()?.get("main")?.as_str().map(str::to_owned)
}

/// Its dependencies have to be there: an application that ends at once compares to nothing.
pub(super) fn require_installed(path: &Path) -> Result<(), SideBySideError> {
    let package = read(path)?;
    let folder = path.parent().unwrap_or(path);
    let Some(Value::Object(dependencies)) = package.get("dependencies") else { return Ok(()) };
    let is_there = |name: &str| upwards(folder).any(|folder| folder.join("node_modules").join(name).exists());
    // Yarn's Plug'n'Play has no such folder.
    if upwards(folder).any(|folder| folder.join(".pnp.cjs").is_file()) {
        return Ok(());
    }
    let Some(missing) = dependencies.keys().find(|name| !is_there(name)) else { return Ok(()) };
    let installer = [
        ("pnpm-lock.yaml", "pnpm install"),
        ("yarn.lock", "yarn install"),
        ("bun.lock", "bun install"),
        ("bun.lockb", "bun install"),
        ("package-lock.json", "npm ci"),
    ];
    let next = upwards(folder)
        .find_map(|folder| installer.iter().find(|(lock, _)| folder.join(lock).is_file()))
        .map_or("npm install", |(_, command)| command);
    Err(SideBySideError::found(
        path.display(),
        format!("its dependency `{missing}` is not installed"),
        format!("{next}    (in {})", folder.display()),
    ))
}

pub(super) fn read(path: &Path) -> Result<Value, SideBySideError> {
    let text =
        read_bounded(path, TEXT_BYTES_MAX).map_err(|error| SideBySideError::unreadable(path, &error))?;
    serde_json::from_str(&text).map_err(|error| {
        SideBySideError::found(
            format!("{}:{}", path.display(), error.line()),
            format!("this is no JSON: {error}"),
            "mend the file; npm would not read it either",
        )
    })
}

/// The range of versions that a package asks for.
pub(super) fn range(package: &Value, name: &str) -> Option<String> {
    package.get("dependencies")?.get(name)?.as_str().map(str::to_owned)
}
