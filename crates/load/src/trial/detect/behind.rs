//! The application behind a front.
