//! `try_files`: which of some files exists below the root.

use std::path::Path;

use onehop_config::checked::{FileMatch, Part, Template};
use onehop_files::{find_candidate, find_candidate_on_disk};

use crate::request::context::{Halt, RequestContext};
use crate::request::route::{self, Into, Root};

/// The candidate that is taken, relative to the root and decoded; `None` where none exists.
pub(crate) fn find(wanted: &FileMatch, context: &RequestContext<'_>) -> Result<Option<Vec<u8>>, Halt> {
    let candidates: Vec<Vec<u8>> =
        wanted.candidates.iter().filter_map(|candidate| candidate_of(candidate, context)).collect();
    let own = wanted.root.as_ref().map(|template| root_of(template, context));
    let found = match own.as_ref().or(context.root) {
        None => None,
        Some(root @ Root::Stores { .. }) => {
            let number = root.store(false).or_else(|| root.store(true));
            let store = number.and_then(|number| context.snapshot.stores.get(number as usize));
            store.and_then(|store| find_candidate(store, &candidates, wanted.policy))
        }
        Some(Root::Disk(_)) if !context.may_block => return Err(Halt::NeedsDisk),
        Some(Root::Disk(template)) => route::expand_root(template, context)
            .and_then(|root| find_candidate_on_disk(&root, &candidates, wanted.policy, false)),
    };
    Ok(found.map(|candidate| candidate.relative))
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
    let number = context.snapshot.stores.iter().position(|store| Some(store.root.as_path()) == path);
    match number.and_then(|number| u32::try_from(number).ok()) {
        Some(number) => Root::Stores { inside: Some(number), following: None },
        None => Root::Disk(template.clone()),
    }
}
