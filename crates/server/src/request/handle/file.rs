//! `file_server` and `spa`: which store, which codings, memory or disk.

use std::sync::Arc;

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_files::{self as files, FileRequest, OwnedFileRequest, Served};
use onehop_http1::RequestHead;
use onehop_message::error::HttpError;
use onehop_message::response::Response;
use onehop_metrics::Handler;

use super::Handled;
use crate::request::blocking::BlockingWork;
use crate::request::context::RequestContext;
use crate::request::route::{self, Root};

/// An `spa` offers every coding that its store may hold, in this order.
const SPA_ENCODINGS: [Encoding; 3] = [Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

/// `file_server`
pub(crate) fn file_server(
    context: &mut RequestContext<'_>,
    (settings, on_disk): (&FileServer, &Arc<FileServer>),
    own_root: Option<&Root>,
    response: &mut Response,
) -> Result<Handled, HttpError> {
    // One that passes on what is not there may leave the method to the next handler.
    if !settings.pass_through {
        context.know_method()?;
    }
    context.at.handler = Handler::FileServer;
    match own_root.or(context.root).ok_or(HttpError::NotFound)? {
        root @ Root::Stores { .. } => {
            let number = root.store(settings.follow_outside).ok_or(HttpError::NotFound)?;
            let (encodings, minimum, types) = match context.encode {
                Some(encode) => (&*encode.encodings, encode.minimum_length, &*encode.types),
                None => (&[][..], 0, &[][..]),
            };
            let request = FileRequest {
                encodings,
                encode_minimum: minimum,
                encode_types: types,
                ..request(context, number)?
            };
            let served = files::file_server(settings, &request, response)?;
            Ok(handled(context, served))
        }
        Root::Disk(template) => Ok(Handled::NeedsBlocking(Box::new(BlockingWork::Tree {
            settings: Arc::clone(on_disk),
            root: route::expand_root(template, context).ok_or(HttpError::NotFound)?,
            request: OwnedFileRequest {
                head: RequestHead::clone(&context.request.head),
                path: context.request.path.sent().to_vec(),
                query: context.request.query.as_deref().map(<[u8]>::to_vec),
                original_path: context.request.head.path().to_vec(),
                error_status: context.error_status(),
            },
        }))),
    }
}

/// `spa`
pub(crate) fn spa(
    context: &mut RequestContext<'_>,
    settings: &Spa,
    store_number: u32,
    response: &mut Response,
) -> Result<Handled, HttpError> {
    context.know_method()?;
    context.at.handler = Handler::Spa;
    let request = FileRequest { encodings: &SPA_ENCODINGS, ..request(context, store_number)? };
    let served = files::spa(settings, &request, response)?;
    Ok(handled(context, served))
}

/// The request for a file of a store, without codings.
fn request<'r>(context: &'r RequestContext<'_>, store_number: u32) -> Result<FileRequest<'r>, HttpError> {
    Ok(FileRequest {
        head: &context.request.head,
        path: context.request.path.sent(),
        query: context.request.query.as_deref(),
        original_path: context.request.head.path(),
        store: context.stores.get(store_number as usize).ok_or(HttpError::NotFound)?,
        store_number,
        encodings: &[],
        encode_minimum: 0,
        encode_types: &[],
        error_status: context.error_status(),
    })
}

fn handled(context: &RequestContext<'_>, served: Served) -> Handled {
    let head = || RequestHead::clone(&context.request.head);
    match served {
        Served::Answered => Handled::Responded,
        Served::PassedOn => Handled::PassedOn,
        Served::InPack(in_pack) => {
            Handled::NeedsBlocking(Box::new(BlockingWork::Packed { in_pack, head: head() }))
        }
        Served::OnDisk(on_disk) => {
            let is_named = context.failure.is_some();
            Handled::NeedsBlocking(Box::new(BlockingWork::File { on_disk, head: head(), is_named }))
        }
    }
}
