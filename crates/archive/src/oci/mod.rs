//! A pack as a container image: one tar file that is an OCI image layout and what `docker load` reads.
//!
//! Owns the form of the image (OCI image specification 1.1; Docker's image specification 1.2 for `manifest.json`).
//! The image stands on nothing: the pack, what it would unpack, two users and a folder for temporary files. Equal
//! packs and settings make equal bytes. Never asks the network, and holds no file of the pack as a whole.
//!
//! `layer.rs` writes the layers, `image.rs` what is said of them, `reference.rs` knows names, `program.rs` whether
//! the program can run without a system around it.

mod image;
mod layer;
mod program;
mod reference;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub use self::reference::Reference;

use self::image::{Descriptor, Image};
use self::layer::Layer;
use crate::{Digest, Pack, PackError};

/// The user in the image, and its group: `nonroot` of other images that stand on nothing.
pub const USER: u32 = 65532;

/// The data directory in the image, which is a volume: certificates and what applications write survive the container.
pub const DATA_FOLDER: &str = "/var/lib/onehop";

/// What an image is to be.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What it is called once it is loaded.
    pub reference: Reference,
    /// Labels beside those that every image has; they win.
    pub labels: BTreeMap<String, String>,
    /// When it was made, in seconds since 1970; none: nobody is to know, and images of equal packs are equal.
    pub created: Option<u64>,
}

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// SHA-256 of the manifest, by which registries know the image.
    pub manifest: Digest,
    /// Bytes of the file.
    pub bytes: u64,
    /// Bytes of the layers as they are sent to a registry.
    pub layers: Vec<u64>,
    /// The image as a registry's clients name its architecture: `amd64`.
    pub architecture: &'static str,
    /// Ports that the pack listens on.
    pub ports: Vec<u16>,
    /// What will probably not be as it was meant, each a sentence.
    pub warnings: Vec<String>,
}

/// Why there is no image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The pack cannot be used.
    #[error("{} {error}", path.display())]
    Pack {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: PackError,
    },
    /// Its program needs libraries that an image that stands on nothing does not have.
    #[error(
        "an image holds nothing but the pack, and its program asks for {loader}: pack the static onehop, \
         `--target onehop-linux-{machine}`"
    )]
    Dynamic {
        /// What the program asks for.
        loader: String,
        /// As in the names of released programs.
        machine: String,
    },
    /// Containers run Linux on machines that registries have names for.
    #[error("no image can be made for {0}: onehop's images are for x86_64-linux and aarch64-linux")]
    Target(String),
    /// The system refuses.
    #[error("the image cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// Writes the image of a pack. Layers are made in unnamed files in `scratch`, since their digests stand in front of
/// them.
///
/// # Errors
///
/// The pack cannot be used or cannot run in an image, or the system refuses.
pub fn write(
    path: &Path,
    settings: &Settings,
    scratch: &Path,
    out: &mut File,
) -> Result<Written, ImageError> {
    let failed = |error| ImageError::Pack { path: path.to_owned(), error };
    let (pack, index) = Pack::open(path).map_err(failed)?;
    let file = File::open(path)?;
    let architecture = can_hold(&file, &index.target)?;
    let name = image::program_name(&index.name);
    let created = settings.created.unwrap_or(0);
    let mut layers = Vec::new();
    if crate::layout::has_more_than_configuration(&index) {
        layers.push(layer::unpacked(&pack, &index, scratch, created).map_err(failed)?);
    }
    layers.push(layer::program(&file, pack.location().total, &name, scratch, created)?);
    let about = Image { index: &index, name: &name, architecture, settings, layers: &layers };
    let (ports, warnings) = image::ports(&index.listens);
    let config = about.config(&ports);
    let manifest = about.manifest(&Descriptor::of(image::CONFIG_TYPE, &config));
    let bytes = assemble(&about, &config, &manifest, created, out)?;
    let manifest = Digest::of(&manifest);
    let layers = layers.iter().map(|layer| layer.stored).collect();
    Ok(Written { manifest, bytes, layers, architecture, ports, warnings })
}

/// Whether a program can run in an image, and the name that images have for its architecture.
///
/// # Errors
///
/// Why it cannot, or the system refuses.
pub fn can_hold(program: &File, target: &str) -> Result<&'static str, ImageError> {
    let architecture = image::architecture(target)?;
    if let Some(loader) = program::loader(program, program.metadata()?.len())? {
        let machine = target.split('-').next().unwrap_or_default().to_owned();
        return Err(ImageError::Dynamic { loader, machine });
    }
    Ok(architecture)
}

/// Whether a file is an image as [`write()`] makes it.
pub fn is_image(path: &Path) -> bool {
    let mut name = [0; FIRST_NAME.len() + 1];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut name));
    read.is_ok() && name.strip_suffix(b"\0") == Some(FIRST_NAME.as_bytes())
}

/// The first file of an image.
const FIRST_NAME: &str = "oci-layout";

/// The file: what it is first, then its pieces by name.
fn assemble(
    about: &Image<'_>,
    config: &[u8],
    manifest: &[u8],
    created: u64,
    out: &mut File,
) -> io::Result<u64> {
    let mut tar = tar::Builder::new(BufWriter::new(&mut *out));
    let index = about.index_json(&Descriptor::of(image::MANIFEST_TYPE, manifest));
    let docker = about.docker_manifest(&Digest::of(config));
    for (name, content) in
        [(FIRST_NAME, image::LAYOUT), ("index.json", &index[..]), ("manifest.json", &docker[..])]
    {
        layer::file(&mut tar, name, 0o644, created, content.len() as u64, content)?;
    }
    for folder in ["blobs", "blobs/sha256"] {
        layer::folder(&mut tar, folder, 0o755, created)?;
    }
    let mut pieces: BTreeMap<Digest, Piece<'_>> = BTreeMap::new();
    pieces.insert(Digest::of(config), Piece::Held(config));
    pieces.insert(Digest::of(manifest), Piece::Held(manifest));
    pieces.extend(about.layers.iter().map(|layer| (layer.digest, Piece::Layer(layer))));
    for (digest, piece) in pieces {
        let name = format!("blobs/sha256/{digest}");
        match piece {
            Piece::Held(bytes) => {
                layer::file(&mut tar, &name, 0o644, created, bytes.len() as u64, bytes)?;
            }
            Piece::Layer(layer) => {
                let mut from = &layer.file;
                from.seek(SeekFrom::Start(0))?;
                layer::file(&mut tar, &name, 0o644, created, layer.stored, from.take(layer.stored))?;
            }
        }
    }
    tar.into_inner()?.flush()?;
    out.stream_position()
}

/// What lies below `blobs/`.
enum Piece<'a> {
    Held(&'a [u8]),
    Layer(&'a Layer),
}

#[cfg(test)]
mod tests;
