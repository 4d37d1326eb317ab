//! `onehop pack`: one executable of onehop, a configuration and all that it serves.
//!
//! The steps stand on this page in their order: everything that can be refused is refused before the first byte is
//! written. What goes in and how it is written is the archive crate's, what is served of a tree the server's.

mod certificates;
mod failures;
mod notes;
mod oci;
mod output;
mod progress;
mod runtime;
mod secrets;
mod shown;
mod trees;

use onehop_archive::Index;
use onehop_archive::contents::{
    Base, Choice, ContentsError, DataRules, Entries, Gathering, Notes, Patterns, Subject, Writing, asked_for,
    load_for_packing, needed,
};

use self::output::{Output, Program};
use self::progress::Progress;
use crate::arguments::Pack;
use crate::configuration;
use crate::failure::Failure;
use crate::problems::{self, Look};
use crate::report::write_line;

pub(crate) fn pack(arguments: &Pack) -> Result<(), Failure> {
    let plan = plan(arguments)?;
    plan.carry_out(arguments)
}

/// What is to be packed, with nothing left to refuse.
struct Plan {
    program: Program,
    output: Output,
    base: Base,
    /// Of what is known before anything is written.
    index: Index,
    excluded: Patterns,
    rules: DataRules,
    trees: Vec<trees::Wanted>,
    sources: Entries,
    /// Names of applications.
    apps: Vec<String>,
    runtime: Option<runtime::Found>,
    notes: Notes,
}

fn plan(arguments: &Pack) -> Result<Plan, Failure> {
    // What cannot be run is not packed, and its errors are those of `onehop run`.
    let file = configuration::find(arguments.file.named(), "onehop pack FILE")?;
    let (loaded, stand_ins) = load_for_packing(&file.path, file.kind)?;
    let asks_for = asked_for(&loaded.files)?;
    if !loaded.warnings.is_empty() {
        write_line(problems::draw(&loaded.warnings, Look::of_standard_error()).trim_end());
    }
    onehop_server::control::check_memory(&loaded.checked).map_err(Failure::wrong)?;

    let excluded = patterns("--exclude", &arguments.exclude)?;
    let included = patterns("--include", &arguments.include)?;
    let program = Program::open(arguments.target.as_ref())?;
    let Subject { base, configuration, checked, files } = Subject::read(&file.path, file.kind, stand_ins)?;
    certificates::refuse_own_keys(&[base.folder(), base.resolved()], &loaded.checked)?;
    certificates::refuse_relative(&loaded.checked, &checked)?;
    let rules = DataRules::new(&base, included);
    let output = Output::choose(arguments.output.as_ref(), arguments.oci.image.as_ref(), &base)?;
    if arguments.oci.image.is_some() {
        oci::may_hold(&program)?;
    }

    let mut notes = Notes::default();
    let trees = trees::wanted(&base, &checked, &mut notes)?;
    let roots: Vec<String> = trees.iter().map(|tree| tree.root.clone()).collect();
    output.is_not_served(&base, &roots)?;
    let apps = needed(&base, &checked, &mut notes)?;
    for path in apps.needed.iter().chain(&apps.files).chain(&apps.folders).chain(&roots) {
        rules.is_needed(path);
    }
    let sources =
        Gathering::new(&base, &excluded, &rules, &mut notes, &output.files()).run(&files, &apps, &roots)?;
    for tree in &trees {
        trees::look_through(tree, &base, Choice { excluded: &excluded, rules: &rules }, &mut notes)?;
    }
    secrets::refuse(&mut notes.secrets)?;
    let runtime = arguments.runtime.as_ref();
    let runtime = runtime.map(|choice| runtime::find(choice, &program.target)).transpose()?;

    let listens = checked.listeners.iter().map(|listener| &listener.address);
    let listens = listens.filter(|address| !base.stand_ins().make(address)).map(configuration::show_address);
    let index = Index {
        made_by: concat!("onehop ", env!("CARGO_PKG_VERSION")).to_owned(),
        name: output.name.clone(),
        target: program.target.clone(),
        configuration,
        variables: notes.variables.iter().cloned().collect(),
        outside: notes.outside.iter().cloned().collect(),
        listens: listens.collect(),
        asks_for,
        folder: base.name_of_applications(),
        ..Index::default()
    };
    Ok(Plan {
        program,
        output,
        base,
        index,
        excluded,
        rules,
        trees,
        sources,
        apps: apps.apps,
        runtime,
        notes,
    })
}

fn patterns(option: &str, written: &[String]) -> Result<Patterns, Failure> {
    Patterns::new(written).map_err(|error: ContentsError| failures::of_option(option, error))
}

impl Plan {
    fn carry_out(mut self, arguments: &Pack) -> Result<(), Failure> {
        let (unfinished, out) = self.output.begin()?;
        let shown = self.output.path.display().to_string();
        let mut writing = Writing::new(self.program.write(out, &shown)?, self.index);
        let failed = |error| failures::while_writing(&shown, error);
        let progress = Progress::new();
        // Trees first: what is served is stored as it is, and what runs can share it.
        for tree in &self.trees {
            let prepared = trees::ready(tree, &self.base, &progress)?;
            let choice = Choice { excluded: &self.excluded, rules: &self.rules };
            writing.tree(trees::served(tree, &prepared), choice).map_err(failed)?;
        }
        let of_sources = |done, of| progress.show(done, of, || "sources packed".to_owned());
        writing.sources(&self.base, self.sources, &of_sources).map_err(failed)?;
        drop(progress);
        if let Some(found) = self.runtime {
            write_line(&format!("compressing {}, with its libraries", found.title()));
            writing.runtime(found.portable, found.name, found.version).map_err(failed)?;
        }
        let bytes = writing.bytes;
        let index = writing.finish().map_err(failed)?;
        let (digest, length) = output::digest_of(unfinished.path())
            .map_err(|error| Failure::failed(format!("cannot read what was written: {error}")))?;
        let image = oci::write(unfinished.path(), &self.output.name, &arguments.oci)?;
        self.notes.warnings.extend(image.iter().flat_map(|image| image.warnings.iter().cloned()));
        self.output.publish(unfinished)?;

        let unmet = self.excluded.unmet().map(|pattern| format!("--exclude {pattern}"));
        let unmet = unmet.chain(self.rules.unmet().map(|pattern| format!("--include {pattern}")));
        self.notes.warnings.extend(unmet.map(|option| format!("{option}: nothing of what is packed fits")));
        for sentence in notes::sentences(&self.notes) {
            write_line(&format!("warning: {sentence}"));
        }
        let made = shown::Made {
            output: &self.output,
            index: &index,
            bytes,
            digest,
            length,
            notes: &self.notes,
            apps: &self.apps,
            image: image.as_ref(),
        };
        super::standard_output::print(&made.text(self.base.folder()));
        Ok(())
    }
}
