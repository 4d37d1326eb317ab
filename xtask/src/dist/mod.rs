//! `cargo xtask dist`: what is given to people who do not build onehop themselves.
//!
//! This file knows the order: programs, what is inside them, packages around them, sums of all. Each package has a
//! file of its own; none of them touches the disk. The same commit gives the same bytes: every time in a package is
//! `SOURCE_DATE_EPOCH`, else the commit's.

mod architecture;
mod build;
mod check;
mod deb;
mod elf;
mod help_files;
mod inside;
mod notices;
mod npm;
mod release;
mod sbom;
mod sums;
#[cfg(test)]
mod tests;
mod tree;
mod wheel;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::steps::{Skip, quiet};
use crate::workspace::{Options, WrongUsage};
use crate::{Outcome, workspace};

use self::architecture::Architecture;
use self::help_files::HelpFiles;
use self::inside::Inside;
use self::release::Release;

/// One program with what is told about its inside.
struct Part {
    architecture: Architecture,
    program: Vec<u8>,
    /// CycloneDX, as JSON.
    sbom: Vec<u8>,
    /// Licences of what is linked into it.
    notices: Vec<u8>,
}

/// What was asked for.
struct DistOptions {
    architectures: Vec<Architecture>,
    programs: BTreeMap<Architecture, PathBuf>,
    maintainer: Option<String>,
    output: Option<PathBuf>,
    check: Option<Depth>,
}

/// How much `--check` tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// What takes seconds, with `cargo xtask suites --ci`.
    Quick,
    /// All of it.
    Whole,
}

/// Builds the programs that were not given, and packages all of them.
pub(crate) fn run(words: &[&str]) -> Outcome {
    make(DistOptions::read(words)?)
}

/// The packages around the program under test, installed and run: that they work, in a few seconds.
pub(crate) fn smoke() -> Outcome {
    let architecture = Architecture::of_this_machine()
        .ok_or_else(|| Skip("no program is built for this machine's architecture".to_owned()))?;
    let folder = workspace::target_folder("dist-smoke")?;
    // What debuggers need of a test build is most of it, and is compressed three times.
    let program = folder.join("stripped");
    quiet(Command::new("strip").arg(workspace::program()).arg("-o").arg(&program))?;
    make(DistOptions {
        architectures: vec![architecture],
        programs: BTreeMap::from([(architecture, program)]),
        maintainer: None,
        output: Some(folder),
        check: Some(Depth::Quick),
    })
}

fn make(wanted: DistOptions) -> Outcome {
    let release = Release::of_checkout(wanted.maintainer)?;
    let mut programs = Vec::new();
    for &architecture in &wanted.architectures {
        let path = match wanted.programs.get(&architecture) {
            Some(path) => path.clone(),
            None => build::build(architecture, &release)?,
        };
        programs.push((architecture, path));
    }
    let mut parts = Vec::new();
    for (architecture, path) in &programs {
        parts.push(part(&release, *architecture, path, wanted.programs.contains_key(architecture))?);
    }
    let help_files = HelpFiles::ask(programs.iter().map(|(_, path)| path.as_path()))?;

    let folder = match wanted.output {
        Some(folder) => folder,
        None => workspace::target_folder("dist")?,
    };
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    let mut files = package(&release, &help_files, &parts)?;
    files.insert("SHA256SUMS".to_owned(), sums::lines(&files).into_bytes());
    for (name, bytes) in &files {
        put(&folder.join(name), bytes, name.starts_with("onehop-linux-") && !name.ends_with(".json"))?;
        println!("{:>10} bytes  {}", bytes.len(), folder.join(name).display());
    }
    match wanted.check {
        Some(depth) => check::run(&folder, &release, &parts, depth),
        None => Ok(()),
    }
}

