//! DNS-01 by a dynamic update of the zone (RFC 2136), signed with a shared key (TSIG, RFC 8945).

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use hickory_proto::op::update_message::{append, delete_by_rdata};
use hickory_proto::op::{Message, Query, ResponseCode};
use hickory_proto::rr::rdata::TXT;
use hickory_proto::rr::rdata::tsig::TsigAlgorithm;
use hickory_proto::rr::{Name, RData, Record, RecordSet, RecordType, TSigner};

use super::dns::{exchange, fqdn};
use super::{Answering, Challenge, Challenges};
use crate::limits::{DNS_TIMEOUT, TSIG_FUDGE_SECONDS};

/// Updates a zone at its primary server, over TCP.
#[derive(Clone)]
pub struct Rfc2136 {
    /// The zone's primary server: `host:port`.
    pub server: String,
    /// The zone's name; without one the server is asked.
    pub zone: Option<String>,
    /// The name of the key, as the server knows it.
    pub key_name: String,
    /// `hmac-sha256`, `hmac-sha384` or `hmac-sha512`.
    pub algorithm: String,
    /// The key: the bytes, not their base64.
    pub secret: Vec<u8>,
    /// How long resolvers may keep the record, in seconds.
    pub ttl_seconds: u32,
}

impl fmt::Debug for Rfc2136 {
    /// The key is a secret, in logs too.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Rfc2136");
        shown.field("server", &self.server).field("zone", &self.zone).field("key_name", &self.key_name);
        shown.field("algorithm", &self.algorithm).finish_non_exhaustive()
    }
}

#[derive(Clone, Copy)]
enum Action {
    Present,
    Remove,
}

impl Rfc2136 {
    async fn update(&self, action: Action, challenge: &Challenge) -> Result<(), String> {
        let Challenge::Dns01 { name, value } = challenge else {
            return Err("a DNS update answers dns-01 challenges only".to_owned());
        };
        let changed = tokio::time::timeout(DNS_TIMEOUT, self.change(action, name, value)).await;
        let changed =
            changed.unwrap_or_else(|_| Err(format!("no answer within {} s", DNS_TIMEOUT.as_secs())));
        changed.map_err(|cause| format!("the DNS server {} did not update {name}: {cause}", self.server))
    }

    async fn change(&self, action: Action, name: &str, value: &str) -> Result<(), String> {
        let signer = self.signer()?;
        let name = fqdn(name)?;
        let zone = match &self.zone {
            Some(zone) => fqdn(zone)?,
            None => self.find_zone(&name).await?,
        };
        if !zone.zone_of(&name) {
            return Err(format!("the name is not in the zone {zone}: correct the zone"));
        }
        let record = RData::TXT(TXT::new(vec![value.to_owned()]));
        let records = RecordSet::from(Record::from_rdata(name, self.ttl_seconds, record));
        let mut message = match action {
            Action::Present => append(records, zone, false, false),
            Action::Remove => delete_by_rdata(records, zone, false),
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let verifier = message.finalize(&signer, now).map_err(|error| error.to_string())?;
        let (bytes, response) = exchange(&self.server, &message).await?;
        match response.response_code {
            ResponseCode::NoError => {}
            // The response to an unknown key has no signature. An attacker who forges a failure could also drop the response.
            ResponseCode::NotAuth | ResponseCode::Refused => {
                return Err(format!(
                    "{}: the key {} must be known to the server and be allowed to update the zone, and both clocks \
                     must agree",
                    response.response_code, self.key_name
                ));
            }
            code => return Err(code.to_string()),
        }
        let mut verifier = verifier.ok_or("the update was not signed")?;
        let verified = verifier.verify(&bytes);
        verified.map(drop).map_err(|error| format!("the response's signature is wrong: {error}"))
    }

    fn signer(&self) -> Result<TSigner, String> {
        let algorithm = match self.algorithm.to_ascii_lowercase().as_str() {
            "hmac-sha256" => TsigAlgorithm::HmacSha256,
            "hmac-sha384" => TsigAlgorithm::HmacSha384,
            "hmac-sha512" => TsigAlgorithm::HmacSha512,
            other => return Err(format!("{other} is not one of hmac-sha256, hmac-sha384 and hmac-sha512")),
        };
        let signer = TSigner::new(self.secret.clone(), algorithm, fqdn(&self.key_name)?, TSIG_FUDGE_SECONDS);
        signer.map_err(|error| error.to_string())
    }

    /// The zone that a name is in. An authoritative server names it in the authority section where the name has no SOA
    /// record itself (RFC 2308 section 3).
    async fn find_zone(&self, name: &Name) -> Result<Name, String> {
        let mut message = Message::query();
        message.add_query(Query::query(name.clone(), RecordType::SOA));
        let (_, response) = exchange(&self.server, &message).await?;
        let mut records = response.answers.iter().chain(&response.authorities);
        let found = records.find(|record| record.record_type() == RecordType::SOA);
        let found = found.map(|record| record.name.clone());
        found.ok_or_else(|| "it names no zone for this name: configure the zone".to_owned())
    }
}

impl Challenges for Rfc2136 {
    fn present<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, Result<(), String>> {
        Box::pin(self.update(Action::Present, challenge))
    }

    fn remove<'a>(&'a self, challenge: &'a Challenge) -> Answering<'a, ()> {
        Box::pin(async { drop(self.update(Action::Remove, challenge).await) })
    }
}

#[cfg(test)]
mod tests;
