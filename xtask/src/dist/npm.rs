//! Packages for npm: one with a launcher, and one for each platform with the program.
//!
//! npm installs the one that fits, by `os` and `cpu`. The programs are static, so the C library does not matter.
//! The name `onehop` belongs to the workers' library in sdk/node.

use serde_json::Value;

use crate::Outcome;

use super::Part;
use super::architecture::Architecture;
use super::release::Release;
use super::tree::Tree;

const MAIN: &str = include_str!("../../../packaging/npm/main.json");
const PLATFORM: &str = include_str!("../../../packaging/npm/platform.json");
const LAUNCHER: &str = include_str!("../../../packaging/npm/onehop.js");
const README: &str = include_str!("../../../packaging/npm/README.md");

/// `onehop-bin-0.1.0.tgz`
pub(super) fn main_file_name(release: &Release) -> String {
    format!("onehop-bin-{}.tgz", release.version)
}

/// `onehop-bin-linux-x64-0.1.0.tgz`
pub(super) fn platform_file_name(release: &Release, architecture: Architecture) -> String {
    format!("onehop-bin-linux-{}-{}.tgz", architecture.node(), release.version)
}

/// The launcher's package. It names every platform, also those that were not built this time: their packages come
/// from another machine.
pub(super) fn main(release: &Release) -> Outcome<Vec<u8>> {
    let mut manifest: Value = serde_json::from_str(&release.fill(MAIN, &[])?)?;
    for architecture in Architecture::ALL {
        let name = format!("onehop-bin-linux-{}", architecture.node());
        manifest["optionalDependencies"][name] = Value::from(release.version.as_str());
    }
    let mut tree = shared(release, &manifest)?;
    tree.add_program("onehop.js", LAUNCHER);
    tree.tar_gz("package/", false, release.epoch)
}

/// A platform's package.
pub(super) fn platform(release: &Release, part: &Part) -> Outcome<Vec<u8>> {
    let manifest = serde_json::from_str(&release.fill(PLATFORM, &[("CPU", part.architecture.node())])?)?;
    let mut tree = shared(release, &manifest)?;
    tree.add_program("bin/onehop", part.program.as_slice());
    tree.add("THIRD-PARTY-LICENSES.txt", part.notices.as_slice());
    tree.add("sbom.cdx.json", part.sbom.as_slice());
    tree.tar_gz("package/", false, release.epoch)
}

/// What each of them has.
fn shared(release: &Release, manifest: &Value) -> Outcome<Tree> {
    let mut tree = Tree::default();
    tree.add("package.json", format!("{}\n", serde_json::to_string_pretty(manifest)?));
    tree.add("README.md", README);
    tree.add("LICENSE", release.licence.as_slice());
    Ok(tree)
}
