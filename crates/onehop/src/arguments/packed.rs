//! What can be typed after a pack's own name, and the help that explains it.
//!
//! Without a command a pack serves. Its commands are those of onehop that make sense for one that is packed; their help
//! speaks of the pack.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use super::{
    Certs, CertsCommand, Control, Dashboard, InspectView, Logs, Process, Status, Stop, Target, Top, Why,
    Workers,
};

/// `./myapp`
#[derive(Debug, Parser)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true, propagate_version = true)]
pub(crate) struct PackedArguments {
    #[command(subcommand)]
    pub(crate) command: Option<PackedCommand>,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Read the override file again whenever it changes
    #[arg(long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) process: Process,
}

/// What a pack can do besides serving.
#[derive(Debug, Subcommand)]
pub(crate) enum PackedCommand {
    /// Show what is in it, and prove it
    Inspect(InspectView),
    Status(Status),
    Reload(Control),
    Stop(Stop),
    Workers(Workers),
    Logs(Logs),
    Dashboard(Dashboard),
    Top(Top),
    Why(Why),
    Certs(Certs),
    /// Check the configuration with what is changed of it
    Validate(Changes),
    /// Show what acts for the requests of each site, in which order
    Routes(Changes),
}

/// What whoever runs a pack changes of it (docs/overrides.md).
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Changes {
    /// Where to listen instead: `:8080` for every interface, `127.0.0.1:8080`, `unix//path`, `http://host:port` for that
    /// host alone; of one of several sites: `SITE=ADDR` [env: ONEHOP_LISTEN, PORT]
    #[arg(long, short, value_name = "ADDR")]
    pub(crate) listen: Vec<String>,
    /// Processes of the application, or of one of several; `auto` starts one for each core [env: ONEHOP_WORKERS]
    #[arg(long, value_name = "N|APP=N")]
    pub(crate) workers: Vec<String>,
    /// A variable for its applications: `NAME=VALUE`, or `NAME` to pass on one of this process
    #[arg(long, short, value_name = "NAME[=VALUE]")]
    pub(crate) env: Vec<String>,
    /// A file that changes the configuration [default: the file beside the program with its name and .override, if it is
    /// there]
    #[arg(
        long = "override", value_name = "FILE", env = "ONEHOP_OVERRIDE", hide_env_values = true,
        // An empty variable is one that is not set, as compose files write it.
        value_parser = OsStringValueParser::new().map(PathBuf::from)
    )]
    pub(crate) file: Option<PathBuf>,
}

/// Who the pack is.
#[derive(Debug)]
pub(crate) struct Title<'a> {
    /// Its name.
    pub(crate) name: &'a str,
    /// Who made it: `onehop 0.1.0`.
    pub(crate) made_by: &'a str,
    /// The first digits of its digest.
    pub(crate) digest: &'a str,
}

impl PackedCommand {
    /// The running one that it is for, where it is for one.
    pub(crate) fn target(&mut self) -> Option<&mut Target> {
        match self {
            Self::Status(status) => Some(&mut status.target),
            Self::Reload(reload) => Some(&mut reload.target),
            Self::Stop(stop) => Some(&mut stop.target),
            Self::Workers(workers) => Some(&mut workers.target),
            Self::Logs(logs) => Some(&mut logs.target),
            Self::Dashboard(dashboard) => Some(&mut dashboard.target),
            Self::Top(top) => Some(&mut top.target),
            Self::Why(why) => Some(&mut why.target),
            Self::Certs(Certs { command: Some(CertsCommand::Revoke(revoke)), .. }) => {
                Some(&mut revoke.target)
            }
            Self::Certs(Certs { command: None, target, .. }) => Some(target),
            Self::Certs(Certs { command: Some(CertsCommand::Import(_)), .. }) => None,
            Self::Inspect(_) | Self::Validate(_) | Self::Routes(_) => None,
        }
    }
}

impl PackedArguments {
    /// What was typed. A wrong option ends here, with exit code 2.
    pub(crate) fn read(title: &Title<'_>) -> Self {
        let matches = command(title).get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }
}

