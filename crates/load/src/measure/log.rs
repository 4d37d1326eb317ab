//! The end of what a server wrote.
//!
//! Owns the pipe and the thread that empties it: a server that writes much is never held up for long and fills no
//! disk.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

/// What is kept: the last screens of what was written, which is where the error stands.
const KEPT_BYTES: usize = 64 * 1024;
/// What a pipe holds by default.
const READ_BYTES: usize = 64 * 1024;

/// What was written last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    last: VecDeque<u8>,
    bytes: u64,
    is_whole: bool,
}

impl Log {
    /// A log and the end that is written to. The thread ends when all copies of that end are closed.
    pub(crate) fn open() -> io::Result<(Log, PipeWriter)> {
        let (reader, writer) = io::pipe()?;
        let log = Log::default();
        let kept = log.clone();
        std::thread::Builder::new().name("server's output".to_owned()).spawn(move || kept.empty(reader))?;
        Ok((log, writer))
    }

    /// The last that was written, as text.
    pub(crate) fn tail(&self) -> String {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (front, back) = kept.last.as_slices();
        String::from_utf8_lossy(&[front, back].concat()).into_owned()
    }

    /// Bytes that were written in all.
    pub(crate) fn bytes(&self) -> u64 {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }

    /// All who could write have closed their end.
    pub(crate) fn is_whole(&self) -> bool {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_whole
    }

    fn empty(&self, mut reader: PipeReader) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => self.keep(buffer.get(..read).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).is_whole = true;
    }

    fn keep(&self, bytes: &[u8]) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.bytes = kept.bytes.saturating_add(bytes.len() as u64);
        kept.last.extend(bytes);
        let over = kept.last.len().saturating_sub(KEPT_BYTES);
        kept.last.drain(..over);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let log = Log::default();
        for round in 0..40_000 {
            log.keep(format!("line {round}\n").as_bytes());
        }
        let tail = log.tail();
        assert_eq!(tail.len(), KEPT_BYTES);
        assert!(tail.ends_with("line 39999\n"));
        assert!(log.bytes() > 400_000);
    }
}
