//! The handlers: where a request ends and an answer begins.

pub mod files;
