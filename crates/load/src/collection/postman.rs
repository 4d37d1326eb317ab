//! stub
use super::Collection;
use super::problem::Problem;
use super::variables::Variables;
use std::path::Path;
pub(super) fn read(_text: &str, _folder: &Path, _variables: &mut Variables) -> Result<Collection, Problem> {
    Err(Problem::new("later", ""))
}
