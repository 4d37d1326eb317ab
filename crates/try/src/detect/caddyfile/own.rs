//! An Onehopfile, which has a Caddyfile's grammar: the same file on another port, beside what it replaces.
//!
//! An `app` is compared with the application alone and behind nginx, files with nginx or Caddy, a `reverse_proxy` with
//! nginx in its place. A site that has both files and an application is compared with neither: nothing says what served
//! the two together.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_config::FileKind;
use onehop_config::checked::{App, AppRun, Checked, Route, Step};

use super::{InPlace, choose, for_onehop, global, hosts, shared_edits, text};
use crate::detect::behind::Behind;
use crate::detect::environment::Environment;
use crate::detect::files::{TEXT_BYTES_MAX, read_bounded};
use crate::detect::launch::{Launch, Program};
use crate::detect::{rivals, script, site};
use crate::{Found, Setup, SideBySideError};

/// What a site does.
#[derive(Default)]
struct Does {
    apps: Vec<Arc<App>>,
    folders: Vec<PathBuf>,
    passes: bool,
}

/// An Onehopfile.
pub(in crate::detect) fn detect(path: &Path, environment: &Environment) -> Result<Setup, SideBySideError> {
    let text =
        read_bounded(path, TEXT_BYTES_MAX).map_err(|error| SideBySideError::unreadable(path, &error))?;
    let wrong = |cause: String| {
        SideBySideError::found(path.display(), cause, "onehop validate says where it is wrong")
    };
    let lines = text::read(&text).map_err(|(line, cause)| wrong(format!("line {line}: {cause}")))?;
    let folder = path.parent().unwrap_or(path);
    let mut notes = Vec::new();
    let file = choose(path, &text, &lines, &mut notes)?;
    let proxies = super::proxies(&file, environment)?;
    let upstreams: Vec<_> = proxies.iter().flat_map(|proxy| proxy.upstreams.iter().cloned()).collect();
    let behind = Behind::find(&upstreams, folder, environment, &mut notes)?;
    let edits = shared_edits(&file, &mut notes);
    let onehopfile = global::for_onehop(&file, environment, &mut notes)
        + &for_onehop(&file, edits, &proxies, &behind, environment)?;
    let does = does(&load(path, folder, &onehopfile, environment).map_err(|error| wrong(error.to_string()))?);
    let description =
        format!("a site of onehop ({})", path.file_name().unwrap_or_default().to_string_lossy());
    let setup = match (does.apps.as_slice(), does.folders.as_slice(), does.passes) {
        ([app], [], false) => {
            let mut launch = launch(path, app)?;
            script::around(&mut launch, environment, &mut notes)?;
            script::setup(path, folder, launch, description, notes, environment)
        }
        ([], [root], false) => {
            let setup = site::detect(root, environment)?;
            Setup { found: Found { path: path.to_owned(), description }, ..setup }
        }
        ([], [], true) => {
            let today = rivals::proxy(environment).ok_or_else(|| {
                wrong(
                    "neither nginx nor Caddy is installed, so nothing passes requests on as it does"
                        .to_owned(),
                )
            })?;
            Setup {
                found: Found { path: path.to_owned(), description },
                folder: folder.to_owned(),
                routes: Vec::new(),
                guessed: super::guessed(&proxies, &behind),
                skipped: Vec::new(),
                has_links: false,
                application: behind.application,
                today: vec![today],
                onehopfile: String::new(),
                addresses: Vec::new(),
                workers: None,
                notes,
            }
        }
        _ => {
            return Err(SideBySideError::found(
                path.display(),
                "its site does several things, or none that something else did before",
                "name the part that is tried: onehop try server.js | dist/, or compare two servers: onehop bench compare",
            ));
        }
    };
    Ok(Setup { folder: folder.to_owned(), onehopfile, addresses: hosts(file.head), ..setup })
}

/// The settings of the text in place of the file.
fn load(path: &Path, folder: &Path, text: &str, environment: &Environment) -> io::Result<Checked> {
    let filled = text.replace("{port}", "8080").replace("{app_port}", "3000").replace("{scratch}", "/tmp");
    let own = path.to_owned();
    let source = InPlace { path: own, folder, text: &filled, environment };
    match onehop_config::load(path, FileKind::Onehopfile, &source) {
        Ok(loaded) => Ok(loaded.checked),
        Err(problems) => {
            let first = problems.into_iter().next().map(|problem| problem.message).unwrap_or_default();
            Err(io::Error::other(first))
        }
    }
}

fn does(settings: &Checked) -> Does {
    let mut does = Does { apps: settings.apps().into_iter().cloned().collect(), ..Does::default() };
    let mut pending: Vec<&Route> = settings.sites.iter().flat_map(|site| &site.routes).collect();
    while let Some(route) = pending.pop() {
        match &route.step {
            Step::Spa(spa) => does.folders.push(spa.root.clone()),
            Step::Root(root) => does.folders.extend(root.as_text().map(PathBuf::from)),
            Step::FileServer(settings) => {
                does.folders
                    .extend(settings.root.as_ref().and_then(|root| root.as_text()).map(PathBuf::from));
            }
            Step::Proxy(_) => does.passes = true,
            Step::Handle(routes) | Step::HandlePath { routes, .. } => pending.extend(routes),
            _ => {}
        }
    }
    does.folders.sort();
    does.folders.dedup();
    does
}

/// How the application of an `app` is started today.
fn launch(path: &Path, app: &App) -> Result<Launch, SideBySideError> {
    let refuse = |cause: &str, next: &str| Err(SideBySideError::found(path.display(), cause, next));
    let program = match &app.run {
        AppRun::Handler { file, runtime, runtime_arguments, arguments } => Program::Script {
            runtime: match runtime.as_deref() {
                None | Some("node" | "nodejs") => "node",
                Some("bun") => "bun",
                Some(_) => {
                    return refuse(
                        "its `runtime` is a path",
                        "write `runtime node` or `runtime bun` in a copy",
                    );
                }
            },
            runtime_arguments: runtime_arguments.clone(),
            file: file.clone(),
            arguments: arguments.clone(),
        },
        AppRun::Command { line } => Program::Command(line.clone()),
        AppRun::Elsewhere { .. } => {
            return refuse(
                "it starts no application (`supervise off`)",
                "name what runs: onehop try server.js",
            );
        }
    };
    if !app.environment.files.is_empty() {
        return refuse(
            "its variables are in an `env_file`, which today's start would not read",
            "export them, and write `env_pass NAME…` in its place in a copy of the file",
        );
    }
    Ok(Launch {
        program,
        words_today: None,
        environment: app.environment.set.clone(),
        passed: Vec::new(),
        directory: app.directory.clone(),
        workers: None,
        recycle: None,
    })
}
