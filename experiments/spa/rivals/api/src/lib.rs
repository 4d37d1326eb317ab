//! The API on axum: `GET /api/codes` is the list, `GET /api/codes/404` one of it. The codes are those of api/codes.json.
#![forbid(unsafe_code)]

use std::error::Error;
use std::net::Ipv4Addr;
use std::path::Path as FilePath;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

/// A status code, with its fields in the file's order.
#[derive(Serialize, Deserialize)]
pub struct Code {
    code: u16,
    name: String,
    text: String,
    source: String,
}

#[derive(Serialize)]
struct Named<'codes> {
    code: u16,
    name: &'codes str,
}

#[derive(Serialize)]
struct Problem {
    error: &'static str,
}

/// Codes as the API's own file has them.
///
/// # Errors
/// Where the text is not a list of codes.
pub fn codes(json: &str) -> Result<Vec<Code>, Box<dyn Error>> {
    Ok(serde_json::from_str(json)?)
}

/// Those of a folder's api/codes.json.
///
/// # Errors
/// Where it cannot be read.
pub fn codes_in(folder: &FilePath) -> Result<Vec<Code>, Box<dyn Error>> {
    codes(&std::fs::read_to_string(folder.join("api/codes.json"))?)
}

/// The routes below /api.
pub fn router(codes: Vec<Code>) -> Router {
    Router::new()
        .route("/api/codes", get(list).fallback(only_get))
        .route("/api/codes/{code}", get(one).fallback(only_get))
        .route("/api/{*rest}", get(missing).fallback(only_get))
        .with_state(Arc::new(codes))
}

/// Serves on the loopback interface, at the port that PORT names.
///
/// # Errors
/// Where PORT is no port, or taken.
pub async fn serve(app: Router) -> Result<(), Box<dyn Error>> {
    let port: u16 = std::env::var("PORT")?.parse()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    Ok(axum::serve(listener, app).await?)
}

async fn list(State(codes): State<Arc<Vec<Code>>>) -> Response {
    let named: Vec<Named> = codes.iter().map(|entry| Named { code: entry.code, name: &entry.name }).collect();
    Json(named).into_response()
}

async fn one(State(codes): State<Arc<Vec<Code>>>, Path(wanted): Path<String>) -> Response {
    match codes.iter().find(|entry| entry.code.to_string() == wanted) {
        Some(entry) => Json(entry).into_response(),
        None => missing().await,
    }
}

async fn missing() -> Response {
    (StatusCode::NOT_FOUND, Json(Problem { error: "there is no such code" })).into_response()
}

async fn only_get() -> Response {
    (StatusCode::METHOD_NOT_ALLOWED, Json(Problem { error: "only GET and HEAD are answered" }))
        .into_response()
}
