//! The package for Debian and Ubuntu (deb(5)): program, service, configuration, manual pages, completions.
//!
//! Compressed with gzip, which every dpkg reads; xz needs a C library and zstd a dpkg of 2022.

use std::fmt::Write as _;

use crate::Outcome;

use super::Part;
use super::architecture::Architecture;
use super::help_files::HelpFiles;
use super::release::Release;
use super::sums;
use super::tree::{Tree, gzip};

const CONTROL: &str = include_str!("../../../packaging/deb/control");
const CHANGELOG: &str = include_str!("../../../packaging/deb/changelog");
const COPYRIGHT: &str = include_str!("../../../packaging/deb/copyright");
const OVERRIDES: &str = include_str!("../../../packaging/deb/lintian-overrides");
const UNIT: &str = include_str!("../../../packaging/deb/onehop.service");
const ONEHOPFILE: &str = include_str!("../../../packaging/deb/Onehopfile");

/// Run by dpkg (Debian policy, chapter 6).
const SCRIPTS: [(&str, &str); 3] = [
    ("postinst", include_str!("../../../packaging/deb/postinst")),
    ("prerm", include_str!("../../../packaging/deb/prerm")),
    ("postrm", include_str!("../../../packaging/deb/postrm")),
];

/// `onehop_0.1.0_amd64.deb`
pub(super) fn file_name(release: &Release, architecture: Architecture) -> String {
    format!("onehop_{}_{}.deb", release.version, architecture.debian())
}

/// The package's bytes.
pub(super) fn write(release: &Release, part: &Part, help_files: &HelpFiles) -> Outcome<Vec<u8>> {
    let data = data(release, part, help_files)?;
    let control = control(release, part.architecture, &data)?;
    let members = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", control.tar_gz("./", false, release.epoch)?),
        ("data.tar.gz", data.tar_gz("./", true, release.epoch)?),
    ];
    let mut file = b"!<arch>\n".to_vec();
    for (name, bytes) in members {
        let header =
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", release.epoch, 0, 0, "100644", bytes.len());
        file.extend_from_slice(header.as_bytes());
        file.extend_from_slice(&bytes);
        // Members begin at even places (ar(5)).
        if bytes.len() % 2 == 1 {
            file.push(b'\n');
        }
    }
    Ok(file)
}

/// What is installed.
fn data(release: &Release, part: &Part, help_files: &HelpFiles) -> Outcome<Tree> {
    let mut tree = Tree::default();
    tree.add_program("usr/bin/onehop", part.program.as_slice());
    tree.add("etc/onehop/Onehopfile", ONEHOPFILE);
    tree.add("usr/lib/systemd/system/onehop.service", UNIT);
    for (name, page) in &help_files.manuals {
        tree.add(&format!("usr/share/man/man1/{name}.1.gz"), gzip(page)?);
    }
    let completions = [
        ("usr/share/bash-completion/completions/onehop", &help_files.bash),
        ("usr/share/zsh/vendor-completions/_onehop", &help_files.zsh),
        ("usr/share/fish/vendor_completions.d/onehop.fish", &help_files.fish),
    ];
    for (path, text) in completions {
        tree.add(path, text.as_slice());
    }
    let date = release.date("+%a, %d %b %Y %H:%M:%S +0000")?;
    let changelog = release.fill(CHANGELOG, &[("DATE", &date)])?;
    let documents = [
        ("changelog.gz", gzip(changelog.as_bytes())?),
        ("CHANGELOG.md.gz", gzip(&release.changelog)?),
        ("THIRD-PARTY-LICENSES.txt.gz", gzip(&part.notices)?),
        ("sbom.cdx.json.gz", gzip(&part.sbom)?),
        ("copyright", COPYRIGHT.into()),
    ];
    for (name, bytes) in documents {
        tree.add(&format!("usr/share/doc/onehop/{name}"), bytes);
    }
    tree.add("usr/share/lintian/overrides/onehop", OVERRIDES);
    Ok(tree)
}

/// What dpkg reads and runs.
fn control(release: &Release, architecture: Architecture, data: &Tree) -> Outcome<Tree> {
    let files: usize = data.0.values().map(|file| file.bytes.len().div_ceil(1024)).sum();
    let kib = (files + data.folders().len()).to_string();
    let values = [("ARCHITECTURE", architecture.debian()), ("INSTALLED_KIB", kib.as_str())];
    let mut tree = Tree::default();
    tree.add("control", release.fill(CONTROL, &values)?);
    tree.add("conffiles", "/etc/onehop/Onehopfile\n");
    let mut sums = String::new();
    for (path, file) in data.0.iter().filter(|(path, _)| !path.starts_with("etc/")) {
        let _ = writeln!(sums, "{}  {path}", sums::md5_hex(&file.bytes));
    }
    tree.add("md5sums", sums);
    for (name, script) in SCRIPTS {
        tree.add_program(name, script);
    }
    Ok(tree)
}
