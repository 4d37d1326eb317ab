//! `onehop fmt`: an Onehopfile in its usual layout, printed, compared or written back.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

use onehop_config::limits::FILE_BYTES_MAX;
use similar::TextDiff;

use super::standard_output::print;
use crate::arguments::Fmt;
use crate::configuration;
use crate::failure::Failure;
use crate::problems::{self, Look};

/// Lines around each change.
const AROUND: usize = 3;

pub(crate) fn fmt(arguments: &Fmt) -> Result<(), Failure> {
    let is_input = arguments.file.as_deref() == Some(Path::new("-"));
    let (name, text) = if is_input {
        if arguments.overwrite {
            return Err(Failure::wrong("standard input cannot be written back: leave --overwrite out"));
        }
        ("standard input".to_owned(), read(io::stdin(), "standard input")?)
    } else {
        let path = configuration::find(arguments.file.as_ref(), "onehop fmt FILE")?.path;
        let name = path.display().to_string();
        let file = fs::File::open(&path)
            .map_err(|error| Failure::wrong(format!("{name} cannot be read: {error}")))?;
        (name.clone(), read(file, &name)?)
    };
    let formatted = onehop_config::format(&name, &text)
        .map_err(|errors| Failure::drawn(problems::draw(&errors, Look::of_standard_error())))?;
    let is_same = formatted == text;
    if arguments.overwrite {
        return if is_same { Ok(()) } else { write_back(Path::new(&name), &formatted) };
    }
    if arguments.diff {
        let diff = TextDiff::from_lines(&text, &formatted);
        let after = format!("{name} (formatted)");
        print(&diff.unified_diff().context_radius(AROUND).header(&name, &after).to_string());
    } else if !arguments.check {
        print(&formatted);
        return Ok(());
    }
    if is_same {
        return Ok(());
    }
    Err(Failure::failed(format!(
        "{name} is laid out otherwise; `onehop fmt --overwrite` writes the usual layout"
    )))
}

fn read(from: impl Read, name: &str) -> Result<String, Failure> {
    let mut text = String::new();
    let most = FILE_BYTES_MAX as u64 + 1;
    match from.take(most).read_to_string(&mut text) {
        Ok(_) if text.len() <= FILE_BYTES_MAX => Ok(text),
        Ok(_) => Err(Failure::wrong(format!("{name} is too large for a configuration"))),
        Err(error) => Err(Failure::wrong(format!("{name} cannot be read: {error}"))),
    }
}

/// Puts the text in the place of the file, whole or not at all, with its owner and permissions. A link stays one.
fn write_back(path: &Path, text: &str) -> Result<(), Failure> {
    let write = || -> io::Result<()> {
        let path = fs::canonicalize(path)?;
        let known = fs::metadata(&path)?;
        let mut draft = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        draft.write_all(text.as_bytes())?;
        let new = draft.as_file().metadata()?;
        if (new.uid(), new.gid()) != (known.uid(), known.gid()) {
            chown(draft.path(), Some(known.uid()), Some(known.gid()))?;
        }
        draft.as_file().set_permissions(known.permissions())?;
        draft.as_file().sync_all()?;
        draft.persist(&path)?;
        Ok(())
    };
    write().map_err(|error| Failure::failed(format!("{} cannot be written: {error}", path.display())))
}
