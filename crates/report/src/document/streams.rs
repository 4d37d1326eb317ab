//! What is said of HTTP/2: streams, and how servers ended them and their connections. Nothing is said of HTTP/1.1.

use std::collections::BTreeMap;

use onehop_load::http2::{Http2Seen, code_list};

use super::{Cell, Column, Table};
use crate::figures;

/// A row for each, where it had streams.
pub(super) fn table<'a>(named: impl Iterator<Item = (String, &'a Http2Seen)>) -> Table {
    let caption = "Streams, those of the warm-up among them";
    let mut table =
        Table::of_figures(caption, "HTTP/2", &["Opened", "At a time on a connection", "Sent again"]);
    for name in ["RST_STREAM", "GOAWAY"] {
        table.columns.push(Column { name: name.to_owned(), is_figure: false });
    }
    for (name, seen) in named {
        table.row([
            Cell::from(name),
            Cell::from(figures::count(seen.streams_opened)),
            Cell::from(figures::count(u64::from(seen.streams_allowed.unwrap_or(seen.streams)))),
            Cell::from(figures::count(seen.resent)),
            Cell::from(codes(&seen.resets)),
            Cell::from(codes(&seen.goaways)),
        ]);
    }
    table
}

fn codes(codes: &BTreeMap<u32, u64>) -> String {
    if codes.is_empty() { "none".to_owned() } else { code_list(codes) }
}
