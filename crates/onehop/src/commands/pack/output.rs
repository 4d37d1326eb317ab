//! The file that is written, and the program that stands in front of it.
//!
//! Owns the promise that a pack is there whole or not at all: it is written beside its place and renamed. Never writes
//! over a file that onehop did not make.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use onehop_archive::contents::{Base, name_of};
use onehop_archive::digest::Hasher;
use onehop_archive::{Digest, PackError, Writer};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::failures;
use crate::failure::Failure;
use crate::own_program;

/// Bytes that are hashed at a time.
const PIECE_BYTES: usize = 256 * 1024;

/// Where the pack will be.
#[derive(Debug)]
pub(super) struct Output {
    /// As it was named, or as the project is called.
    pub(super) path: PathBuf,
    /// Its name without its folder.
    pub(super) name: String,
    /// An image that is made of it.
    pub(super) image: Option<PathBuf>,
    /// It is there for the image alone, and removed when that is made.
    pub(super) is_only_for_image: bool,
}

/// A pack that is being written. It is removed unless it is published.
#[derive(Debug)]
pub(super) struct Unfinished {
    path: PathBuf,
    is_published: bool,
}

impl Output {
    /// The file that was named; else one in the working directory, named after the project; beside the image where only
    /// that is asked for.
    pub(super) fn choose(
        named: Option<&PathBuf>,
        image: Option<&PathBuf>,
        base: &Base,
    ) -> Result<Self, Failure> {
        let is_only_for_image = named.is_none() && image.is_some();
        let path = match named {
            Some(path) => path.clone(),
            None => {
                let own = name_of(&base.at("package.json"));
                let folder = base.folder().file_name().and_then(|name| name.to_str()).map(str::to_owned);
                PathBuf::from(own.or(folder).ok_or_else(|| {
                    Failure::wrong(
                        "neither package.json nor the folder gives the pack a name: onehop pack -o NAME",
                    )
                })?)
            }
        };
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name
            .ok_or_else(|| {
                Failure::wrong(format!("{} is no name of a file: name one with -o FILE", path.display()))
            })?
            .to_owned();
        let path = match image {
            Some(image) if is_only_for_image => image.with_file_name(&name),
            _ => path,
        };
        let output = Self { path, name, image: image.cloned(), is_only_for_image };
        if let Some(image) = image {
            image_may_be_written(image)?;
        }
        if is_only_for_image {
            return Ok(output);
        }
        output.may_be_written()?;
        Ok(output)
    }

    fn may_be_written(&self) -> Result<(), Failure> {
        let shown = self.path.display();
        if self.path.is_dir() {
            return Err(Failure::wrong(format!(
                "the pack would be called {shown}, and that is a folder: name it with -o FILE"
            )));
        }
        let folder = self.folder();
        if !folder.is_dir() {
            return Err(Failure::wrong(no_folder(&folder)));
        }
        let is_foreign = match fs::symlink_metadata(&self.path) {
            Err(_) => false,
            Ok(found) if found.is_symlink() && !self.path.exists() => false,
            Ok(_) => match onehop_archive::Pack::open(&self.path) {
                Ok(_) => false,
                Err(PackError::Foreign | PackError::Io(_)) => true,
                // What onehop made and what became of it may be replaced.
                Err(_) => false,
            },
        };
        if is_foreign {
            return Err(Failure::wrong(format!(
                "{shown} is there already, and onehop did not make it: name another file with -o, or remove it"
            )));
        }
        Ok(())
    }

    /// Refuses to write where a site would serve it.
    pub(super) fn is_not_served(&self, base: &Base, roots: &[String]) -> Result<(), Failure> {
        for (file, root) in
            self.files().into_iter().flat_map(|file| roots.iter().map(move |root| (file, root)))
        {
            let Ok(folder) = fs::canonicalize(folder_of(file)) else { continue };
            if fs::canonicalize(base.at(root)).is_ok_and(|root| folder.starts_with(root)) {
                let shown = if root.is_empty() { base.folder().display().to_string() } else { root.clone() };
                return Err(Failure::wrong(format!(
                    "{} would lie in {shown}, which is served: name another place with -o, as -o ../{}",
                    file.display(),
                    self.name
                )));
            }
        }
        Ok(())
    }

    /// What must not get into the pack.
    pub(super) fn files(&self) -> Vec<&Path> {
        std::iter::once(&self.path).chain(&self.image).map(PathBuf::as_path).collect()
    }

    fn folder(&self) -> PathBuf {
        folder_of(&self.path)
    }

