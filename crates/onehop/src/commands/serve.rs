//! `onehop serve`: settings for one folder, built without a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use onehop_config::checked::{
    Admin as CheckedAdmin, Checked, Encode, Encoding, FileServer, Global, Listener, Route, Site, Spa, Step,
    Template,
};
use onehop_server::limits;

use super::serving::{Serving, serve_until_stopped};
use crate::arguments::{Admin, Serve};
use crate::configuration::show_address;
use crate::failure::Failure;
use crate::listen;
use crate::report::Reporter;

/// Bound on what is held in memory, in bytes; the same as an Onehopfile's default. Larger folders are
/// served all the same, the rest from disk.
const MEMORY_BYTES: u64 = 512 * 1024 * 1024;

/// Smaller bodies are left as they are, in bytes; Caddy's default.
const ENCODE_BYTES_MIN: u64 = 512;

/// What `encode` compresses where nothing else is said; the kinds of text that a build or a folder of
/// documents holds.
const ENCODED_TYPES: [&str; 14] = [
    "application/javascript*",
    "application/json*",
    "application/ld+json*",
    "application/manifest+json*",
    "application/rss+xml*",
    "application/atom+xml*",
    "application/wasm*",
    "application/xhtml+xml*",
    "application/xml*",
    "font/otf*",
    "font/ttf*",
    "image/svg+xml*",
    "image/vnd.microsoft.icon*",
    "text/*",
];

pub(crate) fn serve(arguments: &Serve) -> Result<(), Failure> {
    let form = arguments.process.log;
    start(arguments).map_err(|failure| failure.in_form(form))
}

fn start(arguments: &Serve) -> Result<(), Failure> {
    let reporter = Reporter::new(arguments.process.log);
    let root = folder(&arguments.directory)?;
    reporter.starting(&format!("serves {}", root.display()));
    let checked = settings(arguments, &root)?;
    let again = checked.clone();
    serve_until_stopped(Serving {
        checked,
        process: &arguments.process,
        subject: &root,
        load: Arc::new(move || Ok(again.clone())),
        watch: None,
        reporter,
    })
}

/// The folder, absolute. Links on the way to it are kept: a release folder may be switched later.
fn folder(directory: &Path) -> Result<PathBuf, Failure> {
    let shown = directory.display();
    match std::fs::metadata(directory) {
        Ok(metadata) if metadata.is_dir() => std::path::absolute(directory)
            .map_err(|error| Failure::failed(format!("there is no working directory: {error}"))),
        Ok(_) => Err(Failure::wrong(format!(
            "{shown} is not a folder\n  an Onehopfile is served with: onehop run {shown}"
        ))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(Failure::wrong(format!(
            "there is no folder {shown}\n  has the application been built? (for example: npm run build)"
        ))),
        Err(error) => Err(Failure::wrong(format!("cannot read {shown}: {error}"))),
    }
}

fn settings(arguments: &Serve, root: &Path) -> Result<Checked, Failure> {
    let address = match &arguments.listen {
        Some(listen::Address(address)) => address.clone(),
        None => listen::from_environment(std::env::var_os("PORT")).map_err(Failure::wrong)?,
    };
    let step = |step| Route { matcher: None, group: None, step, line: 0 };
    let last = if arguments.spa {
        Step::Spa(Spa {
            root: root.to_path_buf(),
            index: "index.html".into(),
            immutable: Vec::new(),
            dotfiles: false,
            follow_outside: false,
        })
    } else {
        Step::FileServer(files(arguments.browse))
    };
    let root = Template::text(root.to_str().ok_or_else(|| {
        Failure::wrong(format!("{} is not UTF-8, and a root must be", root.display()))
    })?);
    let site = Site {
        label: show_address(&address),
        hosts: Vec::new(),
        routes: vec![step(Step::Root(root)), step(Step::Encode(encode())), step(last)],
        logs: Vec::new(),
    };
    Ok(Checked {
        global: global(arguments.admin),
        listeners: vec![Listener { address, tls: false, sites: vec![0] }],
        sites: vec![site],
    })
}

fn files(browse: bool) -> FileServer {
    FileServer {
        root: None,
        hide: Vec::new(),
        index: vec!["index.html".into(), "index.txt".into()],
        precompressed: Vec::new(),
        browse,
        status: None,
        pass_through: false,
        canonical_uris: true,
        dotfiles: false,
        follow_outside: false,
    }
}

fn encode() -> Encode {
    Encode {
        encodings: vec![Encoding::Zstd, Encoding::Brotli, Encoding::Gzip],
        minimum_length: ENCODE_BYTES_MIN,
        types: ENCODED_TYPES.map(String::from).to_vec(),
    }
}

fn global(admin: Admin) -> Global {
    Global {
        admin: match admin {
            Admin::Off => CheckedAdmin::Off,
            Admin::Address(address) => CheckedAdmin::Address(address),
        },
        memory_bytes: MEMORY_BYTES,
        threads: None,
        grace_period: limits::GRACE_PERIOD,
        auto_https: false,
        http_port: 80,
        https_port: 443,
    }
}
