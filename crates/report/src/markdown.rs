//! The report for pasting into an issue.
//!
//! Owns the escaping: what comes from outside stands in code spans and can begin no markup, mention or link. The words
//! are those of the document, pictures are drawn with letters.

use super::Report;
use super::document::{Block, Document, Table};
use super::{figures, text_plot};

/// The width of pictures: what GitHub shows without scrolling.
const PLOT_WIDTH: usize = 90;

/// The report as GitHub Flavored Markdown.
pub fn markdown(report: &Report) -> String {
    let document = Document::of(report);
    let mut out = format!("## {}\n\n", inline(&document.title));
    for block in &document.blocks {
        write(block, &mut out);
    }
    out
}

fn write(block: &Block, out: &mut String) {
    match block {
        Block::Heading(text) => out.push_str(&format!("### {}\n\n", inline(text))),
        Block::Paragraph(text) => out.push_str(&format!("{}\n\n", inline(text))),
        Block::Lead(text) => out.push_str(&format!("**{}**\n\n", inline(text))),
        Block::Warning(text) => out.push_str(&format!("> **Mind:** {}\n\n", inline(text))),
        Block::Items(items) => {
            items.iter().for_each(|item| out.push_str(&format!("- {}\n", inline(item))));
            out.push('\n');
        }
        Block::Facts(facts) => {
            out.push_str("| | |\n|---|---|\n");
            for (name, value) in facts {
                out.push_str(&format!("| {} | {} |\n", cell(name), cell(value)));
            }
            out.push('\n');
        }
        Block::Table(table) => write_table(table, out),
        Block::Code { name, text } => {
            let lines: Vec<String> =
                text.lines().map(|line| figures::visible(&line.replace('\t', "    "))).collect();
            out.push_str(&format!("{}:\n\n{}\n", inline(name), fenced(&lines)));
        }
        Block::Plot(plot) => {
            let lines = text_plot::draw(plot, PLOT_WIDTH);
            if let Some((caption, lines)) = lines.split_first() {
                let lines: Vec<String> = lines.iter().map(|line| figures::visible(line)).collect();
                out.push_str(&format!("{}:\n\n{}\n", inline(caption), fenced(&lines)));
            }
        }
    }
}

fn write_table(table: &Table, out: &mut String) {
    out.push_str(&format!("{}:\n\n", inline(&table.caption)));
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    out.push_str(&row(table.columns.iter().map(|column| cell(&column.name)).collect()));
    let ruler = table.columns.iter().map(|column| if column.is_figure { "---:" } else { "---" }.to_owned());
    out.push_str(&row(ruler.collect()));
    for cells in &table.rows {
        out.push_str(&row(cells.iter().map(|one| cell(&one.text)).collect()));
    }
    out.push('\n');
}

/// Lines in a fence that is longer than any within (GitHub Flavored Markdown section 4.5).
fn fenced(lines: &[String]) -> String {
    let run = |line: &String| line.chars().take_while(|letter| *letter == '`').count();
    let longest = lines.iter().map(|line| run(&line.trim_start().to_owned())).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}\n", lines.join("\n"))
}

/// In a table a bar ends the cell, in code spans too (GitHub Flavored Markdown section 4.10).
fn cell(text: &str) -> String {
    let parts = figures::parts(text).into_iter().map(|(is_code, part)| match is_code {
        true => format!("`{}`", part.replace('|', "\\|")),
        false => escaped(&part),
    });
    parts.collect()
}

/// A text with its code spans; all else is escaped.
fn inline(text: &str) -> String {
    let parts = figures::parts(text).into_iter().map(|(is_code, part)| match is_code {
        true => format!("`{part}`"),
        false => escaped(&part),
    });
    parts.collect()
}

/// Everything that could begin markup, HTML, a mention or a reference to an issue.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // A mention or reference begins with its sign; a word joiner behind it breaks that and is not seen.
            '@' | '#' => out.extend([letter, '\u{2060}']),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' => out.extend(['\\', letter]),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_becomes_markup() {
        for (text, shown) in [
            ("a `b|c` d", "a `b|c` d"),
            (
                "<script> & *x* [y](z) @you #1",
                "&lt;script&gt; &amp; \\*x\\* \\[y\\](z) @\u{2060}you #\u{2060}1",
            ),
            ("one ` alone", "one \\` alone"),
            ("``", "``"),
        ] {
            assert_eq!(inline(text), shown.replace("``", ""), "{text}");
        }
        assert_eq!(cell("a|b `c|d`"), "a\\|b `c\\|d`");
        assert_eq!(fenced(&["```".to_owned()]), "````\n```\n````\n");
    }
}
