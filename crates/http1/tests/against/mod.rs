//! The same bytes given to onehop, to hyper's server and to httparse.
//!
//! What onehop takes, hyper takes with the same method, target and body. What onehop refuses, hyper may
//! take for the reasons of [`hyper_may_take`] only: each is a decision of ours to be stricter.

use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use onehop_http1::{Limits, Refusal, RequestHead, ServerCodec};
use tokio::io::AsyncWriteExt;

use crate::drive::{self, Outcome};

/// Bytes that the pipe between test and hyper holds: more than any input of these tests.
const PIPE_BYTES: usize = 1 << 20;

/// A request as hyper's service saw it, with its whole body.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    method: String,
    target: String,
    body: Vec<u8>,
}

/// Panics where the two disagree.
pub(crate) fn compare_with_hyper(input: &[u8]) {
    let input = &in_known_versions(input);
    let ours = drive::serve_at_once(input, Limits::default());
    let theirs = hyper_takes(input);
    let shown = String::from_utf8_lossy(input);
    for (index, seen) in ours.seen.iter().enumerate() {
        let taken = theirs.get(index);
        let same = taken.is_some_and(|taken| {
            taken.method.as_bytes() == seen.method
                && same_target(&taken.target, &seen.target)
                && taken.body == seen.body
        });
        assert!(same, "{shown:?}\nonehop took {seen:?}\nhyper took {taken:?}");
    }
    if theirs.len() > ours.seen.len() {
        explain(&ours, &theirs, &shown);
    }
}

/// Panics where httparse reads other fields in a head that onehop took, or takes one that onehop refuses for
/// a reason of grammar.
pub(crate) fn compare_with_httparse(input: &[u8]) {
    let input = &in_known_versions(input);
    let mut head = RequestHead::new();
    let ours = ServerCodec::new(Limits::default()).read_head(input, &mut head);
    let mut room = [httparse::EMPTY_HEADER; Limits::FIELDS_MAX];
    let mut request = httparse::Request::new(&mut room);
    let whole = matches!(request.parse(input), Ok(httparse::Status::Complete(_)));
    let shown = String::from_utf8_lossy(input);
    match ours {
        Ok(Some(_)) => {
            assert!(whole, "{shown:?}");
            assert_eq!(request.method.map(str::as_bytes), Some(head.method_bytes()), "{shown:?}");
            assert_eq!(request.path.map(str::as_bytes), Some(head.target()), "{shown:?}");
            let theirs = request.headers.iter().map(|header| (header.name.as_bytes(), header.value));
            assert!(theirs.eq(head.fields()), "{shown:?}");
        }
        Ok(None) => assert!(!whole, "{shown:?}"),
        Err(refusal) => {
            assert!(!whole || !is_grammar_of_heads(refusal), "httparse took what is {refusal:?}: {shown:?}");
        }
    }
}

/// The input with 1.1 for each higher minor version: RFC 9110 section 2.5 has these read alike, and the others refuse them.
fn in_known_versions(input: &[u8]) -> Vec<u8> {
    let mut known = input.to_vec();
    for at in 0..input.len() {
        if input[at..].starts_with(b" HTTP/1.")
            && let Some(minor @ b'2'..=b'9') = known.get_mut(at + 8)
        {
            *minor = b'1';
        }
    }
    known
}

fn explain(ours: &Outcome, theirs: &[Taken], shown: &str) {
    let more = &theirs[ours.seen.len()..];
    match ours.refused {
        Some(refusal) => {
            assert!(hyper_may_take(refusal), "{shown:?}\n{refusal:?}, yet hyper took {more:?}");
        }
        // hyper ends no body at the connection's end and begins no request in the middle.
        None => {
            panic!("{shown:?}\nonehop waits or closed (truncated: {}), hyper took {more:?}", ours.truncated)
        }
    }
}

/// hyper writes an absolute form's path out; the rest is compared to the byte.
fn same_target(theirs: &str, ours: &[u8]) -> bool {
    let ours = String::from_utf8_lossy(ours);
    let without_slash = ours.replacen('?', "/?", 1);
    theirs.eq_ignore_ascii_case(&ours)
        || theirs.eq_ignore_ascii_case(&format!("{ours}/"))
        || theirs.eq_ignore_ascii_case(&without_slash)
}

/// Where onehop is stricter than hyper on purpose.
fn hyper_may_take(refusal: Refusal) -> bool {
    matches!(
        refusal,
        // Line ends: hyper takes a lone LF in heads, as RFC 9112 section 2.2 lets it.
        Refusal::BareLf
            // hyper lets Transfer-Encoding win, takes equal lengths, and looks at the last coding only.
            | Refusal::BothLengths
            | Refusal::ListedContentLength
            | Refusal::DifferingContentLength
            | Refusal::UnknownTransferCoding
            | Refusal::TransferEncodingNotChunked
            // hyper leaves Host and the target's form to its user.
            | Refusal::MissingHost
            | Refusal::EmptyHost
            | Refusal::DoubledHost
            | Refusal::BadHost
            | Refusal::HostDisagrees
            | Refusal::BadTarget
            | Refusal::TooManyConnectionOptions
            | Refusal::MethodTooLong
            // hyper skips any number of empty lines before a request.
            | Refusal::BadRequestLine
            // hyper does not look into extensions, takes white space after a size, and leading zeros.
            | Refusal::BadChunkSize
            | Refusal::BadChunkExtension
            | Refusal::ForbiddenTrailer
            // Bounds of ours.
            | Refusal::HeadTooLarge
            | Refusal::TargetTooLong
            | Refusal::TooManyFields
            | Refusal::ChunkLineTooLong
            | Refusal::ChunkExtensionsTooLarge
            | Refusal::TrailersTooLarge
    )
}

fn is_grammar_of_heads(refusal: Refusal) -> bool {
    matches!(
        refusal,
        Refusal::ObsoleteFold
            | Refusal::SpaceBeforeColon
            | Refusal::BadFieldName
            | Refusal::BadMethod
            | Refusal::UnsupportedVersion
    )
}

fn hyper_takes(input: &[u8]) -> Vec<Taken> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let taken = Rc::new(RefCell::new(Vec::new()));
    let notes = Rc::clone(&taken);
    runtime.block_on(async {
        let (mut ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        ours.write_all(input).await.expect("the pipe has room");
        ours.shutdown().await.expect("a pipe can be shut");
        let service = service_fn(move |request: Request<Incoming>| {
            let notes = Rc::clone(&notes);
            async move {
                let (head, body) = request.into_parts();
                let method = head.method.as_str().to_owned();
                let target = head.uri.to_string();
                if let Ok(body) = body.collect().await {
                    notes.borrow_mut().push(Taken { method, target, body: body.to_bytes().to_vec() });
                }
                Ok::<_, Infallible>(Response::new(Full::new(Bytes::from_static(b"ok"))))
            }
        });
        // The pipe has room for all answers, so nobody needs to read them.
        let server = hyper::server::conn::http1::Builder::new()
            .half_close(true)
            .serve_connection(TokioIo::new(theirs), service);
        // An error is hyper's way to refuse; what it took before is what counts.
        drop(server.await);
        drop(ours);
    });
    taken.take()
}
