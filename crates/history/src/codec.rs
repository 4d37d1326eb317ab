//! Samples and events as bytes: numbers of seven bits a byte (LEB128), buckets as their distance from the one before.
//!
//! Bytes that do not fit give `None`, never a panic: a file may hold anything.

use std::sync::Arc;

use onehop_metrics::histogram::Snapshot;

use crate::limits::{BUCKETS_MAX, COUNT_MAX, RECORD_BYTES_MAX};
use crate::names::Names;
use crate::sample::{AppFigures, Event, Figures, ProcessFigures, Sample};

/// The name under which a sample has the sum of all sites. No site has it: a label is an address.
pub(crate) const ALL: &str = "";

/// A sample as it lies in a segment: figures are decoded where a view asks for them.
pub(crate) struct Record<'b> {
    pub(crate) at: u64,
    pub(crate) covered_ms: u64,
    pub(crate) process: ProcessFigures,
    /// Number of the name, and encoded figures.
    pub(crate) sites: Vec<(usize, &'b [u8])>,
    /// Number of the name, and figures.
    pub(crate) apps: Vec<(usize, AppFigures)>,
}

/// A sample with the sum of its sites; new names go into `names`.
pub(crate) fn encode(sample: &Sample, names: &mut Names) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + sample.sites.len() * 64);
    put_all(&mut out, &[sample.at, sample.covered_ms]);
    let process = &sample.process;
    put_all(&mut out, &[process.cpu_micros, process.resident_bytes, process.connections]);
    let mut all = Figures::default();
    sample.sites.values().for_each(|figures| all.merge(figures));
    let counted = sample.sites.iter().filter(|(_, figures)| !figures.is_empty());
    put(&mut out, counted.clone().count() as u64 + 1);
    let mut encoded = Vec::new();
    for (name, figures) in std::iter::once((&Arc::from(ALL), &all)).chain(counted) {
        put_name(&mut out, name, names);
        encoded.clear();
        encode_figures(figures, &mut encoded);
        put(&mut out, encoded.len() as u64);
        out.extend_from_slice(&encoded);
    }
    put(&mut out, sample.apps.len() as u64);
    for (name, app) in &sample.apps {
        put_name(&mut out, name, names);
        let AppFigures { cpu_micros, resident_bytes, lag_micros, in_flight, queued } = *app;
        put_all(&mut out, &[cpu_micros, resident_bytes, lag_micros, in_flight, queued]);
    }
    out
}

/// The record in these bytes; its new names go into `names`.
pub(crate) fn decode<'b>(bytes: &'b [u8], names: &mut Names) -> Option<Record<'b>> {
    let mut input = Input(bytes);
    let (at, covered_ms) = (input.number()?, input.number()?);
    let process = ProcessFigures {
        cpu_micros: input.number()?,
        resident_bytes: input.number()?,
        connections: input.number()?,
    };
    let count = input.length()?;
    let mut sites = Vec::with_capacity(count.min(1_024));
    for _ in 0..count {
        let name = input.name(names)?;
        let length = input.length()?;
        sites.push((name, input.bytes(length)?));
    }
    let count = input.length()?;
    let mut apps = Vec::with_capacity(count.min(64));
    for _ in 0..count {
        let name = input.name(names)?;
        let app = AppFigures {
            cpu_micros: input.number()?,
            resident_bytes: input.number()?,
            lag_micros: input.number()?,
            in_flight: input.number()?,
            queued: input.number()?,
        };
        apps.push((name, app));
    }
    Some(Record { at, covered_ms, process, sites, apps })
}

impl Record<'_> {
    /// All of it.
    pub(crate) fn sample(&self, names: &Names) -> Option<Sample> {
        let mut sample =
            Sample { at: self.at, covered_ms: self.covered_ms, process: self.process, ..Sample::default() };
        for (number, encoded) in &self.sites {
            let name = names.get(*number)?;
            if **name == *ALL {
                continue;
            }
            let mut buckets = Vec::new();
            let figures = decode_figures(encoded, |bucket, count| buckets.push((bucket, count)))?;
            let nanos = figures.durations.nanos();
            let durations = Snapshot::new(buckets, nanos);
            sample.sites.insert(Arc::clone(name), Figures { durations, ..figures });
        }
        for (number, app) in &self.apps {
            sample.apps.insert(Arc::clone(names.get(*number)?), *app);
        }
        Some(sample)
    }
}

fn encode_figures(figures: &Figures, out: &mut Vec<u8>) {
    put_all(out, &[figures.requests, figures.errors, figures.rejected, figures.bytes]);
    put_all(out, &[figures.streams, figures.cold_starts, figures.slowest_cold_start_nanos]);
    put(out, figures.durations.nanos());
    let mut least = 0;
    for (bucket, count) in figures.durations.buckets() {
        put_all(out, &[u64::from(*bucket - least), *count]);
        least = *bucket + 1;
    }
}

/// The counters; each bucket and its count go to `bucket`, and `durations` has their sum alone.
pub(crate) fn decode_figures(bytes: &[u8], mut bucket: impl FnMut(u16, u64)) -> Option<Figures> {
    let mut input = Input(bytes);
    let figures = input.counters()?;
    // One more than the bucket before, so that none comes twice.
    let mut least = 0_u64;
    while !input.0.is_empty() {
        let number = least.checked_add(input.number()?).filter(|number| *number < BUCKETS_MAX)?;
        bucket(number as u16, input.number().filter(|count| *count <= COUNT_MAX)?);
        least = number + 1;
    }
    Some(figures)
}

