//! Why a file is no pack that can be used.

use std::io;

/// Why a file is no pack that can be used. Messages go behind the file's name: `myapp: is cut off …`.
#[derive(Debug, thiserror::Error)]
pub enum PackError {
    /// It is onehop itself, with nothing packed.
    #[error("is onehop without a pack: make one with `onehop pack -o FILE`")]
    Empty,
    /// It is something else.
    #[error("is no pack: onehop did not make it, or what stands at its end was removed")]
    Foreign,
    /// Bytes are missing at its end.
    #[error("is cut off: {found} bytes are there of {expected}; copy it again")]
    Truncated {
        /// Bytes that it had when it was made.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// Bytes were added at its end.
    #[error(
        "was changed after it was packed: {found} bytes are there, and it was made of {expected}; copy it again"
    )]
    Longer {
        /// Bytes that it had when it was made.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// Something in it is not what was packed.
    #[error("was changed after it was packed: {what} is not what it was; copy it again, or pack it again")]
    Changed {
        /// What: `its index`, `assets/app.js`.
        what: String,
    },
    /// A later format.
    #[error(
        "has format {found}, and this onehop reads format {known}: use the onehop that made it, or a newer one"
    )]
    Format {
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Its index says what cannot be.
    #[error("is damaged: {0}; pack it again")]
    Damaged(String),
    /// More than a pack may hold.
    #[error("{0}")]
    TooMuch(String),
    /// The system refused to write it.
    #[error("cannot be written: {0}")]
    Unwritable(io::Error),
    /// The system refused to read it.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}
