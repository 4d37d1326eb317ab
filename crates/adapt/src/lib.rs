//! Other servers' configurations as Onehopfiles: nginx.conf text in, an Onehopfile or a refusal with its line out.
//!
//! Pure: no socket, clock or process. Files are read through [`Source`], which may be a map in memory; what a text
//! cannot say (which application answers behind a port, what a folder holds) is asked of a [`Deployment`].
//!
//! The way of a translation: [`nginx::Configuration`] reads the file with what it includes and chooses a server of
//! it, [`nginx::translate`] writes that server's directives as those of a site. A directive that decides about
//! answers and has no equal is a [`Refusal`], one that does not is a note: nothing is dropped silently.
//! [`adapt`] does that for all servers and comments on what was refused. `onehop try` (crates/try) does it in steps, since it
//! looks for the applications in between and measures the configuration beside its translation.
#![forbid(unsafe_code)]

mod deployment;
pub mod nginx;
pub mod onehopfile;
pub mod paths;
mod position;
mod refusal;
mod whole;

pub use deployment::{Deployment, TextOnly, Upstream};
pub use position::Position;
pub use refusal::Refusal;
pub use whole::{Adapted, adapt};
