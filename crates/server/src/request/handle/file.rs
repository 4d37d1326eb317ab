//! From a trip to the file handlers: which store, which codings, memory or disk.

use onehop_config::checked::{Encoding, FileServer, Spa};
use onehop_files::{self as files, FileRequest, OwnedFileRequest, Served};
use onehop_message::error::HttpError;
use onehop_message::response::Response;

use crate::request::route::{self, Root};
use crate::request::trip::{Flow, Halt, Handler, Trip};

/// An `spa` offers every coding that its store may hold, in this order.
const SPA_ENCODINGS: [Encoding; 3] = [Encoding::Brotli, Encoding::Zstd, Encoding::Gzip];

/// `file_server`
pub(crate) fn file_server(
    trip: &mut Trip<'_>,
    settings: &FileServer,
    own_root: Option<&Root>,
    answer: &mut Response,
) -> Result<Flow, Halt> {
    let before = std::mem::replace(&mut trip.handler, Handler::FileServer);
    let served = match own_root.or(trip.root) {
        None => return Err(Halt::HttpError(HttpError::NotFound)),
        Some(root @ Root::Stores { .. }) => {
            let number = root.store(settings.follow_outside).ok_or(HttpError::NotFound)?;
            let store = trip.snapshot.stores.get(number as usize).ok_or(HttpError::NotFound)?;
            let (encodings, minimum, types) = match trip.encode {
                Some(encode) => (&*encode.encodings, encode.minimum_length, &*encode.types),
                None => (&[][..], 0, &[][..]),
            };
            let request = FileRequest {
                head: trip.head,
                path: trip.path.sent(),
                query: trip.query.as_deref(),
                original_path: trip.head.path(),
                store,
                store_number: number,
                encodings,
                encode_minimum: minimum,
                encode_types: types,
                error_status: error_status(trip),
                may_block: trip.may_block,
            };
            files::file_server(settings, &request, answer)?
        }
        Some(Root::Disk(template)) => {
            if !trip.may_block {
                return Err(Halt::NeedsDisk);
            }
            let root = route::expand_root(template, trip).ok_or(HttpError::NotFound)?;
            let request = OwnedFileRequest {
                head: trip.head.clone(),
                path: trip.path.sent().to_vec(),
                query: trip.query.as_deref().map(<[u8]>::to_vec),
                original_path: trip.head.path().to_vec(),
                error_status: error_status(trip),
            };
            files::from_disk(settings, &root, request, answer)?
        }
    };
    if matches!(served, Served::PassedOn) {
        trip.handler = before;
    }
    finish(trip, served, answer)
}

/// `spa`
pub(crate) fn spa(
    trip: &mut Trip<'_>,
    settings: &Spa,
    store_number: u32,
    answer: &mut Response,
) -> Result<Flow, Halt> {
    trip.handler = Handler::Spa;
    let stores = &trip.snapshot.stores;
    let store = stores.get(store_number as usize).ok_or(Halt::HttpError(HttpError::NotFound))?;
    let request = FileRequest {
        head: trip.head,
        path: trip.path.sent(),
        query: trip.query.as_deref(),
        original_path: trip.head.path(),
        store,
        store_number,
        encodings: &SPA_ENCODINGS,
        encode_minimum: 0,
        encode_types: &[],
        error_status: error_status(trip),
        may_block: trip.may_block,
    };
    let served = files::spa(settings, &request, answer)?;
    finish(trip, served, answer)
}

fn finish(trip: &Trip<'_>, served: Served, answer: &mut Response) -> Result<Flow, Halt> {
    match served {
        Served::Answered => Ok(Flow::Answered),
        Served::PassedOn => Ok(Flow::On),
        Served::InPack => Err(Halt::NeedsDisk),
        Served::OnDisk(_) if !trip.may_block => Err(Halt::NeedsDisk),
        Served::OnDisk(on_disk) => {
            let finish = match error_status(trip) {
                None => files::finish_on_disk,
                Some(_) => files::finish_named_file,
            };
            finish(on_disk, trip.head, answer)?;
            Ok(Flow::Answered)
        }
    }
}

/// The status that a page of an error has.
fn error_status(trip: &Trip<'_>) -> Option<u16> {
    trip.failure.as_ref().map(|failure| failure.fault.status())
}
