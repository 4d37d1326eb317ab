//! Packages around a program of a few bytes, read back with other tools' eyes: tar, ar and zip as their formats say.

use std::collections::BTreeMap;
use std::io::Read as _;

use super::architecture::Architecture;
use super::help_files::HelpFiles;
use super::release::Release;
use super::{Part, deb, npm, package, sums, wheel};

const PROGRAM: &[u8] = b"\x7fELF, or so it says";

/// A release that needs no checkout.
pub(super) fn release() -> Release {
    Release {
        version: "1.2.3".to_owned(),
        epoch: 1_700_000_000,
        maintainer: "Nobody <nobody@example.com>".to_owned(),
        licence: b"the licence".to_vec(),
        changelog: b"# Changelog".to_vec(),
    }
}

fn part(architecture: Architecture) -> Part {
    Part { architecture, program: PROGRAM.into(), sbom: b"{}".into(), notices: b"notices".into() }
}

fn help_files() -> HelpFiles {
    let manuals = vec![("onehop".to_owned(), b".TH onehop 1\n".to_vec())];
    HelpFiles { manuals, bash: b"bash".into(), zsh: b"zsh".into(), fish: b"fish".into() }
}

/// Path to mode and bytes of a `.tar.gz`.
fn untar(bytes: &[u8]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bytes));
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        assert_eq!(entry.header().uid().unwrap(), 0);
        assert_eq!(entry.header().mtime().unwrap(), release().epoch);
        let path = String::from_utf8(entry.path_bytes().into_owned()).unwrap();
        let mode = entry.header().mode().unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (path, (mode, bytes))
    });
    entries.collect()
}

/// Members of an ar file.
fn members(file: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut rest = file.strip_prefix(b"!<arch>\n").expect("an ar file");
    let mut members = Vec::new();
    while !rest.is_empty() {
        let (header, after) = rest.split_at(60);
        assert_eq!(&header[58..], b"`\n");
        let field =
            |place: std::ops::Range<usize>| std::str::from_utf8(&header[place]).unwrap().trim().to_owned();
        let length: usize = field(48..58).parse().unwrap();
        members.push((field(0..16), after[..length].to_vec()));
        rest = &after[length + length % 2..];
    }
    members
}

#[test]
fn a_deb_has_its_three_members_and_its_control_file_tells_of_its_data() {
    let file = deb::write(&release(), &part(Architecture::Aarch64), &help_files()).unwrap();
    let members = members(&file);
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["debian-binary", "control.tar.gz", "data.tar.gz"]);
    assert_eq!(members[0].1, b"2.0\n");
    let (control, data) = (untar(&members[1].1), untar(&members[2].1));

    let text = String::from_utf8(control["./control"].1.clone()).unwrap();
    assert!(text.starts_with("Package: onehop\nVersion: 1.2.3\nArchitecture: arm64\n"), "{text}");
    assert!(text.contains("Maintainer: Nobody <nobody@example.com>\n"), "{text}");
    assert_eq!(control["./postinst"].0, 0o755);
    assert_eq!(data["./usr/bin/onehop"], (0o755, PROGRAM.to_vec()));
    assert_eq!(data["./usr/"].0, 0o755);
    let settings = String::from_utf8(control["./conffiles"].1.clone()).unwrap();
    assert!(settings.lines().all(|path| data.contains_key(&format!(".{path}"))));
    let sums = String::from_utf8(control["./md5sums"].1.clone()).unwrap();
    for line in sums.lines() {
        let (sum, path) = line.split_once("  ").unwrap();
        assert_eq!(sum, sums::md5_hex(&data[&format!("./{path}")].1), "{path}");
    }
    assert!(sums.contains("  usr/share/man/man1/onehop.1.gz\n"));
}

#[test]
fn npm_installs_the_platform_that_fits_and_runs_no_script() {
    let release = release();
    let main = untar(&npm::main(&release).unwrap());
    let platform = untar(&npm::platform(&release, &part(Architecture::X86_64)).unwrap());
    let manifest = |files: &BTreeMap<String, (u32, Vec<u8>)>| -> serde_json::Value {
        serde_json::from_slice(&files["package/package.json"].1).unwrap()
    };
    let (main_manifest, platform_manifest) = (manifest(&main), manifest(&platform));
    let name = platform_manifest["name"].as_str().unwrap();
    assert_eq!(main_manifest["optionalDependencies"][name], "1.2.3");
    assert_eq!(platform_manifest["version"], "1.2.3");
    assert_eq!(platform_manifest["cpu"], serde_json::json!(["x64"]));
    assert_eq!(platform["package/bin/onehop"], (0o755, PROGRAM.to_vec()));
    let launcher = format!("package/{}", main_manifest["bin"]["onehop"].as_str().unwrap());
    assert_eq!(main[&launcher].0, 0o755);
    for manifest in [main_manifest, platform_manifest] {
        assert!(manifest.get("scripts").is_none(), "{manifest}");
    }
}

#[test]
fn a_wheels_record_holds_for_every_file_and_the_program_may_be_run() {
    let bytes = wheel::write(&release(), &part(Architecture::X86_64)).unwrap();
    let mut archive = zip::ZipArchive::new(std::io::Cursor::new(bytes)).unwrap();
    let mut files = BTreeMap::new();
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        files.insert(file.name().unwrap().into_owned(), (file.unix_mode().unwrap() & 0o777, bytes));
    }
    assert_eq!(files["onehop-1.2.3.data/scripts/onehop"], (0o755, PROGRAM.to_vec()));
    let record = String::from_utf8(files["onehop-1.2.3.dist-info/RECORD"].1.clone()).unwrap();
    assert_eq!(record.lines().count(), files.len());
    for line in record.lines() {
        let mut fields = line.split(',');
        let (path, _sum, length) = (fields.next().unwrap(), fields.next().unwrap(), fields.next().unwrap());
        assert!(files.contains_key(path), "{path}");
        assert!(length.is_empty() || length.parse() == Ok(files[path].1.len()), "{line}");
    }
    assert_eq!(
        wheel::file_name(&release(), Architecture::Aarch64),
        "onehop-1.2.3-py3-none-manylinux_2_17_aarch64.musllinux_1_1_aarch64.whl"
    );
}

#[test]
fn the_same_release_gives_the_same_bytes_and_each_file_has_its_sum() {
    let all = || {
        package(&release(), &help_files(), &[part(Architecture::X86_64), part(Architecture::Aarch64)])
            .unwrap()
    };
    let files = all();
    assert_eq!(files, all());
    assert_eq!(files.len(), 12, "{:?}", files.keys());
    let sums = sums::lines(&files);
    assert_eq!(sums.lines().count(), files.len());
    let line = format!("{}  onehop-linux-x86_64\n", sums::sha256_hex(PROGRAM));
    assert!(sums.contains(&line), "{sums}");
}

#[test]
fn a_template_with_an_unknown_name_is_an_error_and_other_at_signs_stay() {
    let release = release();
    assert_eq!(release.fill("a@b @VERSION@ @system-service", &[]).unwrap(), "a@b 1.2.3 @system-service");
    assert_eq!(release.fill("@CPU@", &[("CPU", "x64")]).unwrap(), "x64");
    assert!(release.fill("@WHATEVER@", &[]).unwrap_err().to_string().contains("@WHATEVER@"));
}
