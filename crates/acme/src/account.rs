//! The account at an ACME server: loaded, or created once and kept.

use base64::Engine;
use base64::alphabet::URL_SAFE;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use instant_acme::{Account, AccountCredentials, Error, ExternalAccountKey, NewAccount};
use onehop_certificates::issuer::IssueError;

use crate::client::Client;
use crate::explain::{explain, failed};
use crate::nonce::with_nonces;
use crate::settings::{AccountStore, ExternalAccount, Settings};
use crate::zerossl::key_for;

/// Issuers show keys with and without padding.
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(
    &URL_SAFE,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The account as it was saved; `None` where there is none, or none that can be read.
pub(crate) async fn load(
    client: &Client,
    store: &dyn AccountStore,
    settings: &Settings,
) -> Result<Option<Account>, IssueError> {
    let credentials =
        store.load().map_err(|cause| failed(format!("the ACME account cannot be read: {cause}")))?;
    // Damaged ones are of no more use than none.
    let parsed = credentials.and_then(|text| serde_json::from_str::<AccountCredentials>(&text).ok());
    let Some(credentials) = parsed else { return Ok(None) };
    let builder = Account::builder_with_http(Box::new(client.clone()));
    match builder.from_credentials(credentials).await {
        Ok(account) => Ok(Some(account)),
        Err(Error::KeyRejected) => Ok(None),
        Err(error) => Err(explain(&error, &settings.directory, client.retry_after(), None)),
    }
}

/// Saves the credentials of an account, if there are any to save. After a failure they stay, so that a full disk does not
/// cost another account with each attempt.
pub(crate) fn save(store: &dyn AccountStore, unsaved: &mut Option<String>) -> Result<(), IssueError> {
    if let Some(credentials) = unsaved {
        store
            .save(credentials)
            .map_err(|cause| failed(format!("the ACME account cannot be saved: {cause}")))?;
    }
    *unsaved = None;
    Ok(())
}

/// Creates an account and saves it.
pub(crate) async fn create(
    client: &Client,
    store: &dyn AccountStore,
    settings: &Settings,
    unsaved: &mut Option<String>,
) -> Result<Account, IssueError> {
    let contact = settings.email.as_ref().map(|email| format!("mailto:{email}"));
    let contact: Vec<&str> = contact.iter().map(String::as_str).collect();
    let wanted = NewAccount {
        contact: &contact,
        terms_of_service_agreed: settings.accept_terms,
        only_return_existing: false,
    };
    let external = match (&settings.external_account, &settings.external_account_from, &settings.email) {
        (Some(account), _, _) => Some(external_key(account).map_err(failed)?),
        (None, Some(url), Some(email)) => {
            let account = key_for(client, url, email).await.map_err(failed)?;
            Some(external_key(&account).map_err(failed)?)
        }
        _ => None,
    };
    let builder = || Account::builder_with_http(Box::new(client.clone()));
    let created =
        with_nonces!(builder().create(&wanted, settings.directory.clone(), external.as_ref()).await);
    let (account, credentials) =
        created.map_err(|error| explain(&error, &settings.directory, client.retry_after(), None))?;
    *unsaved = Some(serde_json::to_string(&credentials).map_err(|error| failed(error.to_string()))?);
    save(store, unsaved)?;
    Ok(account)
}

fn external_key(account: &ExternalAccount) -> Result<ExternalAccountKey, String> {
    // Some show standard base64.
    let key = account.hmac_key.trim().replace('+', "-").replace('/', "_");
    let key = BASE64_URL.decode(key).map_err(|error| {
        format!(
            "the key of `acme_eab {}` is no base64 ({error}): copy it from the issuer's page again",
            account.key_id
        )
    })?;
    Ok(ExternalAccountKey::new(account.key_id.clone(), &key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_in_every_form_that_issuers_show() {
        for (key, is_good) in [("-_8", true), ("-_8=", true), ("+/8=", true), ("no key", false)] {
            let account = ExternalAccount { key_id: "kid".into(), hmac_key: key.into() };
            assert_eq!(external_key(&account).is_ok(), is_good, "{key}");
            assert!(!format!("{account:?}").contains(key));
        }
    }
}
