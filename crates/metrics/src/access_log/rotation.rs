//! Rotation of a log file: names with a time, compression, and how many files are kept for how long.
//!
//! Names and defaults are those of Caddy: `access.log` becomes `access-2026-01-31T23-59-59.999.log` (UTC), then
//! `….log.gz`. Only files of such names are ever compressed or removed.

use std::fs::{self, File, FileTimes};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use onehop_config::checked::{LogRoll, ROTATED_LOG_TIME};
use onehop_message::calendar::Moment;

use crate::limits::LOG_ROLL_NAMES_TRIED_MAX;

/// Permissions of a log file: Caddy's.
pub(super) const FILE_MODE: u32 = 0o600;

const COMPRESSED: &str = ".gz";

/// How nice the thread that compresses is to those that answer (setpriority(2); Linux has a value for each thread).
const NICENESS: i32 = 10;

/// Rotates one file.
pub(super) struct Rotation {
    path: PathBuf,
    roll: LogRoll,
    /// Clean-ups that were requested and are not done; a thread works while there are some.
    requested: Arc<AtomicUsize>,
}

impl Rotation {
    /// For the file at this path. Cleans up what was rotated before.
    pub(super) fn new(path: &Path, roll: LogRoll) -> Self {
        let rotation = Self { path: path.to_path_buf(), roll, requested: Arc::default() };
        rotation.clean_up();
        rotation
    }

    /// The most bytes of a file.
    pub(super) fn size(&self) -> u64 {
        self.roll.size
    }

    /// Gives the file a name with the time in it. The oldest rotated files go first, so that at no moment more of them
    /// take room than may be kept.
    pub(super) fn move_away(&self) -> io::Result<PathBuf> {
        let names = Names::of(&self.path)?;
        for oldest in names.rotated()?.into_iter().skip(self.roll.keep.saturating_sub(1)) {
            // One that cannot be removed does not hold the log up; the clean-up tries again.
            let _ = fs::remove_file(oldest);
        }
        let now = SystemTime::now();
        // Two rotations within a millisecond get different names.
        let free = (0..LOG_ROLL_NAMES_TRIED_MAX)
            .map(|later| names.at(now + Duration::from_millis(later)))
            .find(|path| !path.exists() && !compressed(path).exists());
        let moved = free.ok_or(io::ErrorKind::AlreadyExists)?;
        fs::rename(&self.path, &moved)?;
        Ok(moved)
    }

    /// Compresses and removes rotated files, on a thread of its own.
    pub(super) fn clean_up(&self) {
        if self.requested.fetch_add(1, Ordering::AcqRel) > 0 {
            return;
        }
        let (path, roll, requested) = (self.path.clone(), self.roll, Arc::clone(&self.requested));
        let work = move || {
            let _ = rustix::process::setpriority_process(None, NICENESS);
            loop {
                let seen = requested.load(Ordering::Acquire);
                // What fails here (a file that another process removed) is tried again at the next rotation.
                let _ = clean(&path, roll);
                if requested.compare_exchange(seen, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                    return;
                }
            }
        };
        if std::thread::Builder::new().name("log-rotation".into()).spawn(work).is_err() {
            self.requested.store(0, Ordering::Release);
        }
    }
}

/// The parts of rotated files' names.
struct Names {
    directory: PathBuf,
    /// `access-`
    before: String,
    /// `.log`, or nothing.
    after: String,
}

