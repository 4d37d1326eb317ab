//! `try_files`: which of some files exists below the root.

use std::path::Path;

use onehop_config::checked::{FileMatch, Part, Template};
use onehop_files::find_candidate;
use onehop_message::error::HttpError;

use crate::request::blocking::Lookup;
use crate::request::context::RequestContext;
use crate::request::route::{self, Into, Root};

/// Why a matcher has no result.
pub(crate) enum Undecided {
    /// This has to be looked up first.
    NeedsDisk(Lookup),
    /// The request ends with this error.
    Error(HttpError),
}

/// What one matcher has found on disk, in the order in which it asks.
#[derive(Default)]
pub(crate) struct Lookups {
    found: Vec<Option<Vec<u8>>>,
    next: usize,
}

impl Lookups {
    /// Adds what the lookup found at which the matcher stopped.
    pub(crate) fn add(&mut self, found: Option<Vec<u8>>) {
        self.found.push(found);
    }

    /// The same for a matcher that is asked from its first condition on.
    pub(crate) fn again(&mut self) -> &mut Self {
        self.next = 0;
        self
    }

    /// Forgets everything: the next matcher has found nothing yet.
    pub(crate) fn clear(&mut self) {
        self.found.clear();
    }

    fn next(&mut self) -> Option<Option<Vec<u8>>> {
        let found = self.found.get(self.next).cloned();
        self.next += 1;
        found
    }
}

/// The candidate that is taken, relative to the root and decoded; `None` where none exists.
pub(crate) fn find(
    wanted: &FileMatch,
    context: &RequestContext<'_>,
    lookups: &mut Lookups,
) -> Result<Option<Vec<u8>>, Lookup> {
    let candidates = || -> Vec<Vec<u8>> {
        wanted.candidates.iter().filter_map(|candidate| candidate_of(candidate, context)).collect()
    };
    let own = wanted.root.as_ref().map(|template| root_of(template, context));
    match own.as_ref().or(context.root) {
        None => Ok(None),
        Some(root @ Root::Stores { .. }) => {
            let number = root.store(false).or_else(|| root.store(true));
            let store = number.and_then(|number| context.stores.get(number as usize));
            let found = store.and_then(|store| find_candidate(store, &candidates(), wanted.policy));
            Ok(found.map(|candidate| candidate.relative))
        }
        Some(Root::Disk(template)) => {
            if let Some(found) = lookups.next() {
                return Ok(found);
            }
            match route::expand_root(template, context) {
                Some(root) => Err(Lookup { root, candidates: candidates(), policy: wanted.policy }),
                None => {
                    lookups.add(None);
                    Ok(None)
                }
            }
        }
    }
}

/// A candidate for this request. The file says with a slash at its end that it means a folder; where
/// only the request's path ends in one, `{path}` is nothing that can exist, as in Caddy.
fn candidate_of(candidate: &Template, context: &RequestContext<'_>) -> Option<Vec<u8>> {
    let path = route::expand(candidate, context, Into::FileName);
    let means_folder = matches!(candidate.parts.last(), Some(Part::Text(text)) if text.ends_with('/'));
    (means_folder || path.last() != Some(&b'/')).then_some(path)
}

/// A `try_files` root of its own: the store of that path, or the disk.
fn root_of(template: &Template, context: &RequestContext<'_>) -> Root {
    let path = template.as_text().map(Path::new);
    let number = context.stores.iter().position(|store| Some(store.root.as_path()) == path);
    match number.and_then(|number| u32::try_from(number).ok()) {
        Some(number) => Root::Stores { inside: Some(number), following: None },
        None => Root::Disk(template.clone()),
    }
}
