//! `file_server`: files below the root.

use super::{
    no_arguments, no_block, one_argument, options, placed, some_arguments, unknown_option, wrong_arguments,
};
use crate::check::Context;
use crate::check::matcher::{Scope, split};
use crate::check::order::Placed;
use crate::check::template::{fixed, template};
use crate::check::value::{encoding, number, status};
use crate::checked::{Encoding, FileServer, Step};
use crate::limits::KEEP_RELEASES_MAX;
use crate::problem::Problem;
use crate::syntax::Line;

const USAGE: &str = "file_server [<matcher>] [browse]";
const OPTIONS: [&str; 11] = [
    "root",
    "hide",
    "index",
    "browse",
    "precompressed",
    "status",
    "disable_canonical_uris",
    "pass_thru",
    "dotfiles",
    "symlinks",
    "keep_releases",
];

pub(super) fn file_server(
    cx: &mut Context<'_>,
    scope: &Scope<'_>,
    line: &Line,
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
    options(cx, line, |cx, option| read_option(cx, &mut settings, option));
    if !(settings.dotfiles && settings.follow_outside) && cx.must_warn_of_caddy() {
        let message = "files whose name begins with a dot, and links that leave the root, are not served";
        cx.problems.push(
            Problem::warning("differs-from-caddy", &line.name.place, message)
                .label("Caddy serves them")
                .help("where they are wanted, add `dotfiles` and `symlinks follow` to the block of `file_server`"),
        );
    }
    Ok(vec![placed("file_server", chosen, line, Step::FileServer(settings))])
}

fn read_option(cx: &mut Context<'_>, settings: &mut FileServer, option: &Line) -> Result<(), Box<Problem>> {
    match option.name.text.as_str() {
        "root" => {
            let root = template(cx.source, one_argument(option, "root <folder>")?)?;
            settings.root = Some(cx.absolute_template(root));
        }
        "hide" => {
            for token in some_arguments(option, "hide <name or path>…")? {
                let name = fixed(cx.source, token, "what is hidden")?;
                // A name alone is hidden everywhere, a path only where it is.
                let name =
                    if name.contains('/') { cx.absolute(&name).to_string_lossy().into_owned() } else { name };
                settings.hide.push(name);
            }
        }
        "index" => settings.index = index_files(cx, option)?,
        "browse" => browse(settings, option)?,
        "precompressed" => settings.precompressed = precompressed(option)?,
        "status" => settings.status = Some(status(one_argument(option, "status 404")?)?),
        "disable_canonical_uris" => no_arguments(option).map(|()| settings.canonical_uris = false)?,
        "pass_thru" => no_arguments(option).map(|()| settings.pass_through = true)?,
        "dotfiles" => no_arguments(option).map(|()| settings.dotfiles = true)?,
        "symlinks" => symlinks_follow(option).map(|()| settings.follow_outside = true)?,
        "keep_releases" => settings.keep_releases = keep_releases(option)?,
        _ => return Err(unknown_option("file_server", option, &OPTIONS, &["fs", "etag_file_extensions"])),
    }
    Ok(())
}

fn index_files(cx: &Context<'_>, option: &Line) -> Result<Vec<String>, Box<Problem>> {
    let mut names = Vec::new();
    for token in some_arguments(option, "index <file>…")? {
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

fn browse(settings: &mut FileServer, option: &Line) -> Result<(), Box<Problem>> {
    if let Some(template) = option.args.first() {
        let message = "a template for directory pages is a feature of Caddy that onehop does not have yet";
        return Err(Problem::error("not-yet", &template.place, message));
    }
    if let Some(inner) = option.block.as_ref().and_then(|block| block.first()) {
        let caddys = ["reveal_symlinks", "sort", "file_limit", "plain_time_format"];
        return Err(unknown_option("browse", inner, &[], &caddys));
    }
    settings.browse = true;
    Ok(())
}

fn precompressed(option: &Line) -> Result<Vec<Encoding>, Box<Problem>> {
    no_block(option)?;
    if option.args.is_empty() {
        return Ok(vec![Encoding::Brotli, Encoding::Zstd, Encoding::Gzip]);
    }
    option.args.iter().map(encoding).collect()
}

/// Builds whose hashed assets are kept where the file does not say: as many deployments as a page that is open sees.
pub(super) const KEEP_RELEASES: usize = 3;

/// `keep_releases 3`: an option that `spa` has, too.
pub(super) fn keep_releases(option: &Line) -> Result<usize, Box<Problem>> {
    let count = number(one_argument(option, "keep_releases 3")?, "`keep_releases`", 0, KEEP_RELEASES_MAX)?;
    Ok(usize::try_from(count).unwrap_or(KEEP_RELEASES))
}

/// `symlinks follow`: the switch that `spa` has, too.
pub(super) fn symlinks_follow(option: &Line) -> Result<(), Box<Problem>> {
    let mode = one_argument(option, "symlinks follow")?;
    if mode.text == "follow" {
        return Ok(());
    }
    Err(Problem::error("unknown-option", &mode.place, format!("`symlinks` cannot be `{}`", mode.text))
        .help("links within the root are always followed; `symlinks follow` follows those that leave it"))
}
