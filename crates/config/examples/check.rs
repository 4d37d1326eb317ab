//! Says how many sites an Onehopfile has, or what is wrong with it: `cargo run -p onehop-config --example check FILE`.

use std::path::Path;
use std::process::ExitCode;

use onehop_config::{FileKind, FileSource, load};

fn main() -> ExitCode {
    let Some(file) = std::env::args_os().nth(1) else {
        eprintln!("usage: check ONEHOPFILE");
        return ExitCode::from(2);
    };
    match load(Path::new(&file), FileKind::Onehopfile, &FileSource) {
        Ok(loaded) => {
            println!("{} sites", loaded.checked.sites.len());
            ExitCode::SUCCESS
        }
        Err(problems) => {
            for problem in problems {
                eprintln!("{problem}");
            }
            ExitCode::FAILURE
        }
    }
}
