//! Onehopfile text to checked settings: text → `syntax` → `check` (with `directives`) → [`checked`].
//!
//! Pure: no socket, clock or runtime, and the file system only through [`Source`]. A load either
//! gives settings that can be used, or every error that the files have.

#![forbid(unsafe_code)]

mod arguments;
mod check;
pub mod checked;
mod directives;
mod format;
pub mod limits;
mod nearest;
mod option_table;
mod overrides;
mod problem;
mod source;
mod syntax;
mod vocabulary;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use check::{Context, absolute};
use checked::Checked;
use limits::FILE_BYTES_MAX;
use overrides::Listens;
use problem::{Location, Problems};

pub use directives::telling_folder;
pub use format::format;
pub use option_table::{OptionOutline, Outline};
pub use overrides::{Overrides, Said, Word};
pub use problem::{Problem, Severity, UNSET_VARIABLE};
pub use source::{Entry, FileKind, FileSource, Source, SourceText, name_fits};
pub use syntax::variables_to_set;

/// A configuration that can be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// What it says.
    pub checked: Checked,
    /// What should be known about it.
    pub warnings: Vec<Problem>,
    /// Every file that was read, the main one first.
    pub files: Vec<PathBuf>,
}

/// Reads a configuration with everything that it imports.
///
/// # Errors
///
/// All that is wrong with it, in the order of the text.
pub fn load(main: &Path, kind: FileKind, source: &dyn Source) -> Result<Loaded, Vec<Problem>> {
    load_with(main, kind, source, &Overrides::default())
}

/// The same with the changes of an override file, the environment and flags; the changed configuration is checked as a whole.
///
/// # Errors
///
/// All that is wrong with it and with the changes, each where it is written.
pub fn load_with(
    main: &Path,
    kind: FileKind,
    source: &dyn Source,
    overrides: &Overrides,
) -> Result<Loaded, Vec<Problem>> {
    let name = main.display().to_string();
    let text = match source.read(main) {
        Ok(text) if text.len() <= FILE_BYTES_MAX => text,
        Ok(_) => return Err(unreadable(&name, "the file is too large for a configuration")),
        Err(error) => return Err(unreadable(&name, &error.to_string())),
    };
    let working_directory = source.working_directory();
    let main_path = absolute(&working_directory, main);
    let base = match kind {
        FileKind::Onehopfile => main_path.parent().unwrap_or(&working_directory).to_owned(),
        FileKind::Caddyfile => working_directory.clone(),
    };
    let mut problems = Problems::default();
    let file = Arc::new(SourceText::new(name, text));
    let noting = overrides::Noting::new(source);
    let mut parsed = syntax::parse(&file, &noting, &mut problems);
    let mut changes = overrides::read(overrides, source, noting.asked_for_port(), &mut problems);
    if changes.change_apps() {
        // Applications are found by names that follow from what they are.
        let mut of_first = Problems::default();
        let mut context = Context::new(source, kind, base.clone(), &mut of_first);
        if let Some(folder) = &overrides.written_below {
            context.written_below.clone_from(folder);
        }
        check::check(&mut context, &parsed, &Listens::default());
        let known = std::mem::take(&mut context.apps.by_line);
        let is_whole = of_first.split().0.is_empty();
        changes.apply_to_apps(&mut parsed, &known, is_whole, &mut problems);
    }
    changes.apply_to_rest(&mut parsed, &mut problems);
    let listens = changes.listens();
    let mut context = Context::new(source, kind, base, &mut problems);
    if let Some(folder) = &overrides.written_below {
        context.written_below.clone_from(folder);
    }
    let hidden = parsed.files.iter().map(|file| absolute(&working_directory, file));
    context.hidden = hidden.map(|file| file.to_string_lossy().into_owned()).collect();
    let checked = check::check(&mut context, &parsed, &listens);
    let (errors, warnings) = problems.split();
    if !errors.is_empty() {
        return Err(errors);
    }
    if checked.sites.is_empty() {
        let place = Location { file, span: 0..0 };
        let problem = Problem::error("no-site", &place, "the configuration has no site");
        return Err(vec![*problem.help("the shortest one is two lines: `:8080` and `spa ./dist`")]);
    }
    Ok(Loaded { checked, warnings, files: parsed.files })
}

/// Every directive that works and every block of options, with all options that they have or will have. Some names stand
/// there more than once: `rate_limit` has words on its line and options in its block.
pub fn directives() -> Vec<Outline> {
    let mut outlines = directives::outlines();
    outlines.extend(check::option_outlines());
    outlines
}

/// The main file cannot be read at all: there is no text to point at.
fn unreadable(name: &str, reason: &str) -> Vec<Problem> {
    let place = Location { file: Arc::new(SourceText::new(name, "")), span: 0..0 };
    vec![*Problem::error("unreadable", &place, format!("`{name}` cannot be read: {reason}"))]
}
