//! How many frames of which kind a peer may send in a time. h2 bounds what takes memory; these take processor time.
//!
//! Reads the headers of frames (RFC 9113 section 4.1) on their way to h2 and skips what follows them. Changes nothing.

use std::time::Instant;

use crate::limits::{
    BYTES_PER_OVERHEAD, OVERHEAD_BURST, OVERHEAD_PER_REQUEST, OVERHEAD_PER_SECOND, PINGS_BURST,
    PINGS_PER_SECOND, RESETS_BURST, RESETS_PER_SECOND, SETTINGS_BURST, SETTINGS_PER_SECOND,
};

/// What a client begins a connection with (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a frame's header.
const HEADER_BYTES: usize = 9;
/// The flag of the last frame of a message (RFC 9113 section 6.1).
const END_STREAM: u8 = 1;
/// The flag of the last frame of a field block (RFC 9113 section 6.2).
const END_HEADERS: u8 = 4;

/// What a peer sends too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flood {
    /// RST_STREAM.
    Resets,
    /// SETTINGS.
    Settings,
    /// Frames without a request or its body.
    Overhead,
}

/// Counts the frames of one connection.
#[derive(Debug)]
pub struct FrameCounter {
    header: [u8; HEADER_BYTES],
    /// Bytes of the header that have come.
    known: usize,
    /// Bytes that are no header: the rest of the preface, or of a frame.
    skipped: usize,
    /// What is skipped is a part of a body.
    is_data: bool,
    /// A field block goes on in the next frame (RFC 9113 section 6.10).
    in_block: bool,
    /// Frames and field blocks that have come as a whole.
    whole: u64,
    resets: Bucket,
    settings: Bucket,
    pings: Bucket,
    overhead: Bucket,
    /// Frames without a request or its body that have come.
    idle: u64,
    /// Bytes written that have not earned a frame yet.
    written: u32,
    flood: Option<Flood>,
}

impl FrameCounter {
    /// A connection that begins now, with the client's preface.
    pub fn new(now: Instant) -> Self {
        Self {
            header: [0; HEADER_BYTES],
            known: 0,
            skipped: PREFACE.len(),
            is_data: false,
            in_block: false,
            whole: 0,
            resets: Bucket::new(RESETS_BURST, RESETS_PER_SECOND, now),
            settings: Bucket::new(SETTINGS_BURST, SETTINGS_PER_SECOND, now),
            pings: Bucket::new(PINGS_BURST, PINGS_PER_SECOND, now),
            overhead: Bucket::new(OVERHEAD_BURST, OVERHEAD_PER_SECOND, now),
            idle: 0,
            written: 0,
            flood: None,
        }
    }

    /// What the peer has sent too much of.
    pub fn flood(&self) -> Option<Flood> {
        self.flood
    }

    /// Frames without a request or its body that have come.
    pub fn idle(&self) -> u64 {
        self.idle
    }

    /// The number of the frame or field block of which a part is missing. Bodies may come as slowly as their handlers allow.
    pub fn incomplete(&self) -> Option<u64> {
        let is_partial = self.known > 0 || self.in_block || (self.skipped > 0 && !self.is_data);
        is_partial.then_some(self.whole)
    }

    /// Counts the frames that begin in the next bytes from the peer.
    pub fn read(&mut self, mut bytes: &[u8], now: Instant) {
        while !bytes.is_empty() {
            let skipped = self.skipped.min(bytes.len());
            self.skipped -= skipped;
            self.whole += u64::from(skipped > 0 && self.skipped == 0 && !self.in_block);
            bytes = bytes.get(skipped..).unwrap_or_default();
            let wanted = (HEADER_BYTES - self.known).min(bytes.len());
            let (next, rest) = bytes.split_at_checked(wanted).unwrap_or_default();
            if let Some(room) = self.header.get_mut(self.known..self.known + next.len()) {
                room.copy_from_slice(next);
            }
            self.known += next.len();
            bytes = rest;
            if self.known == HEADER_BYTES {
                self.known = 0;
                self.count(now);
            }
        }
    }

    /// Counts bytes that were written to the peer, which it has to acknowledge.
    pub fn wrote(&mut self, bytes: usize) {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX).saturating_add(self.written);
        self.earn(bytes / BYTES_PER_OVERHEAD);
        self.written = bytes % BYTES_PER_OVERHEAD;
    }

    fn earn(&mut self, more: u32) {
        self.pings.earn(more);
        self.overhead.earn(more);
    }

    fn count(&mut self, now: Instant) {
        let [high, middle, low, kind, flags, ..] = self.header;
        self.skipped = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
        self.is_data = kind == 0;
        if matches!(kind, 1 | 9) {
            self.in_block = flags & END_HEADERS == 0;
        }
        self.whole += u64::from(self.skipped == 0 && !self.in_block);
        let (bucket, flood) = match kind {
            // DATA: h2 bounds small frames that have a byte. Its sender may measure the path meanwhile.
            0 if self.skipped > 0 || flags & END_STREAM != 0 => return self.pings.earn(1),
            // HEADERS.
            1 => return self.earn(OVERHEAD_PER_REQUEST),
            3 => (&mut self.resets, Flood::Resets),
            4 => (&mut self.settings, Flood::Settings),
            6 => (&mut self.pings, Flood::Overhead),
            _ => (&mut self.overhead, Flood::Overhead),
        };
        self.idle += 1;
        if !bucket.take(now) {
            self.flood.get_or_insert(flood);
        }
    }
}

/// So many at once, and so many in a second after that.
#[derive(Debug)]
struct Bucket {
    left: u32,
    most: u32,
    per_second: u32,
    /// Up to when the time has been counted.
    at: Instant,
}

