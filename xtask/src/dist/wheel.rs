//! The wheel for pip: the program as a script, beside Python's own.
//!
//! Format: <https://packaging.python.org/en/latest/specifications/binary-distribution-format/>. A static program
//! meets every C library, so the tags name the oldest glibc and musl that pip knows for both architectures.

use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::Outcome;

use super::Part;
use super::architecture::Architecture;
use super::release::Release;
use super::sums;
use super::tree::Tree;

const METADATA: &str = include_str!("../../../packaging/wheel/METADATA");

/// `onehop-0.1.0-py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64.whl`
pub(super) fn file_name(release: &Release, architecture: Architecture) -> String {
    let tags: Vec<String> = platforms(architecture).into();
    format!("onehop-{}-py3-none-{}.whl", release.version, tags.join("."))
}

fn platforms(architecture: Architecture) -> [String; 2] {
    ["manylinux_2_17", "musllinux_1_1"].map(|platform| format!("{platform}_{}", architecture.name()))
}

/// The wheel's bytes.
pub(super) fn write(release: &Release, part: &Part) -> Outcome<Vec<u8>> {
    let name = format!("onehop-{}", release.version);
    let facts = format!("{name}.dist-info");
    let mut tree = Tree::default();
    tree.add_program(&format!("{name}.data/scripts/onehop"), part.program.as_slice());
    tree.add(&format!("{facts}/METADATA"), release.fill(METADATA, &[])?);
    tree.add(&format!("{facts}/WHEEL"), wheel(part.architecture));
    tree.add(&format!("{facts}/licenses/LICENSE"), release.licence.as_slice());
    tree.add(&format!("{facts}/licenses/THIRD-PARTY-LICENSES.txt"), part.notices.as_slice());
    tree.add(&format!("{facts}/sboms/onehop.cdx.json"), part.sbom.as_slice());
    let record = record(&tree, &facts);

    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    // The record is the last one, as the format recommends.
    let files = tree.0.iter().map(|(path, file)| (path.clone(), file.mode, file.bytes.as_slice()));
    for (path, mode, bytes) in files.chain([(format!("{facts}/RECORD"), 0o644, record.as_bytes())]) {
        // A zip has local times of two seconds; 1980, where they begin, is the same everywhere.
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .compression_level(Some(9))
            .last_modified_time(DateTime::default())
            .unix_permissions(mode);
        zip.start_file(path, options)?;
        zip.write_all(bytes)?;
    }
    Ok(zip.finish()?.into_inner())
}

fn wheel(architecture: Architecture) -> String {
    let mut text = "Wheel-Version: 1.0\nGenerator: onehop-xtask\nRoot-Is-Purelib: false\n".to_owned();
    for platform in platforms(architecture) {
        let _ = writeln!(text, "Tag: py3-none-{platform}");
    }
    text
}

/// Path, sum and length of each file; of itself only the path.
fn record(tree: &Tree, facts: &str) -> String {
    let mut text = String::new();
    for (path, file) in &tree.0 {
        let sum = URL_SAFE_NO_PAD.encode(sums::sha256(&file.bytes));
        let _ = writeln!(text, "{path},sha256={sum},{}", file.bytes.len());
    }
    let _ = writeln!(text, "{facts}/RECORD,,");
    text
}
