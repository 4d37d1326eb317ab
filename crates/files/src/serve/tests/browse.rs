use super::*;
use crate::file_server;

fn settings() -> FileServer {
    FileServer { browse: true, hide: vec!["hidden.txt".to_owned()], ..file_server_settings() }
}

fn tree() -> Store {
    Builder::new()
        .file("files/b.txt", "1")
        .file("files/A.txt", "4444")
        .file("files/c.txt", "333")
        .with(|file| file.modified = modified() + Duration::from_secs(86_400))
        .file("files/z/inner.txt", "x")
        .file("files/hidden.txt", "x")
        .file("files/.env", "x")
        .file("files/a:<b> & \"c\"?.txt", "22")
        .build()
}

fn page(target: &str, lines: &[&str]) -> (Response, String) {
    let store = tree();
    let head = head("GET", target, lines);
    let mut answer = Response::default();
    answered(file_server(&settings(), &request(&head, &store, ALL), &mut answer));
    let body = body(&store, &answer);
    (answer, body)
}

/// The names in the order in which the page has them.
fn names(target: &str) -> Vec<String> {
    let (_, body) = page(target, &["Accept: application/json"]);
    let entries: serde_json::Value = serde_json::from_str(&body).unwrap();
    entries.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_page_lists_what_may_be_seen_and_escapes_it() {
    let (answer, body) = page("/files/", &["Accept: text/html"]);
    assert_eq!(answer.status, 200);
    assert_eq!(field(&answer, "Content-Type"), Some("text/html; charset=utf-8"));
    assert_eq!(field(&answer, "Vary"), Some("Accept"));
    assert!(body.contains("<a href=\"./b.txt\">b.txt</a>"), "{body}");
    assert!(body.contains("<a href=\"./z/\">z/</a>"), "{body}");
    assert!(
        body.contains(
            "<a href=\"./a:%3Cb%3E%20&amp;%20%22c%22%3F.txt\">a:&lt;b&gt; &amp; &quot;c&quot;?.txt</a>"
        ),
        "{body}"
    );
    assert!(!body.contains("<b>") && !body.contains("hidden.txt") && !body.contains(".env"), "{body}");
    assert!(body.contains("<p class=\"note\">1 folder, 4 files, 10 B</p>"), "{body}");
}

#[test]
fn a_page_is_sorted_as_its_query_says() {
    let odd = "a:<b> & \"c\"?.txt";
    for (query, expected) in [
        ("", ["z/", "A.txt", odd, "b.txt", "c.txt"]),
        ("?sort=name", ["A.txt", odd, "b.txt", "c.txt", "z/"]),
        ("?sort=name&order=desc", ["z/", "c.txt", "b.txt", odd, "A.txt"]),
        ("?order=asc&sort=size", ["z/", "b.txt", odd, "c.txt", "A.txt"]),
        ("?sort=time&order=desc", ["c.txt", "z/", "b.txt", odd, "A.txt"]),
        ("?sort=nonsense&order=x", ["z/", "A.txt", odd, "b.txt", "c.txt"]),
    ] {
        assert_eq!(names(&format!("/files/{query}")), expected, "{query}");
    }
}

#[test]
fn programs_get_json_with_the_names_that_caddy_gives() {
    let (answer, body) = page("/files/?sort=size", &["Accept: application/json"]);
    assert_eq!(field(&answer, "Content-Type"), Some("application/json"));
    let entries: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(
        entries[0],
        serde_json::json!({
            "name": "z/", "size": 0, "url": "./z/", "mod_time": "1994-11-06T08:49:37Z",
            "mode": 0o755 | 1_u32 << 31, "is_dir": true, "is_symlink": false
        })
    );
    assert_eq!(entries[1]["url"], "./b.txt");
    for (accept, json) in [
        ("application/json, text/html;q=0.9", true),
        ("text/html, application/json;q=0.9", false),
        ("*/*", false),
        ("application/json;q=0", false),
    ] {
        let (answer, _) = page("/files/", &[&format!("Accept: {accept}")]);
        assert_eq!(field(&answer, "Content-Type") == Some("application/json"), json, "{accept}");
    }
}

#[test]
fn a_page_without_its_slash_is_redirected_so_that_its_links_hold() {
    let (answer, _) = page("/files?sort=size", &[]);
    assert_eq!((answer.status, field(&answer, "Location")), (308, Some("/files/?sort=size")));
}

#[test]
fn a_page_is_whole_without_a_script() {
    let (answer, body) = page("/files/z/", &["Accept: text/html"]);
    assert!(field(&answer, "Content-Security-Policy").unwrap().starts_with("default-src 'none'"));
    assert!(!body.contains("<script") && !body.contains(" onclick"));
    assert!(body.contains("<a href=\"../\">Parent folder</a>"), "{body}");
    assert!(body.contains("<a href=\"../../\">root</a>"), "{body}");
    assert!(body.contains("<a href=\"./\" aria-current=\"page\">z</a>"), "{body}");
    if let Ok(path) = std::env::var("ONEHOP_BROWSE_SAMPLE") {
        std::fs::write(path, page("/files/", &["Accept: text/html"]).1).unwrap();
    }
}

#[test]
fn other_methods_have_no_page() {
    let store = tree();
    let head = head("POST", "/files/", &[]);
    let served = file_server(&settings(), &request(&head, &store, ALL), &mut Response::default());
    assert!(matches!(served, Err(HttpError::MethodNotAllowed(Methods::Files))));
}
