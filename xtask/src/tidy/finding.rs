//! What a rule of tidy reports.

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// Path from the checkout's top folder.
    pub(crate) path: String,
    /// Line, from 1.
    pub(crate) line: usize,
    /// What is wrong and why it matters.
    pub(crate) reason: String,
}
