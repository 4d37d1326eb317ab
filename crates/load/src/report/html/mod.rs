//! The report as one page.
//!
//! Owns the page.

use super::Report;
use super::document::Document;

/// The report as one self-contained HTML page.
pub fn html(report: &Report) -> String {
    format!("<!doctype html><title>{}</title>", Document::of(report).title.len())
}
