//! Lists what a pack holds: `cargo run -p onehop-archive --example list -- ./shop`.

use std::path::Path;
use std::process::ExitCode;

use onehop_archive::index::SourceKind;
use onehop_archive::{Pack, PackError};

fn main() -> ExitCode {
    let Some(argument) = std::env::args_os().nth(1) else {
        eprintln!("usage: list PACK");
        return ExitCode::from(2);
    };
    match list(Path::new(&argument)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{}: {error}", argument.display());
            ExitCode::FAILURE
        }
    }
}

fn list(path: &Path) -> Result<(), PackError> {
    let (_, index) = Pack::open(path)?;
    println!("{} for {}, made by {}", index.name, index.target, index.made_by);
    for tree in &index.trees {
        for file in &tree.files {
            println!("served   {}/{}", tree.root, String::from_utf8_lossy(&file.path));
        }
    }
    for source in &index.sources {
        match &source.kind {
            SourceKind::Folder => println!("folder   {}", source.path),
            SourceKind::File { .. } => println!("file     {}", source.path),
            SourceKind::Link { to } => println!("link     {} -> {to}", source.path),
        }
    }
    Ok(())
}
