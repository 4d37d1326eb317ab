//! Puts a runtime into a pack, and reads the version of one that cannot be executed.

use super::{LIBRARIES, PROGRAMS, Portable};
use crate::index::{Runtime, Source, SourceKind};
use crate::{PackError, Writer};

/// How much a runtime is compressed: Node.js takes 9 s of one core; one level more saves 1 % and takes half as long again.
const RUNTIME_LEVEL: i32 = 9;

impl Portable {
    /// Puts it into a pack as `node` or `bun` of this version.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn store(self, name: &str, version: String, writer: &mut Writer) -> Result<Runtime, PackError> {
        let folder = |path: &str| Source { path: path.to_owned(), kind: SourceKind::Folder };
        let mut add = |path: String, bytes: &[u8]| {
            let content = writer.add_compressed(bytes, RUNTIME_LEVEL)?;
            Ok::<_, PackError>(Source { path, kind: SourceKind::File { content, executable: true } })
        };
        // In the order of paths, which an index keeps to.
        let mut files = vec![folder(PROGRAMS), add(format!("{PROGRAMS}/{name}"), &self.program)?];
        if !self.libraries.is_empty() {
            files.push(folder(LIBRARIES));
        }
        for library in self.libraries {
            files.push(add(format!("{LIBRARIES}/{}", library.name), &library.bytes)?);
        }
        Ok(Runtime { name: name.to_owned(), version, files, paths: self.paths })
    }
}

/// The version of a Node.js that cannot be executed here: it names where its sources are.
pub fn node_version_in(program: &[u8]) -> String {
    const BEFORE: &[u8] = b"nodejs.org/download/release/v";
    let rest = memchr::memmem::find(program, BEFORE).and_then(|at| program.get(at + BEFORE.len() - 1..));
    let version = rest
        .and_then(|rest| rest.split(|byte| *byte == b'/').next())
        .filter(|text| (2..32).contains(&text.len()));
    version.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or("unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_for_another_machine_tells_its_version_in_its_file() {
        let program = b"..https://nodejs.org/download/release/v22.1.0/node-v22.1.0.tar.gz..";
        assert_eq!(node_version_in(program), "v22.1.0");
        assert_eq!(node_version_in(b"nodejs.org/download/release/v"), "unknown");
        assert_eq!(node_version_in(b"nothing"), "unknown");
    }
}
