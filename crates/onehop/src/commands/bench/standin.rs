//! Stands in for parts of the load crate that are not there yet.

use onehop_load::progress::Observer;

pub(crate) mod compare {
    use super::*;
    use onehop_load::compare::{Arm, Comparison, Settings};
    pub(crate) fn compare(_: &[Arm], _: &Settings, _: &mut dyn Observer) -> Result<Comparison, String> {
        Err("no comparison yet".to_owned())
    }
}
pub(crate) mod saturation {
    use super::*;
    use onehop_load::saturation::{Limit, Saturation};
    #[derive(Default)]
    pub(crate) struct Settings {
        pub(crate) time: std::time::Duration,
        pub(crate) _more: (),
    }
    pub(crate) fn search(
        _: &onehop_load::Plan,
        _: Limit,
        settings: &Settings,
        _: &mut dyn Observer,
    ) -> Result<Saturation, String> {
        Err(format!("no search yet {:?}", settings.time))
    }
}
pub(crate) mod trial {
    use super::*;
    use onehop_load::trial::{Trial, setup::Setup};
    use std::path::{Path, PathBuf};
    pub(crate) struct Surroundings;
    impl Surroundings {
        pub(crate) fn look() -> Self {
            Surroundings
        }
    }
    #[derive(Default)]
    pub(crate) struct Settings {
        pub(crate) onehop: PathBuf,
        pub(crate) within: std::time::Duration,
        pub(crate) _more: (),
    }
    pub(crate) fn detect(_: &Path, _: &Surroundings) -> Result<Setup, String> {
        Err("no detection yet".to_owned())
    }
    pub(crate) fn run(_: &Setup, settings: &Settings, _: &mut dyn Observer) -> Result<Trial, String> {
        Err(format!("no trial yet {:?} {:?}", settings.onehop, settings.within))
    }
}
