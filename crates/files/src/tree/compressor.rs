//! The compressing process, from the inside.
//!
//! Owns its one loop: a job comes in, a form goes out, until the input ends. Nothing of the server is
//! in this process: what the compressors take goes back to the system with it, and if they fail or the
//! system runs out of memory, only it ends. Never outlives the server, never stands in its way. The other
//! side is `compressor_process.rs`.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::AtomicBool;

use rustix::process::{Signal, set_parent_process_death_signal, setpriority_process};

use super::frames::{read_job, write_result};
use super::variants::compressed;

/// Takes jobs from standard input and writes forms to standard output, at the lowest priority. Returns
/// at the end of the input; a job that is none is an error.
pub fn prepare_forms_for_server() -> io::Result<()> {
    yield_to_everything();
    // Where memory runs out, the kernel ends this process and not the server: it costs a file its forms.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    // Without the buffers of the standard library: a frame is written in two pieces anyway.
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    prepare_forms(input, output)
}

/// The same with an input and output of one's own.
pub fn prepare_forms(mut input: impl Read, mut output: impl Write) -> io::Result<()> {
    // Whoever does not want a form any more ends the process.
    let never = AtomicBool::new(false);
    while let Some((encoding, bytes)) = read_job(&mut input)? {
        write_result(&mut output, compressed(&bytes, encoding, &never).as_deref())?;
    }
    Ok(())
}

/// The last to run and the first to go. Each of these is a courtesy: what the system refuses is done
/// without.
fn yield_to_everything() {
    let _ = setpriority_process(None, NICENESS);
    let _ = rustix::thread::set_name(c"onehop-forms");
    // Where memory runs out, the system ends this process rather than the server.
    let _ = fs::write("/proc/self/oom_score_adj", OUT_OF_MEMORY_SCORE);
    // A form takes seconds; without the server nobody waits for it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
}

/// Only what nothing else wants of a core (setpriority(2)).
const NICENESS: i32 = 19;

/// The highest (proc_pid_oom_score_adj(5)).
const OUT_OF_MEMORY_SCORE: &str = "1000";

#[cfg(test)]
mod tests {
    use super::super::frames::{read_result, write_job};
    use super::*;
    use onehop_config::checked::Encoding;

    #[test]
    fn each_job_is_answered_in_turn_and_the_end_of_jobs_is_the_end() {
        let text = "onehop ".repeat(1_000);
        let mut jobs = Vec::new();
        for encoding in [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd] {
            write_job(&mut jobs, encoding, text.as_bytes()).expect("room");
            write_job(&mut jobs, encoding, b"short").expect("room");
        }
        let mut results = Vec::new();
        prepare_forms(&jobs[..], &mut results).expect("whole frames");
        let mut results = &results[..];
        for encoding in [Encoding::Gzip, Encoding::Brotli, Encoding::Zstd] {
            let form = read_result(&mut results, text.len()).expect("a frame");
            let made = compressed(text.as_bytes(), encoding, &AtomicBool::new(false));
            assert!(form.is_some() && form.as_deref() == made.as_deref(), "{encoding:?}");
            assert_eq!(read_result(&mut results, 5).expect("a frame"), None);
        }
        assert!(results.is_empty());
    }

    #[test]
    fn a_broken_frame_ends_it_after_what_came_before() {
        let mut jobs = Vec::new();
        write_job(&mut jobs, Encoding::Gzip, b"short").expect("room");
        jobs.extend_from_slice(b"nonsense");
        let mut results = Vec::new();
        let error = prepare_forms(&jobs[..], &mut results).expect_err("refused");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(results, u64::MAX.to_le_bytes());
    }
}
