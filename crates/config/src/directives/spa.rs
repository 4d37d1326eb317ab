//! `spa`: a built single-page application, served from memory. A directive of onehop's own.

use super::file_server::{KEEP_RELEASES, keep_releases, symlinks_follow};
use super::{matcher_and_value, no_arguments, one_argument, options, placed, some_arguments, unknown_option};
use crate::check::Context;
use crate::check::matcher::Scope;
use crate::check::order::Placed;
use crate::check::path_pattern::path_pattern;
use crate::check::template::fixed;
use crate::checked::{Spa, Step};
use crate::problem::Problem;
use crate::syntax::Line;

const OPTIONS: [&str; 5] = ["index", "immutable", "dotfiles", "symlinks", "keep_releases"];

pub(super) fn spa(cx: &mut Context<'_>, scope: &Scope<'_>, line: &Line) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, folder) = matcher_and_value(cx, scope, line, "spa [<matcher>] <folder>")?;
    let folder = fixed(cx.source, folder, "the folder of an application")?;
    let mut settings = Spa {
        root: cx.absolute(&folder),
        index: "index.html".into(),
        immutable: Vec::new(),
        dotfiles: false,
        follow_outside: false,
        keep_releases: KEEP_RELEASES,
    };
    options(cx, line, |cx, option| {
        match option.name.text.as_str() {
            "index" => settings.index = index(cx, option)?,
            "immutable" => {
                for token in some_arguments(option, "immutable /assets/*")? {
                    settings.immutable.push(path_pattern(cx, token)?);
                }
            }
            "dotfiles" => no_arguments(option).map(|()| settings.dotfiles = true)?,
            "symlinks" => symlinks_follow(option).map(|()| settings.follow_outside = true)?,
            "keep_releases" => settings.keep_releases = keep_releases(option)?,
            _ => return Err(unknown_option("spa", option, &OPTIONS, &[])),
        }
        Ok(())
    });
    // Sorted with `file_server`, in whose place it stands.
    Ok(vec![placed("file_server", chosen, line, Step::Spa(settings))])
}

fn index(cx: &Context<'_>, option: &Line) -> Result<String, Box<Problem>> {
    let token = one_argument(option, "index index.html")?;
    let name = fixed(cx.source, token, "the index page")?;
    let name = name.trim_start_matches("./");
    if name.is_empty() || name.starts_with('/') || name.split('/').any(|part| part == "..") {
        return Err(Problem::error(
            "path",
            &token.place,
            format!("`{name}` is no file within the application"),
        )
        .help("write it as seen from the folder, for example `index app.html`"));
    }
    Ok(name.to_owned())
}
