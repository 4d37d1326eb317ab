//! A folder that vanishes with its test.

use std::path::{Path, PathBuf};

/// A temporary folder and shorthand for filling it.
#[derive(Debug)]
pub struct Folder {
    folder: tempfile::TempDir,
}

impl Folder {
    /// An empty one.
    ///
    /// # Panics
    /// Where the machine has no room for it.
    #[expect(clippy::new_without_default, reason = "it makes something on disk, which a default should not")]
    pub fn new() -> Folder {
        let folder = tempfile::Builder::new().prefix("onehop-").tempdir().expect("a temporary folder");
        Folder { folder }
    }

    /// One with these files.
    pub fn with(files: &[(&str, &str)]) -> Folder {
        let folder = Folder::new();
        for (path, text) in files {
            folder.write(path, text);
        }
        folder
    }

    /// A small single-page app in `dist`: an index and one hashed asset.
    pub fn with_app() -> Folder {
        Folder::with(&[
            ("dist/index.html", APP_INDEX),
            ("dist/assets/index-B3kq9zXw.js", "document.title = 'onehop'\n"),
        ])
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The path of something in it.
    pub fn join(&self, path: &str) -> PathBuf {
        self.path().join(path)
    }

    /// Writes a file and the folders on the way to it.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn write(&self, path: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.join(path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).expect("folders");
        }
        std::fs::write(&path, text).expect("a file");
        path
    }
}

/// The index page of [`Folder::with_app`].
pub(crate) const APP_INDEX: &str = "<!doctype html>\n<title>app</title>\n\
    <script type=\"module\" src=\"/assets/index-B3kq9zXw.js\"></script>\n<div id=\"app\"></div>\n";
