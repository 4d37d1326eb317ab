//! Options of `onehop logs`.

use std::time::Duration;

use clap::Args;
use onehop_bench::quantity;

use super::Target;

/// `onehop logs`
#[derive(Debug, Args)]
#[command(
    about = "Show the last requests, lines of applications and events of a running onehop",
    long_about = "Show the last requests, lines of applications and events of a running onehop, in the order of their times.\n\n\
        The running onehop keeps the last MiB of them in memory, whatever else it writes: requests of sites with \
        a `log` (`output discard` is enough), what applications write, and its own events. Older lines are in the files \
        that `log` names, and in the journal.\n\n\
        With --site, only requests of that site are shown; with --app, only the output and the events of that application; with both, \
        those of either.",
    after_help = "Examples:\n  \
        onehop logs                              of the onehop of this folder\n  \
        onehop logs -f                           and what comes\n  \
        onehop logs -f --app api                 what one application writes, and what happens to it\n  \
        onehop logs --site shop.example --errors --since 5m\n  \
        onehop logs --json | jq 'select(.kind == \"request\") | .record.request.uri'\n\n\
        Exit codes: 0 shown, 1 not running, 2 wrong usage."
)]
pub(crate) struct Logs {
    /// Go on with what comes, until Ctrl-C or until the server stops
    #[arg(long, short)]
    pub(crate) follow: bool,
    /// Only the output and the events of this application
    #[arg(long, value_name = "NAME")]
    pub(crate) app: Option<String>,
    /// Only requests of this host
    #[arg(long, value_name = "HOST")]
    pub(crate) site: Option<String>,
    /// Only what is not older than this
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    pub(crate) since: Option<Duration>,
    /// Only failures: requests answered 500 and above or failed in the server, standard error of applications, warnings
    #[arg(long)]
    pub(crate) errors: bool,
    /// Print each line as the JSON object that the control socket gives (docs/control-api.md)
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) target: Target,
}
