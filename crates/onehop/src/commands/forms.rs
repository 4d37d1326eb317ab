//! `onehop prepare-forms`: the process in which a server compresses its files.
//!
//! Owns how that process is named and started. It is no command for a person: neither help nor
//! completions know it.

use onehop_files::tree::{CompressorProgram, prepare_forms_for_server};

use crate::failure::Failure;
use crate::own_program;

/// This very program, even when its file has been replaced by a newer one.
pub(crate) fn compressor() -> CompressorProgram {
    CompressorProgram { path: own_program::path(), arguments: vec![NAME.into()] }
}

/// Whether this is that process.
pub(crate) fn is_asked_for() -> bool {
    std::env::args_os().skip(1).eq([NAME])
}

pub(crate) fn prepare_forms() -> Result<(), Failure> {
    prepare_forms_for_server()
        .map_err(|error| Failure::failed(format!("this is what a server starts for itself: {error}")))
}

const NAME: &str = "prepare-forms";
