//! `cargo xtask dist`: the program as one static file, which runs on any Linux of its architecture.

use crate::steps::{command, quiet, shown};
use crate::{Outcome, ground, install};

/// Builds it, checks that it is static, and puts it into `target/dist`.
pub(crate) fn run() -> Outcome {
    let architecture = std::env::consts::ARCH;
    let triple = format!("{architecture}-unknown-linux-musl");
    install::debian(&["musl-tools", "file"])?;
    if ground::output_of("rustc", &["--print", "target-libdir", "--target", &triple])
        .is_none_or(|folder| !std::path::Path::new(&folder).exists())
    {
        quiet(&mut command("rustup", &["target", "add", &triple]))?;
    }
    let compiler = format!("CC_{}", triple.replace('-', "_"));
    let build = ["build", "--release", "--locked", "--package", "onehop", "--target", &triple];
    shown(command("cargo", &build).env(compiler, "musl-gcc").env("CARGO_TARGET_DIR", ground::target()))?;

    let built = ground::target().join(&triple).join("release/onehop");
    let kind = ground::output_of("file", &["-b", &built.display().to_string()]).unwrap_or_default();
    if !kind.contains("static-pie linked") && !kind.contains("statically linked") {
        return Err(format!("{} is not static: {kind}", built.display()).into());
    }
    // `ldd` fails on a static file; where it lists a library, the build has gone wrong.
    if ground::output_of("ldd", &[&built.display().to_string()]).is_some_and(|text| text.contains("=>")) {
        return Err(format!("{} needs shared libraries", built.display()).into());
    }
    let place = ground::target_folder("dist")?.join(format!("onehop-linux-{architecture}"));
    std::fs::copy(&built, &place)?;
    let version = ground::output_of(&place, &["--version"]).ok_or("the static program does not run")?;
    let bytes = place.metadata()?.len();
    println!("{}: {version}, {bytes} bytes, {kind}", place.display());
    Ok(())
}