impl DistOptions {
    fn read(words: &[&str]) -> Outcome<DistOptions> {
        let mut options = Options::new(words);
        let host = Architecture::of_this_machine();
        let mut programs = BTreeMap::new();
        while let Some(word) = options.value("--program")? {
            let (name, path) = word
                .split_once('=')
                .ok_or_else(|| WrongUsage(format!("--program {word}: write ARCH=FILE")))?;
            programs.insert(Architecture::named(name)?, PathBuf::from(path));
        }
        let architectures = match options.value("--architectures")? {
            Some(list) => list.split(',').map(Architecture::named).collect::<Outcome<_>>()?,
            None if !programs.is_empty() => programs.keys().copied().collect(),
            None => {
                vec![host.ok_or("no program is built for this machine's architecture: name --architectures")?]
            }
        };
        let wanted = DistOptions {
            architectures,
            programs,
            maintainer: options.value("--maintainer")?,
            output: options.value("--output")?.map(PathBuf::from),
            check: options.flag("--check").then_some(Depth::Whole),
        };
        options.finish()?;
        Ok(wanted)
    }
}

/// Reads a program and finds out what is inside. One that was given may need shared libraries, for tests; one that
/// was built here may not.
fn part(release: &Release, architecture: Architecture, path: &Path, was_given: bool) -> Outcome<Part> {
    let program = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let facts = elf::Facts::of(&program).map_err(|reason| format!("{}: {reason}", path.display()))?;
    if facts.machine != architecture.elf_machine() {
        return Err(format!("{} is not a program for {}", path.display(), architecture.name()).into());
    }
    match &facts.interpreter {
        None => {}
        Some(loader) if was_given => {
            println!("remark: {} needs {loader} and shared libraries: for tests only", path.display());
        }
        Some(loader) => return Err(format!("{} is not static: it needs {loader}", path.display()).into()),
    }
    // Another architecture's runs where an emulator is installed.
    let emulator = format!("qemu-{}-static", architecture.name());
    let emulated = || workspace::output_of(emulator, &[&path.display().to_string(), "--version"]);
    match workspace::output_of(path, &["--version"]).or_else(emulated) {
        Some(version) if version != format!("onehop {}", release.version) => {
            return Err(
                format!("{} says {version:?}, the checkout is {}", path.display(), release.version).into()
            );
        }
        Some(_) => {}
        None => println!("remark: {} does not run on this machine: not tried", path.display()),
    }
    let inside = Inside::of(architecture)?;
    let sbom = sbom::write(release, architecture, &inside, &program)?;
    Ok(Part { architecture, program, sbom, notices: notices::write(release, &inside).into_bytes() })
}

/// Every file of the release but its sums, by name.
fn package(release: &Release, help_files: &HelpFiles, parts: &[Part]) -> Outcome<BTreeMap<String, Vec<u8>>> {
    let mut files = BTreeMap::new();
    for part in parts {
        let architecture = part.architecture;
        files.insert(format!("onehop-linux-{}", architecture.name()), part.program.clone());
        files.insert(format!("onehop-linux-{}.cdx.json", architecture.name()), part.sbom.clone());
        files.insert(deb::file_name(release, architecture), deb::write(release, part, help_files)?);
        files.insert(npm::platform_file_name(release, architecture), npm::platform(release, part)?);
        files.insert(wheel::file_name(release, architecture), wheel::write(release, part)?);
    }
    if let Some(first) = parts.first() {
        files.insert("THIRD-PARTY-LICENSES.txt".to_owned(), first.notices.clone());
    }
    files.insert(npm::main_file_name(release), npm::main(release)?);
    Ok(files)
}

/// Written under another name first: a program that runs cannot be overwritten, only replaced.
fn put(path: &Path, bytes: &[u8], is_program: bool) -> Outcome {
    use std::os::unix::fs::PermissionsExt as _;
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let beside = path.with_extension("part");
    std::fs::write(&beside, bytes).map_err(failed)?;
    let mode = if is_program { 0o755 } else { 0o644 };
    std::fs::set_permissions(&beside, std::fs::Permissions::from_mode(mode)).map_err(failed)?;
    std::fs::rename(&beside, path).map_err(failed)?;
    Ok(())
}
