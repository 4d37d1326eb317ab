//! From settings to a command that can be started: program, arguments, environment, descriptors.
//!
//! Starts nothing: `process.rs` does.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use onehop_archive::installed::Packed;
use onehop_config::checked::{App, AppProtocol, AppRun};

use crate::account::{self, Account};
use crate::data;
use crate::embedded;
use crate::environment::{self, Variables};
use crate::folder::PrivateFolder;
use crate::leftovers::INVOCATION_ID;
use crate::loaded::{FileState, Files};
use crate::port::{Port, Ports};

/// All that a process is started with.
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    pub(crate) environment: Variables,
    pub(crate) directory: PathBuf,
    pub(crate) account: Option<Account>,
    /// For descriptors 3 and up.
    pub(crate) descriptors: Vec<OwnedFd>,
    /// Whether it is a handler's process, run by Node.
    pub(crate) is_node: bool,
}

impl Launch {
    /// The files that its command line and its settings name, and its folder, in the state of now.
    pub(crate) fn files(&self, app: &App) -> Files {
        let words: Vec<PathBuf> = match &app.run {
            AppRun::Handler { file, runtime_arguments, .. } => {
                std::iter::once(file.clone()).chain(runtime_arguments.iter().map(PathBuf::from)).collect()
            }
            AppRun::Command { line } => line.iter().skip(1).map(PathBuf::from).collect(),
            AppRun::Elsewhere { .. } => Vec::new(),
        };
        let words = words.into_iter().map(|word| self.directory.join(word)).filter(|path| path.is_file());
        let named = app.environment.files.iter().chain([&self.program, &self.directory]).cloned();
        words
            .chain(named)
            .map(|path| (FileState::now(&path), path))
            .map(|(state, path)| (path, state))
            .collect()
    }
}

/// Our ends of what connects a handler's process with the server.
pub(crate) struct HandlerSockets {
    pub(crate) control: UnixStream,
    /// One for each core.
    pub(crate) data: Vec<UnixStream>,
    /// The Unix socket on which the process may ask to be spoken to in HTTP.
    pub(crate) http: PathBuf,
    /// The user that must listen there, if it is not the server's own.
    pub(crate) uid: Option<u32>,
}

/// Where a program may listen.
pub(crate) struct ProgramAddresses {
    pub(crate) socket: PathBuf,
    pub(crate) port: Port,
    /// The user that must listen on the socket, if it is not the server's own.
    pub(crate) uid: Option<u32>,
}

/// What the server gives each process.
pub(crate) struct Context<'a> {
    /// Holds the process's socket for HTTP.
    pub(crate) folder: &'a PrivateFolder,
    /// Distinguishes that socket from others there.
    pub(crate) number: u64,
    /// Cores, each with a connection to a handler's process.
    pub(crate) cores: usize,
    pub(crate) watch: bool,
    /// The pack that this server is.
    pub(crate) packed: Option<&'a Packed>,
    pub(crate) ports: &'a Ports,
}

