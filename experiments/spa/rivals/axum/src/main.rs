//! The single-page app on axum: files by tower-http's `ServeDir`, and the index page for paths without one.
//!
//! Usage: PORT=8080 spa-axum experiments/spa
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::PathBuf;

use tower_http::services::{ServeDir, ServeFile};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(std::env::args_os().nth(1).ok_or("the folder of the app is missing")?);
    let dist = folder.join("dist");
    let files = ServeDir::new(&dist).fallback(ServeFile::new(dist.join("index.html")));
    spa_api::serve(spa_api::router(spa_api::codes_in(&folder)?).fallback_service(files)).await
}
