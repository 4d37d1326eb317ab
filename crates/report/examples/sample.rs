//! Writes made-up reports of every kind to a folder, as HTML, Markdown, JSON and text, for looking at them:
//! `cargo run -p onehop-report --example sample FOLDER [COLUMNS]`.

use std::path::PathBuf;
use std::{env, fs, io};

use onehop_report::sample;

fn main() -> io::Result<()> {
    let mut words = env::args().skip(1);
    let folder =
        words.next().map(PathBuf::from).ok_or_else(|| io::Error::other("name a folder to write to"))?;
    let width = words.next().and_then(|columns| columns.parse().ok()).unwrap_or(80);
    fs::create_dir_all(&folder)?;
    for (name, found) in sample::reports() {
        fs::write(folder.join(format!("{name}.html")), onehop_report::html(&found))?;
        fs::write(folder.join(format!("{name}.md")), onehop_report::markdown(&found))?;
        fs::write(folder.join(format!("{name}.json")), format!("{:#}\n", onehop_report::json(&found)))?;
        fs::write(folder.join(format!("{name}.ansi")), onehop_report::text(&found, true, width))?;
        fs::write(folder.join(format!("{name}.txt")), onehop_report::text(&found, false, width))?;
    }
    Ok(())
}