/// A handler's process, with a connection to each core.
pub(crate) fn handler(app: &App, context: &Context<'_>) -> Result<(Launch, HandlerSockets), String> {
    let Context { folder, number, cores, watch, packed, .. } = *context;
    let AppRun::Handler { file, runtime, runtime_arguments, arguments } = &app.run else {
        return Err("this application has no handler".to_owned());
    };
    let (mut environment, account) = environment_and_account(app, packed)?;
    if environment::get(&environment, "NODE_ENV").is_none() {
        environment::set(&mut environment, "NODE_ENV", if watch { "development" } else { "production" });
    }
    if app.platform_response {
        environment::set(&mut environment, "ONEHOP_PLATFORM_RESPONSE", "1");
    }
    if let Some(files) = &app.files {
        environment::set(&mut environment, "ONEHOP_FILES", files);
    }
    environment::set(
        &mut environment,
        "ONEHOP_LANES",
        format!("{FIRST_DESCRIPTOR}-{}", FIRST_DESCRIPTOR + cores),
    );
    environment::set(&mut environment, INVOCATION_ID, &folder.invocation.id);
    let uid = account.as_ref().map(|account| account.uid);
    let socket = own_folder(folder, account.as_ref())?.join(format!("http-{number}.sock"));
    environment::set(&mut environment, "ONEHOP_HTTP_SOCKET", &socket);
    if app.protocol == AppProtocol::Http {
        environment::set(&mut environment, "ONEHOP_PROTOCOL", "http");
    }
    if let Some(port) = app.port {
        environment::set(&mut environment, "ONEHOP_PORT", port.to_string());
    }
    let program = find_runtime(runtime.as_deref(), &environment, &app.directory, packed.is_some())?;
    let is_node = program.file_name().is_some_and(|name| name.to_string_lossy().starts_with("node"));
    let library = embedded::unpacked()?;
    let mut all = before_the_file(&library, is_node, runtime_arguments);
    all.push(file.into());
    all.extend(arguments.iter().map(OsString::from));
    let failed = |error: std::io::Error| format!("cannot make its connections: {error}");
    let (control, theirs) = UnixStream::pair().map_err(failed)?;
    let mut descriptors = vec![theirs.into()];
    let mut data = Vec::new();
    for _ in 0..cores {
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        data.push(ours);
        descriptors.push(theirs.into());
    }
    let launch = Launch {
        program,
        arguments: all,
        environment,
        directory: app.directory.clone(),
        account,
        descriptors,
        is_node,
    };
    Ok((launch, HandlerSockets { control, data, http: socket, uid }))
}

/// Arguments of the runtime, up to the application's file.
fn before_the_file(library: &Path, is_node: bool, given: &[String]) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    if is_node {
        // Where it is when it is stuck: `stack.rs`.
        all.push("--trace-sigint".into());
        // The application stays Node's main module. Before the preloads that the settings name: these see what it sees.
        all.push("--import".into());
        all.push(file_url(&library.join("preload.mjs")).into());
    }
    all.extend(given.iter().map(OsString::from));
    if !is_node {
        // Bun would itself listen for a main module that exports a handler.
        all.push(library.join("worker.mjs").into());
    }
    all
}

/// A program that speaks HTTP.
pub(crate) fn program(app: &App, context: &Context<'_>) -> Result<(Launch, ProgramAddresses), String> {
    let Context { folder, number, packed, ports, .. } = *context;
    let AppRun::Command { line } = &app.run else {
        return Err("this application is no program".to_owned());
    };
    let (mut environment, account) = environment_and_account(app, packed)?;
    let socket = own_folder(folder, account.as_ref())?.join(format!("app-{number}.sock"));
    let uid = account.as_ref().map(|account| account.uid);
    let addresses = ProgramAddresses { socket, port: ports.take()?, uid };
    environment::set(&mut environment, INVOCATION_ID, &folder.invocation.id);
    environment::set(&mut environment, "ONEHOP_SOCKET", &addresses.socket);
    environment::set(&mut environment, "PORT", addresses.port.address().port().to_string());
    environment::set(&mut environment, "HOST", addresses.port.address().ip().to_string());
    let (name, arguments) = line.split_first().ok_or("the command is empty")?;
    let program = find_program(name, &environment, &app.directory).ok_or_else(|| {
        format!("`{name}` is not found: it is no program in {} and not on PATH", app.directory.display())
    })?;
    let launch = Launch {
        program,
        arguments: arguments.iter().map(OsString::from).collect(),
        environment,
        directory: app.directory.clone(),
        account,
        descriptors: Vec::new(),
        is_node: false,
    };
    Ok((launch, addresses))
}

/// A folder for sockets that only the application's user may enter.
fn own_folder(folder: &PrivateFolder, account: Option<&Account>) -> Result<PathBuf, String> {
    let owner = account.map(|account| (account.uid, account.gid));
    folder
        .subfolder(&format!("user-{}", owner.map_or(0, |(uid, _)| uid)), owner)
        .map_err(|error| format!("cannot make a folder for its socket: {error}"))
}

