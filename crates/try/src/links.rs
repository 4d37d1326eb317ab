//! What the pages that are asked link to: pages, scripts, stylesheets, images of the same origin.
//!
//! Owns the reading of a page's tags and which of its links are asked. Reads tags as browsers do, as far as links need
//! it; never a form, never what another origin has, and never a link that says by its attributes or its name that it
//! is not for reading. Links of links are not followed.

use std::collections::HashSet;

use onehop_load::client::Client;
use onehop_load::plan::Timeouts;
use onehop_load::url::Address;

use super::route::{Origin, PATHS_MAX, Route, SkipReason, Skipped, is_plain, state_change};
use super::stacks::{HOST, Stack};

/// Links of a page that are not asked and listed; a page of a forum has hundreds.
const SKIPPED_MAX: usize = 20;

/// What a browser loads with a page; other values of `rel` name pages, or nothing to load.
const LOADED_RELS: [&str; 6] =
    ["stylesheet", "icon", "preload", "modulepreload", "manifest", "apple-touch-icon"];

/// Elements whose content is text only, so that `<a` in it is no tag (HTML, section 13.1.2.1).
const TEXT_ELEMENTS: [&str; 4] = ["script", "style", "textarea", "title"];

/// The links of pages.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Links {
    /// Those that are asked.
    pub(super) routes: Vec<Route>,
    /// Those that are not.
    pub(super) skipped: Vec<Skipped>,
}

/// A start tag: its attributes, names in lower case.
struct Tag {
    name: String,
    attributes: Vec<(String, String)>,
}

/// Where a reference leads.
enum Reference {
    /// To another origin, to the page itself, or to something that cannot be asked.
    Elsewhere,
    /// To this path of the same origin, with a query.
    WithQuery(String),
    /// To this path of the same origin.
    Path(String),
}

/// Asks for the pages once, and reads their links: at most so many that with the pages [`PATHS_MAX`] are asked.
pub(super) fn follow(stack: &Stack, pages: &[Route], timeouts: Timeouts) -> Links {
    let mut client = Client::new(Address::Tcp(stack.address));
    let mut found = Links::default();
    for page in pages {
        if pages.len() + found.routes.len() >= PATHS_MAX {
            break;
        }
        let Ok(response) = client.request(&stack.request(&page.path), timeouts) else { continue };
        let is_html =
            response.field("content-type").is_some_and(|value| value.trim_start().starts_with("text/html"));
        if response.status != 200 || !is_html {
            continue;
        }
        let links = of(&String::from_utf8_lossy(&response.body), &page.path);
        found.routes.extend(links.routes);
        found.skipped.extend(links.skipped);
    }
    let mut seen: HashSet<String> = pages.iter().map(|page| page.path.clone()).collect();
    found.routes.retain(|route| seen.insert(route.path.clone()));
    found.routes.truncate(PATHS_MAX.saturating_sub(pages.len()));
    found
}

/// The links of one page. A path that one of them says not to ask is not asked because of another.
pub(super) fn of(text: &str, page: &str) -> Links {
    let mut links = Links::default();
    let mut base = page.to_owned();
    for tag in tags(text) {
        if tag.name == "base" {
            match tag.value("href").map(|href| resolved(href, page)) {
                Some(Reference::Path(path) | Reference::WithQuery(path)) => base = path,
                // All that is relative belongs to another origin.
                Some(Reference::Elsewhere) => return links,
                None => {}
            }
        }
        let Some(reference) = tag.reference() else { continue };
        let (path, reason) = match resolved(reference, &base) {
            Reference::Elsewhere => continue,
            Reference::WithQuery(path) => (path + "?", Some(SkipReason::Query)),
            Reference::Path(path) => {
                let reason = tag.reason().or_else(|| state_change(&path).map(SkipReason::StateChange));
                (path, reason)
            }
        };
        match reason {
            None => links.routes.push(Route { path, origin: Origin::Link(page.to_owned()) }),
            Some(reason) => links.skipped.push(Skipped { path, reason }),
        }
    }
    let refused: HashSet<String> = links.skipped.iter().map(|link| link.path.clone()).collect();
    let mut seen = HashSet::new();
    links.routes.retain(|route| !refused.contains(&route.path) && seen.insert(route.path.clone()));
    seen.clear();
    links.skipped.retain(|link| seen.insert(link.path.clone()));
    links.skipped.truncate(SKIPPED_MAX);
    links
}

