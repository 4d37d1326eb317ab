//! Packs: one executable that holds onehop, an Onehopfile and all that it serves.
//!
//! Owns the format (docs/pack.md): where things lie in the file, how they are found and proved to be what was
//! packed; and what goes into it. Knows no server, no socket and no clock; what is done with a pack is the
//! server's. Never panics over what a file holds, and never writes outside of the folder that
//! it is given.
//!
//! Read `contents/` for what goes into a pack, `index.rs` for what a pack says of itself, `slot.rs` for how a program knows that it is one, then
//! `write.rs` and `read.rs`; `layout.rs` for what is unpacked, `oci/` for images. `runtime/` makes Node.js fit to be
//! taken along.
#![forbid(unsafe_code)]

mod bounded;
mod configuration;
pub mod contents;
pub mod digest;
mod error;
pub mod index;
pub mod layout;
pub mod limits;
pub mod oci;
mod read;
pub mod runtime;
mod slot;
mod sound;
mod write;

pub use configuration::PackSource;
pub use digest::Digest;
pub use error::PackError;
pub use index::Index;
pub use read::Pack;
pub use slot::{Place, own_place};
pub use write::{Summary, Writer};

#[cfg(test)]
mod tests;
