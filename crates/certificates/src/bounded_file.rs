//! Files that are read up to a bound.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::StoreError;
use crate::limits::FILE_BYTES_MAX;

/// Reads a file up to [`FILE_BYTES_MAX`]; `None` if it does not exist.
pub(crate) fn read_bounded(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    let file = match File::open(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        file => file.map_err(io("read", path))?,
    };
    let mut content = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut content).map_err(io("read", path))?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(too_large(path));
    }
    Ok(Some(content))
}

pub(crate) fn too_large(path: &Path) -> StoreError {
    StoreError::TooLarge { path: path.to_owned(), bound: format!("{FILE_BYTES_MAX} bytes") }
}

pub(crate) fn io(action: &'static str, path: &Path) -> impl Fn(std::io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Io { action, path: path.clone(), source }
}
