//! The segments of all levels, in a folder or in memory.
//!
//! Level 0 gets each sample as it is. The others add samples up and write the sum when its interval is over; what is not written
//! yet is seen by views, too, and is added up again from the level below after a start. So a process that is killed loses
//! nothing that it had appended.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use crate::codec::{self, Record};
use crate::folder::{self, Folder};
use crate::limits::{
    EVENT_SEGMENT_BYTES_MAX, EVENT_SEGMENT_SECONDS, EVENT_TEXT_BYTES_MAX, FINEST_KEEP_SECONDS, LEVEL_SECONDS,
    MEMORY_BYTES_MAX, RETRY_SECONDS, SAMPLE_SECONDS, SEGMENT_SECONDS,
};
use crate::names::Names;
use crate::sample::{Event, Sample};
use crate::segment::{End, MAGIC, Records, frame};

/// The levels, and events behind them.
const KINDS: usize = LEVEL_SECONDS.len() + 1;

/// The number of events among the kinds.
const EVENTS: usize = LEVEL_SECONDS.len();

/// How much is kept, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The folder; without one everything is held in memory.
    pub folder: Option<PathBuf>,
    /// Seconds for which all levels but the finest are kept.
    pub keep_seconds: u64,
    /// Bytes of all files.
    pub bytes_max: u64,
}

/// What sites, applications and the process did.
pub struct History {
    settings: Settings,
    /// The folder while it can be written.
    folder: Option<Folder>,
    /// When a folder that could not be used is tried again.
    retry_at: u64,
    /// A notice has said that the folder cannot be used.
    is_in_trouble: bool,
    kinds: [Kind; KINDS],
    last_at: u64,
    notices: Vec<Event>,
}

/// One level, or events.
#[derive(Default)]
struct Kind {
    /// By the time at which they begin.
    segments: BTreeMap<u64, Segment>,
    /// The sum of the interval that is not over yet.
    sum: Option<Sample>,
    /// Where the last record was appended.
    cursor: Option<Cursor>,
}

/// What a segment has in its file, and what could not be written there.
#[derive(Default)]
struct Segment {
    file_bytes: u64,
    memory: Vec<u8>,
}

/// A file or memory that records are appended to, with the names in it.
struct Cursor {
    start: u64,
    is_file: bool,
    names: Names,
}

impl History {
    /// Opens the folder. Where that fails, memory is used, and a notice says so.
    pub fn open(settings: Settings, now: u64) -> Self {
        let mut history = Self {
            settings,
            folder: None,
            retry_at: 0,
            is_in_trouble: false,
            kinds: Default::default(),
            last_at: now,
            notices: Vec::new(),
        };
        history.retry(now);
        history
    }

