//! A file becomes an answer: the form that the client takes, its preconditions, its ranges.
//!
//! This is the path of nearly every request: a file in memory costs lookups and copies of lines that
//! were written when the file was read, no allocation and no formatting. Nothing here knows how the
//! file was found.

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use onehop_config::checked::Encoding;
use onehop_http1::{Known, Method, RequestHead};
use onehop_message::error::HttpError;
use onehop_message::methods::Methods;
use onehop_message::response::{Body, Disk, Fields, Piece, Response, Stored, media_type};

use super::multipart::{self, Kind};
use super::{FileRequest, InPack, OnDisk, Served};
use crate::accept_encoding::Accepted;
use crate::conditional::{self, Outcome, Validators};
use crate::content_type::is_compressible;
use crate::content_type::is_listed;
use crate::ranges::{self, Wanted};
use crate::store::packed::Loaded;
use crate::store::variant::{etag_line_length, lines, sidecar_ending};
use crate::store::{File, Node, Variant};

/// How a handler wants a file to be sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ResponseOptions<'a> {
    /// A complete Cache-Control line, for where nothing else has set one.
    pub(super) cache_control: Option<&'static [u8]>,
    /// Status instead of 200.
    pub(super) status: Option<u16>,
    /// Sidecar files to look for, in order.
    pub(super) precompressed: &'a [Encoding],
    /// Symbolic links that leave the root are followed.
    pub(super) follow_outside: bool,
    /// Which file answers depends on `Accept`.
    pub(super) varies_by_accept: bool,
}

/// What is sent, in one form.
#[derive(Debug, Clone, Copy)]
pub(super) struct Representation<'a> {
    /// Its entity tag and time.
    pub(super) validators: Validators<'a>,
    /// Its bytes.
    pub(super) length: u64,
    /// The lines of an answer with all of it, the ETag's first.
    pub(super) lines: &'a [u8],
    /// It has a coding, or another request may get one.
    pub(super) coded: bool,
    /// The answer depends on Accept-Encoding.
    pub(super) varies: bool,
}

/// Which bytes of a representation go out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// None: 304.
    Nothing,
    /// All.
    Whole,
    /// These: 206.
    Part(Range<u64>),
    /// These, as multipart/byteranges: 206. The caller replaces the Content-Type.
    Parts(Vec<Range<u64>>),
}

/// The line that says on which fields of the request an answer depends (RFC 9110 section 12.5.5).
fn vary(by_encoding: bool, by_accept: bool) -> &'static [u8] {
    match (by_encoding, by_accept) {
        (false, false) => b"",
        (true, false) => b"Vary: Accept-Encoding\r\n",
        (false, true) => b"Vary: Accept\r\n",
        (true, true) => b"Vary: Accept, Accept-Encoding\r\n",
    }
}

/// The form of a file that a request gets.
#[derive(Clone, Copy)]
struct Chosen<'a> {
    /// The file that was asked for: its type and time are the response's.
    file: &'a Arc<File>,
    /// The file whose form is sent: the same, or its sidecar.
    sent: &'a Arc<File>,
    /// The number of that one in its store.
    number: u32,
    /// The form of that one.
    encoding: Option<Encoding>,
    /// The coding that its name says a sidecar has.
    sidecar: Option<Encoding>,
    /// The response depends on Accept-Encoding.
    varies: bool,
}

/// Where the bytes of a form are.
enum Source {
    Memory(Stored),
    Disk(Disk),
}

/// Answers with a file of the store.
pub(super) fn stored_file(
    request: &FileRequest<'_>,
    number: u32,
    options: ResponseOptions<'_>,
    response: &mut Response,
) -> Result<Served, HttpError> {
    let Some(file) = request.store.file(number) else { return Err(HttpError::FileUnreadable) };
    if request.error_status.is_none() {
        only_get_and_head(request.head)?;
    }
    let sidecar =
        if options.precompressed.is_empty() { None } else { sidecar(request, file, options.precompressed) };
    let chosen = sidecar.unwrap_or_else(|| {
        let encodings = usable_encodings(request, file);
        let varies = !encodings.is_empty() || !options.precompressed.is_empty();
        let encoding = choose(request.head, file, encodings);
        Chosen { file, sent: file, number, encoding, sidecar: None, varies }
    });
    let Some(form) = chosen.sent.form(chosen.encoding) else {
        return Ok(chosen.elsewhere(request, options));
    };
    let range = 0..form.bytes.len();
    let stored =
        Stored { store: request.store_number, file: chosen.number, encoding: chosen.encoding, range };
    chosen.send(form, Source::Memory(stored), request.head, options, response)?;
    Ok(Served::Answered)
}

