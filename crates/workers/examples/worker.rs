//! Sends a request to a worker over the worker protocol, and prints the response. A thread plays the worker.
//!
//! ```sh
//! cargo run -p onehop-workers --example worker
//! ```

use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use onehop_config::{FileKind, FileSource, load};
use onehop_wire::{ConnectionKind, Facts, Payload, RequestParts, ResponseParts, Sender, decode, encode};
use onehop_workers::pool::Choice;
use onehop_workers::stream::{Stream, next_frame};
use onehop_workers::{Affinity, Pool, Transport, Windows, Worker, WorkerConnections, WorkerId, WorkerIndex};

fn main() -> io::Result<()> {
    let (server_end, worker_end) = UnixStream::pair()?;
    let worker = std::thread::spawn(move || play_worker(worker_end));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, send_request(server_end))?;
    drop(local);
    drop(runtime);
    worker.join().map_err(|_| io::Error::other("the worker panicked"))?
}

async fn send_request(server_end: UnixStream) -> io::Result<()> {
    // The supervisor makes a worker once its process is ready; its connections report to it.
    let report = Arc::new(|event| println!("supervisor: {event:?}"));
    let worker = Worker::new(WorkerId(1), WorkerIndex(0), Transport::Frames, 8, report);
    let pool = pool()?;
    let connections = WorkerConnections::new(0, Windows::default());
    connections.attach(Arc::clone(&worker), server_end);
    pool.admit(worker);

    // A request takes a slot at the worker with the fewest requests, and opens a stream on this core's connection to it.
    let Choice::Now(worker) = pool.choose(0, None, Affinity::Any) else { panic!("the worker has room") };
    worker.start();
    println!("{} of {} slots taken", worker.in_flight(), pool.slots());
    let connection = connections.find(worker.id).expect("it is attached");
    let stream = Stream::open(&connection).expect("the connection has slots");
    let parts = RequestParts { method_code: 1, facts: Facts::NONE, client: None, id: 1, length: Some(0) };
    let written = stream.write(true, |out, slot, generation| {
        let head = |head: &mut onehop_wire::HeadWriter<'_>| {
            head.target(b"/hello");
            head.authority(b"example.com");
        };
        encode::request(out, slot, generation, true, &parts, head, b"")
    });
    written.map_err(io::Error::other)?;

    let mut frames = Vec::new();
    poll_fn(|context| stream.poll_frames(&mut frames, context))
        .await
        .map_err(|_| io::Error::other("lost"))?;
    if let Some((frame, _)) = next_frame(&frames)
        && let Payload::Response(response) = frame.payload
    {
        println!("{}: {}", response.status, String::from_utf8_lossy(response.body));
    }
    pool.give_back(&worker);
    println!("{} requests handed over, {} in flight", worker.started(), worker.in_flight());
    Ok(())
}

/// A pool with the settings of an application.
fn pool() -> io::Result<Arc<Pool>> {
    let file = std::env::temp_dir().join(format!("Onehopfile-{}", std::process::id()));
    std::fs::write(&file, ":8080\napp {\n\tcommand true\n}\n")?;
    let loaded = load(&file, FileKind::Onehopfile, &FileSource);
    std::fs::remove_file(&file)?;
    let checked = loaded.map_err(|problems| io::Error::other(format!("{problems:?}")))?.checked;
    let app = checked.apps().first().map(|app| Arc::clone(app));
    Ok(Pool::new(app.ok_or_else(|| io::Error::other("no application"))?))
}

/// Answers one request with its path, then closes the connection.
fn play_worker(mut socket: UnixStream) -> io::Result<()> {
    let mut input = Vec::new();
    loop {
        let mut piece = [0; 1024];
        let count = socket.read(&mut piece)?;
        input.extend_from_slice(&piece[..count]);
        let decoded = decode(&input, Sender::Server, ConnectionKind::Data).map_err(io::Error::other)?;
        let Some((frame, _)) = decoded else { continue };
        let Payload::Request(request) = frame.payload else { continue };
        let line = request.line().map_err(io::Error::other)?;
        let body = [b"worker reached at ", line.target].concat();
        let parts = ResponseParts { status: 200, length: Some(body.len() as u64) };
        let mut out = Vec::new();
        encode::response(&mut out, frame.slot, frame.generation, true, &parts, |_| {}, &body)
            .map_err(io::Error::other)?;
        return socket.write_all(&out);
    }
}
