//! `onehop routes`: every site with what acts for its requests, in the order in which it acts.
//!
//! Shows checked settings, each on a line. Never shows the value of an application's variable.

mod describe;

use onehop_config::checked::{Checked, Route, Site, Step};

use crate::arguments::Routes;
use crate::configuration::{self, show_address};
use crate::failure::Failure;
use crate::problems::{self, Look};
use crate::report::write_line;

pub(crate) fn routes(arguments: &Routes) -> Result<(), Failure> {
    let file = configuration::find(arguments.file.named(), "onehop routes FILE")?;
    let loaded = configuration::load(&file)?;
    if !loaded.warnings.is_empty() {
        write_line(problems::draw(&loaded.warnings, Look::of_standard_error()).trim_end());
    }
    show(&loaded.checked);
    Ok(())
}

/// Shows them.
pub(super) fn show(checked: &Checked) {
    super::standard_output::print(&page(checked));
}

fn page(checked: &Checked) -> String {
    let sites = checked.sites.iter().enumerate();
    let bound = checked
        .global
        .limit
        .as_deref()
        .map(|limit| format!("every site\n       limit  *  {}\n", describe::bounds(limit)));
    let pages = sites.map(|(number, site)| site_page(checked, number, site));
    bound.into_iter().chain(pages).collect::<Vec<_>>().join("\n")
}

fn site_page(checked: &Checked, number: usize, site: &Site) -> String {
    let listeners = checked.listeners.iter().filter(|listener| listener.sites.contains(&number));
    let addresses: Vec<String> = listeners.map(|listener| show_address(&listener.address)).collect();
    let mut rows = Vec::new();
    gather(&site.routes, 1, USUAL_STATUS, &mut rows);
    for errors in &site.errors {
        let condition = describe::statuses(&errors.statuses);
        rows.push(Row { line: 0, name: "handle_errors".to_owned(), condition, what: String::new() });
        gather(&errors.routes, 2, "the error's", &mut rows);
    }
    let widest = |cell: fn(&Row) -> &String| {
        rows.iter().map(|row| cell(row).chars().count()).max().unwrap_or_default().min(COLUMN_CHARACTERS_MAX)
    };
    let (name_width, condition_width) = (widest(|row| &row.name), widest(|row| &row.condition));
    let mut page = format!("{} at {}\n", site.label, addresses.join(", "));
    for Row { line, name, condition, what } in &rows {
        let line = if *line == 0 { String::new() } else { line.to_string() };
        let shown = format!("{line:>5}  {name:<name_width$}  {condition:<condition_width$}  {what}");
        page.push_str(shown.trim_end());
        page.push('\n');
    }
    page
}

/// What `respond` answers with where nothing is written.
const USUAL_STATUS: &str = "200";

/// A longer cell pushes the rest of its line to the right, and not that of all others.
const COLUMN_CHARACTERS_MAX: usize = 40;

struct Row {
    line: u32,
    /// The directive, indented by how deep it stands.
    name: String,
    condition: String,
    what: String,
}

fn gather(routes: &[Route], depth: usize, usual_status: &str, rows: &mut Vec<Row>) {
    for route in routes {
        let (name, what) = describe::step(&route.step, usual_status);
        let condition = route.matcher.as_ref().map_or_else(|| "*".to_owned(), describe::matcher);
        rows.push(Row {
            line: route.line,
            name: format!("{}{name}", "  ".repeat(depth - 1)),
            condition,
            what,
        });
        if let Step::Handle(inner) | Step::HandlePath { routes: inner, .. } = &route.step {
            gather(inner, depth + 1, usual_status, rows);
        }
    }
}

#[cfg(test)]
mod tests {
    use onehop_config::{FileKind, FileSource, load};

    use super::*;

    const TEXT: &str = r#"http://a.example, http://b.example:8080 {
	@form {
		method POST PUT
		header Content-Type *json*
		not path /api/x*
	}
	@page file {path} {path}/
	header {
		+X-A {http.request.host}
		-Server
		?B c
	}
	root /srv/www
	redir /old/* /new{uri} permanent
	rewrite @page {file_match.relative}
	encode zstd gzip
	handle_path /files/* {
		file_server browse
	}
	handle /api/* {
		app api/server.mjs --flag {
			workers 2
			env TOKEN much-secret
		}
		respond @form "no" 403
	}
	app /next/* {
		command npx next start
		name next
	}
	app /old-app/* {
		supervise off 127.0.0.1:3000
	}
	respond /health ok
	spa ./dist
}
:9090 {
	respond "{method} {header.User-Agent} {$NOBODY_SETS_THIS:x}"
}
"#;

    #[test]
    fn routes_stand_in_the_order_in_which_they_act() {
        let folder = std::env::temp_dir().join(format!("onehop-routes-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("api")).expect("a folder");
        std::fs::write(folder.join("api/server.mjs"), "").expect("a file");
        std::fs::write(folder.join("Onehopfile"), TEXT).expect("a file");
        let loaded = load(&folder.join("Onehopfile"), FileKind::Onehopfile, &FileSource).expect("sound");
        std::fs::remove_dir_all(&folder).expect("it was there");
        let page = page(&loaded.checked).replace(&folder.display().to_string(), "/srv");
        assert!(!page.contains("much-secret"));
        insta::assert_snapshot!(page);
    }
}