/// The counters alone.
pub(crate) fn decode_counters(bytes: &[u8]) -> Option<Figures> {
    Input(bytes).counters()
}

/// An event.
pub(crate) fn encode_event(event: &Event) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, event.at);
    for text in [&event.event, &event.text, event.subject.as_ref().unwrap_or(&String::new())] {
        put(&mut out, text.len() as u64);
        out.extend_from_slice(text.as_bytes());
    }
    out
}

/// The event in these bytes.
pub(crate) fn decode_event(bytes: &[u8]) -> Option<Event> {
    let mut input = Input(bytes);
    let at = input.number()?;
    let mut text = || {
        let length = input.length()?;
        String::from_utf8(input.bytes(length)?.to_vec()).ok()
    };
    let (event, text, subject) = (text()?, text()?, text()?);
    Some(Event { at, event, text, subject: Some(subject).filter(|subject| !subject.is_empty()) })
}

fn put_all(out: &mut Vec<u8>, numbers: &[u64]) {
    numbers.iter().for_each(|number| put(out, *number));
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_name(out: &mut Vec<u8>, name: &Arc<str>, names: &mut Names) {
    if let Some(number) = names.number(name) {
        return put(out, number as u64);
    }
    put_all(out, &[names.count() as u64, name.len() as u64]);
    out.extend_from_slice(name.as_bytes());
    names.add(Arc::clone(name));
}

/// Bytes that are not read yet.
struct Input<'b>(&'b [u8]);

impl<'b> Input<'b> {
    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.0.split_first()?;
            self.0 = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|length| *length <= RECORD_BYTES_MAX)
    }

    fn bytes(&mut self, length: usize) -> Option<&'b [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn counters(&mut self) -> Option<Figures> {
        Some(Figures {
            requests: self.number()?,
            errors: self.number()?,
            rejected: self.number()?,
            bytes: self.number()?,
            streams: self.number()?,
            cold_starts: self.number()?,
            slowest_cold_start_nanos: self.number()?,
            durations: Snapshot::new([], self.number()?),
        })
    }

    /// The number of a name.
    fn name(&mut self, names: &mut Names) -> Option<usize> {
        let number = self.length()?;
        if number == names.count() {
            let length = self.length()?;
            let name = std::str::from_utf8(self.bytes(length)?).ok()?;
            names.add(name.into());
        }
        names.get(number).map(|_| number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn figures() -> impl Strategy<Value = Figures> {
        let buckets = proptest::collection::vec((0_u16..900, 1_u64..1_000_000), 0..40);
        (any::<[u64; 8]>(), buckets).prop_map(|(counts, buckets)| Figures {
            requests: counts[0] >> 2,
            errors: counts[1] >> 2,
            rejected: counts[2] >> 2,
            bytes: counts[3] >> 2,
            streams: counts[4] >> 2,
            cold_starts: counts[5] >> 2,
            slowest_cold_start_nanos: counts[6],
            durations: Snapshot::new(buckets, counts[7] >> 2),
        })
    }

    fn sample() -> impl Strategy<Value = Sample> {
        let sites = proptest::collection::btree_map("[a-z]{1,9}", figures(), 0..3);
        let apps = proptest::collection::btree_map("[a-z]{1,9}", any::<[u64; 5]>(), 0..3);
        (any::<[u64; 5]>(), sites, apps).prop_map(|(counts, sites, apps)| Sample {
            at: counts[0],
            covered_ms: counts[1],
            process: ProcessFigures {
                cpu_micros: counts[2],
                resident_bytes: counts[3],
                connections: counts[4],
            },
            sites: sites.into_iter().map(|(name, figures)| (name.into(), figures)).collect(),
            apps: apps
                .into_iter()
                .map(|(name, [cpu_micros, resident_bytes, lag_micros, in_flight, queued])| {
                    let app = AppFigures { cpu_micros, resident_bytes, lag_micros, in_flight, queued };
                    (name.into(), app)
                })
                .collect(),
        })
    }

    proptest! {
        #[test]
        fn samples_of_a_segment_are_read_as_they_were_written(samples in proptest::collection::vec(sample(), 1..4)) {
            let (mut written, mut read) = (Names::default(), Names::default());
            for mut sample in samples {
                let bytes = encode(&sample, &mut written);
                let record = decode(&bytes, &mut read).expect("decoded");
                sample.sites.retain(|_, figures| !figures.is_empty());
                prop_assert_eq!(record.sample(&read).expect("whole"), sample);
            }
        }

        #[test]
        fn bytes_of_any_kind_are_no_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut names = Names::default();
            if let Some(record) = decode(&bytes, &mut names) {
                let _ = record.sample(&names);
            }
            let _ = decode_event(&bytes);
        }
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        for subject in [None, Some("api".to_owned())] {
            let event = Event { at: 1_700_000_000, event: "start".into(), text: "one\u{e9}".into(), subject };
            assert_eq!(decode_event(&encode_event(&event)), Some(event));
        }
    }
}
