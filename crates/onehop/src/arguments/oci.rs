//! What `onehop pack` is told of the container image that it makes.

use std::path::PathBuf;

use clap::Args;
use onehop_archive::oci::Reference;

/// Options of the image.
#[derive(Debug, Default, Args)]
pub(crate) struct OciArguments {
    /// Write a container image, as `podman load` and `docker load` read it; without --output, only that
    #[arg(long = "oci", value_name = "FILE")]
    pub(crate) image: Option<PathBuf>,
    /// What the image is called [default: the executable's name]
    #[arg(long, value_name = "NAME[:TAG]", requires = "image", value_parser = Reference::parse)]
    pub(crate) tag: Option<Reference>,
    /// A label of the image, for example `org.opencontainers.image.version=1.2`; may be given several times
    #[arg(long = "label", value_name = "KEY=VALUE", requires = "image", value_parser = parse_label)]
    pub(crate) labels: Vec<(String, String)>,
}

fn parse_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write KEY=VALUE".to_owned()),
    }
}
