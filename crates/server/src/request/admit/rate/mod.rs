//! `rate_limit`: whoever asks too often is refused, everybody else goes on.
//!
//! A [`Zone`] counts requests by key ([`keys`]) and decides by the Generic Cell Rate Algorithm ([`gcra`]) on one time
//! for each key, in a bounded table of the whole process ([`table`]). What a client is told about it is written by
//! [`fields`]. Never waits and never answers: a rejection is an `HttpError`, whose response is 429.

mod fields;
mod gcra;
mod keys;
mod table;

use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use onehop_config::checked::limit::RateLimit;
use onehop_config::checked::{Checked, Step};
use onehop_message::error::HttpError;
use onehop_message::response::Response;

pub(crate) use keys::network;
pub use table::Counts;

use crate::request::trip::Trip;
use fields::Lines;
use gcra::{Rate, Verdict};
use keys::Keys;
use table::Table;

/// One `rate_limit` at work; every core asks the same one.
pub struct Zone {
    settings: Arc<RateLimit>,
    rate: Rate,
    keys: Keys,
    table: Table,
    lines: Lines,
    /// Where the zone's time begins.
    began: Instant,
}

/// What one request has met on its way: which zones have counted it, and what they tell its client.
///
/// A trip that is made again for the disk's sake takes the same way to where it stopped: it is counted once.
#[derive(Default)]
pub(crate) struct Asked<'a> {
    /// Zones on this trip.
    met: u32,
    /// Of these the first ones, which have counted the request on the trip before.
    counted: u32,
    /// What the last one of them refused it with.
    refused: Option<HttpError>,
    told: Vec<Told<'a>>,
}

/// What a client is told about one zone.
struct Told<'a> {
    zone: &'a Zone,
    requests: u64,
    seconds: u64,
}

/// The zones of a configuration. Those of before that are named and set the same go on counting where they are.
pub fn zones(checked: &Checked, before: &[Arc<Zone>]) -> Vec<Arc<Zone>> {
    let mut zones: Vec<Arc<Zone>> = Vec::new();
    checked.each_step(|step| {
        if let Step::RateLimit(settings) = step
            && !zones.iter().any(|zone| zone.settings == *settings)
        {
            let kept = before.iter().find(|zone| zone.settings == *settings);
            zones.push(kept.map_or_else(|| Arc::new(Zone::new(Arc::clone(settings))), Arc::clone));
        }
    });
    zones
}

impl Zone {
    /// A zone that has counted nothing.
    pub fn new(settings: Arc<RateLimit>) -> Self {
        Self {
            rate: Rate::new(settings.events, settings.window, settings.burst),
            keys: Keys::new(&settings.key),
            table: Table::new(settings.keys_max),
            lines: Lines::new(&settings),
            began: Instant::now(),
            settings,
        }
    }

    /// What it was made of.
    pub fn settings(&self) -> &Arc<RateLimit> {
        &self.settings
    }

    /// What it has counted.
    pub fn counts(&self) -> Counts {
        self.table.counts()
    }

    /// Counts a request, and lets it go on or refuses it.
    pub(crate) fn ask<'a>(&'a self, trip: &mut Trip<'a>) -> Result<(), HttpError> {
        let now = trip.begun.saturating_duration_since(self.began);
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        self.ask_at(now, trip)
    }

    fn ask_at<'a>(&'a self, now: u64, trip: &mut Trip<'a>) -> Result<(), HttpError> {
        let key = self.keys.of(&self.settings, trip);
        let asked = &mut trip.asked;
        asked.met += 1;
        if asked.met == asked.counted
            && let Some(fault @ HttpError::RateLimited { retry_after }) = asked.refused
        {
            asked.told = vec![Told { zone: self, requests: 0, seconds: u64::from(retry_after) }];
            return Err(fault);
        }
        let verdict = if asked.met <= asked.counted {
            Verdict::LetIn { full_at: self.table.full_at(key) }
        } else {
            self.table.ask(key, now, self.rate)
        };
        match verdict {
            Verdict::LetIn { full_at } if self.settings.announce => {
                let left = self.rate.left(full_at, now);
                asked.told.push(Told {
                    zone: self,
                    requests: left.requests,
                    seconds: whole_seconds(left.within),
                });
                Ok(())
            }
            Verdict::LetIn { .. } => Ok(()),
            Verdict::Refused { wait } => {
                let seconds = whole_seconds(wait);
                // Alone: nothing that is told may end after Retry-After (section 6 of the draft).
                asked.told.clear();
                asked.told.push(Told { zone: self, requests: 0, seconds });
                Err(HttpError::RateLimited { retry_after: u32::try_from(seconds).unwrap_or(u32::MAX) })
            }
        }
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Zone").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Asked<'_> {
    /// For a trip that is made again after one that was counted by so many zones, and failed with this.
    pub(crate) fn again(counted: u32, failed: Option<HttpError>) -> Self {
        let refused = failed.filter(|fault| matches!(fault, HttpError::RateLimited { .. }));
        Self { counted, refused, ..Self::default() }
    }

    /// Zones that have counted this request until now.
    pub(crate) fn counted(&self) -> u32 {
        self.met.max(self.counted)
    }

    /// Writes what the client is told into its answer.
    pub(crate) fn tell(&self, answer: &mut Response) {
        // A client might wait before it follows a redirection (section 6 of the draft).
        if matches!(answer.status, 300..=303 | 305..=399) {
            return;
        }
        for told in &self.told {
            told.zone.lines.write(told.requests, told.seconds, &mut answer.fields);
        }
    }
}

/// As `Retry-After` has them (RFC 9110 section 10.2.3): who waits so long does not come too early.
fn whole_seconds(nanos: u64) -> u64 {
    nanos.div_ceil(1_000_000_000).max(1)
}

#[cfg(test)]
pub(crate) mod tests;
