//! Why requests cannot be encrypted.

/// Why requests cannot be encrypted as the settings say. Its text is for a person.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(pub(super) String);
