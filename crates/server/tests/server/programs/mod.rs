//! Programs that speak HTTP: what is passed on, what is not, and when a connection is used again.

mod answers;
mod mixed;
pub(crate) mod program;
mod requests;
mod reuse;

use std::net::SocketAddr;

use crate::harness::{TestServer, Wishes, application};
use program::Program;

/// A server before this program.
fn serve(program: &Program) -> TestServer {
    serve_with(program.address, "", "")
}

/// A server before whatever is there, with options of `app` and directives of the site.
pub(crate) fn serve_with(address: SocketAddr, options: &str, directives: &str) -> TestServer {
    let text = text(&address.to_string(), options, directives);
    TestServer::start(application(), &text, Wishes::default())
}

fn text(address: &str, options: &str, directives: &str) -> String {
    format!(
        "http://localhost:0 {{\n\tbind 127.0.0.1\n\t{directives}\n\tapp /* {{\n\t\t\
         supervise off {address}\n\t\t{options}\n\t}}\n}}\n"
    )
}
