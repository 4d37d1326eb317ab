//! `onehop pack`: one executable of onehop, a configuration and all that it serves.
//!
//! The steps stand on this page in their order: everything that can be refused is refused before the first byte is
//! written. What the file looks like is the archive crate's; what is served of a tree is the server's.

mod apps;
mod base;
mod glob;
mod notes;
mod oci;
mod output;
mod prune;
mod runtime;
mod secrets;
mod shown;
mod sources;
mod trees;
mod writing;

use onehop_archive::Index;

use self::base::Subject;
use self::glob::Excluded;
use self::notes::Notes;
use self::output::{Output, Program};
use self::sources::Gathering;
use self::writing::Writing;
use crate::arguments::Pack;
use crate::configuration;
use crate::failure::Failure;
use crate::problems::{self, Look};
use crate::report::{Reporter, write_line};

pub(crate) fn pack(arguments: &Pack) -> Result<(), Failure> {
    // What cannot be run is not packed, and its errors are those of `onehop run`.
    let file = configuration::find(arguments.file.named())?;
    let loaded = configuration::load(&file)?;
    if !loaded.warnings.is_empty() {
        write_line(problems::draw(&loaded.warnings, Look::of_standard_error()).trim_end());
    }
    configuration::refuse_tls(&loaded.checked).map_err(Failure::wrong)?;
    onehop_server::control::check_memory(&loaded.checked).map_err(Failure::wrong)?;

    let excluded = Excluded::new(&arguments.exclude)?;
    let program = Program::open(arguments.target.as_ref())?;
    let Subject { base, configuration, checked, files } = Subject::read(&file)?;
    let output = Output::choose(arguments.output.as_ref(), arguments.oci.image.as_ref(), &base)?;
    if arguments.oci.image.is_some() {
        oci::may_hold(&program)?;
    }

    let mut notes = Notes::default();
    let trees = trees::wanted(&base, &checked, &mut notes)?;
    let roots: Vec<String> = trees.iter().map(|tree| tree.root.clone()).collect();
    output.is_not_served(&base, &roots)?;
    let apps = apps::wanted(&base, &checked, &mut notes)?;
    let sources = Gathering::new(&base, &excluded, &mut notes, &output.files()).run(&files, &apps)?;
    for tree in &trees {
        trees::look_through(tree, &base, &excluded, &mut notes)?;
    }
    secrets::refuse(&mut notes.secrets)?;
    let found =
        arguments.runtime.as_ref().map(|choice| runtime::find(choice, &program.target)).transpose()?;

    let reporter = Reporter::plain();
    let listens = checked.listeners.iter().map(|listener| configuration::show_address(&listener.address));
    let index = Index {
        made_by: concat!("onehop ", env!("CARGO_PKG_VERSION")).to_owned(),
        name: output.name.clone(),
        target: program.target.clone(),
        configuration,
        variables: notes.variables.iter().cloned().collect(),
        outside: notes.outside.iter().cloned().collect(),
        listens: listens.collect(),
        ..Index::default()
    };
    let (unfinished, out) = output.begin()?;
    let mut writing = Writing::new(program.write(out)?, index);
    // Trees first: what is served is stored as it is, and what runs can share it.
    for tree in &trees {
        let prepared = trees::ready(tree, &base, &reporter)?;
        writing.tree(tree, &prepared, &excluded)?;
    }
    writing.sources(&base, sources)?;
    if let Some(found) = found {
        write_line(&format!("compressing {}, with its libraries", found.title()));
        writing.runtime(found)?;
    }
    let bytes = writing.bytes;
    let index = writing.finish()?;

    notes.warnings.extend(excluded.unmet().map(|pattern| format!("--exclude {pattern}: nothing fits")));
    let (digest, length) = output::digest_of(unfinished.path())
        .map_err(|error| Failure::failed(format!("cannot read what was written: {error}")))?;
    let image = oci::write(unfinished.path(), &output.name, &arguments.oci)?;
    output.publish(unfinished)?;
    notes.warnings.extend(image.iter().flat_map(|image| image.warnings.iter().cloned()));
    for sentence in notes.sentences() {
        reporter.warn(sentence);
    }
    let made = shown::Made {
        output: &output,
        index: &index,
        bytes,
        digest,
        length,
        notes: &notes,
        apps: &apps.apps,
        image: image.as_ref(),
    };
    super::pages::print(&made.text(base.folder()));
    Ok(())
}
