//! The portfolio site on actix-web, with one worker, because the scenario gives a server one core.
//!
//! Usage: PORT=8080 portfolio-actix experiments/portfolio
#![forbid(unsafe_code)]

use std::net::Ipv4Addr;

use actix_web::http::header::ContentType;
use actix_web::web::{self, Data, Path};
use actix_web::{App, HttpResponse, HttpServer, Route, guard};
use portfolio_site::Site;

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let (port, site) = portfolio_site::settings()?;
    let site = Data::new(site);
    let app = move || {
        App::new()
            .app_data(site.clone())
            .route("/", get().to(home))
            .route("/blogs", get().to(blogs))
            .route("/blogs/{id}", get().to(blog))
            .route("/version", get().to(version))
            .default_service(web::to(missing))
    };
    HttpServer::new(app).workers(1).bind((Ipv4Addr::LOCALHOST, port))?.run().await
}

/// A route of GET that answers HEAD too, as those of the other variants do.
fn get() -> Route {
    web::route().guard(guard::Any(guard::Get()).or(guard::Head()))
}

async fn home(site: Data<Site>) -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::html()).body(site.home())
}

async fn blogs(site: Data<Site>) -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::html()).body(site.blogs())
}

async fn blog(site: Data<Site>, id: Path<String>) -> HttpResponse {
    match site.blog(&id) {
        Some(page) => HttpResponse::Ok().content_type(ContentType::html()).body(page),
        None => missing(site).await,
    }
}

async fn version(site: Data<Site>) -> HttpResponse {
    HttpResponse::Ok().content_type(ContentType::json()).body(site.version())
}

async fn missing(site: Data<Site>) -> HttpResponse {
    HttpResponse::NotFound().content_type(ContentType::html()).body(site.missing())
}
