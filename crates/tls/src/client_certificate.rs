//! The certificate that a client showed, as text for placeholders and header fields.
//!
//! Knows nothing of trust: [`crate::client_auth`] has verified it, or has not looked at it. What cannot be read is left
//! empty; the certificate itself is there in any case.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use onehop_message::tls_session::ClientCertificate;
use x509_parser::asn1_rs::{Any, Oid, Tag, oid};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate, X509Name};

use crate::limits::SERIAL_BYTES_MAX;

/// Attributes with a name of their own (RFC 4514 section 3), in the order in which they are written.
const NAMED: [(Oid<'static>, &str); 9] = [
    (oid!(2.5.4.5), "SERIALNUMBER"),
    (oid!(2.5.4.3), "CN"),
    (oid!(2.5.4.11), "OU"),
    (oid!(2.5.4.10), "O"),
    (oid!(2.5.4.17), "POSTALCODE"),
    (oid!(2.5.4.9), "STREET"),
    (oid!(2.5.4.7), "L"),
    (oid!(2.5.4.8), "ST"),
    (oid!(2.5.4.6), "C"),
];
/// Of those the ones of which the last counts.
const SINGLE: [&str; 2] = ["SERIALNUMBER", "CN"];

/// Reads a certificate (DER).
pub fn read(der: &[u8], is_verified: bool) -> ClientCertificate {
    let mut read = ClientCertificate {
        is_verified,
        fingerprint: hex(digest(&SHA256, der).as_ref()),
        field_value: format!(":{}:", STANDARD.encode(der)),
        ..ClientCertificate::default()
    };
    let Ok((_, parsed)) = X509Certificate::from_der(der) else { return read };
    read.subject = name(parsed.subject());
    read.issuer = name(parsed.issuer());
    if parsed.raw_serial().len() <= SERIAL_BYTES_MAX {
        read.serial = parsed.serial.to_string();
    }
    let key = &*parsed.public_key().subject_public_key.data;
    (read.public_key, read.public_key_sha256) = (hex(key), hex(digest(&SHA256, key).as_ref()));
    let Ok(Some(names)) = parsed.subject_alternative_name() else { return read };
    for name in &names.value.general_names {
        match name {
            GeneralName::DNSName(name) => read.dns_names.push((*name).to_owned()),
            GeneralName::RFC822Name(address) => read.emails.push((*address).to_owned()),
            GeneralName::URI(uri) => read.uris.push((*uri).to_owned()),
            GeneralName::IPAddress(bytes) => read.ips.extend(address(bytes).map(|ip| ip.to_string())),
            _ => {}
        }
    }
    read
}

/// A name as Go's `pkix.Name` writes it, and so Caddy: RFC 4514 with the attributes in a fixed order, all values of one in
/// one place, and those without a name of their own at the end.
fn name(name: &X509Name<'_>) -> String {
    let mut out = String::new();
    for (attribute, label) in NAMED {
        let values = name.iter_attributes().filter(|one| *one.attr_type() == attribute);
        let mut values: Vec<String> = values.filter_map(|one| text(one.attr_value())).collect();
        if SINGLE.contains(&label) {
            values = values.pop().filter(|value| !value.is_empty()).into_iter().collect();
        }
        for (number, value) in values.iter().enumerate() {
            let separator = if number > 0 { "+" } else { "," };
            out.push_str(if out.is_empty() { "" } else { separator });
            out.push_str(label);
            out.push('=');
            push_escaped(value, &mut out);
        }
    }
    let is_named = |attribute: &Oid<'_>| NAMED.iter().any(|(named, _)| named == attribute);
    let others: Vec<_> = name.iter_attributes().filter(|one| !is_named(one.attr_type())).collect();
    for other in others.into_iter().rev() {
        out.push_str(if out.is_empty() { "" } else { "," });
        out.push_str(&other.attr_type().to_id_string());
        out.push_str("=#");
        out.push_str(&hex(&encoded(other.attr_value())));
    }
    out
}

/// The characters of a value; `None` where it is no string.
fn text(value: &Any<'_>) -> Option<String> {
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::NumericString => {
            std::str::from_utf8(value.data).ok().map(str::to_owned)
        }
        // T.61 is almost Latin-1, and implementations read it as such.
        Tag::T61String => Some(value.data.iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => {
            let units = value.data.chunks_exact(2).map(|pair| match pair {
                [high, low] => u16::from_be_bytes([*high, *low]),
                _ => 0,
            });
            String::from_utf16(&units.collect::<Vec<u16>>()).ok()
        }
        _ => None,
    }
}

/// RFC 4514 section 2.4.
fn push_escaped(value: &str, out: &mut String) {
    let last = value.chars().count().saturating_sub(1);
    for (at, character) in value.chars().enumerate() {
        let is_escaped = match character {
            ',' | '+' | '"' | '\\' | '<' | '>' | ';' => true,
            ' ' => at == 0 || at == last,
            '#' => at == 0,
            _ => false,
        };
        if is_escaped {
            out.push('\\');
        }
        out.push(character);
    }
}

/// A value as DER. Strings in the kind that Go chooses for them.
fn encoded(value: &Any<'_>) -> Vec<u8> {
    let is_printable = |byte: u8| byte.is_ascii_alphanumeric() || b"'()+,-./ :=?".contains(&byte);
    let (tag, content) = match text(value) {
        Some(text) if text.bytes().all(is_printable) => (Tag::PrintableString, text.into_bytes()),
        Some(text) => (Tag::Utf8String, text.into_bytes()),
        None => (value.tag(), value.data.to_vec()),
    };
    let mut out = vec![u8::try_from(tag.0).unwrap_or(u8::MAX)];
    let length = content.len().to_be_bytes();
    let digits = length.iter().skip_while(|byte| **byte == 0);
    match u8::try_from(content.len()) {
        Ok(short @ 0..=0x7f) => out.push(short),
        _ => {
            out.push(0x80 | u8::try_from(digits.clone().count()).unwrap_or(0));
            out.extend(digits);
        }
    }
    out.extend(content);
    out
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    let of_four = || <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).into());
    let of_six = || <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).into());
    of_four().or_else(of_six)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        // Writing to memory does not fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with OpenSSL; the texts are those of Go 1.26.
    const CERTIFICATE: &str = "MIIDwTCCA2egAwIBAgIUEbLD1OX2BxgpOktcbX6PkAECAwQwCgYIKoZIzj0EAwIwggERMQswCQYDVQQGEwJDSDEWMBQGA1UECgwNRXhhbXBsZS\
        wgSW5jLjEOMAwGA1UECwwFRmlyc3QxFTATBgNVBAsMDFNlY29uZCtUaGlyZDESMBAGA1UEBwwJIFrDvHJpY2ggMQswCQYDVQQIDAJaSDEZMBcG\
        A1UECQwQQmFobmhvZnN0cmFzc2UgMTENMAsGA1UEEQwEODAwMTEeMBwGA1UEAwwVI2NsaWVudCAib25lIiA8YTtiPlxjMQwwCgYDVQQFEwMwMD\
        cxHDAaBgkqhkiG9w0BCQEWDWFAZXhhbXBsZS5jb20xEzARBgoJkiaJk/IsZAEBDAN1LTExFzAVBgoJkiaJk/IsZAEZFgdleGFtcGxlMCAXDTI2\
        MTEyMzE3NTAyMFoYDzIxMjYxMDMwMTc1MDIwWjCCARExCzAJBgNVBAYTAkNIMRYwFAYDVQQKDA1FeGFtcGxlLCBJbmMuMQ4wDAYDVQQLDAVGaX\
        JzdDEVMBMGA1UECwwMU2Vjb25kK1RoaXJkMRIwEAYDVQQHDAkgWsO8cmljaCAxCzAJBgNVBAgMAlpIMRkwFwYDVQQJDBBCYWhuaG9mc3RyYXNz\
        ZSAxMQ0wCwYDVQQRDAQ4MDAxMR4wHAYDVQQDDBUjY2xpZW50ICJvbmUiIDxhO2I+XGMxDDAKBgNVBAUTAzAwNzEcMBoGCSqGSIb3DQEJARYNYU\
        BleGFtcGxlLmNvbTETMBEGCgmSJomT8ixkAQEMA3UtMTEXMBUGCgmSJomT8ixkARkWB2V4YW1wbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNC\
        AASx4b0nwyeE/hbXQd4eXNg41a7+H6fNSVSMkwwA3FGRzhhfO5UqvvOf9SXrnwMD3n9OtMYEKQk3Z1ltbSHrGfMHo4GWMIGTMHIGA1UdEQRrMG\
        mCEmNsaWVudC5leGFtcGxlLmNvbYIRb3RoZXIuZXhhbXBsZS5jb22BDWFAZXhhbXBsZS5jb22HBMAAAgGHECABDbgAAAAAAAAAAAAAAAGGGXNw\
        aWZmZTovL2V4YW1wbGUuY29tL25zL2EwHQYDVR0OBBYEFAXrwCL0eTOj80CMp90s++/hEHF2MAoGCCqGSM49BAMCA0gAMEUCIQDHIGD1yW+IYG\
        uoDh9MudHWd6lfYT8g89+Z1xii0BIS3gIgbN/yvpguwuhffucxfOXZqLPlDtFr0l0MNiRtP0B79ss=";

    #[test]
    fn a_certificate_reads_as_in_go() {
        let read = read(&STANDARD.decode(CERTIFICATE).unwrap(), true);
        assert_eq!(
            read.subject,
            "SERIALNUMBER=007,CN=\\#client \\\"one\\\" \\<a\\;b\\>\\\\c,OU=First+OU=Second\\+Third,O=Example\\, Inc.,\
             POSTALCODE=8001,STREET=Bahnhofstrasse 1,L=\\ Zürich\\ ,ST=ZH,C=CH,\
             0.9.2342.19200300.100.1.25=#13076578616d706c65,0.9.2342.19200300.100.1.1=#1303752d31,\
             1.2.840.113549.1.9.1=#0c0d61406578616d706c652e636f6d"
        );
        assert_eq!(read.issuer, read.subject);
        assert_eq!(read.serial, "101039435090632863271254937049233603563442275076");
        assert_eq!(read.fingerprint, "2cb9a38ef4227932e1625f36666423ec1e1f8fcfd984aaa0a6837e76a927e024");
        assert_eq!(
            read.public_key,
            "04b1e1bd27c32784fe16d741de1e5cd838d5aefe1fa7cd49548c930c00dc5191ce185f3b952abef39ff525eb9f0303de7f4eb4c6\
             0429093767596d6d21eb19f307"
        );
        assert_eq!(
            read.public_key_sha256,
            "60655363aafff5b6b3cc9be7acaa278b2fb71da78a91b33a2920799d078a6827"
        );
        assert_eq!(read.dns_names, ["client.example.com", "other.example.com"]);
        assert_eq!(read.emails, ["a@example.com"]);
        assert_eq!(read.ips, ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(read.uris, ["spiffe://example.com/ns/a"]);
        assert!(read.is_verified);
    }

    #[test]
    fn what_is_no_certificate_is_still_there_as_it_came() {
        let read = read(b"nothing", false);
        assert_eq!((read.base64(), read.subject.as_str()), ("bm90aGluZw==", ""));
    }
}