impl Bucket {
    fn new(most: u32, per_second: u32, now: Instant) -> Self {
        Self { left: most, most, per_second, at: now }
    }

    fn earn(&mut self, more: u32) {
        self.left = self.left.saturating_add(more).min(self.most);
    }

    fn take(&mut self, now: Instant) -> bool {
        let period = std::time::Duration::from_secs(1) / self.per_second;
        let periods = now.saturating_duration_since(self.at).as_nanos() / period.as_nanos();
        if periods > 0 {
            self.earn(u32::try_from(periods).unwrap_or(u32::MAX));
            // What is left of a period counts for the next one.
            let whole = u32::try_from(periods).ok().and_then(|periods| period.checked_mul(periods));
            self.at = whole.map_or(now, |whole| self.at + whole);
        }
        let is_left = self.left > 0;
        self.left = self.left.saturating_sub(1);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let [.., high, middle, low] = (payload as u32).to_be_bytes();
        let mut bytes = vec![high, middle, low, kind, flags, 0, 0, 0, 1];
        bytes.resize(HEADER_BYTES + payload, 0xff);
        bytes
    }

    fn begun(now: Instant) -> FrameCounter {
        let mut counter = FrameCounter::new(now);
        counter.read(PREFACE, now);
        counter
    }

    fn until_flood(kind: u8, payload: usize) -> (u32, Flood) {
        let now = Instant::now();
        let mut counter = begun(now);
        for count in 1.. {
            counter.read(&frame(kind, 0, payload), now);
            if let Some(flood) = counter.flood() {
                return (count, flood);
            }
        }
        unreachable!("every kind is bounded")
    }

    #[test]
    fn each_kind_of_frame_without_a_request_is_bounded() {
        assert_eq!(until_flood(3, 4), (RESETS_BURST + 1, Flood::Resets));
        assert_eq!(until_flood(4, 0), (SETTINGS_BURST + 1, Flood::Settings));
        assert_eq!(until_flood(6, 8), (PINGS_BURST + 1, Flood::Overhead));
        for (kind, payload) in [(0, 0), (2, 5), (8, 4), (9, 10), (16, 6), (200, 1)] {
            assert_eq!(until_flood(kind, payload), (OVERHEAD_BURST + 1, Flood::Overhead), "{kind}");
        }
    }

    #[test]
    fn requests_and_their_bodies_are_not_counted() {
        let now = Instant::now();
        let mut counter = begun(now);
        for _ in 0..OVERHEAD_BURST * 2 {
            counter.read(&frame(1, 5, 20), now);
            counter.read(&frame(0, 0, 1), now);
            counter.read(&frame(0, END_STREAM, 0), now);
        }
        assert_eq!(counter.flood(), None);
    }

    #[test]
    fn a_client_that_sends_data_may_send_as_many_pings() {
        let now = Instant::now();
        let mut counter = begun(now);
        for _ in 0..PINGS_BURST * 10 {
            counter.read(&frame(0, 0, 1024), now);
            counter.read(&frame(6, 0, 8), now);
        }
        assert_eq!(counter.flood(), None);
    }

    #[test]
    fn time_and_responses_allow_more() {
        let mut now = Instant::now();
        let mut counter = begun(now);
        for _ in 0..10 {
            for _ in 0..RESETS_PER_SECOND {
                counter.read(&frame(3, 0, 4), now);
            }
            now += Duration::from_secs(1);
        }
        for _ in 0..OVERHEAD_BURST * 10 {
            counter.wrote(BYTES_PER_OVERHEAD as usize);
            counter.read(&frame(8, 0, 4), now);
        }
        assert_eq!(counter.flood(), None);
    }

    #[test]
    fn a_frame_or_a_field_block_that_is_not_whole_is_known_but_a_body_may_be() {
        let now = Instant::now();
        let mut counter = FrameCounter::new(now);
        counter.read(&PREFACE[..10], now);
        assert_eq!(counter.incomplete(), Some(0));
        counter.read(&PREFACE[10..], now);
        assert_eq!(counter.incomplete(), None);
        let headers = frame(1, 0, 8);
        for part in [&headers[..5], &headers[5..12], &headers[12..], &frame(9, 0, 3)] {
            counter.read(part, now);
            assert_eq!(counter.incomplete(), Some(1));
        }
        counter.read(&frame(9, END_HEADERS, 3), now);
        assert_eq!(counter.incomplete(), None);
        counter.read(&frame(0, 0, 100)[..50], now);
        assert_eq!(counter.incomplete(), None);
        counter.read(&frame(0, 0, 100)[50..], now);
        counter.read(&frame(6, 0, 8)[..4], now);
        assert_eq!(counter.incomplete(), Some(3));
    }

    proptest! {
        #[test]
        fn frames_are_counted_alike_in_whatever_pieces_they_come(
            kinds in proptest::collection::vec((0u8..10, 0usize..40), 1..60),
            cut in 1usize..50,
        ) {
            let now = Instant::now();
            let bytes: Vec<u8> = PREFACE.iter().copied()
                .chain(kinds.iter().flat_map(|(kind, payload)| frame(*kind, 0, *payload))).collect();
            let (mut whole, mut pieces) = (FrameCounter::new(now), FrameCounter::new(now));
            whole.read(&bytes, now);
            bytes.chunks(cut).for_each(|piece| pieces.read(piece, now));
            prop_assert_eq!(whole.overhead.left, pieces.overhead.left);
            prop_assert_eq!(whole.resets.left, pieces.resets.left);
            prop_assert_eq!((whole.known, whole.skipped), (0, 0));
            prop_assert_eq!((pieces.known, pieces.skipped), (0, 0));
        }
    }
}
