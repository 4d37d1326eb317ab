//! What limits cost a request that none of them holds up: a server in this process, with the named limits before a
//! proxied upstream; the upstream and the client are a process of their own, so that an instruction counter sees the
//! server alone. `cargo xtask bench limits` runs it under callgrind with two numbers of requests: the difference is
//! what requests cost, without the start.
//! `cargo run --release -p onehop-server --example limit_cost -- all 10000`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use onehop_config::checked::{Admin, Checked};
use onehop_config::{FileKind, FileSource, load};
use onehop_server::control::SuperviseOptions;
use onehop_server::limits::Timeouts;
use onehop_server::{Options, Server};

/// The limits by name: lines of the global block, and of the site.
const LIMITS: [(&str, &str, &str); 6] = [
    ("none", "", ""),
    ("fixed", "", "limit in_flight 64 queue 128"),
    ("adaptive", "", "limit adaptive queue 128"),
    ("rate", "", "rate_limit 1000000r/s"),
    ("three", "limit in_flight 512 queue 128", "limit in_flight 64 queue 128\nlimit / adaptive queue 128"),
    (
        "all",
        "limit in_flight 512 queue 128",
        "limit in_flight 64 queue 128\nlimit / adaptive queue 128 priority high\nrate_limit 1000000r/s announce",
    ),
];

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"answer\":42}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["ask", requests] => ask(requests.parse()?),
        [name, requests] => {
            let limits = LIMITS.iter().find(|limits| limits.0 == *name);
            let names = LIMITS.map(|limits| limits.0).join(", ");
            let (_, global, site) = limits.ok_or(format!("no such limits; there are {names}"))?;
            serve(global, site, requests)
        }
        _ => Err("it is called with limits and a number of requests: limit_cost all 10000".into()),
    }
}

/// Serves until whoever asks has asked so often.
fn serve(global: &str, site: &str, requests: &str) -> Result<(), Box<dyn std::error::Error>> {
    let mut other = Command::new(std::env::current_exe()?);
    let mut other = other.args(["ask", requests]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (to, from) = (other.stdin.take(), other.stdout.take());
    let (Some(mut to), Some(from)) = (to, from) else { return Err("there are no pipes".into()) };
    let mut upstream = String::new();
    BufReader::new(from).read_line(&mut upstream)?;

    let folder = tempfile::TempDir::new()?;
    let file = folder.path().join("Onehopfile");
    let upstream = upstream.trim();
    let text = format!(
        "{{\n{global}\n}}\nhttp://localhost:0 {{\nbind 127.0.0.1\n{site}\nreverse_proxy {upstream}\n}}\n"
    );
    std::fs::write(&file, text)?;
    let options = Options {
        threads: NonZeroUsize::new(1),
        events: Arc::new(|_| {}),
        control_socket: None,
        load: Arc::new({
            let file = file.clone();
            move || read(&file)
        }),
        compressor: None,
        supervise: SuperviseOptions::default(),
        timeouts: Timeouts::default(),
        connections_max: None,
        packed: None,
        recent: Arc::default(),
        server_log: Arc::default(),
        history: None,
    };
    let running = Server::start(read(&file)?, options)?;
    let address = running.addresses().first().cloned().unwrap_or_default();
    writeln!(to, "{address}")?;
    let is_served = other.wait()?.success();
    running.stop();
    running.wait();
    if is_served { Ok(()) } else { Err("not every request was answered".into()) }
}

fn read(file: &Path) -> Result<Checked, String> {
    let loaded = load(file, FileKind::Onehopfile, &FileSource)
        .map_err(|problems| problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))?;
    let mut checked = loaded.checked;
    checked.global.admin = Admin::Off;
    Ok(checked)
}

/// The upstream, and one client that asks it through the server, one request after the other.
fn ask(requests: u64) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    let mut address = String::new();
    io::stdin().lock().read_line(&mut address)?;
    let mut stream = TcpStream::connect(address.trim())?;
    stream.set_nodelay(true)?;
    let mut buffer = [0; 4096];
    for _ in 0..requests {
        stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nUser-Agent: cost\r\n\r\n")?;
        let mut length = 0;
        while !buffer.get(..length).is_some_and(|read| read.ends_with(b"{\"answer\":42}")) {
            match stream.read(buffer.get_mut(length..).unwrap_or_default())? {
                0 => return Err("the server has closed".into()),
                more => length += more,
            }
        }
        if !buffer.starts_with(b"HTTP/1.1 200") {
            return Err(String::from_utf8_lossy(&buffer).into_owned().into());
        }
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut buffer, mut length) = ([0; 4096], 0);
    loop {
        match stream.read(buffer.get_mut(length..).unwrap_or_default())? {
            0 => return Ok(()),
            more => length += more,
        }
        if buffer.get(..length).is_some_and(|read| read.ends_with(b"\r\n\r\n")) {
            stream.write_all(ANSWER)?;
            length = 0;
        }
    }
}
