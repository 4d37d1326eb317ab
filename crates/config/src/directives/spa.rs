//! `spa`: a built single-page application, served from memory. A directive of onehop's own.

use super::file_server::{KEEP_RELEASES, keep_releases, symlinks_follow};
use super::{matcher_and_value, placed};
use crate::check::Context;
use crate::check::matcher::Scope;
use crate::check::path_pattern::path_pattern;
use crate::check::route_order::Placed;
use crate::check::template::fixed;
use crate::checked::{Spa, Step};
use crate::option_table::{OptionTable, flag, value, values};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

pub(super) const OPTIONS: OptionTable<Spa> = OptionTable::new(
    "spa",
    &[
        value("index", "index.html", |cx, spa, value| index(cx, value.token).map(|name| spa.index = name)),
        values("immutable", "/assets/*", |cx, spa, paths| {
            paths
                .iter()
                .try_for_each(|path| path_pattern(cx, path).map(|pattern| spa.immutable.push(pattern)))
        }),
        flag("dotfiles", |spa| spa.dotfiles = true),
        value("symlinks", "follow", |_, spa, mode| symlinks_follow(mode).map(|()| spa.follow_outside = true)),
        value("keep_releases", "3", |_, spa, count| {
            keep_releases(count).map(|count| spa.keep_releases = count)
        }),
    ],
);

pub(super) fn spa(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
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
    OPTIONS.read(cx, &mut settings, line.block.as_deref());
    // Sorted with `file_server`, in whose place it stands.
    Ok(vec![placed("file_server", chosen, line, Step::Spa(settings))])
}

fn index(cx: &Context<'_>, token: &Token) -> Result<String, Box<Problem>> {
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
