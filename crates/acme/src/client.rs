//! HTTPS to ACME servers, with our bounds, our roots and our provider of cryptography. Redirects are not followed.

use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use http::header::{HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Limited};
use hyper::body::Bytes;
use hyper_rustls::builderstates::{WantsProtocols1, WantsSchemes};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient, Problem};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, RootCertStore};

use crate::limits::{QUOTED_CHARACTERS_MAX, RENEWAL_LOOK_DEFAULT, REQUEST_TIMEOUT, RESPONSE_BYTES_MAX};

/// RFC 8555 section 6.1 asks for the client's name and version.
const NAME: HeaderValue = HeaderValue::from_static(concat!("onehop/", env!("CARGO_PKG_VERSION")));

/// Which schemes a client speaks.
type Schemes = fn(HttpsConnectorBuilder<WantsSchemes>) -> HttpsConnectorBuilder<WantsProtocols1>;

/// A client for the requests of one order. Clones share their connections and what [`Client::retry_after`] returns.
#[derive(Clone)]
pub(crate) struct Client {
    pool: Pool<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
    retry_after: Arc<Mutex<Option<Duration>>>,
}

impl Client {
    /// A client that trusts these roots, or the system's if there are none.
    pub(crate) fn new(trusted: &[CertificateDer<'static>]) -> Result<Self, String> {
        Self::with(trusted, HttpsConnectorBuilder::https_only)
    }

    /// The same, for URLs of the operator's programs, which may be `http:`.
    pub(crate) fn also_plain() -> Result<Self, String> {
        Self::with(&[], HttpsConnectorBuilder::https_or_http)
    }

    fn with(trusted: &[CertificateDer<'static>], schemes: Schemes) -> Result<Self, String> {
        let mut roots = RootCertStore::empty();
        for root in trusted {
            let added = roots.add(root.clone());
            added
                .map_err(|error| format!("a root certificate for the ACME server cannot be used: {error}"))?;
        }
        if trusted.is_empty() {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
        // A system without a list (a container that holds one program) trusts what Mozilla does.
        if roots.is_empty() {
            roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let builder = builder.with_safe_default_protocol_versions().map_err(|error| error.to_string())?;
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        let https = schemes(HttpsConnectorBuilder::new().with_tls_config(config));
        let pool = Pool::builder(TokioExecutor::new()).build(https.enable_http1().build());
        Ok(Self { pool, retry_after: Arc::default() })
    }

    /// The same client for another order.
    pub(crate) fn for_another_order(&self) -> Self {
        Self { pool: self.pool.clone(), retry_after: Arc::default() }
    }

    /// What the last refusal asked for; instant-acme does not pass it on.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        *self.retry_after.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request and reads its response, whatever its status. The error is for a person.
    pub(crate) async fn exchange(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Result<Response<Bytes>, String> {
        request.headers_mut().insert(USER_AGENT, NAME);
        let (method, url) = (request.method().clone(), request.uri().to_string());
        let exchange = async {
            let response = self.pool.request(request).await.map_err(|error| causes(&error))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
            let body = body.map_err(|error| causes(error.as_ref()))?;
            Ok::<_, String>(Response::from_parts(parts, body.to_bytes()))
        };
        let exchanged = match tokio::time::timeout(REQUEST_TIMEOUT, exchange).await {
            Ok(exchanged) => exchanged,
            Err(_) => Err(format!("no response within {} s", REQUEST_TIMEOUT.as_secs())),
        };
        exchanged.map_err(|cause| format!("{method} {url}: {cause}"))
    }

    /// Sends a request to an ACME server and reads its response.
    pub(crate) async fn send(&self, request: Request<BodyWrapper<Bytes>>) -> Result<Response<Bytes>, Error> {
        let (method, url) = (request.method().clone(), request.uri().to_string());
        let exchanged = self.exchange(request).await;
        let mut response = exchanged.map_err(|error| Error::Other(error.into()))?;
        self.check(&response, &method, &url)?;
        if method == Method::GET {
            // instant-acme refuses renewal information without it; RFC 9773 section 4.3.3 says what its absence means.
            let default = RENEWAL_LOOK_DEFAULT.as_secs();
            response.headers_mut().entry(RETRY_AFTER).or_insert_with(|| HeaderValue::from(default));
        }
        Ok(response)
    }

    /// Refusals that instant-acme would not understand. It reads problem documents in responses to POST alone.
    fn check(&self, response: &Response<Bytes>, method: &Method, url: &str) -> Result<(), Error> {
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        *self.retry_after.lock().unwrap_or_else(PoisonError::into_inner) = retry_after(response.headers());
        match serde_json::from_slice::<Problem>(response.body()) {
            Ok(_) if method == Method::POST => Ok(()),
            Ok(problem) if problem.r#type.is_some() => Err(Error::Api(problem)),
            _ => {
                let quoted = String::from_utf8_lossy(response.body());
                let quoted: String = quoted.trim().chars().take(QUOTED_CHARACTERS_MAX).collect();
                Err(Error::Other(format!("{method} {url} was answered {status}: {quoted}").into()))
            }
        }
    }
}

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let client = self.clone();
        Box::pin(async move {
            let (parts, body) = client.send(request).await?.into_parts();
            Ok(BytesResponse { parts, body: Box::new(body) })
        })
    }
}

/// A field of a form or a query, `name=value`, with what needs it percent-encoded.
pub(crate) fn form_field(name: &str, value: &str) -> String {
    let mut field = format!("{name}=");
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => field.push(char::from(byte)),
            _ => field.push_str(&format!("%{byte:02X}")),
        }
    }
    field
}

/// The time that a response asks to wait: seconds or a date (RFC 9110 section 10.2.3).
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let until = || httpdate::parse_http_date(value).ok()?.duration_since(SystemTime::now()).ok();
    value.parse().map(Duration::from_secs).ok().or_else(until)
}

/// An error with its causes: hyper's own words say little ("client error (Connect)").
fn causes(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_read_as_seconds_or_as_a_date() {
        let in_an_hour = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
        for (value, expected) in [
            ("120", Some(120..=120)),
            (in_an_hour.as_str(), Some(3590..=3600)),
            ("Fri, 31 Dec 1999 23:59:59 GMT", None),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_str(value).unwrap())]);
            let seconds = retry_after(&headers).map(|wait| wait.as_secs());
            match expected {
                Some(expected) => assert!(expected.contains(&seconds.unwrap()), "{value}"),
                None => assert_eq!(seconds, None, "{value}"),
            }
        }
    }

    #[test]
    fn a_refusal_without_a_problem_document_is_quoted_with_its_address() {
        let client = Client::new(&[]).unwrap();
        let page = "<html>no such directory</html>".repeat(100);
        let response =
            Response::builder().status(404).header(RETRY_AFTER, "7").body(Bytes::from(page)).unwrap();
        let error =
            client.check(&response, &Method::GET, "https://example.com/directory").unwrap_err().to_string();
        assert!(
            error.starts_with("GET https://example.com/directory was answered 404 Not Found: <html>no"),
            "{error}"
        );
        assert!(error.len() < 300, "{error}");
        assert_eq!(client.retry_after(), Some(Duration::from_secs(7)));
    }
}
