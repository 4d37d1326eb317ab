//! axum with rust-embed: the site is part of the program, as many single-binary tools ship theirs.
//! Identity only: rust-embed holds no compressed variants.
//!
//! Usage: rival-axum-embed ADDRESS
#![forbid(unsafe_code)]

use axum::Router;
use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt as _;
use rust_embed::RustEmbed;

#[derive(RustEmbed)]
#[folder = "../../site"]
struct Site;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let Some(address) = std::env::args().nth(1) else {
        return Err("usage: rival-axum-embed ADDRESS".into());
    };
    // Without this the head and the body, written apart, wait for each other's acknowledgement: 40 ms.
    let listener = tokio::net::TcpListener::bind(address).await?.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, Router::new().fallback(answer)).await?;
    Ok(())
}

async fn answer(uri: Uri, headers: HeaderMap) -> Response {
    let path = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        path => path,
    };
    let Some(file) = Site::get(path) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let etag = format!("\"{}\"", hexadecimal(&file.metadata.sha256_hash()[..16]));
    if headers.get(header::IF_NONE_MATCH).is_some_and(|value| value.as_bytes() == etag.as_bytes()) {
        return (StatusCode::NOT_MODIFIED, [(header::ETAG, etag)]).into_response();
    }
    let kind = file.metadata.mimetype().to_owned();
    let body = match file.data {
        std::borrow::Cow::Borrowed(bytes) => Body::from(bytes),
        std::borrow::Cow::Owned(bytes) => Body::from(bytes),
    };
    ([(header::CONTENT_TYPE, kind), (header::ETAG, etag)], body).into_response()
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
