//! Onehopfile text to checked settings.

pub mod checked;
