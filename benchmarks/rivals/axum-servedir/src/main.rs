//! axum with ServeDir: what a Rust backend does when it serves its own front end from disk.
//!
//! Usage: rival-axum-servedir ADDRESS FOLDER
#![forbid(unsafe_code)]

use std::path::PathBuf;

use axum::Router;
use axum::serve::ListenerExt as _;
use tower_http::services::{ServeDir, ServeFile};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(address), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("usage: rival-axum-servedir ADDRESS FOLDER".into());
    };
    let folder = PathBuf::from(folder);
    let files = ServeDir::new(&folder).precompressed_br().fallback(ServeFile::new(folder.join("index.html")));
    // Without this the head and the body, written apart, wait for each other's acknowledgement: 40 ms.
    let listener = tokio::net::TcpListener::bind(address).await?.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().fallback_service(files)).await?;
    Ok(())
}
