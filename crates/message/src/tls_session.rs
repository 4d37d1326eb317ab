//! What one encrypted connection negotiated, and which certificate its client showed.
//!
//! Made once for a connection, as text that placeholders and header fields take as it is. Nothing here is verified:
//! `onehop_tls` has done that, and [`ClientCertificate::is_verified`] says so.

/// What was negotiated on one encrypted connection.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TlsSession {
    /// `tls1.2` or `tls1.3`.
    pub version: &'static str,
    /// The cipher suite by its IANA name.
    pub cipher_suite: String,
    /// The client has come again with a ticket.
    pub is_resumed: bool,
    /// The protocol that ALPN chose (RFC 7301); empty where the client named none.
    pub protocol: String,
    /// The name that the client asked for (RFC 6066 section 3); empty where it named none.
    pub server_name: String,
    /// What the client showed.
    pub client: Option<ClientCertificate>,
}

/// The certificate of a client, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientCertificate {
    /// It was verified, with what the site's `client_auth` trusts.
    pub is_verified: bool,
    /// Whom it names (RFC 4514).
    pub subject: String,
    /// Who issued it (RFC 4514).
    pub issuer: String,
    /// The serial number, in decimal digits.
    pub serial: String,
    /// SHA-256 of it, in lower-case hexadecimal digits.
    pub fingerprint: String,
    /// The public key's bytes (RFC 5280 section 4.1.2.7), in lower-case hexadecimal digits.
    pub public_key: String,
    /// SHA-256 of those bytes, in the same digits.
    pub public_key_sha256: String,
    /// The certificate (DER) in base64 between colons: the value of `Client-Cert` (RFC 9440 section 2.2).
    pub field_value: String,
    /// DNS names in its subject alternative name (RFC 5280 section 4.2.1.6).
    pub dns_names: Vec<String>,
    /// Mail addresses there.
    pub emails: Vec<String>,
    /// IP addresses there.
    pub ips: Vec<String>,
    /// URIs there.
    pub uris: Vec<String>,
}

/// Characters of a line of PEM (RFC 7468 section 2).
const PEM_LINE_CHARACTERS: usize = 64;

impl TlsSession {
    /// The client's certificate, if it was verified.
    pub fn verified_client(&self) -> Option<&ClientCertificate> {
        self.client.as_ref().filter(|client| client.is_verified)
    }
}

impl ClientCertificate {
    /// The certificate (DER) in base64 (RFC 4648 section 4).
    pub fn base64(&self) -> &str {
        self.field_value.trim_matches(':')
    }

    /// Writes the certificate as PEM (RFC 7468).
    pub fn write_pem(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"-----BEGIN CERTIFICATE-----\n");
        for line in self.base64().as_bytes().chunks(PEM_LINE_CHARACTERS) {
            out.extend_from_slice(line);
            out.push(b'\n');
        }
        out.extend_from_slice(b"-----END CERTIFICATE-----\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_has_lines_of_64_characters() {
        let mut out = Vec::new();
        ClientCertificate { field_value: format!(":{}:", "A".repeat(130)), ..ClientCertificate::default() }
            .write_pem(&mut out);
        let text = String::from_utf8(out).unwrap();
        let lengths: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lengths, [27, 64, 64, 2, 25]);
    }
}
