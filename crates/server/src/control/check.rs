//! Finds what a start would refuse although the configuration's text is correct, for `onehop validate`.
//!
//! Uses the code of the start itself. Opens no port, starts no process, reads no file's content but certificates, and
//! writes nothing.

use std::path::Path;
use std::sync::Arc;

use onehop_config::checked::{self, Checked, Condition, LogOutput, Matcher, Step};
use onehop_files::tree;
use rustix::fs::Access;

use super::upstreams::Upstreams;
use super::{certificates, logs, memory, trees};
use crate::request::route::store_specs;

/// A reason for which a start would be refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The configuration's line, from 1, where one line is the cause.
    pub line: Option<u32>,
    /// The cause and the next step.
    pub reason: String,
}

/// Every reason for which a start with these settings would be refused, apart from addresses that are in use. For a
/// pack, `packed_below` is its base: what lies below it is in the pack and is not looked for on disk.
#[must_use]
pub fn check(settings: &Checked, packed_below: Option<&Path>) -> Vec<Refusal> {
    let mut refusals = Vec::new();
    let mut refuse = |line, reason| refusals.push(Refusal { line, reason });
    if let Err(reason) = memory::check_memory(settings) {
        refuse(None, reason);
    }
    let is_packed = |path: &Path| packed_below.is_some_and(|base| path.starts_with(base));
    for spec in store_specs(settings).iter().filter(|spec| !is_packed(&spec.root)) {
        if let Err(error) = tree::check(spec) {
            refuse(line_of_root(settings, &spec.root), trees::explain(&error));
        }
    }
    let logs = settings.sites.iter().flat_map(|site| &site.logs);
    for path in logs.filter_map(|log| if let LogOutput::File(path) = &log.output { Some(path) } else { None })
    {
        if let Err(reason) = check_log(path) {
            refuse(None, reason);
        }
    }
    if let Err(reason) = certificates::check(settings) {
        refuse(None, reason);
    }
    // Certificates of upstreams are in the pack.
    if packed_below.is_none()
        && let Err(reason) = Upstreams::new(None, Arc::new(|_| {})).prepare(settings)
    {
        refuse(None, reason);
    }
    refusals
}

/// A log's folder is made at the start; something else must not be in its place.
fn check_log(path: &Path) -> Result<(), String> {
    let cannot = |why: String| Err(format!("cannot write the log {}: {why}", path.display()));
    if path.is_dir() {
        return cannot("it is a folder".to_owned());
    }
    match path.ancestors().find(|place| place.exists()) {
        Some(folder) if folder != path && !folder.is_dir() => {
            cannot(format!("{} is not a folder", folder.display()))
        }
        Some(place) => match rustix::fs::access(place, Access::WRITE_OK) {
            Err(error) => cannot(logs::reason(place, &std::io::Error::from(error))),
            Ok(()) => Ok(()),
        },
        None => Ok(()),
    }
}

/// The line that names a root.
fn line_of_root(settings: &Checked, root: &Path) -> Option<u32> {
    let mut lists = Vec::new();
    for site in &settings.sites {
        lists.push(&site.routes);
        lists.extend(site.errors.iter().map(|errors| &errors.routes));
    }
    lists.into_iter().find_map(|routes| line_in(routes, root))
}

fn line_in(routes: &[checked::Route], root: &Path) -> Option<u32> {
    let is_root = |text: Option<&str>| text.is_some_and(|text| Path::new(text) == root);
    routes.iter().find_map(|route| {
        let names_it = match &route.step {
            Step::Root(template) => is_root(template.as_text()),
            Step::FileServer(settings) => is_root(settings.root.as_ref().and_then(|root| root.as_text())),
            Step::Spa(spa) => spa.root == root,
            Step::Handle(routes) | Step::HandlePath { routes, .. } => return line_in(routes, root),
            _ => false,
        };
        let is_matched = route.matcher.as_ref().is_some_and(|matcher| matches_files_of(matcher, root));
        (names_it || is_matched).then_some(route.line)
    })
}

fn matches_files_of(matcher: &Matcher, root: &Path) -> bool {
    matcher.all.iter().any(|condition| match condition {
        Condition::File(wanted) => {
            wanted.root.as_ref().and_then(|root| root.as_text()).is_some_and(|text| Path::new(text) == root)
        }
        Condition::Not(matchers) => matchers.iter().any(|matcher| matches_files_of(matcher, root)),
        _ => false,
    })
}
