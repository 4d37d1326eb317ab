//! Failures of TLS in words: whose fault it is, and what to do.

use rustls::{AlertDescription, CertificateError, Error};

/// Why nothing is asked over a connection whose server did not choose HTTP/2.
pub(super) const NO_HTTP_2: &str =
    "the server did not choose HTTP/2 (`h2` by ALPN): turn HTTP/2 on there, or leave --http2 out";

/// Why there is no handshake with the server that was asked for by `host`, with the next step.
pub(crate) fn explain(error: &Error, host: &str, is_http2: bool) -> String {
    match error {
        Error::InvalidCertificate(problem) => format!(
            "{}: name the certificates to trust with --cacert FILE, or do not verify them with --insecure",
            of_certificate(problem, host)
        ),
        Error::InvalidMessage(_) => "what answers there speaks no TLS: try http://".to_owned(),
        Error::AlertReceived(AlertDescription::UnrecognisedName) => {
            format!("the server has no certificate for `{host}`: ask for a name that it serves")
        }
        error if is_of_protocol(error) => match is_http2 {
            true => NO_HTTP_2.to_owned(),
            false => "the server speaks no HTTP/1.1 over TLS: try --http2".to_owned(),
        },
        Error::AlertReceived(alert) => {
            format!("the server refused the handshake ({alert:?}): look what it logged")
        }
        Error::PeerIncompatible(why) => {
            format!("the server and this client have no way of encryption in common ({why:?})")
        }
        error => error.to_string(),
    }
}

/// Whether the two sides have no protocol in common (RFC 7301 section 3.2).
pub(super) fn is_of_protocol(error: &Error) -> bool {
    matches!(
        error,
        Error::AlertReceived(AlertDescription::NoApplicationProtocol) | Error::NoApplicationProtocol
    )
}

fn of_certificate(problem: &CertificateError, host: &str) -> String {
    match problem {
        CertificateError::UnknownIssuer => {
            format!("the certificate of `{host}` is not trusted: its issuer is unknown")
        }
        CertificateError::Other(cause) if super::verify::is_authority(cause) => {
            format!("the certificate of `{host}` is not trusted: it signed itself")
        }
        CertificateError::NotValidForNameContext { presented, .. } if !presented.is_empty() => {
            format!("the certificate is not for `{host}`, but for {}", presented.join(", "))
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate is not for `{host}`")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate of `{host}` has expired")
        }
        problem => format!("the certificate of `{host}` is not trusted: {problem}"),
    }
}
