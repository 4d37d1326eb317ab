//! Files that an application names and the server sends: FILE frames, `X-Sendfile`, `X-Accel-Redirect`; and
//! bytes of files that an application has open itself: FILE_PART.
//!
//! Only below the folder that the configuration names. Of files that are named, conditions and ranges of the
//! request are the server's to response, and fields that the application set win. Parts are bytes and nothing else.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use onehop_connection::limits::DISK_READ_BYTES;
use onehop_files::{self as files, OnDisk, content_type::content_type, path};
use onehop_http1::{Method, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::request::Request;
use onehop_message::response::{Body, Response};
use onehop_wire::FilePart;

use crate::pool::Pool;

/// A file that an application wants sent.
pub struct NamedFile {
    /// Of the response.
    pub status: u16,
    /// First byte; with status 200 the request decides.
    pub offset: u64,
    /// How many; `None` is the rest.
    pub length: Option<u64>,
    /// Below the folder, decoded.
    pub path: Vec<u8>,
}

impl NamedFile {
    /// A file that a field of the response names, where the configuration has a folder for such files; the
    /// field is taken away.
    pub fn by_field(response: &mut Response, pool: &Pool) -> Option<Self> {
        let root = pool.app.files.as_deref()?;
        let name = ["x-sendfile", "x-accel-redirect"]
            .into_iter()
            .find(|name| response.fields.get(name).is_some())?;
        let value = response.fields.get(name)?.to_vec();
        response.fields.remove(name);
        response.fields.remove("content-length");
        let path = match name {
            // A path of the file system; one outside of the folder finds nothing there.
            "x-sendfile" => {
                let full = String::from_utf8_lossy(&value).into_owned();
                let below = Path::new(&full).strip_prefix(root).ok();
                below.map_or(value, |below| below.to_string_lossy().into_owned().into_bytes())
            }
            // A path as in a URI.
            // One that is refused is not found either; the program's own body is never sent beside such a field.
            _ => path::parse(&value).map_or_else(|_| NO_PATH.to_vec(), |path| path.bytes.into_owned()),
        };
        Some(Self { status: response.status, offset: 0, length: None, path })
    }
}

/// No path holds this byte.
const NO_PATH: &[u8] = b"\0";

/// Completes a response with the file.
#[expect(
    clippy::disallowed_methods,
    reason = "files that are not in memory are what a core's few blocking threads are for"
)]
pub async fn open(
    request: &Request<'_>,
    pool: &Arc<Pool>,
    named: NamedFile,
    response: &mut Response,
) -> Result<(), HttpError> {
    let root = pool.app.files.clone().ok_or(HttpError::FilesNotConfigured)?;
    let name = path::parse_decoded(&named.path).map_err(|_| HttpError::NotFound)?.bytes.into_owned();
    let has_conditions = named.status == 200 && matches!(request.head.method(), Method::Get | Method::Head);
    let on_disk = OnDisk {
        root,
        content_type: content_type(&name).into_owned(),
        path: name,
        sidecars: Vec::new(),
        varies: false,
        cache_control: None,
        status: (!has_conditions).then_some(named.status),
        follow_outside: false,
        varies_by_accept: false,
    };
    let head = RequestHead::clone(&request.head);
    let made = tokio::task::spawn_blocking(move || {
        let mut made = Response::default();
        made.clear();
        files::finish_named_file(on_disk, &head, &mut made).map(|()| made)
    });
    let mut made = made.await.map_err(|_| HttpError::FileUnreadable)??;
    if let Body::Disk(disk) = &mut made.body
        && !has_conditions
    {
        let left = disk.length.saturating_sub(named.offset);
        disk.offset = disk.offset.saturating_add(named.offset);
        disk.length = named.length.unwrap_or(left).min(left);
    }
    for (name, _) in response.fields.iter() {
        made.fields.remove(&String::from_utf8_lossy(name));
    }
    made.fields.add_lines(response.fields.lines());
    *response = made;
    Ok(())
}

/// Bytes of an open file that are still to be sent.
pub struct Source {
    file: Arc<File>,
    offset: u64,
    left: u64,
    buffer: Vec<u8>,
}

/// The file of a part, if it is still the one that the application has open.
#[expect(
    clippy::disallowed_methods,
    reason = "files that are not in memory are what a core's few blocking threads are for"
)]
pub async fn part(pool: &Arc<Pool>, part: &FilePart<'_>) -> Option<Source> {
    let root = pool.app.files.clone()?;
    let name = path::parse_decoded(part.path).ok()?.bytes.into_owned();
    let opened = tokio::task::spawn_blocking(move || files::open_named_file(&root, &name).ok());
    let (file, metadata) = opened.await.ok()??;
    let is_meant = (metadata.dev(), metadata.ino()) == (part.device, part.inode);
    let source = Source { file: Arc::new(file), offset: part.offset, left: part.length, buffer: Vec::new() };
    is_meant.then_some(source)
}

impl Source {
    /// The next bytes; none at the end of what was wanted, or of what is there.
    #[expect(
        clippy::disallowed_methods,
        reason = "files that are not in memory are what a core's few blocking threads are for"
    )]
    pub async fn next(&mut self) -> Option<&[u8]> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(DISK_READ_BYTES);
        if wanted == 0 {
            return None;
        }
        let (file, offset, mut buffer) =
            (Arc::clone(&self.file), self.offset, std::mem::take(&mut self.buffer));
        let read = tokio::task::spawn_blocking(move || {
            buffer.resize(wanted, 0);
            let count = file.read_at(&mut buffer, offset);
            (buffer, count)
        });
        let (buffer, count) = read.await.ok()?;
        self.buffer = buffer;
        // The worker meets the same error when it reads on.
        let count = count.ok().filter(|count| *count > 0)?;
        self.offset += count as u64;
        self.left -= count as u64;
        self.buffer.get(..count)
    }
}
