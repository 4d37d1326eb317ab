//! The crate as its users see it: text in, settings or problems out.

mod app;
mod captures;
mod documentation;
mod early_hints;
mod errors;
mod grammar;
mod handle_errors;
mod limit;
mod limit_errors;
mod logs;
mod memory;
mod messages;
mod outline;
mod overrides;
mod proxy;
mod proxy_errors;
mod request_header;
mod robust;
mod route_order;
mod settings;
mod tls;
mod tracing;
mod uri;
