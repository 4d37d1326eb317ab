//! The report as one page, which needs nothing beside itself: no script, no font, no picture from elsewhere.
//!
//! Owns the page's order and escaping: all text goes through [`escaped`]. Light and dark follow the reader's choice, and
//! nothing is said by colour alone. Pictures are drawn twice, for wide and for narrow windows, since letters that shrink
//! with a picture cannot be read.

mod alternative;
mod plots;
mod svg;

use super::Report;
use super::document::{Block, Document, Table, Tone};
use super::figures;
use super::plot::Plot;

/// The width of pictures in wide windows, CSS pixels.
const WIDE: f64 = 760.0;

/// The same in narrow ones: that of small telephones less the page's edges.
const NARROW: f64 = 340.0;

/// The whole style of the page.
const STYLE: &str = include_str!("page.css");

/// The report as one self-contained HTML page.
pub fn html(report: &Report) -> String {
    let document = Document::of(report);
    let mut body = String::new();
    let mut pictures = 0;
    for block in &document.blocks {
        write(block, &mut body, &mut pictures);
    }
    let title: String = figures::parts(&document.title).into_iter().map(|(_, part)| part).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body>\n<main>\n<h1>{}</h1>\n{body}</main>\n</body>\n</html>\n",
        escaped(&title),
        inline(&document.title)
    )
}

fn write(block: &Block, out: &mut String, pictures: &mut usize) {
    match block {
        Block::Heading(text) => out.push_str(&format!("<h2>{}</h2>\n", inline(text))),
        Block::Paragraph(text) => out.push_str(&format!("<p>{}</p>\n", inline(text))),
        Block::Lead(text) => out.push_str(&format!("<p class=\"lead\">{}</p>\n", inline(text))),
        Block::Warning(text) => out.push_str(&format!(
            "<p class=\"warning\" role=\"note\"><strong>Mind:</strong> {}</p>\n",
            inline(text)
        )),
        Block::Items(items) => {
            out.push_str("<ul>\n");
            items.iter().for_each(|item| out.push_str(&format!("<li>{}</li>\n", inline(item))));
            out.push_str("</ul>\n");
        }
        Block::Facts(facts) => {
            out.push_str("<dl>\n");
            for (name, value) in facts {
                out.push_str(&format!("<dt>{}</dt><dd>{}</dd>\n", inline(name), inline(value)));
            }
            out.push_str("</dl>\n");
        }
        Block::Table(table) => write_table(table, out),
        Block::Code { name, text } => {
            let lines: Vec<String> = text.lines().map(|line| escaped(&line.replace('\t', "    "))).collect();
            out.push_str(&format!(
                "<pre tabindex=\"0\" aria-label=\"{}\"><code>{}</code></pre>\n",
                escaped(name),
                lines.join("\n")
            ));
        }
        Block::Plot(plot) => {
            *pictures += 1;
            write_plot(plot, *pictures, out);
        }
    }
}

fn write_plot(plot: &Plot, number: usize, out: &mut String) {
    let (title, description) = plots::title(plot);
    out.push_str(&format!(
        "<figure>\n<figcaption><b>{}.</b> {}</figcaption>\n",
        inline(&title),
        inline(&description)
    ));
    out.push_str(&plots::draw(plot, WIDE, "wide", &format!("w{number}")));
    out.push_str(&plots::draw(plot, NARROW, "narrow", &format!("n{number}")));
    out.push_str("<details><summary>The figures of this picture</summary>\n");
    write_table(&alternative::table(plot), out);
    out.push_str("</details>\n</figure>\n");
}

/// A table in a frame of its own, which scrolls where the window is too narrow; keys reach it.
fn write_table(table: &Table, out: &mut String) {
    out.push_str("<div class=\"scroll\" tabindex=\"0\" role=\"group\" aria-label=\"Table\">\n<table>\n");
    out.push_str(&format!("<caption>{}</caption>\n<thead><tr>", inline(&table.caption)));
    let class = |is_figure: bool| if is_figure { " class=\"figure\"" } else { "" };
    for column in &table.columns {
        out.push_str(&format!("<th scope=\"col\"{}>{}</th>", class(column.is_figure), inline(&column.name)));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (place, (cell, column)) in row.iter().zip(&table.columns).enumerate() {
            let text = inline(&cell.text);
            if place == 0 {
                out.push_str(&format!("<th scope=\"row\">{text}</th>"));
                continue;
            }
            let tone = match cell.tone {
                Tone::Plain => "",
                Tone::Good => "good",
                Tone::Bad => "bad",
            };
            let figure = if column.is_figure { "figure" } else { "words" };
            out.push_str(&format!("<td class=\"{figure} {tone}\">{text}</td>"));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n</div>\n");
}

/// Text with what comes from outside as code.
fn inline(text: &str) -> String {
    let parts = figures::parts(&figures::bound(text)).into_iter().map(|(is_code, part)| match is_code {
        true => format!("<code>{}</code>", escaped(&part)),
        false => escaped(&part),
    });
    parts.collect()
}

/// Text that can be nothing but text, in elements and in attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in figures::visible(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            letter => out.push(letter),
        }
    }
    out
}
