//! What can be typed after `onehop try`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use onehop_bench::quantity;

use super::bench::{Output, variable};

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
        Asked are / (or the paths of --path and --collection in its place) and what these pages link to, with GET and \
        HEAD only, several times each. Routes that the source code or a configuration suggests are listed, and asked \
        with --probe-routes alone. --dry-run shows what would be started and asked.\n\n\
        No file of yours is changed, and nothing that runs already is touched. Both stacks run your code, with your \
        environment: give it a database that may be asked.",
    after_help = "Examples:\n  \
        onehop try                        what is in this folder\n  \
        onehop try server.mjs\n  \
        onehop try dist                   a built single-page app\n  \
        onehop try /etc/nginx/nginx.conf --html report.html\n  \
        onehop try --dry-run              what would be started and asked\n  \
        onehop try --path /api/items --path /about\n  \
        onehop try --collection shop.postman_collection.json --var URL=http://localhost:3000\n  \
        onehop try --keep Onehopfile      and keep the file that does it\n\n\
        Ctrl-C breaks off and tells what was measured until then; once more ends at once.\n\n\
        Exit codes: 0 measured or a dry run, 1 failed or nothing was measured, 2 wrong usage or nothing \
        that is understood."
)]
pub(crate) struct Try {
    /// What runs today
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) path: PathBuf,
    /// All of it takes about so long, and some ten seconds in any case
    #[arg(long, value_name = "TIME", default_value = "75s", value_parser = quantity::duration)]
    pub(crate) within: Duration,
    /// Ask for this path in place of /; may be given several times, at most 10 paths are asked
    #[arg(long = "path", value_name = "/PATH", value_parser = path)]
    pub(crate) paths: Vec<String>,
    /// Ask for the GET and HEAD requests of a Postman collection, a HAR, a list of URLs or a sitemap.xml in place of /
    #[arg(long = "collection", value_name = "FILE")]
    pub(crate) collections: Vec<PathBuf>,
    /// The value of a variable of a collection
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable, requires = "collections")]
    pub(crate) variables: Vec<(String, String)>,
    /// Ask also for routes that the source code or a configuration suggests, but those with parameters and those whose
    /// names say that they change something
    #[arg(long)]
    pub(crate) probe_routes: bool,
    /// Show what would be started and asked, and start nothing
    #[arg(long, conflicts_with_all = ["keep", "json", "html", "markdown"])]
    pub(crate) dry_run: bool,
    /// Write the Onehopfile here; a file that is there already is not replaced
    #[arg(long, value_name = "FILE")]
    pub(crate) keep: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A path as it is sent in a request.
fn path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') {
        return Err("a path begins with /".to_owned());
    }
    match text.chars().find(|letter| !letter.is_ascii_graphic() || *letter == '#') {
        Some(odd) => Err(format!("{odd:?} has to be written percent-encoded")),
        None => Ok(text.to_owned()),
    }
}
