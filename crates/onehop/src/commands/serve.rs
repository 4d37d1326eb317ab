//! `onehop serve`: settings for one folder, built without a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_config::checked::{Admin as CheckedAdmin, Checked, ListenAddress, Step, Template};
use onehop_config::{Entry, FileKind, Source};

use super::serving::{Serving, reporter, serve_until_stopped};
use crate::arguments::{Admin, Serve};
use crate::configuration::{self, show_address};
use crate::failure::Failure;
use crate::listen;

pub(crate) fn serve(arguments: &Serve) -> Result<(), Failure> {
    let form = arguments.process.log;
    start(arguments).map_err(|failure| failure.in_form(form))
}

fn start(arguments: &Serve) -> Result<(), Failure> {
    let reporter = reporter(&arguments.process)?;
    let root = folder(&arguments.directory)?;
    reporter.starting(&format!("serves {}", root.display()));
    let checked = settings(arguments, &root)?;
    let again = checked.clone();
    serve_until_stopped(Serving {
        checked,
        process: &arguments.process,
        subject: &root,
        load: Arc::new(move || Ok(again.clone())),
        watch: None,
        packed: None,
        reporter,
        keeps_history: false,
    })
}

/// The folder, absolute. Links on the way to it are kept: a release folder may be switched later.
fn folder(directory: &Path) -> Result<PathBuf, Failure> {
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => configuration::absolute(directory),
        Ok(_) => Err(Failure::wrong(format!(
            "{shown} is not a folder\n  an Onehopfile is served with: onehop run {shown}"
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Failure::wrong(format!(
            "there is no folder {shown}\n  has the application been built? (for example: npm run build)"
        ))),
        Err(error) => Err(Failure::wrong(format!("cannot read {shown}: {error}"))),
    }
}

/// Settings as an Onehopfile of three lines would give them, so that every default is the same; then
/// the folder and the address are put in as they are, since a path may hold what a file would expand.
fn settings(arguments: &Serve, root: &Path) -> Result<Checked, Failure> {
    let address = match &arguments.listen {
        Some(listen::Address(address)) => address.clone(),
        None => listen::from_environment(std::env::var_os("PORT")).map_err(Failure::wrong)?,
    };
    let directive = match (arguments.spa, arguments.browse) {
        (true, _) => "spa .",
        (false, true) => "file_server browse",
        (false, false) => "file_server",
    };
    let text = format!(":8080 {{\n\tencode zstd br gzip\n\t{directive}\n}}\n");
    let loaded = onehop_config::load(Path::new("Onehopfile"), FileKind::Onehopfile, &InMemory { text, root });
    let mut checked = loaded
        .map_err(|problems| Failure::failed(format!("the built-in settings are not sound: {problems:?}")))?
        .checked;
    let Some(text) = root.to_str() else {
        return Err(Failure::wrong(format!(
            "{} is not UTF-8, and a root must be: rename it",
            root.display()
        )));
    };
    reach_at(&mut checked, &address, arguments.admin);
    for site in &mut checked.sites {
        for route in &mut site.routes {
            match &mut route.step {
                Step::Root(root) => *root = Template::text(text),
                Step::FileServer(files) => files.root = Some(Template::text(text)),
                Step::Spa(spa) => spa.root = root.to_path_buf(),
                _ => {}
            }
        }
    }
    Ok(checked)
}

/// Puts the addresses in that were asked for.
pub(super) fn reach_at(checked: &mut Checked, address: &ListenAddress, admin: Admin) {
    checked.global.admin = match admin {
        Admin::Off => CheckedAdmin::Off,
        Admin::Address(address) => CheckedAdmin::Address(address),
    };
    for site in &mut checked.sites {
        site.label = show_address(address);
    }
    for listener in &mut checked.listeners {
        listener.address = address.clone();
    }
}

/// A configuration that is no file.
struct InMemory<'a> {
    text: String,
    root: &'a Path,
}

impl Source for InMemory<'_> {
    fn read(&self, _: &Path) -> std::io::Result<String> {
        Ok(self.text.clone())
    }

    fn entry(&self, _: &Path) -> Option<Entry> {
        None
    }

    fn glob(&self, _: &Path) -> std::io::Result<Vec<PathBuf>> {
        Ok(Vec::new())
    }

    fn env(&self, _: &str) -> Option<String> {
        None
    }

    fn working_directory(&self) -> PathBuf {
        self.root.to_path_buf()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn settings_of(line: &str, root: &str) -> Checked {
        let arguments = crate::arguments::Arguments::parse_from(line.split(' '));
        let crate::arguments::Command::Serve(serve) = arguments.command else { panic!("another command") };
        settings(&serve, Path::new(root)).expect("sound settings")
    }

    #[test]
    fn a_folder_whose_name_looks_like_a_placeholder_is_taken_as_it_is() {
        let checked = settings_of("onehop serve x --listen :0", "/srv/{host}/a b");
        let Some(Step::FileServer(files)) = checked.sites[0].routes.last().map(|route| &route.step) else {
            panic!("{checked:?}")
        };
        assert_eq!(files.root, Some(Template::text("/srv/{host}/a b")));
        assert!(!files.browse);
        assert!(!checked.listeners[0].tls);
    }

    #[test]
    fn spa_serves_the_folder_as_an_application() {
        let checked = settings_of("onehop serve x --spa --listen 127.0.0.1:3000 --admin off", "/srv/dist");
        assert_eq!(checked.global.admin, CheckedAdmin::Off);
        assert_eq!(checked.sites[0].label, "127.0.0.1:3000");
        let spa = checked.sites[0].routes.iter().find_map(|route| match &route.step {
            Step::Spa(spa) => Some(spa),
            _ => None,
        });
        let spa = spa.expect("a spa");
        assert_eq!((spa.root.as_path(), spa.index.as_str()), (Path::new("/srv/dist"), "index.html"));
    }
}
