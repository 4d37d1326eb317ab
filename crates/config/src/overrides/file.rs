//! An override file to a layer: `{ options }`, `listen`, `site KEY { … }`, `app NAME { … }`, and variables.
//!
//! Knows which words may stand where. What they say is checked where they are put.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::apps::{AppChange, Which};
use super::listen::Listen;
use super::{Layer, SiteChange};
use crate::arguments::{listed, unknown_option};
use crate::check::absolute;
use crate::nearest::nearest;
use crate::problem::{Problem, Problems};
use crate::source::{Source, SourceText};
use crate::syntax::{Directive, Token, parse_fragment};

/// What an override file can begin a line with.
const WORDS: [&str; 6] = ["app", "env", "env_file", "env_pass", "listen", "site"];
/// What can be changed of a site.
const OF_SITE: [&str; 3] = ["limit", "listen", "log"];

/// The layer of a file, and every file that was read for it.
pub(super) fn layer(
    text: &Arc<SourceText>,
    source: &dyn Source,
    problems: &mut Problems,
) -> (Layer, Vec<PathBuf>) {
    let fragment = parse_fragment(text, source, problems);
    let mut layer = Layer { options: fragment.options, ..Layer::default() };
    for line in fragment.lines {
        if let Err(problem) = read(&mut layer, line, problems) {
            problems.push(problem);
        }
    }
    (layer, fragment.files)
}

fn read(layer: &mut Layer, mut line: Directive, problems: &mut Problems) -> Result<(), Box<Problem>> {
    match line.name.text.as_str() {
        "listen" => listen(layer, None, &line),
        "env" | "env_pass" => {
            layer.apps.push(AppChange { which: Which::Every, lines: vec![line] });
            Ok(())
        }
        "env_file" => {
            from_own_folder(&mut line);
            layer.apps.push(AppChange { which: Which::Every, lines: vec![line] });
            Ok(())
        }
        "app" => {
            let (name, mut lines) = named_block(line, "app NAME { … }")?;
            if let Some(renamed) = lines.iter().find(|line| line.name.text == "name") {
                let message = "an override cannot give an application another name";
                return Err(Problem::error("name", &renamed.name.place, message).help("take it away"));
            }
            lines.iter_mut().filter(|line| line.name.text == "env_file").for_each(from_own_folder);
            layer.apps.push(AppChange { which: Which::Named(name), lines });
            Ok(())
        }
        "site" => {
            let (key, lines) = named_block(line, "site ADDRESS { … }")?;
            let (listens, lines): (Vec<Directive>, Vec<Directive>) =
                lines.into_iter().partition(|line| line.name.text == "listen");
            for line in listens {
                listen(layer, Some(&key), &line)?;
            }
            for line in lines.iter().filter(|line| !OF_SITE.contains(&line.name.text.as_str())) {
                problems.push(unknown_option("site", line, &OF_SITE, &[]));
            }
            let lines: Vec<Directive> =
                lines.into_iter().filter(|line| OF_SITE.contains(&line.name.text.as_str())).collect();
            layer.sites.push(SiteChange { key, lines });
            Ok(())
        }
        _ => Err(unknown(&line)),
    }
}

fn listen(layer: &mut Layer, site: Option<&Token>, line: &Directive) -> Result<(), Box<Problem>> {
    if line.args.is_empty() || line.block.is_some() {
        let message = "`listen` takes addresses and nothing else";
        return Err(Problem::error("arguments", &line.name.place, message).help(
            "it is written `listen :8080`, `listen 127.0.0.1:8080` or `listen http://app.example.com`",
        ));
    }
    let at = line.args.iter().cloned();
    layer.listens.extend(at.map(|at| Listen { site: site.cloned(), at }));
    Ok(())
}

/// What a block is for, and its lines.
fn named_block(line: Directive, usage: &str) -> Result<(Token, Vec<Directive>), Box<Problem>> {
    let Directive { name, args, block, .. } = line;
    match (<[Token; 1]>::try_from(args), block) {
        (Ok([only]), Some(lines)) => Ok((only, lines)),
        _ => {
            let message = format!("the arguments of `{}` do not fit", name.text);
            Err(Problem::error("arguments", &name.place, message)
                .help(format!("in an override file it is written `{usage}`")))
        }
    }
}

/// Files that an override names lie where the override does, not in the pack.
fn from_own_folder(line: &mut Directive) {
    for token in &mut line.args {
        if !token.text.starts_with(['/', '{']) {
            let own = Path::new(&token.place.file.name).parent().unwrap_or(Path::new("/"));
            token.text = absolute(own, Path::new(&token.text)).to_string_lossy().into_owned();
        }
    }
}

fn unknown(line: &Directive) -> Box<Problem> {
    let word = line.name.text.as_str();
    let problem =
        Problem::error("unknown-option", &line.name.place, format!("an override file has no `{word}`"));
    match nearest(word, WORDS) {
        Some(near) => problem.help(format!("did you mean `{near}`?")),
        None => problem.help(format!(
            "there are {}; options of the process stand in a block `{{ … }}` at the beginning",
            listed(&WORDS)
        )),
    }
}
