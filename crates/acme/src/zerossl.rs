//! ZeroSSL's accounts: made from an email address, without signing up.

use http::Request;
use http::header::CONTENT_TYPE;
use instant_acme::BodyWrapper;

use crate::client::{Client, form_field};
use crate::settings::ExternalAccount;

/// The URL of ZeroSSL's directory.
pub const DIRECTORY: &str = "https://acme.zerossl.com/v2/DV90";

/// Where ZeroSSL makes keys (<https://zerossl.com/documentation/acme/generate-eab-credentials/>).
pub const KEYS: &str = "https://api.zerossl.com/acme/eab-credentials-email";

/// Obtains a key for an account at ZeroSSL from this URL. Each call makes another one. The error is for a person.
pub(crate) async fn key_for(client: &Client, url: &str, email: &str) -> Result<ExternalAccount, String> {
    let form = form_field("email", email);
    let request = Request::post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = request.body(BodyWrapper::from(form.into_bytes())).map_err(|error| error.to_string())?;
    let response = client.send(request).await.map_err(|error| error.to_string())?;
    read(url, response.body())
}

fn read(url: &str, body: &[u8]) -> Result<ExternalAccount, String> {
    let read: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| read.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
    match (text("eab_kid"), text("eab_hmac_key")) {
        (Some(key_id), Some(hmac_key)) => Ok(ExternalAccount { key_id, hmac_key }),
        _ => Err(format!("{url} gave no key: {}; check the email address", String::from_utf8_lossy(body))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_and_a_refusal_quoted() {
        let account = read(KEYS, br#"{"success": true, "eab_kid": "kid", "eab_hmac_key": "key"}"#).unwrap();
        assert_eq!(account, ExternalAccount { key_id: "kid".into(), hmac_key: "key".into() });
        let error = read(KEYS, br#"{"success": false, "error": {"code": 2929}}"#).unwrap_err();
        assert!(error.contains("2929"), "{error}");
    }
}
