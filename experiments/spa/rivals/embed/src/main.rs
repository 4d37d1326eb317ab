//! The single-page app on axum with all its files in the program, by rust-embed, and the index page for paths without one.
//!
//! Usage: PORT=8080 spa-axum-embed
#![forbid(unsafe_code)]

use std::error::Error;

use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

const INDEX: &str = "index.html";

#[derive(RustEmbed)]
#[folder = "../../dist"]
struct Files;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let codes = spa_api::codes(include_str!("../../../api/codes.json"))?;
    spa_api::serve(spa_api::router(codes).fallback(file)).await
}

async fn file(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    match Files::get(path).or_else(|| Files::get(INDEX)) {
        Some(file) => ([(header::CONTENT_TYPE, file.metadata.mimetype())], file.data.clone()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
