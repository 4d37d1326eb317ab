//! The paths that a person names: `--path`, a collection, a HAR, a list of URLs, a sitemap.
//!
//! Owns what of a file becomes a path. Nothing but paths is taken: header fields stay in the file, and requests other
//! than GET and HEAD are listed and never sent, since each path is asked several times.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use onehop_bench::collection::{self, ReadOptions};
use onehop_load::url::Url;

use super::SideBySideError;
use super::route::{Origin, Route, SkipReason, Skipped};

/// Bytes of a sitemap that are read: a few thousand addresses, of which ten are asked.
const SITEMAP_BYTES_MAX: u64 = 1024 * 1024;

/// The paths that a person names, in their order.
#[derive(Debug, Clone, Default)]
pub struct Given {
    pub(super) routes: Vec<Route>,
    pub(super) skipped: Vec<Skipped>,
}

impl Given {
    /// Adds a path of the command line.
    pub fn path(&mut self, path: String) {
        self.routes.push(Route { path, origin: Origin::Argument });
    }

    /// Adds the paths of a Postman collection, a HAR, a list of URLs or a sitemap; which one is seen from what it holds.
    ///
    /// # Errors
    /// Where the file cannot be read or is none of these.
    pub fn file(&mut self, file: &Path, variables: &[(String, String)]) -> Result<(), SideBySideError> {
        let mut bytes = Vec::new();
        File::open(file)
            .and_then(|open| open.take(SITEMAP_BYTES_MAX).read_to_end(&mut bytes))
            .map_err(|error| SideBySideError::unreadable(file, &error))?;
        let text = String::from_utf8_lossy(&bytes);
        let urls = match text.trim_start_matches('\u{feff}').trim_start() {
            text if text.starts_with('<') => {
                sitemap(text).map_err(|(cause, next)| SideBySideError::found(file.display(), cause, next))?
            }
            _ => self.requests(file, variables)?,
        };
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let host = urls.first().map(|url| url.authority.clone());
        let mut seen = HashSet::new();
        for url in urls {
            if Some(&url.authority) != host.as_ref() {
                self.skipped.push(Skipped { path: url.path, reason: SkipReason::OtherHost });
            } else if seen.insert(url.path.clone()) {
                self.routes.push(Route { path: url.path, origin: Origin::File(name.clone()) });
            }
        }
        Ok(())
    }

    /// The GET and HEAD requests of a collection; the others are listed.
    fn requests(&mut self, file: &Path, variables: &[(String, String)]) -> Result<Vec<Url>, SideBySideError> {
        let options = ReadOptions { variables: variables.to_vec(), environment: None };
        let collection = collection::read(file, &options)
            .map_err(|error| SideBySideError::Measurement(error.to_string()))?;
        let mut urls = Vec::new();
        for request in collection.requests {
            match request.method.as_str() {
                "GET" | "HEAD" if request.body.is_none() => urls.push(request.url),
                method => {
                    let with = if request.body.is_some() { " with a body" } else { "" };
                    let reason = SkipReason::Method(format!("{method}{with}"));
                    self.skipped.push(Skipped { path: request.url.path, reason });
                }
            }
        }
        Ok(urls)
    }
}

/// The addresses of a sitemap (sitemaps.org, version 0.9).
fn sitemap(text: &str) -> Result<Vec<Url>, (String, &'static str)> {
    const NEXT: &str = "name a sitemap (<urlset>), a Postman collection v2.1, a HAR or a list of URLs";
    if text.contains("<sitemapindex") {
        return Err(("it names other sitemaps and no pages".to_owned(), "name one of those in its place"));
    }
    if !text.contains("<urlset") {
        return Err(("it is XML or HTML, and no sitemap".to_owned(), NEXT));
    }
    let locations = text.split("<loc>").skip(1).filter_map(|rest| rest.split_once("</loc>"));
    locations
        .map(|(address, _)| {
            let address = address.trim().replace("&amp;", "&");
            // Only host and path are of interest: both sides are asked without TLS.
            Url::parse(&address.replacen("https://", "http://", 1)).map_err(|error| (error.to_string(), NEXT))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Vec<String>, Vec<String>), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("given");
        std::fs::write(&file, text).unwrap();
        let mut given = Given::default();
        given
            .file(&file, &[("URL".to_owned(), "http://localhost:3000".to_owned())])
            .map_err(|error| error.to_string())?;
        let skipped = given.skipped.iter().map(|skipped| format!("{}: {}", skipped.path, skipped.reason));
        Ok((given.routes.iter().map(|route| route.path.clone()).collect(), skipped.collect()))
    }

    #[test]
    fn a_sitemap_gives_the_paths_of_its_first_host() {
        let text = "<?xml version=\"1.0\"?>\n<urlset>\n<url><loc>https://shop.example/</loc></url>\
             <url><loc>https://shop.example/about?a=1&amp;b=2</loc></url><url><loc>https://shop.example/</loc></url>\
             <url><loc>https://other.example/x</loc></url></urlset>";
        let (asked, skipped) = read(text).unwrap();
        assert_eq!(asked, ["/", "/about?a=1&b=2"]);
        assert_eq!(skipped, ["/x: on another host than the file's first request"]);
        assert!(read("<sitemapindex><sitemap><loc>https://a/b.xml</loc></sitemap></sitemapindex>").is_err());
        assert!(read("<!doctype html><p>").unwrap_err().contains("no sitemap"));
    }

    #[test]
    fn only_what_is_read_in_a_collection_is_asked() {
        let list = "http://localhost:3000/a\nPOST http://localhost:3000/purge\nDELETE http://localhost:3000/a\nHEAD {{URL}}/b?c=d\n";
        let (asked, skipped) = read(list).unwrap();
        assert_eq!(asked, ["/a", "/b?c=d"]);
        assert_eq!(
            skipped,
            ["/purge: POST: only GET and HEAD are sent", "/a: DELETE: only GET and HEAD are sent"]
        );
        let har = r#"{"log": {"entries": [{"request": {"method": "GET", "url": "http://localhost/x"}},
            {"request": {"method": "GET", "url": "http://cdn.example/y"}}]}}"#;
        assert_eq!(read(har).unwrap().0, ["/x"]);
        assert!(read("{}").is_err());
    }
}
