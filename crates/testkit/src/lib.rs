//! Starts the real program.