/// The URL of a file: Node takes the name of a preload for one, as far as it can.
fn file_url(path: &Path) -> String {
    let mut url = "file://".to_owned();
    for byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(byte) {
            url.push(char::from(*byte));
        } else {
            let _ = write!(url, "%{byte:02X}");
        }
    }
    url
}

/// The first descriptor after standard input, output and error: the control connection.
const FIRST_DESCRIPTOR: usize = 3;

/// Environment and account, which is what can be wrong in the settings.
fn environment_and_account(
    app: &App,
    packed: Option<&Packed>,
) -> Result<(Variables, Option<Account>), String> {
    let account = match &app.user {
        Some((user, group)) => Some(account::look_up(user, group.as_deref())?),
        None => None,
    };
    let mut own: Variables = std::env::vars_os().collect();
    if let Some((name, home, shell)) = account.as_ref().and_then(|account| account.entry.as_ref()) {
        environment::set(&mut own, "USER", name);
        environment::set(&mut own, "LOGNAME", name);
        environment::set(&mut own, "HOME", home);
        environment::set(&mut own, "SHELL", shell);
    }
    if !app.directory.is_dir() {
        return Err(format!(
            "its folder {} is missing: was it moved, or is its mount missing?",
            app.directory.display()
        ));
    }
    let data = app.data.as_ref().map(|data| data::make_folder(data, account.as_ref())).transpose()?;
    let mut settings = app.environment.clone();
    // Variables of files that were left out of the pack come from the environment that it is started with.
    settings.pass.extend(packed.into_iter().flat_map(|packed| packed.index.variables.iter().cloned()));
    let mut all = environment::of_worker(&settings, own)?;
    if let Some(data) = data {
        environment::set(&mut all, data::VARIABLE, data);
    }
    if let Some(programs) = packed.and_then(Packed::runtime_programs) {
        environment::put_in_front_of_path(&mut all, &programs)?;
    }
    Ok((all, account))
}

fn find_runtime(
    named: Option<&str>,
    environment: &Variables,
    directory: &Path,
    is_packed: bool,
) -> Result<PathBuf, String> {
    let find = |name: &str| find_program(name, environment, directory);
    match named {
        Some(name @ ("node" | "bun")) if is_packed => find(name).ok_or_else(|| {
            format!("its runtime `{name}` is not on PATH, and not in this pack: pack with `--runtime {name}`, or install it")
        }),
        Some(name) => find(name).ok_or_else(|| {
            format!("its runtime `{name}` is not found: install it, or name the path of one that is there")
        }),
        None if is_packed => find("node").or_else(|| find("bun")).ok_or_else(|| {
            "neither `node` nor `bun` is on PATH, and none is in this pack: pack with `--runtime node`, or install \
             Node.js 20 or later"
                .to_owned()
        }),
        None => find("node").or_else(|| find("bun")).ok_or_else(|| {
            "neither `node` nor `bun` is on PATH: install Node.js 20 or later, or name the runtime's path"
                .to_owned()
        }),
    }
}

/// As a shell would find it, with the worker's own PATH and from its own folder.
fn find_program(name: &str, environment: &Variables, directory: &Path) -> Option<PathBuf> {
    if name.contains('/') {
        return Some(directory.join(name)).filter(|path| is_program(path));
    }
    let path = environment::get(environment, "PATH")?;
    std::env::split_paths(path).map(|folder| directory.join(folder).join(name)).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preload_is_named_by_a_url_whatever_its_folder_is_called() {
        assert_eq!(
            file_url(Path::new("/tmp/onehop-node-0-1f/preload.mjs")),
            "file:///tmp/onehop-node-0-1f/preload.mjs"
        );
        assert_eq!(file_url(Path::new("/t p/50%/\u{e9}#?.mjs")), "file:///t%20p/50%25/%C3%A9%23%3F.mjs");
    }
}
