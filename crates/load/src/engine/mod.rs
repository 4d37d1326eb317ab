//! The load: many connections, few threads, and a note of everything that came.
//!
//! Owns the threads of a run and what becomes of their notes. In the order of a request: `schedule.rs` and
//! `order.rs` say when and what is asked, `thread.rs` asks, `connection.rs` reads the answer, `record.rs` notes it;
//! `series.rs` and `verdict.rs` put the notes of all threads together. Never counts what it did not see whole,
//! and never spins: a load that takes the server's core measures itself.

use crate::client::UnsendableAsk;
use crate::outcome::Run;
use crate::plan::Plan;
use crate::progress::Observer;

mod limits;
mod order;
mod schedule;

/// Why there was no load. Its text is for a person.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The plan asks for nothing.
    #[error("there is nothing to do: {0}")]
    Nothing(&'static str),
    /// Each connection is a descriptor.
    #[error(
        "{needed} descriptors are needed and {allowed} are allowed: raise the limit (`ulimit -n {needed}`), or use fewer connections"
    )]
    Descriptors {
        /// For connections and what is open beside them.
        needed: u64,
        /// The hard limit.
        allowed: u64,
    },
    /// A request that would not be one.
    #[error("the request `{name}` cannot be sent: {why}")]
    Unsendable {
        /// The request's name.
        name: String,
        /// What is wrong with it.
        why: UnsendableAsk,
    },
    /// A path that would break the request's line.
    #[error("the request `{name}` cannot be sent: its path holds {odd:?}, which has to be written percent-encoded")]
    Path {
        /// The request's name.
        name: String,
        /// The letter.
        odd: char,
    },
    /// The system would not.
    #[error("the load could not start ({what}): {why}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        why: std::io::Error,
    },
}

/// Puts the load of `plan` on its servers, and tells what came of it.
///
/// # Errors
/// Where the load cannot even begin. Servers that fail are no error here: they are what was measured.
pub fn run(plan: &Plan, observer: &mut dyn Observer) -> Result<Run, LoadError> {
    let _ = (plan, observer);
    Err(LoadError::Nothing("the load is not built yet"))
}
