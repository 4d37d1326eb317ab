//! What can be typed after `onehop proxy`.
//!
//! Names and short forms are those of `caddy reverse-proxy`, whose lines can be typed here as they are.

use clap::Args;

use super::{Admin, Process, parse_admin};

/// `onehop proxy`
#[derive(Debug, Args)]
#[command(
    visible_alias = "reverse-proxy",
    about = "Pass requests on to another server, without a file",
    long_about = "Pass requests on to another server, over connections that are open already.\n\n\
        What is asked for is written as an Onehopfile with one `reverse_proxy` and checked like one; --print shows \
        it, to be kept and changed. With --min, so many connections to each upstream are open before the first \
        request comes, TLS included, and stay open while nobody asks.\n\n\
        --from and --to are as in `caddy reverse-proxy`, but that an IP address or `localhost` in --from names the \
        interface, and is served without TLS. Without --from it is every interface at $PORT where that is set, else \
        127.0.0.1:8080.",
    after_help = "Examples:\n  \
        onehop proxy --to localhost:3000                          at http://127.0.0.1:8080\n  \
        onehop proxy --from :7718 --to https://search.example.com:7718 --min 4\n  \
        onehop proxy --from :7718 --to 10.0.0.2:80 --to 10.0.0.3:80\n  \
        onehop proxy --to https://10.0.0.2 --change-host-header --insecure\n  \
        onehop proxy --to localhost:3000 --header-up 'X-Key: {env.KEY}' --access-log\n  \
        onehop proxy --from :7718 --to https://search.example.com --min 4 --print > Onehopfile\n\n\
        Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage."
)]
pub(crate) struct Proxy {
    /// Where to listen: `:port` for every interface, `host:port`, `http://name`, `unix//path`; port 0 takes a free one
    #[arg(long, short, value_name = "ADDR")]
    pub(crate) from: Option<String>,
    /// Where requests go: `host:port`, `http://host:port`, `https://host:port`, `unix//path`; may be given several times
    #[arg(long, short, value_name = "ADDR", required = true, value_delimiter = ',')]
    pub(crate) to: Vec<String>,
    /// Connections to each upstream that are open at all times, whether or not there are requests [default: 1]
    #[arg(long, value_name = "N")]
    pub(crate) min: Option<u32>,
    /// Connections to each upstream at most; further requests wait
    #[arg(long, value_name = "N")]
    pub(crate) max: Option<u32>,
    /// Tell the upstream its own address as Host, not the one that the client asked for
    #[arg(long, short)]
    pub(crate) change_host_header: bool,
    /// Believe whoever answers: certificates of https upstreams are not verified
    #[arg(long)]
    pub(crate) insecure: bool,
    /// Set a field of each request; placeholders are filled in
    #[arg(long, short = 'H', value_name = "NAME: VALUE")]
    pub(crate) header_up: Vec<String>,
    /// Set a field of each answer
    #[arg(long, short = 'd', value_name = "NAME: VALUE")]
    pub(crate) header_down: Vec<String>,
    /// Write a line of JSON for each request to standard error
    #[arg(long)]
    pub(crate) access_log: bool,
    /// Print the Onehopfile that says the same, and serve nothing
    #[arg(long)]
    pub(crate) print: bool,
    /// Where /metrics is served over TCP; port 0 takes a free one. The control socket serves it, too
    #[arg(long, value_name = "ADDR", default_value = "off", value_parser = parse_admin)]
    pub(crate) admin: Admin,
    #[command(flatten)]
    pub(crate) process: Process,
}
