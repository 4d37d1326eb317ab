//! An nginx.conf, whole or a part of one, as a site of an Onehopfile. Never drops silently what changes answers.
//!
//! In the order of their work: `lexer.rs` makes words, `reader.rs` directives with what they include, `server.rs`
//! chooses the server, `listens.rs` its addresses; `support.rs` says which directives are carried over, `location.rs` and `context.rs` which
//! requests a location takes. `translate.rs` writes the site, with `rewrites.rs` before and `error_pages.rs` behind its locations,
//! `block.rs` one location of it, with `returns.rs`, `headers.rs`, `try_files.rs` and what a `proxy_pass` becomes: `proxy_pass.rs`
//! with `fields.rs` and `upstreams.rs`. Who is let in: `access.rs`, `passwords.rs`, `rates.rs`, `concurrency.rs`.
//! `values.rs` turns single values.

mod access;
mod block;
mod concurrency;
mod context;
mod directive;
mod error_pages;
mod fields;
mod headers;
mod lexer;
mod listens;
mod location;
mod passwords;
mod proxy_pass;
mod rates;
mod reader;
mod returns;
mod rewrites;
mod server;
mod support;
#[cfg(test)]
mod tests;
mod translate;
mod try_files;
mod upstreams;
mod values;

pub use directive::{Directive, nearest, nearest_all, write};
pub use lexer::Word;
pub use listens::{Listens, leads_to_https, names};
pub use reader::parse;
pub use server::{Configuration, Server};
pub use support::{is_redirect_to_tls, is_unneeded};
pub use translate::{Translated, translate};
pub(crate) use values::UNIX_SOCKET;
pub use values::{Passed, passed};

/// Whether a text without a known name is a configuration of nginx, such as those in sites-available.
pub fn looks_like(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start();
        line.strip_prefix("server").is_some_and(|rest| rest.trim_start().starts_with('{'))
            || line.starts_with("proxy_pass ")
    })
}