impl Tag {
    fn value(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// What it refers to, where a browser follows that by GET.
    fn reference(&self) -> Option<&str> {
        let has_rel = |wanted: &str| {
            self.value("rel")
                .is_some_and(|rel| rel.split_whitespace().any(|rel| rel.eq_ignore_ascii_case(wanted)))
        };
        match self.name.as_str() {
            "a" => self.value("href"),
            "link" if LOADED_RELS.into_iter().any(has_rel) => self.value("href"),
            "script" | "img" | "source" => self.value("src"),
            _ => None,
        }
    }

    /// Why its attributes say that it is not to be asked.
    fn reason(&self) -> Option<SkipReason> {
        let rel = self.value("rel").unwrap_or_default();
        if rel.split_whitespace().any(|rel| rel.eq_ignore_ascii_case("nofollow")) {
            return Some(SkipReason::NoFollow);
        }
        if self.value("download").is_some() {
            return Some(SkipReason::Download);
        }
        // Scripts turn such links into requests with another method.
        let method = ["data-method", "data-turbo-method"].into_iter().find_map(|name| self.value(name));
        method.map(|method| SkipReason::Method(method.to_ascii_uppercase()))
    }
}

/// The start tags of a page. What is no markup (comments, scripts) is passed over.
fn tags(text: &str) -> Vec<Tag> {
    // Its bytes are where those of the text are.
    let lower = text.to_ascii_lowercase();
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(open) = text.get(at..).and_then(|rest| rest.find('<')) {
        at += open + 1;
        let rest = text.get(at..).unwrap_or_default();
        if rest.starts_with("!--") {
            match rest.find("-->") {
                Some(end) => at += end,
                None => break,
            }
            continue;
        }
        let length =
            rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '-').unwrap_or(rest.len());
        if !rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
            continue;
        }
        let name = lower.get(at..at + length).unwrap_or_default().to_owned();
        let (attributes, end) = attributes(rest, length);
        at += end;
        if TEXT_ELEMENTS.contains(&name.as_str()) {
            let end = lower.get(at..).and_then(|rest| rest.find(&format!("</{name}")));
            at = end.map_or(text.len(), |end| at + end);
        }
        tags.push(Tag { name, attributes });
    }
    tags
}

/// The attributes of a tag from a byte on, the first of each name, and where the tag ends.
fn attributes(tag: &str, from: usize) -> (Vec<(String, String)>, usize) {
    let mut attributes: Vec<(String, String)> = Vec::new();
    let mut rest = tag.get(from..).unwrap_or_default();
    loop {
        rest = rest.trim_start_matches(|letter: char| letter.is_ascii_whitespace() || letter == '/');
        if rest.is_empty() || rest.starts_with('>') {
            return (attributes, tag.len() - rest.len());
        }
        let is_end = |letter: char| letter.is_ascii_whitespace() || "=/>".contains(letter);
        // A name may begin with `=` (HTML, section 13.2.5.32).
        let length =
            rest.char_indices().skip(1).find(|(_, letter)| is_end(*letter)).map_or(rest.len(), |(at, _)| at);
        let (name, behind) = rest.split_at(length);
        let (mut value, mut after) = ("", behind);
        if let Some(written) = behind.trim_ascii_start().strip_prefix('=') {
            let written = written.trim_ascii_start();
            (value, after) = match written.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let inner = written.get(1..).unwrap_or_default();
                    inner.split_once(quote).unwrap_or((inner, ""))
                }
                _ => {
                    let end = written.find(|letter: char| letter.is_ascii_whitespace() || letter == '>');
                    written.split_at(end.unwrap_or(written.len()))
                }
            };
        }
        let name = name.to_ascii_lowercase();
        if !attributes.iter().any(|(known, _)| *known == name) {
            attributes.push((name, value.to_owned()));
        }
        rest = after;
    }
}

