//! `on_demand_tls { ask URL }`: a program of the operator says for which names certificates may be obtained.

use http::{Request, Uri};
use instant_acme::BodyWrapper;
use onehop_certificates::keeper::{Asking, Permission};

use crate::client::{Client, form_field};

/// Asks a URL, to which `?domain=NAME` is appended. A status of 2xx permits; redirects are not followed.
pub struct AskUrl {
    url: String,
    /// Why there is no client, for each answer to report.
    client: Result<Client, String>,
}

impl AskUrl {
    /// A URL of `http:` or `https:`. Nothing is sent yet.
    pub fn new(url: String) -> Self {
        Self { url, client: Client::also_plain() }
    }

    async fn ask(&self, name: &str) -> Result<bool, String> {
        let client = self.client.as_ref().map_err(String::clone)?;
        let separator = if self.url.contains('?') { '&' } else { '?' };
        let uri = format!("{}{separator}{}", self.url, form_field("domain", name)).parse::<Uri>();
        let uri = uri.map_err(|error| format!("`ask {}` is no URL: {error}", self.url))?;
        let request = Request::get(uri).body(BodyWrapper::default()).map_err(|error| error.to_string())?;
        match client.exchange(request).await {
            Ok(response) if response.status().is_server_error() => Err(format!(
                "`ask {}` was answered {} for {name}: see the log of the program behind it",
                self.url,
                response.status()
            )),
            Ok(response) => Ok(response.status().is_success()),
            Err(cause) => Err(format!(
                "nobody says whether {name} may have a certificate: start the program behind `ask` ({cause})"
            )),
        }
    }
}

impl Permission for AskUrl {
    fn allows<'a>(&'a self, name: &'a str) -> Asking<'a> {
        Box::pin(self.ask(name))
    }
}
