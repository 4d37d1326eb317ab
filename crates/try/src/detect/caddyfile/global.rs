//! The global block: what of it holds in a side-by-side run, for Caddy and for onehop.
//!
//! Knows no option by its meaning: whether onehop has one says its own checker. What one side goes without is told.

use std::path::Path;

use onehop_adapt::onehopfile::indented;
use onehop_config::FileKind;

use super::text::TextLine;
use super::{File, InPlace};
use crate::detect::environment::Environment;

/// Global options about certificates, ports and processes, which a side-by-side run decides.
const GLOBAL_LEFT_OUT: [&str; 22] = [
    "admin",
    "auto_https",
    "persist_config",
    "storage",
    "default_bind",
    "http_port",
    "https_port",
    "email",
    "log",
    "acme_ca",
    "acme_ca_root",
    "acme_dns",
    "acme_eab",
    "cert_issuer",
    "key_type",
    "local_certs",
    "skip_install_trust",
    "on_demand_tls",
    "ocsp_stapling",
    "renew_interval",
    "pki",
    "grace_period",
];

/// The options that Caddy keeps.
pub(super) fn kept<'a>(file: &File<'a>) -> impl Iterator<Item = &'a TextLine> {
    let all = file.global.map(TextLine::inner).unwrap_or_default();
    all.iter().filter(|line| !GLOBAL_LEFT_OUT.contains(&line.word(0)))
}

/// A line with its block, as if it stood at the margin.
pub(super) fn written(file: &File<'_>, line: &TextLine) -> String {
    let text = file.text.get(line.span.clone()).unwrap_or_default();
    let margin = super::indentation(file.text, line.span.start);
    let lines: Vec<&str> = text.lines().map(|line| line.strip_prefix(margin).unwrap_or(line)).collect();
    lines.join("\n")
}

/// The block of those that onehop has too, with an empty line behind it; nothing where there is none.
pub(super) fn for_onehop(file: &File<'_>, environment: &Environment, notes: &mut Vec<String>) -> String {
    let mut block = String::new();
    for line in kept(file) {
        let text = written(file, line);
        let Err(why) = refusal(file, &text, environment) else {
            block.push_str(&format!("{text}\n"));
            continue;
        };
        // Of a block each option counts by itself.
        let mut inner = String::new();
        for option in line.inner() {
            let text = written(file, option);
            match refusal(file, &around(line, &text), environment) {
                Ok(()) => inner.push_str(&format!("{text}\n")),
                Err(why) => note(option, &text, &why, notes),
            }
        }
        if line.inner().is_empty() {
            note(line, &text, &why, notes);
        } else if !inner.is_empty() {
            block.push_str(&around(line, &inner));
        }
    }
    if block.is_empty() { block } else { format!("{{\n{}}}\n\n", indented(&block)) }
}

/// A line of the global block with this inside.
fn around(line: &TextLine, inner: &str) -> String {
    let words: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
    format!("{} {{\n{}}}\n", words.join(" "), indented(inner))
}

fn note(line: &TextLine, written: &str, why: &str, notes: &mut Vec<String>) {
    let first = written.lines().next().unwrap_or_default();
    notes.push(format!("`{first}` (line {}) holds for Caddy alone: {why}.", line.line));
}

/// What onehop says of an option.
fn refusal(file: &File<'_>, option: &str, environment: &Environment) -> Result<(), String> {
    let text = format!("{{\n{option}\n}}\n:8080 {{\n\trespond ok\n}}\n");
    let folder = file.path.parent().unwrap_or(Path::new("/"));
    let source = InPlace { path: file.path.to_owned(), folder, text: &text, environment };
    match onehop_config::load(file.path, FileKind::Caddyfile, &source) {
        Ok(_) => Ok(()),
        Err(problems) => Err(problems.into_iter().next().map(|first| first.message).unwrap_or_default()),
    }
}
