//! The pages of the portfolio site as text, byte for byte as `site.mjs` makes them.
//!
//! Files are read once, at the start; Markdown becomes HTML anew for each page that is asked for. This crate knows no server.
#![forbid(unsafe_code)]

use std::io;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Parser, html};

/// How many posts the first page lists.
const HOME_POSTS: usize = 3;

/// What the environment and the command line say of a server: `PORT`, and the folder with the content.
pub fn settings() -> io::Result<(u16, Site)> {
    let port = std::env::var("PORT").ok().and_then(|port| port.parse().ok());
    let folder = std::env::args_os().nth(1).map(PathBuf::from);
    match (port, folder) {
        (Some(port), Some(folder)) => Ok((port, Site::read(&folder)?)),
        _ => Err(invalid("usage: PORT=8080 PROGRAM experiments/portfolio")),
    }
}

/// Everything that pages are made of.
pub struct Site {
    style: String,
    home: String,
    /// Newest first.
    posts: Vec<Post>,
}

struct Post {
    id: String,
    title: String,
    date: String,
    description: String,
    markdown: String,
}

impl Site {
    /// Reads the experiment's folder.
    pub fn read(folder: &Path) -> io::Result<Site> {
        let mut posts = Vec::new();
        for entry in std::fs::read_dir(folder.join("content"))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "md") {
                posts.push(Post::read(&path)?);
            }
        }
        posts.sort_by(|one, other| other.date.cmp(&one.date));
        let read = |name: &str| std::fs::read_to_string(folder.join(name));
        Ok(Site { style: read("style.css")?, home: read("home.md")?, posts })
    }

    /// `/`.
    pub fn home(&self) -> String {
        let latest = &self.posts[..self.posts.len().min(HOME_POSTS)];
        let content = format!("{}<h2>Latest notes</h2>\n{}", to_html(&self.home), list(latest));
        self.layout("Notes on HTTP", &content)
    }

    /// `/blogs`.
    pub fn blogs(&self) -> String {
        self.layout("All notes", &format!("<h1>All notes</h1>\n{}", list(&self.posts)))
    }

    /// `/blogs/ID`, or nothing where no post has this id.
    pub fn blog(&self, id: &str) -> Option<String> {
        let Post { title, date, markdown, .. } = self.posts.iter().find(|post| post.id == id)?;
        let content = format!(
            r#"<article>
<h1>{}</h1>
<p><time datetime="{date}">{date}</time></p>
{}</article>
"#,
            escape(title),
            to_html(markdown)
        );
        Some(self.layout(title, &content))
    }

    /// `/version`, as JSON.
    pub fn version(&self) -> String {
        format!(r#"{{"version":"{}"}}"#, env!("CARGO_PKG_VERSION"))
    }

    /// Every other address.
    pub fn missing(&self) -> String {
        let content = r#"<h1>Not found</h1>
<p>There is no page at this address. <a href="/blogs">All notes</a> are in one list.</p>
"#;
        self.layout("Not found", content)
    }

    fn layout(&self, title: &str, content: &str) -> String {
        format!(
            r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{}</title>
<link rel="icon" href="data:,">
<style>
{}</style>
</head>
<body>
<header><a href="/">Notes on HTTP</a><a href="/blogs">All notes</a></header>
<main>
{content}</main>
</body>
</html>
"#,
            escape(title),
            self.style
        )
    }
}

impl Post {
    /// A post: lines of `key: value` between two lines of `---`, then Markdown.
    fn read(path: &Path) -> io::Result<Post> {
        let text = std::fs::read_to_string(path)?;
        let (head, markdown) = text
            .strip_prefix("---\n")
            .and_then(|text| text.split_once("\n---\n"))
            .ok_or_else(|| invalid("a post without front matter"))?;
        let field = |name: &str| {
            let fields = head.lines().filter_map(|line| line.split_once(": "));
            let value = fields.filter(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).next();
            value.ok_or_else(|| invalid("a post without title, date or description"))
        };
        let id = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Post {
            id,
            title: field("title")?,
            date: field("date")?,
            description: field("description")?,
            markdown: markdown.to_owned(),
        })
    }
}

fn list(posts: &[Post]) -> String {
    let section = |Post { id, title, date, description, .. }: &Post| {
        format!(
            r#"<section>
<h3><a href="/blogs/{id}">{}</a></h3>
<p><time datetime="{date}">{date}</time></p>
{}</section>
"#,
            escape(title),
            to_html(description)
        )
    };
    posts.iter().map(section).collect()
}

fn to_html(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len() * 3 / 2);
    html::push_html(&mut text, Parser::new(markdown));
    text
}

/// Text that is safe within an element and within a quoted attribute.
fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            letter => safe.push(letter),
        }
    }
    safe
}

fn invalid(reason: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_is_what_the_other_variants_send() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let site = Site::read(&folder).unwrap();
        let blog = site.blog("conditional-requests").unwrap();
        let bodies = [
            ("home.html", site.home()),
            ("blogs.html", site.blogs()),
            ("blog.html", blog),
            ("version.json", site.version()),
            ("missing.html", site.missing()),
        ];
        for (name, body) in bodies {
            let expected = std::fs::read_to_string(folder.join("expected").join(name)).unwrap();
            assert_eq!(body, expected, "{name}");
        }
        assert!(site.blog("missing").is_none());
    }
}