    /// How much is kept, and where.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// What a person has to know, since the last call: at most one for each fault.
    pub fn take_notices(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.notices)
    }

    /// Bytes of all files.
    pub fn file_bytes(&self) -> u64 {
        self.kinds.iter().map(Kind::file_bytes).sum()
    }

    /// Appends what was counted in an interval.
    pub fn append(&mut self, mut sample: Sample) {
        sample.at -= sample.at % SAMPLE_SECONDS;
        self.note_clock(sample.at);
        self.retry(sample.at);
        self.put(0, sample.at, |names| codec::encode(&sample, names));
        for level in 1..LEVEL_SECONDS.len() {
            self.add(level, &sample);
        }
        self.drop_oldest(sample.at);
    }

    /// Appends an event.
    pub fn append_event(&mut self, mut event: Event) {
        let longest = event.text.len().min(EVENT_TEXT_BYTES_MAX);
        let end = (0..=longest).rev().find(|end| event.text.is_char_boundary(*end));
        event.text.truncate(end.unwrap_or_default());
        let start = event.at - event.at % EVENT_SEGMENT_SECONDS;
        let segment = self.kinds[EVENTS].segments.get(&start);
        if segment.is_none_or(|segment| segment.bytes() < EVENT_SEGMENT_BYTES_MAX) {
            self.put(EVENTS, event.at, |_| codec::encode_event(&event));
        }
    }

    /// Shows each record of a level within a range of time, in any order.
    pub(crate) fn scan(
        &mut self,
        level: usize,
        from: u64,
        to: u64,
        visit: &mut dyn FnMut(&Record<'_>, &Names),
    ) {
        let mut read = |records: &mut dyn Iterator<Item = &[u8]>| {
            let mut names = Names::default();
            for bytes in records {
                let Some(record) = codec::decode(bytes, &mut names) else { return };
                if (from..to).contains(&record.at) {
                    visit(&record, &names);
                }
            }
        };
        self.segments(level, from, to, &mut |records| read(records));
        if let Some(sum) = &self.kinds[level].sum {
            let bytes = codec::encode(sum, &mut Names::default());
            read(&mut std::iter::once(bytes.as_slice()));
        }
    }

    /// Events within a range of time, in any order.
    pub(crate) fn events(&mut self, from: u64, to: u64, visit: &mut dyn FnMut(Event)) {
        self.segments(EVENTS, from, to, &mut |records| {
            let events = records.filter_map(codec::decode_event);
            events.filter(|event| (from..to).contains(&event.at)).for_each(&mut *visit);
        });
    }

    /// Seconds for which a level is kept.
    pub(crate) fn keep_seconds(&self, kind: usize) -> u64 {
        if kind == 0 { FINEST_KEEP_SECONDS } else { self.settings.keep_seconds }
    }

    /// Shows the records of each segment that may have some of this range. What is damaged is set aside.
    fn segments(&mut self, kind: usize, from: u64, to: u64, visit: &mut dyn FnMut(&mut Records<'_>)) {
        let earliest = from.saturating_sub(segment_seconds(kind) - 1);
        let mut damaged = Vec::new();
        for (start, segment) in self.kinds[kind].segments.range(earliest..to.max(earliest)) {
            if !segment.memory.is_empty() {
                visit(&mut Records::of(&segment.memory));
            }
            let folder = self.settings.folder.as_ref().filter(|_| segment.file_bytes > 0);
            let read = folder.and_then(|folder| folder::read(folder, kind, *start, segment.file_bytes).ok());
            let Some(bytes) = read else { continue };
            let mut records = Records::of(&bytes);
            visit(&mut records);
            records.by_ref().for_each(drop);
            if records.end().1 != End::Whole {
                damaged.push(*start);
            }
        }
        damaged.into_iter().for_each(|start| self.check_file(kind, start));
    }

    fn note_clock(&mut self, at: u64) {
        if at + SAMPLE_SECONDS < self.last_at {
            let text = format!(
                "the clock was set back by {} s: curves of this time show what was counted before and after that together",
                self.last_at - at
            );
            self.notice(at, "clock_set_back", text);
        }
        self.last_at = at;
    }

    fn notice(&mut self, at: u64, event: &str, text: String) {
        self.notices.push(Event { at, event: event.to_owned(), text, subject: None });
    }

    /// Adds a sample, or a sum of the level below, to the sum of a level.
    fn add(&mut self, level: usize, sample: &Sample) {
        let at = sample.at - sample.at % LEVEL_SECONDS[level];
        if let Some(over) = self.kinds[level].sum.take_if(|sum| sum.at != at) {
            self.put(level, over.at, |names| codec::encode(&over, names));
        }
        self.kinds[level].sum.get_or_insert_with(|| Sample { at, ..Sample::default() }).merge(sample);
    }

    /// Appends a record to its file, or to memory where that fails.
    fn put(&mut self, kind: usize, at: u64, encode: impl Fn(&mut Names) -> Vec<u8>) {
        let start = at - at % segment_seconds(kind);
        if self.folder.is_some() {
            match self.put_into(kind, start, true, &encode) {
                Ok(()) => return,
                Err(error) => self.lose_folder(at, &error),
            }
        }
        // Memory takes everything.
        let _ = self.put_into(kind, start, false, &encode);
    }

    fn put_into(
        &mut self,
        kind: usize,
        start: u64,
        is_file: bool,
        encode: impl Fn(&mut Names) -> Vec<u8>,
    ) -> io::Result<()> {
        let known = self.kinds[kind].cursor.take().filter(|at| at.start == start && at.is_file == is_file);
        let mut cursor = match known {
            Some(cursor) => cursor,
            None => Cursor { start, is_file, names: self.names_of(kind, start, is_file)? },
        };
        let framed = frame(&encode(&mut cursor.names));
        let segment = self.kinds[kind].segments.entry(start).or_default();
        let has = if is_file { segment.file_bytes } else { segment.memory.len() as u64 };
        let bytes = if has == 0 { [MAGIC, &framed].concat() } else { framed };
        match &self.folder {
            Some(folder) if is_file => {
                folder.append(kind, start, has, &bytes)?;
                segment.file_bytes += bytes.len() as u64;
            }
            _ => segment.memory.extend_from_slice(&bytes),
        }
        self.kinds[kind].cursor = Some(cursor);
        Ok(())
    }

    /// The names that a file or memory has already.
    fn names_of(&self, kind: usize, start: u64, is_file: bool) -> io::Result<Names> {
        let mut names = Names::default();
        let Some(segment) = self.kinds[kind].segments.get(&start).filter(|_| kind != EVENTS) else {
            return Ok(names);
        };
        let read = match &self.settings.folder {
            Some(folder) if is_file && segment.file_bytes > 0 => {
                folder::read(folder, kind, start, segment.file_bytes)?
            }
            _ => Vec::new(),
        };
        for record in Records::of(if is_file { &read } else { &segment.memory }) {
            codec::decode(record, &mut names);
        }
        Ok(names)
    }

    /// The folder cannot be used from now on.
    fn lose_folder(&mut self, at: u64, error: &io::Error) {
        self.folder = None;
        self.retry_at = at + RETRY_SECONDS;
        if !std::mem::replace(&mut self.is_in_trouble, true) {
            let shown = self.settings.folder.clone().unwrap_or_default();
            let text = format!(
                "the history cannot be written to {} ({error}): it is held in memory and tried again every {RETRY_SECONDS} s; \
                 `history off` in the global block turns it off",
                shown.display()
            );
            self.notice(at, "history_failed", text);
        }
    }

    /// Uses the folder where it is wanted, not used, and due.
    fn retry(&mut self, at: u64) {
        // A clock that was set back makes nothing wait longer.
        let is_due = at >= self.retry_at || at + RETRY_SECONDS < self.retry_at;
        let Some(path) = self.settings.folder.clone().filter(|_| self.folder.is_none() && is_due) else {
            return;
        };
        match Folder::open(&path).and_then(|folder| self.use_folder(folder, at)) {
            Ok(()) if std::mem::take(&mut self.is_in_trouble) => {
                self.notice(at, "history_recovered", "the history is written again".to_owned());
            }
            Ok(()) => {}
            Err(error) => self.lose_folder(at, &error),
        }
    }

    /// Finds what a folder has, and moves to it what memory has.
    fn use_folder(&mut self, folder: Folder, at: u64) -> io::Result<()> {
        let files = folder.files()?;
        self.folder = Some(folder);
        for kind in &mut self.kinds {
            kind.cursor = None;
            kind.segments.values_mut().for_each(|segment| segment.file_bytes = 0);
        }
        for file in files {
            self.kinds[file.kind].segments.entry(file.start).or_default().file_bytes = file.bytes;
        }
        for kind in 0..KINDS {
            // The others are checked where they are read.
            let last = self.kinds[kind].segments.iter().rev().find(|(_, segment)| segment.file_bytes > 0);
            if let Some((start, _)) = last {
                self.check_file(kind, *start);
            }
        }
        (1..LEVEL_SECONDS.len()).for_each(|level| self.add_up_again(level));
        (0..KINDS).try_for_each(|kind| self.move_to_files(kind))?;
        self.drop_oldest(at);
        Ok(())
    }

    /// Cuts off what is not whole at the end of a file; one that is damaged is set aside.
    fn check_file(&mut self, kind: usize, start: u64) {
        let Some(segment) = self.kinds[kind].segments.get_mut(&start) else { return };
        let (Some(folder), Some(path)) = (&self.folder, &self.settings.folder) else { return };
        let Ok(bytes) = folder::read(path, kind, start, segment.file_bytes) else { return };
        let mut records = Records::of(&bytes);
        records.by_ref().for_each(drop);
        let (whole, end) = records.end();
        self.kinds[kind].cursor = None;
        match end {
            End::Whole => {}
            End::CutOff => {
                if folder.cut(kind, start, whole).is_ok() {
                    segment.file_bytes = whole;
                }
            }
            End::Damaged => {
                let whole_bytes = bytes.get(..whole as usize).unwrap_or_default();
                match folder.set_aside(kind, start, whole_bytes) {
                    Ok(aside) => {
                        segment.file_bytes = whole;
                        let text = format!(
                            "a file of the history is damaged: it was moved to {aside}, and its first {whole} bytes are used"
                        );
                        self.notice(self.last_at, "history_damaged", text);
                    }
                    Err(error) => self.lose_folder(self.last_at, &error),
                }
            }
        }
    }

    /// Makes the sum of a level anew, of what the level below has counted since the last that was written.
    fn add_up_again(&mut self, level: usize) {
        if self.kinds[level].sum.is_some() {
            return;
        }
        let mut since = 0;
        if let Some((start, _)) = self.kinds[level].segments.last_key_value() {
            let start = *start;
            self.scan(level, start, u64::MAX, &mut |record, _| {
                since = since.max(record.at.saturating_add(LEVEL_SECONDS[level]));
            });
        }
        let mut samples = Vec::new();
        self.scan(level - 1, since, u64::MAX, &mut |record, names| samples.extend(record.sample(names)));
        samples.sort_by_key(|sample| sample.at);
        samples.iter().for_each(|sample| self.add(level, sample));
    }

    /// Moves records from memory to files; those of one segment all or none.
    fn move_to_files(&mut self, kind: usize) -> io::Result<()> {
        let held = self.kinds[kind].segments.iter().filter(|(_, segment)| !segment.memory.is_empty());
        let held: Vec<_> = held.map(|(start, segment)| (*start, segment.file_bytes)).collect();
        for (start, had) in held {
            let Some(segment) = self.kinds[kind].segments.get_mut(&start) else { continue };
            let memory = std::mem::take(&mut segment.memory);
            if let Err(error) = self.write_all(kind, start, &memory) {
                let segment = self.kinds[kind].segments.entry(start).or_default();
                segment.memory = memory;
                segment.file_bytes = had;
                let _ = self.folder.as_ref().map(|folder| folder.cut(kind, start, had));
                return Err(error);
            }
        }
        Ok(())
    }

    fn write_all(&mut self, kind: usize, start: u64, memory: &[u8]) -> io::Result<()> {
        let mut names = Names::default();
        for record in Records::of(memory) {
            let sample = match kind {
                EVENTS => None,
                _ => codec::decode(record, &mut names).and_then(|record| record.sample(&names)),
            };
            self.put_into(kind, start, true, |names| match &sample {
                Some(sample) => codec::encode(sample, names),
                None => record.to_vec(),
            })?;
        }
        Ok(())
    }

    /// Drops what is older than it has to be, and the oldest where there are too many bytes.
    fn drop_oldest(&mut self, now: u64) {
        for kind in 0..KINDS {
            // One at a time: a clock that was wrong for a moment must not cost everything.
            let kept_from = now.saturating_sub(self.keep_seconds(kind) + segment_seconds(kind));
            let oldest = self.kinds[kind].segments.first_key_value().map(|(start, _)| *start);
            if let Some(oldest) = oldest.filter(|oldest| *oldest < kept_from) {
                self.drop_segment(kind, oldest);
            }
        }
        let file_bytes: fn(&Kind) -> u64 = Kind::file_bytes;
        while self.file_bytes() > self.settings.bytes_max {
            // The newest file of a kind is being written.
            let Some(kind) = self.largest(file_bytes, 1) else { break };
            self.drop_first(kind, |segment| segment.file_bytes > 0);
        }
        let memory_bytes: fn(&Kind) -> u64 = Kind::memory_bytes;
        while self.kinds.iter().map(memory_bytes).sum::<u64>() > MEMORY_BYTES_MAX {
            let Some(kind) = self.largest(memory_bytes, 0) else { break };
            self.drop_first(kind, |segment| !segment.memory.is_empty());
        }
    }

    /// The kind with the most bytes, of those with more segments than this.
    fn largest(&self, bytes: fn(&Kind) -> u64, segments: usize) -> Option<usize> {
        let kinds = self.kinds.iter().enumerate();
        let several = kinds.filter(|(_, kind)| kind.segments.len() > segments && bytes(kind) > 0);
        several.max_by_key(|(_, kind)| bytes(kind)).map(|(number, _)| number)
    }

    fn drop_first(&mut self, kind: usize, which: impl Fn(&Segment) -> bool) {
        let first = self.kinds[kind].segments.iter().find(|(_, segment)| which(segment));
        if let Some((start, _)) = first {
            self.drop_segment(kind, *start);
        }
    }

    fn drop_segment(&mut self, kind: usize, start: u64) {
        let dropped = self.kinds[kind].segments.remove(&start);
        self.kinds[kind].cursor = None;
        let has_file = dropped.is_some_and(|segment| segment.file_bytes > 0);
        if let Some(folder) = self.folder.as_ref().filter(|_| has_file) {
            // One that stays is found at the next start, and tried again.
            let _ = folder.remove(kind, start);
        }
    }
}

impl Kind {
    fn file_bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.file_bytes).sum()
    }

    fn memory_bytes(&self) -> u64 {
        self.segments.values().map(|segment| segment.memory.len() as u64).sum()
    }
}

impl Segment {
    fn bytes(&self) -> u64 {
        self.file_bytes + self.memory.len() as u64
    }
}

fn segment_seconds(kind: usize) -> u64 {
    SEGMENT_SECONDS.get(kind).copied().unwrap_or(EVENT_SEGMENT_SECONDS)
}

#[cfg(test)]
mod tests;
