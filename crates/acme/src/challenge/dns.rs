//! Messages to DNS servers, over TCP, and the wait until resolvers know a new record.

use std::time::Duration;

use hickory_proto::op::{Message, Query};
use hickory_proto::rr::{Name, RData, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::limits::{DNS_TIMEOUT, PROPAGATION_LOOK};

/// When the issuer is asked to look for a record.
#[derive(Debug, Clone, Default)]
pub struct Propagation {
    /// So long after the record was set.
    pub delay: Duration,
    /// Then as soon as all of these know it: `host:port`.
    pub resolvers: Vec<String>,
    /// For how long they are asked; zero asks none.
    pub timeout: Duration,
}

impl Propagation {
    /// Waits for a TXT record. The error is for a person.
    pub(super) async fn wait(&self, name: &str, value: &str) -> Result<(), String> {
        tokio::time::sleep(self.delay).await;
        if self.timeout.is_zero() {
            return Ok(());
        }
        let name = fqdn(name)?;
        let mut missing = String::new();
        let looking = async {
            for resolver in &self.resolvers {
                loop {
                    match has_text(resolver, &name, value).await {
                        Ok(true) => break,
                        Ok(false) => missing = format!("{resolver} does not know it"),
                        Err(cause) => missing = format!("{resolver}: {cause}"),
                    }
                    tokio::time::sleep(PROPAGATION_LOOK).await;
                }
            }
        };
        tokio::time::timeout(self.timeout, looking).await.map_err(|_| {
            format!(
                "the TXT record {name} was set and not found within {} s ({missing}): correct `resolvers`, or raise \
                 `propagation_timeout`",
                self.timeout.as_secs()
            )
        })
    }
}

async fn has_text(resolver: &str, name: &Name, value: &str) -> Result<bool, String> {
    let mut question = Message::query();
    question.metadata.recursion_desired = true;
    question.add_query(Query::query(name.clone(), RecordType::TXT));
    let asked = tokio::time::timeout(DNS_TIMEOUT, exchange(resolver, &question)).await;
    let (_, response) = asked.unwrap_or_else(|_| Err("no answer".to_owned()))?;
    let is_it = |data: &RData| matches!(data, RData::TXT(text) if text.to_string() == value);
    Ok(response.answers.iter().any(|record| is_it(&record.data)))
}

/// Sends a message and returns the response, also as its bytes.
pub(super) async fn exchange(server: &str, message: &Message) -> Result<(Vec<u8>, Message), String> {
    let request = message.to_vec().map_err(|error| error.to_string())?;
    let length = u16::try_from(request.len()).map_err(|_| "the message is too long".to_owned())?;
    let exchanged = async {
        let mut stream = TcpStream::connect(server).await?;
        // The length comes first (RFC 1035 section 4.2.2), in one write with the message.
        stream.write_all(&[&length.to_be_bytes(), request.as_slice()].concat()).await?;
        let mut response = vec![0; usize::from(stream.read_u16().await?)];
        stream.read_exact(&mut response).await?;
        Ok::<_, std::io::Error>(response)
    };
    let bytes = exchanged.await.map_err(|error| error.to_string())?;
    let response =
        Message::from_vec(&bytes).map_err(|error| format!("its response is malformed: {error}"))?;
    if response.id != message.id {
        return Err("its response belongs to another request".to_owned());
    }
    Ok((bytes, response))
}

pub(super) fn fqdn(name: &str) -> Result<Name, String> {
    let mut parsed = Name::from_ascii(name).map_err(|error| format!("{name:?} is no DNS name: {error}"))?;
    parsed.set_fqdn(true);
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use hickory_proto::rr::Record;
    use hickory_proto::rr::rdata::TXT;
    use tokio::net::TcpListener;

    use super::*;

    /// A resolver that knows the record from its third answer on.
    async fn resolver() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            for answer in 0.. {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut bytes = vec![0; usize::from(stream.read_u16().await.unwrap())];
                stream.read_exact(&mut bytes).await.unwrap();
                let request = Message::from_vec(&bytes).unwrap();
                let mut response = Message::response(request.id, request.op_code);
                if answer >= 2 {
                    let text = RData::TXT(TXT::new(vec!["digest".to_owned()]));
                    response.add_answer(Record::from_rdata(request.queries[0].name().clone(), 60, text));
                }
                let bytes = response.to_vec().unwrap();
                let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
                stream.write_all(&[&length[..], &bytes].concat()).await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn the_issuer_is_asked_when_every_resolver_knows_the_record() {
        let resolvers = vec![resolver().await, resolver().await];
        let timeout = Duration::from_secs(120);
        let mut propagation = Propagation { delay: Duration::ZERO, resolvers, timeout };
        propagation.wait("_acme-challenge.example.com", "digest").await.unwrap();
        propagation.timeout = Duration::from_secs(1);
        let error = propagation.wait("_acme-challenge.example.com", "another").await.unwrap_err();
        assert!(error.contains("within 1 s") && error.contains("does not know it"), "{error}");
    }
}
