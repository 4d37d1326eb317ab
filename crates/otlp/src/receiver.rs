//! The connection to a receiver of OTLP over HTTP.

use std::sync::Arc;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use onehop_config::checked::OtlpExport;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{ClientConfig, RootCertStore};

use crate::json;
use crate::limits::RESPONSE_BYTES_MAX;

/// Gives the roots that a receiver's certificate is verified with; the error is for a person.
pub type Roots = fn() -> Result<Arc<RootCertStore>, String>;
/// Takes a message for a person.
pub type Report = Arc<dyn Fn(String) + Send + Sync>;

/// Why an export was not taken.
pub(crate) struct Failure {
    /// For a person.
    pub(crate) cause: String,
    /// It may be taken later.
    pub(crate) is_temporary: bool,
}

/// The connection to the receiver.
pub(crate) struct Receiver<'a> {
    pub(crate) export: &'a OtlpExport,
    pub(crate) url: &'a str,
    runtime: tokio::runtime::Runtime,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
}

impl<'a> Receiver<'a> {
    pub(crate) fn new(export: &'a OtlpExport, url: &'a str, roots: Roots) -> Result<Self, String> {
        let roots = if url.starts_with("https:") { roots()? } else { Arc::new(RootCertStore::empty()) };
        let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector =
            HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_http1().build();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        Ok(Self { export, url, runtime, client: Client::builder(TokioExecutor::new()).build(connector) })
    }

    /// Sends one export.
    pub(crate) fn send(&self, body: Vec<u8>) -> Result<(), Failure> {
        let mut request = Request::post(self.url)
            .header("Content-Type", "application/json")
            .header("User-Agent", concat!("onehop/", env!("CARGO_PKG_VERSION")));
        for (name, value) in &self.export.headers {
            request = request.header(name, json::decoded(value));
        }
        let request = request.body(Full::new(body.into()));
        let request = request.map_err(|_| Failure {
            cause: "OTEL_EXPORTER_OTLP_HEADERS has a field that cannot be sent".to_owned(),
            is_temporary: false,
        })?;
        let exchange = async {
            let response = self.client.request(request).await.map_err(|error| causes(&error))?;
            let status = response.status();
            // Read to its end, so that the connection is kept.
            let body = Limited::new(response.into_body(), RESPONSE_BYTES_MAX).collect().await;
            body.map_err(|error| causes(error.as_ref()))?;
            Ok::<StatusCode, String>(status)
        };
        let within = self.export.timeout;
        let exchanged = self.runtime.block_on(async { tokio::time::timeout(within, exchange).await });
        let (cause, is_temporary) = match exchanged {
            Ok(Ok(status)) if status.is_success() => return Ok(()),
            // https://opentelemetry.io/docs/specs/otlp/#retryable-response-codes
            Ok(Ok(status)) => {
                (format!("it responds {status}"), matches!(status.as_u16(), 429 | 502 | 503 | 504))
            }
            Ok(Err(cause)) => (cause, true),
            Err(_) => (format!("no response within {} ms", within.as_millis()), true),
        };
        Err(Failure { cause, is_temporary })
    }
}

/// An error with what led to it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
