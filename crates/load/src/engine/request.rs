//! The requests of a run as bytes, put together once.
//!
//! Owns what goes out. The bytes are those that [`ClientCodec`] writes, so that it judges each answer by the very
//! request that was sent.

use onehop_http1::{AskHead, BodyLength, ClientCodec, Refusal};

use super::LoadError;
use crate::client::CODEC_LIMITS;
use crate::http2::Http2Request;
use crate::plan::{Expect, Plan, Protocol, Request, Reuse};
use crate::tls::Tls;
use crate::url::Address;

/// A server that connections are made to.
#[derive(Debug)]
pub(super) struct Destination {
    pub address: Address,
    /// With the sessions of this load.
    pub tls: Option<Tls>,
}

/// One of the plan's requests, ready to be sent.
#[derive(Debug)]
pub(super) struct PreparedRequest {
    /// Head and body.
    pub bytes: Vec<u8>,
    /// Its place among the destinations.
    pub address: usize,
    /// What counts as success.
    pub expect: Expect,
    /// The same for HTTP/2, where that is spoken.
    pub http2: Option<Http2Request>,
    method: Vec<u8>,
    body: BodyLength,
}

impl PreparedRequest {
    /// Tells the codec of a connection that this request goes out on it. `scratch` takes what it would write:
    /// those bytes stand in [`PreparedRequest::bytes`] already, and only their framing matters to the codec.
    pub(super) fn announce(&self, codec: &mut ClientCodec, scratch: &mut Vec<u8>) -> Result<(), Refusal> {
        scratch.clear();
        let head = AskHead {
            method: &self.method,
            target: b"/",
            fields: b"",
            body: self.body,
            upgrade: false,
            trailers: false,
        };
        codec.write_request_head(scratch, head)?;
        if let BodyLength::Known(length) = self.body {
            codec.write_data_frame(scratch, length);
        }
        codec.finish(scratch, b"");
        Ok(())
    }
}

/// All requests of a plan, and the destinations that they go to, each once.
pub(super) fn prepare(plan: &Plan) -> Result<(Vec<PreparedRequest>, Vec<Destination>), LoadError> {
    let mut found: Vec<(&Address, &Option<Tls>)> = Vec::new();
    let mut requests = Vec::with_capacity(plan.requests.len());
    for request in &plan.requests {
        let to = (&request.address, &request.tls);
        let known = found.iter().position(|other| *other == to);
        let address = known.unwrap_or_else(|| {
            found.push(to);
            found.len() - 1
        });
        let bytes = serialise(request, plan)?;
        let unsendable = |why| LoadError::Unsendable { name: request.name.clone(), why };
        let http2 = match request.protocol {
            Protocol::Http1 => None,
            Protocol::Http2 { .. } => Some(request.http2().map_err(unsendable)?),
        };
        requests.push(PreparedRequest {
            bytes,
            address,
            expect: request.expect.clone(),
            http2,
            method: request.method.clone().into_bytes(),
            body: request.body_length(),
        });
    }
    let destination = |(address, tls): (&Address, &Option<Tls>)| Destination {
        address: address.clone(),
        tls: tls.as_ref().map(Tls::of_a_load),
    };
    Ok((requests, found.into_iter().map(destination).collect()))
}

fn serialise(request: &Request, plan: &Plan) -> Result<Vec<u8>, LoadError> {
    let unsendable = |why| LoadError::Unsendable { name: request.name.clone(), why };
    let fields = request.field_lines().map_err(unsendable)?;
    // RFC 9112 section 3.2: no white space and no control stands in a request-target.
    if let Some(odd) = request.url.path.chars().find(|letter| !letter.is_ascii_graphic()) {
        return Err(LoadError::Path { name: request.name.clone(), odd });
    }
    let mut bytes = Vec::new();
    let mut codec = ClientCodec::new(CODEC_LIMITS);
    let head = AskHead {
        method: request.method.as_bytes(),
        target: request.url.path.as_bytes(),
        fields: &fields,
        body: request.body_length(),
        upgrade: false,
        trailers: false,
    };
    codec
        .write_request_head(&mut bytes, head)
        .map_err(|_| LoadError::Nothing("a request could not be written"))?;
    if plan.reuse == Reuse::New {
        // Connection is the codec's field, and a client's codec never writes it: it goes before the empty line.
        bytes.truncate(bytes.len().saturating_sub(2));
        bytes.extend_from_slice(b"Connection: close\r\n\r\n");
    }
    if let Some(body) = &request.body {
        codec.write_data(&mut bytes, body);
    }
    codec.finish(&mut bytes, b"");
    Ok(bytes)
}