    /// A new file beside it.
    pub(super) fn begin(&self) -> Result<(Unfinished, File), Failure> {
        let path = self.folder().join(format!(".onehop-pack-{}-{}", std::process::id(), self.name));
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o700).open(&path);
        let file =
            file.map_err(|error| Failure::failed(format!("cannot write {}: {error}", path.display())))?;
        let unfinished = Unfinished { path, is_published: false };
        unfinished.goes_with_a_signal()?;
        Ok((unfinished, file))
    }

    /// Puts what was written in its place, for everybody to execute.
    pub(super) fn publish(&self, mut unfinished: Unfinished) -> Result<(), Failure> {
        if self.is_only_for_image {
            return Ok(());
        }
        let done = fs::set_permissions(&unfinished.path, Permissions::from_mode(0o755))
            .and_then(|()| fs::rename(&unfinished.path, &self.path));
        done.map_err(|error| Failure::failed(format!("cannot write {}: {error}", self.path.display())))?;
        unfinished.is_published = true;
        Ok(())
    }
}

fn no_folder(folder: &Path) -> String {
    format!("there is no folder {}: make it, or name another place", folder.display())
}

/// Whether an image may be written there: over one, but over nothing else.
fn image_may_be_written(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if !folder_of(path).is_dir() {
        return Err(Failure::wrong(no_folder(&folder_of(path))));
    }
    match fs::symlink_metadata(path) {
        Err(_) => Ok(()),
        Ok(found) if found.is_dir() => {
            Err(Failure::wrong(format!("{shown} is a folder: name a file for the image with --oci FILE")))
        }
        Ok(found) if !found.is_symlink() && !onehop_archive::oci::is_image(path) => Err(Failure::wrong(
            format!("{shown} is there already, and is no image: name another file with --oci, or remove it"),
        )),
        Ok(_) => Ok(()),
    }
}

/// The folder of a file as it was named.
pub(super) fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

impl Unfinished {
    /// Whoever breaks off does not want what was written until then.
    #[expect(
        clippy::disallowed_methods,
        reason = "whoever breaks off wants the end now, and nothing is left to do"
    )]
    fn goes_with_a_signal(&self) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::failed(format!("cannot listen for signals: {error}"));
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
        let path = self.path.clone();
        let wait = move || {
            if let Some(signal) = signals.forever().next() {
                let _ = fs::remove_file(path);
                // As a shell tells it of a process that a signal ended.
                std::process::exit(128 + signal);
            }
        };
        std::thread::Builder::new().name("signals".into()).spawn(wait).map_err(failed)?;
        Ok(())
    }

    /// Where it is now.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_published {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// What stands in front of a pack.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) file: File,
    shown: String,
    /// `x86_64-linux`
    pub(super) target: String,
}

impl Program {
    /// The onehop that was named, else this one.
    pub(super) fn open(named: Option<&PathBuf>) -> Result<Self, Failure> {
        let path = match named {
            Some(path) => path.clone(),
            None => own_program::path(),
        };
        let shown = path.display().to_string();
        let failed = |error: std::io::Error| Failure::failed(format!("cannot read {shown}: {error}"));
        let file = File::open(&path).map_err(failed)?;
        let mut head = [0; 20];
        let target = file.read_exact_at(&mut head, 0).ok().and_then(|()| target_of(&head));
        let target = target.ok_or_else(|| no_onehop(&shown))?.to_owned();
        Ok(Self { file, shown, target })
    }

    /// Writes it to the beginning of a file.
    pub(super) fn write(self, out: File, output: &str) -> Result<Writer, Failure> {
        Writer::begin(&self.file, out).map_err(|error| match error {
            PackError::Unwritable(_) => failures::unwritten(output, error),
            PackError::Foreign => no_onehop(&self.shown),
            PackError::Format { .. } => Failure::wrong(format!("{} {error}", self.shown)),
            error => Failure::failed(format!("{}: {error}", self.shown)),
        })
    }
}

fn no_onehop(shown: &str) -> Failure {
    Failure::wrong(format!(
        "{shown} is no onehop for Linux that can be packed: --target takes the program that is to stand in front"
    ))
}

/// Architecture and system of an ELF file (System V ABI, `e_machine`).
fn target_of(head: &[u8; 20]) -> Option<&'static str> {
    if !head.starts_with(b"\x7fELF") {
        return None;
    }
    // All that follow have the lower byte first; s390x does not, and is none of ours.
    let machine = u16::from_le_bytes([head[18], head[19]]);
    match (head[4], head[5], machine) {
        (2, 1, 62) => Some("x86_64-linux"),
        (2, 1, 183) => Some("aarch64-linux"),
        (2, 1, 243) => Some("riscv64-linux"),
        (2, 1, 258) => Some("loongarch64-linux"),
        (2, 1, 21) => Some("powerpc64le-linux"),
        (1, 1, 40) => Some("arm-linux"),
        (1, 1, 3) => Some("i686-linux"),
        _ => None,
    }
}

/// SHA-256 of a whole file, and its length.
pub(super) fn digest_of(path: &Path) -> std::io::Result<(Digest, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = Hasher::default();
    let mut piece = vec![0; PIECE_BYTES];
    let mut length = 0;
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok((hasher.finish(), length)),
            Ok(read) => {
                hasher.update(piece.get(..read).unwrap_or_default());
                length += read as u64;
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
