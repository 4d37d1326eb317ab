//! What can be typed after `onehop try`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onehop_load::quantity;

use super::bench::Output;

/// `onehop try`
#[derive(Debug, Args)]
#[command(
    name = "try",
    about = "See what onehop would do for your application, side by side with what runs it today",
    long_about = "See what onehop would do for your application, side by side with what runs it today.\n\n\
        PATH is a server's main file, a package.json, a Caddyfile, an nginx.conf, a built folder, or the folder that \
        any of them lies in. It works out how that runs today (node alone, or behind nginx or Caddy where they are \
        installed), starts that and onehop on free ports of this machine, asks both the same, shows where the \
        answers differ, and measures both in turn. It ends with the Onehopfile that does it.\n\n\
        No file of yours is changed, and nothing that runs already is touched. Both stacks run your code, with your \
        environment: give it a database that may be asked.",
    after_help = "Examples:\n  \
        onehop try                        what is in this folder\n  \
        onehop try server.mjs\n  \
        onehop try dist                   a built single-page app\n  \
        onehop try /etc/nginx/nginx.conf --html report.html\n  \
        onehop try --keep Onehopfile      and keep the file that does it\n\n\
        Ctrl-C breaks off and tells what was measured until then; once more ends at once.\n\n\
        Exit codes: 0 measured, 1 failed or nothing was measured, 2 wrong usage or nothing \
        that is understood."
)]
pub(crate) struct Try {
    /// What runs today
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// All of it takes about so long, and some ten seconds in any case
    #[arg(long, value_name = "TIME", default_value = "50s", value_parser = quantity::duration)]
    pub(crate) within: Duration,
    /// Write the Onehopfile here; a file that is there already is not replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}