/// Completes a response with a form that was still in the pack only. Blocks.
pub fn finish_in_pack(
    in_pack: &InPack,
    head: &RequestHead,
    response: &mut Response,
) -> Result<(), HttpError> {
    let InPack { file, sent, store, number, encoding, sidecar, varies, .. } = in_pack;
    let chosen =
        Chosen { file, sent, number: *number, encoding: *encoding, sidecar: *sidecar, varies: *varies };
    let options = ResponseOptions {
        cache_control: in_pack.cache_control,
        status: in_pack.status,
        varies_by_accept: in_pack.varies_by_accept,
        ..ResponseOptions::default()
    };
    let packed = sent.packed.as_ref().ok_or(HttpError::FileUnreadable)?;
    match packed.load(sent, *encoding)? {
        Loaded::Here(form) => {
            let range = 0..form.bytes.len();
            let stored = Stored { store: *store, file: *number, encoding: *encoding, range };
            chosen.send(form, Source::Memory(stored), head, options, response)
        }
        Loaded::Apart(disk) => {
            let form = without_bytes(sent, *encoding);
            chosen.send(&form, Source::Disk(disk), head, options, response)
        }
    }
}

impl Chosen<'_> {
    /// Fills a response with this form, whose bytes are at `source`. Inlined: the source is a constant in each caller.
    #[inline(always)]
    fn send(
        &self,
        form: &Variant,
        source: Source,
        head: &RequestHead,
        options: ResponseOptions<'_>,
        response: &mut Response,
    ) -> Result<(), HttpError> {
        let (content_type, modified) = (&self.file.content_type, self.file.modified);
        let of_sidecar = self.sidecar.map(|coding| lines(&form.etag, Some(coding), content_type, modified));
        let length = match &source {
            Source::Memory(stored) => stored.range.len() as u64,
            Source::Disk(disk) => disk.length,
        };
        let representation = Representation {
            validators: Validators { etag: form.etag.as_bytes(), modified: conditional::seconds(modified) },
            length,
            lines: of_sidecar.as_deref().unwrap_or(&form.lines),
            coded: self.varies,
            varies: self.varies,
        };
        let content = begin(head, representation, options, response)?;
        match source {
            Source::Memory(stored) => fill(stored, content, content_type, form, response),
            Source::Disk(disk) => {
                let boundary = || multipart::boundary(&form.etag);
                fill_from_disk(disk, content, content_type, boundary, response);
            }
        }
        Ok(())
    }

    /// Names what a thread that may block has to read, because no form lies in memory.
    #[cold]
    fn elsewhere(&self, request: &FileRequest<'_>, options: ResponseOptions<'_>) -> Served {
        if self.sent.packed.is_none() {
            return Served::OnDisk(on_disk(request, self.file, options, self.varies));
        }
        Served::InPack(InPack {
            file: Arc::clone(self.file),
            sent: Arc::clone(self.sent),
            store: request.store_number,
            number: self.number,
            encoding: self.encoding,
            sidecar: self.sidecar,
            varies: self.varies,
            cache_control: options.cache_control,
            status: options.status,
            varies_by_accept: options.varies_by_accept,
        })
    }
}

/// The tag and the lines of a form whose bytes lie elsewhere.
fn without_bytes(file: &File, encoding: Option<Encoding>) -> Variant {
    Variant::new(Arc::from([]), encoding, &file.content_type, file.modified, file.hash)
}

/// Fills the body with bytes of an open file, whose whole content is `disk`.
pub(super) fn fill_from_disk(
    disk: Disk,
    content: Content,
    content_type: &str,
    boundary: impl FnOnce() -> String,
    answer: &mut Response,
) {
    let part = |range: &Range<u64>| Disk {
        file: Arc::clone(&disk.file),
        offset: disk.offset.saturating_add(range.start),
        length: range.end.saturating_sub(range.start),
    };
    answer.body = match content {
        Content::Nothing => Body::Empty,
        Content::Part(range) => Body::Disk(part(&range)),
        Content::Parts(parts) => {
            let kind = Kind { content_type, length: disk.length, boundary: boundary() };
            multipart::answer(&kind, &parts, |range| Piece::Disk(part(range)), answer);
            return;
        }
        Content::Whole => Body::Disk(disk),
    };
}

