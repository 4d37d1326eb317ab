//! Packs: one executable that holds onehop, an Onehopfile and all that it serves.
//!
//! Owns the format (docs/pack.md): where the parts of the file are, how they are found and verified; what goes into a
//! pack; and where a running pack unpacks what its applications need. Knows no server and no socket. Never panics over
//! what a file holds, and never writes outside of the folder that it is given or chose.
//!
//! Read `contents/` for what goes into a pack, `index.rs` for what a pack says of itself, `slot.rs` for how a program
//! knows that it is one, then `write.rs` and `read.rs`; `layout.rs` for what is unpacked, `installed/` for the pack that
//! this program is and its folder on the machine, `oci/` for images. `runtime/` makes Node.js portable.
#![forbid(unsafe_code)]

mod bounded;
mod configuration;
pub mod contents;
pub mod digest;
mod error;
pub mod index;
pub mod installed;
pub mod layout;
pub mod limits;
pub mod oci;
pub mod private_folder;
mod read;
pub mod runtime;
mod slot;
mod validate;
mod write;

pub use configuration::PackSource;
pub use digest::Digest;
pub use error::PackError;
pub use index::Index;
pub use read::Pack;
pub use slot::{Location, own_location};
pub use write::{Summary, Writer};

#[cfg(test)]
mod tests;
