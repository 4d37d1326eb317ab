//! `onehop run`: serves the sites of a configuration file.

use std::sync::{Arc, Mutex};

use onehop_config::FileKind;

use super::serving::{Serving, reporter, serve_until_stopped};
use crate::arguments::Run;
use crate::configuration::{self, ConfigurationFile};
use crate::failure::Failure;
use crate::problems::{self, Look};
use crate::watch::{Watched, Watching};

pub(crate) fn run(arguments: &Run) -> Result<(), Failure> {
    let form = arguments.process.log;
    start(arguments).map_err(|failure| failure.in_form(form))
}

fn start(arguments: &Run) -> Result<(), Failure> {
    let reporter = reporter(&arguments.process)?;
    let file = configuration::find(arguments.file.named(), "onehop run --config FILE")?;
    reporter.starting(&reads(&file));
    let loaded = configuration::load(&file)?;
    for warning in &loaded.warnings {
        // The drawing begins with the place and says itself that it is a warning.
        match arguments.process.log {
            crate::arguments::LogForm::Plain => {
                let drawn = problems::draw(std::slice::from_ref(warning), Look::of_standard_error());
                crate::report::write_line(drawn.trim_end());
            }
            crate::arguments::LogForm::Json => reporter.warn(warning.to_string()),
        }
    }
    let watching: Watching = Arc::new(Mutex::new(Watched::of(loaded.files, &loaded.checked)));
    let load = {
        let (file, watching) = (file.clone(), Arc::clone(&watching));
        Arc::new(move || configuration::load_again(&file, &watching))
    };
    serve_until_stopped(Serving {
        checked: loaded.checked,
        process: &arguments.process,
        subject: &file.path,
        load,
        watch: arguments.watch.then_some(watching),
        packed: None,
        reporter,
        keeps_history: true,
    })
}

fn reads(file: &ConfigurationFile) -> String {
    let path = file.path.display();
    match file.kind {
        FileKind::Onehopfile => format!("reads {path}"),
        FileKind::Caddyfile => format!("reads {path} as a Caddyfile"),
    }
}
