//! ZeroSSL's accounts: made from an email address, without signing up.

use http::Request;
use http::header::CONTENT_TYPE;
use instant_acme::BodyWrapper;

use crate::client::{Client, form_field};
use crate::settings::ExternalAccount;

/// Where ZeroSSL makes keys (<https://zerossl.com/documentation/acme/generate-eab-credentials/>).
const URL: &str = "https://api.zerossl.com/acme/eab-credentials-email";

/// Obtains a key for an account at ZeroSSL. Each call makes another one.
///
/// # Errors
/// Says for a person what ZeroSSL answered, or why it cannot be reached.
pub async fn zerossl_eab(email: &str) -> Result<ExternalAccount, String> {
    let form = form_field("email", email);
    let request = Request::post(URL).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
    let request = request.body(BodyWrapper::from(form.into_bytes())).map_err(|error| error.to_string())?;
    let response = Client::new(&[])?.send(request).await.map_err(|error| error.to_string())?;
    read(response.body())
}

fn read(body: &[u8]) -> Result<ExternalAccount, String> {
    let read: serde_json::Value = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| read.get(name).and_then(serde_json::Value::as_str).map(str::to_owned);
    match (text("eab_kid"), text("eab_hmac_key")) {
        (Some(key_id), Some(hmac_key)) => Ok(ExternalAccount { key_id, hmac_key }),
        _ => Err(format!("{URL} gave no key: {}; check the email address", String::from_utf8_lossy(body))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_and_a_refusal_quoted() {
        let account = read(br#"{"success": true, "eab_kid": "kid", "eab_hmac_key": "key"}"#).unwrap();
        assert_eq!(account, ExternalAccount { key_id: "kid".into(), hmac_key: "key".into() });
        let error = read(br#"{"success": false, "error": {"code": 2929}}"#).unwrap_err();
        assert!(error.contains("2929"), "{error}");
    }
}
