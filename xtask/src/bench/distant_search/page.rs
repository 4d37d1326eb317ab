//! Tables for people: Markdown for the terminal and a README, and one HTML page without anything to load.

use std::fmt::Write as _;

/// A table with a title above it and notes below.
pub(super) struct Section {
    pub(super) title: String,
    pub(super) head: &'static [&'static str],
    pub(super) rows: Vec<Vec<String>>,
    pub(super) notes: Vec<String>,
}

const STYLE: &str = "\
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
div { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #8884; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left }";

impl Section {
    /// For a terminal, too: columns are as wide as their widest cell.
    pub(super) fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n", self.title);
        let width_of = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain(self.head.get(column).map(|cell| cell.len())).max().unwrap_or_default()
        };
        let widths: Vec<usize> = (0..self.head.len()).map(width_of).collect();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            for (cell, width) in cells.zip(&widths) {
                let _ = write!(text, "| {cell:<width$} ");
            }
            text.push_str("|\n");
        };
        if !self.rows.is_empty() {
            line(&mut self.head.iter().copied());
            line(&mut self.head.iter().map(|_| "---"));
        }
        for row in &self.rows {
            line(&mut row.iter().map(String::as_str));
        }
        if !self.rows.is_empty() && !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "- {note}");
        }
        text.push('\n');
        text
    }

    fn html(&self) -> String {
        let mut text = format!("<h2>{}</h2>\n", escaped(&self.title));
        let line = |name: &str, cells: &mut dyn Iterator<Item = &str>| {
            let cells: String = cells.map(|cell| format!("<{name}>{}</{name}>", escaped(cell))).collect();
            format!("<tr>{cells}</tr>\n")
        };
        if !self.rows.is_empty() {
            let rows: String =
                self.rows.iter().map(|row| line("td", &mut row.iter().map(String::as_str))).collect();
            let head = line("th", &mut self.head.iter().copied());
            let _ = writeln!(text, "<div><table>\n{head}{rows}</table></div>");
        }
        if !self.notes.is_empty() {
            let notes: String =
                self.notes.iter().map(|note| format!("<li>{}</li>\n", escaped(note))).collect();
            let _ = writeln!(text, "<ul>\n{notes}</ul>");
        }
        text
    }
}

/// The whole page.
pub(super) fn html(title: &str, about: &str, sections: &[Section]) -> String {
    let body: String = sections.iter().map(Section::html).collect();
    let (title, about) = (escaped(title), escaped(about));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{STYLE}\n</style>\n<h1>{title}</h1>\n<p>{about}</p>\n{body}</html>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        Section {
            title: "1k-plain".to_owned(),
            head: &["target", "ms"],
            rows: vec![vec!["onehop".to_owned(), "184.0".to_owned()]],
            notes: vec!["a < b".to_owned()],
        }
    }

    #[test]
    fn a_section_is_a_table_in_markdown_and_in_html() {
        let expected =
            "## 1k-plain\n\n| target | ms    |\n| ---    | ---   |\n| onehop | 184.0 |\n\n- a < b\n\n";
        assert_eq!(section().markdown(), expected);
        let page = html("distant-search", "91 ms", &[section()]);
        assert!(page.contains("<td>onehop</td><td>184.0</td>") && page.contains("a &lt; b"), "{page}");
    }
}
