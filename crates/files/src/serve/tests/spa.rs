use onehop_config::checked::PathPattern;

use super::*;
use crate::spa;

const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const NAVIGATION: &str = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

fn tree() -> Store {
    Builder::new()
        .file("index.html", "app")
        .file("assets/index-B3xKq9aZ.js", "js")
        .file("fonts/a.woff2", "font")
        .file("favicon.ico", "icon")
        .file("docs/index.html", "docs")
        .file("plain", "plain")
        .file(".env", "secret")
        .file(".well-known/security.txt", "contact")
        .build()
}

fn ask(settings: &Spa, method: &str, target: &str, lines: &[&str]) -> (Result<String, HttpError>, Response) {
    let store = tree();
    let head = head(method, target, lines);
    let mut answer = Response::default();
    let served = spa(settings, &request(&head, &store, ALL), &mut answer);
    let body = body(&store, &answer);
    (served.map(|_| format!("{} {body}", answer.status)), answer)
}

#[test]
fn files_are_files_and_places_are_the_app() {
    let missing = || Err(HttpError::MissingAsset);
    let ok = |body: &str| Ok(format!("200 {body}"));
    let any = "Accept: */*";
    for (target, accept, expected) in [
        ("/", any, ok("app")),
        ("/index.html", any, ok("app")),
        ("/assets/index-B3xKq9aZ.js", any, ok("js")),
        ("/docs", any, ok("docs")),
        ("/docs/", any, ok("docs")),
        ("/plain", any, ok("plain")),
        ("/users/7", NAVIGATION, ok("app")),
        ("/users/7/", NAVIGATION, ok("app")),
        ("/users/7?tab=a.js", NAVIGATION, ok("app")),
        ("/assets", NAVIGATION, ok("app")),
        ("/assets/", NAVIGATION, ok("app")),
        ("/plain/", NAVIGATION, ok("app")),
        ("/releases/1.2", NAVIGATION, ok("app")),
        ("/users/7", any, missing()),
        ("/users/7", "X: y", missing()),
        ("/users/7", "Accept: application/json", missing()),
        ("/users/7", "Accept: text/html;q=0, */*", missing()),
        ("/users/7", "Accept: application/json, Text/HTML;q=0.1", ok("app")),
        ("/assets/index-GoneGone.js", NAVIGATION, missing()),
        ("/assets/index-GoneGone.js", any, missing()),
        ("/missing.css", NAVIGATION, missing()),
        ("/index.html/", NAVIGATION, missing()),
        ("/site.webmanifest", NAVIGATION, missing()),
        ("/.env", NAVIGATION, missing()),
        ("/.env", any, missing()),
        ("/.git/config", NAVIGATION, missing()),
        ("/.well-known/security.txt", any, ok("contact")),
        ("/a/%2e%2e/favicon.ico", any, ok("icon")),
        ("/../etc/passwd", NAVIGATION, Err(HttpError::BadPath)),
        ("/a%2fb", NAVIGATION, Err(HttpError::BadPath)),
    ] {
        assert_eq!(ask(&spa_settings(), "GET", target, &[accept]).0, expected, "{target} {accept}");
    }
}

#[test]
fn only_get_and_head_are_answered() {
    for (method, expected) in [
        ("HEAD", Ok("200 app".to_owned())),
        ("POST", Err(HttpError::MethodNotAllowed(Methods::Files))),
        ("OPTIONS", Err(HttpError::MethodNotAllowed(Methods::Files))),
        ("PROPFIND", Err(HttpError::NotImplemented)),
    ] {
        assert_eq!(ask(&spa_settings(), method, "/", &[]).0, expected, "{method}");
        assert_eq!(ask(&spa_settings(), method, "/users/7", &[NAVIGATION]).0, expected, "{method}");
    }
}

#[test]
fn hashed_assets_are_immutable_and_all_else_is_asked_for_again() {
    let of = |settings: &Spa, target| {
        let (served, answer) = ask(settings, "GET", target, &[NAVIGATION]);
        assert!(served.is_ok(), "{target}");
        field(&answer, "Cache-Control").map(str::to_owned)
    };
    let settings = spa_settings();
    assert_eq!(of(&settings, "/").as_deref(), Some("no-cache"));
    assert_eq!(of(&settings, "/users/7").as_deref(), Some("no-cache"));
    assert_eq!(of(&settings, "/favicon.ico").as_deref(), Some("no-cache"));
    assert_eq!(of(&settings, "/assets/index-B3xKq9aZ.js").as_deref(), Some(IMMUTABLE));
    assert_eq!(of(&settings, "/fonts/a.woff2").as_deref(), Some("no-cache"));
    for pattern in [
        PathPattern::Prefix("/fonts/".to_owned()),
        PathPattern::Exact("/fonts/a.woff2".to_owned()),
        PathPattern::Suffix(".woff2".to_owned()),
        PathPattern::Contains("onts/".to_owned()),
        PathPattern::Glob("/f*s/*.woff2".to_owned()),
        PathPattern::Any,
    ] {
        let settings = Spa { immutable: vec![pattern.clone()], ..spa_settings() };
        assert_eq!(of(&settings, "/fonts/a.woff2").as_deref(), Some(IMMUTABLE), "{pattern:?}");
    }
    let settings = Spa { immutable: vec![PathPattern::Prefix("/other/".to_owned())], ..spa_settings() };
    assert_eq!(of(&settings, "/fonts/a.woff2").as_deref(), Some("no-cache"));
}

#[test]
fn not_modified_says_how_long_it_is_good() {
    let (_, answer) = ask(&spa_settings(), "GET", "/", &[]);
    let none_match = format!("If-None-Match: {}", field(&answer, "ETag").unwrap());
    let (served, answer) = ask(&spa_settings(), "GET", "/", &[&none_match]);
    assert_eq!(served, Ok("304 ".to_owned()));
    assert_eq!(field(&answer, "Cache-Control"), Some("no-cache"));
}

#[test]
fn a_cache_control_of_the_users_own_stands() {
    let store = tree();
    let head = head("GET", "/", &[]);
    let mut answer = Response::default();
    answer.fields.add("Cache-Control", b"max-age=60");
    answered(spa(&spa_settings(), &request(&head, &store, ALL), &mut answer));
    let values: Vec<_> = answer.fields.iter().filter(|(name, _)| *name == b"Cache-Control").collect();
    assert_eq!(values, [(b"Cache-Control".as_slice(), b"max-age=60".as_slice())]);
}

#[test]
fn dotfiles_are_served_where_that_is_configured() {
    let settings = Spa { dotfiles: true, ..spa_settings() };
    assert_eq!(ask(&settings, "GET", "/.env", &[]).0, Ok("200 secret".to_owned()));
}
