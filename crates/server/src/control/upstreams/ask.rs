//! One question to an upstream: connects, sends one request, judges the answer, closes.
//!
//! Bounded in bytes; its time is bounded by the caller. Keeps nothing.

use std::io;
use std::sync::Arc;

use onehop_config::checked::proxy::{ActiveHealth, StatusTest};
use onehop_http1::{AnswerRead, AskHead, BodyLength, BodyRead, ClientCodec, ResponseHead};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::health::Question;
use crate::limits::{CODEC_LIMITS, PROXY_QUESTION_BODY_BYTES_MAX, READ_BUFFER_BYTES};
use crate::request::upstream::connection::connect_unix;
use crate::request::upstream::peer::{Place, Tls};

/// Whom a question goes to.
#[derive(Clone)]
pub(super) struct Asked {
    pub(super) place: Place,
    pub(super) tls: Option<Tls>,
    /// What stands in `Host` where the settings name none.
    pub(super) host: String,
}

/// Whether the upstream is well; the error is why not, for a person.
pub(super) async fn ask(question: &Question) -> Result<(), String> {
    let no_connection = |error: io::Error| format!("no connection: {error}");
    match &question.asked.place {
        Place::Unix(path, uid) => {
            let stream = connect_unix(path, *uid).await.map_err(no_connection)?;
            encrypt(stream, question).await
        }
        Place::Address(address) => {
            encrypt(TcpStream::connect(address).await.map_err(no_connection)?, question).await
        }
        Place::Name(name, port) => {
            let stream = TcpStream::connect((name.as_str(), *port)).await.map_err(no_connection)?;
            encrypt(stream, question).await
        }
    }
}

async fn encrypt<S>(stream: S, question: &Question) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(tls) = &question.asked.tls else { return exchange(stream, question).await };
    let connector = TlsConnector::from(Arc::clone(&tls.config));
    let stream = connector.connect(tls.name.clone(), stream).await;
    exchange(stream.map_err(|error| format!("no TLS: {error}"))?, question).await
}

async fn exchange<S>(mut stream: S, question: &Question) -> Result<(), String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let settings = &question.settings;
    let broken = |error: io::Error| format!("the connection broke: {error}");
    let mut codec = ClientCodec::new(CODEC_LIMITS);
    let mut output = Vec::new();
    let fields = fields(settings, &question.asked.host);
    let (method, target) = (settings.method.as_bytes(), settings.uri.as_bytes());
    let ask = AskHead { method, target, fields: &fields, body: BodyLength::None, upgrade: false };
    codec
        .write_request_head(&mut output, ask)
        .map_err(|refusal| format!("it cannot be asked: {refusal:?}"))?;
    codec.finish(&mut output, &[]);
    stream.write_all(&output).await.map_err(broken)?;
    stream.flush().await.map_err(broken)?;

    let (mut input, mut head) = (Vec::new(), ResponseHead::new());
    loop {
        match codec
            .read_head(&input, &mut head)
            .map_err(|refusal| format!("its answer is broken: {refusal:?}"))?
        {
            Some(AnswerRead::Informational { consumed }) => drop(input.drain(..consumed)),
            Some(AnswerRead::Final { consumed } | AnswerRead::Tunnel { consumed }) => {
                input.drain(..consumed);
                break;
            }
            None => {
                if read(&mut stream, &mut input).await.map_err(broken)? == 0 {
                    return Err("it closed the connection without an answer".to_owned());
                }
            }
        }
    }
    let status = head.status();
    if !settings.status.fits(status) {
        return Err(format!("it answered {status} instead of {}", expected(settings.status)));
    }
    let Some(expression) = &question.body else { return Ok(()) };
    let body = body(&mut stream, &mut codec, input).await?;
    if expression.is_match(&String::from_utf8_lossy(&body)) {
        Ok(())
    } else {
        Err(format!("its body does not match `{}`", expression.as_str()))
    }
}

/// The beginning of the answer's body.
async fn body<S>(stream: &mut S, codec: &mut ClientCodec, mut input: Vec<u8>) -> Result<Vec<u8>, String>
where
    S: AsyncRead + Unpin,
{
    let broken = |refusal| format!("its answer is broken: {refusal:?}");
    let mut body = Vec::new();
    while body.len() < PROXY_QUESTION_BODY_BYTES_MAX {
        match codec.read_body(&input).map_err(broken)? {
            BodyRead::Data { at, consumed } => {
                body.extend_from_slice(input.get(at).unwrap_or_default());
                input.drain(..consumed);
            }
            BodyRead::End { .. } => break,
            BodyRead::NeedMore => {
                let count = read(stream, &mut input).await;
                if count.map_err(|error| format!("the connection broke: {error}"))? == 0 {
                    codec.read_eof(input.len()).map_err(broken)?;
                    break;
                }
            }
        }
    }
    body.truncate(PROXY_QUESTION_BODY_BYTES_MAX);
    Ok(body)
}

/// Reads once. The codec refuses heads and framing that are longer than its bounds, so that this one stays small.
async fn read<S: AsyncRead + Unpin>(stream: &mut S, input: &mut Vec<u8>) -> io::Result<usize> {
    input.reserve(READ_BUFFER_BYTES);
    stream.read_buf(input).await
}

/// The fields of the request, without those that are about the connection or its framing.
fn fields(settings: &ActiveHealth, host: &str) -> Vec<u8> {
    let mut lines = Vec::new();
    let mut push = |name: &str, value: &str| {
        for part in [name, ": ", value, "\r\n"] {
            lines.extend_from_slice(part.as_bytes());
        }
    };
    let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
    let said = settings.fields.iter().find(|(name, _)| is(name, "host")).map(|(_, value)| value.as_str());
    push("Host", said.unwrap_or(host));
    if !settings.fields.iter().any(|(name, _)| is(name, "user-agent")) {
        push("User-Agent", "onehop-health");
    }
    for (name, value) in &settings.fields {
        let is_ours = ["host", "connection", "keep-alive", "content-length", "transfer-encoding", "expect"];
        let is_line = !value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
        if is_line && !is_ours.iter().any(|ours| is(name, ours)) {
            push(name, value);
        }
    }
    lines
}

fn expected(status: StatusTest) -> String {
    match status {
        StatusTest::Exactly(status) => status.to_string(),
        StatusTest::Class(class) => format!("{class}xx"),
    }
}
