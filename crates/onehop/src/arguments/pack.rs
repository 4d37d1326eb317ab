//! What can be typed after `onehop pack` and `onehop inspect`.

use std::path::PathBuf;

use clap::Args;

use super::{File, OciArguments, RuntimeChoice};

/// `onehop pack`
#[derive(Debug, Args)]
#[command(
    about = "Make one executable of onehop, an Onehopfile and all that it serves",
    long_about = "Make one executable of onehop, an Onehopfile and all that it serves.\n\n\
        What goes in: the trees that its sites serve, with their compressed forms; the projects of its applications \
        with the dependencies that they need to run; the configuration and the certificates that it names. What \
        stays out: development dependencies, version control, editors' folders, logs, databases, upload folders and what \
        git ignores (but for build output), unless --include names it, and whatever --exclude names. Files that look like secrets are refused. Two packs of the same files are the same, byte for byte.\n\n\
        Patterns of --exclude and --include begin at the folder of the Onehopfile: * matches any text within a name, ? one \
        character, ** for any folders. What lies in a folder that fits is left out with it, of served trees too.",
    after_help = "Examples:\n  \
        onehop pack                             the Onehopfile of this folder, named after package.json or the folder\n  \
        onehop pack -o shop && ./shop           run it\n  \
        onehop pack --exclude .env --exclude '**/*.map'\n  \
        onehop pack --runtime node              with Node.js, for machines without it\n  \
        onehop pack --target ./onehop-aarch64   for another architecture, with that onehop in front\n  \
        onehop pack --oci shop.tar --tag shop:1.2     a container image (docs/guide/containers.md)\n  \
        onehop inspect shop                     what is in it\n\n\
        Exit codes: 0 packed, 1 failed, 2 wrong usage or configuration, or something that must not be packed."
)]
pub(crate) struct Pack {
    #[command(flatten)]
    pub(crate) file: File,
    /// The executable to write [default: the name in package.json, else of the folder]
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Leave out what fits; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) exclude: Vec<String>,
    /// Pack what fits although it is a database, an upload folder or ignored by git; may be given several times
    #[arg(long, value_name = "GLOB")]
    pub(crate) include: Vec<String>,
    /// Take along what runs the applications, with its libraries: Node.js or Bun as found on PATH, or from this path
    #[arg(long, value_name = "node|bun[=PATH]")]
    pub(crate) runtime: Option<RuntimeChoice>,
    /// The onehop that is to stand in front, for another architecture [default: this one]
    #[arg(long, value_name = "ONEHOP")]
    pub(crate) target: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) oci: OciArguments,
}

/// `onehop inspect`
#[derive(Debug, Args)]
#[command(
    about = "Show what is in a pack, and prove it",
    long_about = "Show what is in a pack, and prove it.\n\n\
        Nothing is run and nothing is unpacked. The index is proved whenever it is read; --verify proves every piece \
        of the file against it.",
    after_help = "Examples:\n  \
        onehop inspect shop\n  \
        onehop inspect shop --files             every file, not their folders\n  \
        onehop inspect shop --verify            prove every byte of it\n  \
        onehop inspect shop --json | jq '.trees[].files[].path'\n\n\
        Exit codes: 0 shown, 1 no pack or not what was packed, 2 wrong usage."
)]
pub(crate) struct Inspect {
    /// The pack
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) view: InspectView,
}

/// How a pack is shown.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct InspectView {
    /// Everything, as JSON (docs/pack.md)
    #[arg(long)]
    pub(crate) json: bool,
    /// Prove every piece of the file
    #[arg(long)]
    pub(crate) verify: bool,
    /// Every file instead of folders
    #[arg(long)]
    pub(crate) files: bool,
}
