//! Who is let in while more comes than can be answered.
//!
//! [`adaptive`] finds out how many requests may be in flight, [`lag`] whether an event loop is too late to be
//! given more. Decides about requests alone: what is counted and told is `observe/`.

pub mod adaptive;
pub mod lag;
