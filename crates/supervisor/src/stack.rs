//! Where a stuck worker is: Node prints it to standard error when it gets SIGINT (`--trace-sigint`).
//!
//! Only processes that may send it signals can ask, and only the server reads the answer. Node notices the signal on a
//! thread of its own and interrupts the code that runs; the process ends with that. Bounded by
//! [`WORKER_STACK_DEADLINE`] whatever the process does.

use tokio::time::timeout;

use crate::embedded::LIBRARY_FOLDER;
use crate::limits::{WORKER_STACK_DEADLINE, WORKER_STACK_FRAMES_MAX};
use crate::process::Process;

/// The stack of a stuck process, a line for each frame, or why there is none.
pub(crate) async fn of(process: &mut Process) -> String {
    if !process.traces_interrupts() {
        return "(only Node can be asked for the stack of a stuck process)".to_owned();
    }
    process.interrupt();
    let mut frames = Vec::new();
    let all = async {
        while let Some(frame) = process.trace.recv().await.filter(|frame| !frame.is_empty()) {
            frames.push(frame);
        }
    };
    let _ = timeout(WORKER_STACK_DEADLINE, all).await;
    if frames.is_empty() {
        return "(not found out: it did not even notice a signal; is it in native code?)".to_owned();
    }
    describe(&frames)
}

fn describe(frames: &[String]) -> String {
    // How the worker's own library came to call the application helps no reader.
    let own = frames.iter().position(|frame| frame.contains(LIBRARY_FOLDER)).filter(|own| *own > 0);
    let frames = frames.get(..own.unwrap_or(frames.len())).unwrap_or(frames);
    let shown = frames.iter().take(WORKER_STACK_FRAMES_MAX);
    let mut lines: Vec<String> = shown.map(|frame| frame.trim().replace("file://", "")).collect();
    let more = frames.len().saturating_sub(lines.len());
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_is_that_of_the_application() {
        let spin = "    at spin (file:///srv/api.mjs:5:10)".to_owned();
        let library = format!("    at feed (file:///tmp/{LIBRARY_FOLDER}0-1/wire.mjs:1:1)");
        assert_eq!(describe(&[spin.clone(), library.clone(), spin.clone()]), "at spin (/srv/api.mjs:5:10)");
        assert!(describe(&[library, spin.clone()]).contains("wire.mjs"));
        assert!(describe(&vec![spin; WORKER_STACK_FRAMES_MAX + 3]).ends_with("\nand 3 more"));
    }
}