/// The commands under the pack's own name.
fn command(title: &Title<'_>) -> Command {
    let name = title.name;
    // Once in a process: texts live as long as it does.
    let kept = |text: String| -> &'static str { Box::leak(text.into_boxed_str()) };
    let version =
        format!("{} (packed by {}, sha256 {})", env!("CARGO_PKG_VERSION"), title.made_by, title.digest);
    let all = PackedArguments::command()
        .name(kept(name.to_owned()))
        .bin_name(name.to_owned())
        .version(kept(version))
        .about(format!("Serve {name}, which is packed in this program"))
        .long_about(format!(
            "Serve {name}, which is packed in this program: its pages, its applications and the configuration.\n\n\
             SIGHUP reads the override file again; SIGTERM and Ctrl-C finish what is in flight and end; a second Ctrl-C \
             ends at once."
        ))
        .after_help(format!(
            "Examples:\n  \
             ./{name}                             serve\n  \
             ./{name} --listen :80                at another address\n  \
             PORT=5000 ./{name}                   as platforms start it\n  \
             ./{name} --workers 4 --env DATABASE_URL\n  \
             ./{name} --override production       with a file that changes the configuration\n  \
             ./{name} inspect                     what is in it\n  \
             ./{name} reload                      let the running one read its override file again\n\n\
             Exit codes: 0 stopped as asked, 1 failed, 2 wrong usage or configuration."
        ));
    with_own_examples(all, name)
}

/// The commands for a running one, whose help speaks of the pack. It is found by the pack's own file.
fn with_own_examples(mut all: Command, name: &str) -> Command {
    let of_running = [
        (
            "status",
            "Show what the running one is doing",
            format!("./{name} status\n  ./{name} status --json | jq .requests"),
            "0 running (and healthy), 1 not running or not healthy, 2 wrong usage.",
        ),
        (
            "reload",
            "Let the running one read its override file again",
            format!("./{name} reload"),
            "0 published, 1 nothing was changed, 2 wrong usage.",
        ),
        (
            "stop",
            "Let the running one finish what is in flight and end",
            format!("./{name} stop"),
            "0 ended, 1 not running or still running after --wait, 2 wrong usage.",
        ),
        (
            "workers",
            "Show the workers of its applications, or change their number",
            format!("./{name} workers\n  ./{name} workers api 4          as many as that from now on"),
            "0 done, 1 not running, no such application or nothing changed, 2 wrong usage.",
        ),
        (
            "logs",
            "Show the last requests, lines of applications and events of the running one",
            format!("./{name} logs\n  ./{name} logs -f                 and what comes"),
            "0 shown, 1 not running, 2 wrong usage.",
        ),
        (
            "dashboard",
            "Show the dashboard of the running one in a browser",
            format!("./{name} dashboard"),
            "0 ended, 1 not running, 2 wrong usage.",
        ),
        (
            "top",
            "Show live what the running one is doing",
            format!("./{name} top"),
            "0 ended, 1 not running or no terminal, 2 wrong usage.",
        ),
        (
            "certs",
            "Show or revoke the certificates of the running one",
            format!("./{name} certs\n  ./{name} certs revoke example.com --reason key-compromise"),
            "0 shown, whatever state they are in, 1 not running, 2 wrong usage.",
        ),
        (
            "why",
            "Explain why a request was slow, or why it failed",
            format!(
                "./{name} why                     what was slow or failed\n  ./{name} why 5f3a00000000002a    one of them"
            ),
            "0 shown, 1 not running or no such request, 2 wrong usage.",
        ),
    ];
    for (command, about, examples, codes) in of_running {
        all = all.mut_subcommand(command, |command| {
            command
                .about(about)
                .long_about(about)
                .after_help(format!("Examples:\n  {examples}\n\nExit codes: {codes}"))
                .mut_arg("config", |arg| arg.hide(true))
        });
    }
    with_own_usages(all, name)
}

fn with_own_usages(all: Command, name: &str) -> Command {
    let certs =
        format!("{name} certs [OPTIONS]\n       {name} certs revoke NAME\n       {name} certs import FOLDER");
    let workers = format!("{name} workers [OPTIONS] [APP] [N]");
    all.mut_subcommand("certs", |command| command.override_usage(certs))
        .mut_subcommand("workers", |command| command.override_usage(workers))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: Title<'_> = Title { name: "shop", made_by: "onehop 0.1.0", digest: "0123456789ab" };

    #[test]
    fn the_help_speaks_of_the_pack() {
        command(&TITLE).debug_assert();
        let mut all = command(&TITLE);
        insta::assert_snapshot!(all.render_long_help());
        let status = all.find_subcommand_mut("status").expect("there is one");
        let help = status.render_long_help().to_string();
        assert!(help.contains("./shop status") && !help.contains("onehop status"), "{help}");
    }

    #[test]
    fn without_a_command_everything_is_for_serving() {
        let read = |line: &str| command(&TITLE).try_get_matches_from(line.split(' '));
        let arguments = PackedArguments::from_arg_matches(
            &read("shop --listen :80 -l :81 --workers api=2 --env A=1 --override x --threads 2")
                .expect("sound"),
        )
        .expect("sound");
        assert!(arguments.command.is_none());
        assert_eq!(arguments.changes.listen, [":80", ":81"]);
        assert!(read("shop --listen :80 status").is_err());
        assert!(read("shop run").is_err());
        assert!(read("shop validate --listen :80").is_ok());
    }
}
