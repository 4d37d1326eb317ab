//! Until finding out and comparing arrive: the same calls.

use std::path::PathBuf;

#[derive(Debug)]
pub(super) struct Surroundings {
    pub(super) nginx: Option<PathBuf>,
    pub(super) caddy: Option<PathBuf>,
}

impl Surroundings {
    pub(super) fn look() -> Self {
        let find = |program: &str| {
            let path = std::env::var_os("PATH").unwrap_or_default();
            let folders: Vec<PathBuf> = std::env::split_paths(&path).chain(["/usr/sbin".into()]).collect();
            folders.into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
        };
        Surroundings { nginx: find("nginx"), caddy: find("caddy") }
    }
}
