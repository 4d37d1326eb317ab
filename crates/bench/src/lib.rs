//! What `onehop bench` does with loads: compares servers, searches for their limit, runs scenarios and collections.
//!
//! The load itself is `crates/load`; reports are `crates/report`.
//!
//! | module | owns |
//! | --- | --- |
//! | [`compare`] | several servers in interleaved rounds, and the table that follows |
//! | [`saturation`] | the search for the highest rate that keeps a percentile under a limit |
//! | [`scenario`] | comparisons in a file: servers, upstreams, cases, bounds |
//! | [`repeat`] | how repetitions of one load disagree |
//! | [`collection`] | Postman collections, HAR recordings and lists, sent in order |
//! | [`foreign`] | PURE: command lines of wrk, ab, oha, k6 and others as plans |
//! | [`quantity`] | PURE: durations, counts, rates and shares as people type them |
//! | [`shell_words`], [`basic`] | PURE: a command line as words; a user name and password as a header field |
//!
//! Never compares figures of different rounds, and claims a difference only where `onehop-statistics` finds one.
//! `examples/compare_two.rs` uses it alone.
#![forbid(unsafe_code)]

pub mod basic;
pub mod collection;
pub mod compare;
pub mod foreign;
pub mod quantity;
pub mod repeat;
#[cfg(test)]
mod sample;
pub mod saturation;
pub mod scenario;
pub mod shell_words;
