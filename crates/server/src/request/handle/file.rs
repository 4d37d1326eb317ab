//! From a trip to the file handlers: which store, which codings, memory or disk.

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_files::{self as files, FileRequest, OwnedFileRequest, Served};
use onehop_message::error::HttpError;
use onehop_message::response::Response;
use onehop_metrics::Handler;

use crate::request::context::{Flow, Halt, RequestContext};
use crate::request::route::{self, Root};

/// An `spa` offers every coding that its store may hold, in this order.
const SPA_ENCODINGS: [Encoding; 3] = [Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

/// `file_server`
pub(crate) fn file_server(
    context: &mut RequestContext<'_>,
    settings: &FileServer,
    own_root: Option<&Root>,
    answer: &mut Response,
) -> Result<Flow, Halt> {
    let before = std::mem::replace(&mut context.handler, Handler::FileServer);
    let served = match own_root.or(context.root) {
        None => return Err(Halt::HttpError(HttpError::NotFound)),
        Some(root @ Root::Stores { .. }) => {
            let number = root.store(settings.follow_outside).ok_or(HttpError::NotFound)?;
            let store = context.snapshot.stores.get(number as usize).ok_or(HttpError::NotFound)?;
            let (encodings, minimum, types) = match context.encode {
                Some(encode) => (&*encode.encodings, encode.minimum_length, &*encode.types),
                None => (&[][..], 0, &[][..]),
            };
            let request = FileRequest {
                head: context.request.head,
                path: context.request.path.sent(),
                query: context.request.query.as_deref(),
                original_path: context.request.head.path(),
                store,
                store_number: number,
                encodings,
                encode_minimum: minimum,
                encode_types: types,
                error_status: error_status(context),
            };
            files::file_server(settings, &request, answer)?
        }
        Some(Root::Disk(template)) => {
            if !context.may_block {
                return Err(Halt::NeedsDisk);
            }
            let root = route::expand_root(template, context).ok_or(HttpError::NotFound)?;
            let request = OwnedFileRequest {
                head: context.request.head.clone(),
                path: context.request.path.sent().to_vec(),
                query: context.request.query.as_deref().map(<[u8]>::to_vec),
                original_path: context.request.head.path().to_vec(),
                error_status: error_status(context),
            };
            files::from_disk(settings, &root, request, answer)?
        }
    };
    if matches!(served, Served::PassedOn) {
        context.handler = before;
    }
    finish(context, served, answer)
}

/// `spa`
pub(crate) fn spa(
    context: &mut RequestContext<'_>,
    settings: &Spa,
    store_number: u32,
    answer: &mut Response,
) -> Result<Flow, Halt> {
    context.handler = Handler::Spa;
    let stores = &context.snapshot.stores;
    let store = stores.get(store_number as usize).ok_or(Halt::HttpError(HttpError::NotFound))?;
    let request = FileRequest {
        head: context.request.head,
        path: context.request.path.sent(),
        query: context.request.query.as_deref(),
        original_path: context.request.head.path(),
        store,
        store_number,
        encodings: &SPA_ENCODINGS,
        encode_minimum: 0,
        encode_types: &[],
        error_status: error_status(context),
    };
    let served = files::spa(settings, &request, answer)?;
    finish(context, served, answer)
}

fn finish(context: &RequestContext<'_>, served: Served, answer: &mut Response) -> Result<Flow, Halt> {
    match served {
        Served::Answered => Ok(Flow::Answered),
        Served::PassedOn => Ok(Flow::On),
        Served::InPack(_) | Served::OnDisk(_) if !context.may_block => Err(Halt::NeedsDisk),
        Served::InPack(in_pack) => {
            files::finish_in_pack(&in_pack, context.request.head, answer)?;
            Ok(Flow::Answered)
        }
        Served::OnDisk(on_disk) => {
            let finish = match error_status(context) {
                None => files::finish_on_disk,
                Some(_) => files::finish_named_file,
            };
            finish(on_disk, context.request.head, answer)?;
            Ok(Flow::Answered)
        }
    }
}

/// The status that a page of an error has.
fn error_status(context: &RequestContext<'_>) -> Option<u16> {
    context.failure.as_ref().map(|failure| failure.fault.status())
}
