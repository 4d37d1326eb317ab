//! `onehop prepare-forms`: the process in which a server compresses its files.
//!
//! Owns how that process is named and started. It is no command for a person, and so not in the help.

use onehop_server::control::store::{CompressorProgram, prepare_forms_for_server};

use crate::failure::Failure;

/// This very program, even when its file has been replaced by a newer one.
pub(crate) fn compressor() -> CompressorProgram {
    CompressorProgram { path: "/proc/self/exe".into(), arguments: vec!["prepare-forms".into()] }
}

pub(crate) fn prepare_forms() -> Result<(), Failure> {
    prepare_forms_for_server()
        .map_err(|error| Failure::failed(format!("this is what a server starts for itself: {error}")))
}
