//! Where spans and metrics go.

use std::fmt;
use std::time::Duration;

/// A receiver of OTLP over HTTP, as the environment says; the variables are those of OpenTelemetry's specification.
#[derive(Clone, PartialEq, Eq)]
pub struct OtlpExport {
    /// `http://localhost:4318/v1/traces`; `None`: nothing is exported.
    pub url: Option<String>,
    /// Header fields of each export; values as they stand, percent-encoded.
    pub headers: Vec<(String, String)>,
    /// How long an export may take.
    pub timeout: Duration,
    /// How long spans are gathered; how long it is from one export of metrics to the next.
    pub delay: Duration,
    /// What all of it has in common: `service.name` and others; values percent-encoded.
    pub resource: Vec<(String, String)>,
}

/// Headers hold credentials.
impl fmt::Debug for OtlpExport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        let mut shown = formatter.debug_struct("OtlpExport");
        shown.field("url", &self.url).field("headers", &names);
        shown.field("timeout", &self.timeout).field("resource", &self.resource).finish_non_exhaustive()
    }
}
