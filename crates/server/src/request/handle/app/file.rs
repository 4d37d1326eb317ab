//! Files that an application names and the server sends: FILE frames, `X-Sendfile`, `X-Accel-Redirect`.
//!
//! Only below the folder that the configuration names. Conditions and ranges of the request are the
//! server's to answer, fields that the application set win.

use std::path::Path;
use std::sync::Arc;

use onehop_http1::Method;

use super::pool::Pool;
use crate::request::answer::{Answer, Body};
use crate::request::handle::files::{self, OnDisk, content_type::content_type, path};
use crate::request::rescue::Fault;
use crate::request::trip::Trip;

/// What an application wants sent.
pub(super) struct Wanted {
    pub(super) status: u16,
    /// First byte; with status 200 the request decides.
    pub(super) offset: u64,
    /// How many; `None` is the rest.
    pub(super) length: Option<u64>,
    /// Below the folder, decoded.
    pub(super) path: Vec<u8>,
}

impl Wanted {
    /// A file that a field of the answer names, where the configuration has a folder for such files; the
    /// field is taken away.
    pub(super) fn by_field(answer: &mut Answer, pool: &Pool) -> Option<Self> {
        let root = pool.app.files.as_deref()?;
        let name =
            ["x-sendfile", "x-accel-redirect"].into_iter().find(|name| answer.fields.get(name).is_some())?;
        let value = answer.fields.get(name)?.to_vec();
        answer.fields.remove(name);
        answer.fields.remove("content-length");
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
        Some(Self { status: answer.status, offset: 0, length: None, path })
    }
}

/// No path holds this byte.
const NO_PATH: &[u8] = b"\0";

/// Completes an answer with the file.
#[expect(
    clippy::disallowed_methods,
    reason = "files that are not in memory are what a core's few blocking threads are for"
)]
pub(super) async fn open(
    trip: &Trip<'_>,
    pool: &Arc<Pool>,
    wanted: Wanted,
    answer: &mut Answer,
) -> Result<(), Fault> {
    let root = pool.app.files.clone().ok_or(Fault::FilesNotConfigured)?;
    let name = path::parse_decoded(&wanted.path).map_err(|_| Fault::NotFound)?.bytes.into_owned();
    let has_conditions = wanted.status == 200 && matches!(trip.head.method(), Method::Get | Method::Head);
    let on_disk = OnDisk {
        root,
        content_type: content_type(&name).into_owned(),
        path: name,
        sidecars: Vec::new(),
        varies: false,
        cache_control: None,
        status: (!has_conditions).then_some(wanted.status),
        follow_outside: false,
    };
    let head = trip.head.clone();
    let made = tokio::task::spawn_blocking(move || {
        let mut made = Answer::default();
        made.clear();
        files::finish_named_file(on_disk, &head, &mut made).map(|()| made)
    });
    let mut made = made.await.map_err(|_| Fault::FileUnreadable)??;
    if let Body::Disk(disk) = &mut made.body
        && !has_conditions
    {
        let left = disk.length.saturating_sub(wanted.offset);
        disk.offset = disk.offset.saturating_add(wanted.offset);
        disk.length = wanted.length.unwrap_or(left).min(left);
    }
    for (name, _) in answer.fields.iter() {
        made.fields.remove(&String::from_utf8_lossy(name));
    }
    made.fields.add_lines(answer.fields.lines());
    *answer = made;
    Ok(())
}