/// GET and HEAD are what files answer (RFC 9110 section 9.1).
pub(super) fn only_get_and_head(head: &RequestHead) -> Result<(), HttpError> {
    match head.method() {
        Method::Get | Method::Head => Ok(()),
        Method::Other => Err(HttpError::NotImplemented),
        _ => Err(HttpError::MethodNotAllowed(Methods::Files)),
    }
}

/// Decides what goes out and writes status and fields.
pub(super) fn begin(
    head: &RequestHead,
    representation: Representation<'_>,
    options: ResponseOptions<'_>,
    answer: &mut Response,
) -> Result<Content, HttpError> {
    // A `header` step may have set an ETag of the user's own.
    let own_etag = own_etag(&answer.fields);
    let validators = match &own_etag {
        Some(etag) => Validators { etag, ..representation.validators },
        None => representation.validators,
    };
    // Preconditions count only where the answer would be a success (RFC 9110 section 13.2.1).
    if options.status.is_none_or(|status| (200..300).contains(&status)) {
        match conditional::evaluate(head, validators) {
            Outcome::Proceed => {}
            Outcome::Failed => return Err(HttpError::PreconditionFailed),
            Outcome::NotModified => {
                not_modified(representation, options, answer);
                return Ok(Content::Nothing);
            }
        }
    }
    let content = match wanted(head, representation, validators, options) {
        Wanted::Whole => Content::Whole,
        Wanted::Part(range) => Content::Part(range),
        Wanted::Parts(parts) => Content::Parts(parts),
        Wanted::None => return Err(HttpError::RangeNotSatisfiable { length: representation.length }),
    };
    answer.status = options.status.unwrap_or(if content == Content::Whole { 200 } else { 206 });
    add_fields(&mut answer.fields, representation.lines, representation.varies, options);
    if let Content::Part(range) = &content {
        let value = ranges::content_range(range, representation.length);
        answer.fields.add("Content-Range", value.as_bytes());
    }
    Ok(content)
}

/// Which bytes the request wants. Only GET has ranges (RFC 9110 section 14.2), and a status that was
/// configured leaves no room for 206.
fn wanted(
    head: &RequestHead,
    representation: Representation<'_>,
    validators: Validators<'_>,
    options: ResponseOptions<'_>,
) -> Wanted {
    match head.get(Known::Range) {
        Some(value)
            if head.method() == Method::Get
                && options.status.is_none()
                && conditional::range_applies(head, validators, !representation.coded, SystemTime::now()) =>
        {
            ranges::parse(value, representation.length)
        }
        _ => Wanted::Whole,
    }
}

/// 304 says what a cache may update, and nothing of the content (RFC 9110 section 15.4.5).
fn not_modified(representation: Representation<'_>, options: ResponseOptions<'_>, answer: &mut Response) {
    answer.status = 304;
    if !answer.fields.lines().is_empty() {
        const OF_CONTENT: [&str; 4] = ["Content-Type", "Content-Encoding", "Content-Range", "Last-Modified"];
        answer.fields.retain(|name, _| !OF_CONTENT.iter().any(|of| name.eq_ignore_ascii_case(of.as_bytes())));
    }
    let etag_line = etag_line_length(representation.validators.etag);
    let lines = representation.lines.get(..etag_line).unwrap_or_default();
    add_fields(&mut answer.fields, lines, representation.varies, options);
}

/// Adds the lines of a form and what the handler says about caches. What a `header` step has set before
/// stands: it knows better what the file is and how long it is good.
fn add_fields(fields: &mut Fields, lines: &[u8], varies: bool, options: ResponseOptions<'_>) {
    let vary = vary(varies, options.varies_by_accept);
    let cache_control = options.cache_control.unwrap_or_default();
    if fields.lines().is_empty() {
        fields.add_lines(lines);
        fields.add_lines(vary);
        fields.add_lines(cache_control);
        return;
    }
    fields.add_lines(vary);
    for line in
        lines.split_inclusive(|b| *b == b'\n').chain((!cache_control.is_empty()).then_some(cache_control))
    {
        let name = line.split(|b| *b == b':').next().unwrap_or_default();
        let Ok(name) = std::str::from_utf8(name) else { continue };
        if fields.get(name).is_some() {
            if matches!(name, "ETag" | "Content-Type" | "Cache-Control") {
                continue;
            }
            fields.remove(name);
        }
        fields.add_lines(line);
    }
}