impl Names {
    fn of(path: &Path) -> io::Result<Self> {
        let text = |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).map(str::to_owned);
        let before = text(path.file_stem()).ok_or(io::ErrorKind::InvalidFilename)?;
        let after = text(path.extension()).map_or_else(String::new, |extension| format!(".{extension}"));
        let directory = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        Ok(Self { directory, before: format!("{before}-"), after })
    }

    fn at(&self, time: SystemTime) -> PathBuf {
        let milliseconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().subsec_millis();
        let seconds = Moment::of(time).rfc3339().replace(':', "-");
        let stamp = format!("{}.{milliseconds:03}", seconds.trim_end_matches('Z'));
        self.directory.join(format!("{}{stamp}{}", self.before, self.after))
    }

    /// Whether a name is that of a rotated file, compressed or not.
    fn is_rotated(&self, name: &str) -> bool {
        let name = name.strip_suffix(COMPRESSED).unwrap_or(name);
        let stamp = name.strip_prefix(&self.before).and_then(|rest| rest.strip_suffix(&self.after));
        stamp.is_some_and(|stamp| {
            let fits =
                |(byte, shape): (u8, u8)| if shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
            stamp.len() == ROTATED_LOG_TIME.len() && stamp.bytes().zip(ROTATED_LOG_TIME.bytes()).all(fits)
        })
    }

    /// Rotated files, newest first.
    fn rotated(&self) -> io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.directory)?.flatten().map(|entry| entry.path());
        let is_rotated = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| self.is_rotated(name))
        };
        let mut all: Vec<PathBuf> = entries.filter(is_rotated).collect();
        all.sort_unstable_by(|one, other| other.cmp(one));
        Ok(all)
    }
}

fn clean(path: &Path, roll: LogRoll) -> io::Result<()> {
    for (number, rotated) in Names::of(path)?.rotated()?.into_iter().enumerate() {
        let age = rotated.metadata().and_then(|file| file.modified()).ok().and_then(|at| at.elapsed().ok());
        if number >= roll.keep || age.is_some_and(|age| age > roll.keep_for) {
            fs::remove_file(&rotated)?;
        } else if roll.compress && !rotated.as_os_str().as_encoded_bytes().ends_with(COMPRESSED.as_bytes()) {
            compress(&rotated)?;
        }
    }
    Ok(())
}

/// Writes a file beside it first, so that a file with the final name is whole.
fn compress(path: &Path) -> io::Result<()> {
    let whole = compressed(path);
    let part = whole.with_extension("part");
    let mut source = File::open(path)?;
    let target = File::options().create(true).write(true).truncate(true).mode(FILE_MODE).open(&part)?;
    let mut encoder = GzEncoder::new(target, Compression::default());
    let copied = io::copy(&mut source, &mut encoder).and_then(|_| encoder.finish());
    let finished = copied.and_then(|target| {
        // The age of a file is that of its lines.
        target.set_times(FileTimes::new().set_modified(source.metadata()?.modified()?))?;
        fs::rename(&part, &whole)
    });
    if let Err(error) = finished {
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    // Where the rotation removed the file meanwhile, it does not come back compressed.
    fs::remove_file(path).inspect_err(|_| drop(fs::remove_file(&whole)))
}

fn compressed(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(COMPRESSED);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_no_moment_are_there_more_rotated_files_than_may_be_kept() {
        let folder = std::env::temp_dir().join(format!("onehop-rotation-{}", std::process::id()));
        let path = folder.join("access.log");
        fs::create_dir_all(&folder).expect("a folder");
        let roll = LogRoll { size: 1, keep: 2, keep_for: Duration::from_secs(60), compress: false };
        let rotation = Rotation::new(&path, roll);
        for number in 1..=5 {
            fs::write(&path, number.to_string()).expect("written");
            let moved = rotation.move_away().expect("a name");
            assert_eq!(fs::read_to_string(moved).expect("text"), number.to_string());
            // No clean-up has been asked for since.
            let rotated = Names::of(&path).and_then(|names| names.rotated()).expect("a folder");
            assert_eq!(rotated.len(), number.min(2));
        }
        fs::remove_dir_all(folder).expect("removed");
    }

    #[test]
    fn only_names_with_a_time_are_those_of_rotated_files() {
        let names = Names::of(Path::new("/var/log/access.log")).expect("a name");
        let at = names.at(UNIX_EPOCH + Duration::from_millis(1_700_000_000_007));
        assert_eq!(at.to_str(), Some("/var/log/access-2023-11-14T22-13-20.007.log"));
        for (name, is_rotated) in [
            ("access-2023-11-14T22-13-20.007.log", true),
            ("access-2023-11-14T22-13-20.007.log.gz", true),
            ("access.log", false),
            ("access-2023-11-14T22-13-20.007.log.part", false),
            ("access-2023-11-14.log", false),
            ("access-of-yesterday-at-noon.log", false),
            ("other-2023-11-14T22-13-20.007.log", false),
        ] {
            assert_eq!(names.is_rotated(name), is_rotated, "{name}");
        }
    }
}
