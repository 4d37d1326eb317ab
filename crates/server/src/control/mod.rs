//! The control plane: rare, slow, may fail.
//!
//! Starts and stops the cores, reads and watches trees, builds snapshots and publishes them, answers on
//! the control socket. Never answers a request of a site.

pub mod admin;

mod bind;
mod certificate_report;
mod certificates;
mod check;
mod cores;
mod descriptors;
mod events;
mod fixed;
mod history;
mod limiters;
mod logs;
mod memory;
mod publish;
mod running;
mod start_error;
mod stats;
mod status;
mod trees;
mod upstreams;

pub use certificate_report::{CertificateReport, CertificatesStatus, RevokedCertificate};
pub use certificates::certificate_folder;
pub use check::{Refusal, check};
pub use events::{Event, EventSink};
pub use history::{Live, View};
pub use memory::check_memory;
pub use onehop_certificates::keeper::Event as CertificateEvent;
pub use onehop_metrics::access_log::ServerLogTarget;
pub use onehop_metrics::recent::{Note, Recent};
pub use onehop_supervisor::{
    AppEvent, AppStatus, ProgramLine, Restart, SuperviseOptions, WorkerStatus, guard_workers, loaded,
};
pub use running::{AppFiles, Load, Options, Running, Server};
pub use start_error::StartError;
pub use status::{ProxyStatus, ReloadSummary, SiteStatus, Status, StoreStatus, UpstreamStatus};