fn own_etag(fields: &Fields) -> Option<Vec<u8>> {
    if fields.lines().is_empty() { None } else { fields.get("ETag").map(<[u8]>::to_vec) }
}

/// The codings in which this file may be sent to someone, now or once it has been compressed.
fn usable_encodings<'a>(request: &FileRequest<'a>, file: &File) -> &'a [Encoding] {
    let has_forms = file.has_coded_form();
    let usable = !request.encodings.is_empty()
        && (has_forms || (!file.settled && is_compressible(&file.content_type)))
        && file.length >= request.encode_minimum
        && is_encoded_type(request.encode_types, &file.content_type);
    if usable { request.encodings } else { &[] }
}

fn is_encoded_type(types: &[String], content_type: &str) -> bool {
    types.is_empty() || is_listed(types, &media_type(content_type.as_bytes()))
}

fn choose(head: &RequestHead, file: &File, encodings: &[Encoding]) -> Option<Encoding> {
    if encodings.is_empty() {
        return None;
    }
    head.get(Known::AcceptEncoding)?;
    let accepted = Accepted::parse(head.get_all(Known::AcceptEncoding));
    accepted.choose(encodings.iter().copied().filter(|encoding| file.has_form(Some(*encoding))))
}

/// Codings of sidecar files that the client takes, the best first.
pub(super) fn accepted_sidecars(head: &RequestHead, precompressed: &[Encoding]) -> Vec<Encoding> {
    let accepted = Accepted::parse(head.get_all(Known::AcceptEncoding));
    let mut left = precompressed.to_vec();
    let mut sorted = Vec::with_capacity(left.len());
    while let Some(best) = accepted.choose(left.iter().copied()) {
        left.retain(|encoding| *encoding != best);
        sorted.push(best);
    }
    sorted
}

/// The best sidecar file of a file that the client takes.
fn sidecar<'a>(
    request: &FileRequest<'a>,
    file: &'a Arc<File>,
    precompressed: &[Encoding],
) -> Option<Chosen<'a>> {
    accepted_sidecars(request.head, precompressed).into_iter().find_map(|coding| {
        let name = [&*file.path, sidecar_ending(coding).as_bytes()].concat();
        let Some(Node::File(number)) = request.store.get(&name) else { return None };
        let sent = request.store.file(number)?;
        Some(Chosen { file, sent, number, encoding: None, sidecar: Some(coding), varies: true })
    })
}

fn fill(whole: Stored, content: Content, content_type: &str, form: &Variant, answer: &mut Response) {
    answer.body = match content {
        Content::Nothing => Body::Empty,
        Content::Whole => Body::Stored(whole),
        Content::Part(range) => Body::Stored(Stored { range: narrow(&range), ..whole }),
        Content::Parts(parts) => {
            let length = form.bytes.len() as u64;
            let kind = Kind { content_type, length, boundary: multipart::boundary(&form.etag) };
            let part = |range: &Range<u64>| Piece::Stored(Stored { range: narrow(range), ..whole.clone() });
            multipart::answer(&kind, &parts, part, answer);
            return;
        }
    };
}

/// A range of bytes that lie in memory; they were measured against a length in memory.
pub(super) fn narrow(range: &Range<u64>) -> Range<usize> {
    let narrow = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
    narrow(range.start)..narrow(range.end)
}

fn on_disk(request: &FileRequest<'_>, file: &File, options: ResponseOptions<'_>, varies: bool) -> OnDisk {
    // The folder that was read, and not what a swapped release link leads to now.
    let resolved = &request.store.resolved_root;
    let root = if resolved.as_os_str().is_empty() { &request.store.root } else { resolved };
    OnDisk {
        root: root.clone(),
        path: file.path.to_vec(),
        content_type: file.content_type.to_string(),
        sidecars: accepted_sidecars(request.head, options.precompressed),
        varies,
        cache_control: options.cache_control,
        status: options.status,
        follow_outside: options.follow_outside,
        varies_by_accept: options.varies_by_accept,
    }
}
