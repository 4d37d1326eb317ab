//! Keeps connections to a server open and sends requests on them, one after the other:
//!
//! ```text
//! cargo run -p onehop-upstream --example pool -- 127.0.0.1:8080
//! ```
//!
//! Without an address it sends them to a small server of its own.

use std::error::Error;
use std::future::poll_fn;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use onehop_connection::core::{Core, Shared};
use onehop_connection::limits::Timeouts;
use onehop_http1::{AnswerRead, AskHead, BodyLength, BodyRead};

use onehop_upstream::peer::{Endpoint, PeerSettings, Versions};
use onehop_upstream::{Link, Mailboxes, Peer, Pools, Reuse};

fn main() -> Result<(), Box<dyn Error>> {
    let address = match std::env::args().nth(1) {
        Some(address) => address.parse()?,
        None => serve()?,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())?;
    runtime.block_on(run(address))
}

async fn run(address: SocketAddr) -> Result<(), Box<dyn Error>> {
    let settings = PeerSettings {
        tls: None,
        versions: Versions::Http1,
        dial_timeout: Duration::from_secs(3),
        fallback_delay: None,
        probe_interval: None,
        idle_timeout: Duration::from_secs(60),
        idle_max: 32,
        connections_min: 1,
        connections_max: Some(4),
        queue: (16, Duration::from_secs(1)),
    };
    let peer = Peer::new(address.to_string(), Endpoint::Address(address), settings);
    // One core, alone in its process.
    let core = Rc::new(Core::new(0, Arc::new(Shared::new(1, 64, Timeouts::default()))));
    let pools = Pools::new(core, Arc::new(Mailboxes::new(1)));
    pools.keep_open(1, [&peer]);
    pools.tick();
    for number in 1..=3 {
        let connection = pools.get(&peer, Reuse::Any).await.map_err(|error| error.to_string())?;
        let (status, bytes, unread) = exchange(&connection, address).await?;
        println!("request {number}: status {status}, {bytes} bytes");
        if connection.reuse(unread) {
            pools.give_back(&peer, connection);
        }
    }
    println!("{:?}", peer.counts());
    Ok(())
}

/// Sends one request and reads its response: the status, the bytes of the body, and those that were not parsed.
async fn exchange(connection: &Link, address: SocketAddr) -> Result<(u16, usize, usize), Box<dyn Error>> {
    let fields = format!("Host: {address}\r\n");
    let head = AskHead {
        method: b"GET",
        target: b"/",
        fields: fields.as_bytes(),
        body: BodyLength::None,
        upgrade: false,
        trailers: false,
    };
    let mut output = Vec::new();
    connection.codec().write_request_head(&mut output, head).map_err(|refusal| format!("{refusal:?}"))?;
    connection.codec().finish(&mut output, &[]);
    connection.write(&output, &[]).await?;
    let mut input = onehop_connection::buffers::Input::new();
    let mut head = onehop_http1::ResponseHead::new();
    loop {
        let read = connection.codec().read_head(input.unread(), &mut head);
        match read.map_err(|refusal| format!("{refusal:?}"))? {
            Some(AnswerRead::Informational { consumed }) => input.consume(consumed),
            Some(AnswerRead::Final { consumed } | AnswerRead::Tunnel { consumed }) => {
                input.consume(consumed);
                break;
            }
            None => {
                if poll_fn(|context| connection.poll_fill(&mut input, context)).await? == 0 {
                    return Err("closed without a response".into());
                }
            }
        }
    }
    connection.note_keep_alive(&head);
    let mut bytes = 0;
    loop {
        let read = connection.codec().read_body(input.unread());
        match read.map_err(|refusal| format!("{refusal:?}"))? {
            BodyRead::Data { at, consumed } => {
                bytes += at.len();
                input.consume(consumed);
            }
            BodyRead::End { consumed } => {
                input.consume(consumed);
                return Ok((head.status(), bytes, input.unread().len()));
            }
            BodyRead::NeedMore => {
                if poll_fn(|context| connection.poll_fill(&mut input, context)).await? == 0 {
                    let end = connection.codec().read_eof(input.unread().len());
                    end.map_err(|refusal| format!("{refusal:?}"))?;
                }
            }
        }
    }
}

/// A server that gives the same response to each request, on a thread of its own.
fn serve() -> std::io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let (mut stream, mut bytes) = (stream, [0; 4096]);
                while stream.read(&mut bytes).is_ok_and(|count| count > 0) {
                    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";
                    if stream.write_all(response).is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok(address)
}
