//! The history of a server: counters and latencies every 10 seconds for a day and every 5 minutes for months, with the events
//! that explain them.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`sample`] | what was counted in one interval, and an event |
//! | `codec` | both as bytes |
//! | `segment` | records with a checksum, one after the other |
//! | [`history`](History) | the segments in a folder or in memory: append, find again, drop the oldest |
//! | [`view`] | curves, totals and events of a range of time |
//! | [`limits`] | every bound of these |
//!
//! Knows no socket, no route and no clock: time is an argument. A folder belongs to one process at a time. Whatever the disk
//! does, appending never fails: what cannot be written is held in memory and written later, and [`History::take_notices`] says
//! so once.
#![forbid(unsafe_code)]

mod codec;
mod folder;
mod history;
pub mod limits;
mod names;
pub mod sample;
mod segment;
pub mod view;

pub use history::{History, Settings};
pub use sample::{AppFigures, Event, Figures, ProcessFigures, Sample};
