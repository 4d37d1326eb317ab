//! How long a side-by-side run may take, and how hard it loads.

use std::path::PathBuf;
use std::time::Duration;

/// Settings of a side-by-side run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The program onehop.
    pub onehop: PathBuf,
    /// About how long all of it takes: rounds and their length are fitted into it. The first look and three short
    /// rounds are done in any case, some ten seconds and more where a start takes long; then the figures are poor, and
    /// the side-by-side run says so, and how long it took.
    pub within: Duration,
    /// Connections of the load.
    pub connections: usize,
    /// The seed of all that is random.
    pub seed: u64,
}

/// Six rounds at full load and four at the same load, each after two seconds of warm-up.
const WITHIN: Duration = Duration::from_secs(75);

/// As many as a browser or two open to one host, several times over; enough to keep one core busy.
const CONNECTIONS: usize = 16;

impl Default for Settings {
    fn default() -> Self {
        Settings { onehop: PathBuf::from("onehop"), within: WITHIN, connections: CONNECTIONS, seed: 1 }
    }
}