/// A reference of a page as a path. What has escapes or character references is passed over: its name is not what is
/// written there.
fn resolved(reference: &str, base: &str) -> Reference {
    let reference = reference.trim().split('#').next().unwrap_or_default();
    let origin = format!("http://{HOST}");
    let reference = match reference.strip_prefix(origin.as_str()) {
        Some("") => "/",
        Some(path) if path.starts_with(['/', '?']) => path,
        Some(_) => return Reference::Elsewhere,
        None => reference,
    };
    let (written, has_query) = match reference.split_once('?') {
        Some((written, _)) => (written, true),
        None => (reference, false),
    };
    if (written.is_empty() && !has_query) || written.starts_with("//") || written.contains(':') {
        return Reference::Elsewhere;
    }
    let base = base.split('?').next().unwrap_or_default();
    let joined = match written {
        "" => base.to_owned(),
        written if written.starts_with('/') => written.to_owned(),
        written => format!("{}/{written}", base.rsplit_once('/').map_or("", |(folder, _)| folder)),
    };
    let mut segments: Vec<&str> = Vec::new();
    let (inner, last) = joined.rsplit_once('/').unwrap_or(("", &joined));
    for segment in inner.split('/').skip(1).chain([last]) {
        match segment {
            ".." => drop(segments.pop()),
            "." => {}
            segment => segments.push(segment),
        }
    }
    if matches!(last, "." | "..") {
        segments.push("");
    }
    let path = format!("/{}", segments.join("/"));
    match (has_query, is_plain(&path)) {
        // A query may hold a user's token.
        (true, _) => Reference::WithQuery(path),
        (false, true) => Reference::Path(path),
        (false, false) => Reference::Elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::Given;
    use crate::same::tests::{response, serve};
    use crate::same::{self, TIMEOUTS};
    use crate::setup::tests::setup;
    use crate::stacks::tests::stack_at;

    fn asked(text: &str, page: &str) -> Vec<String> {
        of(text, page).routes.into_iter().map(|route| route.path).collect()
    }

    fn skipped(text: &str) -> Vec<String> {
        of(text, "/").skipped.iter().map(|link| format!("{}: {}", link.path, link.reason)).collect()
    }

    #[test]
    fn a_page_links_to_what_a_browser_reads_from_the_same_origin() {
        let text = "<!doctype html><LINK REL='stylesheet' HREF=style.css><link rel=canonical href=/x>\
             <script type=module src=\"/app.js\">'<a href=/in-a-script>'</script><!-- <a href=/in-a-comment> -->\
             <img alt='a > b' src = './cat.png'><a href='http://localhost/about#team'>a</a><a href=../up>\
             <a href='//other.example/a'><a href='https://other.example/b'><a href='mailto:a@b'>\
             <a href='javascript:go()'><a href=#top><a href='/with%20escape'><a href='/with&#47;reference'>\
             <form action=/send><input formaction=/send2></form><a href='/about'><a data-href=/no>";
        assert_eq!(asked(text, "/"), ["/style.css", "/app.js", "/cat.png", "/about", "/up"]);
        assert_eq!(asked("<a href=c>", "/a/b?q=/x"), ["/a/c"]);
        assert_eq!(asked("<base href='/d/'><a href=c><a href=.>", "/a/b"), ["/d/c", "/d/"]);
        assert_eq!(asked("<base href='https://cdn.example/'><a href=c>", "/"), [""; 0]);
    }

    #[test]
    fn links_that_may_change_something_are_listed_and_not_asked() {
        let text = "<a href=/purge>p</a><a href='/unsubscribe/42'>u</a><a href=/next rel='next NoFollow'>\
             <a href=/file.zip download><a href='/search?q=1'><a href=/items/1 data-method=delete>\
             <a href=/items/1>the same</a><img src=/users/deleteAll>";
        assert_eq!(asked(text, "/"), [""; 0]);
        assert_eq!(
            skipped(text),
            [
                "/purge: may change state: its name has `purge`",
                "/unsubscribe/42: may change state: its name has `unsubscribe`",
                "/next: linked with rel=nofollow",
                "/file.zip: linked as a download",
                "/search?: linked with a query",
                "/items/1: DELETE: only GET and HEAD are sent",
                "/users/deleteAll: may change state: its name has `delete`",
            ]
        );
    }

    /// Requests that a server got, and the server.
    fn recorded(page: &'static str) -> (Arc<Mutex<Vec<String>>>, Stack) {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&lines);
        let address = serve(move |head| {
            let line = head.lines().next().unwrap_or_default();
            seen.lock().unwrap().push(line.trim_end_matches(" HTTP/1.1").to_owned());
            match line.split(' ').nth(1) {
                Some("/") => {
                    response(head, "200 OK", "Content-Type: text/html; charset=utf-8\r\n", page.as_bytes())
                }
                _ => response(head, "200 OK", "Content-Type: text/plain\r\n", b"<a href=/deeper>"),
            }
        });
        (lines, stack_at("recorded", address))
    }

    #[test]
    fn what_source_code_and_pages_name_as_a_state_change_is_never_asked() {
        const PAGE: &str = "<a href=/purge>purge</a><a href=/unsubscribe/7>leave</a><a href=/about>about</a>\
            <form method=post action=/send><button>send</button></form><script src=/app.js></script>";
        for (probes, expected) in
            [(false, &["/", "/about", "/app.js"][..]), (true, &["/", "/api/items", "/about", "/app.js"])]
        {
            let mut setup = setup();
            setup.routes.push(Route { path: "/".to_owned(), origin: Origin::StartPage });
            setup.guessed =
                ["/api/items", "/items/:id", "/purge", "/unsubscribe/:id"].map(str::to_owned).to_vec();
            setup.choose_routes(Given::default(), probes);
            let ((lines, today), (other_lines, onehop)) = (recorded(PAGE), recorded(PAGE));
            setup.routes.extend(follow(&today, &setup.routes, TIMEOUTS).routes);
            let paths: Vec<String> = setup.routes.into_iter().map(|route| route.path).collect();
            assert_eq!(paths, expected);
            same::compare(&today, &onehop, &paths);
            let lines = [lines, other_lines].map(|lines| lines.lock().unwrap().clone()).concat();
            assert!(lines.iter().any(|line| line == "GET /about"), "{lines:?}");
            for line in lines {
                let (method, path) = line.split_once(' ').unwrap();
                assert!(["GET", "HEAD"].contains(&method), "{line}");
                assert!(
                    !["purge", "unsubscribe", "send", "deeper"].iter().any(|word| path.contains(word)),
                    "{line}"
                );
                assert!(probes || !path.contains("/api/items"), "{line}");
            }
        }
    }

    #[test]
    fn with_the_pages_no_more_links_are_asked_than_paths_at_most() {
        const PAGE: &str = "<a href=/1><a href=/2><a href=/3><a href=/4><a href=/5><a href=/6><a href=/7><a href=/8>\
            <a href=/9><a href=/10><a href=/11>";
        let (lines, stack) = recorded(PAGE);
        let routes = [Route { path: "/".to_owned(), origin: Origin::StartPage }];
        assert_eq!(follow(&stack, &routes, TIMEOUTS).routes.len(), PATHS_MAX - 1);
        assert_eq!(*lines.lock().unwrap(), ["GET /"]);
    }

    proptest::proptest! {
        #[test]
        fn no_page_makes_it_panic_and_what_it_gives_can_be_asked(
            text in "[ -~é\\n]{0,80}", marked in "(<(a|img|base|script|!--|/) ?(href|src|rel)?=?['\"./?:a-cé >]{0,8}){0,8}",
        ) {
            for text in [text.as_str(), &marked, &format!("{marked}{text}{marked}")] {
                for route in of(text, "/a/b").routes {
                    proptest::prop_assert!(is_plain(&route.path) && state_change(&route.path).is_none());
                }
            }
        }
    }
}
