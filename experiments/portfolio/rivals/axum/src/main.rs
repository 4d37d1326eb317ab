//! The portfolio site on axum, on one thread, because the scenario gives a server one core.
//!
//! Usage: PORT=8080 portfolio-axum experiments/portfolio
#![forbid(unsafe_code)]

use std::error::Error;
use std::net::Ipv4Addr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use portfolio_site::Site;
use tokio::net::TcpListener;

type Shared = State<Arc<Site>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let (port, site) = portfolio_site::settings()?;
    let app = Router::new()
        .route("/", get(home))
        .route("/blogs", get(blogs))
        .route("/blogs/{id}", get(blog))
        .route("/version", get(version))
        .fallback(missing)
        .with_state(Arc::new(site));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
    Ok(axum::serve(listener, app).await?)
}

async fn home(State(site): Shared) -> Html<String> {
    Html(site.home())
}

async fn blogs(State(site): Shared) -> Html<String> {
    Html(site.blogs())
}

async fn blog(State(site): Shared, Path(id): Path<String>) -> Response {
    match site.blog(&id) {
        Some(page) => Html(page).into_response(),
        None => not_found(&site),
    }
}

async fn version(State(site): Shared) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], site.version()).into_response()
}

async fn missing(State(site): Shared) -> Response {
    not_found(&site)
}

fn not_found(site: &Site) -> Response {
    (StatusCode::NOT_FOUND, Html(site.missing())).into_response()
}
