//! The directory page for people: a table, breadcrumbs, and links that sort it.

use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

use onehop_message::calendar::Moment;
use onehop_message::html::escape;

use super::{Entry, Listing, SortBy, Sorting};

const STYLE: &str = include_str!("page.css");

/// Bytes of a page without entries: room that is set aside at once.
const PAGE_BYTES_USUAL: usize = 4096;

/// Bytes of an entry with usual names.
const ENTRY_BYTES_USUAL: usize = 256;

/// The page. `path` is the folder's, decoded, without slashes at its ends.
pub(super) fn html(listing: &Listing, path: &[u8], sorting: Sorting) -> String {
    let mut page = String::with_capacity(PAGE_BYTES_USUAL + listing.entries.len() * ENTRY_BYTES_USUAL);
    let title = escape(&format!("/{}", String::from_utf8_lossy(path)));
    // Writing into a String cannot fail; the results are dropped for that reason alone.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
    );
    breadcrumbs(path, &mut page);
    summary(listing, &mut page);
    page.push_str("<table>\n<thead>\n<tr>");
    column("Name", "name", SortBy::Name, sorting, &mut page);
    column("Size", "size", SortBy::Size, sorting, &mut page);
    column("Changed (UTC)", "time", SortBy::Time, sorting, &mut page);
    page.push_str("</tr>\n</thead>\n<tbody>\n");
    if !path.is_empty() {
        page.push_str("<tr class=\"folder\"><th scope=\"row\"><a href=\"../\">Parent folder</a></th><td></td><td></td></tr>\n");
    }
    for entry in &listing.entries {
        row(entry, &mut page);
    }
    page.push_str("</tbody>\n</table>\n");
    if listing.entries.is_empty() {
        page.push_str("<p class=\"note\">This folder is empty.</p>\n");
    }
    if listing.cut {
        let _ = writeln!(page, "<p class=\"note\">Only {} entries are shown.</p>", listing.entries.len());
    }
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

/// The path, every folder on it a link. The links climb, so that they hold under any prefix.
fn breadcrumbs(path: &[u8], page: &mut String) {
    let segments: Vec<&[u8]> = path.split(|b| *b == b'/').filter(|segment| !segment.is_empty()).collect();
    page.push_str("<nav aria-label=\"Path\"><h1>");
    let root = if segments.is_empty() { "./".to_owned() } else { "../".repeat(segments.len()) };
    let _ = write!(page, "<a href=\"{root}\">root</a>");
    for (at, segment) in segments.iter().enumerate() {
        let climb = segments.len() - at - 1;
        let link = if climb == 0 { "./".to_owned() } else { "../".repeat(climb) };
        let current = if climb == 0 { " aria-current=\"page\"" } else { "" };
        let name = escape(&String::from_utf8_lossy(segment));
        let _ = write!(page, " <span aria-hidden=\"true\">/</span> <a href=\"{link}\"{current}>{name}</a>");
    }
    page.push_str("</h1></nav>\n");
}

fn summary(listing: &Listing, page: &mut String) {
    let folders = listing.entries.iter().filter(|entry| entry.folder).count();
    let files = listing.entries.len() - folders;
    let bytes = listing.entries.iter().filter(|entry| !entry.folder).map(|entry| entry.length).sum();
    let plural = |count| if count == 1 { "" } else { "s" };
    let _ = writeln!(
        page,
        "<p class=\"note\">{folders} folder{}, {files} file{}, {}</p>",
        plural(folders),
        plural(files),
        size(bytes)
    );
}

/// A heading that sorts by its column, and turns the order where the page is sorted by it already.
fn column(label: &str, name: &str, by: SortBy, sorting: Sorting, page: &mut String) {
    let sorted = sorting.by == by || (by == SortBy::Name && sorting.by == SortBy::FoldersFirst);
    let order = if sorted && !sorting.descending { "desc" } else { "asc" };
    let (state, mark) = match (sorted, sorting.descending) {
        (false, _) => ("", ""),
        (true, false) => (" aria-sort=\"ascending\"", " <span aria-hidden=\"true\">\u{2191}</span>"),
        (true, true) => (" aria-sort=\"descending\"", " <span aria-hidden=\"true\">\u{2193}</span>"),
    };
    let sort = if by == SortBy::Name && sorting.by == SortBy::FoldersFirst { "namedirfirst" } else { name };
    let _ = write!(
        page,
        "<th scope=\"col\"{state}><a href=\"?sort={sort}&amp;order={order}\">{label}</a>{mark}</th>"
    );
}

fn row(entry: &Entry, page: &mut String) {
    let class = if entry.folder { "folder" } else { "file" };
    let link = if entry.link { " <span class=\"link\">link</span>" } else { "" };
    let length = if entry.folder {
        "<td></td>".to_owned()
    } else {
        format!("<td title=\"{} bytes\">{}</td>", entry.length, size(entry.length))
    };
    // Files of a pack have no time.
    let time = if entry.modified == UNIX_EPOCH {
        String::new()
    } else {
        let moment = Moment::of(entry.modified);
        format!("<time datetime=\"{}\">{}</time>", moment.rfc3339(), moment.short())
    };
    let _ = writeln!(
        page,
        "<tr class=\"{class}\"><th scope=\"row\"><a href=\"{}\">{}</a>{link}</th>{length}<td>{time}</td></tr>",
        escape(&entry.url()),
        escape(&entry.display_name()),
    );
}

/// A size in the largest unit in which it is at least one.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let (mut tenths, mut unit) = (u128::from(bytes) * 10 / 1024, UNITS[0]);
    for larger in &UNITS[1..] {
        if tenths < 10 * 1024 {
            break;
        }
        tenths /= 1024;
        unit = larger;
    }
    if tenths < 100 {
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    } else {
        format!("{} {unit}", tenths / 10)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_short() {
        for (bytes, expected) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (10_240, "10 KiB"),
            (1_048_575, "1023 KiB"),
            (1_048_576, "1.0 MiB"),
            (u64::MAX, "15 EiB"),
        ] {
            assert_eq!(size(bytes), expected);
        }
    }
}
