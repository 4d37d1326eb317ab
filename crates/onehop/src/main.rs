//! The program `onehop`: commands, wiring, exit codes.
//!
//! Turns what was typed into calls of the server crate and what comes back into text and an exit code.
//! Never touches a request; that is the server's. Read `arguments/` for what can be asked, then
//! `commands/`.
#![forbid(unsafe_code)]

mod arguments;
mod commands;
mod configuration;
mod control_client;
mod control_path;
mod failure;
mod listen;
mod own_program;
mod problems;
mod report;
mod signals;
mod table;
mod units;
mod watch;

use std::process::ExitCode;

use crate::arguments::{Arguments, Command};
use crate::failure::Failure;

/// musl's own allocator maps and unmaps the memory of most requests that wait (docs and figures: ARCHITECTURE.md).
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    own_program::note();
    if commands::process_one::is_asked_for() {
        return commands::process_one::start_and_wait().unwrap_or_else(|failure| failure.show());
    }
    let done = if commands::forms::is_asked_for() {
        commands::forms::prepare_forms()
    } else if commands::guard::is_asked_for() {
        commands::guard::guard_until_the_end();
        Ok(())
    } else if let Some(arguments) = commands::exec_worker::asked_for() {
        commands::exec_worker::become_worker(&arguments)
    } else {
        match onehop_archive::own_location() {
            Ok(None) => obey(),
            Ok(Some(location)) => commands::packed::obey(location),
            Err(error) => Err(commands::packed::unusable(&error)),
        }
    };
    let code = match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.show(),
    };
    report::finish();
    code
}

fn obey() -> Result<(), Failure> {
    if std::env::args_os().len() == 1 {
        commands::init::look_around();
        return Ok(());
    }
    // A wrong option ends here, with exit code 2.
    let arguments = Arguments::read();
    match &arguments.command {
        Command::Run(run) => commands::run::run(run),
        Command::Serve(serve) => commands::serve::serve(serve),
        Command::App(app) => commands::app::app(app),
        Command::Proxy(proxy) => commands::proxy::proxy(proxy),
        Command::Pack(pack) => commands::pack::pack(pack),
        Command::Inspect(inspect) => commands::inspect::inspect(inspect),
        Command::Validate(validate) => commands::validate::validate(validate),
        Command::Init(init) => commands::init::init(init),
        Command::Fmt(fmt) => commands::fmt::fmt(fmt),
        Command::Adapt(adapt) => commands::adapt::adapt(adapt),
        Command::Routes(routes) => commands::routes::routes(routes),
        Command::Reload(reload) => commands::control::reload(reload),
        Command::Stop(stop) => commands::control::stop(stop),
        Command::Status(status) => commands::status::status(status),
        Command::Logs(logs) => commands::logs::logs(logs),
        Command::Dashboard(dashboard) => commands::dashboard::dashboard(dashboard),
        Command::Workers(workers) => commands::workers::workers(workers),
        Command::Top(top) => commands::top::top(top),
        Command::Why(why) => commands::why::why(why),
        Command::Certs(certs) => commands::certs::certs(certs),
        Command::Trust(trust) => commands::trust::trust(trust),
        Command::Untrust(untrust) => commands::trust::untrust(untrust),
        Command::HashPassword(password) => commands::hash_password::hash_password(password),
        Command::Bench(bench) => commands::bench::bench(bench),
        Command::Try(asked) => commands::side_by_side::run(asked),
        Command::Completions(completions) => commands::standard_output::completions(completions),
        Command::Man(man) => commands::standard_output::manual(man),
        Command::Help(help) => commands::help::help(help),
        Command::Version => {
            commands::standard_output::version();
            Ok(())
        }
    }
}
