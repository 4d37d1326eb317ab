//! A request of a plan as HTTP/2 sends it.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Method, Uri};

use super::UnsendableRequest;
use crate::http2::Http2Request;
use crate::plan::Request;
use crate::url;

/// Fields of a connection, which HTTP/2 has none of (RFC 9113 section 8.2.2), and those that follow from the rest.
const LEFT_OUT: [&str; 8] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "upgrade",
    "te",
];

impl Request {
    /// Head and body for HTTP/2, the head with its pseudo-header fields (RFC 9113 section 8.3.1). A field `Host` of the plan is its authority.
    ///
    /// # Errors
    /// For what would break the framing, as HTTP/1.1 refuses it.
    pub(crate) fn http2(&self) -> Result<Http2Request, UnsendableRequest> {
        self.field_lines()?;
        let own_host = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(HOST.as_str()));
        let authority = own_host.map_or(self.url.authority.as_str(), |(_, value)| value.as_str());
        let scheme = match self.url.scheme {
            url::Scheme::Http => Scheme::HTTP,
            url::Scheme::Https => Scheme::HTTPS,
        };
        let target = || UnsendableRequest::Target(format!("{scheme}://{authority}{}", self.url.path));
        let uri = Uri::builder()
            .scheme(scheme.clone())
            .authority(Authority::try_from(authority).map_err(|_| target())?)
            .path_and_query(PathAndQuery::try_from(self.url.path.as_str()).map_err(|_| target())?)
            .build()
            .map_err(|_| target())?;
        let method = Method::from_bytes(self.method.as_bytes())
            .map_err(|_| UnsendableRequest::Method(self.method.clone()))?;
        let mut head = http::Request::new(());
        *head.method_mut() = method;
        *head.uri_mut() = uri;
        for (name, value) in &self.fields {
            let own =
                HeaderName::from_bytes(name.as_bytes()).map_err(|_| UnsendableRequest::Name(name.clone()))?;
            if LEFT_OUT.contains(&own.as_str()) {
                continue;
            }
            let value = HeaderValue::from_bytes(value.as_bytes())
                .map_err(|_| UnsendableRequest::Value(name.clone()))?;
            head.headers_mut().append(own, value);
        }
        let body = self.body.as_ref().map(|body| Bytes::copy_from_slice(body));
        if let Some(body) = &body {
            head.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        }
        Ok(Http2Request { head, body })
    }
}
