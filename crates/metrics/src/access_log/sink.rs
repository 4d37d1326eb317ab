//! The output of a log: a file, which rotates by itself, or a stream of the process.
//!
//! A line is never cut: where the disk takes only a part of one, the file goes back to the last whole line.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Seek, SeekFrom, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use onehop_config::checked::{LogOutput, LogRoll};

use super::Failed;
use super::net::NetSink;
use super::rotation::{FILE_MODE, Rotation};
use crate::recent::Mark;

/// Permissions of a directory that is made for a log file: Caddy's.
const DIRECTORY_MODE: u32 = 0o700;

/// An open log.
pub(super) struct Sink {
    target: Target,
    /// A line was cut and could not be taken back: the next one begins with a line end.
    is_cut: bool,
}

enum Target {
    File {
        file: File,
        path: PathBuf,
        /// Its bytes.
        size: u64,
        rotation: Option<Rotation>,
    },
    /// The lock of the stream keeps lines of others apart; its buffer is not used, so that what was written is known.
    Stdout(File),
    Stderr(File),
    Discard,
    Net(Box<NetSink>),
}

impl Sink {
    pub(super) fn open(output: &LogOutput, roll: Option<LogRoll>) -> io::Result<Self> {
        let target = match output {
            LogOutput::Stdout => Target::Stdout(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            LogOutput::Stderr => Target::Stderr(File::from(io::stderr().as_fd().try_clone_to_owned()?)),
            LogOutput::Discard => Target::Discard,
            LogOutput::Net(settings) => Target::Net(Box::new(NetSink::open(settings)?)),
            LogOutput::File(path) => {
                let (file, size) = open(path)?;
                // A pipe or a device has no size.
                let rotation = roll.filter(|_| file.metadata().is_ok_and(|file| file.is_file()));
                let rotation = rotation.map(|roll| Rotation::new(path, roll));
                Target::File { file, path: path.clone(), size, rotation }
            }
        };
        Ok(Self { target, is_cut: false })
    }

    /// Opens a file anew at its path; a stream stays as it is.
    pub(super) fn reopen(&mut self) -> io::Result<()> {
        if let Target::File { file, path, size, .. } = &mut self.target {
            (*file, *size) = open(path)?;
            self.is_cut = false;
        }
        Ok(())
    }

    /// Moves a file away that would grow beyond its bound, and opens an empty one in its place.
    pub(super) fn roll_before(&mut self, bytes: usize) -> io::Result<()> {
        let Target::File { file, path, size, rotation: Some(rotation) } = &mut self.target else {
            return Ok(());
        };
        if *size == 0 || *size + bytes as u64 <= rotation.size() {
            return Ok(());
        }
        let moved = rotation.move_away()?;
        match open(path) {
            Ok(opened) => (*file, *size) = opened,
            Err(error) => {
                // The open file is the moved one: it is what its name says again.
                let _ = fs::rename(moved, path);
                return Err(error);
            }
        }
        rotation.clean_up();
        Ok(())
    }

    /// Writes whole lines, as many as there is room for. Each mark is a line.
    pub(super) fn write(&mut self, lines: &[u8], marks: &[Mark]) -> Result<(), Failed> {
        match &mut self.target {
            Target::File { file, size, .. } => {
                let written = write_lines(file, &mut self.is_cut, lines);
                *size = file.metadata().map_or(*size, |file| file.len());
                written
            }
            Target::Stdout(file) => {
                let _lock = io::stdout().lock();
                write_lines(file, &mut self.is_cut, lines)
            }
            Target::Stderr(file) => {
                let _lock = io::stderr().lock();
                write_lines(file, &mut self.is_cut, lines)
            }
            Target::Discard => Ok(()),
            Target::Net(sink) => sink.write(lines, marks),
        }
    }
}

/// Opens a file, and makes it and its directory where they are missing. Only the server's user can read them: lines hold
/// addresses and header values of clients.
fn open(path: &Path) -> io::Result<(File, u64)> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory)?;
    }
    let file = File::options().create(true).append(true).mode(FILE_MODE).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}

fn write_lines(file: &mut File, is_cut: &mut bool, lines: &[u8]) -> Result<(), Failed> {
    let all = |error| Failed { lines: count(lines), error };
    if *is_cut {
        file.write_all(b"\n").map_err(all)?;
        *is_cut = false;
    }
    let mut written = 0;
    let error = loop {
        let left = lines.get(written..).unwrap_or_default();
        if left.is_empty() {
            return Ok(());
        }
        match file.write(left) {
            Ok(0) => break io::ErrorKind::WriteZero.into(),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => break error,
        }
    };
    let (taken, left) = lines.split_at(written.min(lines.len()));
    let whole = taken.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let part = (taken.len() - whole) as u64;
    *is_cut = part > 0 && take_back(file, part).is_err();
    Err(Failed { lines: count(left), error })
}

/// Cuts the last bytes off again, unless another process has written behind them.
fn take_back(file: &mut File, bytes: u64) -> io::Result<()> {
    let end = file.stream_position()?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() != end {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let whole = end.saturating_sub(bytes);
    file.set_len(whole)?;
    file.seek(SeekFrom::Start(whole)).map(drop)
}

fn count(lines: &[u8]) -> u64 {
    lines.iter().filter(|byte| **byte == b'\n').count() as u64
}
