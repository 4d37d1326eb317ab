//! `onehop init`: an Onehopfile for what is in a folder. And what `onehop` alone says: what it sees here.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use onehop_config::FileSource;
use onehop_try::Environment;

use super::standard_output::print;
use crate::arguments::{Init, Target};
use crate::configuration;
use crate::control_client::number;
use crate::failure::Failure;
use crate::units::counted;

/// What a file begins with that has one site on this machine.
const ON_ANY_ADDRESS: &str = ":8080 {";
const ON_THIS_MACHINE: &str = "http://localhost:8080 {";

/// What is in a folder.
struct Found {
    description: String,
    /// Where the Onehopfile belongs.
    folder: PathBuf,
    onehopfile: String,
}

pub(crate) fn init(arguments: &Init) -> Result<(), Failure> {
    let found = look(&arguments.folder, false).map_err(Failure::wrong)?;
    let text = commented(&found);
    if arguments.dry_run {
        print(&text);
        return Ok(());
    }
    let path = found.folder.join("Onehopfile");
    let opened = OpenOptions::new().write(true).create_new(true).open(&path);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| {
        let shown = path.display();
        match error.kind() {
            std::io::ErrorKind::AlreadyExists => Failure::wrong(format!(
                "{shown} is there already and is not replaced: `onehop init --dry-run` prints what would be written"
            )),
            _ => Failure::failed(format!("{shown} cannot be written: {error}")),
        }
    })?;
    let near = configuration::shown_path(&path);
    let next =
        if near == "Onehopfile" { "onehop run".to_owned() } else { format!("onehop run --config {near}") };
    print(&format!("found    {}\nwritten  {near}\nnext     {next}\n", found.description));
    Ok(())
}

/// `onehop` alone: what is here, and what to type.
pub(crate) fn look_around() {
    let (seen, next): (String, &[(&str, &str)]) = match configuration::find_here() {
        Some(file) => match running(&file.path) {
            Some(process) => (
                format!("{}, which onehop serves (process {process})", file.path.display()),
                &[
                    ("onehop status", "shows what it is doing"),
                    ("onehop reload", "reads the file again"),
                    ("onehop logs -f", "shows its last lines, and those that come"),
                ],
            ),
            None => (
                file.path.display().to_string(),
                &[
                    ("onehop run", "serves it"),
                    ("onehop validate", "checks it"),
                    ("onehop routes", "shows what it does"),
                ],
            ),
        },
        None => match look(Path::new("."), true) {
            Ok(found) => (
                found.description,
                &[
                    ("onehop init", "writes an Onehopfile for it"),
                    ("onehop try", "measures it with onehop and without"),
                ],
            ),
            Err(_) => (
                "nothing that says what it serves".to_owned(),
                &[
                    ("onehop serve DIR", "serves a folder"),
                    ("onehop app server.js", "runs an application"),
                    ("onehop bench URL", "measures a server"),
                ],
            ),
        },
    };
    let mut text =
        format!("onehop {}, a web server that runs your application\n\n", env!("CARGO_PKG_VERSION"));
    text.push_str(&format!("Here: {seen}\n\n"));
    for (command, what) in next.iter().chain(&[("onehop help", "lists all commands")]) {
        text.push_str(&format!("  {command:<22}{what}\n"));
    }
    print(&text);
}

/// The process that serves this file now.
fn running(file: &Path) -> Option<u64> {
    let target = Target { config: Some(file.to_path_buf()), control: None };
    let status = super::control::ask_about(&target, "/status").ok()?;
    Some(number(&status.body, "pid"))
}

/// What says most about how it runs comes first.
fn look(folder: &Path, is_dry_run: bool) -> Result<Found, String> {
    let folder = std::path::absolute(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let caddyfile = folder.join("Caddyfile");
    if caddyfile.is_file() {
        return Err(format!(
            "{} is there, and onehop takes it as it is: onehop run --config Caddyfile",
            caddyfile.display()
        ));
    }
    let conf = folder.join("nginx.conf");
    if conf.is_file() {
        let adapted = onehop_adapt::adapt(&conf, &FileSource).map_err(|refusal| refusal.to_string())?;
        let description = match adapted.left_out {
            0 => "an nginx.conf".to_owned(),
            count => format!("an nginx.conf ({} NOT CARRIED OVER)", counted(count as u64, "directive")),
        };
        return Ok(Found { description, folder, onehopfile: adapted.onehopfile });
    }
    let environment = Environment { is_dry_run, ..Environment::look() }.with_all_servers();
    let setup = onehop_try::detect(&folder, &environment).map_err(|error| error.to_string())?;
    let mut onehopfile = setup.shown_onehopfile();
    if setup.application.is_some()
        && let Some(site) = onehop_try::built_site(&setup.folder)
    {
        onehopfile = with_site(&onehopfile, site);
    }
    Ok(Found { description: setup.found.description, folder: setup.folder, onehopfile })
}

/// With a comment above the application that says how to serve a built site from memory. It is only a comment, because
/// the paths of the application cannot be found out.
fn with_site(onehopfile: &str, site: &str) -> String {
    let Some(at) = onehopfile.find("\tapp ") else { return onehopfile.to_owned() };
    let (before, app) = onehopfile.split_at(at);
    let line = app.lines().next().unwrap_or_default().trim_start_matches("\tapp ");
    format!(
        "{before}\t# {site}/index.html is there. These lines in place of `app` serve it from memory, and only /api by the \
         application.\n\t# Write one more `app` for each other path, such as that of a WebSocket: they are one application.\n\
         \t#     spa ./{site}\n\t#     app /api/* {line}\n{app}"
    )
}

/// With what to do next; an nginx.conf has comments of its own.
fn commented(found: &Found) -> String {
    let text = match found.onehopfile.strip_prefix(ON_ANY_ADDRESS) {
        Some(rest) => format!("{ON_THIS_MACHINE}{rest}"),
        None => found.onehopfile.clone(),
    };
    let mut head = format!("# For {}, by `onehop init`.\n#\n", found.description);
    head.push_str("#   onehop run                           serves it\n");
    head.push_str("#   onehop validate && onehop reload     after a change\n");
    head.push_str("#   onehop help directive NAME           explains a directive\n#\n");
    if text.starts_with(ON_THIS_MACHINE) {
        head.push_str("# For HTTPS write the domain instead of http://localhost:8080: example.com { … }\n");
    }
    format!("{head}\n{text}")
}
