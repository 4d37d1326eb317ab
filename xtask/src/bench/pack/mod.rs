//! `cargo xtask bench pack`: what a packed application costs until it answers, at rest, and in a container.
//!
//! `start.rs` starts packs in an empty folder as their root, `memory.rs` weighs what nobody has asked for, and
//! `container.rs` compares an image with the same file outside of one. All of them run the static onehop, which is what
//! people deploy. This file makes packs and must never measure.

mod container;
mod memory;
mod start;

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::steps::{Skip, command, quiet};
use crate::workspace::Options;
use crate::{Outcome, install, workspace};

use super::report::write_result;
use super::servers;

/// The parts of this measurement.
const PARTS: &[&str] = &["start", "memory", "container"];

/// Runs what the options ask for.
pub(crate) fn run(words: &[&str]) -> Outcome {
    let mut options = Options::new(words);
    let smoke = options.flag("--smoke");
    let parts = options.names("--parts", PARTS, PARTS)?;
    let rounds = options.number("--rounds", if smoke { 1 } else { 3 })?.max(1);
    let seconds = options.number("--seconds", if smoke { 1 } else { 5 })?.max(1);
    let starts = options.number("--starts", if smoke { 1 } else { 10 })?.max(1);
    let program = match options.value("--program")? {
        Some(path) => PathBuf::from(path),
        // The tests' own program is static, too.
        None if smoke => workspace::program(),
        None => static_program()?,
    };
    options.finish()?;
    if workspace::output_of("id", &["-u"]).is_none_or(|user| user.trim() != "0") {
        return Err(
            Skip("only root may change a process's root folder, or run these containers".to_owned()).into()
        );
    }
    install::raise_descriptor_limit();
    let packer = Packer { program: program.canonicalize()?, work: workspace::target_folder("bench/pack")? };
    servers::move_to_load_core();

    let mut value = json!({
        "what": "pack", "date": workspace::date(), "machine": workspace::machine(),
        "onehop": workspace::output_of(&packer.program, &["--version"]),
        "program_bytes": packer.program.metadata()?.len(),
    });
    for part in &parts {
        let found = match part.as_str() {
            "start" => start::run(&packer, starts, smoke)?,
            "memory" => memory::run(&packer)?,
            _ => container::run(&packer, rounds, seconds)?,
        };
        value[part.as_str()] = found;
    }
    println!("written to {}", write_result("pack", smoke, &value)?.display());
    Ok(())
}

/// What `cargo xtask dist` made.
fn static_program() -> Outcome<PathBuf> {
    let path = workspace::target().join("dist").join(format!("onehop-linux-{}", std::env::consts::ARCH));
    if path.exists() {
        return Ok(path);
    }
    Err("there is no static onehop: run `cargo xtask dist` first, or name one with --program FILE".into())
}

/// Makes packs.
struct Packer {
    /// The static onehop, which packs and is packed.
    program: PathBuf,
    work: PathBuf,
}

impl Packer {
    /// A folder of this name, empty.
    fn folder(&self, name: &str) -> Outcome<PathBuf> {
        let folder = self.work.join(name);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)?;
        }
        std::fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Packs the Onehopfile of a folder.
    fn pack(&self, folder: &Path, to: &Path, more: &[&str]) -> Outcome {
        let (file, to) = (folder.join("Onehopfile").display().to_string(), to.display().to_string());
        let words: Vec<&str> = ["pack", &file, "-o", &to].into_iter().chain(more.iter().copied()).collect();
        quiet(&mut command(&self.program, &words))
    }
}
