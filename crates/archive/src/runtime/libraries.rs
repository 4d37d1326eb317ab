//! Finds the libraries of a program, as ld.so(8) would when it starts it, and those that glibc opens later by itself.
//!
//! Reads files and executes none.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};

use super::elf::Elf;
use super::{Library, RuntimeError, cache, read};

/// Where libraries lie on a machine.
#[derive(Debug, Clone)]
pub struct Places {
    /// /etc/ld.so.cache, where there is one.
    pub cache: Vec<u8>,
    /// Folders for what is not in it.
    pub folders: Vec<PathBuf>,
}

/// The usual folders of glibc and musl, on the systems that are in use.
const FOLDERS: [&str; 9] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
    "/usr/local/lib",
];

/// Libraries of one program: Node.js has 7, with everything shared 40.
const LIBRARIES_MAX: usize = 256;

/// What glibc opens when it is asked for a name, up to 2.33; later ones have both within (its NEWS of 2.34).
const RESOLVING: [&str; 2] = ["libnss_files.so.2", "libnss_dns.so.2"];

/// What glibc opens when a thread is cancelled.
const UNWINDING: &str = "libgcc_s.so.1";

/// A symbol version that glibc has from 2.34 on.
const RESOLVES_BY_ITSELF: &[u8] = b"GLIBC_2.34\0";

impl Places {
    /// Those of this machine.
    pub fn of_this_machine() -> Self {
        let cache = std::fs::read("/etc/ld.so.cache").unwrap_or_default();
        Self { cache, folders: FOLDERS.map(PathBuf::from).to_vec() }
    }
}

/// All that this program needs, with its loader, sorted by name.
pub(super) fn of(
    path: &Path,
    program: &Elf<'_>,
    loader: &Path,
    places: &Places,
) -> Result<Vec<Library>, RuntimeError> {
    let mut search =
        Search { program, places, own: Vec::new(), found: BTreeMap::new(), queue: VecDeque::new() };
    search.own = search.folders(path, program)?;
    let is_musl = file_name(loader).starts_with("ld-musl-");
    search.take(file_name(loader), loader.to_owned())?;
    search.ask(path, program)?;
    while let Some(name) = search.queue.pop_front() {
        // musl's loader is its C library, whatever others call it.
        if is_musl && name.name.starts_with("libc.") {
            continue;
        }
        search.find(&name)?;
        let is_glibc = name.name == "libc.so.6";
        if is_glibc {
            search.take_what_glibc_opens(&name)?;
        }
    }
    Ok(search.found.into_values().collect())
}

pub(super) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A name that somebody needs.
struct Needed {
    name: String,
    by: PathBuf,
    /// Where that one says that its libraries are.
    folders: Vec<PathBuf>,
    /// Nothing fails where it is missing.
    is_optional: bool,
}

struct Search<'a> {
    program: &'a Elf<'a>,
    places: &'a Places,
    /// Folders that the program names.
    own: Vec<PathBuf>,
    found: BTreeMap<String, Library>,
    queue: VecDeque<Needed>,
}

impl Search<'_> {
    fn find(&mut self, needed: &Needed) -> Result<(), RuntimeError> {
        if self.found.contains_key(&needed.name) {
            return Ok(());
        }
        let mut candidates = Vec::new();
        if needed.name.contains('/') {
            candidates.push(PathBuf::from(&needed.name));
        } else {
            let named = needed.folders.iter().chain(&self.own).map(|folder| folder.join(&needed.name));
            candidates.extend(named);
            candidates.extend(cache::find(&self.places.cache, &needed.name));
            candidates.extend(self.places.folders.iter().map(|folder| folder.join(&needed.name)));
        }
        for candidate in &candidates {
            if candidate.is_file() && self.take(needed.name.clone(), candidate.clone())? {
                return Ok(());
            }
        }
        if needed.is_optional {
            return Ok(());
        }
        let looked_in: BTreeSet<String> = candidates
            .iter()
            .filter_map(|path| path.parent())
            .map(|path| path.display().to_string())
            .collect();
        Err(RuntimeError::Missing {
            name: needed.name.clone(),
            needed_by: needed.by.clone(),
            looked_in: looked_in.into_iter().collect::<Vec<_>>().join(", "),
        })
    }

    /// Takes a file under this name; `false`: it is one for another machine, as ld.so finds and passes over.
    fn take(&mut self, name: String, from: PathBuf) -> Result<bool, RuntimeError> {
        let bytes = read(&from)?;
        let Ok(elf) = Elf::parse(&bytes) else { return Ok(false) };
        if !elf.fits(self.program) {
            return Ok(false);
        }
        if self.found.len() >= LIBRARIES_MAX || name.contains('/') {
            let what = format!(
                "cannot be taken along: more than {LIBRARIES_MAX} libraries, or one named by its path"
            );
            return Err(RuntimeError::Unsupported { path: from, what });
        }
        self.ask(&from, &elf)?;
        self.found.insert(name.clone(), Library { name, from, bytes });
        Ok(true)
    }

    /// Asks for what this file needs.
    fn ask(&mut self, by: &Path, elf: &Elf<'_>) -> Result<(), RuntimeError> {
        let folders = self.folders(by, elf)?;
        let needed = elf.needed().map_err(|what| RuntimeError::Unsupported { path: by.to_owned(), what })?;
        self.queue.extend(needed.into_iter().map(|name| Needed {
            name: name.to_owned(),
            by: by.to_owned(),
            folders: folders.clone(),
            is_optional: false,
        }));
        Ok(())
    }

    fn folders(&self, by: &Path, elf: &Elf<'_>) -> Result<Vec<PathBuf>, RuntimeError> {
        let folders =
            elf.folders().map_err(|what| RuntimeError::Unsupported { path: by.to_owned(), what })?;
        let origin = by.parent().unwrap_or(Path::new("/")).to_string_lossy();
        let expand = |folder: &str| folder.replace("${ORIGIN}", &origin).replace("$ORIGIN", &origin);
        // `$LIB` and `$PLATFORM` depend on the machine; where they stand, the usual folders have it.
        Ok(folders
            .into_iter()
            .map(expand)
            .filter(|folder| !folder.contains('$'))
            .map(PathBuf::from)
            .collect())
    }

    fn take_what_glibc_opens(&mut self, libc: &Needed) -> Result<(), RuntimeError> {
        let Some(library) = self.found.get(&libc.name) else { return Ok(()) };
        let resolves = memchr::memmem::find(&library.bytes, RESOLVES_BY_ITSELF).is_some();
        let names = if resolves { &[][..] } else { &RESOLVING[..] };
        let beside: Vec<PathBuf> = library.from.parent().map(Path::to_owned).into_iter().collect();
        for name in names.iter().chain(&[UNWINDING]) {
            self.find(&Needed {
                name: (*name).to_owned(),
                by: libc.by.clone(),
                folders: beside.clone(),
                is_optional: true,
            })?;
        }
        Ok(())
    }
}
