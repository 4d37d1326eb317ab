//! Next steps for words that other servers' commands have and onehop's lack.
//!
//! Only adds to the parser's own error; a word that the parser takes never gets here.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, Error};

/// Commands of nginx, Caddy, pm2 and others.
const COMMANDS: [(&str, &str); 21] = [
    ("add-package", "onehop has no plugins"),
    ("build", "`onehop pack` makes one executable"),
    ("check", "`onehop validate` checks an Onehopfile"),
    ("config", "`onehop routes` shows what the Onehopfile means"),
    ("delete", "remove the `app` from the Onehopfile, then `onehop reload`"),
    ("dev", "`onehop app FILE --watch` restarts an application when its sources change"),
    ("file-server", "`onehop serve DIR --browse` serves a folder"),
    ("kill", "`onehop stop` ends a running onehop"),
    ("list", "`onehop status` shows what runs"),
    (
        "listen",
        "this looks like a line of a configuration: write it into an Onehopfile, then `onehop run`; to listen \
         somewhere else, `onehop serve DIR --listen :PORT`",
    ),
    ("metrics", "`onehop status` shows the counters; /metrics is at the address of `admin`"),
    ("monit", "`onehop status` shows what runs"),
    ("ps", "`onehop workers` shows the processes"),
    ("quit", "`onehop stop` ends a running onehop"),
    ("respond", "write `respond` into an Onehopfile, then `onehop run`"),
    ("restart", "`onehop reload` reads the Onehopfile again without losing a request"),
    ("save", "an Onehopfile is all that a start needs"),
    ("scale", "`onehop workers APP N` changes the number of an application's processes"),
    (
        "start",
        "`onehop run` serves an Onehopfile in the foreground; a service or `&` keeps it in the background",
    ),
    ("test", "`onehop validate` checks an Onehopfile"),
    ("upgrade", "install the new version over the old one, then restart the service"),
];

/// Options of the same. Where an option exists in some commands only, its hint says so.
const OPTIONS: [(&str, &str); 17] = [
    ("--address", "`--listen HOST:PORT` sets the address"),
    ("--bind", "`--listen HOST:PORT` sets the address"),
    ("--browse", "`onehop serve DIR --browse` lists folders; in an Onehopfile it is `file_server browse`"),
    ("--cwd", "in an Onehopfile, `cwd DIR` is an option of `app`"),
    ("--daemon", "onehop stays in the foreground; a service or `&` keeps it in the background"),
    ("--debug", "`--log json` writes every event as a JSON object"),
    ("--domain", "the host is in front of a site's block in an Onehopfile: `http://example.com { … }`"),
    ("--host", "`--listen HOST:PORT` sets the address"),
    ("--instances", "`--workers N` sets the number of processes"),
    ("--port", "`--listen :PORT` sets the port"),
    ("--root", "`onehop serve DIR` names the folder; in an Onehopfile it is `root * DIR`"),
    ("--verbose", "`--log json` writes every event as a JSON object"),
    ("-d", "onehop stays in the foreground; a service or `&` keeps it in the background"),
    ("-i", "`--workers N` sets the number of processes"),
    ("-p", "`--listen :PORT` sets the port"),
    ("-s", "`onehop reload` and `onehop stop` are what `nginx -s` does"),
    ("-t", "`onehop validate` is what `nginx -t` does"),
];

/// The error with a next step, where the word is known from elsewhere. Replaces the parser's own tip.
pub(crate) fn explain(mut error: Error) -> Error {
    let (kind, known): (_, &[(&str, &str)]) = match error.kind() {
        clap::error::ErrorKind::InvalidSubcommand => (ContextKind::InvalidSubcommand, &COMMANDS),
        clap::error::ErrorKind::UnknownArgument => (ContextKind::InvalidArg, &OPTIONS),
        _ => return error,
    };
    let Some(ContextValue::String(word)) = error.get(kind) else { return error };
    let word = word.split('=').next().unwrap_or_default();
    let Some((_, hint)) = known.iter().find(|(theirs, _)| *theirs == word) else { return error };
    let hint = StyledStr::from(*hint);
    for nearest in [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::TrailingArg] {
        error.remove(nearest);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![hint]));
    error
}
