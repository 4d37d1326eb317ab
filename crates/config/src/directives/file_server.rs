//! `file_server`: files below the root.

use super::placed;
use crate::arguments::{no_block, wrong_arguments};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::route_order::Placed;
use crate::check::template::{fixed, template};
use crate::check::value::{encoding, status};
use crate::checked::{Encoding, FileServer, Step};
use crate::limits::KEEP_RELEASES_MAX;
use crate::option_table::{OptionTable, Value, flag, line, not_yet, value, values};
use crate::problem::Problem;
use crate::syntax::{Directive, Token};

const USAGE: &str = "file_server [<matcher>] [browse]";
pub(super) const OPTIONS: OptionTable<FileServer> = OptionTable::new(
    "file_server",
    &[
        value("root", "<folder>", |cx, files, value| {
            let root = template(cx.source, value.token)?;
            files.root = Some(cx.absolute_template(root));
            Ok(())
        }),
        values("hide", "<name or path>…", hide),
        values("index", "<file>…", |cx, files, names| {
            index_files(cx, names).map(|names| files.index = names)
        }),
        line("browse", "", browse),
        line("precompressed", "[gzip|br|zstd]…", |_, files, option| {
            precompressed(option).map(|encodings| files.precompressed = encodings)
        }),
        value("status", "404", |_, files, value| {
            status(value.token).map(|status| files.status = Some(status))
        }),
        flag("disable_canonical_uris", |files| files.canonical_uris = false),
        flag("pass_thru", |files| files.pass_through = true),
        flag("dotfiles", |files| files.dotfiles = true),
        value("symlinks", "follow", |_, files, mode| {
            symlinks_follow(mode).map(|()| files.follow_outside = true)
        }),
        value("keep_releases", "3", |_, files, count| {
            keep_releases(count).map(|count| files.keep_releases = count)
        }),
        not_yet("fs"),
        not_yet("etag_file_extensions"),
    ],
);
pub(super) const BROWSE: OptionTable<()> = OptionTable::new(
    "browse",
    &[not_yet("reveal_symlinks"), not_yet("sort"), not_yet("file_limit"), not_yet("plain_time_format")],
);

pub(super) fn file_server(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Directive,
) -> Result<Vec<Placed>, Box<Problem>> {
    let (chosen, args) = split(cx, scope, &line.args)?;
    let mut settings = FileServer {
        root: None,
        hide: cx.hidden.clone(),
        index: vec!["index.html".into(), "index.txt".into()],
        precompressed: Vec::new(),
        browse: false,
        status: None,
        pass_through: false,
        canonical_uris: true,
        dotfiles: false,
        follow_outside: false,
        keep_releases: KEEP_RELEASES,
    };
    match args {
        [] => {}
        [word] if word.text == "browse" => settings.browse = true,
        [word] => {
            let message = format!("`file_server` has no mode `{}`", word.text);
            return Err(Problem::error("arguments", &word.place, message).help(
                "a folder stands in `root`: it is written `root <folder>` and `file_server [browse]`",
            ));
        }
        _ => return Err(wrong_arguments(line, USAGE)),
    }
    OPTIONS.read(cx, &mut settings, line.block.as_deref());
    if !(settings.dotfiles && settings.follow_outside) && cx.must_warn_of_caddy() {
        let message =
            "no `file_server` here serves files whose name begins with a dot, or links that leave the root";
        cx.problems.push(
            Problem::warning("differs-from-caddy", &line.name.place, message)
                .label("Caddy serves them")
                .help("where they are wanted, add `dotfiles` and `symlinks follow` to the block of each `file_server`"),
        );
    }
    Ok(vec![placed("file_server", chosen, line, Step::FileServer(settings))])
}

fn hide(cx: &mut Context<'_>, files: &mut FileServer, names: &[Token]) -> Result<(), Box<Problem>> {
    for token in names {
        let name = fixed(cx.source, token, "what is hidden")?;
        // A name alone is hidden everywhere, a path only where it is.
        let is_path = name.contains('/');
        files.hide.push(if is_path { cx.absolute(&name).to_string_lossy().into_owned() } else { name });
    }
    Ok(())
}

fn index_files(cx: &Context<'_>, tokens: &[Token]) -> Result<Vec<String>, Box<Problem>> {
    let mut names = Vec::new();
    for token in tokens {
        let name = fixed(cx.source, token, "an index file")?;
        if name.is_empty() || name.starts_with('/') || name.split('/').any(|part| part == "..") {
            let message = format!("`{name}` is no file within a folder");
            return Err(
                Problem::error("path", &token.place, message).help("write for example `index index.html`")
            );
        }
        names.push(name);
    }
    Ok(names)
}

fn browse(_: &mut Context<'_>, files: &mut FileServer, option: &Directive) -> Result<(), Box<Problem>> {
    if let Some(template) = option.args.first() {
        let message = "a template for directory pages is a feature of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &template.place, message));
    }
    if let Some(inner) = option.block.as_ref().and_then(|block| block.first()) {
        return Err(BROWSE.unknown(inner));
    }
    files.browse = true;
    Ok(())
}

fn precompressed(option: &Directive) -> Result<Vec<Encoding>, Box<Problem>> {
    no_block(option)?;
    if option.args.is_empty() {
        return Ok(vec![Encoding::Brotli, Encoding::Zstd, Encoding::Gzip]);
    }
    option.args.iter().map(encoding).collect()
}

/// Builds whose hashed assets are kept where the file does not say: as many deployments as a page that is open sees.
pub(super) const KEEP_RELEASES: usize = 3;

/// `keep_releases 3`: an option that `spa` has, too.
pub(super) fn keep_releases(count: Value<'_>) -> Result<usize, Box<Problem>> {
    let count = count.number(0, KEEP_RELEASES_MAX)?;
    Ok(usize::try_from(count).unwrap_or(KEEP_RELEASES))
}

/// `symlinks follow`: the switch that `spa` has, too.
pub(super) fn symlinks_follow(Value { token: mode, .. }: Value<'_>) -> Result<(), Box<Problem>> {
    if mode.text == "follow" {
        return Ok(());
    }
    Err(Problem::error("unknown-option", &mode.place, format!("`symlinks` cannot be `{}`", mode.text))
        .help("links within the root are always followed; `symlinks follow` follows those that leave it"))
}
