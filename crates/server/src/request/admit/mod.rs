//! Admission: whether a request may go on to those who answer.
//!
//! [`rate`] refuses whoever asks too often. Decides by the request and by what was let in before, answers nothing
//! itself: a refusal is a [`super::rescue::Fault`] like any other.

pub mod rate;
