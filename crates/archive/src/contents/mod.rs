//! What goes into a pack: patterns, data, secrets, sources and served trees, and the order in which they are written.
//!
//! The way of a pack: [`Subject`] reads the configuration as if it lay in a folder that no machine has (`base.rs`), with
//! values for variables that are set elsewhere (`variables.rs`). `apps.rs` says what the settings name, `sources.rs`
//! walks over it with what its packages need (`prune.rs`), without what is named, data or secret (`patterns.rs`,
//! `data.rs`, `secrets.rs`). Trees are prepared by the server; `trees.rs` says what of them goes in. [`Writing`] writes
//! all of it. Reads the file system; what is told of it to a person is the program's.

mod apps;
mod base;
mod below;
mod data;
mod error;
mod notes;
mod patterns;
mod prune;
mod secrets;
mod sources;
mod trees;
mod variables;
mod writing;

pub use apps::{Needed, needed};
pub use base::{Base, PathLocation, Subject, join};
pub use below::below;
pub use data::{DataRules, Reason};
pub use error::{ContentsError, Named};
pub use notes::Notes;
pub use patterns::Patterns;
pub use prune::name_of;
pub use secrets::{Kind, Secret};
pub use sources::{Entries, Entry, Gathering, Name};
pub use trees::{Choice, ServedFile, ServedTree, refuse_placeholders};
pub use variables::{StandIns, asked_for, load_for_packing};
pub use writing::{Bytes, Writing};
