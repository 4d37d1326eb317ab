//! Runs an application, prints what happens until it is ready, then ends it.
//!
//! `cargo run -p onehop-supervisor --example supervise -- COMMAND...` runs a program that listens on $ONEHOP_SOCKET or
//! $PORT; without a command the example runs itself as one.

use std::error::Error;
use std::fs;
use std::os::unix::net::UnixListener;
use std::sync::{Arc, mpsc};

use onehop_config::{FileKind, FileSource, load};
use onehop_supervisor::{AppEvent, SuperviseOptions, Supervisor};
use onehop_workers::Windows;

/// The argument with which the example runs itself.
const AS_PROGRAM: &str = "--as-program";

fn main() -> Result<(), Box<dyn Error>> {
    let mut command: Vec<String> = std::env::args().skip(1).collect();
    if command == [AS_PROGRAM] {
        return serve();
    }
    if command.is_empty() {
        command = vec![std::env::current_exe()?.display().to_string(), AS_PROGRAM.to_owned()];
    }
    let folder = std::env::temp_dir().join(format!("onehop-supervise-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("Onehopfile");
    fs::write(
        &file,
        format!("http://localhost {{\n\tapp {{\n\t\tcommand {}\n\t}}\n}}\n", command.join(" ")),
    )?;
    let loaded =
        load(&file, FileKind::Onehopfile, &FileSource).map_err(|problems| format!("{problems:?}"))?;

    let (sender, events) = mpsc::channel();
    let sink = Arc::new(move |event| drop(sender.send(event)));
    let supervisor = Supervisor::new(SuperviseOptions::default(), None, 1, Windows::default(), sink);
    let pools = supervisor.start(loaded.checked.apps().into_iter().cloned().collect())?;
    for event in &events {
        println!("{event:?}");
        if matches!(event, AppEvent::Ready { .. } | AppEvent::Failing { .. }) {
            break;
        }
    }
    let slots: u64 = pools.iter().map(|pool| pool.slots()).sum();
    println!("requests that its workers take at a time: {slots}");
    supervisor.stop();
    events.try_iter().for_each(|event| println!("{event:?}"));
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// A program that takes connections, and does nothing with them.
fn serve() -> Result<(), Box<dyn Error>> {
    let socket = std::env::var_os("ONEHOP_SOCKET").ok_or("ONEHOP_SOCKET is not set")?;
    for connection in UnixListener::bind(socket)?.incoming() {
        drop(connection?);
    }
    Ok(())
}
