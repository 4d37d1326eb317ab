//! Prints an nginx.conf as an Onehopfile: `cargo run -p onehop-adapt --example adapt -- nginx.conf`.
//!
//! Notes and refusals go to standard error.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use onehop_adapt::{TextOnly, translate};
use onehop_config::FileSource;

fn main() -> ExitCode {
    let Some(argument) = std::env::args_os().nth(1) else {
        eprintln!("usage: adapt NGINX.CONF");
        return ExitCode::from(2);
    };
    let path: PathBuf = std::path::absolute(Path::new(&argument)).unwrap_or_else(|_| argument.clone().into());
    match translate(&path, &FileSource, &TextOnly) {
        Ok(translation) => {
            print!("{}", translation.onehopfile);
            for note in translation.notes {
                eprintln!("note: {note}");
            }
            ExitCode::SUCCESS
        }
        Err(refusal) => {
            eprintln!("{refusal}");
            ExitCode::FAILURE
        }
    }
}
