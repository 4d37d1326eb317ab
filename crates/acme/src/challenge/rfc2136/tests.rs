//! Against a small server that knows one zone and one key.

use hickory_proto::op::OpCode;
use hickory_proto::rr::rdata::SOA;
use hickory_proto::rr::{DNSClass, TSigResponseContext};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

const SECRET: &[u8] = b"a secret of thirty-two characters";

/// Answers `count` requests and returns the updates: whether each was signed with the key, and its record.
async fn serve(listener: TcpListener, count: usize) -> Vec<String> {
    let mut updates = Vec::new();
    for _ in 0..count {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut bytes = vec![0; usize::from(stream.read_u16().await.unwrap())];
        stream.read_exact(&mut bytes).await.unwrap();
        let request = Message::from_vec(&bytes).unwrap();
        let mut response = Message::response(request.id, request.op_code);
        let zone = fqdn("example.com").unwrap();
        if request.op_code == OpCode::Query {
            let soa = SOA::new(zone.clone(), zone.clone(), 1, 2, 3, 4, 5);
            response.add_authority(Record::from_rdata(zone, 60, RData::SOA(soa)));
        } else {
            let signer = signer(SECRET);
            match signer.verify_message_byte(&bytes, None, true) {
                Ok((mac, time, _)) => {
                    let record = &request.authorities[0];
                    let what = if record.dns_class == DNSClass::NONE { "remove" } else { "add" };
                    updates.push(format!(
                        "{what} {} {} in {}",
                        record.name,
                        record.data,
                        request.queries[0].name()
                    ));
                    let context = TSigResponseContext::new(request.id, time, signer, mac, None);
                    response.set_signature(context.sign(&response.to_vec().unwrap()).unwrap());
                }
                Err(_) => response.metadata.response_code = ResponseCode::NotAuth,
            }
        }
        let bytes = response.to_vec().unwrap();
        stream
            .write_all(&[&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes.as_slice()].concat())
            .await
            .unwrap();
    }
    updates
}

fn signer(secret: &[u8]) -> TSigner {
    let name = fqdn("update-key").unwrap();
    TSigner::new(secret.to_vec(), TsigAlgorithm::HmacSha256, name, TSIG_FUDGE_SECONDS).unwrap()
}

fn solver(server: String, zone: Option<&str>, secret: &[u8]) -> Rfc2136 {
    Rfc2136 {
        server,
        zone: zone.map(str::to_owned),
        key_name: "update-key".into(),
        algorithm: "HMAC-SHA256".into(),
        secret: secret.to_vec(),
        ttl_seconds: 60,
    }
}

fn challenge(name: &str) -> Challenge {
    Challenge::Dns01 { name: name.into(), value: "digest".into() }
}

async fn listen() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    (listener, address)
}

#[tokio::test]
async fn a_record_is_added_and_removed_in_the_zone_that_the_server_names() {
    let (listener, address) = listen().await;
    // A question and an update for each.
    let server = tokio::spawn(serve(listener, 4));
    let solver = solver(address, None, SECRET);
    let challenge = challenge("_acme-challenge.www.example.com");
    solver.present(&challenge).await.unwrap();
    solver.remove(&challenge).await;
    let expected = ["add", "remove"]
        .map(|what| format!("{what} _acme-challenge.www.example.com. digest in example.com."));
    assert_eq!(server.await.unwrap(), expected);
}

#[tokio::test]
async fn a_wrong_key_and_a_foreign_zone_are_errors_with_a_next_step() {
    let (listener, address) = listen().await;
    let server = tokio::spawn(serve(listener, 1));
    let wrong = solver(address.clone(), Some("example.com"), b"another secret");
    let error = wrong.present(&challenge("_acme-challenge.example.com")).await.unwrap_err();
    assert!(error.contains("the key update-key must be known to the server"), "{error}");
    assert!(server.await.unwrap().is_empty());

    let foreign = solver(address, Some("example.org"), SECRET);
    let error = foreign.present(&challenge("_acme-challenge.example.com")).await.unwrap_err();
    assert!(error.contains("not in the zone example.org"), "{error}");
    assert!(!format!("{foreign:?}").contains("secret"));
}
